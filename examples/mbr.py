"""Minimum Bayes risk decoding: sample several texts and keep the one that is most like the others.

    python examples/mbr.py --model HuggingFaceTB/SmolLM2-135M-Instruct
    python examples/mbr.py --model FOLDER_OR_HUB_ID --metric moverscore --prefilter wms --log-probs

`--log-probs` weighs samples by their probability under the model instead of counting them.
"""

from __future__ import annotations

import argparse

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import movers

PROMPTS = [
    "Summarize in one sentence: The bakery by the bridge stays closed until the flood has gone, its owner said.",
    "Summarize in one sentence: Heavy snow kept two hundred trains in their stations on Monday morning.",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or Hub id of a causal model")
    parser.add_argument("--metric", default="bertscore_emd")
    parser.add_argument("--prefilter", help="a cheaper metric that keeps the best four samples")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--log-probs", action="store_true")
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForCausalLM.from_pretrained(arguments.model).eval()
    torch.manual_seed(0)
    samples, log_probs = [], []
    for prompt in PROMPTS:
        messages = [{"role": "user", "content": prompt}]
        chat = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = tokenizer(chat, return_tensors="pt", add_special_tokens=False)
        sampling = {"do_sample": True, "top_k": 0, "num_return_sequences": arguments.samples}
        limits = {"max_new_tokens": arguments.tokens, "output_logits": True, "return_dict_in_generate": True}
        output = model.generate(**inputs, **sampling, **limits)
        written = output.sequences[:, inputs["input_ids"].shape[1] :]
        logits = model.compute_transition_scores(output.sequences, output.logits, normalize_logits=True)
        is_text = (written == tokenizer.eos_token_id).cumsum(1) <= 1  # the end of a text included
        log_probs.append(torch.where(is_text, logits, 0.0).sum(1).tolist())
        samples.append([text.strip() for text in tokenizer.batch_decode(written, skip_special_tokens=True)])
    options = {"prefilter": arguments.prefilter, "log_probs": log_probs if arguments.log_probs else None}
    for prompt, choice in zip(PROMPTS, movers.mbr(arguments.metric, samples, **options), strict=True):
        print(f"{prompt}\n  {choice.text}\n  sample {choice.index}, utility {choice.utilities[choice.index]:.3f}")


if __name__ == "__main__":
    main()

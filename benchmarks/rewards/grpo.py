"""GRPO on SmolLM2 with an `sms` reward: mean reward on held-out prompts before and after.

    MOVERS_DATA=… python benchmarks/rewards/grpo.py MODEL_FOLDER RUN_FOLDER --steps 60

The task: given the content words of a sentence of The Little Prince, write the sentence. `results.csv` gets the result.
A run that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from trl import GRPOConfig, GRPOTrainer

from movers.io import read_records
from movers.rewards import reward
from movers.texts import stop_words, token_spans

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data_folder
from rewards.measures import quote, save


class Row(TypedDict):
    """A conversation that asks for a sentence, and the sentence."""

    prompt: list[dict[str, str]]
    reference: str


def rows() -> list[Row]:
    """Prompts with references, in an order drawn from the sentences themselves."""
    stop = stop_words("english")
    rows: list[Row] = []
    for record in read_records(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz"):
        sentence = str(record["sentence"])
        tokens = [token.lower() for token, _, _ in token_spans(sentence)]
        words = sorted({word for word in tokens if word.isalpha() and word not in stop})
        if 3 <= len(words) <= 8:
            content = f"Write one short sentence with these words: {', '.join(words)}."
            rows.append({"prompt": [{"role": "user", "content": content}], "reference": sentence})
    rows.sort(key=lambda row: hashlib.sha256(str(row["reference"]).encode()).hexdigest())
    return rows


@torch.no_grad()
def complete(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, held_out: Sequence[Row]) -> list[str]:
    """One completion per prompt, sampled with a fixed seed as in training."""
    torch.manual_seed(0)
    texts = []
    for begin in range(0, len(held_out), 32):
        prompts = [row["prompt"] for row in held_out[begin : begin + 32]]
        inputs = tokenizer.apply_chat_template(
            prompts,
            add_generation_prompt=True,
            return_tensors="pt",
            padding=True,
            padding_side="left",
            return_dict=True,
        )
        out = model.generate(**inputs, do_sample=True, top_k=0, max_new_tokens=32, pad_token_id=tokenizer.pad_token_id)
        texts += tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return texts


def interval(differences: np.ndarray, seed: int = 0) -> list[float]:
    """95 % interval of a mean, by bootstrap."""
    draws = np.random.default_rng(seed).choice(differences, (10_000, len(differences))).mean(axis=1)
    return [float(value) for value in np.percentile(draws, [2.5, 97.5])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--reward", default="sms")
    parser.add_argument("--held-out", type=int, default=96)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    everything = rows()
    held_out, training = everything[: arguments.held_out], everything[arguments.held_out :]
    random.Random(0).shuffle(training)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(arguments.model)
    chosen = reward(arguments.reward)
    references = [str(row["reference"]) for row in held_out]
    saved = arguments.folder / "before.json"
    if saved.is_file():
        before = json.loads(saved.read_text())
    else:
        before = complete(model, tokenizer, held_out)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        saved.write_text(json.dumps(before))
    config = GRPOConfig(
        output_dir=str(arguments.folder), use_cpu=True, bf16=False, per_device_train_batch_size=8, num_generations=8,
        max_completion_length=32, learning_rate=1e-5, lr_scheduler_type="constant_with_warmup", warmup_steps=5,
        max_steps=arguments.steps, logging_steps=1, save_steps=10, save_total_limit=1, report_to=[], seed=0,
        disable_tqdm=True, gradient_checkpointing=False,
    )  # fmt: skip
    data = Dataset.from_list(training)
    trainer = GRPOTrainer(
        model=model, processing_class=tokenizer, reward_funcs=[chosen], args=config, train_dataset=data
    )
    trainer.train(resume_from_checkpoint=any(arguments.folder.glob("checkpoint-*")) or None)
    after = complete(trainer.model.eval(), tokenizer, held_out)
    first, second = (np.array(chosen.score(texts, references)) for texts in (before, after))
    low, high = interval(second - first)
    values: dict[str, float | str] = {
        "before": float(first.mean()),
        "after": float(second.mean()),
        "difference": float((second - first).mean()),
        "difference, low": low,
        "difference, high": high,
    }
    print(values)
    for number, row in enumerate(held_out[:4]):
        texts = (row["prompt"][0]["content"], row["reference"], before[number], after[number])
        names = ("prompt", "reference", "before", "after")
        values |= {f"{name} {number}": quote(text) for name, text in zip(names, texts, strict=True)}
    save("grpo", f"{arguments.reward}, {arguments.steps} steps", 0, values, len(held_out))


if __name__ == "__main__":
    main()

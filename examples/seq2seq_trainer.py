"""Train a sequence-to-sequence model and select the best checkpoint by MoverScore.

    pip install . accelerate    # in a checkout
    python examples/seq2seq_trainer.py

It runs without a download: a tiny T5 with random weights and a toy dataset of headlines. For your own work, replace
`small_model` by `AutoTokenizer.from_pretrained(…)` and `AutoModelForSeq2SeqLM.from_pretrained(…)`, and `ROWS` by your
data; the relevant lines are marked with arrows.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import movers

ROWS = [
    ("The bakery by the bridge will stay closed until the flood has gone.", "Flood closes bakery"),
    ("After nine years of work the tunnel below the river was opened today.", "River tunnel opens"),
    ("The town's only cinema has been sold to a group of pensioners.", "Pensioners buy cinema"),
    ("Heavy snow kept two hundred trains in their stations on Monday.", "Snow stops trains"),
    ("A lost parrot told the police its owner's street and number.", "Parrot gives police address"),
    ("Farmers expect the smallest apple harvest since the frost of 1991.", "Poor apple harvest expected"),
]


def small_model(texts: list[str]) -> tuple[Any, Any]:
    """A one-layer T5 and a word-level tokenizer for the texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    splitter = pre_tokenizers.BertPreTokenizer()
    words = sorted({word for text in texts for word, _ in splitter.pre_tokenize_str(text.lower())})
    numbers = {token: number for number, token in enumerate(["<pad>", "</s>", "<unk>", *words])}
    inner = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = splitter
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    config = T5Config(
        vocab_size=len(numbers), d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return T5ForConditionalGeneration(config), tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", default="seq2seq_trainer_run")
    arguments = parser.parse_args()

    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    set_seed(1)
    model, tokenizer = small_model([text for row in ROWS for text in row])
    rows = [{"input_ids": tokenizer(text).input_ids, "labels": tokenizer(title).input_ids} for text, title in ROWS]
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=arguments.output,
            max_steps=arguments.steps,
            per_device_train_batch_size=2,
            learning_rate=1e-2,
            eval_strategy="steps",
            eval_steps=max(1, arguments.steps // 2),
            save_strategy="steps",
            save_steps=max(1, arguments.steps // 2),
            save_total_limit=1,
            predict_with_generate=True,  # <- metrics need generated texts, not logits
            generation_max_length=8,
            metric_for_best_model="moverscore",  # <- any key returned by compute_metrics
            greater_is_better=True,
            load_best_model_at_end=True,
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=rows[:4],
        eval_dataset=rows[4:],
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        # <- names, names with options, or (name, options) pairs
        compute_metrics=movers.hooks.compute_metrics(tokenizer, metrics=["moverscore", "bertscore_emd", "wms"]),
    )
    trainer.train()
    print(json.dumps({name: value for name, value in trainer.evaluate().items() if isinstance(value, float)}))


if __name__ == "__main__":
    main()

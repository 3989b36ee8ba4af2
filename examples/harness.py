"""One of our metrics inside EleutherAI's lm-evaluation-harness: a custom metric and a task that runs offline.

    pip install lm-eval==0.4.13
    python examples/harness.py [MODEL_FOLDER_OR_HUB_ID]

Tried beside transformers 5.22, numpy 2.4 and datasets 5.2: lm-eval 0.4.13 installs and runs. lighteval 0.8.1 to 0.13.0
does not install: it needs numpy < 2, or since 0.11 exactly nltk 3.9.1. Without a model folder the texts come from a
tiny model with random weights, so that the script runs without a download. Arrows mark the relevant lines.
"""

from __future__ import annotations

import sys

from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.registry import register_metric
from lm_eval.models.huggingface import HFLM

import movers

ROWS = [
    {"document": "The bakery by the bridge stays closed until the flood has gone.", "summary": "Flood closes bakery."},
    {"document": "Snow kept two hundred trains in their stations.", "summary": "Snow stops trains."},
]


@register_metric(metric="wms", higher_is_better=True, output_type="generate_until", aggregation="mean")  # <-
def wms(predictions: list[str], references: list[str]) -> float:
    return movers.wms(predictions, references)["score"]


TASK = {
    "task": "tiny_summaries",
    "custom_dataset": lambda **_: {"test": Dataset.from_list(ROWS)},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{document}}\nSummary:",
    "doc_to_target": "{{summary}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 12, "do_sample": False},
    "metric_list": [{"metric": "wms", "aggregation": "mean", "higher_is_better": True}],  # <-
}


def tiny_model() -> HFLM:
    """A model with random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    torch.manual_seed(1)
    words = sorted({word for row in ROWS for text in row.values() for word in text.replace(".", " .").split()})
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["<end>", *words])}, "<end>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<end>")
    config = GPT2Config(vocab_size=len(words) + 1, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    return HFLM(pretrained=GPT2LMHeadModel(config), tokenizer=tokenizer, max_length=64)


def main() -> None:
    model = HFLM(pretrained=sys.argv[1]) if len(sys.argv) > 1 else tiny_model()
    results = simple_evaluate(model=model, tasks=[TASK], bootstrap_iters=100)
    for name, value in results["results"]["tiny_summaries"].items():
        if name.startswith("wms"):
            print(f"{name}: {value:.4f}")


if __name__ == "__main__":
    main()

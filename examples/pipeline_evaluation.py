"""Score the outputs of a transformers pipeline with `datasets.map` and `evaluate.combine`.

    python examples/pipeline_evaluation.py [MODEL_FOLDER]

evaluate's own `evaluator("summarization")` needs pipelines that transformers 5 no longer has; a `map` over the data
does the same in three lines. Without a model folder the outputs come from a tiny model with random weights, so that
the script runs without a download.
"""

from __future__ import annotations

import sys

import evaluate
from datasets import Dataset
from transformers import pipeline

import movers

ROWS = {
    "document": ["The bakery by the bridge stays closed until the flood has gone.", "Snow kept trains in stations."],
    "summary": ["Flood closes bakery.", "Snow stops trains."],
}


def tiny_pipeline() -> object:
    """A text-generation pipeline around a model with random weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = sorted({word for texts in ROWS.values() for text in texts for word in text.replace(".", " .").split()})
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["<end>", *words])}, "<end>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<end>")
    config = GPT2Config(vocab_size=len(words) + 1, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    return pipeline("text-generation", model=GPT2LMHeadModel(config), tokenizer=tokenizer)


def main() -> None:
    write = pipeline("text-generation", model=sys.argv[1]) if len(sys.argv) > 1 else tiny_pipeline()

    def summarise(batch: dict[str, list[str]]) -> dict[str, list[str]]:
        outputs = write(batch["document"], max_new_tokens=12, do_sample=False, return_full_text=False)
        return {"prediction": [output[0]["generated_text"] or "." for output in outputs]}

    data = Dataset.from_dict(ROWS).map(summarise, batched=True, batch_size=8)
    metrics = evaluate.combine([evaluate.load(str(movers.module_path(name))) for name in ("wms", "sms", "moverscore")])
    scores = metrics.compute(predictions=data["prediction"], references=data["summary"])
    for name in ("wms_score", "sms_score", "moverscore_score"):
        print(f"{name}: {scores[name]:.4f}")


if __name__ == "__main__":
    main()

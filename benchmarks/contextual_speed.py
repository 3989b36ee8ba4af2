"""Speed of the contextual metrics against the encoder's floor, the `bert-score` package and pair-by-pair encoding.

    MOVERS_DATA=… python benchmarks/contextual_speed.py [--pairs N]

The floor is the forward pass alone: AutoModel, float32, inference mode, distinct texts tokenized beforehand and sorted
by length, the best batch size of 16, 32, 64 and 128.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from common import Measured, interleaved, judged, machine, seconds, write

import movers
from movers.encoders.cache import VECTORS


def floor_of(texts: list[str]) -> tuple[Callable[[], None], int]:
    """The forward pass over distinct texts, at its best batch size."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from movers.encoders.embedded import minilm_folder

    folder = str(minilm_folder())
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = sorted((tokenizer(text, truncation=False)["input_ids"] for text in dict.fromkeys(texts)), key=len)

    def batches(size: int) -> list[dict[str, Any]]:
        made = []
        for begin in range(0, len(ids), size):
            part = ids[begin : begin + size]
            width = max(map(len, part))
            padded = torch.tensor([row + [0] * (width - len(row)) for row in part])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part])
            made.append({"input_ids": padded, "attention_mask": mask})
        return made

    def run(prepared: list[dict[str, Any]]) -> None:
        with torch.inference_mode():
            for batch in prepared:
                model(**batch)

    prepared = {size: batches(size) for size in (16, 32, 64, 128)}
    run(prepared[32][:3])
    times = {size: seconds(lambda s=size: run(prepared[s])) for size in prepared}  # type: ignore[misc]
    best = min(times, key=lambda size: times[size])
    return (lambda: run(prepared[best])), best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3920)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    rows = judged("wmt17_seg_da_to_en")[: arguments.pairs]
    predictions = [row["candidate"] for row in rows]
    references = [row["references"][0] for row in rows]

    def fresh(function: Callable[..., Any], *texts: Any, **options: Any) -> Callable[[], None]:
        def run() -> None:
            VECTORS.clear()
            function(*texts, **options)

        return run

    floor, size = floor_of([*predictions, *references])
    lines = [
        "# Speed of the contextual metrics",
        "",
        machine(("torch", "transformers", "bert-score", "POT")),
        "",
        f"{len(rows)} pairs of WMT17, all-MiniLM-L6-v2, no vector taken from the cache; floor at batch size {size}.",
        "",
    ]

    def report(what: str, measured: Measured) -> None:
        lines.append(f"- {measured.describe(what)}")
        print(lines[-1], flush=True)  # the whole takes half an hour

    movers.moverscore(predictions[:64], references[:64])
    report("moverscore ÷ floor", interleaved(floor, fresh(movers.moverscore, predictions, references), arguments.runs))

    import bert_score

    from movers.encoders.embedded import minilm_folder

    folder = str(minilm_folder())
    peer_scorer = bert_score.BERTScorer(model_type=folder, num_layers=6, batch_size=64)

    def peer() -> None:
        peer_scorer.score(predictions, references)

    peer_scorer.score(predictions[:64], references[:64])
    for metric in (movers.bertscore_hungarian, movers.bertscore_emd):
        measured = interleaved(fresh(metric, predictions, references), peer, arguments.runs)
        report(f"bert-score package ÷ {metric.__name__}", measured)

    many = judged("summeval")[: max(16, arguments.pairs // 20)]
    candidates = [row["candidate"] for row in many]
    groups = [row["references"] for row in many]

    def separately() -> None:
        for candidate, group in zip(candidates, groups, strict=True):
            for text in group:
                VECTORS.clear()
                movers.moverscore([candidate], [text])

    together = fresh(movers.moverscore, candidates, groups)
    ratio = interleaved(together, separately, min(3, arguments.runs))
    report(f"every pair encoded separately ÷ moverscore, {len(many)} summaries × {len(groups[0])} references", ratio)
    write("contextual_speed", lines)


if __name__ == "__main__":
    main()

"""Scoring speed against the floor: the encoder's bare forward pass over the distinct sentences.

    MOVERS_DATA=… python benchmarks/quality/speed.py

Documents of SummEval with the summaries of all 16 systems. The floor is `AutoModel` in float32 and inference mode over
the distinct sentences, tokenized beforehand and sorted by length, at the best of the batch sizes 16, 32, 64 and 128.
A ratio is the median of five interleaved runs (floor, ours, floor); a run whose two floors differ by more than 10 % is
repeated, up to 20 runs in all, and the result says how many were dropped.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from quality_common import data_folder, read_rows, save

import movers
from movers.quality.vectors import split_units

DOCUMENTS = 12


def forward(encoder: Any, batches: Sequence[dict[str, torch.Tensor]]) -> float:
    begin = time.perf_counter()
    with torch.inference_mode():
        for batch in batches:
            encoder.model(**batch)
    return time.perf_counter() - begin


def make_batches(encoder: Any, sentences: Sequence[str], size: int) -> list[dict[str, torch.Tensor]]:
    ids = sorted((tokens.ids[:256] for tokens in encoder.tokenize(sentences)), key=len)
    batches = []
    for begin in range(0, len(ids), size):
        part = ids[begin : begin + size]
        padded = torch.zeros((len(part), len(part[-1])), dtype=torch.long)
        mask = torch.zeros_like(padded)
        for row, one in enumerate(part):
            padded[row, : len(one)] = torch.from_numpy(one)
            mask[row, : len(one)] = 1
        batches.append({"input_ids": padded, "attention_mask": mask})
    return batches


def main() -> None:
    rows = read_rows(data_folder() / "human" / "summeval.jsonl.gz")
    documents = list(dict.fromkeys(row["doc"] for row in rows))[:DOCUMENTS]
    rows = [row for row in rows if row["doc"] in documents]
    summaries, sources = [row["candidate"] for row in rows], [row["source"] for row in rows]
    sentences = list(dict.fromkeys(s for text in [*sources, *summaries] for s in split_units(text, "sentences")))
    encoder = movers.load_encoder("all-MiniLM-L6-v2", device="cpu")

    def ours() -> float:
        encoder.cache.clear()
        begin = time.perf_counter()
        movers.reference_free_summary_quality(summaries, sources, device="cpu", progress=False)
        return time.perf_counter() - begin

    ours()  # loads the model, warms the allocator
    candidates = {size: make_batches(encoder, sentences, size) for size in (16, 32, 64, 128)}
    size = min(candidates, key=lambda one: min(forward(encoder, candidates[one]) for _ in range(2)))
    ratios: list[float] = []
    floors: list[float] = []
    dropped = 0
    while len(ratios) < 5 and len(ratios) + dropped < 20:
        first, mine, second = forward(encoder, candidates[size]), ours(), forward(encoder, candidates[size])
        print(f"floor {first:.2f} ours {mine:.2f} floor {second:.2f}", flush=True)
        if abs(first - second) > 0.1 * min(first, second):
            dropped += 1
            continue
        ratios.append(mine / ((first + second) / 2))
        floors.append((first + second) / 2)
    save(
        "speed",
        {
            "documents": len(documents),
            "pairs": len(rows),
            "distinct_sentences": len(sentences),
            "floor_batch": size,
            "threads": torch.get_num_threads(),
            "floor_seconds": statistics.median(floors) if floors else None,
            "ratios": sorted(ratios),
            "ratio": statistics.median(ratios) if ratios else None,
            "runs_dropped": dropped,
        },
    )


if __name__ == "__main__":
    main()

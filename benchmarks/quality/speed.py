"""Scoring speed against the floor: the encoder's bare forward pass over the distinct sentences.

    MOVERS_DATA=… python benchmarks/quality/speed.py

Documents of SummEval with the summaries of all 16 systems; floor and interleaved runs as in `contextual_speed.py`.
"""

from __future__ import annotations

import statistics

import torch
from quality_common import floor_of, interleaved, judged, save

import movers
from movers.encoders.cache import VECTORS
from movers.quality.units import split_units

DOCUMENTS = 12


def main() -> None:
    rows = judged("summeval")
    documents = list(dict.fromkeys(row["doc"] for row in rows))[:DOCUMENTS]
    rows = [row for row in rows if row["doc"] in documents]
    summaries, sources = [row["candidate"] for row in rows], [row["source"] for row in rows]
    sentences = list(dict.fromkeys(s for text in [*sources, *summaries] for s in split_units(text, "sentences")))

    def ours() -> None:
        VECTORS.clear()
        movers.reference_free_summary_quality(summaries, sources, device="cpu", progress=False)

    ours()  # loads the model, warms the allocator
    floor, size = floor_of(sentences)
    measured = interleaved(floor, ours, tries=20)
    print(measured.describe("reference_free_summary_quality ÷ floor"))
    save(
        "speed",
        {
            "documents": len(documents),
            "pairs": len(rows),
            "distinct_sentences": len(sentences),
            "floor_batch": size,
            "threads": torch.get_num_threads(),
            "floor_seconds": statistics.median(measured.floors),
            "ratios": measured.ratios,
            "ratio": measured.ratio,
            "runs_dropped": measured.repeated,
        },
    )


if __name__ == "__main__":
    main()

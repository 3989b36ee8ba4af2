"""CPU seconds of scoring against the floor: the encoder's bare forward pass over the distinct sentences.

    MOVERS_DATA=… python benchmarks/quality/speed.py

Documents of SummEval with the summaries of all 16 systems; floor and metric by turns. CPU seconds, not those of the
clock, so that other work on the machine counts less. With a language model, for fewer documents, its share of all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from quality_common import best_batch, encoder, judged, save

import movers
from movers.encoders.cache import VECTORS
from movers.quality.lm import SMALL
from movers.quality.units import split_units

DOCUMENTS, RUNS = 6, 3
WITH_LM = 2  # documents


def cpu_seconds(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def main() -> None:
    rows = judged("summeval")
    documents = list(dict.fromkeys(row["doc"] for row in rows))[:DOCUMENTS]
    rows = [row for row in rows if row["doc"] in documents]
    texts = list(dict.fromkeys(text for row in rows for text in (row["source"], row["candidate"])))
    sentences = list(dict.fromkeys(sentence for text in texts for sentence in split_units(text, "sentences")))

    def score(count: int = DOCUMENTS, lm: str | None = None) -> None:
        VECTORS.clear()
        own = [row for row in rows if row["doc"] in documents[:count]]
        summaries, sources = [row["candidate"] for row in own], [row["source"] for row in own]
        movers.reference_free_summary_quality(summaries, sources, device="cpu", progress=False, lm=lm)

    score()  # loads the model, warms the allocator
    size = best_batch(sentences)
    floor = encoder(sentences, size)
    measured = [(cpu_seconds(floor), cpu_seconds(score), cpu_seconds(floor)) for _ in range(RUNS)]
    ratios = sorted(2 * ours / (before + after) for before, ours, after in measured)
    score(1, SMALL)
    both, alone = (cpu_seconds(lambda lm=lm: score(WITH_LM, lm)) for lm in (SMALL, None))  # type: ignore[misc]
    print(f"÷ floor {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}); with lm {both:.1f} s, of "
          f"which the language model {1 - alone / both:.0%}")  # fmt: skip
    save(
        "speed",
        {
            "documents": len(documents),
            "pairs": len(rows),
            "distinct_sentences": len(sentences),
            "floor_batch": size,
            "threads": torch.get_num_threads(),
            "floor_seconds": statistics.median((before + after) / 2 for before, _, after in measured),
            "ratios": ratios,
            "ratio": statistics.median(ratios),
            "lm": {"model": SMALL, "documents": WITH_LM, "seconds": both, "seconds_without": alone},
        },
    )


if __name__ == "__main__":
    main()

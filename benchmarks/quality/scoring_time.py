"""CPU seconds of scoring against the floor: the encoder's bare forward pass over the distinct sentences.

    MOVERS_DATA=… python benchmarks/quality/scoring_time.py

Documents of SummEval with the summaries of all 16 systems; floor and metric by turns. CPU seconds, not those of the
clock, so that other work on the machine counts less.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from quality_common import judged, save

sys.path.append(str(Path(__file__).parents[1] / "speed"))
from contenders import best_batch, encoder  # noqa: E402

from movers.quality.units import split_units  # noqa: E402
from movers.scorer import Scorer  # noqa: E402

DOCUMENTS, RUNS = 6, 3


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

    scorer = Scorer("reference_free_summary_quality", device="cpu", progress=False)

    def score() -> None:
        scorer.forget()
        scorer.score([row["candidate"] for row in rows], sources=[row["source"] for row in rows])

    score()  # loads the model, warms the allocator
    floor = encoder(sentences, best_batch(sentences))
    measured = [(cpu_seconds(floor), cpu_seconds(score), cpu_seconds(floor)) for _ in range(RUNS)]
    ratios = sorted(2 * ours / (before + after) for before, ours, after in measured)
    values = {
        "documents": len(documents),
        "pairs": len(rows),
        "distinct sentences": len(sentences),
        "threads": torch.get_num_threads(),
        "seconds of the encoder's forward pass": statistics.median((a + b) / 2 for a, _, b in measured),
        "seconds of scoring ÷ forward pass, median": statistics.median(ratios),
        "least": ratios[0],
        "most": ratios[-1],
    }
    save("scoring time", {name: {"value": value} for name, value in values.items()})


if __name__ == "__main__":
    main()

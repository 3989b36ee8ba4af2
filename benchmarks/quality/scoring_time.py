"""CPU seconds of scoring against the floor: the encoder's bare forward pass over the distinct sentences.

    MOVERS_DATA=… python benchmarks/quality/scoring_time.py

Documents of SummEval with the summaries of all 16 systems; floor and metric by turns. CPU seconds, not those of the
clock, so that other work on the machine counts less. With a language model, for fewer documents, its share of all.
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

from movers.quality.lm import SMALL  # noqa: E402
from movers.quality.units import split_units  # noqa: E402
from movers.scorer import Scorer  # noqa: E402

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

    scorers = {
        lm: Scorer("reference_free_summary_quality", device="cpu", progress=False, lm=lm) for lm in (None, SMALL)
    }

    def score(count: int = DOCUMENTS, lm: str | None = None) -> None:
        part = [row for row in rows if row["doc"] in documents[:count]]
        scorers[lm].forget()
        scorers[lm].score([row["candidate"] for row in part], sources=[row["source"] for row in part])

    score()  # loads the model, warms the allocator
    floor = encoder(sentences, best_batch(sentences))
    measured = [(cpu_seconds(floor), cpu_seconds(score), cpu_seconds(floor)) for _ in range(RUNS)]
    ratios = sorted(2 * ours / (before + after) for before, ours, after in measured)
    score(1, SMALL)
    with_lm, without = (cpu_seconds(lambda lm=lm: score(WITH_LM, lm)) for lm in (SMALL, None))  # type: ignore[misc]
    values = {
        "documents": len(documents),
        "pairs": len(rows),
        "distinct sentences": len(sentences),
        "threads": torch.get_num_threads(),
        "seconds of the encoder's forward pass": statistics.median((a + b) / 2 for a, _, b in measured),
        "seconds of scoring ÷ forward pass, median": statistics.median(ratios),
        "least": ratios[0],
        "most": ratios[-1],
        f"{WITH_LM} documents with lm={SMALL!r}, seconds": with_lm,
        f"{WITH_LM} documents without, seconds": without,
        "share of the language model": f"{1 - without / with_lm:.0%}",
    }
    save("scoring time", {name: {"value": value} for name, value in values.items()})


if __name__ == "__main__":
    main()

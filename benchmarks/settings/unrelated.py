"""What do unrelated texts score? ``python benchmarks/settings/unrelated.py``, with MOVERS_DATA.

The first words of the articles of SummEval, each against those of the next article: median, 5th and 95th percentile.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from common import judged, save_results  # noqa: E402

import movers  # noqa: E402

METRICS = (
    "wms", "sms", "swms", "moverscore", "moverscore[preset=short]", "bertscore_hungarian", "bertscore_emd",
)  # fmt: skip
LENGTHS = (2, 5, 25, 100)


def main() -> None:
    articles = list({row["doc"]: row["source"].split() for row in judged("summeval")}.values())
    for metric in METRICS:
        cells: dict[str, object] = {}
        for length in LENGTHS:
            texts = [" ".join(words[:length]) for words in articles if len(words) >= length]
            scores = movers.score_many([metric], texts, texts[1:] + texts[:1])[metric]["scores"]
            low, median, high = (f"{value:.2f}" for value in np.quantile(scores, [0.05, 0.5, 0.95]))
            name = f"{length} words"
            cells |= {name: median, f"{name}, 5 %": low, f"{name}, 95 %": high}
        save_results(HERE, "unrelated texts", {metric: cells})


if __name__ == "__main__":
    main()

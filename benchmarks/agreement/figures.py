"""Zhao et al. 2019, Figs. 2 and 3: ``python benchmarks/agreement/figures.py [--data FOLDER]``.

Draws ``figures/*.png`` from the scores in ``cells/figures.json``; with ``--data`` the scores are computed first. (Of
the paper's metrics BEER is missing, which has no package; chrF++ stands for it.)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from movers.agreement.plots import plot_metric_correlations, plot_score_distributions, write_figure
from movers.agreement.readers import read_file
from movers.agreement.scoring import MetricCall, score_judged
from movers.io import write_file

HERE = Path(__file__).parent
SCORES = HERE / "cells" / "figures.json"
CALLS = (
    MetricCall("SentBLEU", "bleu"),
    MetricCall("chrF++", "chrf", {"word_order": 2}),
    MetricCall("SentMover", "moverscore", {"n_gram": "sentence", "idf": "corpus"}),
    MetricCall("WordMover", "moverscore", {"idf": "corpus"}),
)
PAIRS = ("de-en", "zh-en")


def score(folder: Path) -> dict[str, Any]:
    """Human scores and every metric's, for a similar and a distant language pair."""
    found: dict[str, Any] = {"signatures": {}}
    for pair in PAIRS:
        judged = read_file(folder / "wmt17_seg_da_to_en.jsonl.gz").where(f"lp={pair}")
        scored = score_judged(judged, CALLS)
        found["signatures"] = {name: one.signature for name, one in scored.items()}
        columns = {"DA": judged.human("da_z"), **{name: one.scores for name, one in scored.items()}}
        found[pair] = {
            name: [None if value is None else round(value, 4) for value in column] for name, column in columns.items()
        }
    return found


def draw(scores: dict[str, Any], out: Path) -> list[Path]:
    """The pictures: distributions on German to English, correlations between metrics on both pairs."""
    out.mkdir(parents=True, exist_ok=True)
    figures = {}
    for pair in PAIRS:
        human, metrics = scores[pair]["DA"], {name: scores[pair][name] for name in scores[pair] if name != "DA"}
        title = f"WMT17, {pair}"
        if pair == PAIRS[0]:
            two = {name: metrics[name] for name in ("SentBLEU", "WordMover")}
            figures[f"zhao-figure-2-{pair}"] = plot_score_distributions(two, human, human_name="DA", title=title)
        figures[f"zhao-figure-3-{pair}"] = plot_metric_correlations(metrics, human, human_name="DA", title=title)
    return [write_figure(figure, out / f"{name}.png", dpi=80) for name, figure in figures.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw Figs. 2 and 3 of Zhao et al. 2019.")
    parser.add_argument("--data", type=Path, help="folder that holds wmt17_seg_da_to_en.jsonl.gz: score anew")
    arguments = parser.parse_args()
    if arguments.data is not None:
        write_file(SCORES, json.dumps(score(arguments.data)) + "\n")
    for path in draw(json.loads(SCORES.read_text(encoding="utf-8")), HERE / "figures"):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

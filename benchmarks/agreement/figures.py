"""Zhao et al. 2019, Figs. 2 and 3: ``python benchmarks/agreement/figures.py --data FOLDER`` draws ``figures/*.png``.

(Of the paper's metrics BEER is missing, which has no package; chrF++ stands for it.)
"""

from __future__ import annotations

import argparse
from pathlib import Path

from movers.agreement.judged import read_judged
from movers.agreement.plots import plot_metric_correlations, plot_score_distributions, write_figure
from movers.agreement.scoring import MetricCall, score_judged

CALLS = (
    MetricCall("SentBLEU", "bleu"),
    MetricCall("chrF++", "chrf", {"word_order": 2}),
    MetricCall("SentMover", "moverscore", {"n_gram": "sentence", "idf": "per-side"}),
    MetricCall("WordMover", "moverscore", {"idf": "per-side"}),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw Figs. 2 and 3 of Zhao et al. 2019.")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds wmt17_seg_da_to_en.jsonl.gz")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for pair in ("de-en", "zh-en"):  # a similar and a distant language pair
        judged = read_judged(arguments.data / "wmt17_seg_da_to_en.jsonl.gz", where=[f"lp={pair}"])
        metrics = {label: scored.scores for label, scored in score_judged(judged, CALLS).items()}
        human, title = judged.human("da_z"), f"WMT17, {pair}"
        figures = {"3": plot_metric_correlations(metrics, human, human_name="DA", coefficient="pearson", title=title)}
        if pair == "de-en":
            two = {name: metrics[name] for name in ("SentBLEU", "WordMover")}
            figures["2"] = plot_score_distributions(two, human, human_name="DA", title=title)
        for number, figure in figures.items():
            print(write_figure(figure, arguments.out / f"zhao-figure-{number}-{pair}.png", dpi=80))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

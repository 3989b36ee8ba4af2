"""Draw ``figures/*.png``: ``python benchmarks/agreement/figures.py [--data FOLDER]``.

Clark et al. 2019, Fig. 3, from ``results.csv``; with the judged sets in FOLDER also Zhao et al. 2019, Figs. 2 and 3 (of
whose metrics BEER is missing, which has no package; chrF++ stands for it).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from matplotlib.figure import Figure

from movers.agreement.judged import read_judged
from movers.agreement.plots import plot_metric_correlations, plot_score_distributions, write_figure
from movers.agreement.scoring import MetricCall, score_judged

sys.path.append(str(Path(__file__).parents[1]))  # what all benchmarks share

from common import read_rows  # noqa: E402
from pages import figures_of  # noqa: E402
from tables import TABLES  # noqa: E402

CALLS = (
    MetricCall("SentBLEU", "bleu"),
    MetricCall("chrF++", "chrf", {"word_order": 2}),
    MetricCall("SentMover", "moverscore", {"n_gram": "sentence", "idf": "per-side"}),
    MetricCall("WordMover", "moverscore", {"idf": "per-side"}),
)


def plot_clark() -> Figure:
    """Clark et al. 2019, Fig. 3: Table 2 as bars, with our intervals, and the paper's figures as dots."""
    table = TABLES["clark-table-2"]
    rows = {row.call.label: row for row in table.rows}
    ours = figures_of(read_rows(Path(__file__).parent), table.name)
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axis = figure.subplots()
    names = ("ROUGE-L", "WMS", "SMS", "S+WMS")
    for place, (kind, colour) in enumerate((("GloVe, as printed", "#0072B2"), ("contextual", "#D55E00"))):
        labels = ["ROUGE-L", *(f"{name}, {kind}" for name in names[1:])]
        at = [number + 0.4 * place - 0.2 for number in range(len(names))]
        value, low, high = (
            [float(ours[label]["overall"][part]) for label in labels] for part in ("value", "low", "high")
        )
        spread = [[v - a for v, a in zip(value, low, strict=True)], [b - v for v, b in zip(value, high, strict=True)]]
        axis.bar(at, value, 0.38, yerr=spread, color=colour, alpha=0.7, label=f"ours, {kind}", capsize=3)
        published = [rows[label].paper["overall"] for label in labels]
        name = "paper, GloVe" if place == 0 else "paper, ELMo"
        axis.plot(at, published, "oD"[place], color="black", markersize=5, label=name)
    axis.set_xticks(range(len(names)), names)
    axis.set_ylabel("Spearman")
    axis.set_title(f"{ours['ROUGE-L']['overall']['n']} machine summaries of news (Chaganty et al. 2018)", fontsize=10)
    axis.legend(fontsize=8, loc="upper left")
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw figures of Clark et al. 2019 and Zhao et al. 2019.")
    parser.add_argument("--data", type=Path, help="folder that holds wmt17_seg_da_to_en.jsonl.gz")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(write_figure(plot_clark(), arguments.out / "clark-figure-3.png", dpi=80))
    for pair in ("de-en", "zh-en") if arguments.data else ():  # a similar and a distant language pair
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

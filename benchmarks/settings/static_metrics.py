"""How much do stop words and the surface of numbers count? ``python benchmarks/settings/static_metrics.py``.

Scores the judged sets with `wms`, `sms` and `swms` for several masses of a stop word and several lengths of the
direction that marks a number, and chooses each leaving one set out: the value that is best in the mean over the other
sets is judged on the set left out. Needs MOVERS_DATA and ``make data``; every finished row is kept in ``results.csv``.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from common import judged, measured, read_results, save_results  # noqa: E402

import movers  # noqa: E402
from movers.agreement import correlation  # noqa: E402
from movers.scores import clark, words  # noqa: E402

# Name → file, human score, coefficient, group over which correlations are averaged.
SETS: dict[str, tuple[str, str, Any, str | None]] = {
    "Chaganty": ("chaganty18_cnndm", "overall", "spearman", None),
    "WMT17": ("wmt17_seg_da_to_en", "da_z", "pearson", "lp"),
    "WebNLG": ("webnlg2020_en", "correctness", "spearman", None),
    "SummEval": ("summeval", "relevance", "spearman", "doc"),
    "BAGEL": ("bagel", "informativeness", "spearman", None),
    "SQuALITY": ("squality_human_eval", "overall", "spearman", None),
    "STS-B": ("stsb", "similarity", "spearman", None),
}
METRICS = ("wms", "sms", "swms")
MASSES, LENGTHS = (0.0, 0.05, 0.1, 0.15, 0.2), (0.0, 0.3, 0.4, 0.5)
DEFAULT = clark.STOP_MASS, words.SURFACE


def rows_of(name: str) -> list[dict[str, Any]]:
    file, human, _, _ = SETS[name]
    rows = [row for row in judged(file) if row["scores"].get(human) is not None and row["references"]]
    if name == "Chaganty":
        rows = [row for row in rows if not row["is_reference"]]
    return [row for row in rows if row.get("split") in (None, "test")] if name == "STS-B" else rows


def agreement(metric: str, name: str, **options: object) -> float:
    """Correlation of a metric with people on one set, as in the tables of benchmarks/agreement."""
    _, human, coefficient, group = SETS[name]
    rows = rows_of(name)
    scores = getattr(movers, metric)([row["candidate"] for row in rows], [row["references"] for row in rows], **options)
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row[group] if group else None, []).append(number)
    values = [
        correlation([scores["scores"][n] for n in members], [rows[n]["scores"][human] for n in members], coefficient)
        for members in groups.values()
    ]
    return statistics.mean(abs(value) if group == "lp" else value for value in values if value is not None)


def measure(metric: str, mass: float, length: float, options: dict[str, object]) -> dict[str, float]:
    clark.STOP_MASS, clark.SURFACE, words.SURFACE = mass, length, length  # in a process of its own
    return {name: agreement(metric, name, **options) for name in SETS}


def choose(table: dict[str, dict[str, str]], values: tuple[float, ...], label: str) -> dict[str, dict[str, object]]:
    """For each set, the value that the other sets choose, in the mean over the three metrics, and what it gives."""

    def mean(value: float, names: list[str]) -> float:
        return statistics.mean(float(table[f"{m}, {label.format(value)}"][name]) for m in METRICS for name in names)

    rows: dict[str, dict[str, object]] = {}
    for name in SETS:
        best = max(values, key=lambda value: mean(value, [other for other in SETS if other != name]))
        rows[name] = {"chosen by the others": best} | {
            f"mean at {value:g}": f"{mean(value, [name]):.3f}" for value in values
        }
    every = list(SETS)
    rows["all"] = {"chosen by the others": max(values, key=lambda value: mean(value, every))}
    rows["all"] |= {f"mean at {value:g}": f"{mean(value, every):.4f}" for value in values}
    return rows


def main() -> None:
    stop, length = DEFAULT
    settings: list[tuple[str, float, float, dict[str, object]]] = []
    for metric in METRICS:
        settings += [(metric, mass, length, {}) for mass in MASSES] + [(metric, stop, other, {}) for other in LENGTHS]
        settings += [(metric, stop, length, {"preset": "paper"})]
    settings += [("wms", *DEFAULT, {"distance": "euclidean"}), ("sms", *DEFAULT, {"distance": "cosine"})]
    table = "stop words and numbers"
    for metric, mass, surface, options in settings:
        row = f"{metric}, stop words {mass:g}, numbers {surface:g}"
        if options:
            row = ", ".join([metric, *(f"{name}={value}" for name, value in options.items())])
        if row in measured(HERE, table):
            continue
        with multiprocessing.get_context("fork").Pool(1) as pool:
            values = pool.apply(measure, (metric, mass, surface, options))
        cells = {name: f"{value:.4f}" for name, value in values.items()}
        save_results(HERE, table, {row: cells | {"mean": f"{statistics.mean(values.values()):.4f}"}})
        print(row, cells, flush=True)
    results = read_results(HERE)[table]
    save_results(HERE, "mass of a stop word", choose(results, MASSES, f"stop words {{:g}}, numbers {length:g}"))
    save_results(HERE, "direction of a number", choose(results, LENGTHS, f"stop words {stop:g}, numbers {{:g}}"))


if __name__ == "__main__":
    main()

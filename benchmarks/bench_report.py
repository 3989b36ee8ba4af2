"""`results/bench.md` and `results/bench_growth.png` from what `bench.py` has measured."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from movers.io import write_file

Repeat = dict[str, dict[str, float]]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median, and from least to most."""
    median, least, most = statistics.median(values), min(values), max(values)
    return f"{median:,.{digits}f} ({least:,.{digits}f} to {most:,.{digits}f})"


def read(folder: Path, part: str) -> dict[str, Any] | None:
    path = folder / f"bench_{part}.json"
    return json.loads(path.read_text()) if path.exists() else None


def write_report(folder: Path) -> None:
    """Write the report from the parts that have been measured."""
    lines = ["# Speed against other packages, and growth of time and memory", ""]
    note = "Median (minimum to maximum) over repetitions; 'wanted' is the target."
    lines += [f"Written by `make bench`, see [bench.py](../bench.py). {note}", ""]
    for part, describe in (("wms", wms_lines), ("contextual", contextual_lines), ("growth", growth_lines)):
        found = read(folder, part)
        if found is not None and (found["repeats"] or found["points"]):
            load = ", ".join(f"{value:.1f}" for value in found["load"])
            lines += [
                f"## {part}",
                "",
                f"{found['machine']}; load of the machine (1, 5, 15 min) at the end: {load}.",
                "",
            ]
            lines += [*describe(found), ""]
            if part == "growth":
                draw_growth(found, folder / "bench_growth.png")
                lines += ["![time and memory against pairs](bench_growth.png)", ""]
    write_file(folder / "bench.md", "\n".join(lines).rstrip() + "\n")
    print(folder / "bench.md")


def contender_table(found: dict[str, Any], names: Sequence[str]) -> list[str]:
    rows = ["| implementation | µs per pair | CPU µs per pair |", "|---|--:|--:|"]
    for name in names:
        cells = (spread([one[name][kind] for one in found["repeats"]], 0) for kind in ("wall", "cpu"))
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def ratio_table(found: dict[str, Any], rows: Sequence[tuple[str, str, Callable[[Repeat, str], float]]]) -> list[str]:
    """Rows of a name, what is wanted, and the ratio by wall-clock or processor time within a repeat."""
    lines = ["| ratio | wall clock | CPU time | wanted |", "|---|--:|--:|--:|"]
    for name, wanted, ratio in rows:
        cells = (spread([ratio(one, kind) for one in found["repeats"]]) for kind in ("wall", "cpu"))
        lines.append(f"| {name} | {' | '.join(cells)} | {wanted} |")
    return lines


def over(first: str, second: str) -> Callable[[Repeat, str], float]:
    return lambda one, kind: one[first][kind] / one[second][kind]


def wms_lines(found: dict[str, Any]) -> list[str]:
    pairs = found["settings"]["pairs"]
    first, second = found["units"]

    def started(one: Repeat, kind: str = "wall") -> float:
        return one["128 pairs, 2 workers"][kind] - one["128 pairs, 1 thread"][kind]

    def workers(one: Repeat, kind: str) -> float:
        return one["wms, 2 workers"][kind] - started(one, kind) / pairs

    def one_core(one: Repeat, kind: str) -> float:
        return one["wms, 1 process, 1 thread"][kind] / (
            workers(one, kind) if kind == "wall" else workers(one, kind) / 2
        )

    names = [name for name in found["repeats"][0] if not name.startswith("128")]
    return [
        f"{pairs:,} pairs of news summaries (those of Chaganty et al. 2018 with one sentence of each text exchanged), "
        f"{first:.0f} × {second:.0f} word types on average, from text; the kernel solves the first 10,000 of these "
        "problems, gensim and POT the first 2,000, on ready tokens and ready costs. Two workers take "
        f"{spread([started(one) / 1e6 for one in found['repeats']])} s to start and end, which is not counted below. "
        f"Largest difference between our distances and gensim's: {found['difference']:.0e}.",
        "",
        *contender_table(found, names),
        "",
        *ratio_table(
            found,
            [
                ("gensim ÷ wms, 2 threads", "≥ 5", over("gensim wmdistance", "wms, 1 process, 2 threads")),
                (
                    "gensim ÷ wms, 2 workers",
                    "≥ 5",
                    lambda one, kind: one["gensim wmdistance"][kind] / workers(one, kind),
                ),
                (
                    "wms, 2 workers ÷ kernel, 2 threads",
                    "≤ 3",
                    lambda one, kind: workers(one, kind) / one["kernel, 2 threads"][kind],
                ),
                ("wms, 1 process ÷ 2 workers (processor time: × 2)", "≥ 1.8", one_core),
                ("ot.emd2 ÷ kernel, 1 thread", "", over("ot.emd2, ready costs", "kernel, 1 thread")),
            ],
        ),
    ]


def contextual_lines(found: dict[str, Any]) -> list[str]:
    names = list(found["repeats"][0])
    ours = [name for name in names if name.startswith(("mover", "bertscore_"))]
    rows = [(f"{name} ÷ encoder alone", "≤ 1.10", over(name, "encoder alone")) for name in ours]
    rows += [(f"bert-score ÷ {name}", "≥ 1.35", over("bert-score", name)) for name in ours]
    rows += [(f"torchmetrics ÷ {name}", "", over("torchmetrics BERTScore", name)) for name in ours]
    return [
        f"{found['settings']['pairs']:,} pairs of WMT17, all-MiniLM-L6-v2, float32, nothing in the cache, exact "
        "transport included. The floor is the forward pass alone over the distinct texts, tokenized and sorted by "
        f"length, {found['batch']} at a time (the fastest of 8, 16, 32 and 64).",
        "",
        *contender_table(found, names),
        "",
        *ratio_table(found, rows),
    ]


def growth_points(found: dict[str, Any], metric: str) -> list[tuple[int, float, float]]:
    """Pairs, seconds without start-up, MiB."""
    points = {int(label.split()[1]): one for label, one in found["points"].items() if label.split()[0] == metric}
    start = points.pop(2)["seconds"]
    return [(count, one["seconds"] - start, one["mib"]) for count, one in sorted(points.items())]


def growth_lines(found: dict[str, Any]) -> list[str]:
    words = found["settings"]["words"]
    lines = [
        f"`movers score` from file to file on texts of made-up words, distinct: {words['wms']} words for `wms` (two "
        f"workers), {words['moverscore']} for `moverscore` (all-MiniLM-L6-v2). Seconds without start-up (what two "
        "pairs take); memory is the peak of the sum over the process tree, shared pages once.",
        "",
        "| metric | pairs | seconds | pairs per second | MiB |",
        "|---|--:|--:|--:|--:|",
    ]
    checks = ["", "| metric | from 10,000 to | rate | wanted | memory | wanted |", "|---|--:|--:|--:|--:|--:|"]
    for metric in words:
        if f"{metric} 2" not in found["points"]:
            continue
        points = {count: (count / took, mib) for count, took, mib in growth_points(found, metric)}
        for count, took, mib in growth_points(found, metric):
            lines.append(f"| {metric} | {count:,} | {took:,.1f} | {count / took:,.0f} | {mib:,.0f} |")
        last = max(points)
        if 10_000 in points and last > 10_000:
            rate, memory = (points[last][place] / points[10_000][place] for place in (0, 1))
            checks.append(f"| {metric} | {last:,} | × {rate:.2f} | 0.90 to 1.10 | × {memory:.2f} | ≤ 1.2 |")
    return [*lines, *(checks if len(checks) > 3 else [])]


def draw_growth(found: dict[str, Any], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for metric, style in (("wms", "o-"), ("moverscore", "s--")):
        if f"{metric} 2" not in found["points"]:
            continue
        counts, times, memory = zip(*growth_points(found, metric), strict=True)
        left.loglog(counts, times, style, label=metric)
        right.semilogx(counts, memory, style, label=metric)
    left.set(xlabel="pairs", ylabel="seconds, start-up excluded", title="time")
    right.set(xlabel="pairs", ylabel="MiB, whole process tree", title="peak memory")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(target, dpi=110)
    plt.close(figure)

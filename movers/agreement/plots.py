"""Plots: score distributions of bad and good texts, and heat maps of the correlations between metrics."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from movers.agreement.coefficients import COEFFICIENT_TITLES, Coefficient, Outcome, Scores, coefficients_of, stack
from movers.errors import import_extra
from movers.io import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAD, _GOOD = "#D55E00", "#0072B2"  # of Okabe and Ito's colour-blind-safe palette


def _panels(count: int, width: float, height: float, title: str) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side."""
    figures = import_extra("matplotlib.figure", "plots", "plots need the package matplotlib")
    figure = figures.Figure(figsize=(width * count, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0].tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    return figure, axes


def plot_score_distributions(
    metrics: Mapping[str, Scores], human: Scores, *, human_name: str, lower_is_better: bool = False, title: str = ""
) -> Figure:
    """Distribution of each metric's scores for texts judged bad and good (Zhao et al. 2019, Fig. 2).

    Bad and good are the worst and the best quarter of texts by human score, with ties; the labels give the bounds. The
    less the two distributions overlap, the better the metric separates them.
    """
    figure, axes = _panels(len(metrics), 3.0, 3.2, title)
    people, *columns = stack({"human": human, **metrics})
    for axis, name, scores in zip(axes, metrics, columns, strict=True):
        complete = ~np.isnan(people + scores)
        judged, shown = people[complete], scores[complete]
        low, high = np.quantile(judged, [0.25, 0.75]) if len(judged) else (math.nan, math.nan)
        parts = [(f"≤ {low:.3g}", shown[judged <= low]), (f"≥ {high:.3g}", shown[judged >= high])]
        bad, good = reversed(parts) if lower_is_better else parts
        for place, (colour, (_, values)) in enumerate(((_BAD, bad), (_GOOD, good))):
            scatter = np.random.default_rng(0).uniform(-0.12, 0.12, size=len(values))
            axis.scatter(place + scatter, values, s=4, color=colour, alpha=0.3, linewidths=0)
            if len(values) > 2 and np.ptp(values) > 0:
                violin: Any = axis.violinplot([values], [place], widths=0.85, showmedians=True, showextrema=False)
                violin["bodies"][0].set(facecolor=colour, alpha=0.35)
        labels = [f"{word}: {bound}\nn = {len(values)}" for word, (bound, values) in (("bad", bad), ("good", good))]
        axis.set_xticks([0, 1], labels, fontsize=9)
        axis.set_xlim(-0.6, 1.6)
        axis.set_title(name, fontsize=10)
    figure.supxlabel(f"texts by {human_name}: worst (bad) and best (good) quarter", fontsize=10)
    figure.supylabel("metric score", fontsize=10)
    return figure


def plot_metric_correlations(
    metrics: Mapping[str, Scores], human: Scores, *, human_name: str, coefficient: Coefficient, title: str = ""
) -> Figure:
    """Heat map of the correlations between metrics, and of each with human scores (Zhao et al. 2019, Fig. 3).

    The framed first row is the correlation with human scores; the rest shows how similar the metrics are. Only texts
    that have all scores are used.
    """
    names = [human_name, *metrics]
    columns = stack({human_name: human, **metrics})
    columns = columns[:, ~np.isnan(columns).any(axis=0)]
    matrix = np.array([coefficients_of(columns, np.broadcast_to(x, columns.shape), coefficient) for x in columns])
    size = 1.8 + 0.62 * len(names)
    figure, (axis,) = _panels(1, size + 0.6, size, title)
    from matplotlib.patches import Rectangle

    shown = np.ma.masked_array(matrix, mask=np.tril(np.ones_like(matrix, dtype=bool), -1) | np.isnan(matrix))
    lowest = -1 if (matrix < 0).any() else 0
    image = axis.imshow(shown, cmap="RdBu" if lowest else "Blues", vmin=lowest, vmax=1)
    for row, column in combinations_with_replacement(range(len(names)), 2):
        value = matrix[row, column]
        text, colour = ("–" if math.isnan(value) else f"{value:.2f}"), "white" if abs(value) > 0.6 else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axis.add_patch(Rectangle((-0.5, -0.5), len(names), 1, fill=False, edgecolor=_BAD, linewidth=2, clip_on=False))
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, shrink=0.7, label=f"{COEFFICIENT_TITLES[coefficient]} over texts")
    return figure


def plot_systems(rows: Sequence[Outcome]) -> Figure:
    """Mean scores of systems with their intervals, by metric, best first; lines separate groups of systems.

    ``rows`` are those of :func:`movers.agreement.compare_texts`.
    """
    systems: dict[str, dict[str, tuple[float, ...]]] = {}
    for row in rows:
        for side in "ab":
            fields = f"mean_{side}", f"mean_{side}_low", f"mean_{side}_high", f"group_{side}"
            systems.setdefault(row["metric"], {})[row[side]] = tuple(row[name] for name in fields)
    most = max(map(len, systems.values()))
    figure, axes = _panels(len(systems), 4.2, 1.4 + 0.32 * most, f"means with {rows[0]['confidence']:.0%} intervals")
    for axis, (metric, values) in zip(axes, systems.items(), strict=True):
        names = sorted(values, key=lambda name: -values[name][0])
        means, lows, highs, groups = np.array([values[name] for name in names]).T
        axis.errorbar(means, range(len(names)), xerr=[means - lows, highs - means], fmt="o", color=_GOOD, capsize=3)
        for place in np.flatnonzero(np.diff(groups)):
            axis.axhline(place + 0.5, color="grey", linewidth=0.8, linestyle="--")
        axis.set_yticks(range(len(names)), [name[-32:] for name in names], fontsize=8, parse_math=False)
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.set_title(metric, fontsize=10, parse_math=False)
    figure.supxlabel("dashed: every system above is significantly better than every system below", fontsize=8)
    return figure


def save_plots(
    folder: str | Path,
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    lower_is_better: Collection[str] = (),
    coefficient: Coefficient,
    title: str,
) -> list[Path]:
    """Write ``distribution_<name>.png`` and ``metrics_<name>.png`` for each human score."""
    paths = []
    for name, human in humans.items():
        shared: dict[str, Any] = {"human_name": name, "title": f"{title}: {name}"}
        figures = {
            "distribution": plot_score_distributions(metrics, human, lower_is_better=name in lower_is_better, **shared),
            "metrics": plot_metric_correlations(metrics, human, coefficient=coefficient, **shared),
        }
        safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in name)
        paths += [write_figure(figure, Path(folder) / f"{kind}_{safe}.png") for kind, figure in figures.items()]
    return paths


def write_figure(figure: Figure, path: Path, dpi: int = 150) -> Path:
    """Write a figure in the format that the suffix names, atomically."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format=path.suffix.removeprefix(".").lower() or "png")
    write_file(path, picture.getvalue())
    return path

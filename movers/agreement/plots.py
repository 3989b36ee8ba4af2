"""Plots: score distributions, correlation heat maps, bars with intervals, system rankings.

Every function returns a matplotlib ``Figure`` (no global state, no window); `save_plots` writes them all. matplotlib is
part of the extra ``plots`` and imported only when something is drawn.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from movers.agreement.coefficients import coefficient_of, correlation_matrix
from movers.agreement.columns import (
    COEFFICIENT_TITLES,
    Coefficient,
    Floats,
    Scores,
    check_labels,
    rows_of_each,
    stack,
    take,
)
from movers.agreement.table import AgreementRow
from movers.errors import InputError
from movers.io import write_file

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "plot_correlation_bars",
    "plot_metric_correlations",
    "plot_score_distributions",
    "plot_system_ranking",
    "save_plots",
    "write_figure",
]

# Okabe and Ito's colour-blind-safe palette.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_BAD, _GOOD = "#D55E00", "#0072B2"


def _panels(count: int, width: float, height: float, title: str) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, at most four per row; surplus panels are hidden."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(f"plots: expected the package matplotlib (extra `plots`), but got: {error}") from error
    rows = math.ceil(count / 4)
    columns = math.ceil(count / rows)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for place, axis in enumerate(axes):
        axis.set_visible(place < count)
        axis.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure, axes[:count]


def plot_score_distributions(
    metrics: Mapping[str, Scores],
    human: Scores,
    *,
    human_name: str = "human score",
    lower_is_better: bool = False,
    share: float = 0.25,
    title: str = "",
) -> Figure:
    """Distribution of each metric's scores for texts judged bad and good (Zhao et al. 2019, Fig. 2).

    Bad and good are the worst and the best ``share`` of texts by human score, with ties; the labels give the bounds.
    The less the two distributions overlap, the better the metric separates them.
    """
    if not 0 < share <= 0.5:
        raise InputError(f"plots: share: expected a number above 0 and at most 0.5, but got {share}")
    figure, axes = _panels(len(metrics), 3.0, 3.2, title)
    people, *columns = stack({"human": human, **metrics})
    for axis, (name, scores) in zip(axes, zip(metrics, columns, strict=True), strict=True):
        complete = ~np.isnan(people + scores)
        own, shown = people[complete], scores[complete]
        low, high = np.quantile(own, [share, 1 - share]) if len(own) else (math.nan, math.nan)
        lowest, highest = (f"≤ {low:.3g}", shown[own <= low]), (f"≥ {high:.3g}", shown[own >= high])
        parts = {"bad": highest, "good": lowest} if lower_is_better else {"bad": lowest, "good": highest}
        for place, (colour, (_, values)) in enumerate(zip((_BAD, _GOOD), parts.values(), strict=True)):
            _draw_distribution(axis, place, values, colour)
        axis.set_xticks([0, 1], [f"{word}: {bound}\nn = {len(values)}" for word, (bound, values) in parts.items()])
        axis.tick_params(axis="x", labelsize=9)
        axis.set_xlim(-0.6, 1.6)
        axis.set_title(name, fontsize=10)
    figure.supxlabel(f"texts by {human_name}: worst (bad) and best (good) {share:.0%}", fontsize=10)
    figure.supylabel("metric score", fontsize=10)
    return figure


def _draw_distribution(axis: Axes, place: int, values: Floats, colour: str) -> None:
    """A violin plot with quartiles and, below it, the individual texts."""
    if not len(values):
        return
    scatter = np.random.default_rng(0).uniform(-0.12, 0.12, size=len(values))
    axis.scatter(place + scatter, values, s=4, color=colour, alpha=min(0.5, 60 / len(values)), linewidths=0)
    if len(values) > 2 and values.min() < values.max():
        drawn = axis.violinplot([values], [place], widths=0.85, showextrema=False)
        for body in cast("list[Artist]", drawn["bodies"]):
            body.set(facecolor=colour, alpha=0.35)
    quarter, median, three_quarters = np.quantile(values, [0.25, 0.5, 0.75])
    axis.vlines(place, quarter, three_quarters, color="black", linewidth=4)
    axis.scatter([place], [median], s=14, color="white", edgecolor="black", zorder=3)


def plot_metric_correlations(
    metrics: Mapping[str, Scores],
    human: Scores,
    *,
    human_name: str = "people",
    coefficient: Coefficient = "pearson",
    title: str = "",
) -> Figure:
    """Heat map of the correlations between metrics, and of each with human scores (Zhao et al. 2019, Fig. 3).

    The framed first row is the correlation with human scores; the rest shows how similar the metrics are.
    """
    names, matrix = correlation_matrix({human_name: human, **metrics}, coefficient)
    size = 1.8 + 0.62 * len(names)
    figure, (axis,) = _panels(1, size + 0.6, size, title)
    from matplotlib.patches import Rectangle

    shown = np.ma.masked_array(matrix, mask=np.tril(np.ones_like(matrix, dtype=bool), -1) | np.isnan(matrix))
    negative = bool((matrix < 0).any())
    image = axis.imshow(shown, cmap="RdBu" if negative else "Blues", vmin=-1 if negative else 0, vmax=1)
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


def plot_correlation_bars(
    rows: Sequence[AgreementRow], *, coefficient: Coefficient = "spearman", title: str = ""
) -> Figure:
    """Bar chart of the correlations with human scores, with confidence intervals (Clark et al. 2019, Fig. 3).

    Bars are clustered by group and human score, one colour per metric. Undefined coefficients leave a gap.
    """
    if not rows:
        raise InputError("plots: rows: expected at least one row of a table, but got none")
    metrics = list(dict.fromkeys(row.metric for row in rows))
    clusters = list(dict.fromkeys((row.group, row.human) for row in rows))
    figure, (axis,) = _panels(1, max(4.5, 1.6 + 0.32 * len(clusters) * (len(metrics) + 1)), 3.4, title)
    width = 0.8 / len(metrics)
    named: set[str] = set()
    for row in rows:
        found = row.coefficients[coefficient]
        if math.isnan(found.value):
            continue
        number = metrics.index(row.metric)
        x = clusters.index((row.group, row.human)) + (number - (len(metrics) - 1) / 2) * width
        label = None if row.metric in named else row.metric
        axis.bar(x, found.value, width * 0.92, color=_COLOURS[number % len(_COLOURS)], label=label)
        named.add(row.metric)
        if not math.isnan(found.low):
            axis.vlines(x, found.low, found.high, color="black", linewidth=1.2)
    # Cluster labels contain only what differs between clusters.
    several = [len(set(parts)) > 1 for parts in zip(*clusters, strict=True)]
    labels = ["\n".join(part for part, shown in zip(pair, several, strict=True) if shown) for pair in clusters]
    axis.set_xticks(range(len(clusters)), [label or clusters[0][1] for label in labels], fontsize=8)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_ylabel(f"{COEFFICIENT_TITLES[coefficient]} ({rows[0].level} level), {rows[0].confidence:.0%} interval")
    if named:
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def plot_system_ranking(
    metrics: Mapping[str, Scores],
    human: Scores,
    systems: Sequence[str],
    *,
    human_name: str = "people",
    lower_is_better: bool = False,
    title: str = "",
) -> Figure:
    """Mean score against mean human score of each system, one panel per metric, with the correlation as title.

    Systems are numbered by human score, best first, with a legend beside the panels; above thirty systems the dots are
    not numbered.
    """
    people, *columns = stack({"human": human, **metrics})
    check_labels("systems", systems, len(people))
    sign = -1 if lower_is_better else 1
    means = _system_means(people[None], systems)
    ranked = sorted(means, key=lambda system: -sign * means[system][0])
    numbered = len(ranked) <= 30
    figure, axes = _panels(len(metrics), 3.3, 3.4, title)
    for axis, (name, scores) in zip(axes, zip(metrics, columns, strict=True), strict=True):
        points = _system_means(np.stack([people, scores]), systems)
        for system, (x, y) in points.items():
            axis.scatter([x], [y], s=110 if numbered else 16, color=_GOOD, alpha=0.75, linewidths=0)
            if numbered:
                number = str(ranked.index(system) + 1)
                axis.text(x, y, number, color="white", fontsize=6.5, ha="center", va="center_baseline")
        x, y = np.array([*points.values()]).reshape(-1, 2).T
        pearson, kendall = coefficient_of(y, sign * x, "pearson"), coefficient_of(y, sign * x, "kendall")
        axis.set_title(f"{name}\nPearson {pearson:.2f}, Kendall {kendall:.2f}", fontsize=9)
        axis.margins(0.12)
    if numbered:
        from matplotlib.lines import Line2D

        figure.legend(
            [Line2D([], [], linestyle="none")] * len(ranked),
            [f"{number}  {system}" for number, system in enumerate(ranked, start=1)],
            loc="outside right upper",
            fontsize=7,
            frameon=False,
            handlelength=0,
        )
    direction = ", lower is better" if lower_is_better else ""
    figure.supxlabel(f"mean human score ({human_name}{direction})", fontsize=10)
    figure.supylabel("mean metric score", fontsize=10)
    return figure


def _system_means(columns: Floats, systems: Sequence[str]) -> dict[str, Floats]:
    """Means of columns (k, texts) per system, over its texts that have all k values."""
    complete = np.flatnonzero(~np.isnan(columns).any(axis=0))
    rows_of_system = rows_of_each(take(systems, complete))
    return {system: columns[:, complete[rows]].mean(axis=1) for system, rows in rows_of_system.items()}


def save_plots(
    folder: str | Path,
    rows: Sequence[AgreementRow],
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    systems: Sequence[str] | None = None,
    coefficient: Coefficient = "spearman",
    title: str = "",
) -> list[Path]:
    """Draw all plots that the data allow and write them as PNG files.

    ``rows`` are the result of :func:`movers.agreement.agreement_table`, ``metrics``, ``humans`` and ``systems`` its
    inputs; without ``systems`` there is no system ranking. The files are ``correlation.png``, and for each human
    score ``distribution_<name>.png``, ``metrics_<name>.png`` and ``systems_<name>.png``.
    """
    figures = {"correlation": plot_correlation_bars(rows, coefficient=coefficient, title=title)}
    lower_is_better = {row.human for row in rows if row.lower_is_better}
    for name, human in humans.items():
        safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in name)
        heading = f"{title}: {name}" if title else name
        lower = name in lower_is_better
        figures[f"distribution_{safe}"] = plot_score_distributions(
            metrics, human, human_name=name, lower_is_better=lower, title=heading
        )
        figures[f"metrics_{safe}"] = plot_metric_correlations(
            metrics, human, human_name=name, coefficient=coefficient, title=heading
        )
        if systems is not None and len(set(systems)) > 2:
            figures[f"systems_{safe}"] = plot_system_ranking(
                metrics, human, systems, human_name=name, lower_is_better=lower, title=heading
            )
    make_folder(folder)
    return [write_figure(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]


def make_folder(folder: str | Path) -> None:
    """A folder for plots; an error if there can be none."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"plots: {folder}: cannot make this folder: {error.strerror}") from None


def write_figure(figure: Figure, path: Path, dpi: int = 150) -> Path:
    """Write a figure as PNG, atomically."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi)
    write_file(path, picture.getvalue())
    return path

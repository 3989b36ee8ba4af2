"""The pictures that papers on metrics draw: distributions, heat maps, bars with intervals, system rankings.

Every function returns a matplotlib ``Figure`` of its own (no global state, no window); `save_plots` writes them all.
matplotlib comes with the extra ``plots`` and is imported only when a picture is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from movers.agreement.coefficients import correlation_matrix
from movers.agreement.columns import Coefficient, Floats, Score, as_floats, check_lengths, rows_of_each
from movers.agreement.levels import correlate
from movers.agreement.table import AgreementRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "plot_correlation_bars",
    "plot_metric_correlations",
    "plot_score_distributions",
    "plot_system_ranking",
    "save_plots",
]

# Okabe and Ito's palette, told apart by colour-blind readers.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_BAD, _GOOD = "#D55E00", "#0072B2"
_NAMES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b", "kendall_c": "Kendall τ-c"}


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "movers[plots]".') from error
    return Figure(figsize=(width, height), layout="constrained")


def _panels(count: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure with one panel a metric, at most four in a row; panels left over are hidden."""
    rows = math.ceil(count / 4)
    columns = math.ceil(count / rows)
    figure = _figure(width * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def _bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)


def plot_score_distributions(
    metrics: Mapping[str, Sequence[Score]], human: Sequence[Score], *, share: float = 0.25, title: str = ""
) -> Figure:
    """How each metric scores the texts that people find bad and good (Zhao et al. 2019, Fig. 2).

    Bad and good are the lowest and the highest ``share`` of people's scores. A metric that tells them apart has two
    shapes that hardly overlap.

    Parameters
    ----------
    metrics : mapping of str to sequence of float or None, each of shape (n,)
    human : sequence of float or None, shape (n,)
    """
    if not 0 < share <= 0.5:
        raise ValueError(f"`share` must lie above 0 and be at most 0.5; got {share}.")
    figure, axes = _panels(len(metrics), 2.7, 3.0)
    for axis, (name, scores) in zip(axes, metrics.items(), strict=True):
        check_lengths(human=human, **{name: scores})
        columns = np.stack([as_floats(human, "human"), as_floats(scores, name)])
        columns = columns[:, ~np.isnan(columns).any(axis=0)]
        low, high = np.quantile(columns[0], [share, 1 - share]) if columns.size else (math.nan, math.nan)
        parts = [columns[1, columns[0] <= low], columns[1, columns[0] >= high]]
        for place, (values, colour) in enumerate(zip(parts, (_BAD, _GOOD), strict=True)):
            _shape(axis, place, values, colour)
        axis.set_xticks([0, 1], [f"bad\n(n = {len(parts[0])})", f"good\n(n = {len(parts[1])})"])
        axis.set_xlim(-0.6, 1.6)
        axis.set_title(name, fontsize=10)
        _bare(axis)
    figure.supxlabel("people's judgement", fontsize=10)
    figure.supylabel("score", fontsize=10)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _shape(axis: Any, place: int, values: Floats, colour: str) -> None:
    """A violin with its quartiles and, under it, the texts themselves."""
    if not len(values):
        return
    scatter = np.random.default_rng(0).uniform(-0.12, 0.12, size=len(values))
    axis.scatter(place + scatter, values, s=4, color=colour, alpha=min(0.5, 60 / len(values)), linewidths=0)
    if len(values) > 2 and values.min() < values.max():
        for body in axis.violinplot([values], [place], widths=0.85, showextrema=False)["bodies"]:
            body.set_facecolor(colour)
            body.set_alpha(0.35)
    quarter, median, three_quarters = np.quantile(values, [0.25, 0.5, 0.75])
    axis.vlines(place, quarter, three_quarters, color="black", linewidth=4)
    axis.scatter([place], [median], s=14, color="white", edgecolor="black", zorder=3)


def plot_metric_correlations(
    metrics: Mapping[str, Sequence[Score]],
    human: Sequence[Score],
    *,
    human_name: str = "people",
    coefficient: Coefficient = "pearson",
    title: str = "",
) -> Figure:
    """Correlation between every two metrics, and of each with people, in one heat map (Zhao et al. 2019, Fig. 3).

    The framed first row is the correlation with people; the rest shows which metrics measure much the same.
    """
    from matplotlib.patches import Rectangle

    names, matrix = correlation_matrix({human_name: human, **metrics}, coefficient)
    size = 1.8 + 0.62 * len(names)
    figure = _figure(size + 0.6, size)
    axis = figure.subplots()
    shown = np.ma.masked_array(matrix, mask=np.tril(np.ones_like(matrix, dtype=bool), -1) | np.isnan(matrix))
    lowest = min(0.0, float(np.nanmin(matrix)))
    image = axis.imshow(shown, cmap="Blues" if lowest >= 0 else "RdBu", vmin=-1 if lowest < 0 else 0, vmax=1)
    for row in range(len(names)):
        for column in range(row, len(names)):
            value = matrix[row, column]
            dark = abs(value) > 0.6
            text = "–" if math.isnan(value) else f"{value:.2f}"
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axis.add_patch(Rectangle((-0.5, -0.5), len(names), 1, fill=False, edgecolor=_BAD, linewidth=2, clip_on=False))
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, shrink=0.7, label=_NAMES[coefficient])
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def plot_correlation_bars(
    rows: Sequence[AgreementRow], *, coefficient: Coefficient = "spearman", title: str = ""
) -> Figure:
    """Each metric's correlation with people as a bar with its confidence interval (Clark et al. 2019, Fig. 3).

    Bars stand together by group and human score, one colour a metric. Undefined coefficients leave a gap.
    """
    if not rows:
        raise ValueError("`rows` must hold at least one row of a table; got none.")
    metrics = list(dict.fromkeys(row.metric for row in rows))
    clusters = list(dict.fromkeys((row.human, row.group) for row in rows))
    found = {(row.human, row.group, row.metric): row for row in rows}
    figure = _figure(max(4.5, 1.6 + 0.32 * len(clusters) * (len(metrics) + 1)), 3.4)
    axis = figure.subplots()
    width = 0.8 / len(metrics)
    for number, metric in enumerate(metrics):
        colour = _COLOURS[number % len(_COLOURS)]
        for place, cluster in enumerate(clusters):
            row = found.get((*cluster, metric))
            value = None if row is None else getattr(row, coefficient)
            if value is None:
                continue
            x = place + (number - (len(metrics) - 1) / 2) * width
            axis.bar(x, value, width * 0.92, color=colour, label=metric if place == 0 else None)
            low, high = (getattr(row, coefficient + suffix) for suffix in ("_low", "_high"))
            if low is not None:
                axis.vlines(x, low, high, color="black", linewidth=1.2)
    several_humans = len({human for human, _ in clusters}) > 1
    several_groups = len({group for _, group in clusters}) > 1
    labels = [
        "\n".join(part for part, shown in ((group, several_groups), (human, several_humans)) if shown) or human
        for human, group in clusters
    ]
    axis.set_xticks(range(len(clusters)), labels, fontsize=8)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_ylabel(f"{_NAMES[coefficient]}, {rows[0].confidence:.0%} interval")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    _bare(axis)
    if title:
        axis.set_title(title, fontsize=11)
    return figure


def plot_system_ranking(
    metrics: Mapping[str, Sequence[Score]],
    human: Sequence[Score],
    systems: Sequence[str],
    *,
    human_name: str = "people",
    title: str = "",
) -> Figure:
    """Each system's mean score against its mean human score, one panel a metric; above it, how well the ranks agree.

    Systems are numbered by their human score, the best one 1; the names stand beside the panels. More systems than
    thirty are dots without numbers.
    """
    from matplotlib.lines import Line2D

    human_column = as_floats(human, "human")
    rows_of_system = {
        system: rows for system, rows in rows_of_each(systems).items() if not np.isnan(human_column[rows]).all()
    }
    ranked = sorted(rows_of_system, key=lambda system: -float(np.nanmean(human_column[rows_of_system[system]])))
    numbered = len(ranked) <= 30
    figure, axes = _panels(len(metrics), 3.3, 3.4)
    for axis, (name, scores) in zip(axes, metrics.items(), strict=True):
        check_lengths(human=human, systems=systems, **{name: scores})
        columns = np.stack([human_column, as_floats(scores, name)])
        for number, system in enumerate(ranked, start=1):
            own = columns[:, rows_of_system[system]]
            own = own[:, ~np.isnan(own).any(axis=0)]
            if own.shape[1]:
                x, y = own.mean(axis=1)
                axis.scatter([x], [y], s=110 if numbered else 16, color=_GOOD, alpha=0.75, linewidths=0)
                if numbered:
                    axis.text(x, y, str(number), color="white", fontsize=6.5, ha="center", va="center_baseline")
        found = correlate(scores, human, level="system", systems=systems, n_resamples=1).coefficients
        axis.set_title(
            f"{name}\nPearson {found['pearson'].value:.2f}, Kendall {found['kendall'].value:.2f}", fontsize=9
        )
        axis.margins(0.12)
        _bare(axis)
    if numbered:
        names = [f"{number}  {system}" for number, system in enumerate(ranked, start=1)]
        figure.legend(
            [Line2D([], [], linestyle="none")] * len(names),
            names,
            loc="outside right upper",
            fontsize=7,
            frameon=False,
            handlelength=0,
        )
    figure.supxlabel(f"mean human score ({human_name})", fontsize=10)
    figure.supylabel("mean metric score", fontsize=10)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def save_plots(
    folder: str | Path,
    rows: Sequence[AgreementRow],
    metrics: Mapping[str, Sequence[Score]],
    humans: Mapping[str, Sequence[Score]],
    *,
    systems: Sequence[str] | None = None,
    coefficient: Coefficient = "spearman",
    title: str = "",
) -> list[Path]:
    """Draw every picture that the data allow and write them as PNG files.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    rows
        The table of :func:`movers.agreement.agreement_table`.
    metrics, humans, systems
        What the table was made of; without ``systems`` there is no system ranking.

    Returns
    -------
    list of Path
        ``correlation.png``, and for each human score ``distribution_<name>.png``, ``metrics_<name>.png`` and
        ``systems_<name>.png``.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"correlation": plot_correlation_bars(rows, coefficient=coefficient, title=title)}
    for name, human in humans.items():
        safe = "".join(character if character.isalnum() or character in "-_" else "_" for character in name)
        heading = f"{title}: {name}" if title else name
        figures[f"distribution_{safe}"] = plot_score_distributions(metrics, human, title=heading)
        figures[f"metrics_{safe}"] = plot_metric_correlations(
            metrics, human, human_name=name, coefficient=coefficient, title=heading
        )
        if systems is not None and len(set(systems)) > 2:
            figures[f"systems_{safe}"] = plot_system_ranking(metrics, human, systems, human_name=name, title=heading)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths

"""Alignments as SVG and PNG, with matplotlib; without global state or windows. Texts are drawn literally, also `$`."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from movers.errors import InputError
from movers.pictures.explain import MARKS, Explanation, Panel, Picture, Unit, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "image"]

_NEAR, _FAR, _INK, _SOFT = "#0072B2", "#D55E00", "#1b1f24", "#57606a"
_INKS = {"supported": "#00734d", "unsupported": "#b34700", "repeated": "#8f3d75", "twice": "#b34700"}
_MOST = 120  # units per side; of more, only the matrix is drawn
_LABELS = 40  # largest flows, labelled with their distance


def draw(explanation: Explanation, picture: Picture) -> Figure:
    """Draw the flows of every panel, and the plan beside them as in the paper."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(f"Pictures need the package matplotlib (extra `plots`): {error}") from error
    panels = [panel for panel in picture.panels if panel.flows]
    flows = [panel for panel in panels if max(len(panel.left), len(panel.right)) <= _MOST]
    matrices = panels if picture.matrix or not flows else []
    widths = [9.0 if any(unit.kind == "sentence" for unit in panel.left) else 4.4 for panel in flows]
    widths = [*widths, *[4.6] * len(matrices)] or [5.0]
    lines = [_centres(units)[1] for panel in flows for units in (panel.left, panel.right)]
    figure = Figure(figsize=(sum(widths), max([4.0, *(0.21 * count + 1.4 for count in lines)])), layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    for axis, panel in zip(axes, flows, strict=False):
        _draw_flows(axis, panel, *picture.costs)
    for axis, panel in zip(axes[len(flows) :], matrices, strict=False):
        _draw_matrix(axis, panel)
    if not panels:
        axes[0].axis("off")
        axes[0].text(0.5, 0.5, "Nothing was matched: one of the texts has no words.", ha="center")
    numbers = {explanation.title: explanation.score, **explanation.numbers}
    figure.suptitle(", ".join(f"{name}: {value:.4g}" for name, value in numbers.items()), fontsize=11)
    caption = f"line: width is {panels[0].measure}, number and colour are distance\n" if flows else ""
    caption += textwrap.fill(explanation.signature, int(24 * sum(widths)))
    figure.supxlabel(caption, fontsize=5, color=_SOFT, parse_math=False)
    return figure


def image(figure: Figure, suffix: str) -> bytes:
    """The figure as `svg` or `png`; deterministic."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "movers", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return buffer.getvalue()


def _shown(unit: Unit) -> str:
    text = f"{unit.text} {MARKS[unit.mark]}" if unit.mark else unit.text
    return textwrap.fill(text, 46) or text if unit.kind == "sentence" else text


def _centres(units: Sequence[Unit]) -> tuple[list[float], float]:
    """Vertical centre of each unit, in lines from the top, and the height of all."""
    centres, y = [0.0] * len(units), 0.0
    for index in in_order(units):
        height = 1 + _shown(units[index]).count("\n") + (0.35 if units[index].kind == "sentence" else 0.0)
        centres[index] = y + height / 2
        y += height
    return centres, y


def _draw_flows(axis: Axes, panel: Panel, low: float, high: float) -> None:
    """Clark et al.'s Fig. 1: lines as wide as the mass, labelled and coloured (`low` to `high`) by distance."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    edge = 0.40 if any(unit.kind == "sentence" for unit in panel.left) else 0.33
    left, bottom = _centres(panel.left)
    right, right_bottom = _centres(panel.right)
    axis.set(xlim=(0, 1), ylim=(max(bottom, right_bottom) + 0.5, -1.6))
    axis.axis("off")
    axis.set_title(panel.title, fontsize=9, parse_math=False)
    sides = ((edge, "right", panel.left, left), (1 - edge, "left", panel.right, right))
    for name, (x, align, units, centres) in zip(panel.names, sides, strict=True):
        axis.text(x, -0.9, name, ha=align, va="center", fontsize=8, weight="bold", color=_SOFT)
        x += -0.012 if align == "right" else 0.012
        for unit, y in zip(units, centres, strict=True):
            style: Any = {"color": _INKS.get(unit.mark, _INK), "parse_math": False, "multialignment": "left"}
            axis.text(x, y, _shown(unit), ha=align, va="center", fontsize=8, **style)
    colours = LinearSegmentedColormap.from_list("distance", [_NEAR, _FAR])
    for number, flow in enumerate(panel.flows):
        y1, y2 = left[flow.i], right[flow.j]
        path = Path([(edge, y1), (0.5, y1), (0.5, y2), (1 - edge, y2)], [Path.MOVETO, *[Path.CURVE4] * 3])
        shade = colours((flow.cost - low) / (high - low) if high > low else 0.0)
        width = max(0.6, 5 * flow.share / panel.flows[0].share)
        axis.add_patch(PathPatch(path, fill=False, edgecolor=shade, linewidth=width, alpha=0.6))
        if number < _LABELS:
            t = (0.35, 0.5, 0.65)[flow.i % 3]  # not all in the middle, where lines cross
            x = (1 - t) ** 3 * edge + 1.5 * t * (1 - t) + t**3 * (1 - edge)
            y = y1 + (3 - 2 * t) * t * t * (y2 - y1)
            box = {"boxstyle": "round,pad=0.08", "facecolor": "#ffffffd9", "edgecolor": "none"}
            axis.text(x, y, f"{flow.cost:.3g}", bbox=box, ha="center", va="center", fontsize=6, zorder=4)


def _draw_matrix(axis: Axes, panel: Panel) -> None:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences."""
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    plan = np.zeros((len(panel.left), len(panel.right)))
    for flow in panel.flows:
        plan[flow.i, flow.j] = 0.15 + 0.85 * flow.share / panel.flows[0].share
    shades = LinearSegmentedColormap.from_list("mass", ["white", _NEAR])
    axis.imshow(plan, cmap=shades, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for units, line in ((panel.left, axis.axhline), (panel.right, axis.axvline)):
        words = sum(unit.kind != "sentence" for unit in units)
        if 0 < words < len(units):
            line(words - 0.5, color=_INK, linewidth=1.2)
    if max(plan.shape) <= 50:
        style: Any = {"fontsize": 6, "parse_math": False}
        axis.set_xticks(range(len(panel.right)), [unit.label for unit in panel.right], rotation=60, ha="right", **style)
        axis.set_yticks(range(len(panel.left)), [unit.label for unit in panel.left], **style)
    axis.set_title(f"Transport plan T: {panel.names[0]} × {panel.names[1]}", fontsize=9)

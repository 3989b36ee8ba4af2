"""Alignments as SVG and PNG, with matplotlib; without global state or windows. Texts are drawn literally, also `$`."""

from __future__ import annotations

import io
import textwrap
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from movers.errors import InputError, install_hint
from movers.pictures.explain import DRAWN, LABELS, MARKS, Explanation, Panel, Picture, Unit, digits, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "image", "shade"]

INK, SOFT = "#1b1f24", "#6e7781"
_GREEN, _RED = "#00734d", "#b34700"
_INKS = {"supported": _GREEN, "covered": _GREEN, "unsupported": _RED, "twice": _RED, "repeated": "#8f3d75"}
_MARKS = {"mass": "grey: not compared", "cosine": "✓ supported, covered; ✗ unsupported; ↻ repeated"}


def draw(explanation: Explanation, picture: Picture) -> Figure:
    """Draw the flows of every panel, and the plan beside them as in the paper."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(f"Pictures need matplotlib: {install_hint('plots')} ({error})") from error
    matrices = [
        panel for panel in picture.panels if len(picture.panels) == 1 and panel.measure == "mass" and panel.flows
    ]
    widths = [9.0 if any(unit.kind == "sentence" for unit in panel.left) else 4.0 for panel in picture.panels]
    widths += [4.6] * len(matrices)
    lines = [line for panel in picture.panels for side in (0, 1) for line in _column(panel, side)]
    height = max((y + 0.5 + text.count("\n") / 2 for _, y, text in lines), default=1.0)
    figure = Figure(figsize=(sum(widths), 0.21 * height + 1.6), layout="constrained")
    axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    for axis, panel in zip(axes, picture.panels, strict=False):
        _draw_flows(axis, picture, panel, height)
    for axis, panel in zip(axes[len(picture.panels) :], matrices, strict=True):
        _draw_matrix(axis, picture, panel)
    parts = [f", {name}: {digits(value)}" for name, value in explanation.numbers.items() if name != "distance"]
    figure.suptitle(f"{explanation.title}: {digits(explanation.score)}{''.join(parts)}", fontsize=11)
    measure = picture.panels[0].measure
    caption = f"line: width is {measure}, number and colour are distance; {_MARKS[measure]}\n"
    caption += textwrap.fill(explanation.signature, int(19 * sum(widths)), break_on_hyphens=False)
    figure.supxlabel(caption, fontsize=6, color=SOFT, parse_math=False)
    return figure


def image(figure: Figure, suffix: str) -> bytes:
    """The figure as `svg` or `png`; deterministic."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "movers", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return buffer.getvalue()


def shade(tint: int) -> tuple[float, ...]:
    """The colour of a line or cell, from near (blue) to far (orange)."""
    near, far = (0.0, 0.447, 0.698), (0.835, 0.369, 0.0)
    return tuple(a + (b - a) * tint / 100 for a, b in zip(near, far, strict=True))


def _shown(unit: Unit) -> str:
    text = f"{unit.text} {MARKS[unit.mark]}" if unit.mark else unit.text
    return textwrap.fill(text, 46) or text if unit.kind == "sentence" else text


def _column(panel: Panel, side: int) -> list[tuple[int, float, str]]:
    """Index, vertical centre in lines from the top, and text of the listed units; at last, what was not compared."""
    texts = [(index, _shown(panel.sides[side][index])) for index in panel.column(side)]
    texts.append((-1, "\n".join(["", *textwrap.wrap(panel.not_compared(side), 30)])))
    heights = [1.0 + text.count("\n") for _, text in texts]
    places = zip(texts, heights, accumulate(heights), strict=True)
    return [(index, bottom - height / 2, text) for (index, text), height, bottom in places]


def _draw_flows(axis: Axes, picture: Picture, panel: Panel, height: float) -> None:
    """Clark et al.'s Fig. 1: lines as wide as the mass, the strongest labelled with their distance."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    sentences = any(unit.kind == "sentence" for unit in panel.left)
    edge, half = (0.40, 0.022) if sentences else (0.31, 0.05)  # where lines begin; half the width of a label
    axis.set(xlim=(0, 1), ylim=(height, -1.6))
    axis.axis("off")
    axis.set_title(panel.title or picture.remark, fontsize=9, parse_math=False)
    ends = []
    for side, (x, align) in enumerate(((edge - 0.012, "right"), (1 - edge + 0.012, "left"))):
        style: Any = {"ha": align, "va": "center", "parse_math": False, "multialignment": "left"}
        axis.text(x, -0.9, panel.names[side], fontsize=8, weight="bold", color=SOFT, **style)
        ends.append({index: y for index, y, _ in _column(panel, side)})
        for index, y, text in _column(panel, side):
            ink = _INKS.get(panel.sides[side][index].mark, INK) if index >= 0 else SOFT
            axis.text(x, y, text, fontsize=8 if index >= 0 else 6, color=ink, **style)
    labelled: list[tuple[float, float]] = []
    for number, flow in enumerate(panel.flows[:DRAWN]):
        y1, y2 = ends[0][flow.i], ends[1][flow.j]
        path = Path([(edge, y1), (0.5, y1), (0.5, y2), (1 - edge, y2)], [Path.MOVETO, *[Path.CURVE4] * 3])
        width = max(0.6, 5 * flow.share / (panel.flows[0].share or 1.0))
        colour = shade(picture.tint(flow.cost))
        axis.add_patch(PathPatch(path, fill=False, edgecolor=colour, linewidth=width, alpha=0.6))
        for t in (0.5, 0.36, 0.64, 0.26, 0.74, 0.18, 0.82) if number < LABELS else ():
            x = (1 - t) ** 3 * edge + 1.5 * t * (1 - t) + t**3 * (1 - edge)
            y = y1 + (3 - 2 * t) * t * t * (y2 - y1)
            if all(abs(x - other) > 2 * half or abs(y - height) > 0.8 for other, height in labelled):
                labelled.append((x, y))
                box = {"boxstyle": "round,pad=0.08", "facecolor": "#ffffffd9", "edgecolor": "none"}
                axis.text(x, y, digits(flow.cost), bbox=box, ha="center", va="center", fontsize=6, zorder=4)
                break


def _draw_matrix(axis: Axes, picture: Picture, panel: Panel) -> None:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences; opaque is much mass."""
    import numpy as np

    places = [sorted(panel.column(side)) for side in (0, 1)]
    labels = [[shorten(units[n].text, 16) for n in column] for units, column in zip(panel.sides, places, strict=True)]
    plan = np.zeros((*map(len, panel.sides), 4))
    for flow in panel.flows:
        plan[flow.i, flow.j] = (*shade(picture.tint(flow.cost)), 0.25 + 0.75 * flow.share / panel.flows[0].share)
    axis.imshow(plan[np.ix_(*places)], aspect="auto", interpolation="nearest")
    for units, column, line in zip(panel.sides, places, (axis.axhline, axis.axvline), strict=True):
        line(sum(units[n].kind != "sentence" for n in column) - 0.5, color=INK, linewidth=1.2)
    style: Any = {"fontsize": 6, "parse_math": False}
    axis.set_xticks(range(len(labels[1])), labels[1], rotation=60, ha="right", **style)
    axis.set_yticks(range(len(labels[0])), labels[0], **style)
    axis.set_title(f"Transport plan T: {panel.names[0]} × {panel.names[1]}", fontsize=9)

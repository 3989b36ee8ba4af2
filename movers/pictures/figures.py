"""Alignments as SVG and PNG, with matplotlib.

Figures do not use global state or windows. Texts are drawn literally, also with `$` or `<`.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from movers.errors import InputError
from movers.pictures.model import Bar, Explanation, Flow, Panel, Picture, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure_of", "image_of"]

_NEAR, _FAR, _INK, _SOFT, _CARD = "#0072B2", "#D55E00", "#1b1f24", "#57606a", "#f3f5f8"
_MARKS = {"supported": "#00734d", "unsupported": "#b34700", "repeated": "#8f3d75", "twice": "#b34700"}
_MOST = 120  # labelled units per side; beyond that only the matrix is drawn
_LINE = 0.21  # inches per line of text
_LABELS = 40  # largest flows, labelled with their distance
_WRAP = 46  # characters per line


def figure_of(explanation: Explanation, picture: Picture) -> Figure:
    """Draw the flows of every panel, the plan beside them as in the paper, and bars above."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(f"pictures: expected the package matplotlib (extra `plots`), but got: {error}") from error
    panels = [panel for panel in picture.panels if panel.flows]
    small = [panel for panel in panels if max(len(panel.left), len(panel.right)) <= _MOST]
    matrices = panels if picture.matrix or not small else []
    widths = [*(_width(panel) for panel in small), *([4.6] * len(matrices))] or [5.0]
    height = max([3.0, *(max(_heights(panel.left, panel.right)) * _LINE + 0.5 for panel in small)])
    if matrices and not small:
        height = 5.0
    top = 0.24 * len(picture.bars) + (0.3 if picture.bars else 0.0)
    figure = Figure(figsize=(sum(widths), height + top + 0.8), layout="constrained")
    rows = figure.add_gridspec(2 if top else 1, 1, height_ratios=[top, height] if top else [1])
    grid = rows[-1].subgridspec(1, len(widths), width_ratios=widths)
    axes = [figure.add_subplot(grid[0, column]) for column in range(len(widths))]
    if top:
        _draw_bars(figure.add_subplot(rows[0]), picture.bars)
    for axis, panel in zip(axes, small, strict=False):
        _draw_flows(axis, panel, *picture.costs)
    for axis, panel in zip(axes[len(small) :], matrices, strict=False):
        _draw_matrix(axis, panel)
    if not panels:
        axes[0].axis("off")
        axes[0].text(0.5, 0.5, "Nothing was matched: one of the texts has no words.", ha="center")
    name = f"{explanation.title}: {explanation.score:.4g}"
    if "distance" in explanation.numbers:
        name += f" (distance {explanation.numbers['distance']:.4g})"
    figure.suptitle(name, fontsize=11, color=_INK, parse_math=False)
    signature = textwrap.fill(explanation.signature, int(24 * sum(widths)))
    legend = ""
    if small:
        legend = f"line: width is {small[0].measure}, number and colour are distance (blue near, orange far)\n"
    figure.supxlabel(legend + signature, fontsize=5, color=_SOFT, parse_math=False)
    return figure


def image_of(figure: Figure, suffix: str) -> bytes:
    """The figure as `svg` or `png`; deterministic."""
    import matplotlib

    buffer = io.BytesIO()
    settings = {"svg.hashsalt": "movers", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings):
        figure.savefig(buffer, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return buffer.getvalue()


def _is_long(unit: Unit) -> bool:
    return unit.kind == "sentence"


def _width(panel: Panel) -> float:
    if any(map(_is_long, panel.left)):
        return 9.0
    return 4.4


def _lines(unit: Unit) -> list[str]:
    mark = {"supported": " (✓ supported)", "unsupported": " (✗ unsupported)", "repeated": " (↻ repeated)"}.get(
        unit.mark, ""
    )
    if unit.mark == "twice":
        mark = f" ×{unit.note.split()[1]}"
    text = unit.text + mark
    return textwrap.wrap(text, _WRAP) or [text] if _is_long(unit) else [text]


def _order(units: Sequence[Unit]) -> list[int]:
    return sorted(range(len(units)), key=lambda place: (units[place].sentence, not _is_long(units[place]), place))


def _heights(*sides: Sequence[Unit]) -> list[float]:
    """Height of each side in lines, with space between sentences."""
    return [
        sum(len(_lines(unit)) + (0.35 if _is_long(unit) else 0.0) for unit in units)
        + 0.5 * len({unit.sentence for unit in units})
        for units in sides
    ]


def _places(units: Sequence[Unit]) -> list[tuple[float, float]]:
    """Centre and height of each unit, in lines from the top."""
    found: list[tuple[float, float]] = [(0.0, 0.0)] * len(units)
    y, sentence = 0.0, None
    for place in _order(units):
        if sentence is not None and units[place].sentence != sentence:
            y += 0.5
        sentence = units[place].sentence
        height = float(len(_lines(units[place]))) + (0.35 if _is_long(units[place]) else 0.0)
        found[place] = (y + height / 2, height)
        y += height
    return found


def _draw_flows(axis: Axes, panel: Panel, low: float, high: float) -> None:
    """Clark et al.'s Fig. 1: units on both sides, joined by lines whose width is the mass, labelled with the distance.

    Colours show the distance, from `low` to `high` in all panels of a picture.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    left, right = _places(panel.left), _places(panel.right)
    bottom = max(_heights(panel.left, panel.right))
    edge = 0.40 if any(map(_is_long, panel.left)) else 0.33
    axis.set(xlim=(0, 1), ylim=(bottom + 0.3, -1.6))
    axis.axis("off")
    for x, align, units, places, name in (
        (edge, "right", panel.left, left, panel.names[0]),
        (1 - edge, "left", panel.right, right, panel.names[1]),
    ):
        axis.text(x, -0.9, name, ha=align, va="center", fontsize=8, weight="bold", color=_SOFT)
        for unit, (y, _) in zip(units, places, strict=True):
            colour = _MARKS.get(unit.mark, _INK if unit.kind != "special" else _SOFT)
            frame = {"boxstyle": "round,pad=0.15", "facecolor": _CARD, "edgecolor": colour, "linewidth": 0.8}
            if not unit.mark:
                frame["edgecolor"] = "none"
            axis.text(
                x + (-0.012 if align == "right" else 0.012), y, "\n".join(_lines(unit)), ha=align, va="center",
                fontsize=8, color=colour, parse_math=False, multialignment="left", bbox=frame, zorder=3,
            )  # fmt: skip
    if panel.title:
        axis.set_title(panel.title, fontsize=9, parse_math=False)
    most = panel.flows[0].share
    taken: list[tuple[float, float]] = []
    for number, flow in enumerate(panel.flows):
        (y1, _), (y2, _) = left[flow.i], right[flow.j]
        middle = 0.5
        path = Path([(edge, y1), (middle, y1), (middle, y2), (1 - edge, y2)], [1, 4, 4, 4])
        shade = _blend((flow.cost - low) / (high - low) if high > low else 0.0)
        axis.add_patch(
            PathPatch(path, fill=False, edgecolor=shade, linewidth=max(0.6, 5 * flow.share / most), alpha=0.6)
        )
        if number < _LABELS:
            _label(axis, flow, edge, y1, y2, taken)


def _label(axis: Axes, flow: Flow, edge: float, y1: float, y2: float, taken: list[tuple[float, float]]) -> None:
    for t in (0.5, 0.35, 0.65, 0.22, 0.78):
        s = 1 - t
        x = s**3 * edge + 3 * (s * s * t + s * t * t) * 0.5 + t**3 * (1 - edge)
        y = (s**3 + 3 * s * s * t) * y1 + (t**3 + 3 * s * t * t) * y2
        if all(abs(x - other) > 0.08 or abs(y - above) > 0.75 for other, above in taken):
            taken.append((x, y))
            frame = {"boxstyle": "round,pad=0.08", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            axis.text(x, y, f"{flow.cost:.3g}", ha="center", va="center", fontsize=6, color=_INK, bbox=frame, zorder=4)
            return


def _blend(share: float) -> tuple[float, float, float]:
    near, far = ([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in (_NEAR, _FAR))
    red, green, blue = (a + share * (b - a) for a, b in zip(near, far, strict=True))
    return red, green, blue


def _draw_matrix(axis: Axes, panel: Panel) -> None:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    rows, columns = len(panel.left), len(panel.right)
    named = max(rows, columns) <= 50
    cells = [Rectangle((flow.j - 0.5, flow.i - 0.5), 1, 1) for flow in panel.flows]
    shades = [0.15 + 0.85 * flow.share / panel.flows[0].share for flow in panel.flows]
    axis.add_collection(PatchCollection(cells, facecolor=_NEAR, edgecolor="none", alpha=shades))
    axis.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="auto" if named else "equal")
    for units, line in ((panel.left, axis.axhline), (panel.right, axis.axvline)):
        for place in range(1, len(units)):
            before, unit = units[place - 1], units[place]
            if _is_long(before) != _is_long(unit):
                line(place - 0.5, color=_INK, linewidth=1.2)
            elif before.sentence != unit.sentence and not _is_long(unit):
                line(place - 0.5, color="#c5ccd3", linewidth=0.6)
    if named:
        axis.set_xticks(range(len(panel.right)), [_name(unit) for unit in panel.right], rotation=60, ha="right")
        axis.set_yticks(range(len(panel.left)), [_name(unit) for unit in panel.left])
        for label in [*axis.get_xticklabels(), *axis.get_yticklabels()]:
            label.set(fontsize=6, color=_INK, parse_math=False)
    axis.set_title("Transport plan T", fontsize=9)
    axis.set_xlabel(panel.names[1], fontsize=8)
    axis.set_ylabel(panel.names[0], fontsize=8)


def _name(unit: Unit, width: int = 16) -> str:
    if _is_long(unit):
        return f"sentence {unit.sentence + 1}"
    return unit.text if len(unit.text) <= width else unit.text[: width - 1] + "…"


def _draw_bars(axis: Axes, bars: Sequence[Bar]) -> None:
    values = [bar.value for bar in bars]
    axis.barh(range(len(bars)), values, color=_NEAR, height=0.55)
    axis.set(xlim=(0, 1.1), ylim=(len(bars) - 0.4, -0.6))
    axis.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8)
    axis.tick_params(axis="x", labelsize=7)
    axis.spines[["top", "right"]].set_visible(False)
    for place, value in enumerate(values):
        axis.text(value + 0.01, place, f"{value:.3f}", va="center", fontsize=7)

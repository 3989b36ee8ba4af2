"""Alignments as self-contained HTML, with inline styles and script.

All user texts are escaped here. Without JavaScript only the lines are missing; units, matrix and tables are static.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from itertools import groupby

from movers.pictures.model import Bar, Explanation, Panel, Picture, Unit

__all__ = ["body_of", "document_of", "frame", "frame_of", "histogram", "matrix", "page_of", "pictures_of"]

_LONG = 90  # units per side above which words are set as running text
_SHOWN = 60  # flows drawn initially
_LABELLED = 60  # units per side up to which a matrix has labels
_MARKS = {"supported": "✓ supported", "unsupported": "✗ unsupported", "repeated": "↻ repeated", "twice": "×"}


def document_of(title: str, body: str) -> str:
    """An HTML page around an escaped body."""
    files = resources.files("movers.pictures")
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("picture.css", "picture.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f'<body class="movers">\n<main>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n'
    )


def page_of(explanation: Explanation) -> str:
    """The page of one scored prediction."""
    return document_of(f"{explanation.title}: {_short(explanation.score)}", body_of(explanation))


def frame(body: str, title: str = "Distribution of scores", height: int = 300) -> str:
    """An iframe, so that styles and scripts do not mix with those of the page."""
    return (
        f'<iframe class="movers-frame" title="{escape(title)}" sandbox="allow-scripts" '
        f'style="width:100%;height:{height}px;border:0" srcdoc="{escape(document_of(title, body))}"></iframe>'
    )


def frame_of(explanation: Explanation, tallest: int = 900) -> str:
    """The page of a scored prediction in an iframe, for notebooks and other pages."""
    rows = max((max(len(panel.left), len(panel.right)) for panel in _panels(explanation)), default=0)
    return frame(body_of(explanation), f"{explanation.title}: what was matched", min(tallest, 420 + 26 * rows))


def _panels(explanation: Explanation) -> Iterable[Panel]:
    return (panel for picture in explanation.pictures for panel in picture.panels)


def body_of(explanation: Explanation) -> str:
    """Score, pictures, signature and paper."""
    numbers = {"score": explanation.score, **explanation.numbers}
    items = "".join(f"<li><b>{_short(value)}</b><span>{escape(name)}</span></li>" for name, value in numbers.items())
    flags = "".join(f'<p><span class="flag">{escape(_FLAGS[flag])}</span></p>' for flag in explanation.flags)
    return "\n".join(
        [
            f'<h1>{escape(explanation.title)}</h1>\n<ul class="numbers">{items}</ul>{flags}',
            pictures_of(explanation),
            f"<h2>Signature</h2>\n<p><code>{escape(explanation.signature)}</code></p>\n"
            f'<p class="soft">{escape(explanation.paper)}</p>',
        ]
    )


_FLAGS = {
    "empty": "A text is empty: there is nothing to compare.",
    "unfiltered": "The filters left nothing of a text, so all its words were compared.",
    "truncated": "A text was longer than the encoder reads and was cut.",
    "unknown": "A text has words or pieces that the encoder does not know.",
}


def pictures_of(explanation: Explanation) -> str:
    """The picture of the best reference, with the others collapsed below."""
    first, *others = [_picture(picture) for picture in explanation.pictures]
    titles = [picture.title for picture in explanation.pictures[1:]]
    folded = [
        f"<details><summary>{escape(title)}</summary>{drawn}</details>"
        for title, drawn in zip(titles, others, strict=True)
    ]
    title = explanation.pictures[0].title
    return "\n".join([f"<h2>{escape(title)}</h2>" if title else "", first, *folded])


def _picture(picture: Picture) -> str:
    if picture.empty:
        return '<p class="soft">Nothing was matched: one of the texts has no words.</p>' + _bars(picture.bars)
    columns = len(picture.panels)
    panels = "\n".join(_panel(panel, picture.matrix) for panel in picture.panels)
    several = " several" if columns > 1 else ""
    low, high = picture.costs
    return (
        f'{_bars(picture.bars)}<div class="panels{several}" style="--columns:{columns}" data-low="{low:.6f}" '
        f'data-high="{high:.6f}">\n{panels}\n</div>'
    )


def _bars(bars: Sequence[Bar]) -> str:
    if not bars:
        return ""
    drawn = "".join(
        f'<span>{escape(bar.name)}</span><span class="bar" aria-hidden="true">'
        f'<i style="width:{100 * min(max(bar.value, 0), 1):.1f}%"></i></span><span>{bar.value:.3f}</span>'
        f"<small>{escape(bar.note)}</small>"
        for bar in bars
    )
    return f'<div class="bars">{drawn}</div>'


def _panel(panel: Panel, with_matrix: bool) -> str:
    layout = _layout(panel)
    flows = [[flow.i, flow.j, round(flow.share, 6), round(flow.cost, 6)] for flow in panel.flows]
    slider = (
        '<label class="slider">Flows shown, strongest first <input type="range" min="1" '
        f'max="{len(flows)}" value="{min(len(flows), _SHOWN)}"> <output></output></label>'
    )
    title = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
    canvas = (
        f'<div class="canvas {layout}"><svg aria-hidden="true"></svg>'
        f"{_side('left', panel.names[0], panel.left)}{_side('right', panel.names[1], panel.right)}</div>"
    )
    canvas = (
        f'<div>{canvas}<p class="detail" role="status">Point at a unit, or move to one with Tab and the arrow keys, to '
        "read what it was matched with.</p></div>"
    )
    if with_matrix:
        size = max(len(panel.left), len(panel.right))
        drawn = (
            f"<details{' open' if size <= _LABELLED else ''}><summary>Matrix T of {len(panel.left)} × "
            f'{len(panel.right)} units</summary><div class="scroll" tabindex="0" role="region" aria-label="Matrix T">'
            f"{matrix(panel)}</div></details>"
        )
        canvas = f'<div class="{"beside" if layout == "short" else "below"}">{canvas}{drawn}</div>'
    return (
        f'<section class="panel" data-measure="{escape(panel.measure)}">{title}<p class="soft">{escape(panel.note)} '
        '<span class="colours">Colour: near <span class="key" aria-hidden="true"></span> far.</span></p>'
        f"{slider}{canvas}{_table(panel)}"
        f'<script type="application/json">{json.dumps(flows, separators=(",", ":"))}</script></section>'
    )


def _layout(panel: Panel) -> str:
    """CSS class of the layout: columns of sentences, of words, of both, or running text."""
    kinds = {unit.kind for unit in [*panel.left, *panel.right]}
    if kinds == {"sentence"}:
        return "sentences"
    if max(len(panel.left), len(panel.right)) > _LONG:
        return "long"
    return "mixed" if "sentence" in kinds else "short"


def _side(side: str, name: str, units: Sequence[Unit]) -> str:
    places = sorted(
        range(len(units)), key=lambda place: (units[place].sentence, units[place].kind != "sentence", place)
    )
    first = places[0] if places else -1
    groups = []
    for sentence, own in groupby(places, key=lambda place: units[place].sentence):
        items = "".join(_unit(place, units[place], place == first) for place in own)
        groups.append(
            f'<li role="presentation"><ul role="group" aria-label="Sentence {sentence + 1}">{items}</ul></li>'
        )
    if not groups:
        return f'<div class="side {side}"><strong>{escape(name)}</strong></div>'
    return (
        f'<div class="side {side}"><strong>{escape(name)}</strong>'
        f'<ul class="units" role="listbox" aria-label="Units of the {escape(name.lower())}">'
        f"{''.join(groups)}</ul></div>"
    )


def _unit(place: int, unit: Unit, first: bool) -> str:
    mark = _MARKS.get(unit.mark, "")
    if unit.mark == "twice":
        mark += unit.note.split()[1]
    shown = f'<span class="mark">{escape(mark)}</span>' if mark else ""
    note = f' data-note="{escape(unit.note)}"' if unit.note else ""
    return (
        f'<li class="unit {escape(unit.kind)} {unit.mark}" role="option" aria-selected="false" '
        f'tabindex="{0 if first else -1}" data-n="{place}" data-weight="{unit.weight:.6g}"{note}>'
        f'<span class="text">{escape(unit.text)}</span>{shown}</li>'
    )


def _table(panel: Panel) -> str:
    rows = "".join(
        f"<tr><td>{escape(panel.left[flow.i].text)}</td><td>{escape(panel.right[flow.j].text)}</td>"
        f'<td class="n">{100 * flow.share:.3g} %</td><td class="n">{_short(flow.cost)}</td></tr>'
        for flow in panel.flows
    )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (*panel.names, panel.measure, "distance"))
    return (
        f"<details><summary>All {len(panel.flows)} flows as a table</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Flows"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _short(value: float) -> str:
    return f"{value:.4g}"


# ---------------------------------------------------------------------------------------------------------------------
# Static drawings


def matrix(panel: Panel) -> str:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences."""
    rows, columns = len(panel.left), len(panel.right)
    named = max(rows, columns) <= _LABELLED
    cell = 18.0 if named else max(0.5, 640 / max(rows, columns))
    margin_left, margin_top = (130.0, 110.0) if named else (6.0, 6.0)
    width, height = columns * cell + margin_left + (64 if named else 6), rows * cell + margin_top + 6
    strongest = panel.flows[0].share if panel.flows else 1.0
    parts = [
        f'<rect class="frame" x="{margin_left}" y="{margin_top}" width="{columns * cell:.1f}" '
        f'height="{rows * cell:.1f}"/>'
    ]
    for units, across in ((panel.left, False), (panel.right, True)):
        for place in range(1, len(units)):
            before, unit = units[place - 1], units[place]
            if before.kind != unit.kind and "sentence" in (before.kind, unit.kind):
                kind = "block"
            elif before.sentence != unit.sentence and "sentence" not in (before.kind, unit.kind):
                kind = "rule"
            else:
                continue
            at = place * cell
            ends = (
                (margin_left + at, margin_top, margin_left + at, margin_top + rows * cell)
                if across
                else (margin_left, margin_top + at, margin_left + columns * cell, margin_top + at)
            )
            parts.append('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(kind, *ends))
    if named:
        for place, unit in enumerate(panel.left):
            y = margin_top + (place + 0.7) * cell
            parts.append(f'<text x="{margin_left - 5}" y="{y:.1f}" text-anchor="end">{_label(unit)}</text>')
        for place, unit in enumerate(panel.right):
            x = margin_left + (place + 0.7) * cell
            turn = f"rotate(-60 {x:.1f} {margin_top - 5})"
            parts.append(f'<text x="{x:.1f}" y="{margin_top - 5}" transform="{turn}">{_label(unit)}</text>')
    for flow in panel.flows:
        hint = (
            f"{panel.left[flow.i].text} → {panel.right[flow.j].text}: {100 * flow.share:.3g} % at {_short(flow.cost)}"
        )
        title = f"<title>{escape(hint)}</title>" if named else ""
        parts.append(
            f'<rect class="cell" x="{margin_left + flow.j * cell:.1f}" y="{margin_top + flow.i * cell:.1f}" '
            f'width="{cell:.2f}" height="{cell:.2f}" fill-opacity="{0.15 + 0.85 * flow.share / strongest:.2f}">'
            f"{title}</rect>"
        )
    first, second = (name.lower() for name in panel.names)
    label = f"Transport plan T: {rows} rows of the {first}, {columns} columns of the {second}"
    return (
        f'<svg class="matrix" role="img" aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}">{"".join(parts)}</svg>'
    )


def _label(unit: Unit, width: int = 16) -> str:
    if unit.kind == "sentence":
        return f"sentence {unit.sentence + 1}"
    return escape(unit.text if len(unit.text) <= width else unit.text[: width - 1] + "…")


def histogram(scores: Sequence[float], bins: int = 24) -> str:
    """Histogram of scores as SVG."""
    import numpy as np

    counts, edges = np.histogram(np.asarray(scores, dtype=np.float64), bins=min(bins, max(1, len(scores))))
    width, height, left, bottom = 620.0, 220.0, 44.0, 30.0
    step, most = (width - left - 10) / len(counts), int(counts.max())
    bars = "".join(
        f'<rect x="{left + place * step + 1:.1f}" y="{(height - bottom) * (1 - count / most) + 8:.1f}" '
        f'width="{step - 2:.1f}" height="{(height - bottom) * count / most:.1f}"><title>{count} of {len(scores)} from '
        f"{edges[place]:.4g} to {edges[place + 1]:.4g}</title></rect>"
        for place, count in enumerate(counts.tolist())
    )
    axis = height - bottom + 8
    ticks = "".join(
        f'<text x="{left + share * (width - left - 10):.0f}" y="{axis + 18:.0f}" text-anchor="{anchor}">'
        f"{edges[0] + share * (edges[-1] - edges[0]):.4g}</text>"
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    )
    median = float(np.median(scores))
    label = f"Distribution of {len(scores)} scores from {min(scores):.4g} to {max(scores):.4g}, median {median:.4g}"
    return (
        f'<svg class="histogram" role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height + 12:.0f}">'
        f'{bars}<line x1="{left}" y1="{axis}" x2="{width - 10}" y2="{axis}"/>{ticks}'
        f'<text x="{left - 6}" y="18" text-anchor="end">{most}</text>'
        f'<text x="{left - 6}" y="{axis}" text-anchor="end">0</text></svg>'
    )

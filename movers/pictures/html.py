"""Alignments as self-contained HTML, with inline styles and script.

All user texts are escaped here. Without JavaScript only the lines are missing; units, matrix and tables are static.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from itertools import groupby

from movers.pictures.explain import FLAGS, Explanation, Panel, Picture, Report, Unit, about, in_order, shorten

__all__ = ["document", "explanation_body", "frame", "histogram", "pictures", "report_body"]

_LONG = 90  # units per side above which words are set as running text
_SHOWN = 60  # flows drawn initially
_LABELLED = 60  # units per side up to which a matrix is drawn
_LISTED = 200  # rows listed per flag


def document(title: str, body: str) -> str:
    """An HTML page around an escaped body."""
    files = resources.files("movers.pictures")
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("picture.css", "picture.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f'<body class="movers">\n<main>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n'
    )


def frame(body: str, title: str, height: int) -> str:
    """An iframe, so that styles and scripts do not mix with those of the page around it."""
    return (
        f'<iframe class="movers-frame" title="{escape(title)}" sandbox="allow-scripts" '
        f'style="width:100%;height:{height}px;border:0" srcdoc="{escape(document(title, body))}"></iframe>'
    )


def explanation_body(explanation: Explanation) -> str:
    flags = "".join(f'<p><span class="flag">{FLAGS[flag]}.</span></p>' for flag in explanation.flags)
    head = _heading(explanation.title, {"score": explanation.score, **explanation.numbers})
    return f"{head}{flags}\n{pictures(explanation)}\n{_signature(explanation)}"


def report_body(report: Report) -> str:
    count, ordered = len(report.scores), sorted(report.scores)
    median = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    numbers = {"mean": math.fsum(ordered) / count, "median": median, "lowest": ordered[0], "highest": ordered[-1]}
    first = report.best[0][1]
    parts = [
        _heading(first.title, {**numbers, "rows": count}),
        f"<h2>Distribution of scores</h2>\n{histogram(report.scores)}\n<h2>Rows to look at</h2>",
    ]
    for flag, rows in report.flagged.items():
        listed = "; rows " + ", ".join(str(row + 1) for row in rows[:_LISTED]) if rows else ""
        more = f" and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
        parts.append(f"<p>{FLAGS[flag]}: {len(rows)} of {count}{listed}{more}</p>")
    for name, explanations in (("best", report.best), ("worst", report.worst)):
        parts.append(f"<h2>The {len(explanations)} {name} rows</h2>")
        parts += [
            f'<details class="row"><summary>Row {number + 1}: <strong>{explanation.score:.4g}</strong> '
            f"{escape(shorten(explanation.prediction.strip(), 110) or '(blank)')}</summary>"
            f"{pictures(explanation)}</details>"
            for number, explanation in explanations
        ]
    return "\n".join([*parts, _signature(first)])


def _heading(title: str, numbers: Mapping[str, float]) -> str:
    items = "".join(f"<li><b>{value:.4g}</b><span>{escape(name)}</span></li>" for name, value in numbers.items())
    return f'<h1>{escape(title)}</h1>\n<ul class="numbers">{items}</ul>'


def _signature(explanation: Explanation) -> str:
    facts = about(explanation.metric)
    paper = f'\n<p class="soft">{escape(facts["paper"])} doi:{escape(facts["doi"])}</p>' if facts["paper"] else ""
    return f"<h2>Signature</h2>\n<p><code>{escape(explanation.signature)}</code></p>{paper}"


def pictures(explanation: Explanation) -> str:
    """The picture of the best reference, with the others collapsed below."""
    first, *others = explanation.pictures
    folded = [f"<details><summary>{escape(other.title)}</summary>{_picture(other)}</details>" for other in others]
    return "\n".join([f"<h2>{escape(first.title)}</h2>" if first.title else "", _picture(first), *folded])


def _picture(picture: Picture) -> str:
    if not any(panel.flows for panel in picture.panels):
        return '<p class="soft">Nothing was matched: one of the texts has no words.</p>'
    columns, (low, high) = len(picture.panels), picture.costs
    panels = "\n".join(_panel(panel, picture.matrix) for panel in picture.panels)
    return (
        f'<div class="panels{" several" if columns > 1 else ""}" style="--columns:{columns}" '
        f'data-low="{low:.6f}" data-high="{high:.6f}">\n{panels}\n</div>'
    )


def _panel(panel: Panel, with_matrix: bool) -> str:
    kinds = {unit.kind for unit in [*panel.left, *panel.right]}
    size = max(len(panel.left), len(panel.right))
    layout = "long" if size > _LONG else "mixed" if "sentence" in kinds else "short"
    if kinds == {"sentence"}:
        layout = "sentences"
    canvas = (
        f'<div><div class="canvas {layout}"><svg aria-hidden="true"></svg>'
        f"{_side('left', panel.names[0], panel.left)}{_side('right', panel.names[1], panel.right)}</div>"
        '<p class="detail" role="status">Point at a unit, or move to one with Tab and the arrow keys, to read what it '
        "was matched with.</p></div>"
    )
    if with_matrix and size <= _LABELLED:
        matrix = _folded(f"Matrix T of {len(panel.left)} × {len(panel.right)} units", _matrix(panel), " open")
        canvas = f'<div class="{"beside" if layout == "short" else "below"}">{canvas}{matrix}</div>'
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (*panel.names, panel.measure, "distance"))
    rows = "".join(
        f"<tr><td>{escape(panel.left[flow.i].text)}</td><td>{escape(panel.right[flow.j].text)}</td>"
        f'<td class="n">{100 * flow.share:.3g} %</td><td class="n">{flow.cost:.4g}</td></tr>'
        for flow in panel.flows
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    flows = [[flow.i, flow.j, round(flow.share, 6), round(flow.cost, 6)] for flow in panel.flows]
    return (
        f'<section class="panel" data-measure="{escape(panel.measure)}">'
        f"{f'<h3>{escape(panel.title)}</h3>' if panel.title else ''}"
        f'<p class="soft">{escape(panel.note)} <span class="colours">Colour: near <span class="key" '
        'aria-hidden="true"></span> far.</span></p><label class="slider">Flows shown, strongest first <input '
        f'type="range" min="1" max="{len(flows)}" value="{min(len(flows), _SHOWN)}"> <output></output></label>'
        f"{canvas}{_folded(f'All {len(flows)} flows as a table', table)}"
        f'<script type="application/json">{json.dumps(flows, separators=(",", ":"))}</script></section>'
    )


def _folded(name: str, content: str, state: str = "") -> str:
    return (
        f"<details{state}><summary>{name}</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{content}</div></details>'
    )


def _side(side: str, name: str, units: Sequence[Unit]) -> str:
    order, groups = in_order(units), ""
    for sentence, indices in groupby(order, key=lambda index: units[index].sentence):
        groups += f'<li role="presentation"><ul role="group" aria-label="Sentence {sentence + 1}">'
        for index in indices:
            unit = units[index]
            groups += (
                f'<li class="unit {escape(unit.kind)} {unit.mark}" role="option" aria-selected="false" '
                f'tabindex="{0 if index == order[0] else -1}" data-n="{index}" data-weight="{unit.weight:.6g}" '
                f'data-note="{escape(unit.note)}"><span class="text">{escape(unit.text)}</span>'
                f"{f'<span class=mark>{unit.shown_mark}</span>' if unit.mark else ''}</li>"
            )
        groups += "</ul></li>"
    if groups:
        groups = f'<ul class="units" role="listbox" aria-label="Units of the {escape(name.lower())}">{groups}</ul>'
    return f'<div class="side {side}"><strong>{escape(name)}</strong>{groups}</div>'


def _matrix(panel: Panel) -> str:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences."""
    rows, columns, cell, left, top = len(panel.left), len(panel.right), 18, 130, 110
    right, bottom = left + columns * cell, top + rows * cell
    parts = [f'<rect class="frame" x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/>']
    words = [sum(not unit.is_sentence for unit in units) for units in (panel.left, panel.right)]
    if 0 < words[0] < rows:
        parts.append(f'<path class="block" d="M{left} {top + words[0] * cell}H{right}"/>')
    if 0 < words[1] < columns:
        parts.append(f'<path class="block" d="M{left + words[1] * cell} {top}V{bottom}"/>')
    for index, unit in enumerate(panel.left):
        y = top + (index + 0.7) * cell
        parts.append(f'<text x="{left - 5}" y="{y:.1f}" text-anchor="end">{escape(unit.label)}</text>')
    for index, unit in enumerate(panel.right):
        place = f"translate({left + (index + 0.7) * cell:.1f} {top - 5}) rotate(-60)"
        parts.append(f'<text transform="{place}">{escape(unit.label)}</text>')
    for flow in panel.flows:
        opacity = 0.15 + 0.85 * flow.share / panel.flows[0].share
        parts.append(
            f'<rect class="cell" x="{left + flow.j * cell}" y="{top + flow.i * cell}" width="{cell}" height="{cell}" '
            f'fill-opacity="{opacity:.2f}"/>'
        )
    return (
        f'<svg class="matrix" role="img" aria-label="Transport plan T: {rows} rows, {columns} columns" '
        f'width="{right + 64}" height="{bottom + 6}">{"".join(parts)}</svg>'
    )


def histogram(scores: Sequence[float]) -> str:
    import numpy as np

    counts, edges = np.histogram(np.asarray(scores, dtype=np.float64), bins=min(24, len(scores)))
    bars = "".join(
        f'<i style="height:{100 * count / counts.max():.1f}%" title="{count} from {low:.4g} to {high:.4g}"></i>'
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
    )
    label = f"{len(scores)} scores from {edges[0]:.4g} to {edges[-1]:.4g}, median {np.median(scores):.4g}"
    return (
        f'<div class="histogram" role="img" aria-label="Distribution of {label}">{bars}</div>'
        f'<p class="soft range"><span>{edges[0]:.4g}</span><span>{label}; the highest bar: {counts.max()}</span>'
        f"<span>{edges[-1]:.4g}</span></p>"
    )

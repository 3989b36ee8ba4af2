"""Score predictions and explain the scores: which units were matched, and at what cost."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from movers.errors import InputError
from movers.inputs import check_pairs
from movers.registry import METRICS, parse_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.languages import language_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explainer", "Explanation", "Report", "explain", "report"]

SUPPORTED = 0.4  # minimum cosine of a supported summary sentence with the nearest sentence of the document
REPEATED = 0.3  # minimum share of a repeated sentence's word pairs that occurred earlier in the summary
_NOTES = {
    "": "Mass moves from the prediction to the reference. Width of a line: mass; its label: distance.",
    "greedy": "Every token takes its best partner, as in BERTScore's precision. Marked ×: matched more than once.",
    "one-to-one": "Each token is matched at most once.",
    "one-to-many": "Token mass may be split over several tokens (soft alignment).",
    "summary": "Every sentence of the summary is joined with the nearest of the document. Width: their cosine; label: "
    f"1 − cosine. Unsupported: cosine below {SUPPORTED}, or a name, number or negation that is not in the document. "
    f"Covered: a sentence of the summary is near. Repeated: at least {REPEATED:.0%} of its word pairs stood in "
    "the summary before.",
}
FLAGS = {
    "empty": "Empty: a text has no word",
    "unfiltered": "Unfiltered: the filters left nothing of a text, so all its words were compared",
    "truncated": "Cut: a text was longer than the encoder reads",
    "unknown": "Unknown: a text has words or pieces that the encoder does not know",
}
_LONG = 90  # units per side above which words are set as running text
_SHOWN = 60  # flows drawn initially
_LABELLED = 60  # units per side up to which a matrix is drawn
_LISTED = 200  # rows listed per flag
MARKS = {"supported": "✓ supported", "unsupported": "✗ unsupported", "repeated": "↻ repeated", "covered": "✓ covered",
         "twice": "×"}  # fmt: skip


def about(metric: str) -> dict[str, Any]:
    """`paper`, `doi`, `about` and `examples` of a metric; empty for one that is not ours."""
    file = resources.files("movers").joinpath("data", "about.json")
    metrics: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return metrics.get(metric, {"paper": "", "doi": "", "about": "", "examples": []})


@dataclass(frozen=True)
class Unit:
    """A word, token, n-gram or sentence; `sentence` is the index of its sentence, `weight` its share of the mass."""

    text: str
    kind: str
    sentence: int
    weight: float
    mark: str = ""  # one of MARKS
    note: str = ""  # shown on hover and focus
    unknown: Sequence[str] = ()  # names, numbers and negations of a summary's sentence that the document does not have
    start: int | None = None  # character offsets, where known
    end: int | None = None

    @property
    def label(self) -> str:
        return f"sentence {self.sentence + 1}" if self.kind == "sentence" else shorten(self.text, 16)


def in_order(units: Sequence[Unit]) -> list[int]:
    """Indices of the units, each sentence before its words."""
    return sorted(range(len(units)), key=lambda index: (units[index].sentence, units[index].kind != "sentence", index))


@dataclass(frozen=True)
class Flow:
    """Mass that moves from unit i of one text to unit j of the other, as a share of the total, and its cost."""

    i: int
    j: int
    share: float
    cost: float


@dataclass(frozen=True)
class Panel:
    """One alignment of two texts; `measure` says what the share of a flow is."""

    title: str
    note: str
    left: Sequence[Unit]
    right: Sequence[Unit]
    flows: Sequence[Flow]
    names: tuple[str, str] = ("Prediction", "Reference")
    measure: str = "mass"
    dropped: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # side → units, with the reason

    def __post_init__(self) -> None:
        object.__setattr__(self, "flows", sorted(self.flows, key=lambda flow: (-flow.share, flow.i, flow.j)))


@dataclass(frozen=True)
class Picture:
    """One prediction and one reference or document: one or several panels, with the matrix of each or without."""

    title: str
    texts: tuple[str, str]  # as written
    panels: Sequence[Panel]
    matrix: bool = False

    @property
    def costs(self) -> tuple[float, float]:
        """The lowest and the highest cost of its flows: one scale of colours for all panels."""
        costs = [flow.cost for panel in self.panels for flow in panel.flows] or [0.0]
        return min(costs), max(costs)


@dataclass(frozen=True)
class Explanation:
    """A scored prediction with one picture per reference or document, the best first, and further `numbers`.

    It displays itself in a notebook, `print` shows its largest flows, and `save` writes HTML, SVG, PNG or JSON.
    """

    metric: str
    score: float
    numbers: Mapping[str, float]
    flags: Sequence[str]
    signature: str
    prediction: str
    compared_with: Sequence[str]
    pictures: Sequence[Picture]
    warning: str = ""  # about the language of the texts

    @property
    def title(self) -> str:
        return METRICS[self.metric].title

    def _body(self) -> str:
        flags = "".join(f'<p><span class="flag">{FLAGS[flag]}.</span></p>' for flag in self.flags)
        flags += f'<p><span class="flag">{escape(self.warning)}.</span></p>' if self.warning else ""
        head = _heading(self.title, {"score": self.score, **self.numbers})
        return f"{head}{flags}\n{pictures(self)}\n{_signature(self)}"

    def html(self) -> str:
        """A self-contained HTML page."""
        return document(f"{self.title}: {self.score:.4g}", self._body())

    def _repr_html_(self) -> str:
        return frame(self._body(), f"{self.title}: what was matched")

    def figure(self, number: int = 0) -> Figure:
        """Draw a picture with matplotlib."""
        from movers.pictures.figures import draw

        return draw(self, self.pictures[number])

    def save(self, path: str | Path) -> None:
        """Write `.html`, `.svg`, `.png` or `.json`."""
        from movers.io import write_file
        from movers.pictures.figures import image

        suffix = Path(path).suffix.lower()
        content: str | bytes
        if suffix == ".html":
            content = self.html()
        elif suffix == ".json":
            content = json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"
        elif suffix in (".svg", ".png"):
            content = image(self.figure(), suffix[1:])
        else:
            raise InputError(f"{path}: cannot write it: expected a name that ends in .html, .svg, .png or .json")
        write_file(path, content)

    def __str__(self) -> str:
        from movers.io import align_table

        lines = [f"{self.signature} = {self.score:.4g}"]
        lines += [f"  {name}: {value:.4g}" for name, value in self.numbers.items()]
        lines += [f"  {flag}" for flag in self.flags]
        for picture in self.pictures:
            for panel in picture.panels:
                title = f"{picture.title} {panel.title}".strip()
                lines += ["", title] if title else [""]
                rows = []
                for flow in panel.flows[:12]:
                    texts = shorten(panel.left[flow.i].text, 44), shorten(panel.right[flow.j].text, 44)
                    rows.append([*texts, f"{flow.share:.1%}", f"{flow.cost:.3g}"])
                lines += align_table([*panel.names, panel.measure, "distance"], rows, {2, 3})
                if len(panel.flows) > 12:
                    lines.append(f"… and {len(panel.flows) - 12} more, shown by a saved picture")
                for side, units in panel.dropped.items():
                    texts_by_reason: dict[str, list[str]] = {}
                    for unit in units:
                        texts_by_reason.setdefault(unit["reason"], []).append(unit["text"])
                    for reason, words in texts_by_reason.items():
                        lines.append(f"dropped from the {side} ({reason}): {' '.join(words)}")
        return "\n".join(lines)


def digits(value: float) -> str:
    """A number as pages and pictures show it.

    >>> digits(0.64789)
    '0.648'
    """
    return f"{value:z.3f}"


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def explain(
    metric: str,
    prediction: str,
    reference: str | Sequence[str] | None = None,
    *,
    source: str | Sequence[str] | None = None,
    **options: object,
) -> Explanation:
    """Score one prediction by `NAME` or `NAME[key=value,…]` and show its alignment.

    The reference-free metric compares with the `source`, the document, the others with the `reference`.

    >>> explanation = explain("wms", "Snow melts.", "Snow melts.")
    >>> explanation.score, [flow.cost for flow in explanation.pictures[0].panels[0].flows]
    (1.0, [0.0, 0.0])
    """
    spec, _ = parse_metric(metric)
    argument = spec.compared_with.removesuffix("s")
    texts, unused = (source, reference) if argument == "source" else (reference, source)
    if texts is None or unused is not None:
        raise InputError(f"{spec.name}: explain: expected `{argument}`, the text to compare with, and no other text")
    group = [texts] if isinstance(texts, str) else texts
    (checked,), (others,) = check_pairs(spec.name, [prediction], [group], spec.compared_with)
    row = Row(checked, **{spec.compared_with: others})
    return Explainer(metric, options, [row]).explain([row])[0]


class Explainer:
    """A metric built once, with the alignments that its pictures show; `idf="corpus"` needs all `rows` first."""

    def __init__(self, metric: str, options: Mapping[str, object], rows: Iterable[Row] = ()) -> None:
        self.spec, named = parse_metric(metric)
        options = {"progress": False, **named, **options, "return_alignment": True}
        self.label = self.spec.name
        self.panels = {self.label: ""}  # label of a metric in the scorer → title of its panel
        if self.label.startswith("bertscore"):
            alignment = getattr(self.spec.parse(options), "alignment", "optimal")
            self.panels = {
                f"{self.label}[alignment=greedy]": "greedy",
                "bertscore_hungarian[alignment=optimal]": "one-to-one",
                "bertscore_emd[alignment=optimal]": "one-to-many",
            }
            self.label += f"[alignment={alignment}]"
        self.scorer = Scorer(list(self.panels), **options).prepare(rows)

    def explain(self, rows: Sequence[Row]) -> list[Explanation]:
        return list(map(self._explanation, rows, self.scorer.stream(rows, total=len(rows))))

    def _explanation(self, row: Row, columns: Sequence[Example]) -> Explanation:
        examples = dict(zip(self.panels, columns, strict=True))
        texts = getattr(row, self.spec.compared_with)
        example = examples[self.label]
        alignments: Sequence[Mapping[str, Any]] = example.alignments or []
        order = sorted(range(len(texts)), key=lambda index: -alignments[index]["score"])
        numbers = dict(example.parts)
        if len(self.panels) == 1 and alignments[order[0]].get("distance") is not None:
            numbers["distance"] = alignments[order[0]]["distance"]
        side, pictures = "Document" if self.spec.compared_with == "sources" else "Reference", []
        for index in order:
            title = f"{side} {index + 1} of {len(texts)}: {alignments[index]['score']:.4g}" if len(texts) > 1 else ""
            panels = {self.panels[label]: (other.alignments or [])[index] for label, other in examples.items()}
            pictures.append(_picture(title, (row.prediction, texts[index]), panels))
        flags = [flag for flag in FLAGS if getattr(example, flag)]
        signature = self.scorer.signatures[self.label]
        warning = language_problem(self.scorer.metrics[self.label], [row.prediction, *texts])
        return Explanation(
            self.spec.name, example.score, numbers, flags, signature, row.prediction, texts, pictures, warning
        )


def _picture(title: str, texts: tuple[str, str], alignments: Mapping[str, Mapping[str, Any]]) -> Picture:
    first = next(iter(alignments.values()))
    if "flows" not in first:
        return Picture(title, texts, [_summary_panel(first, *texts)] if first.get("summary") else [])
    matrix = any(unit["kind"] in ("word", "sentence") for unit in first["prediction"])
    return Picture(title, texts, [_transport_panel(alignment, name) for name, alignment in alignments.items()], matrix)


def _transport_panel(alignment: Mapping[str, Any], name: str) -> Panel:
    total = sum(flow["mass"] for flow in alignment["flows"]) or 1.0
    flows = [Flow(flow["i"], flow["j"], flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]]
    left, right = ([Unit(**unit) for unit in alignment[side]] for side in ("prediction", "reference"))
    if name == "greedy":
        for index, count in Counter(flow.j for flow in flows).items():
            if count > 1:
                right[index] = replace(right[index], mark="twice", note=f"matched {count} times")
    title = f"{name}: F1 {alignment['score']:.4g}" if name else ""
    return Panel(title, _NOTES[name], left, right, flows, dropped=alignment["dropped"])


def _locate(text: str, sentences: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Start and end of each sentence; white space inside it may differ from that of the text."""
    spans, end = [], 0
    for sentence in sentences:
        found = re.compile(r"\s*".join(map(re.escape, sentence["text"].split()))).search(text, end)
        start, end = found.span() if found else (end, end)
        spans.append((start, end))
    return spans


def _summary_panel(alignment: Mapping[str, Any], *texts: str) -> Panel:
    """Sentences of the summary, each joined with the nearest sentence of the document; the width is the support."""
    summary, document = alignment["summary"], alignment["document"]
    spans, document_spans = map(_locate, texts, (summary, document))
    left, flows = [], []
    seen: set[tuple[str, str]] = set()
    for index, sentence in enumerate(summary):
        support = sentence.get("support", 0.0)
        unknown = sentence.get("unknown", [])
        mark = "supported" if support >= SUPPORTED and not unknown else "unsupported"
        note = f"{mark}: cosine {support:.2f} with the nearest sentence of the document"
        if unknown:
            note += f"; not in the document: {', '.join(unknown)}"
        words = re.findall(r"\w+", sentence["text"].lower())
        pairs = list(zip(words, words[1:], strict=False))
        repeated = sum(pair in seen for pair in pairs) / max(1, len(pairs))
        seen.update(pairs)
        if repeated >= REPEATED:
            mark = "repeated"
            note += f"; repeated: {repeated:.0%} of its word pairs stood in the summary before"
        left.append(
            Unit(sentence["text"], "sentence", index, 1 / len(summary), mark, note, unknown, *spans[index])
        )
        if "nearest" in sentence:
            flows.append(Flow(index, sentence["nearest"], max(support, 0.0), 1.0 - support))
    right = [
        Unit(one["text"], "sentence", index, 1 / len(document), "covered" if one.get("covered") else "", "", (), *span)
        for index, (one, span) in enumerate(zip(document, document_spans, strict=True))
    ]
    return Panel("", _NOTES["summary"], left, right, flows, ("Summary", "Document"), "cosine")


@dataclass(frozen=True)
class Report:
    """Scored rows: all scores, flag → numbers of the flagged rows, the best and the worst; row numbers begin at 0."""

    scores: Sequence[float]
    flagged: Mapping[str, Sequence[int]]
    best: Sequence[tuple[int, Explanation]]
    worst: Sequence[tuple[int, Explanation]]

    @property
    def signature(self) -> str:
        return self.best[0][1].signature

    def html(self) -> str:
        """A self-contained HTML page."""
        return document(f"{self.best[0][1].title}: report of {len(self.scores)} rows", self.body())

    def body(self) -> str:
        """The content of the page."""
        count, ordered = len(self.scores), sorted(self.scores)
        numbers = {"mean": math.fsum(ordered) / count, "lowest": ordered[0], "highest": ordered[-1], "rows": count}
        first = self.best[0][1]
        parts = [_heading(first.title, numbers), histogram(self.scores), "<h2>Rows to look at</h2>"]
        for flag, rows in self.flagged.items():
            listed = "; rows " + ", ".join(str(row + 1) for row in rows[:_LISTED]) + " …" * (len(rows) > _LISTED)
            parts.append(f"<p>{FLAGS[flag]}: {len(rows)} of {count}{listed if rows else ''}</p>")
        for name, explanations in (("best", self.best), ("worst", self.worst)):
            parts.append(f"<h2>The {len(explanations)} {name} rows</h2>")
            for number, explanation in explanations:
                text = escape(shorten(explanation.prediction.strip(), 110) or "(blank)")
                summary = f"<summary>Row {number + 1}: <strong>{explanation.score:.4g}</strong> {text}</summary>"
                parts.append(f'<details class="row">{summary}{pictures(explanation)}</details>')
        return "\n".join([*parts, _signature(first)])


def report(metric: str, rows: Iterable[Row], *, total: int | None = None, most: int = 10, **options: object) -> Report:
    """Score rows (iterated more than once) and explain the `most` best and worst.

    >>> rows = [Row("Snow melts.", ["Snow melts."]), Row("Shares fell.", ["Snow melts."])]
    >>> snow = report("wms", rows, most=1)
    >>> [(number, explanation.score == 1) for number, explanation in [*snow.best, *snow.worst]]
    [(0, True), (1, False)]
    """
    scores = array("d")
    flagged: dict[str, list[int]] = {flag: [] for flag in FLAGS}
    for number, (example,) in enumerate(Scorer(metric, **options).prepare(rows).stream(rows, total=total)):
        scores.append(example.score)
        for flag, numbers in flagged.items():
            if getattr(example, flag):
                numbers.append(number)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    best, worst = order[:most], order[most:][::-1][:most]
    chosen = {number: row for number, row in enumerate(rows) if number in {*best, *worst}}
    explanations = dict(zip(chosen, Explainer(metric, options, rows).explain(list(chosen.values())), strict=True))
    rows_of = ([(number, explanations[number]) for number in numbers] for numbers in (best, worst))
    return Report(scores, flagged, *rows_of)


# --- HTML: self-contained, with inline styles and script; without JavaScript only the lines are missing ---


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


def frame(body: str, title: str, height: int = 700) -> str:
    """An iframe, so that styles and scripts do not mix with those of the page around it."""
    return (
        f'<iframe class="movers-frame" title="{title}" sandbox="allow-scripts" '
        f'style="width:100%;height:{height}px;border:0" srcdoc="{escape(document(title, body))}"></iframe>'
    )


def _heading(title: str, numbers: Mapping[str, float]) -> str:
    items = "".join(f"<li><b>{value:.4g}</b><span>{name}</span></li>" for name, value in numbers.items())
    return f'<h1>{escape(title)}</h1>\n<ul class="numbers">{items}</ul>'


def _signature(explanation: Explanation) -> str:
    facts = about(explanation.metric)
    paper = f'\n<p class="soft">{escape(facts["paper"])} doi:{escape(facts["doi"])}</p>' if facts["paper"] else ""
    return f"<h2>Signature</h2>\n<p><code>{escape(explanation.signature)}</code></p>{paper}"


def pictures(explanation: Explanation) -> str:
    """The picture of the best reference, with the others collapsed below."""
    first, *others = explanation.pictures
    folded = [f"<details><summary>{escape(other.title)}</summary>{_picture_html(other)}</details>" for other in others]
    return "\n".join([f"<h2>{escape(first.title)}</h2>" if first.title else "", _picture_html(first), *folded])


def marked_texts(explanation: Explanation) -> str:
    """Summary and (nearest) document as written: unsupported facts and sentences and covered sentences are marked."""
    return _marked_texts(explanation.pictures[0])


def _marked_texts(picture: Picture) -> str:
    texts = [escape(text) for text in picture.texts]
    legend = "This model scores the texts as a whole: no sentence is marked."
    if picture.panels:
        panel = picture.panels[0]
        support = {flow.i: 1 - flow.cost for flow in panel.flows}
        titles = {number: f"cosine {digits(value)} with the nearest sentence of the document"
                  for number, value in support.items() if value < SUPPORTED}  # fmt: skip
        covered = {number: "a sentence of the summary is near" for number, unit in enumerate(panel.right) if unit.mark}
        texts = [
            _with_marks(picture.texts[0], panel.left, "unsupported", titles),
            _with_marks(picture.texts[1], panel.right, "covered", covered),
        ]
        legend = (
            '<b class="unsupported">Unsupported</b>: a sentence far from all of the document, or a name, number or '
            'negation that the document does not have. <b class="covered">Covered</b>: the summary says it.'
        )
    return (
        f'<div class="marked"><div><strong>Summary</strong><p class="running">{texts[0]}</p></div>'
        f'<div><strong>Document</strong><p class="running">{texts[1]}</p></div><p class="soft">{legend}</p></div>'
    )


def _with_marks(text: str, sentences: Sequence[Unit], name: str, titles: Mapping[int, str]) -> str:
    """The text, its sentences with a title and its unknown facts in `<mark>`s with that class."""
    parts, place = [], 0
    for number, sentence in enumerate(sentences):
        start, end = sentence.start or 0, sentence.end or 0
        parts.append(escape(text[place:start]))
        title = titles.get(number)
        parts.append(f'<mark class="{name}" title="{title}">' if title else "")
        place = start
        for fact in sentence.unknown:
            written = re.escape(fact).replace("n't", r"\s?n't")
            found = re.compile(rf"(?<![0-9A-Za-z]){written}(?![0-9A-Za-z])").search(text, place, end)
            if found:
                parts.append(escape(text[place : found.start()]))
                parts.append(f'<mark class="{name}" title="not in the document">{escape(found[0])}</mark>')
                place = found.end()
        parts.append(escape(text[place:end]) + ("</mark>" if title else ""))
        place = end
    return "".join(parts) + escape(text[place:])


def _picture_html(picture: Picture) -> str:
    if not any(panel.flows for panel in picture.panels):
        return '<p class="soft">Nothing was matched: one of the texts has no words.</p>'
    columns, (low, high) = len(picture.panels), picture.costs
    panels = "\n".join(_panel(panel, picture.matrix) for panel in picture.panels)
    return (
        f'<div class="panels{" several" if columns > 1 else ""}" style="--columns:{columns}" '
        f'data-low="{low:.6f}" data-high="{high:.6f}">\n{panels}\n</div>'
    )


def _panel(panel: Panel, with_matrix: bool) -> str:
    size = max(len(panel.left), len(panel.right))
    sentences = any(unit.kind == "sentence" for unit in panel.left)
    layout = "long" if size > _LONG else "sentences" if sentences else "short"
    matrix = _folded("Transport plan T", _matrix(panel)) if with_matrix and size <= _LABELLED else ""
    heads = "".join(f'<th scope="col">{name}</th>' for name in (*panel.names, panel.measure, "distance"))
    rows = "".join(
        f"<tr><td>{escape(panel.left[flow.i].text)}</td><td>{escape(panel.right[flow.j].text)}</td>"
        f'<td class="n">{100 * flow.share:.3g} %</td><td class="n">{flow.cost:.4g}</td></tr>'
        for flow in panel.flows
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    flows = [[flow.i, flow.j, round(flow.share, 6), round(flow.cost, 6)] for flow in panel.flows]
    return (
        f'<section class="panel" data-measure="{panel.measure}">{f"<h3>{panel.title}</h3>" if panel.title else ""}'
        f'<p class="soft">{panel.note} Colour: from near (blue) to far (orange).</p>'
        '<label class="slider">Flows shown, strongest first <input '
        f'type="range" min="1" max="{len(flows)}" value="{min(len(flows), _SHOWN)}"> <output></output></label>'
        f'<div><div class="canvas {layout}"><svg aria-hidden="true"></svg>'
        f"{_side('left', panel.names[0], panel.left)}{_side('right', panel.names[1], panel.right)}</div>"
        '<p class="detail" role="status">Point at a unit, or move to one with Tab and the arrow keys, to read what it '
        f"was matched with.</p></div>{matrix}{_folded(f'All {len(flows)} flows as a table', table)}"
        f'<script type="application/json">{json.dumps(flows, separators=(",", ":"))}</script></section>'
    )


def _folded(name: str, content: str) -> str:
    return (
        f"<details><summary>{name}</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{content}</div></details>'
    )


def _side(side: str, name: str, units: Sequence[Unit]) -> str:
    order = in_order(units)
    items = "".join(
        f'<li class="unit {units[index].kind} {units[index].mark}" role="option" aria-selected="false" '
        f'tabindex="{0 if index == order[0] else -1}" data-n="{index}" data-weight="{units[index].weight:.6g}" '
        f'data-note="{units[index].note}"><span class="text">{escape(units[index].text)}</span>'
        f"{f'<span class=mark>{MARKS[units[index].mark]}</span>' if units[index].mark else ''}</li>"
        for index in order
    )
    units_list = f'<ul class="units" role="listbox" aria-label="Units of the {name.lower()}">{items}</ul>'
    return f'<div class="side {side}"><strong>{name}</strong>{units_list}</div>'


def _matrix(panel: Panel) -> str:
    """Clark et al.'s Fig. 2: the plan T with blocks of words and sentences; its numbers are in the table of flows."""
    shares = {(flow.i, flow.j): 15 + 85 * flow.share / panel.flows[0].share for flow in panel.flows}
    sides = panel.left, panel.right
    first_row, first_column = (sum(unit.kind != "sentence" for unit in units) % len(units) for units in sides)
    block = ' class="block"'  # the line between words and sentences
    columns = "".join(f"<col{block * (0 < j == first_column)}>" for j in range(len(panel.right)))
    rows = "".join(f"<th>{escape(unit.label)}</th>" for unit in panel.right)
    for i, unit in enumerate(panel.left):
        rows += f"<tr{block * (0 < i == first_row)}><th>{escape(unit.label)}</th>"
        for j in range(len(panel.right)):
            rows += f'<td class="cell" style="--share:{shares[i, j]:.0f}%"></td>' if (i, j) in shares else "<td></td>"
    return f'<table class="matrix" aria-hidden="true"><colgroup><col>{columns}</colgroup><tr><td></td>{rows}</table>'


def histogram(scores: Sequence[float]) -> str:
    counts, edges = np.histogram(np.asarray(scores, dtype=np.float64), bins=min(24, len(scores)))
    bars = "".join(
        f'<i style="height:{100 * count / counts.max():.1f}%" title="{count} from {low:.4g} to {high:.4g}"></i>'
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
    )
    label = f"{len(scores)} scores from {edges[0]:.4g} to {edges[-1]:.4g}, median {np.median(scores):.4g}"
    return f'<div class="histogram" role="img" aria-label="Histogram of scores">{bars}</div><p class="soft">{label}</p>'

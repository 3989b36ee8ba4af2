"""Score predictions and explain the scores: which units were matched, and at what cost."""

from __future__ import annotations

import json
import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import cached_property
from html import escape, unescape
from importlib import resources
from itertools import groupby, pairwise
from operator import itemgetter
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
    "": "",
    "greedy": "Every token takes its best partner, as in BERTScore's precision. Marked ×: matched more than once.",
    "one-to-one": "Each token is matched at most once.",
    "one-to-many": "Token mass may be split over several tokens (soft alignment).",
    "summary": "Every sentence of the summary is joined with the nearest sentence of the document.",
}
FLAGS = {
    "empty": "Empty: a text has no word",
    "unfiltered": "Unfiltered: the filters left nothing of a text, so all its words were compared",
    "truncated": "Cut: a text was longer than the encoder reads",
    "unknown": "Unknown: a text has words or pieces that the encoder does not know",
}
COLUMN = 50  # units per side up to which all are listed
DRAWN = 50  # strongest flows, drawn at first
LABELS = 10  # strongest flows, labelled at first
_LISTED = 200  # rows listed per flag
_Texts = str | Sequence[str] | None
MARKS = {"supported": "✓", "unsupported": "✗", "repeated": "↻", "covered": "✓", "twice": "×"}


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
    start: int  # character offsets
    end: int
    weight: float = 0.0
    mark: str = ""  # "dropped" or one of MARKS
    reason: str = ""  # why it is marked


def pieces(text: str, units: Sequence[Unit]) -> list[tuple[str, int | None]]:
    """The whole text in pieces, each with the index of its unit: a word, or a sentence where no words are matched.

    A word type has one unit, with the offsets of its first occurrence; later occurrences belong to it too.
    """
    types = {unit.text.lower(): index for index, unit in enumerate(units) if unit.kind == "word" and not unit.mark}
    order = [index for index, unit in enumerate(units) if unit.kind != "sentence" or not types]
    words = [match.span() for match in re.finditer(r"\w+|\S", text)]
    cuts = sorted({0, len(text)}.union(*words, *((unit.start, unit.end) for unit in units)))
    owner: dict[int, int] = {}
    for index in sorted(order, key=lambda index: (units[index].mark != "dropped", units[index].kind == "sentence")):
        for start in cuts[bisect_left(cuts, units[index].start) : bisect_left(cuts, units[index].end)]:
            owner.setdefault(start, index)
    parts = ((start, text[start:end]) for start, end in pairwise(cuts))
    owned = [(part, owner.get(start, types.get(part.lower()))) for start, part in parts]
    return [("".join(part for part, _ in group), index) for index, group in groupby(owned, key=itemgetter(1))]


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
    flows: Sequence[Flow]  # the strongest first
    dropped: tuple[Sequence[Unit], Sequence[Unit]] = ((), ())
    names: tuple[str, str] = ("Prediction", "Reference")
    measure: str = "mass"

    @property
    def sides(self) -> tuple[Sequence[Unit], Sequence[Unit]]:
        return self.left, self.right

    def column(self, side: int) -> list[int]:
        """Indices of a side's units as they are listed, sentences before their words; of many, those with lines."""
        units, joined = self.sides[side], {(flow.i, flow.j)[side] for flow in self.flows[:DRAWN]}
        shown = [index for index in range(len(units)) if len(units) <= COLUMN or index in joined]
        return sorted(shown, key=lambda n: (units[n].sentence, units[n].kind != "sentence", units[n].start))

    def not_compared(self, side: int) -> str:
        """The dropped words of a side, with the reasons."""
        words = sorted({(unit.reason, unit.text) for unit in self.dropped[side] if unit.kind != "special"})
        groups = groupby(words, key=itemgetter(0))
        parts = [f"{reason}: {shorten(' '.join(word for _, word in group), 200)}" for reason, group in groups]
        return f"Not compared – {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class Picture:
    """One prediction and one reference or document: one or several panels."""

    title: str
    texts: tuple[str, str]  # as written
    panels: Sequence[Panel]
    main: int = 0  # the panel whose score is the metric's

    @cached_property
    def farthest(self) -> float:
        """The highest cost of its flows."""
        return max((flow.cost for panel in self.panels for flow in panel.flows), default=0.0)

    def tint(self, cost: float) -> int:
        """The colour of a cost, the same in all panels, lines and matrices: from 0 (equal) to 100 (the farthest)."""
        return round(100 * max(cost, 0.0) / max(self.farthest, 0.001))

    @property
    def remark(self) -> str:
        """What the lines alone do not show."""
        if not any(panel.flows for panel in self.panels):
            return "Nothing was matched: one of the texts has no words, or the model scores whole texts."
        if self.farthest < 0.0005 and self.texts[0] != self.texts[1]:
            return "All that is compared is equal. The texts differ only in grey words, word order or capitals."
        return ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """A scored prediction with one picture per reference or document, the best first, and further `numbers`.

    It displays itself in a notebook, `print` shows its strongest matches, and `save` writes HTML, SVG, PNG or JSON.
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
        notes = [FLAGS[flag] for flag in self.flags] + ([self.warning] if self.warning else [])
        flags = "".join(f'<p><span class="flag">{escape(note)}.</span></p>' for note in notes)
        head = _heading(self.title, {"score": self.score, **self.numbers})
        return f"{head}{flags}\n{pictures(self)}\n{_details(self, self.numbers.get('distance'))}"

    def html(self) -> str:
        """A self-contained HTML page."""
        return document(f"{self.title}: {digits(self.score)}", self._body())

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
        if suffix in (".svg", ".png"):
            write_file(path, image(self.figure(), suffix[1:]))
        elif suffix == ".json":
            write_file(path, json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n")
        elif suffix == ".html":
            write_file(path, self.html())
        else:
            raise InputError(f"{path}: cannot write it: expected a name that ends in .html, .svg, .png or .json")

    def __repr__(self) -> str:
        from movers.io import printable

        panel = self.pictures[0].panels[self.pictures[0].main]
        ends = [(panel.left[flow.i].text, panel.right[flow.j].text, digits(flow.cost)) for flow in panel.flows[:3]]
        shown = [f"{shorten(first, 32)} → {shorten(second, 32)} ({cost})" for first, second, cost in ends]
        dropped = [unit.text for units in panel.dropped for unit in units if unit.reason == "stop word"]
        shown += [f"not compared: {shorten(' '.join(dropped), 48)}"] if dropped else []
        facts = dict.fromkeys(unit.text for unit in panel.left if unit.kind == "fact")
        shown += [f"not in the document: {shorten(' '.join(facts), 48)}"] if facts else []
        shown += [] if panel.flows else [self.pictures[0].remark]
        return printable(f"{self.metric} {digits(self.score)}: {', '.join(shown)}", "")


def digits(value: float) -> str:
    """A number as pages and pictures show it: 0.648."""
    return f"{value:z.3f}"


def shorten(text: str, width: int) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def explain(
    metric: str, prediction: str, reference: _Texts = None, *, source: _Texts = None, **options: object
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
        raise InputError(f"{spec.name}: explain: pass {argument}=, the text to compare with, and nothing else")
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
        numbers = {**example.parts, **({} if example.distance is None else {"distance": example.distance})}
        side, pictures = "Document" if self.spec.compared_with == "sources" else "Reference", []
        metric, main = self.scorer.metrics[self.label], list(self.panels).index(self.label)
        as_read = unescape if getattr(metric.options, "unescape", False) else str
        for index in order:
            place = f"{side} {index + 1} of {len(texts)}: "
            title = place + digits(alignments[index]["score"]) if len(texts) > 1 else ""
            panels = {self.panels[label]: (other.alignments or [])[index] for label, other in examples.items()}
            both = as_read(row.prediction), as_read(texts[index])
            drawn = [_transport_panel(alignment, name) if "flows" in alignment else _summary_panel(alignment, *both)
                     for name, alignment in panels.items()]  # fmt: skip
            pictures.append(Picture(title, both, drawn, main))
        flags = [flag for flag in FLAGS if getattr(example, flag)]
        warning = language_problem(metric, [row.prediction, *texts])
        return Explanation(
            self.spec.name, example.score, numbers, flags, metric.signature, row.prediction, texts, pictures, warning
        )


def _transport_panel(alignment: Mapping[str, Any], name: str) -> Panel:
    total = sum(flow["mass"] for flow in alignment["flows"]) or 1.0
    flows = [Flow(flow["i"], flow["j"], flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]]
    sides = ("prediction", "reference")
    left, right = ([Unit(**unit) for unit in alignment[side]] for side in sides)
    first, second = ([Unit(**unit, mark="dropped") for unit in alignment["dropped"][side]] for side in sides)
    if name == "greedy":
        for index, count in Counter(flow.j for flow in flows).items():
            if count > 1:
                right[index] = replace(right[index], mark="twice", reason=f"matched {count} times")
    title = f"{name}: F1 {digits(alignment['score'])}" if name else ""
    return Panel(title, _NOTES[name], left, right, sorted(flows, key=lambda flow: -flow.share), (first, second))


def _find(text: str, passage: str, start: int, end: int) -> tuple[int, int]:
    """Start and end of a sentence or word in a text, whatever its white space; an empty span if it is not there."""
    inside = r"(?!(?<=[0-9A-Za-z])[0-9A-Za-z])"  # a 9 is not in 1999
    pattern = r"\s*".join(map(re.escape, passage.replace("n't", " n't").split()))
    match = re.compile(inside + pattern + inside).search(text, start, end)
    return match.span() if match else (start, start)


def _summary_panel(alignment: Mapping[str, Any], summary: str, document: str) -> Panel:
    """Sentences of the summary, each joined with the nearest sentence of the document; the width is the support."""
    left, right, facts, flows = [], [], [], []
    seen: set[tuple[str, str]] = set()
    sentences, end = alignment.get("summary", []), 0
    for index, sentence in enumerate(sentences):
        start, end = _find(summary, sentence["text"], end, len(summary))
        support, unknown = sentence.get("support", 0.0), sentence.get("unknown", [])
        mark = "unsupported" if support < SUPPORTED else "" if unknown else "supported"
        note = f"cosine {digits(support)} with the nearest sentence of the document"
        pairs = set(pairwise(re.findall(r"\w+", sentence["text"].lower())))
        if pairs and len(pairs & seen) >= REPEATED * len(pairs):
            mark, note = "repeated", f"{note}; many of its word pairs stood in the summary before"
        seen |= pairs
        left.append(Unit(sentence["text"], "sentence", index, start, end, 1 / len(sentences), mark, note))
        for fact in unknown:
            start, place = _find(summary, fact, start, end)
            facts.append(Unit(fact, "fact", index, start, place, 0.0, "unsupported", "not in the document"))
            start = place
        if "nearest" in sentence:
            flows.append(Flow(index, sentence["nearest"], max(support, 0.0), 1.0 - support))
    sentences, end = alignment.get("document", []), 0
    for index, sentence in enumerate(sentences):
        start, end = _find(document, sentence["text"], end, len(document))
        mark = "covered" if sentence.get("covered") else ""
        note = f"cosine {digits(sentence.get('coverage', 0.0))} with the nearest sentence of the summary"
        right.append(Unit(sentence["text"], "sentence", index, start, end, 1 / len(sentences), mark, note))
    flows.sort(key=lambda flow: -flow.share)
    return Panel("", _NOTES["summary"], [*left, *facts], right, flows, names=("Summary", "Document"), measure="cosine")


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
        numbers = {"mean": math.fsum(ordered) / count, "lowest": ordered[0], "highest": ordered[-1]}
        first = self.best[0][1]
        parts = [_heading(first.title, numbers), histogram(self.scores), "<h2>Rows to look at</h2>"]
        for flag, rows in self.flagged.items():
            listed = "; rows " + ", ".join(str(row + 1) for row in rows[:_LISTED]) + " …" * (len(rows) > _LISTED)
            parts.append(f"<p>{FLAGS[flag]}: {len(rows)} of {count}{listed if rows else ''}</p>")
        for name, explanations in (("best", self.best), ("worst", self.worst)):
            parts.append(f"<h2>The {len(explanations)} {name} rows</h2>" if explanations else "")
            for number, explanation in explanations:
                best = explanation.pictures[0]
                texts = zip(best.panels[0].names, best.texts, strict=True)
                lines = "".join(f"<br>{name}: {escape(shorten(text, 110)) or '(blank)'}" for name, text in texts)
                summary = f"<summary>Row {number + 1}: <strong>{digits(explanation.score)}</strong>{lines}</summary>"
                parts.append(f'<details class="row">{summary}{pictures(explanation)}</details>')
        return "\n".join([*parts, _details(first)])


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


# --- HTML: self-contained, with inline styles and script; the script draws lines and matrices ---


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


def frame(body: str, title: str) -> str:
    """An iframe, so that styles and scripts do not mix with those of the page around it."""
    return (
        f'<iframe class="movers-frame" title="{title}" sandbox="allow-scripts" '
        f'style="width:100%;height:700px;border:0" srcdoc="{escape(document(title, body))}"></iframe>'
    )


def _heading(title: str, numbers: Mapping[str, float]) -> str:
    shown = {name: digits(value) for name, value in numbers.items() if name != "distance"}
    items = "".join(f"<li><b>{value}</b><span>{name}</span></li>" for name, value in shown.items())
    return f'<h1>{escape(title)}</h1>\n<ul class="numbers">{items}</ul>'


def _details(explanation: Explanation, distance: float | None = None) -> str:
    facts = about(explanation.metric)
    lines = [f"Distance, on the paper's own scale: {digits(distance)}"] if distance is not None else []
    lines.append(f"Signature: <code>{escape(explanation.signature)}</code>")
    lines += [f"{escape(facts['paper'])} doi:{escape(facts['doi'])}"] if facts["paper"] else []
    return "<h2>Details</h2>" + "".join(f'\n<p class="soft">{line}</p>' for line in lines)


def pictures(explanation: Explanation) -> str:
    """The picture of the best reference, with the others collapsed below."""
    first, *others = explanation.pictures
    folded = [f"<details><summary>{escape(other.title)}</summary>{_picture_html(other)}</details>" for other in others]
    return "\n".join([f"<h2>{escape(first.title)}</h2>" if first.title else "", _picture_html(first), *folded])


def _picture_html(picture: Picture) -> str:
    remark = f'<p class="remark">{picture.remark}</p>' if picture.remark else ""
    if not any(panel.flows for panel in picture.panels):
        return f'<div class="picture">{remark}{marked_texts(picture)}</div>'
    panels = "\n".join(_panel(picture, panel) for panel in picture.panels)
    width = {"mass": "mass; pale words have little", "cosine": "cosine"}[picture.panels[0].measure]
    return (
        f'<div class="picture">{remark}{marked_texts(picture)}<p class="soft legend">Colour and label: distance, '
        f"0 <i></i> {digits(picture.farthest)}. Width: {width}. Drawn: at most {DRAWN} flows; labelled: {LABELS}.</p>"
        f'<div class="panels" style="--columns:{len(picture.panels)}">\n{panels}\n</div></div>'
    )


def marked_texts(picture: Picture) -> str:
    """Both texts as written, with what was matched or is unsupported marked, and which words were dropped and why."""
    panel, parts = picture.panels[picture.main], []
    for side, name in enumerate(panel.names):
        running = f'<p class="running">{_running(picture, panel, side)}</p>'
        dropped = f'<p class="soft">{escape(panel.not_compared(side))}</p>'
        parts.append(f'<div class="{"right" if side else "left"}"><b>{name}</b>{running}{dropped}</div>')
    if panel.measure == "cosine":
        parts.append(
            '<p class="soft"><b class="unsupported">Unsupported</b>: a name, number or negation that the document does '
            'not have, or a sentence far from all of it. <b class="covered">Covered</b>: a sentence of the summary is '
            'near. <b class="repeated">Repeated</b>: many of its word pairs stood in the summary before.</p>'
        )
    return f'<div class="texts">{"".join(parts)}</div>'


def _running(picture: Picture, panel: Panel, side: int) -> str:
    """A text as written; what is matched is underlined in the colour of its strongest flow."""
    units, parts = [*panel.sides[side], *panel.dropped[side]], []
    flows = panel.flows if panel.measure == "mass" else ()
    tints = {(flow.i, flow.j)[side]: picture.tint(flow.cost) for flow in reversed(flows)}
    heaviest = max((unit.weight for unit in units), default=1.0)
    for text, index in pieces(picture.texts[side], units):
        if index is None:
            parts.append(escape(text))
            continue
        unit = units[index]
        tag = "mark" if unit.mark in ("unsupported", "covered", "repeated") else "span"
        note = unit.reason or ("" if index in tints else "matched with nothing")
        style = f' style="--tint:{tints[index]};--weight:{unit.weight / heaviest:.2f}"' if index in tints else ""
        parts.append(f'<{tag} class="{unit.mark or unit.kind}" title="{note}" data-n="{index}"{style}>')
        parts.append(f"{escape(text)}</{tag}>")
    return "".join(parts)


def _panel(picture: Picture, panel: Panel) -> str:
    layout = "sentences" if any(unit.kind == "sentence" for unit in panel.left) else "short"
    plan = (
        '<details><summary>Transport plan T</summary><div class="scroll" tabindex="0" role="region" '
        'aria-label="Transport plan T"><table class="matrix" aria-hidden="true"></table></div></details>'
    )
    flows = [[*astuple(flow), picture.tint(flow.cost)] for flow in panel.flows]
    main = " data-main" if panel is picture.panels[picture.main] else ""
    return (
        f'<section class="panel" data-measure="{panel.measure}" data-drawn="{DRAWN}" data-labels="{LABELS}"{main}>'
        f"{f'<h3>{panel.title}</h3>' if panel.title else ''}{f'<p class=soft>{panel.note}</p>' if panel.note else ''}"
        '<div><p class="detail" role="status">Point at a unit, or move to one with Tab and the arrow keys, to read '
        f'what it was matched with.</p><div class="canvas {layout}"><svg aria-hidden="true"></svg>{_column(panel, 0)}'
        f"{_column(panel, 1)}</div></div>{plan if panel.measure == 'mass' else ''}"
        f'<script type="application/json">{json.dumps(flows, separators=(",", ":"))}</script></section>'
    )


def _column(panel: Panel, side: int) -> str:
    """The units of a text one below the other."""
    units, name, order = panel.sides[side], panel.names[side], panel.column(side)
    items = "".join(
        f'<li class="unit {units[index].kind} {units[index].mark}" role="option" aria-selected="false" '
        f'tabindex="{0 if index == order[0] else -1}" data-n="{index}" data-weight="{units[index].weight:.6g}" '
        f'data-note="{units[index].reason}"><span class="text">{escape(units[index].text)}</span>'
        f"{f'<span class=mark>{MARKS[units[index].mark]}</span>' if units[index].mark else ''}</li>"
        for index in order
    )
    units_list = f'<ul class="units" role="listbox" aria-label="Units of the {name.lower()}">{items}</ul>'
    return f'<div class="side {"right" if side else "left"}"><strong>{name}</strong>{units_list}</div>'


def histogram(scores: Sequence[float]) -> str:
    counts, edges = np.histogram(np.asarray(scores, dtype=np.float64), bins=min(24, len(scores)))
    bars = "".join(
        f'<i style="height:{100 * count / counts.max():.1f}%" title="{count} from {digits(low)} to {digits(high)}"></i>'
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
    )
    low, high, median = (digits(float(value)) for value in (min(scores), max(scores), np.median(scores)))
    label = f"{len(scores)} scores from {low} to {high}, median {median}"
    return f'<div class="histogram" role="img" aria-label="Histogram of scores">{bars}</div><p class="soft">{label}</p>'

"""Score predictions and explain the scores: which units were matched, and at what cost."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.errors import InputError
from movers.inputs import check_pairs
from movers.registry import METRICS, parse_metric
from movers.scorer import Example, Row, Scorer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explainer", "Explanation", "Report", "explain", "report"]

Alignment = Mapping[str, Any]

SUPPORTED = 0.4  # minimum cosine of a supported summary sentence with the nearest sentence of the document
REPEATED = 0.3  # minimum share of a repeated sentence's word pairs that occurred earlier in the summary
_NOTES = {
    "word": "Words of the prediction move to words of the reference.",
    "sentence": "Sentences move to sentences.",
    "both": "Words and sentences move in one bag.",
    "token": "N-grams of tokens in context move.",
    "greedy": "Every token takes its best partner, as in BERTScore's precision. Outlined and marked ×: matched more "
    "than once.",
    "one-to-one": "Each token is matched at most once.",
    "one-to-many": "Token mass may be split over several tokens (soft alignment).",
    "summary": "Every sentence of the summary is joined with the nearest of the document. Width: their cosine; label: "
    f"1 − cosine. Unsupported: cosine below {SUPPORTED}. Repeated: at least {REPEATED:.0%} of its word pairs stood in "
    "the summary before.",
}
FLAGS = {
    "empty": "Empty: a text has no word",
    "unfiltered": "Unfiltered: the filters left nothing of a text, so all its words were compared",
    "truncated": "Cut: a text was longer than the encoder reads",
    "unknown": "Unknown: a text has words or pieces that the encoder does not know",
}
_MARKS = {"supported": "✓ supported", "unsupported": "✗ unsupported", "repeated": "↻ repeated"}


# --- what a picture shows ---------------------------------------------------------------------------------------------


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
    mark: str = ""  # "supported", "unsupported", "repeated" or "twice"
    note: str = ""  # shown on hover and focus

    @property
    def is_sentence(self) -> bool:
        return self.kind == "sentence"

    @property
    def shown_mark(self) -> str:
        return f"×{self.note.split()[1]}" if self.mark == "twice" else _MARKS.get(self.mark, "")

    @property
    def label(self) -> str:
        return f"sentence {self.sentence + 1}" if self.is_sentence else shorten(self.text, 16)


def in_order(units: Sequence[Unit]) -> list[int]:
    """Indices of the units, each sentence before its words."""
    return sorted(range(len(units)), key=lambda index: (units[index].sentence, not units[index].is_sentence, index))


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "flows", sorted(self.flows, key=lambda flow: (-flow.share, flow.i, flow.j)))


@dataclass(frozen=True)
class Picture:
    """One prediction and one reference or document: one or several panels, with the matrix of each or without."""

    title: str
    panels: Sequence[Panel]
    matrix: bool = False

    @property
    def costs(self) -> tuple[float, float]:
        """The lowest and the highest cost of its flows: one scale of colours for all panels."""
        costs = [flow.cost for panel in self.panels for flow in panel.flows] or [0.0]
        return min(costs), max(costs)


@dataclass(frozen=True)
class Explanation:
    """A scored prediction with one picture per reference or document, the best first.

    It displays itself in a notebook, `print` shows its largest flows, and `save` writes HTML, SVG, PNG or JSON.
    `numbers` are further scores (precision, distance, …).
    """

    metric: str
    score: float
    numbers: Mapping[str, float]
    flags: Sequence[str]
    signature: str
    prediction: str
    compared_with: Sequence[str]
    pictures: Sequence[Picture]

    @property
    def title(self) -> str:
        return METRICS[self.metric].title

    def html(self) -> str:
        """A self-contained HTML page."""
        from movers.pictures.html import document, explanation_body

        return document(f"{self.title}: {self.score:.4g}", explanation_body(self))

    def _repr_html_(self) -> str:
        from movers.pictures.html import explanation_body, frame

        panels = [panel for picture in self.pictures for panel in picture.panels]
        rows = max((max(len(panel.left), len(panel.right)) for panel in panels), default=0)
        return frame(explanation_body(self), f"{self.title}: what was matched", min(900, 420 + 26 * rows))

    def figure(self, number: int = 0) -> Figure:
        """Draw a picture with matplotlib."""
        from movers.pictures.figures import draw

        return draw(self, self.pictures[number])

    def save(self, path: str | Path) -> None:
        """Write `.html`, `.svg`, `.png` or `.json`."""
        from movers.io import write_file
        from movers.pictures.figures import image

        suffix = Path(path).suffix.lower()
        writers: dict[str, Callable[[], str | bytes]] = {
            ".html": self.html,
            ".json": lambda: json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n",
            ".svg": lambda: image(self.figure(), "svg"),
            ".png": lambda: image(self.figure(), "png"),
        }
        if suffix not in writers:
            raise InputError(f"{path}: cannot write it: expected a name that ends in .html, .svg, .png or .json")
        write_file(path, writers[suffix]())

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
        return "\n".join(lines)


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# --- from texts to pictures -------------------------------------------------------------------------------------------


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
    texts = {name: text for name, text in (("reference", reference), ("source", source)) if text is not None}
    if list(texts) != [argument]:
        got = " and ".join(texts) or "none"
        raise InputError(f"{spec.name}: explain: expected `{argument}`, the text to compare with, but got {got}")
    group = [texts[argument]] if isinstance(texts[argument], str) else texts[argument]
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
        examples = self.scorer.stream(rows, total=len(rows))
        return [self._explanation(*pair) for pair in zip(rows, examples, strict=True)]

    def _explanation(self, row: Row, columns: Sequence[Example]) -> Explanation:
        examples = dict(zip(self.panels, columns, strict=True))
        texts = getattr(row, self.spec.compared_with)
        example = examples[self.label]
        alignments: Sequence[Alignment] = example.alignments or []
        order = sorted(range(len(texts)), key=lambda index: -alignments[index]["score"])
        numbers = dict(example.parts)
        if len(self.panels) == 1 and alignments[order[0]].get("distance") is not None:
            numbers["distance"] = alignments[order[0]]["distance"]
        pictures = []
        for index in order:
            side = "Document" if self.spec.compared_with == "sources" else "Reference"
            title = f"{side} {index + 1} of {len(texts)}: {alignments[index]['score']:.4g}" if len(texts) > 1 else ""
            panels = {self.panels[label]: (other.alignments or [])[index] for label, other in examples.items()}
            pictures.append(_picture(title, panels))
        flags = [flag for flag in FLAGS if getattr(example, flag)]
        signature = self.scorer.signatures[self.label]
        return Explanation(self.spec.name, example.score, numbers, flags, signature, row.prediction, texts, pictures)


def _picture(title: str, alignments: Mapping[str, Alignment]) -> Picture:
    first = next(iter(alignments.values()))
    if "flows" not in first:
        return Picture(title, [_summary_panel(first)] if first.get("summary") else [])
    if len(alignments) > 1:
        return Picture(title, [_transport_panel(alignment, name) for name, alignment in alignments.items()])
    kinds = {unit["kind"] for unit in first["prediction"]}
    kind = "both" if kinds >= {"word", "sentence"} else next(iter(kinds & {"word", "sentence"}), "token")
    return Picture(title, [_transport_panel(first, kind)], matrix=kind != "token")


def _transport_panel(alignment: Alignment, name: str) -> Panel:
    total = sum(flow["mass"] for flow in alignment["flows"]) or 1.0
    flows = [Flow(flow["i"], flow["j"], flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]]
    left, right = (
        [Unit(unit["text"], unit["kind"], unit["sentence"], unit["weight"]) for unit in alignment[side]]
        for side in ("prediction", "reference")
    )
    if name in ("greedy", "one-to-one", "one-to-many"):
        title, note = f"{name}: F1 {alignment['score']:.4g}", _NOTES[name]
    else:
        title, note = "", f"{_NOTES[name]} Width of a line: mass; its label: distance."
    if name == "greedy":
        for index, count in Counter(flow.j for flow in flows).items():
            if count > 1:
                right[index] = replace(right[index], mark="twice", note=f"matched {count} times")
    return Panel(title, note, left, right, flows)


def _summary_panel(alignment: Alignment) -> Panel:
    """Sentences of the summary, each joined with the nearest sentence of the document; the width is the support."""
    summary, document = alignment["summary"], alignment["document"]
    left, flows = [], []
    seen: set[tuple[str, str]] = set()
    for index, sentence in enumerate(summary):
        support = sentence.get("support", 0.0)
        mark = "supported" if support >= SUPPORTED else "unsupported"
        note = f"{mark}: cosine {support:.2f} with the nearest sentence of the document"
        words = re.findall(r"\w+", sentence["text"].lower())
        pairs = list(zip(words, words[1:], strict=False))
        repeated = sum(pair in seen for pair in pairs) / max(1, len(pairs))
        seen.update(pairs)
        if repeated >= REPEATED:
            mark = "repeated"
            note += f"; repeated: {repeated:.0%} of its word pairs stood in the summary before"
        left.append(Unit(sentence["text"], "sentence", index, 1 / len(summary), mark, note))
        if "nearest" in sentence:
            flows.append(Flow(index, sentence["nearest"], max(support, 0.0), 1.0 - support))
    right = []
    for index, sentence in enumerate(document):
        note = f"cosine {sentence.get('coverage', 0.0):.2f} with the nearest sentence of the summary"
        right.append(Unit(sentence["text"], "sentence", index, 1 / len(document), note=note))
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
        from movers.pictures.html import document, report_body

        return document(f"{self.best[0][1].title}: report of {len(self.scores)} rows", report_body(self))


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
    shown = {*best, *worst}
    chosen = {number: row for number, row in enumerate(rows) if number in shown}
    explainer = Explainer(metric, options, rows)
    explanations = dict(zip(chosen, explainer.explain(list(chosen.values())), strict=True))
    rows_of = ([(number, explanations[number]) for number in numbers] for numbers in (best, worst))
    return Report(scores, flagged, *rows_of)

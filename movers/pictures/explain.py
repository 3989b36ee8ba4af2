"""Score a prediction and explain its score: which units were matched, and at what cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from movers.encoders import SharedPass
from movers.errors import InputError
from movers.inputs import check_pairs
from movers.pictures.model import (
    Bar,
    Explanation,
    Flow,
    Mark,
    Panel,
    Picture,
    Unit,
    as_float,
    as_int,
    as_records,
    mark_twice,
    strongest_first,
    transport_panel,
)
from movers.registry import METRICS, MetricSpec, parse_metric
from movers.scores.engine import Example, PairMetric, score_stream
from movers.scores.options import PairOptions
from movers.weights import Corpus

__all__ = ["Explainer", "explain"]

Alignment = Mapping[str, object]
Row = tuple[str, Sequence[str]]

#: Minimum cosine with the nearest document sentence for a summary sentence to be marked as supported.
SUPPORTED = 0.4
#: Minimum share of word pairs that occurred earlier in the summary for a sentence to be marked as repeated.
REPEATED = 0.3
_WORD = re.compile(r"\w+")
_NOTES = {
    "word": "Words of the prediction move to words of the reference. Width of a line: mass; its label: distance.",
    "sentence": "Sentences move to sentences. Width of a line: mass; its label: distance.",
    "both": "Words and sentences move in one bag. Width of a line: mass; its label: distance.",
    "token": "N-grams of tokens in context move. Width of a line: mass; its label: distance.",
}
_ASPECTS = {
    "faithfulness": "is what the summary says in the document",
    "coverage": "is what matters in the document said",
    "fluency": "language, repetition, gaps",
    "likelihood": "how likely a language model finds the summary's tokens after the document",
}
_MEASURES = {
    "support": "mean over summary sentences of the cosine with the nearest document sentence",
    "coverage": "mean over document sentences of the cosine with the nearest summary sentence",
    "token_match": "mean over summary tokens of the best cosine in the document",
    "distinct_bigrams": "share of the summary's word pairs that are not repeated",
    "concision": "share of the document's length that the summary saves",
}


def explain(
    metric: str,
    prediction: str,
    reference: str | Sequence[str] | None = None,
    *,
    source: str | Sequence[str] | None = None,
    **options: object,
) -> Explanation:
    """Score one prediction and show its alignment.

    Parameters
    ----------
    metric : str
        `NAME` or `NAME[key=value,…]`.
    prediction : str
    reference : str, or several
        For metrics with references.
    source : str, or several
        The document, for the reference-free metric.
    **options
        Options of the metric.

    Returns
    -------
    Explanation
        Displays itself in a notebook; `save("a.html")` writes it, also as `.svg` or `.png`.

    >>> explanation = explain("wms", "Snow melts.", "Snow melts.")
    >>> explanation.score, [flow.cost for flow in explanation.pictures[0].panels[0].flows]
    (1.0, [0.0, 0.0])
    """
    spec, own = parse_metric(metric)
    given = source if spec.compared_with == "sources" else reference
    other = reference if spec.compared_with == "sources" else source
    argument = spec.compared_with.removesuffix("s")
    if given is None or other is not None:
        came = [name for name, text in (("reference", reference), ("source", source)) if text is not None]
        raise InputError(
            f"{spec.name}: explain: expected `{argument}`, the text to compare with, and nothing else, but got "
            f"{' and '.join(came) or 'none'}"
        )
    group = [given] if isinstance(given, str) else given
    predictions, groups = check_pairs(spec.name, [prediction], [group], spec.compared_with)
    explainer = Explainer.build(spec, {**own, **options}, Corpus(predictions, groups))
    return explainer.explain([(predictions[0], groups[0])])[0]


@dataclass(frozen=True)
class Explainer:
    """A metric and the alignments to draw.

    Attributes
    ----------
    spec : MetricSpec
    metric : PairMetric
        Computes the score.
    aligned : mapping
        Title of each panel → the metric that computes its alignment.
    """

    spec: MetricSpec
    metric: PairMetric[object]
    aligned: Mapping[str, PairMetric[object]]

    @classmethod
    def build(cls, spec: MetricSpec, given: Mapping[str, object], corpus: Corpus) -> Explainer:
        """Build from options; `idf="corpus"` uses the texts of `corpus`."""
        shared = SharedPass()
        metric = _build(spec, given, corpus, shared, aligned=False)
        if not spec.name.startswith("bertscore"):
            return cls(spec, metric, {"": _build(spec, given, corpus, shared)})
        one, many = METRICS["bertscore_hungarian"], METRICS["bertscore_emd"]
        aligned = {
            "greedy": _build(spec, {**given, "alignment": "greedy"}, corpus, shared),
            "one-to-one": _build(one, {**given, "alignment": "optimal"}, corpus, shared),
            "one-to-many": _build(many, {**given, "alignment": "optimal"}, corpus, shared),
        }
        return cls(spec, metric, aligned)

    def explain(self, rows: Sequence[Row]) -> list[Explanation]:
        """Explain rows."""
        examples = list(score_stream(self.metric, rows, len(rows)))
        aligned = {title: list(score_stream(metric, rows, len(rows))) for title, metric in self.aligned.items()}
        return [
            self._explanation(row, examples[place], {title: found[place] for title, found in aligned.items()})
            for place, row in enumerate(rows)
        ]

    def _explanation(self, row: Row, example: Example, aligned: Mapping[str, Example]) -> Explanation:
        prediction, others = row
        lists = {title: found.alignments or [] for title, found in aligned.items()}
        main = next(
            (own for title, own in lists.items() if self.aligned[title].signature == self.metric.signature),
            next(iter(lists.values())),
        )
        order = sorted(range(len(others)), key=lambda place: -as_float(main[place]["score"]))
        numbers = dict(example.parts)
        distance = main[order[0]].get("distance")
        if isinstance(distance, float) and not self.spec.name.startswith("bertscore"):
            numbers["distance"] = distance
        pictures = [
            self._picture(place, len(others), {title: own[place] for title, own in lists.items()}, numbers, example)
            for place in order
        ]
        flags = [name for name in ("empty", "unfiltered", "truncated", "unknown") if getattr(example, name)]
        return Explanation(
            self.spec.name, example.score, numbers, flags, self.metric.signature, prediction, others, pictures
        )

    def _picture(
        self, place: int, count: int, found: Mapping[str, Alignment], numbers: Mapping[str, float], example: Example
    ) -> Picture:
        what = "Document" if self.spec.compared_with == "sources" else "Reference"
        alone = next(iter(found.values()))
        title = f"{what} {place + 1} of {count}: {as_float(alone['score']):.4g}" if count > 1 else ""
        if "summary" in alone or "windows" in alone:
            return Picture(title, [summary_panel(alone)] if alone.get("summary") else [], _bars(alone, example))
        if len(found) > 1:
            return Picture(title, [_bertscore_panel(own, name) for name, own in found.items()])
        panel = transport_panel(alone, "", "")
        kind = "both" if panel.has_sentences_and_words else panel.left[0].kind if panel.left else "word"
        panel = replace(panel, note=_NOTES.get(kind, _NOTES["token"]))
        return Picture(title, [panel], matrix=self.spec.name in ("wms", "sms", "swms"))


def _build(
    spec: MetricSpec, given: Mapping[str, object], corpus: Corpus, shared: SharedPass, aligned: bool = True
) -> PairMetric[object]:
    options = spec.parse({"progress": False, **given, "return_alignment": aligned})
    if isinstance(options, PairOptions):
        options = replace(options, shared_pass=options.shared_pass or shared)
    return spec.build(options, corpus)


def _bertscore_panel(alignment: Alignment, name: str) -> Panel:
    notes = {
        "greedy": "Every token takes its best partner, as in BERTScore's precision. Outlined and marked ×: matched "
        "more than once.",
        "one-to-one": "Each token is matched at most once.",
        "one-to-many": "Token mass may be split over several tokens (soft alignment).",
    }
    title = f"{name}: F1 {as_float(alignment['score']):.4g}"
    panel = transport_panel(alignment, title, notes[name])
    return mark_twice(panel) if name == "greedy" else panel


# ---------------------------------------------------------------------------------------------------------------------
# The reference-free metric


def summary_panel(alignment: Alignment) -> Panel:
    """Sentences of the summary, each joined with the nearest sentence of the document; the width is the support."""
    summary, document = as_records(alignment["summary"]), as_records(alignment["document"])
    texts = [str(sentence["text"]) for sentence in summary]
    repeated = repeated_share(texts)
    left, right, flows = [], [], []
    for place, sentence in enumerate(summary):
        support = as_float(sentence.get("support", 0.0))
        mark: Mark = "supported" if support >= SUPPORTED else "unsupported"
        note = f"{mark}: cosine {support:.2f} with the nearest sentence of the document"
        if repeated[place] >= REPEATED:
            mark = "repeated"
            note += f"; repeated: {repeated[place]:.0%} of its word pairs stood in the summary before"
        left.append(Unit(texts[place], "sentence", place, 1 / len(summary), mark, note))
        if "nearest" in sentence:
            flows.append(Flow(place, as_int(sentence["nearest"]), max(support, 0.0), 1.0 - support))
    for place, sentence in enumerate(document):
        covered = as_float(sentence.get("coverage", 0.0))
        note = f"cosine {covered:.2f} with the nearest sentence of the summary"
        right.append(Unit(str(sentence["text"]), "sentence", place, 1 / len(document), "", note))
    note = (
        "Every sentence of the summary is joined with the nearest of the document. Width: their cosine; label: "
        f"1 − cosine. Unsupported: cosine below {SUPPORTED}. Repeated: at least {REPEATED:.0%} of its word pairs "
        "stood in the summary before."
    )
    return Panel("", note, left, right, strongest_first(flows), ("Summary", "Document"), "cosine")


def repeated_share(sentences: Sequence[str]) -> list[float]:
    """Share of each sentence's word pairs that occurred earlier in the text.

    >>> repeated_share(["The boat left.", "The boat left again.", "It rains."])
    [0.0, 0.6666666666666666, 0.0]
    """
    seen: set[tuple[str, str]] = set()
    shares = []
    for sentence in sentences:
        words = _WORD.findall(sentence.lower())
        pairs = list(zip(words, words[1:], strict=False))
        again = 0
        for pair in pairs:
            again += pair in seen
            seen.add(pair)
        shares.append(again / len(pairs) if pairs else 0.0)
    return shares


def _bars(alignment: Alignment, example: Example) -> list[Bar]:
    """The aspects of the score if the metric has them, otherwise measures of the alignment."""
    aspects = [Bar(name, example.parts[name], note) for name, note in _ASPECTS.items() if name in example.parts]
    features = alignment.get("features")
    if aspects or not isinstance(features, Mapping):
        return aspects
    return [
        Bar(name.replace("_", " "), min(max(as_float(features[name]), 0.0), 1.0), note)
        for name, note in _MEASURES.items()
        if name in features
    ]

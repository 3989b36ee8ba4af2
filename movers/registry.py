"""The metrics by name, without importing any of them, and the syntax `name[key=value,…]`."""

from __future__ import annotations

import difflib
import importlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from movers.errors import InputError

if TYPE_CHECKING:
    from movers.scores.engine import AnyMetric
    from movers.scores.options import RunOptions
    from movers.weights import Corpus

__all__ = [
    "METRICS",
    "MetricSpec",
    "MetricWithOptions",
    "find_metric",
    "parse_metric",
    "parse_options",
    "parse_value",
    "score_many",
    "split_metrics",
]


MetricWithOptions = str | tuple[str, Mapping[str, object]]


class MetricFunction(Protocol):
    """`function(predictions, references, **options)` → result."""

    def __call__(self, predictions: Sequence[str], references: Any, /, **options: object) -> dict[str, Any]: ...


@dataclass(frozen=True)
class MetricSpec:
    """Name, module and class of a metric.

    Attributes
    ----------
    name, title, summary : str
    home, class_name : str
        The module that defines it, imported when it is used, and its class there.
    compared_with : {"references", "sources"}
        What predictions are compared with.
    """

    name: str
    title: str
    summary: str
    home: str
    class_name: str
    compared_with: str = "references"

    @property
    def function(self) -> MetricFunction:
        """The plain function of that name."""
        return getattr(importlib.import_module(self.home), self.name)

    @property
    def metric_class(self) -> type[AnyMetric]:
        return getattr(importlib.import_module(self.home), self.class_name)

    @property
    def options_class(self) -> type[RunOptions]:
        return self.metric_class.options_class

    def parse(self, given: Mapping[str, object]) -> RunOptions:
        """Validated options; an unknown name or value is an error that lists the valid ones."""
        return self.options_class.parse(self.name, given)

    def build(self, options: RunOptions, corpus: Corpus | None = None) -> AnyMetric:
        """The metric, ready to score; `idf="corpus"` needs all texts of the call."""
        from movers.scores.engine import build

        return build(self.metric_class, self.name, options, corpus)


_CLARK, _ZHAO, _JIN = "movers.scores.clark", "movers.scores.moverscore", "movers.scores.bertscore"

METRICS: dict[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        MetricSpec(
            "wms", "Word Mover's Similarity", "transport between words (Clark et al. 2019)", _CLARK, "WordMover"
        ),
        MetricSpec(
            "sms",
            "Sentence Mover's Similarity",
            "transport between sentences (Clark et al. 2019)",
            _CLARK,
            "SentenceMover",
        ),
        MetricSpec(
            "swms",
            "Sentence + Word Mover's Similarity",
            "transport between words and sentences jointly (Clark et al. 2019)",
            _CLARK,
            "SentenceAndWordMover",
        ),
        MetricSpec(
            "moverscore", "MoverScore", "transport between contextual n-grams (Zhao et al. 2019)", _ZHAO, "MoverScore"
        ),
        MetricSpec(
            "bertscore_hungarian",
            "BERTScore, one-to-one",
            "optimal assignment of contextual tokens (Jin & Gildea 2022)",
            _JIN,
            "BertScoreHungarian",
        ),
        MetricSpec(
            "bertscore_emd",
            "BERTScore, one-to-many",
            "transport between contextual tokens (Jin & Gildea 2022)",
            _JIN,
            "BertScoreEmd",
        ),
        MetricSpec(
            "reference_free_summary_quality",
            "Reference-free summary quality",
            "a summary against its source document (Bao et al. 2020)",
            "movers.quality.scorer",
            "SummaryQuality",
            compared_with="sources",
        ),
    )
}


def find_metric(name: str) -> MetricSpec:
    """The metric of that name.

    >>> find_metric("wsm")
    Traceback (most recent call last):
    movers.InputError: metric: expected one of wms, sms, swms..., but got 'wsm'...
    """
    if name not in METRICS:
        close = difflib.get_close_matches(name, METRICS, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(f"metric: expected one of {', '.join(METRICS)}, but got {name!r}{hint}")
    return METRICS[name]


def score_many(
    metrics: Sequence[MetricWithOptions], predictions: object, references: object = None, *, sources: object = None
) -> dict[str, dict[str, object]]:
    """Several metrics over the same texts; metrics with the same encoder reuse one forward pass per text.

    Parameters
    ----------
    metrics : sequence
        `name`, `name[key=value,…]` or `(name, options)`.
    predictions : n texts
    references : n texts, or n lists of texts
        For metrics that need references.
    sources : n texts, or n lists of texts
        For metrics that need source documents.

    Returns
    -------
    dict
        The result of each metric, keyed by the metric as given (by `name` for a pair).

    Examples
    --------
    >>> results = score_many(["wms", "sms[normalize=true]"], ["Snow melts."], ["Snow melts."])
    >>> {name: result["score"] for name, result in results.items()}
    {'wms': 1.0, 'sms[normalize=true]': 1.0}
    """
    from movers.encoders import SharedPass
    from movers.inputs import check_pairs
    from movers.scores.engine import score_together
    from movers.scores.options import PairOptions
    from movers.weights import Corpus

    labels = [item if isinstance(item, str) else item[0] for item in metrics]
    parsed = dict(zip(labels, map(parse_metric, metrics), strict=True))
    if len(parsed) < len(metrics) or not parsed:
        raise InputError(f"score_many: metrics: expected different metrics, but got {', '.join(labels) or 'none'}")
    given = {"references": references, "sources": sources}
    shared = SharedPass()
    groups: dict[str, tuple[list[str], list[list[str]]]] = {}
    built: dict[str, AnyMetric] = {}
    for label, (spec, options) in parsed.items():
        other = spec.compared_with
        if given[other] is None:
            raise InputError(f"{spec.name}: {other}: expected {other} to compare with, but got none")
        if other not in groups:
            groups[other] = check_pairs(spec.name, predictions, given[other], other)
        settled = spec.parse(options)
        if isinstance(settled, PairOptions):
            settled = replace(settled, shared_pass=shared)
        built[label] = spec.build(settled, Corpus(*groups[other]))
    rows = {label: groups[parsed[label][0].compared_with] for label in built}
    return score_together(built, rows)


def parse_value(text: str) -> object:
    """An option's value as typed on a command line.

    >>> [parse_value(text) for text in ("none", "true", "5", "0.5", "no", '["a", "b"]')]
    [None, True, 5, 0.5, 'no', ['a', 'b']]
    """
    plain = text.strip()
    words = {"none": None, "true": True, "false": False}
    if plain.lower() in words:
        return words[plain.lower()]
    if plain.startswith(("[", '"')):  # quotes force a string
        try:
            return json.loads(plain)
        except json.JSONDecodeError as error:
            raise InputError(f"option value: expected a JSON list or text, but got {plain!r}: {error}") from None
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return plain


def parse_options(items: Iterable[str]) -> dict[str, object]:
    """`key=value` items as keyword arguments.

    >>> parse_options(["stopwords=none", "threads=2"])
    {'stopwords': None, 'threads': 2}
    """
    options = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"option: expected key=value, but got {item!r}")
        options[key.strip().replace("-", "_")] = parse_value(value)
    return options


def parse_metric(text: MetricWithOptions) -> tuple[MetricSpec, dict[str, object]]:
    """`name`, `name[key=value,…]` or `(name, options)` as a metric and its options.

    >>> metric, options = parse_metric("wms[stopwords=none,normalize=true]")
    >>> metric.name, options
    ('wms', {'stopwords': None, 'normalize': True})
    """
    if not isinstance(text, str):
        return find_metric(text[0]), dict(text[1])
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text, flags=re.DOTALL)
    if match is None:
        raise InputError(f"metric: expected NAME or NAME[key=value,…], but got {text!r}")
    return find_metric(match[1]), parse_options(_split(match[2] or ""))


def split_metrics(text: str) -> list[str]:
    """A comma-separated list of metrics, each with its own options in brackets.

    >>> split_metrics("wms,moverscore[idf=corpus,layer=5],sms")
    ['wms', 'moverscore[idf=corpus,layer=5]', 'sms']
    """
    return _split(text)


def _split(text: str) -> list[str]:
    """Parts between commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]

"""The metrics by name, without importing any of them, and the syntax `name[key=value,…]`."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from movers.errors import InputError
from movers.inputs import did_you_mean

if TYPE_CHECKING:
    from movers.scores.metric import Metric
    from movers.scores.options import MetricOptions
    from movers.weights import Corpus

MetricWithOptions = str | tuple[str, Mapping[str, object]]
#: `function(predictions, references, **options)` → result
MetricFunction = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class MetricSpec:
    """Name and class of a metric."""

    name: str
    title: str
    summary: str
    home: str  # where its class is defined, as `module:Class`; imported when it is used
    compared_with: str = "references"  # what predictions are compared with: "references" or "sources"

    @cached_property
    def metric_class(self) -> type[Metric]:
        module, _, name = self.home.partition(":")
        return getattr(importlib.import_module(module), name)

    @property
    def usage(self) -> str:
        """Which texts to pass, for errors."""
        texts = {"references": "references", "sources": "sources=documents (what was summarised)"}
        return f"pass predictions and {texts[self.compared_with]}"

    @property
    def options_class(self) -> type[MetricOptions]:
        return self.metric_class.options_class

    def parse(self, options: Mapping[str, object]) -> MetricOptions:
        """Validated options; an unknown name or value is an error that lists the valid ones."""
        return self.options_class.parse(self.name, options)

    def build(self, options: MetricOptions, corpus: Corpus | None = None) -> Metric:
        """The metric, ready to score; `idf="corpus"` needs all texts of the call."""
        from movers.scores.unrelated import rescaled

        try:
            return rescaled(self.metric_class.build(self.name, options, corpus))
        except InputError as error:  # errors of encoders and tables do not name the metric
            names = ["layer", "device", "dtype", *(item.name for item in fields(options))]
            if str(error).partition(":")[0] not in names:
                raise
            raise InputError(f"{self.name}: {error}") from error

    @property
    def function(self) -> MetricFunction:
        from movers.scorer import metric_function

        return metric_function(self)


METRICS: dict[str, MetricSpec] = {spec.name: spec for spec in (
    MetricSpec("wms", "Word Mover's Similarity",
               "transport between words (Clark et al. 2019)", "movers.scores.clark:WordMover"),
    MetricSpec("sms", "Sentence Mover's Similarity",
               "transport between sentences (Clark et al. 2019)", "movers.scores.clark:SentenceMover"),
    MetricSpec("swms", "Sentence + Word Mover's Similarity",
               "transport between words and sentences jointly (Clark et al. 2019)",
               "movers.scores.clark:SentenceAndWordMover"),
    MetricSpec("moverscore", "MoverScore",
               "transport between contextual n-grams (Zhao et al. 2019)", "movers.scores.moverscore:MoverScore"),
    MetricSpec("bertscore_hungarian", "BERTScore, one-to-one",
               "optimal assignment of contextual tokens (Jin & Gildea 2022)",
               "movers.scores.bertscore:BertScoreHungarian"),
    MetricSpec("bertscore_emd", "BERTScore, one-to-many",
               "transport between contextual tokens (Jin & Gildea 2022)", "movers.scores.bertscore:BertScoreEmd"),
    MetricSpec("reference_free_summary_quality", "Reference-free summary quality",
               "a summary against its source document (Bao et al. 2020)", "movers.quality.scorer:SummaryQuality",
               compared_with="sources"),
)}  # fmt: skip


def find_metric(name: str) -> MetricSpec:
    if name not in METRICS:
        hint = did_you_mean(name, METRICS)
        raise InputError(f"metric: expected one of {', '.join(METRICS)}, but got {name!r}{hint}")
    return METRICS[name]


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
        with suppress(ValueError):
            return kind(plain)
    return plain


def parse_options(items: Iterable[str]) -> dict[str, object]:
    """`key=value` items as keyword arguments."""
    options = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"option: expected key=value, but got {item!r}")
        options[key.strip().replace("-", "_")] = parse_value(value)
    return options


def parse_metric(text: MetricWithOptions) -> tuple[MetricSpec, dict[str, object]]:
    """`name`, `name[key=value,…]` or `(name, options)` as a metric and its options."""
    if not isinstance(text, str):
        if not isinstance(text, tuple | list) or len(text) != 2 or not isinstance(text[1], Mapping):
            raise InputError(f"metric: expected NAME, NAME[key=value,…] or (NAME, options), but got {text!r:.60}")
        return find_metric(text[0]), dict(text[1])
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text, flags=re.DOTALL)
    if match is None:
        raise InputError(f"metric: expected NAME or NAME[key=value,…], but got {text!r}")
    return find_metric(match[1]), parse_options(split_metrics(match[2] or ""))


def split_metrics(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]

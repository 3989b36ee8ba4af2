"""Metrics built once: each distinct text is encoded once for all of them, rows are streamed, results collected."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from movers.encoders import SharedPass
from movers.encoders.cache import VECTORS
from movers.errors import InputError
from movers.inputs import check_pairs
from movers.registry import MetricSpec, MetricWithOptions, parse_metric
from movers.scores.engine import SECTION, AnyMetric, Example, collect, score_stream
from movers.scores.options import PairOptions, RunOptions
from movers.weights import Corpus

__all__ = ["SECTION", "Example", "Row", "Scorer", "score_many"]


class Row(NamedTuple):
    """A prediction and what it is compared with."""

    prediction: str
    references: Sequence[str] = ()
    sources: Sequence[str] = ()


class Scorer:
    """Several metrics over the same texts.

    Parameters
    ----------
    metrics : str, (name, options), or a sequence of them
        `name`, `name[key=value,…]` or `(name, options)`; each is known by the string, or the name of the pair.
    **options
        Options of all metrics, such as `threads`; a metric's own options win.

    Attributes
    ----------
    specs : dict, label → MetricSpec
    metrics : dict, label → metric; empty as long as `needs_corpus`
    """

    def __init__(self, metrics: MetricWithOptions | Sequence[MetricWithOptions], **options: object) -> None:
        single = isinstance(metrics, str) or (
            isinstance(metrics, tuple) and len(metrics) == 2 and isinstance(metrics[1], Mapping)
        )
        items: list[Any] = [metrics] if single else list(metrics)
        labels = [item if isinstance(item, str) else item[0] for item in items]
        if not labels or len(set(labels)) < len(labels):
            raise InputError(f"metrics: expected different metrics, but got {', '.join(map(str, labels)) or 'none'}")
        self.specs: dict[str, MetricSpec] = {}
        self.options: dict[str, RunOptions] = {}
        for label, item in zip(labels, items, strict=True):
            spec, own = parse_metric(item)
            self.specs[label], self.options[label] = spec, spec.parse({**options, **own})
        self.metrics: dict[str, AnyMetric] = {}
        if not self.needs_corpus:
            self._build(None)

    @property
    def needs_corpus(self) -> bool:
        """Whether a metric has `idf="corpus"`, so that `prepare` must see all rows first."""
        return any(getattr(options, "idf", None) == "corpus" for options in self.options.values())

    @property
    def compared_with(self) -> tuple[str, ...]:
        """What rows need: "references", "sources", or both."""
        return tuple(dict.fromkeys(spec.compared_with for spec in self.specs.values()))

    @property
    def signatures(self) -> dict[str, str]:
        return {label: metric.signature for label, metric in self.metrics.items()}

    def _build(self, rows: Iterable[Row] | None) -> None:
        shared = SharedPass()
        for label, spec in self.specs.items():
            options = self.options[label]
            if isinstance(options, PairOptions):
                options = replace(options, shared_pass=shared)
            corpus = None
            if rows is not None:
                rows = list(rows)
                corpus = Corpus([row.prediction for row in rows], [getattr(row, spec.compared_with) for row in rows])
            self.metrics[label] = spec.build(options, corpus)

    def prepare(self, rows: Iterable[Row]) -> Scorer:
        """A scorer whose IDF tables are built from these rows (this one if there are none to build)."""
        if not self.needs_corpus:
            return self
        prepared = object.__new__(Scorer)
        prepared.specs, prepared.options, prepared.metrics = self.specs, self.options, {}
        prepared._build(rows)
        return prepared

    def __getstate__(self) -> dict[str, Any]:
        """Names, settled options and IDF tables: the process that receives them loads the models."""
        options = dict(self.options)
        for label, metric in self.metrics.items():
            for name in ("model", "sentence_encoder"):
                model = getattr(metric.options, name, None)
                if not isinstance(model, str | os.PathLike | None):
                    expected = "a name or path, from which every machine loads it"
                    raise InputError(f"{metric.name}: {name}: expected {expected}, but got {type(model).__name__}")
            if isinstance(metric.options, PairOptions):
                options[label] = replace(metric.options, shared_pass=None, idf=metric.idf_tables())
        return {"specs": self.specs, "options": options, "metrics": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if not self.needs_corpus:
            self._build(None)

    def score(self, predictions: object, references: object = None, *, sources: object = None) -> dict[str, Any]:
        """Validate raw input and score it: label → result dict."""
        given = {"references": references, "sources": sources}
        columns: dict[str, list[list[str]]] = {}
        texts: list[str] = []
        for spec in self.specs.values():
            other = spec.compared_with
            if given[other] is None:
                raise InputError(f"{spec.name}: {other}: expected {other} to compare with, but got none")
            if other not in columns:
                texts, columns[other] = check_pairs(spec.name, predictions, given[other], other)
        empty: list[list[str]] = [[] for _ in texts]
        rows = [
            Row(*row)
            for row in zip(texts, columns.get("references", empty), columns.get("sources", empty), strict=True)
        ]
        scorer = self.prepare(rows)
        return scorer.collect(list(scorer.stream(rows, total=len(rows))))

    def stream(
        self, rows: Iterable[Row], *, total: int | None = None, first_row: int = 0
    ) -> Iterator[tuple[Example, ...]]:
        """Examples of each row, one per metric, in row order; memory is bounded.

        Scores of a section (`SECTION` rows) do not depend on earlier sections, not even in the last digit, so that a
        run that was stopped can be continued at the beginning of a section, `first_row`.
        """
        iterator = iter(rows)
        while section := list(islice(iterator, SECTION)):
            streams = [
                score_stream(
                    metric,
                    ((row.prediction, getattr(row, self.specs[label].compared_with)) for row in section),
                    total=len(section),
                )
                for label, metric in self.metrics.items()
            ]
            yield from zip(*streams, strict=True)
            if len(section) == SECTION:
                self.forget()
            first_row += len(section)

    def forget(self) -> None:
        """Forget encoded texts."""
        VECTORS.clear()

    def collect(self, examples: Sequence[tuple[Example, ...]]) -> dict[str, Any]:
        """Label → result dict, from the examples of all rows."""
        columns = zip(*examples, strict=True)
        return {
            label: collect(metric, column)
            for (label, metric), column in zip(self.metrics.items(), columns, strict=True)
        }


def score_many(
    metrics: Sequence[MetricWithOptions], predictions: object, references: object = None, *, sources: object = None
) -> dict[str, Any]:
    """Several metrics over the same texts; metrics with the same encoder reuse one forward pass per text."""
    return Scorer(metrics).score(predictions, references, sources=sources)

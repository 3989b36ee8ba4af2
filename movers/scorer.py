"""Metrics built once: each distinct text is encoded once for all of them, rows are streamed, results collected."""

from __future__ import annotations

import inspect
import os
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

from movers.encoders.cache import VECTORS
from movers.errors import InputError
from movers.inputs import check_choice, check_pairs
from movers.io import progress_bar
from movers.registry import MetricFunction, MetricSpec, MetricWithOptions, parse_metric
from movers.scores.engine import BLOCK, blocks, score_block
from movers.scores.languages import language_warning
from movers.scores.metric import Example, Metric
from movers.scores.options import MetricOptions, RunSettings, option_rows
from movers.scores.result import Result, collect
from movers.threads import chunks, solver_pool
from movers.weights import CORPUS_TABLES, Corpus

SECTION = 4096  # rows; no block crosses a multiple of it, so that a resumed run forms the same blocks
_UNKNOWN_SHARE = 0.1  # of the rows; above it a warning is issued
_STATIC_BLOCK = 64  # pairs; more make the garbage collector work more, fewer are not worth a process
Examples = tuple[Example, ...]  # of one row, one per metric


class Row(NamedTuple):
    """A prediction and what it is compared with."""

    prediction: str
    references: Sequence[str] = ()
    sources: Sequence[str] = ()


class Scorer:
    """Several metrics over the same texts.

    Parameters
    ----------
    metrics : str, (name, options), a sequence of them, or a dict of them by label
        `name`, `name[key=value,…]` or `(name, options)`; a label is by default the string, or the name of the pair.
    on_error : {"raise", "null"}
        "null" gives a row that cannot be scored, such as one with too long texts, None as its score.
    **options
        Options of all metrics, such as `threads`; a metric's own options win.

    Attributes
    ----------
    specs : dict, label → MetricSpec
    options : dict, label → validated options
    metrics : dict, label → metric; empty as long as `needs_corpus`

    Examples
    --------
    >>> results = Scorer(["wms", "sms[normalize=true]"]).score(["Snow melts."], ["Snow melts."])
    >>> {label: result["score"] for label, result in results.items()}
    {'wms': 1.0, 'sms[normalize=true]': 1.0}
    """

    def __init__(
        self,
        metrics: MetricWithOptions | Sequence[MetricWithOptions] | Mapping[str, MetricWithOptions],
        on_error: Any = "raise",
        **options: object,
    ) -> None:
        check_choice("Scorer", "on_error", on_error, ["raise", "null"])
        self.on_error = on_error
        if not isinstance(metrics, Mapping):
            pair = isinstance(metrics, tuple) and isinstance(metrics[-1], Mapping)
            items: list[Any] = [metrics] if pair or isinstance(metrics, str) else list(metrics)
            labels = [item if isinstance(item, str) else item[0] for item in items]
            if not labels or len(set(labels)) < len(labels):
                expected = "different metrics" if labels else "at least one metric"
                raise InputError(f"metrics: expected {expected}, but got {', '.join(labels) or 'none'}")
            metrics = dict(zip(labels, items, strict=True))
        self.specs: dict[str, MetricSpec] = {}
        self.options: dict[str, MetricOptions] = {}
        for label, item in metrics.items():
            spec, explicit = parse_metric(item)
            self.specs[label], self.options[label] = spec, spec.parse({**options, **explicit})
        self.metrics: dict[str, Metric] = {} if self.needs_corpus else self._build(())

    @property
    def needs_corpus(self) -> bool:
        """Whether an IDF table is to be built from the texts of the call, so that `prepare` must see all rows first."""
        return any(getattr(options, "idf", None) in CORPUS_TABLES for options in self.options.values())

    @property
    def compared_with(self) -> tuple[str, ...]:
        """What rows need: "references", "sources", or both."""
        return tuple(dict.fromkeys(spec.compared_with for spec in self.specs.values()))

    @property
    def signatures(self) -> dict[str, str]:
        return {label: metric.signature for label, metric in self.metrics.items()}

    def _build(self, rows: Iterable[Row]) -> dict[str, Metric]:
        """Build the metrics; those with the same encoder know which layers the others need of a text."""
        metrics = {}
        for label, spec in self.specs.items():
            references = (getattr(row, spec.compared_with) for row in rows)
            corpus = Corpus((row.prediction for row in rows), references) if rows else None
            metrics[label] = spec.build(self.options[label], corpus)
        encodings = [metric.encoding for metric in metrics.values() if metric.encoding]
        for label, metric in metrics.items():
            if metric.encoding is not None:
                encoder = metric.encoding.encoder.identity
                layers = [each.aggregation for each in encodings if each.encoder.identity == encoder]
                metrics[label] = replace(metric, encoding=replace(metric.encoding, extra=tuple(dict.fromkeys(layers))))
        return metrics

    def _follow_training(self) -> None:
        """Build the metrics again if the weights of a model that the caller holds have changed."""
        names = ("encoder", "sentence_encoder")
        encoders = [getattr(metric, name, None) for metric in self.metrics.values() for name in names]
        if not all(getattr(encoder, "is_current", True) for encoder in encoders):
            self.metrics = self._build(())

    def prepare(self, rows: Iterable[Row]) -> Scorer:
        """A scorer whose IDF tables are built from these rows, which are iterated more than once."""
        if not self.needs_corpus:
            return self
        prepared = object.__new__(Scorer)
        prepared.specs, prepared.options, prepared.on_error = self.specs, dict(self.options), self.on_error
        prepared.metrics = prepared._build(rows)
        for label, metric in prepared.metrics.items():  # from here on the tables are options like others
            if metric.tables:
                prepared.options[label] = replace(prepared.options[label], idf=list(metric.tables))  # type: ignore[call-arg]
        return prepared

    def __getstate__(self) -> dict[str, object]:
        """Names, options and IDF tables: the process that receives them loads the models."""
        for label, options in self.options.items():
            for name in ("model", "sentence_encoder"):
                model = getattr(options, name, None)
                if not isinstance(model, str | os.PathLike | None):
                    expected = "a name or path, from which every process loads it"
                    raise InputError(f"{label}: {name}: expected {expected}, but got {type(model).__name__}")
        return {"specs": self.specs, "options": self.options, "on_error": self.on_error}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.metrics = {} if self.needs_corpus else self._build(())

    def score(self, predictions: object, references: object = None, *, sources: object = None) -> dict[str, Result]:
        """Validate raw input and score it: label → result dict."""
        arguments = {"references": references, "sources": sources}
        columns: dict[str, Any] = {}
        for spec in self.specs.values():
            name = spec.compared_with
            if arguments[name] is None:
                raise InputError(f"{spec.name}: {name}: expected {name} to compare with, but got none; {spec.usage}")
            if name not in columns:
                columns["prediction"], columns[name] = check_pairs(spec.name, predictions, arguments[name], name)
        rows = [Row(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
        scorer = self.prepare(rows)
        return scorer.collect(list(scorer.stream(rows, total=len(rows))))

    def stream(self, rows: Iterable[Row], *, total: int | None = None, first_row: int = 0) -> Iterator[Examples]:
        """Examples of each row, one per metric, in row order; memory is bounded.

        Scores of a section (`SECTION` rows) do not depend on earlier sections, not even in the last digit, so that a
        run that was stopped can be continued at the beginning of a section, `first_row`.
        """
        self._follow_training()
        rows = iter(rows)
        first_rows = list(islice(rows, 32))
        unsuited = set()
        for label, metric in self.metrics.items():
            texts = [text for row in first_rows for text in (row.prediction, *getattr(row, metric.compared_with))]
            if language_warning(metric, texts):
                unsuited.add(label)
        unknown = dict.fromkeys(self.metrics, 0)
        failures: dict[str, list[str]] = {}
        count = 0
        name, progress = ", ".join(self.specs), self._run.progress
        with progress_bar(total, desc=name, unit=" texts", progress=progress, initial=first_row) as bar:
            for examples in self._examples(chain(first_rows, rows), total, first_row):
                yield examples
                bar.update(1)
                count += 1
                for label, example in zip(self.metrics, examples, strict=True):
                    unknown[label] += example.unknown
                    if example.failed:
                        failures.setdefault(label, []).append(f"row {first_row + count - 1}: {example.failed}")
        for label, reasons in failures.items():
            warnings.warn(f"{label}: {len(reasons)} row(s) have no score; {reasons[0]}", stacklevel=2)
        for label, number in unknown.items():
            if number > _UNKNOWN_SHARE * count and label not in unsuited:  # one warning is enough
                warnings.warn(
                    f"{label}: {number} of {count} rows have words or pieces the encoder does not know (n_unknown); "
                    "words without a vector are left out, unknown pieces match only where they are written the same. "
                    "Choose a model for this language or script",
                    stacklevel=2,
                )

    @property
    def _run(self) -> RunSettings:
        return next(iter(self.options.values())).run

    def _examples(self, rows: Iterable[Row], total: int | None, first_row: int) -> Iterator[Examples]:
        workers = self._run.workers or 1
        if total is not None:
            workers = min(workers, (total - first_row) // _STATIC_BLOCK)
        if workers > 1 and self._static:
            size = BLOCK if total is None else min(BLOCK, max(_STATIC_BLOCK, total // (4 * workers)))
            yield from self._in_processes(blocks(rows, first_row, size), workers)
            return
        with solver_pool(self._run.threads) as pool:
            for section in chunks(rows, SECTION):
                yield from self._in_blocks(section, first_row, pool)
                first_row += len(section)
                if len(section) == SECTION:
                    self.forget()

    @property
    def _static(self) -> bool:
        return all(metric.in_processes for metric in self.metrics.values())

    def _in_blocks(self, rows: Sequence[Row], first_row: int, pool: Executor | None = None) -> Iterator[Examples]:
        for start, block in blocks(rows, first_row, _STATIC_BLOCK if self._static else BLOCK):
            columns = []
            for metric in self.metrics.values():
                pairs = [(row.prediction, getattr(row, metric.compared_with)) for row in block]
                columns.append(score_block(metric, pairs, pool, start, self.on_error))
            yield from zip(*columns, strict=True)

    def _task(self, rows: Sequence[Row], first_row: int) -> list[Examples]:
        return list(self._in_blocks(rows, first_row))

    def _in_processes(self, tasks: Iterable[tuple[int, list[Row]]], workers: int) -> Iterator[Examples]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        pending: deque[Future[list[Examples]]] = deque()
        with ProcessPoolExecutor(workers) as pool:
            try:
                for first_row, rows in tasks:
                    pending.append(pool.submit(self._task, rows, first_row))
                    if len(pending) == 2 * workers:
                        yield from pending.popleft().result()
                for task in pending:
                    yield from task.result()
            except BrokenProcessPool:
                raise InputError(
                    f"workers: a process ended without an answer: memory may not suffice for {workers} of them, or "
                    "the script lacks `if __name__ == '__main__':`"
                ) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """Forget encoded texts, whose last digits depend on what they were encoded with."""
        VECTORS.clear()

    def collect(self, examples: Sequence[Examples]) -> dict[str, Result]:
        """Label → result dict, from the examples of all rows."""
        pairs = zip(self.metrics.items(), zip(*examples, strict=True), strict=True)
        return {label: collect(metric, column) for (label, metric), column in pairs}


def score_many(
    metrics: Sequence[MetricWithOptions], predictions: object, references: object = None, *, sources: object = None
) -> dict[str, Result]:
    """Several metrics over the same texts; metrics with the same encoder reuse one forward pass per text.

    Metrics are `name`, `name[key=value,…]` or `(name, options)`; the results are keyed by the string, or by `name` for
    a pair. Metrics that need references read `references`, those that need source documents `sources`.
    """
    return Scorer(metrics).score(predictions, references, sources=sources)


@cache
def metric_function(spec: MetricSpec) -> MetricFunction:
    """`function(predictions, references, **options)` → result, documented by the metric's class and options."""
    names = "predictions", spec.compared_with

    def score(*texts: object, **options: Any) -> dict[str, Any]:
        arguments = dict(zip(names, texts, strict=False))
        arguments |= {name: options.pop(name) for name in names if name in options}
        if len(arguments) < 2 or len(texts) > 2:
            raise InputError(f"{spec.name}: {spec.usage}, and options by name")
        key = tuple((name, value, type(value)) for name, value in options.items())  # True is not 1
        scorer = _cached_scorer(spec.name, key) if _plain(options) else Scorer((spec.name, options))
        return scorer.score(**arguments)[spec.name]

    options, settings = option_rows(spec.options_class), option_rows(RunSettings)
    summary, _, rest = inspect.cleandoc(spec.metric_class.__doc__ or "").partition("\n\n")
    lines = [summary, "", "Parameters", "----------", "predictions : n texts"]
    lines += [f"{spec.compared_with} : n texts, or n lists of texts"]
    lines += [f"{row.name} : {row.values}, default {row.default!r}\n    {row.help}" for row in options]
    lines += [", ".join(row.name for row in settings), "    Run settings.", "", rest]
    score.__doc__ = "\n".join(lines)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    parameters += [
        inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default) for row in options + settings
    ]
    score.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    score.__name__ = score.__qualname__ = spec.name
    score.__module__ = "movers"
    return score


def _plain(options: Mapping[str, object]) -> bool:
    """Whether equal options always mean the same metric: no objects, and no files, which may change between calls."""
    return all(
        value is None or type(value) in (bool, int, float) or (type(value) is str and not os.path.exists(value))
        for value in options.values()
    )


@lru_cache(maxsize=4)
def _cached_scorer(name: str, options: tuple[tuple[str, object, type], ...]) -> Scorer:
    return Scorer((name, {option: value for option, value, _ in options}))

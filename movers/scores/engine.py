"""What all metrics share that compare pairs of texts: distinct texts, blocks, threads, references, results.

Each distinct text of a block is read and encoded once. A pair is compared on the thread pool as soon as both of its
texts are ready, while the encoder goes on with the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from movers.errors import InputError
from movers.inputs import check_pairs
from movers.io import progress_bar
from movers.scores.metric import Comparison, Costs, Example, PairMetric, TooLarge, check_size
from movers.scores.options import RunOptions
from movers.scores.result import collect, corpus_score, reduce_references
from movers.threads import chunks, default_threads, one_blas_thread, solver_pool
from movers.weights import Corpus

__all__ = [
    "Comparison",
    "Example",
    "PairMetric",
    "build",
    "check_size",
    "collect",
    "corpus_score",
    "run",
    "score",
    "score_block",
    "score_stream",
    "score_together",
]

Text = TypeVar("Text")
Metric = TypeVar("Metric", bound=PairMetric[Any])
Pair = tuple[int, int]
Row = tuple[str, Sequence[str]]
_UNKNOWN_SHARE = 0.1  # of the rows; more are warned about
_BLOCK = 1024  # pairs in memory at once
_CHUNK = 32  # pairs handed to a thread at a time: handing over one costs as much as comparing one
_GROUP = 1 << 21  # numbers in the cost matrices prepared at a time: 16 MiB, or one matrix if that is more


def run(
    kind: type[PairMetric[Any]],
    name: str,
    predictions: object,
    compared_with: object,
    given: Mapping[str, object],
    argument: str = "references",
) -> dict[str, object]:
    """A metric's function: validate, build the metric, score.

    >>> from movers.scores.clark import WordMover
    >>> run(WordMover, "wms", ["Snow melts."], ["Snow melts."], {"progress": False})["scores"]
    [1.0]
    """
    options = kind.options_class.parse(name, given)
    texts, groups = check_pairs(name, predictions, compared_with, argument)
    return score(build(kind, name, options, Corpus(texts, groups)), texts, groups)


def build(kind: type[Metric], name: str, options: RunOptions, corpus: Corpus | None = None) -> Metric:
    """The metric that validated options describe, with the baseline they ask for."""
    from movers.scores.rescaling import rescaled

    if corpus is not None and options.unescape:
        corpus = corpus.cleaned(options.clean)
    return rescaled(kind.build(name, options, corpus))


def score(
    metric: PairMetric[Text], predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, object]:
    """Score checked texts and return the result every metric returns."""
    rows = zip(predictions, references, strict=True)
    return collect(metric, list(score_stream(metric, rows, total=len(predictions))))


def score_stream(metric: PairMetric[Text], rows: Iterable[Row], total: int | None = None) -> Iterator[Example]:
    """Examples in the order of the rows, holding no more than a block of them in memory."""
    bar = progress_bar(total, desc=metric.name, unit=" texts", progress=metric.options.progress)
    count = unknown = 0
    with solver_pool(metric.options.threads) as pool, bar:
        for block in blocks(rows):
            for example in score_block(metric, block, pool, first_row=count):
                yield example
                bar.update(1)
                count += 1
                unknown += example.unknown
    if unknown > _UNKNOWN_SHARE * count:
        warnings.warn(
            f"{metric.name}: {unknown} of {count} rows have words or pieces the encoder does not know (n_unknown); "
            "words without a vector are left out, unknown pieces match only where they are written the same. "
            "Choose a model for this language or script",
            stacklevel=2,
        )


def score_together(
    metrics: Mapping[str, PairMetric[Any]], rows: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
) -> dict[str, dict[str, object]]:
    """Results of several metrics over equally many rows, block by block: what one encodes, the next need not."""
    streams = {
        label: score_stream(metric, zip(*rows[label], strict=True), total=len(rows[label][0]))
        for label, metric in metrics.items()
    }
    examples = zip(*zip(*streams.values(), strict=True), strict=True)
    return {label: collect(metric, own) for (label, metric), own in zip(metrics.items(), examples, strict=True)}


def blocks(rows: Iterable[Row], size: int = _BLOCK) -> Iterator[list[Row]]:
    """Rows with together at least `size` references, the last block fewer."""
    block: list[Row] = []
    count = 0
    for row in rows:
        block.append(row)
        count += len(row[1])
        if count >= size:
            yield block
            block, count = [], 0
    if block:
        yield block


def score_block(
    metric: PairMetric[Text], rows: Sequence[Row], pool: ThreadPoolExecutor | None = None, first_row: int = 0
) -> list[Example]:
    """Examples of rows that are in memory at once; with a pool, compared in its threads."""
    with one_blas_thread():
        block = _Block(metric, rows, pool)
        try:
            block.read_and_compare()
        except TooLarge as error:
            raise InputError(f"{metric.name}: row {first_row + block.row_of(error.pair)}: {error}") from None
        finally:
            for future in block.in_flight:
                future.cancel()
        return block.examples()


@dataclass
class _Block(Generic[Text]):
    """The pairs of a block on their way: waiting for a text, being compared, compared."""

    metric: PairMetric[Text]
    rows: Sequence[Row]
    pool: ThreadPoolExecutor | None
    numbers: dict[str, int] = field(default_factory=dict)  # of the distinct texts
    texts: dict[int, Text] = field(default_factory=dict)  # read, and still needed by a pair
    cut: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    compared: dict[Pair, Comparison] = field(default_factory=dict)
    in_flight: list[Future[list[tuple[Pair, Comparison]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        clean = self.metric.options.clean
        self.rows = [(clean(prediction), [clean(text) for text in texts]) for prediction, texts in self.rows]
        for prediction, references in self.rows:
            for text in (prediction, *references):
                self.numbers.setdefault(text, len(self.numbers))

    def read_and_compare(self) -> None:
        # Equal pairs are compared once.
        pairs = dict.fromkeys(
            (self.numbers[prediction], self.numbers[text])
            for prediction, references in self.rows
            for text in references
        )
        waiting: dict[int, list[Pair]] = {}
        for pair in pairs:
            for number in set(pair):
                waiting.setdefault(number, []).append(pair)
        left = {number: len(own) for number, own in waiting.items()}
        ready: list[Pair] = []
        for number, text in self.metric.read(list(self.numbers)):
            self.texts[number] = text
            if self.metric.was_cut(text):
                self.cut.add(number)
            if self.metric.has_unknown(text):
                self.unknown.add(number)
            ready += [pair for pair in waiting[number] if pair[0] in self.texts and pair[1] in self.texts]
            if self.metric.overlaps:
                while len(ready) >= _CHUNK:
                    self._submit(ready[:_CHUNK], left)
                    ready = ready[_CHUNK:]
        if self.metric.overlaps:
            for part in chunks(ready, _CHUNK):
                self._submit(part, left)
        else:
            self._compare_prepared(ready)
        self._wait()

    def _submit(self, pairs: list[Pair], left: dict[int, int]) -> None:
        texts = [(self.texts[first], self.texts[second]) for first, second in pairs]
        for pair in pairs:
            for number in set(pair):
                left[number] -= 1
                if not left[number]:
                    del self.texts[number]  # its last pair is on its way: free the vectors
        self._run(pairs, texts, None)

    def _compare_prepared(self, pairs: list[Pair]) -> None:
        """Costs on this thread, a bounded number of them at a time; plans on the pool while this thread waits."""
        group: list[Pair] = []
        costs: list[Costs | None] = []
        size = 0
        for pair in pairs:
            try:
                matrix = self.metric.costs(self.texts[pair[0]], self.texts[pair[1]])
            except TooLarge as error:
                error.pair = pair
                raise
            group.append(pair)
            costs.append(matrix)
            size += 0 if matrix is None else matrix.size
            if size >= _GROUP:
                self._solve_group(group, costs)
                group, costs, size = [], [], 0
        self._solve_group(group, costs)

    def _solve_group(self, pairs: list[Pair], costs: list[Costs | None]) -> None:
        for begin in range(0, len(pairs), _CHUNK):
            part = pairs[begin : begin + _CHUNK]
            texts = [(self.texts[first], self.texts[second]) for first, second in part]
            self._run(part, texts, costs[begin : begin + _CHUNK])
        self._wait()

    def _run(self, pairs: list[Pair], texts: list[tuple[Text, Text]], costs: list[Costs | None] | None) -> None:
        if self.pool is None:
            self.compared.update(_compare(self.metric, pairs, texts, costs))
        else:
            self._wait(2 * (self.metric.options.threads or default_threads()) - 1)  # reading does not run far ahead
            self.in_flight.append(self.pool.submit(_compare, self.metric, pairs, texts, costs))

    def _wait(self, left: int = 0) -> None:
        """Until no more than `left` chunks are being compared."""
        while len(self.in_flight) > left:
            self.compared.update(self.in_flight.pop(0).result())

    def row_of(self, pair: Pair) -> int:
        """The first row in which a pair stands."""
        for row, (prediction, references) in enumerate(self.rows):
            if any((self.numbers[prediction], self.numbers[text]) == pair for text in references):
                return row
        return 0

    def examples(self) -> list[Example]:
        found = []
        for prediction, references in self.rows:
            first, members = self.numbers[prediction], [self.numbers[text] for text in references]
            truncated, unknown = (not marked.isdisjoint([first, *members]) for marked in (self.cut, self.unknown))
            comparisons = [self.compared[first, member] for member in members]
            found.append(reduce_references(self.metric, comparisons, truncated, unknown))
        return found


def _compare(
    metric: PairMetric[Text], pairs: list[Pair], texts: list[tuple[Text, Text]], costs: list[Costs | None] | None
) -> list[tuple[Pair, Comparison]]:
    if costs is not None:
        found = [metric.compare(first, second, own) for (first, second), own in zip(texts, costs, strict=True)]
        return list(zip(pairs, found, strict=True))
    try:
        return list(zip(pairs, metric.compare_many(texts), strict=True))
    except TooLarge as error:
        error.pair = pairs[error.index]
        raise

"""What all metrics share that compare pairs of texts: distinct texts, blocks, threads, references, results.

Each distinct text of a block is read and encoded once. A pair is compared on the thread pool as soon as both of its
texts are ready, while the encoder goes on with the rest.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from movers.errors import InputError
from movers.inputs import check_pairs
from movers.io import progress_bar
from movers.scores.options import RunOptions
from movers.scores.result import Result
from movers.threads import chunks, one_blas_thread, solver_pool
from movers.weights import Corpus

__all__ = [
    "Comparison",
    "Example",
    "PairMetric",
    "collect",
    "run",
    "score",
    "score_block",
    "score_stream",
    "score_together",
]

Text = TypeVar("Text")
Metric = TypeVar("Metric", bound="PairMetric[Any]")
Costs = NDArray[np.float64]
Pair = tuple[int, int]
Row = tuple[str, Sequence[str]]
Reduction = Literal["max", "mean", "sum"]  # `sum` for documents that a summary covers together
_UNKNOWN_SHARE = 0.1  # of the rows; more are warned about
_BLOCK = 1024  # pairs in memory at once
_BYTES_PER_CELL = 42  # of a transport problem: costs, plan and the solver's own arrays
_IN_FLIGHT = 16  # chunks that wait for a thread or are being compared
_CHUNK = 32  # pairs handed to a thread at a time: handing over one costs as much as comparing one
_GROUP = 1 << 21  # numbers in the cost matrices prepared at a time: 16 MiB, or one matrix if that is more


class Comparison(NamedTuple):
    """One prediction against one reference.

    Attributes
    ----------
    score : float
    parts : mapping
        Further numbers of the pair (`precision`, `recall`, `f1`), reduced over references like the score.
    empty : bool
        A side had no token at all.
    unfiltered : bool
        Filtering left a side without units, so the pair was compared on all its tokens.
    alignment : dict or None
        Units, masses and flows, if asked for.
    distance : float or None
        What it cost to move one side into the other; None where nothing can be moved.
    """

    score: float
    parts: Mapping[str, float] = {}
    empty: bool = False
    unfiltered: bool = False
    alignment: dict[str, object] | None = None
    distance: float | None = None


class Example(NamedTuple):
    """One prediction against all its references."""

    score: float
    parts: Mapping[str, float]
    empty: bool
    unfiltered: bool
    truncated: bool
    unknown: bool
    alignments: list[dict[str, object]] | None
    distance: float | None


@dataclass(frozen=True)
class PairMetric(abc.ABC, Generic[Text]):
    """A metric with all its options settled; `Text` is what it makes of a text.

    Attributes
    ----------
    name, signature : str
    options : RunOptions
        Validated; threads, progress bar, whether alignments are wanted, and the metric's own.
    baseline : mapping or None
        What unrelated texts score: `score` and the parts, by which all are rescaled.
    """

    name: str
    signature: str
    options: RunOptions
    baseline: Mapping[str, float] | None = field(default=None, kw_only=True)

    #: The class of its options.
    options_class: ClassVar[type[RunOptions]]

    @classmethod
    @abc.abstractmethod
    def build(cls, name: str, options: Any, corpus: Corpus | None = None) -> Self:
        """The metric that validated options describe; `idf="corpus"` needs the texts of the whole call."""

    @property
    @abc.abstractmethod
    def multi_ref(self) -> Reduction:
        """How the scores against several references become one."""

    @property
    def overlaps(self) -> bool:
        """Whether to compare the first pairs while later texts are being read.

        An encoder's arithmetic leaves Python's lock free for that. A metric that reads in plain Python does not
        overlap: its `costs` are prepared on the calling thread and only the solver runs in the threads, which would
        otherwise take the lock from each other.
        """
        return True

    @abc.abstractmethod
    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Text]]:
        """`(index, text)` for each of the distinct texts as soon as it is ready, in any order."""

    @abc.abstractmethod
    def compare(self, prediction: Text, reference: Text, costs: Costs | None = None) -> Comparison:
        """One pair; runs in threads. `costs` are those prepared by `costs`, if any."""

    def costs(self, prediction: Text, reference: Text) -> Costs | None:
        """The cost matrix of a pair, for metrics that do not overlap."""
        return None

    def compare_many(self, pairs: Sequence[tuple[Text, Text]]) -> list[Comparison]:
        """Several pairs, one after the other; a metric may do better in a batch."""
        found: list[Comparison] = []
        for prediction, reference in pairs:
            try:
                found.append(self.compare(prediction, reference))
            except TooLarge as error:
                error.index = len(found)
                raise
        return found

    def was_cut(self, text: Text) -> bool:
        """Whether tokens of the text were left out."""
        return False

    def has_unknown(self, text: Text) -> bool:
        """Whether the encoder does not know all words or pieces of the text."""
        return False

    def similarity(self, distance: float) -> float:
        """The score of a distance, for metrics whose score is a function of it alone."""
        raise NotImplementedError

    def reading_whole(self) -> Self:
        """The metric for texts of our own: read through windows, never refused for their length."""
        return self

    def table_row(self) -> int | None:
        """Which layer's row of a baseline table in the `bert-score` package's format belongs to it, if one does."""
        return None

    def rescale(self, name: str, value: float) -> float:
        """A score or part on the scale of the baseline: unrelated texts at 0, equal ones at 1."""
        if self.baseline is None:
            return value
        return (value - self.baseline[name]) / (1.0 - self.baseline[name])

    def extra(self) -> dict[str, object]:
        """Further entries of the result."""
        return {}


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
            f"{metric.name}: {unknown} of {count} rows have words or pieces unknown to the encoder (n_unknown); "
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


class TooLarge(Exception):
    """A pair whose cost matrix would have more cells than the caller allows: its place in a list, then its texts."""

    index: int = 0
    pair: Pair = (0, 0)


def check_size(m: int, n: int, limit: int) -> None:
    """Refuse a cost matrix (m, n) of more than `limit` cells, before anything of that size is made."""
    if m * n > limit:
        size = m * n * _BYTES_PER_CELL / 1e9
        raise TooLarge(
            f"comparing {m:,} with {n:,} units takes about {size:,.1f} GB: more than max_cells={limit:,}; "
            "raise max_cells if there is room, or compare sentences (sms)"
        )


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
            self.in_flight.append(self.pool.submit(_compare, self.metric, pairs, texts, costs))
            while len(self.in_flight) > _IN_FLIGHT:  # what waits holds its texts in memory
                self.compared.update(self.in_flight.pop(0).result())

    def _wait(self) -> None:
        while self.in_flight:
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
            found.append(_reduce(self.metric, comparisons, truncated, unknown))
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


def _reduce(metric: PairMetric[Text], comparisons: list[Comparison], truncated: bool, unknown: bool) -> Example:
    if metric.multi_ref == "max":
        best = max(comparisons, key=lambda comparison: comparison.score)
        value, parts, distance = best.score, best.parts, best.distance
    else:
        count = 1 if metric.multi_ref == "sum" else len(comparisons)
        value = math.fsum(comparison.score for comparison in comparisons) / count
        names = comparisons[0].parts
        parts = {name: math.fsum(comparison.parts[name] for comparison in comparisons) / count for name in names}
        moved = [comparison.distance for comparison in comparisons if comparison.distance is not None]
        distance = math.fsum(moved) / len(moved) if moved else None
    alignments = None
    if metric.options.return_alignment:
        alignments = [
            {
                "reference_index": index,
                "score": metric.rescale("score", comparison.score),
                **(comparison.alignment or {}),
            }
            for index, comparison in enumerate(comparisons)
        ]
    return Example(
        metric.rescale("score", value),
        {name: metric.rescale(name, part) for name, part in parts.items()} if metric.baseline else parts,
        any(comparison.empty for comparison in comparisons),
        any(comparison.unfiltered for comparison in comparisons),
        truncated,
        unknown,
        alignments,
        distance,
    )


def corpus_score(metric: PairMetric[Text], scores: Sequence[float], distances: Sequence[float | None]) -> float:
    """The mean of the scores or, with `average="distances"`, the similarity of the mean distance.

    A row without distance (one side is blank) counts with its score.
    """
    if getattr(metric.options, "average", "scores") == "scores":
        return math.fsum(scores) / len(scores)
    moved = [distance for distance in distances if distance is not None]
    others = [score for score, distance in zip(scores, distances, strict=True) if distance is None]
    value = metric.rescale("score", metric.similarity(math.fsum(moved) / len(moved))) if moved else 0.0
    return math.fsum([value * len(moved), *others]) / len(scores)


def collect(metric: PairMetric[Text], examples: Sequence[Example]) -> dict[str, object]:
    """The result every metric returns: plain Python values only."""
    scores, distances = [example.score for example in examples], [example.distance for example in examples]
    result: dict[str, object] = Result(
        score=corpus_score(metric, scores, distances),
        scores=scores,
        signature=metric.signature,
        n_empty=sum(example.empty for example in examples),
        n_unfiltered=sum(example.unfiltered for example in examples),
        n_truncated=sum(example.truncated for example in examples),
        n_unknown=sum(example.unknown for example in examples),
    )
    if any(distance is not None for distance in distances):
        result["distances"] = distances
    for name in examples[0].parts:
        result[name] = [example.parts[name] for example in examples]
    result.update(metric.extra())
    if metric.options.return_alignment:
        result["alignments"] = [example.alignments for example in examples]
    return result

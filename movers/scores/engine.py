"""Runs any pair metric: deduplication, blocks, threads, several references, results.

Rows are scored in blocks of bounded size. Each distinct text of a block is encoded once. A pair is compared in the
thread pool as soon as both of its texts are ready, while the encoder continues with the other texts.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Generic, NamedTuple, TypeVar

from movers.errors import InputError, RowError, TextError
from movers.inputs import check_pairs
from movers.io import progress_bar
from movers.processes import WorkerDied, process_map
from movers.scores.metric import AnyMetric, Comparison, Costs, Example, PairMetric, TooLarge, check_size
from movers.scores.options import RunOptions
from movers.scores.result import Totals, collect, corpus_score, reduce_references
from movers.threads import chunks, default_threads, one_blas_thread, solver_pool
from movers.weights import Corpus

__all__ = [
    "AnyMetric",
    "SECTION",
    "Comparison",
    "Example",
    "PairMetric",
    "Totals",
    "blocks",
    "build",
    "check_size",
    "collect",
    "corpus_score",
    "ended_workers",
    "run",
    "score",
    "score_block",
    "score_stream",
    "score_together",
    "warn_unknown",
]

Text = TypeVar("Text")
Metric = TypeVar("Metric", bound=AnyMetric)
Pair = tuple[int, int]
Row = tuple[str, Sequence[str]]
_UNKNOWN_SHARE = 0.1  # of the rows; above it a warning is issued
SECTION = 4096  # rows; no block crosses a multiple of it, so that a resumed run forms the same blocks
_BLOCK = 1024  # pairs in memory at once
_BLOCK_CHARACTERS = 16 << 20  # in these pairs, unless a single row has more
_LEAST_BLOCK = 64  # fewer pairs are not worth a process
_CHUNK = 32  # pairs per task: submitting a task costs as much as comparing a pair
_GROUP = 1 << 21  # cells of the cost matrices prepared at a time: 16 MiB, or one chunk if that is more


def run(
    kind: type[AnyMetric],
    name: str,
    predictions: object,
    compared_with: object,
    given: Mapping[str, object],
    argument: str = "references",
) -> dict[str, object]:
    """What a metric's function does: validate, build the metric, score.

    >>> from movers.scores.clark import WordMover
    >>> run(WordMover, "wms", ["Snow melts."], ["Snow melts."], {"progress": False})["scores"]
    [1.0]
    """
    options = kind.options_class.parse(name, given)
    texts, groups = check_pairs(name, predictions, compared_with, argument)
    return score(build(kind, name, options, Corpus(texts, groups)), texts, groups)


def build(kind: type[Metric], name: str, options: RunOptions, corpus: Corpus | None = None) -> Metric:
    """The metric for validated options, with its baseline if it is rescaled."""
    from movers.scores.rescaling import rescaled

    if corpus is not None and options.unescape:
        corpus = corpus.cleaned(options.clean)
    try:
        return rescaled(kind.build(name, options, corpus))
    except InputError as error:  # errors of encoders and tables do not name the metric
        if str(error).partition(":")[0] not in {"layer", *(item.name for item in fields(options))}:
            raise
        raise InputError(f"{name}: {error}") from error


def score(
    metric: PairMetric[Text], predictions: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, object]:
    """Score validated texts; returns the result dict."""
    rows = zip(predictions, references, strict=True)
    return collect(metric, list(score_stream(metric, rows, total=len(predictions))))


def score_stream(
    metric: PairMetric[Text], rows: Iterable[Row], total: int | None = None, first_row: int = 0, unknown: int = 0
) -> Iterator[Example]:
    """Yield examples in row order, with at most one block in memory.

    A contextual metric encodes nothing of a section before the last example of the previous section has been consumed.
    In a resumed run, an earlier run has scored `first_row` rows (a multiple of `SECTION`), `unknown` of which have
    words that the encoder does not know.
    """
    bar = progress_bar(total, desc=metric.name, unit=" texts", progress=metric.options.progress, initial=first_row)
    count = first_row
    with bar:
        for block in _scored_blocks(metric, rows, total, first_row):
            for example in block:
                yield example
                bar.update(1)
                count += 1
                unknown += example.unknown
    warn_unknown(metric.name, unknown, count)


def warn_unknown(metric: str, unknown: int, count: int) -> None:
    """Warn if many rows have words or subwords that the encoder does not know."""
    if unknown > _UNKNOWN_SHARE * count:
        warnings.warn(
            f"{metric}: {unknown} of {count} rows have words or pieces the encoder does not know (n_unknown); "
            "words without a vector are left out, unknown pieces match only where they are written the same. "
            "Choose a model for this language or script",
            stacklevel=2,
        )


def _scored_blocks(
    metric: PairMetric[Text], rows: Iterable[Row], total: int | None, first_row: int
) -> Iterator[list[Example]]:
    """Blocks in order, scored in this process with threads, or in worker processes."""
    workers = metric.options.workers or 1
    if total is not None:
        workers = min(workers, (total - first_row) // _LEAST_BLOCK)
    if workers > 1 and metric.runs_in_processes and not multiprocessing.current_process().daemon:
        size = _BLOCK if total is None else min(_BLOCK, max(_LEAST_BLOCK, total // (4 * workers)))
        yield from _in_processes(metric, _numbered(blocks(rows, size), first_row), workers)
        return
    with solver_pool(metric.options.threads) as pool:
        for first, block in _numbered(blocks(rows), first_row):
            yield score_block(metric, block, pool, first)


class _NumberedBlock(NamedTuple):
    first_row: int
    rows: list[Row]


def _numbered(found: Iterable[list[Row]], first_row: int) -> Iterator[_NumberedBlock]:
    for rows in found:
        yield _NumberedBlock(first_row, rows)
        first_row += len(rows)


def _in_processes(metric: PairMetric[Text], tasks: Iterable[_NumberedBlock], workers: int) -> Iterator[list[Example]]:
    try:
        yield from process_map(_score_in_worker, metric, tasks, workers)
    except WorkerDied as error:
        assert isinstance(error.task, _NumberedBlock)
        raise ended_workers(metric.name, error, error.task.first_row, len(error.task.rows), workers) from None


def ended_workers(metric: str, error: WorkerDied, first_row: int, rows: int, workers: int) -> InputError:
    """The error if two workers died on the same rows."""
    method = multiprocessing.get_start_method()
    guard = "" if method == "fork" else f", or the script lacks `if __name__ == '__main__':`, which {method} needs"
    return InputError(
        f"{metric}: workers: predictions[{first_row}] to [{first_row + rows - 1}]: expected scores, but two processes "
        f"ended over them, one after the other (exit code {error.code}): memory may not suffice for {workers} of them"
        f"{guard}"
    )


def _score_in_worker(metric: PairMetric[Text], task: _NumberedBlock) -> list[Example]:
    return score_block(metric, task.rows, None, task.first_row)


def score_together(
    metrics: Mapping[str, AnyMetric], rows: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]
) -> dict[str, dict[str, object]]:
    """Results of several metrics on the same rows, block by block, so that they share encoded texts."""
    streams = {
        label: score_stream(metric, zip(*rows[label], strict=True), total=len(rows[label][0]))
        for label, metric in metrics.items()
    }
    examples = zip(*zip(*streams.values(), strict=True), strict=True)
    return {label: collect(metric, own) for (label, metric), own in zip(metrics.items(), examples, strict=True)}


def blocks(rows: Iterable[Row], size: int = _BLOCK) -> Iterator[list[Row]]:
    """Split rows into blocks of `size` references; fewer at the end of a section, at the end, or with long texts."""
    block: list[Row] = []
    count = characters = 0
    for number, row in enumerate(rows, start=1):
        block.append(row)
        count += len(row[1])
        characters += len(row[0]) + sum(map(len, row[1]))
        if count >= size or characters >= _BLOCK_CHARACTERS or number % SECTION == 0:
            yield block
            block, count, characters = [], 0, 0
    if block:
        yield block


def score_block(
    metric: PairMetric[Text], rows: Sequence[Row], pool: ThreadPoolExecutor | None = None, first_row: int = 0
) -> list[Example]:
    """Score one block of rows, with a pool in its threads."""
    with one_blas_thread():
        block = _Block(metric, rows, pool)
        try:
            block.read_and_compare()
        except TooLarge as error:
            raise RowError(metric.name, "predictions", first_row + block.row_of(error.pair), str(error)) from None
        except TextError as error:
            raise block.row_error(error, first_row) from None
        finally:
            for future in block.in_flight:
                future.cancel()
        return block.examples()


@dataclass
class _Block(Generic[Text]):
    """State of a block: texts that have been read, pairs in flight, pairs that have been compared."""

    metric: PairMetric[Text]
    rows: Sequence[Row]
    pool: ThreadPoolExecutor | None
    numbers: dict[str, int] = field(default_factory=dict)  # distinct text → its number
    texts: dict[int, Text] = field(default_factory=dict)  # read, and still needed
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
            if self.metric.overlaps and not self.metric.by_reference:
                while len(ready) >= _CHUNK:
                    self._submit(ready[:_CHUNK], left)
                    ready = ready[_CHUNK:]
        if self.metric.by_reference:
            together: dict[int, list[Pair]] = {}
            for pair in ready:
                together.setdefault(pair[1], []).append(pair)
            for part in together.values():
                self._submit(part, left)
        elif self.metric.overlaps:
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
                    del self.texts[number]  # no further pair needs it: free its vectors
        self._run(pairs, texts, None)

    def _compare_prepared(self, pairs: list[Pair]) -> None:
        """Compute costs on this thread, in groups of bounded size, and solve each group in the pool."""
        group: list[Pair] = []
        costs: list[Costs | None] = []
        size = 0
        for part in chunks(pairs, _CHUNK):
            found = self.metric.costs_many([(self.texts[first], self.texts[second]) for first, second in part])
            group += part
            costs += found
            size += sum(0 if matrix is None else matrix.size for matrix in found)
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
            self._wait(
                2 * (self.metric.options.threads or default_threads()) - 1
            )  # do not read far ahead of the solver
            self.in_flight.append(self.pool.submit(_compare, self.metric, pairs, texts, costs))

    def _wait(self, left: int = 0) -> None:
        """Wait until at most `left` chunks are in flight."""
        while len(self.in_flight) > left:
            self.compared.update(self.in_flight.pop(0).result())

    def row_of(self, pair: Pair) -> int:
        """First row that contains the pair."""
        for row, (prediction, references) in enumerate(self.rows):
            if any((self.numbers[prediction], self.numbers[text]) == pair for text in references):
                return row
        return 0

    def row_error(self, error: TextError, first_row: int) -> InputError:
        """The error with the first row in which its text stands, whole or, if it was read in parts, somewhere."""
        for found in (error.text.__eq__, lambda text: error.text in text):
            for row, (prediction, references) in enumerate(self.rows, first_row):
                if found(prediction):
                    return RowError(self.metric.name, "predictions", row, error.reason)
                for place, text in enumerate(references):
                    if found(text):
                        several = place if len(references) > 1 else None
                        return RowError(self.metric.name, self.metric.compared_with, row, error.reason, several)
        return InputError(f"{self.metric.name}: {error.reason}")

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
    try:
        if costs is None:
            return list(zip(pairs, metric.compare_many(texts), strict=True))
        found: list[tuple[Pair, Comparison]] = []
        for pair, (first, second), own in zip(pairs, texts, costs, strict=True):
            try:
                found.append((pair, metric.compare(first, second, own)))
            except TooLarge as error:
                error.index = len(found)
                raise
        return found
    except TooLarge as error:
        error.pair = pairs[error.index]
        raise

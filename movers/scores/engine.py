"""Runs any metric on a block of rows: each distinct text is read once, each distinct pair compared once.

A pair is compared in the thread pool as soon as both of its texts have been read, while the encoder continues with the
other texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any, cast

from movers.errors import InputError, RowError, TextError
from movers.scores.metric import Comparison, Example, Metric, TooLarge, TransportMetric, size_problem
from movers.scores.result import reduce_references
from movers.threads import one_blas_thread

Pair = tuple[str, Sequence[str]]  # a prediction and its references (or sources)
_Numbers = tuple[int, int]  # of the two texts of a comparison
BLOCK = 1024  # references
_BLOCK_CHARACTERS = 1 << 18  # bounds the memory of the vectors of a block, unless a single row has more
_CHUNK = 32  # pairs per task: submitting a task costs as much as comparing a pair
SHORT = 1000  # characters per pair; below it a static metric is faster on one thread, where nobody waits for the GIL


def blocks(rows: Iterable[Any], first_row: int, size: int = BLOCK) -> Iterator[tuple[int, list[Any]]]:
    """Split rows of texts (a prediction, then lists of texts) into blocks of bounded size; with their first row."""
    block: list[Any] = []
    texts = characters = 0
    for row in rows:
        block.append(row)
        prediction, *others = row
        texts += max(map(len, others))
        characters += len(prediction) + sum(len(text) for group in others for text in group)
        if texts >= size or characters >= _BLOCK_CHARACTERS:
            yield first_row, block
            first_row += len(block)
            block, texts, characters = [], 0, 0
    if block:
        yield first_row, block


def score_block(
    metric: Metric, rows: Sequence[Pair], pool: Executor | None = None, first_row: int = 0, on_error: str = "raise"
) -> list[Example]:
    """Score rows, with a pool in its threads; errors name the row, counted from `first_row`.

    With `on_error="null"` a row that cannot be scored is marked as failed.
    """
    failed: dict[int, Example] = {}
    while True:
        left = [row for row in range(len(rows)) if row not in failed]
        try:
            examples = iter(_score(metric, [rows[row] for row in left], pool))
        except RowError as error:
            row = left[error.row]
            if on_error == "raise":
                raise RowError(error.metric, error.argument, first_row + row, error.reason, error.place) from None
            nothing = cast("TransportMetric", metric).compare_empty(False)
            example = reduce_references(metric, [nothing], False, False, False)
            failed[row] = example._replace(score=math.nan, empty=False, failed=error.reason)
        else:
            return [failed[row] if row in failed else next(examples) for row in range(len(rows))]


def _score(metric: Metric, rows: Sequence[Pair], pool: Executor | None) -> list[Example]:
    numbers: dict[str, int] = {}
    for prediction, references in rows:
        for text in (prediction, *references):
            numbers.setdefault(text, len(numbers))
    pairs = dict.fromkeys((numbers[prediction], numbers[text]) for prediction, texts in rows for text in texts)
    if metric.in_processes and sum(map(len, numbers)) < SHORT * len(pairs):
        pool = None
    with one_blas_thread():
        try:
            _check_sizes(metric, rows)
            bags, comparisons = _read_and_compare(metric, list(numbers), list(pairs), pool)
        except TextError as error:
            raise _row_error(metric, rows, error) from None
    examples = []
    for row, (prediction, references) in enumerate(rows):
        own = [comparisons[numbers[prediction], numbers[text]] for text in references]
        texts = [bags[numbers[text]] for text in (prediction, *references)]
        for comparison in own:
            if isinstance(comparison, TooLarge):
                raise RowError(metric.name, "predictions", row, str(comparison))
        counted = (any(getattr(bag, name, False) for bag in texts) for name in ("unfiltered", "cut", "unknown"))
        examples.append(reduce_references(metric, own, *counted))  # type: ignore[arg-type]
    return examples


def _check_sizes(metric: Metric, rows: Sequence[Pair]) -> None:
    """Find the rows that are too large for a contextual metric before any text is encoded."""
    if metric.encoding is None:
        return
    counting = replace(metric, encoding=replace(metric.encoding, sizes_only=True))
    for row, (prediction, references) in enumerate(rows):
        for reference in references:
            if size_problem(len(prediction.encode()), len(reference.encode())):  # a text has fewer units than bytes
                sizes = (len(bag.masses) for _, bag in counting.read([prediction, reference]))
                if problem := size_problem(*sizes):
                    raise RowError(metric.name, "predictions", row, problem)


def _read_and_compare(
    metric: Metric, texts: list[str], pairs: list[_Numbers], pool: Executor | None
) -> tuple[dict[int, Any], dict[_Numbers, Comparison | TooLarge]]:
    if pool is None:
        bags = dict(metric.read(texts))
        return bags, _compare(metric, bags, pairs)
    waiting: dict[int, list[_Numbers]] = {}
    for pair in pairs:
        for number in set(pair):
            waiting.setdefault(number, []).append(pair)
    bags, ready = {}, list[_Numbers]()
    tasks: list[Future[dict[_Numbers, Comparison | TooLarge]]] = []
    try:
        for number, bag in metric.read(texts):
            bags[number] = bag
            ready += [pair for pair in waiting[number] if pair[0] in bags and pair[1] in bags]
            while len(ready) >= _CHUNK or (ready and len(bags) == len(texts)):
                tasks.append(pool.submit(_compare, metric, bags, ready[:_CHUNK]))
                ready = ready[_CHUNK:]
        return bags, {pair: comparison for task in tasks for pair, comparison in task.result().items()}
    finally:
        for task in tasks:
            task.cancel()


def _compare(metric: Metric, bags: dict[int, Any], pairs: list[_Numbers]) -> dict[_Numbers, Comparison | TooLarge]:
    comparisons: dict[_Numbers, Comparison | TooLarge] = {}
    for first, second in pairs:
        try:
            comparisons[first, second] = metric.compare(bags[first], bags[second])
        except TooLarge as error:
            comparisons[first, second] = error
    return comparisons


def _row_error(metric: Metric, rows: Sequence[Pair], error: TextError) -> InputError:
    """The error with the first row in which its text stands, whole or, if it was read in parts, somewhere."""
    for is_it in (error.text.__eq__, lambda text: error.text in text):
        for row, (prediction, references) in enumerate(rows):
            if is_it(prediction):
                return RowError(metric.name, "predictions", row, error.reason)
            for place, text in enumerate(references):
                if is_it(text):
                    several = place if len(references) > 1 else None
                    return RowError(metric.name, metric.compared_with, row, error.reason, several)
    return InputError(f"{metric.name}: {error.reason}")

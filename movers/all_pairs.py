"""All pairs of two lists of texts: a matrix of scores, for which each distinct text is encoded once."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from movers.errors import InputError, RowError, TextError
from movers.inputs import check_texts
from movers.io import progress_bar
from movers.scorer import Row, Scorer
from movers.scores.engine import SHORT
from movers.scores.languages import language_warning
from movers.scores.metric import Metric, TooLarge, TransportMetric
from movers.scores.result import reduce_references
from movers.threads import one_blas_thread, solver_pool

__all__ = ["AllPairs", "locate", "pairwise", "score_all_pairs"]

Matrix = NDArray[np.float64]
_BLOCK_CHARACTERS = 1 << 18  # bounds the memory of the vectors of a block of texts
_CHUNK = 256  # pairs per task


def pairwise(metric: str, texts: Sequence[str], others: Sequence[str] | None = None, **options: object) -> Matrix:
    """Score every text against every other: an (n, m) matrix, in which [i, j] is the score of `texts[i]`.

    Each distinct text is encoded once (with a contextual model as long as the vectors of all texts fit into the cache,
    a gigabyte; beyond it, once per block of rows) and, if the metric is symmetric, each pair is compared once.

    `metric` is `name` or `name[key=value,…]`; `others` are m references (or documents), by default the n `texts`. With
    `idf="corpus"` the table is built from them. `options` are those of the metric, but for worker processes.

    >>> pairwise("wms", ["Snow melts.", "Shares fell."], ["Snow melts.", "Snow melts.", "Shares fell."]).round(1)
    array([[1. , 1. , 0.3],
           [0.3, 0.3, 1. ]])
    """
    scores, _ = score_all_pairs(metric, texts, others, options)
    return scores


def score_all_pairs(metric: str, texts: object, others: object, options: dict[str, Any]) -> tuple[Matrix, str]:
    """The matrix of :func:`pairwise`, and the signature."""
    scorer = Scorer(metric, **options)
    ((label, spec),) = scorer.specs.items()
    columns = {"texts": check_texts(spec.name, "texts", texts)}
    columns["others"] = columns["texts"] if others is None else check_texts(spec.name, "others", others)
    for name, column in columns.items():
        if not column:
            raise InputError(f"{spec.name}: {name}: expected at least one text, but got an empty list")
    # One row with all that is compared with, so that an IDF table counts each of them once.
    first, *rest = columns["texts"]
    scorer = scorer.prepare([Row(first, columns["others"]), *map(Row, rest)])
    language_warning(scorer.metrics[label], [*columns["texts"][:32], *columns["others"][:32]])
    run = scorer.options[label].run
    distinct = [list(dict.fromkeys(columns[name])) for name in ("texts", "others")]
    bar = progress_bar(len(distinct[0]) * len(distinct[1]), desc=label, unit=" pairs", progress=run.progress)
    with solver_pool(run.threads) as pool, bar:
        try:
            pairs = AllPairs(scorer.metrics[label], {*distinct[0], *distinct[1]}, pool)
            matrix = pairs.blockwise(distinct[0], distinct[1], bar)
        except TextError as error:
            rows = {name: [[text] for text in column] for name, column in columns.items()}
            raise locate(spec.name, error, rows) from None
    for axis, column in enumerate(columns.values()):
        if len(column) > len(distinct[axis]):
            places = {text: place for place, text in enumerate(distinct[axis])}
            matrix = matrix.take([places[text] for text in column], axis)
    return matrix, scorer.signatures[label]


def locate(owner: str, error: TextError, columns: Mapping[str, Sequence[Sequence[str]]]) -> InputError:
    """The error with the argument and row of its text, which may be a part of a longer one."""
    for is_it in (error.text.__eq__, lambda text: error.text in text):
        for argument, rows in columns.items():
            for row, texts in enumerate(rows):
                if any(map(is_it, texts)):
                    return RowError(owner, argument, row, error.reason)
    return InputError(f"{owner}: {error.reason}")


class AllPairs:
    """Compares texts of two lists, all with all; with a pool in its threads."""

    def __init__(self, metric: Metric, texts: Collection[str], pool: Executor) -> None:
        self.metric = metric
        # Short texts with static vectors are faster on one thread, where nobody waits for the GIL.
        short = sum(map(len, texts)) < SHORT / 2 * len(texts)
        self.map = map if metric.in_processes and short else pool.map
        # Precision and recall change places with the texts; the score, their F1, does not.
        self.symmetric = isinstance(metric, TransportMetric) and len(metric.tables) < 2

    def read(self, texts: Sequence[str]) -> list[Any]:
        """The bags of distinct texts, in order."""
        with one_blas_thread():
            bags = dict(self.metric.read(texts))
        return [bags[number] for number in range(len(texts))]

    def blockwise(self, texts: list[str], others: list[str], bar: Any) -> Matrix:
        """The (n, m) matrix of distinct texts; no more than two blocks of bags are held at a time."""
        matrix = np.empty((len(texts), len(others)))
        same = texts == others
        for first, rows in enumerate(_blocks(texts)):
            bags = self.read(texts[rows])
            for second, columns in enumerate(_blocks(others)):
                if same and self.symmetric and second < first:
                    matrix[rows, columns] = matrix[columns, rows].T
                    bar.update(matrix[rows, columns].size)
                else:
                    other_bags = bags if same and second == first else self.read(others[columns])
                    matrix[rows, columns] = self.compare(bags, other_bags, bar)
        return matrix

    def compare(self, bags: Sequence[Any], others: Sequence[Any], bar: Any = None) -> Matrix:
        """The (n, m) matrix of bags; if both lists are the same and the metric is symmetric, its half is mirrored."""
        half = bags is others and self.symmetric
        matrix = np.zeros((len(bags), len(others)))

        def fill(task: tuple[int, int]) -> int:
            row, begin = task
            end = min(begin + _CHUNK, len(others))
            matrix[row, begin:end] = [self._score(bags[row], other) for other in others[begin:end]]
            return 2 * (end - begin) - (begin == row) if half else end - begin

        tasks = [(row, begin) for row in range(len(bags)) for begin in range(row if half else 0, len(others), _CHUNK)]
        with one_blas_thread():
            for done in self.map(fill, tasks):
                if bar is not None:
                    bar.update(done)
        return matrix + np.triu(matrix, 1).T if half else matrix

    def _score(self, first: Any, second: Any) -> float:
        try:
            comparison = self.metric.compare(first, second)
        except TooLarge as error:
            raise TextError(str(error), first.text) from None
        return reduce_references(self.metric, [comparison], False, False, False).score


def _blocks(texts: Sequence[str]) -> list[slice]:
    """Slices of consecutive texts that have up to a number of characters, or are one text."""
    ends = np.cumsum([len(text) for text in texts]) // _BLOCK_CHARACTERS
    bounds = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(texts)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]

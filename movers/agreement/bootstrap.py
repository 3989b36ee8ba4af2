"""Bootstrap replicates of correlation coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from movers.agreement.coefficients import coefficient_of
from movers.agreement.columns import Coefficient, Floats, Scores, check_resampling

# Numbers per block of resamples, so that memory does not grow with the number of resamples.
BLOCK_NUMBERS = 2_000_000
# Kendall's tau of all resamples at once costs n² per resample in one matrix product; beyond this many texts the
# n·log n algorithm of SciPy, called once per resample, is faster.
_MATRIX_KENDALL_LIMIT = 3_000


def percentile_interval(replicates: Scores, confidence: float = 0.95) -> tuple[float, float]:
    """The central share ``confidence`` of bootstrap replicates; undefined (NaN) replicates are left out.

    Examples
    --------
    >>> low, high = percentile_interval([float(number) for number in range(101)], confidence=0.9)
    >>> round(low, 6), round(high, 6)
    (5.0, 95.0)
    """
    check_resampling(1, confidence=confidence)
    defined = np.asarray(replicates, dtype=np.float64)
    defined = defined[~np.isnan(defined)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def resample_counts(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Bootstrap resamples as counts: blocks of shape (resamples, n), how often each of the n units was drawn."""
    block = max(1, BLOCK_NUMBERS // n)
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = rng.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


@dataclass(frozen=True)
class _Ties:
    """A column sorted into its distinct values, so that ranks and ties of any resample follow from counts."""

    order: NDArray[np.intp]  # rows in ascending order of value
    starts: NDArray[np.intp]  # start of each distinct value in that order
    group: NDArray[np.intp]  # index of the distinct value of each row

    @classmethod
    def of(cls, values: Floats) -> _Ties:
        _, first, group = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(first)))
        return cls(order, starts, group)

    def counts(self, counts: Floats) -> Floats:
        """How often each distinct value occurs in each resample: shape (resamples, distinct values)."""
        return np.add.reduceat(counts[:, self.order], self.starts, axis=1)

    def ranks(self, counts: Floats) -> Floats:
        """Average ranks in each resample, shape (resamples, n); entries of rows that were not drawn are never used."""
        by_value = self.counts(counts)
        middle = np.cumsum(by_value, axis=1) - (by_value - 1) / 2
        return middle[:, self.group]


def _weighted_pearson(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Pearson's r of each resample. ``x`` and ``y`` have shape (n,) or (resamples, n), ``counts`` (resamples, n)."""
    n = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / n
    y = y - (counts * y).sum(axis=1, keepdims=True) / n
    covariance = (counts * x * y).sum(axis=1)
    return covariance / np.sqrt((counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1))


def _weighted_concordance(x: Floats, y: Floats, counts: Floats) -> Floats:
    """P − Q of each resample: ½ Σ_ij c_i c_j sign(x_i − x_j) sign(y_i − y_j), as one matrix product per row block."""
    n = len(x)
    # float32 is exact here: the entries of the product are integers of at most n < 2²⁴.
    columns = np.ascontiguousarray(counts.T, dtype=np.float32)
    total = np.zeros(len(counts))
    rows_at_once = max(1, BLOCK_NUMBERS // n)
    for start in range(0, n, rows_at_once):
        rows = slice(start, start + rows_at_once)
        signs = np.sign(x[rows, None] - x[None, :]) * np.sign(y[rows, None] - y[None, :])
        total += np.einsum("rb,rb->b", columns[rows], signs.astype(np.float32) @ columns, dtype=np.float64)
    return total / 2


def _weighted_kendall(x: Floats, y: Floats, counts: Floats) -> dict[Coefficient, Floats]:
    """τ-b and τ-c of each resample."""
    n = counts.sum(axis=1)
    tied_x, tied_y = _Ties.of(x).counts(counts), _Ties.of(y).counts(counts)
    pairs = n * (n - 1) / 2
    untied = (pairs - (tied_x * (tied_x - 1) / 2).sum(axis=1)) * (pairs - (tied_y * (tied_y - 1) / 2).sum(axis=1))
    distinct = np.minimum((tied_x > 0).sum(axis=1), (tied_y > 0).sum(axis=1))
    if len(x) <= _MATRIX_KENDALL_LIMIT:
        concordance = _weighted_concordance(x, y, counts)
    else:
        drawn = (np.repeat(np.arange(len(x)), row.astype(np.intp)) for row in counts)
        concordance = np.array([coefficient_of(x[rows], y[rows], "kendall") for rows in drawn]) * np.sqrt(untied)
    return {
        "kendall": concordance / np.sqrt(untied),
        "kendall_c": 2 * concordance / (n**2 * (distinct - 1) / distinct),
    }


def _block_coefficients(
    x: Floats, y: Floats, counts: Floats, wanted: Sequence[Coefficient]
) -> dict[Coefficient, Floats]:
    """All wanted coefficients of a block of resamples; NaN where a resample has a constant column."""
    found: dict[Coefficient, Floats] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        if "pearson" in wanted:
            found["pearson"] = _weighted_pearson(x, y, counts)
        if "spearman" in wanted:
            found["spearman"] = _weighted_pearson(_Ties.of(x).ranks(counts), _Ties.of(y).ranks(counts), counts)
        if {"kendall", "kendall_c"} & set(wanted):
            found |= _weighted_kendall(x, y, counts)
    drawn = counts > 0
    constant = np.zeros(len(counts), dtype=bool)
    for column in (x, y):
        lowest = np.where(drawn, column, np.inf).min(axis=1)
        constant |= lowest == np.where(drawn, column, -np.inf).max(axis=1)
    return {name: np.where(constant, math.nan, found[name]) for name in wanted}


def bootstrap(
    x: Floats, y: Floats, wanted: Sequence[Coefficient], n_resamples: int, rng: np.random.Generator
) -> dict[Coefficient, Floats]:
    r"""Bootstrap replicates of coefficients of two columns (n,), each (n_resamples,): rows drawn with replacement.

    A resample is kept as counts *c* (how often each row was drawn), and every coefficient is written as a function of
    counts: Pearson as weighted moments; Spearman as Pearson of the ranks, which follow from cumulated counts without
    sorting anew; Kendall from :math:`P - Q = \frac12 c^\top S c` with
    :math:`S_{ij} = \mathrm{sign}(x_i - x_j)\,\mathrm{sign}(y_i - y_j)`. So all resamples are computed at once. A
    resample with a constant column has NaN. Equal generators draw equal rows, so that two metrics' replicates are
    paired.
    """
    blocks = [_block_coefficients(x, y, counts, wanted) for counts in resample_counts(len(x), n_resamples, rng)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in wanted}

"""Columns of scores: validation, and which texts belong together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, SupportsFloat, get_args

import numpy as np
from numpy.typing import NDArray

from movers.errors import InputError
from movers.inputs import check_positive

Coefficient = Literal["pearson", "spearman", "kendall", "kendall_c"]
Level = Literal["segment", "summary", "system"]
Alternative = Literal["two-sided", "greater", "less"]
Score = float | int | None
Floats = NDArray[np.float64]
Scores = Sequence[Score] | Floats

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
COEFFICIENT_TITLES: dict[Coefficient, str] = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall τ-b",
    "kendall_c": "Kendall τ-c",
}
LEVELS: tuple[Level, ...] = get_args(Level)


_MOST_RESAMPLES = 10_000_000  # bounds the memory for their outcomes


def check_resampling(n_resamples: int, seed: int = 0, **shares: float) -> None:
    """Check ``n_resamples``, ``seed``, and that every named share (confidence, alpha) is between 0 and 1."""
    check_positive("agreement", "n_resamples", n_resamples, none_allowed=False)
    if n_resamples > _MOST_RESAMPLES:
        raise InputError(f"agreement: n_resamples: expected at most {_MOST_RESAMPLES:,}, but got {n_resamples:,}")
    check_positive("agreement", "seed", seed, none_allowed=False, least=0)
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise InputError(f"agreement: {name}: expected a number between 0 and 1, both excluded, but got {share}")


def stack(columns: Mapping[str, Scores], *, complete: bool = False) -> Floats:
    """Stack named columns into an array of shape (columns, texts); a missing value is NaN, or an error."""
    stacked = [_as_floats(column, name, complete) for name, column in columns.items()]
    first, n = next(iter(columns)), len(stacked[0])
    for name, column in zip(columns, stacked, strict=True):
        if len(column) != n:
            raise InputError(f"agreement: {name}: expected as many values as {first} has ({n}), but got {len(column)}")
    return np.stack(stacked)


def _as_floats(values: Scores, name: str, complete: bool) -> Floats:
    if isinstance(values, str | bytes):
        raise InputError(f"agreement: {name}: expected a list of numbers, but got the text {values!r:.60}")
    floats = np.empty(len(values), dtype=np.float64)
    for row, value in enumerate(values):
        number = _as_float(value)
        if math.isinf(number) or (complete and math.isnan(number)):
            expected = "a finite number" if complete else "a finite number or None"
            raise InputError(f"agreement: {name}[{row}]: expected {expected}, but got {value!r:.60}")
        floats[row] = number
    return floats


def _as_float(value: object) -> float:
    """NaN for a missing value, infinity for anything that is not a number."""
    if value is None:
        return math.nan
    # ndim: a scalar of NumPy or torch is a number, an array is none.
    if isinstance(value, SupportsFloat) and not isinstance(value, bool | np.bool_) and getattr(value, "ndim", 0) == 0:
        return float(value)
    return math.inf


def take(labels: Sequence[str], rows: NDArray[np.intp]) -> list[str]:
    """The labels of some rows."""
    return [labels[row] for row in rows.tolist()]


def rows_of_each(labels: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Rows of each label, labels in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(found, dtype=np.intp) for label, found in rows.items()}


def check_labels(name: str, labels: Sequence[object], expected: int) -> None:
    """Check that there is one label per text."""
    if len(labels) != expected:
        raise InputError(f"agreement: {name}: expected one value per text ({expected}), but got {len(labels)}")
    for row, label in enumerate(labels):
        if label is None:
            raise InputError(f"agreement: {name}[{row}]: expected a label, but got None")


def labels_for(
    level: Level, documents: Sequence[str] | None, systems: Sequence[str] | None, expected: int
) -> Sequence[str] | None:
    """The column by which a level groups texts, validated."""
    if level == "segment":
        return None
    name, labels = ("documents", documents) if level == "summary" else ("systems", systems)
    if labels is None:
        raise InputError(f"agreement: {name}: expected one label per text at {level} level, but got None")
    check_labels(name, labels, expected)
    return labels

"""Columns of scores: what may come in, and which texts belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Coefficient = Literal["pearson", "spearman", "kendall", "kendall_c"]
Level = Literal["segment", "summary", "system"]
Alternative = Literal["two-sided", "greater", "less"]
Score = float | int | None
Floats = NDArray[np.float64]

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
LEVELS: tuple[Level, ...] = get_args(Level)


def check_choice(name: str, value: str, valid: Sequence[str]) -> None:
    if value not in valid:
        raise ValueError(f"`{name}` must be one of {', '.join(valid)}; got {value!r}.")


def check_resampling(n_resamples: int, confidence: float = 0.95) -> None:
    if n_resamples < 1:
        raise ValueError(f"`n_resamples` must be at least 1; got {n_resamples}.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"`confidence` must lie between 0 and 1, both excluded; got {confidence}.")


def as_floats(values: Sequence[Score] | NDArray[Any], name: str) -> Floats:
    """A 1-D float array in which a missing value is NaN; anything that is no finite number is refused by row."""
    if isinstance(values, (str, bytes)):
        raise ValueError(f"`{name}` must be a list of numbers; got the text {values!r}.")
    floats = np.empty(len(values), dtype=np.float64)
    for row, value in enumerate(values):
        if value is None:
            floats[row] = math.nan
            continue
        if isinstance(value, (str, bytes, bool, np.bool_)):
            raise ValueError(f"`{name}`, row {row}: expected a number or None, got {value!r}.")
        try:
            floats[row] = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"`{name}`, row {row}: expected a number or None, got {value!r}.") from None
        if math.isinf(floats[row]):
            raise ValueError(f"`{name}`, row {row}: expected a finite number, got {value!r}.")
    return floats


def as_complete_floats(values: Sequence[Score] | NDArray[Any], name: str) -> Floats:
    """As :func:`as_floats`, where nothing may be missing."""
    floats = as_floats(values, name)
    if np.isnan(floats).any():
        row = int(np.flatnonzero(np.isnan(floats))[0])
        raise ValueError(f"`{name}`, row {row}: expected a number, got {values[row]!r}.")
    return floats


def check_lengths(**columns: Sequence[Any] | NDArray[Any]) -> None:
    (first_name, first), *others = columns.items()
    for name, column in others:
        if len(column) != len(first):
            raise ValueError(
                f"`{name}` must be as long as `{first_name}`: expected {len(first)} values, got {len(column)}."
            )


def rows_of_each(labels: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """The rows that carry each label, labels in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(found, dtype=np.intp) for label, found in rows.items()}


def labels_for(
    level: Level, documents: Sequence[str] | None, systems: Sequence[str] | None, expected: int
) -> Sequence[str] | None:
    """The column that a level groups texts by, checked."""
    if level == "segment":
        return None
    name, labels = ("documents", documents) if level == "summary" else ("systems", systems)
    if labels is None:
        raise ValueError(f"level {level!r} needs `{name}`: one label for each text; got none.")
    if len(labels) != expected:
        raise ValueError(f"`{name}` must hold one label for each text: expected {expected}, got {len(labels)}.")
    for row, label in enumerate(labels):
        if label is None:
            raise ValueError(f"`{name}`, row {row}: expected a label, got None.")
    return labels


def keep_labels(labels: Sequence[str] | None, kept: NDArray[np.bool_]) -> list[str] | None:
    return None if labels is None else [label for label, keep in zip(labels, kept, strict=True) if keep]

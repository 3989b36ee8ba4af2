"""Correlation coefficients with human scores at segment, summary and system level, with bootstrap intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from movers.errors import InputError
from movers.inputs import check_choice, check_positive

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["segment", "summary", "system"]
Floats = NDArray[np.float64]
Outcome = dict[str, Any]  # of JSON values; None is undefined
Scores = Sequence[float | int | None] | Floats

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
COEFFICIENT_TITLES: dict[Coefficient, str] = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b"}
LEVELS: tuple[Level, ...] = get_args(Level)
FEW_SYSTEMS = 10  # with fewer a system-level coefficient says little: tables and `correlate` warn


# --- input -----------------------------------------------------------------------------------------------------------


def check_resampling(n_resamples: int, seed: int = 0, **shares: float) -> None:
    """Check ``n_resamples``, ``seed``, and that every named share (confidence, alpha) is between 0 and 1."""
    check_positive("agreement", "n_resamples", n_resamples, none_allowed=False)
    check_positive("agreement", "seed", seed, none_allowed=False, least=0)
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise InputError(f"agreement: {name}: expected a number between 0 and 1, both excluded, but got {share}")


def stack(columns: Mapping[str, Scores], *, complete: bool = False) -> Floats:
    """Stack named columns into an array of shape (columns, texts); a missing value is NaN, or an error."""
    expected = "a finite number" if complete else "a finite number or None"
    first, length = next((name, len(values)) for name, values in columns.items())
    for name, values in columns.items():
        if len(values) != length:
            raise InputError(
                f"agreement: {name}: expected as many values as {first} has ({length}), but got {len(values)}"
            )
        for row, value in enumerate(values):
            number = math.nan if value is None else value
            if not isinstance(number, Real) or math.isinf(number) or (complete and math.isnan(number)):
                raise InputError(f"agreement: {name}[{row}]: expected {expected}, but got {value!r:.60}")
    return np.array([np.array(values, dtype=float) for values in columns.values()])


def check_labels(name: str, labels: Sequence[object] | None, expected: int) -> None:
    """Check that there is one label per text."""
    if labels is None or len(labels) != expected:
        got = "None" if labels is None else len(labels)
        raise InputError(f"agreement: {name}: expected one value per text ({expected}), but got {got}")


def labels_for(
    level: Level, documents: Sequence[str] | None, systems: Sequence[str] | None, expected: int
) -> Sequence[str] | None:
    """The column by which a level groups texts, validated."""
    check_choice("agreement", "level", level, LEVELS)
    if level == "segment":
        return None
    name, labels = ("documents", documents) if level == "summary" else ("systems", systems)
    check_labels(name, labels, expected)
    return labels


def rows_by_label(labels: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Rows of each label, labels in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(members, dtype=np.intp) for label, members in rows.items()}


# --- coefficients ----------------------------------------------------------------------------------------------------


def coefficient_of(x: Floats, y: Floats, coefficient: Coefficient) -> float:
    """One coefficient of two complete columns; NaN where it is undefined (fewer than two texts, a constant column)."""
    return float(coefficients_of_rows(x[None], y[None], [coefficient])[coefficient][0])


def coefficients_of_rows(x: Floats, y: Floats, coefficients: Collection[Coefficient]) -> dict[Coefficient, Floats]:
    """Coefficients of every row of ``x`` with the same row of ``y``, both of shape (rows, n)."""
    functions = {"pearson": _pearson_of_rows, "spearman": _spearman_of_rows, "kendall": _kendall_of_rows}
    defined = ~(_is_constant(x) | _is_constant(y))
    values = {name: np.full(len(x), math.nan) for name in coefficients}
    if defined.any():
        for name in coefficients:
            values[name][defined] = functions[name](x[defined], y[defined])
    return values


def _is_constant(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray((rows[:, 1:] == rows[:, :-1]).all(axis=1))


def _pearson_of_rows(x: Floats, y: Floats) -> Floats:
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return np.asarray((x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)))


def _spearman_of_rows(x: Floats, y: Floats) -> Floats:
    return _pearson_of_rows(stats.rankdata(x, axis=1), stats.rankdata(y, axis=1))


def _kendall_of_rows(x: Floats, y: Floats) -> Floats:
    if x.shape[1] > 32:
        # "asymptotic" concerns the p-value, which is not used; the exact one takes time.
        return np.array([stats.kendalltau(*row, method="asymptotic").statistic for row in zip(x, y, strict=True)])
    # All rows at once, by definition: 1,000 rows of 16 in .015 s, SciPy's calls take .6 s.
    signs_x, signs_y = (np.sign(values[:, :, None] - values[:, None, :]) for values in (x, y))
    untied = np.count_nonzero(signs_x, axis=(1, 2)) * np.count_nonzero(signs_y, axis=(1, 2))
    return np.asarray((signs_x * signs_y).sum(axis=(1, 2)) / np.sqrt(untied))


def correlation(scores: Scores, human: Scores, coefficient: Coefficient = "pearson") -> float:
    """One correlation coefficient between two complete lists of numbers (:func:`correlate` skips missing values).

    ``kendall`` is τ-b. Undefined (fewer than two values, one list constant) is NaN.

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman"), 4)
    0.8
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    x, y = stack({"scores": scores, "human": human}, complete=True)
    return coefficient_of(x, y, coefficient)


# --- levels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paired:
    """Complete columns at one level, on which coefficients are computed.

    ``columns`` has shape (1 + metrics, units), human scores first. At ``summary`` level the coefficient is the mean
    over ``documents`` (the rows of each); at the other levels ``columns`` itself is correlated.
    """

    columns: Floats
    documents: list[NDArray[np.intp]] | None
    texts: int
    units: int
    constant_documents: int = 0

    @classmethod
    def at(cls, columns: Floats, level: Level, labels: Sequence[str] | None) -> Paired:
        """Aggregate columns of shape (1 + metrics, texts) to a level; texts with missing values are dropped."""
        complete = ~np.isnan(columns).any(axis=0)
        columns = columns[:, complete]
        texts = columns.shape[1]
        if labels is None:
            return cls(columns, None, texts, texts)
        groups = list(rows_by_label([labels[row] for row in np.flatnonzero(complete).tolist()]).values())
        if level == "system":
            means = np.stack([columns[:, rows].mean(axis=1) for rows in groups], axis=1) if groups else columns
            return cls(means, None, texts, len(groups))
        varied = [rows for rows in groups if not _is_constant(columns[:, rows]).any()]
        return cls(columns, varied, sum(map(len, varied)), len(varied), len(groups) - len(varied))

    def within(self, metric: int, coefficient: Coefficient) -> Floats:
        """One metric's coefficient within each document, shape (documents,); at other levels the single coefficient."""
        human, scores = self.columns[0], self.columns[metric]
        if self.documents is None:
            return np.array([coefficient_of(scores, human, coefficient)])
        return np.array([coefficient_of(scores[rows], human[rows], coefficient) for rows in self.documents])

    def value(self, metric: int, coefficient: Coefficient) -> float:
        return float(self.within(metric, coefficient).mean()) if self.units else math.nan

    def replicates(self, n_resamples: int, rng: np.random.Generator) -> dict[Coefficient, Floats]:
        """Bootstrap replicates of the first metric's coefficients, each of shape (n_resamples,); undefined is NaN."""
        if not self.units:
            return {name: np.full(n_resamples, math.nan) for name in COEFFICIENTS}
        within = {name: self.within(1, name) for name in COEFFICIENTS} if self.documents is not None else None
        blocks = []
        size = max(1, 2_000_000 // max(self.units, 1000))  # resamples per block; bounds the memory
        for start in range(0, n_resamples, size):
            drawn = rng.integers(0, self.units, size=(min(size, n_resamples - start), self.units))
            if within is None:
                blocks.append(coefficients_of_rows(self.columns[1][drawn], self.columns[0][drawn], COEFFICIENTS))
            else:
                blocks.append({name: values[drawn].mean(axis=1) for name, values in within.items()})
        return {name: np.concatenate([block[name] for block in blocks]) for name in COEFFICIENTS}


def with_interval(name: str, value: float, replicates: Floats, confidence: float) -> Outcome:
    """``name``, ``name_low`` and ``name_high``: the central share ``confidence`` of the replicates that are defined."""
    defined = replicates[~np.isnan(replicates)]
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(defined) else [math.nan] * 2
    numbers = {name: value, f"{name}_low": float(low), f"{name}_high": float(high)}
    return {key: None if math.isnan(number) else number for key, number in numbers.items()}


def measure(
    columns: Floats,
    level: Level,
    labels: Sequence[str] | None,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[Outcome, dict[Coefficient, Floats]]:
    """:func:`correlate` of validated columns of shape (2, texts), human scores first; also the replicates."""
    paired = Paired.at(columns, level, labels)
    row = {"n": paired.units if level == "system" else paired.texts, "units": paired.units, "texts": paired.texts}
    replicates = paired.replicates(n_resamples, rng)
    for name, column in replicates.items():
        row |= with_interval(name, paired.value(1, name), column, confidence)
    no_human, no_score = np.isnan(columns)
    skipped = {
        "skipped_no_human_score": int(no_human.sum()),
        "skipped_no_metric_score": int((no_score & ~no_human).sum()),
        "skipped_constant_documents": paired.constant_documents,
    }
    return row | skipped, replicates


def few_systems(level: Level, systems: int) -> str:
    """A warning if there are too few systems, else nothing."""
    if level != "system" or systems >= FEW_SYSTEMS:
        return ""
    return f"coefficients between {systems} systems (fewer than {FEW_SYSTEMS}) are very uncertain"


def correlate(
    scores: Scores,
    human: Scores,
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Outcome:
    """Correlate scores with human scores at one level, with percentile bootstrap intervals.

    ``scores`` and ``human`` have one value per text; rows where either is None (or NaN) are skipped and counted.
    ``documents`` (needed at ``summary`` level) and ``systems`` (at ``system`` level) have one label per text. The
    bootstrap draws texts, documents or systems with replacement, depending on the level.

    Returns a flat dict of JSON values: ``n`` (the sample size: texts, or systems at system level), ``units`` (what was
    resampled), ``texts`` (those that were used); ``pearson``, ``spearman``, ``kendall``, each also with ``_low`` and
    ``_high`` (None if undefined); ``skipped_no_human_score`` and ``skipped_no_metric_score`` (texts, each counted once)
    and ``skipped_constant_documents`` (one side is constant).

    >>> row = correlate([0.1, 0.4, None, 0.35, 0.8], [1, 2, 5, 3, 4], n_resamples=100)
    >>> row["n"], row["skipped_no_metric_score"], round(row["spearman"], 4)
    (4, 1, 0.8)
    """
    check_resampling(n_resamples, seed, confidence=confidence)
    columns = stack({"human": human, "scores": scores})
    labels = labels_for(level, documents, systems, columns.shape[1])
    row, _ = measure(columns, level, labels, n_resamples, confidence, np.random.default_rng(seed))
    if warning := few_systems(level, row["units"]):
        warnings.warn(f"agreement: {warning}", stacklevel=2)
    return row

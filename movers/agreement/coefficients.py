"""Correlation coefficients with human scores at segment, summary and system level, with bootstrap intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from movers.errors import InputError
from movers.inputs import check_choice, check_positive

Coefficient = Literal["pearson", "spearman", "kendall", "kendall_c"]
Level = Literal["segment", "summary", "system"]
Floats = NDArray[np.float64]
Scores = Sequence[float | int | None] | Floats

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
COEFFICIENT_TITLES: dict[Coefficient, str] = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall τ-b",
    "kendall_c": "Kendall τ-c",
}
LEVELS: tuple[Level, ...] = get_args(Level)
# With fewer systems a system-level coefficient says little: tables and `correlate` warn.
FEW_SYSTEMS = 10
_MOST_RESAMPLES = 10_000_000  # bounds the memory for their outcomes


# --- input -----------------------------------------------------------------------------------------------------------


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
    expected = "a finite number" if complete else "a finite number or None"
    first = next(iter(columns))
    for name, values in columns.items():
        if isinstance(values, str | bytes):
            raise InputError(f"agreement: {name}: expected a list of numbers, but got the text {values!r:.60}")
        if (length := len(columns[first])) != len(values):
            raise InputError(
                f"agreement: {name}: expected as many values as {first} has ({length}), but got {len(values)}"
            )
        for row, value in enumerate(values):
            number = math.nan if value is None else value
            is_number = isinstance(number, Real) and not isinstance(number, bool | np.bool_)
            if not is_number or math.isinf(number) or (complete and math.isnan(number)):
                raise InputError(f"agreement: {name}[{row}]: expected {expected}, but got {value!r:.60}")
    return np.array([[math.nan if value is None else value for value in values] for values in columns.values()], float)


def check_labels(name: str, labels: Sequence[object] | None, expected: int) -> None:
    """Check that there is one label per text."""
    if labels is None or len(labels) != expected:
        got = "None" if labels is None else len(labels)
        raise InputError(f"agreement: {name}: expected one value per text ({expected}), but got {got}")
    for row, label in enumerate(labels):
        if label is None:
            raise InputError(f"agreement: {name}[{row}]: expected a label, but got None")


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


def is_constant(values: Floats) -> bool:
    return len(values) < 2 or bool(values.min() == values.max())


def coefficient_of(x: Floats, y: Floats, coefficient: Coefficient) -> float:
    """One coefficient of two complete columns; NaN where it is undefined (fewer than two texts, a constant column)."""
    return float(coefficients_of_rows(x[None], y[None], [coefficient])[coefficient][0])


def coefficients_of_rows(x: Floats, y: Floats, coefficients: Collection[Coefficient]) -> dict[Coefficient, Floats]:
    """Coefficients of every row of ``x`` with the same row of ``y``, both of shape (rows, n)."""
    n = x.shape[1]
    values = {name: np.full(len(x), math.nan) for name in COEFFICIENTS}
    defined = (x.min(axis=1) < x.max(axis=1)) & (y.min(axis=1) < y.max(axis=1)) if n else np.zeros(len(x), dtype=bool)
    rows = np.flatnonzero(defined)
    if "pearson" in coefficients and len(rows):
        values["pearson"][rows] = _pearson_of_rows(x[rows], y[rows])
    if "spearman" in coefficients and len(rows):
        values["spearman"][rows] = _pearson_of_rows(stats.rankdata(x[rows], axis=1), stats.rankdata(y[rows], axis=1))
    if {"kendall", "kendall_c"} & set(coefficients) and len(rows):
        values["kendall"][rows], values["kendall_c"][rows] = _kendall_of_rows(x[rows], y[rows])
    return {name: values[name] for name in coefficients}


def _kendall_of_rows(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """τ-b and τ-c of every row."""
    n = x.shape[1]
    if n <= 32:  # all rows at once, by definition: 1,000 rows in .015 s, SciPy's calls take .6 s
        signs_x, signs_y = (np.sign(values[:, :, None] - values[:, None, :]) for values in (x, y))
        untied = np.count_nonzero(signs_x, axis=(1, 2)) * np.count_nonzero(signs_y, axis=(1, 2))
        tau_b = (signs_x * signs_y).sum(axis=(1, 2)) / np.sqrt(untied)
    else:
        # "asymptotic" concerns the p-value, which is not used; the exact one takes time.
        tau_b = np.array([stats.kendalltau(*row, method="asymptotic").statistic for row in zip(x, y, strict=True)])
        untied = np.ones(len(x))
        for values in (x, y):
            ties = [np.unique(row, return_counts=True)[1] for row in values]
            untied *= [n * (n - 1) - int((counts * (counts - 1)).sum()) for counts in ties]
    distinct = np.minimum(*((np.diff(np.sort(values, axis=1), axis=1) > 0).sum(axis=1) + 1 for values in (x, y)))
    return tau_b, tau_b * np.sqrt(untied) / (n**2 * (distinct - 1) / distinct)


def _pearson_of_rows(x: Floats, y: Floats) -> Floats:
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return np.asarray((x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)))


def correlation(scores: Scores, human: Scores, coefficient: Coefficient = "pearson") -> float:
    r"""One correlation coefficient between two complete lists of n numbers (:func:`correlate` skips missing values).

    With *P* concordant and *Q* discordant pairs, :math:`n_0 = n(n-1)/2`, *t* and *u* the pairs tied in the first and in
    the second list, *m* the smaller number of distinct values, ``kendall`` is
    :math:`\tau_b = (P - Q) / \sqrt{(n_0 - t)(n_0 - u)}` and ``kendall_c`` is
    :math:`\tau_c = 2 (P - Q) / (n^2 (m - 1) / m)`. Undefined (fewer than two values, one list constant) is NaN.

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman"), 4)
    0.8
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    x, y = stack({"scores": scores, "human": human}, complete=True)
    return coefficient_of(x, y, coefficient)


def correlation_matrix(columns: Mapping[str, Scores], coefficient: Coefficient = "pearson") -> tuple[list[str], Floats]:
    """The names of columns, and coefficients between every two of them, on the rows in which all have a value.

    >>> names, matrix = correlation_matrix({"people": [1, 2, 3], "metric": [2, 4, 6.5], "other": [3, None, 1]})
    >>> matrix.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    table = stack(columns)
    table = table[:, ~np.isnan(table).any(axis=0)]
    matrix = np.eye(len(columns))
    for first in range(len(columns)):
        for second in range(first):
            matrix[first, second] = matrix[second, first] = coefficient_of(table[first], table[second], coefficient)
    return list(columns), matrix


def share_of_pairs_ranked_right(
    scores: Scores, human: Scores, documents: Sequence[str] | None = None
) -> tuple[float, int]:
    """Share of the pairs of texts ranked by humans that the scores rank in the same order, and the number of pairs.

    A pair that the scores tie counts one half. With ``documents``, only texts of the same document are paired. Pairs
    with a missing value are left out. The share is NaN if humans rank no pair.

    >>> share_of_pairs_ranked_right([0.9, 0.1, 0.4, 0.6], [1, 0, 1, 0], ["a", "a", "b", "b"])
    (0.5, 2)
    """
    columns = stack({"scores": scores, "human": human})
    if documents is not None:
        check_labels("documents", documents, len(scores))
    right, pairs = 0.0, 0
    for rows in rows_by_label([""] * len(scores) if documents is None else documents).values():
        first, second = np.triu_indices(len(rows), 1)
        by_score, by_human = (np.sign(column[first] - column[second]) for column in columns[:, rows])
        ranked = (by_human != 0) & ~np.isnan(by_human) & ~np.isnan(by_score)
        right += float(np.sum((1 + by_score[ranked] * by_human[ranked]) / 2))
        pairs += int(ranked.sum())
    return (right / pairs if pairs else math.nan), pairs


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
        varied = [rows for rows in groups if not any(is_constant(column[rows]) for column in columns)]
        return cls(columns, varied, sum(map(len, varied)), len(varied), len(groups) - len(varied))

    def within(self, metric: int, coefficient: Coefficient) -> Floats:
        """One metric's coefficient within each document, shape (documents,); at other levels the single coefficient."""
        human, scores = self.columns[0], self.columns[metric]
        if self.documents is None:
            return np.array([coefficient_of(scores, human, coefficient)])
        return np.array([coefficient_of(scores[rows], human[rows], coefficient) for rows in self.documents])

    def value(self, metric: int, coefficient: Coefficient) -> float:
        return float(self.within(metric, coefficient).mean()) if self.units else math.nan

    def replicates(
        self, metric: int, coefficients: Sequence[Coefficient], n_resamples: int, rng: np.random.Generator
    ) -> dict[Coefficient, Floats]:
        """Bootstrap replicates of one metric's coefficients, each of shape (n_resamples,); NaN if a column is constant.

        Equal generators draw equal units, so that the replicates of two metrics are paired.
        """
        if not self.units:
            return {name: np.full(n_resamples, math.nan) for name in coefficients}
        within = {name: self.within(metric, name) for name in coefficients} if self.documents is not None else None
        blocks = []
        size = max(1, 2_000_000 // max(self.units, 1000))  # resamples per block; bounds the memory
        for start in range(0, n_resamples, size):
            drawn = rng.integers(0, self.units, size=(min(size, n_resamples - start), self.units))
            if within is None:
                blocks.append(coefficients_of_rows(self.columns[metric][drawn], self.columns[0][drawn], coefficients))
            else:
                blocks.append({name: values[drawn].mean(axis=1) for name, values in within.items()})
        return {name: np.concatenate([block[name] for block in blocks]) for name in coefficients}


def percentile_interval(replicates: Scores, confidence: float = 0.95) -> tuple[float, float]:
    """The central share ``confidence`` of bootstrap replicates; undefined (NaN) replicates are left out."""
    check_resampling(1, confidence=confidence)
    defined = np.asarray(replicates, dtype=np.float64)
    defined = defined[~np.isnan(defined)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Estimate:
    """An estimate with its confidence interval; NaN if undefined."""

    value: float
    low: float
    high: float

    def as_dict(self, name: str) -> dict[str, float | None]:
        """``name``, ``name_low`` and ``name_high``; None if undefined."""
        numbers = {"": self.value, "_low": self.low, "_high": self.high}
        return {name + suffix: None if math.isnan(number) else number for suffix, number in numbers.items()}


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Correlation of one metric with human scores.

    ``n`` is the sample size (texts, or systems at system level), ``units`` what was resampled (texts, documents or
    systems), ``texts`` those that were used. ``skipped`` counts texts (``no_references``, ``no_human_score``,
    ``no_metric_score``: each text once), documents (``constant_documents``: one side is constant) and groups
    (``groups``: no coefficient) that were left out. At summary level ``ranked_right`` is the share of the
    ``ranked_pairs`` of texts of a document ranked by humans that the metric ranks alike. ``replicates`` are those
    behind the intervals, each of shape (n_resamples,).
    """

    level: Level
    n: int
    units: int
    texts: int
    coefficients: dict[Coefficient, Estimate]
    skipped: dict[str, int]
    ranked_right: float | None = None
    ranked_pairs: int = 0
    replicates: dict[Coefficient, Floats] = field(repr=False, compare=False)


def measure(
    columns: Floats,
    level: Level,
    labels: Sequence[str] | None,
    *,
    has_references: NDArray[np.bool_] | None = None,
    coefficients: Sequence[Coefficient] = COEFFICIENTS,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> Agreement:
    """:func:`correlate` of validated columns of shape (2, texts), human scores first."""
    paired = Paired.at(columns, level, labels)
    replicates = paired.replicates(1, coefficients, n_resamples, rng)
    no_human, no_score = np.isnan(columns)
    unreferenced = no_score & ~has_references if has_references is not None else np.zeros_like(no_score)
    right, pairs = (math.nan, 0) if level != "summary" else share_of_pairs_ranked_right(columns[1], columns[0], labels)
    return Agreement(
        level=level,
        n=paired.units if level == "system" else paired.texts,
        units=paired.units,
        texts=paired.texts,
        coefficients={
            name: Estimate(paired.value(1, name), *percentile_interval(replicates[name], confidence))
            for name in coefficients
        },
        skipped={
            "no_references": int(unreferenced.sum()),
            "no_human_score": int((no_human & ~unreferenced).sum()),
            "no_metric_score": int((no_score & ~unreferenced & ~no_human).sum()),
            "constant_documents": paired.constant_documents,
            "groups": 0,
        },
        ranked_right=right if pairs else None,
        ranked_pairs=pairs,
        replicates=replicates,
    )


def warn_of_few_systems(level: Level, systems: int) -> None:
    if level == "system" and systems < FEW_SYSTEMS:
        warnings.warn(
            f"agreement: coefficients between {systems} systems (fewer than {FEW_SYSTEMS}) are very uncertain",
            stacklevel=3,
        )


def correlate(
    scores: Scores,
    human: Scores,
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    coefficients: Sequence[Coefficient] = COEFFICIENTS,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """Correlate scores with human scores at one level, with percentile bootstrap intervals.

    ``scores`` and ``human`` have one value per text; rows where either is None (or NaN) are skipped and counted.
    ``documents`` (needed at ``summary`` level) and ``systems`` (at ``system`` level) have one label per text. The
    bootstrap draws texts, documents or systems with replacement, depending on the level.

    >>> agreement = correlate([0.1, 0.4, None, 0.35, 0.8], [1, 2, 5, 3, 4], n_resamples=100)
    >>> agreement.n, agreement.skipped["no_metric_score"], round(agreement.coefficients["spearman"].value, 4)
    (4, 1, 0.8)
    """
    for coefficient in coefficients:
        check_choice("agreement", "coefficients", coefficient, COEFFICIENTS)
    check_resampling(n_resamples, seed, confidence=confidence)
    columns = stack({"human": human, "scores": scores})
    agreement = measure(
        columns,
        level,
        labels_for(level, documents, systems, columns.shape[1]),
        coefficients=coefficients,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=np.random.default_rng(seed),
    )
    warn_of_few_systems(level, agreement.units)
    return agreement

"""Correlation with human scores at segment, summary and system level, with bootstrap intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from movers.agreement.bootstrap import bootstrap, percentile_interval, resample_counts
from movers.agreement.coefficients import coefficient_of, is_constant, share_of_pairs_ranked_right
from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Floats,
    Level,
    Scores,
    check_resampling,
    labels_for,
    rows_of_each,
    stack,
    take,
)
from movers.inputs import check_choice

# With fewer systems a system-level coefficient says little: tables and `correlate` warn.
FEW_SYSTEMS = 10


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
        groups = list(rows_of_each(take(labels, np.flatnonzero(complete))).values())
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
        """Bootstrap replicates of one metric's coefficients: units drawn with replacement."""
        if not self.units:
            return {name: np.full(n_resamples, math.nan) for name in coefficients}
        if self.documents is None:
            return bootstrap(self.columns[metric], self.columns[0], coefficients, n_resamples, rng)
        drawn = np.concatenate(list(resample_counts(self.units, n_resamples, rng)))
        return {name: drawn @ self.within(metric, name) / self.units for name in coefficients}


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

    Attributes
    ----------
    n, units, texts : int
        Sample size (texts, or systems at system level); number of units (texts, documents or systems); number of texts
        used.
    skipped : dict
        How many texts (``no_references``, ``no_human_score``, ``no_metric_score``: each text once), documents
        (``constant_documents``: one side is constant) and groups (``groups``: no coefficient) were left out.
    ranked_right, ranked_pairs : float, int
        At summary level: the share of pairs of texts of a document that the metric ranks as humans do, and the number
        of pairs that humans rank; None and 0 at other levels.
    replicates : dict
        The bootstrap replicates behind the intervals, each of shape (n_resamples,).
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
    referenced: NDArray[np.bool_] | None = None,
    coefficients: Sequence[Coefficient] = COEFFICIENTS,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> Agreement:
    """:func:`correlate` of validated columns of shape (2, texts), human scores first."""
    paired = Paired.at(columns, level, labels)
    replicates = paired.replicates(1, coefficients, n_resamples, rng)
    no_human, no_score = np.isnan(columns)
    unreferenced = no_score & ~referenced if referenced is not None else np.zeros_like(no_score)
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


def mean_over_groups(parts: Sequence[Agreement], confidence: float, rng: np.random.Generator) -> Agreement:
    """Mean coefficient over the groups that have one; groups are strata of the bootstrap.

    In a small group, resampling is biased: drawing a text twice creates a tie, and resamples with a constant column
    have no coefficient. The replicates are then not centred on the group's coefficient, and because the mean over many
    groups has little variance, its interval could exclude its own estimate. So each group's replicates are centred on
    the group's coefficient, and undefined ones are replaced by random other replicates of the group.
    """
    defined = [part for part in parts if not any(math.isnan(found.value) for found in part.coefficients.values())]
    used = defined or parts  # if no group has a coefficient, the mean is undefined
    replicates: dict[Coefficient, Floats] = {}
    estimates: dict[Coefficient, Estimate] = {}
    for name in parts[0].coefficients:
        values = [part.coefficients[name].value for part in used]
        centred = [_centred(part.replicates[name], value, rng) for part, value in zip(used, values, strict=True)]
        replicates[name] = np.mean(centred, axis=0).clip(-1, 1)
        estimates[name] = Estimate(float(np.mean(values)), *percentile_interval(replicates[name], confidence))
    pairs = sum(part.ranked_pairs for part in parts)
    right = sum((part.ranked_right or 0.0) * part.ranked_pairs for part in parts)
    return Agreement(
        level=parts[0].level,
        n=sum(part.n for part in parts),
        units=sum(part.units for part in parts),
        texts=sum(part.texts for part in parts),
        coefficients=estimates,
        skipped={reason: sum(part.skipped[reason] for part in parts) for reason in parts[0].skipped}
        | {"groups": len(parts) - len(defined)},
        ranked_right=right / pairs if pairs else None,
        ranked_pairs=pairs,
        replicates=replicates,
    )


def _centred(replicates: Floats, value: float, rng: np.random.Generator) -> Floats:
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(len(replicates), value)
    filled = np.where(np.isnan(replicates), rng.choice(defined, len(replicates)), replicates)
    return filled - defined.mean() + value


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

    Parameters
    ----------
    scores, human : sequence of float or None, shape (n,)
        Rows where either is None (or NaN) are skipped and counted.
    level : {"segment", "summary", "system"}
        See :mod:`movers.agreement`.
    documents, systems : sequence of str, shape (n,), optional
        The document that each text belongs to (needed at ``summary`` level) and the system that wrote it (``system``).
    coefficients : sequence of str
        Which of :data:`COEFFICIENTS` to compute.
    n_resamples, confidence, seed
        Of the bootstrap: texts, documents or systems are drawn with replacement, depending on the level.

    Examples
    --------
    >>> found = correlate([0.1, 0.4, None, 0.35, 0.8], [1, 2, 5, 3, 4], n_resamples=100)
    >>> found.n, found.skipped["no_metric_score"], round(found.coefficients["spearman"].value, 4)
    (4, 1, 0.8)
    """
    check_choice("agreement", "level", level, LEVELS)
    for coefficient in coefficients:
        check_choice("agreement", "coefficients", coefficient, COEFFICIENTS)
    check_resampling(n_resamples, seed, confidence=confidence)
    columns = stack({"human": human, "scores": scores})
    found = measure(
        columns,
        level,
        labels_for(level, documents, systems, columns.shape[1]),
        coefficients=coefficients,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=np.random.default_rng(seed),
    )
    warn_of_few_systems(level, found.units)
    return found

"""Correlation with people at segment, summary and system level, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from movers.agreement.bootstrap import bootstrap, percentile_interval, resample_counts
from movers.agreement.coefficients import coefficient_of, is_constant
from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Floats,
    Level,
    Score,
    as_floats,
    check_choice,
    check_lengths,
    check_resampling,
    keep_labels,
    labels_for,
    rows_of_each,
)


@dataclass(frozen=True)
class Paired:
    """Complete columns at one level: what the coefficients are computed on.

    ``columns`` has shape (1 + metrics, units), people first. At ``summary`` level the coefficient is the mean over the
    documents in ``rows_of_unit``; at the other levels ``columns`` itself is correlated and ``rows_of_unit`` is None.
    """

    columns: Floats
    rows_of_unit: list[NDArray[np.intp]] | None
    texts: int
    units: int
    constant_documents: int

    def per_document(self, metric: int, wanted: Sequence[Coefficient]) -> dict[Coefficient, Floats]:
        """The coefficients of one metric inside each document, each of shape (documents,)."""
        assert self.rows_of_unit is not None
        human, scores = self.columns[0], self.columns[metric]
        return {
            name: np.array([coefficient_of(scores[rows], human[rows], name) for rows in self.rows_of_unit])
            for name in wanted
        }


def pair_up(columns: Floats, level: Level, labels: Sequence[str] | None) -> Paired:
    """Bring complete columns, shape (1 + metrics, texts), to a level."""
    texts = columns.shape[1]
    if level == "segment":
        return Paired(columns, None, texts, texts, 0)
    assert labels is not None
    groups = list(rows_of_each(labels).values())
    if level == "system":
        means = np.stack([columns[:, rows].mean(axis=1) for rows in groups], axis=1) if groups else columns
        return Paired(means, None, texts, len(groups), 0)
    varied = [rows for rows in groups if not any(is_constant(column[rows]) for column in columns)]
    return Paired(columns, varied, sum(map(len, varied)), len(varied), len(groups) - len(varied))


def estimates(
    paired: Paired, metric: int, wanted: Sequence[Coefficient], n_resamples: int, rng: np.random.Generator
) -> tuple[dict[Coefficient, float], dict[Coefficient, Floats]]:
    """Coefficients of one metric with people, and their bootstrap replicates (units drawn with replacement)."""
    if not paired.units:
        return dict.fromkeys(wanted, math.nan), {name: np.full(n_resamples, math.nan) for name in wanted}
    if paired.rows_of_unit is not None:
        within = paired.per_document(metric, wanted)
        drawn = np.concatenate(list(resample_counts(paired.units, n_resamples, rng)))
        values = {name: float(within[name].mean()) for name in wanted}
        return values, {name: drawn @ within[name] / paired.units for name in wanted}
    human, scores = paired.columns[0], paired.columns[metric]
    values = {name: coefficient_of(scores, human, name) for name in wanted}
    return values, bootstrap(scores, human, wanted, n_resamples, rng)


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How one metric agrees with people.

    Attributes
    ----------
    level : str
        ``segment``, ``summary`` or ``system``.
    n : int
        Texts that the coefficients rest on.
    units : int
        What the coefficient ranges over: texts, documents or systems.
    coefficients : dict
        For each coefficient, its :class:`Estimate`.
    skipped : dict
        How many texts (``no_human_score``, ``no_metric_score``) and documents (``constant_documents``) were left out.
    replicates : dict
        The bootstrap replicates behind the intervals, each of shape (n_resamples,).
    """

    level: Level
    n: int
    units: int
    coefficients: dict[Coefficient, Estimate]
    skipped: dict[str, int]
    replicates: dict[Coefficient, Floats] = field(repr=False, compare=False)


def correlate(
    scores: Sequence[Score],
    human: Sequence[Score],
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    coefficients: Sequence[Coefficient] = COEFFICIENTS,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """Correlate scores with people's at one level, with percentile bootstrap intervals.

    Parameters
    ----------
    scores, human : sequence of float or None, shape (n,)
        Rows where either is None (or NaN) are skipped and counted.
    level : {"segment", "summary", "system"}
        See the module's introduction.
    documents, systems : sequence of str, shape (n,), optional
        The document that each text belongs to (needed at ``summary`` level) and the system that wrote it (``system``).
    coefficients : sequence of str
        Which of :data:`COEFFICIENTS` to compute.
    n_resamples, confidence, seed
        Of the bootstrap: texts, documents or systems are drawn with replacement, as the level says.

    Examples
    --------
    >>> found = correlate([0.1, 0.4, None, 0.35, 0.8], [1, 2, 5, 3, 4], n_resamples=100)
    >>> found.n, found.skipped["no_metric_score"], round(found.coefficients["spearman"].value, 4)
    (4, 1, 0.8)
    """
    check_choice("level", level, LEVELS)
    for coefficient in coefficients:
        check_choice("coefficients", coefficient, COEFFICIENTS)
    check_resampling(n_resamples, confidence)
    check_lengths(scores=scores, human=human)
    labels = labels_for(level, documents, systems, len(scores))
    columns = np.stack([as_floats(human, "human"), as_floats(scores, "scores")])
    missing = np.isnan(columns)
    complete = np.logical_not(missing.any(axis=0))
    paired = pair_up(columns[:, complete], level, keep_labels(labels, complete))
    values, replicates = estimates(paired, 1, coefficients, n_resamples, np.random.default_rng(seed))
    return Agreement(
        level=level,
        n=paired.texts,
        units=paired.units,
        coefficients={
            name: Estimate(values[name], *percentile_interval(replicates[name], confidence)) for name in coefficients
        },
        skipped={
            "no_human_score": int(missing[0].sum()),
            "no_metric_score": int((missing[1] & ~missing[0]).sum()),
            "constant_documents": paired.constant_documents,
        },
        replicates=replicates,
    )

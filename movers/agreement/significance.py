"""Significance tests: is one metric's correlation with human scores higher than another's, is one system better?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from movers.agreement.coefficients import (
    COEFFICIENTS,
    Coefficient,
    Floats,
    Level,
    Outcome,
    Paired,
    Scores,
    check_resampling,
    coefficient_of,
    coefficients_of_rows,
    labels_for,
    stack,
    with_interval,
)
from movers.errors import InputError
from movers.inputs import check_choice, check_positive

Exchanges = NDArray[np.int8]


class Williams(NamedTuple):
    """Outcome of :func:`williams_test`: the statistic, its degrees of freedom, the two-sided p-value."""

    t: float
    degrees_of_freedom: int
    p: float


def williams_test(human_a: float, human_b: float, a_b: float, n: int) -> Williams:
    r"""Williams' test of the difference between two dependent correlations with the same human scores.

    With :math:`r_{12}` and :math:`r_{13}` the correlations of metrics A and B with the human scores, :math:`r_{23}` the
    correlation between the metrics, and n texts (at least 4),

    .. math::
        t_{n-3} = (r_{12} - r_{13}) \sqrt{\frac{(n-1)(1 + r_{23})}
        {2K\frac{n-1}{n-3} + \frac{(r_{12} + r_{13})^2}{4}(1 - r_{23})^3}},
        \qquad K = 1 - r_{12}^2 - r_{13}^2 - r_{23}^2 + 2 r_{12} r_{13} r_{23}.

    Clark et al. apply it to Spearman coefficients, Graham and Baldwin to Pearson's. Steiger (1980) gives 0.89 for
    correlations of .5 and .4 with .1 between the two, on 103 people:

    >>> outcome = williams_test(0.5, 0.4, 0.1, n=103)
    >>> round(outcome.t, 2), outcome.degrees_of_freedom, round(outcome.p, 2)
    (0.89, 100, 0.37)
    """
    if n < 4:
        raise InputError(f"agreement: n: expected at least 4 for Williams' test, but got {n}")
    determinant = 1 - human_a**2 - human_b**2 - a_b**2 + 2 * human_a * human_b * a_b
    if determinant < -1e-6:
        raise InputError(
            "agreement: expected a positive semi-definite matrix of correlations, "
            f"but got human_a={human_a!r}, human_b={human_b!r}, a_b={a_b!r}"
        )
    # Rounding can push a matrix of rank 2 slightly below zero.
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (human_a + human_b) ** 2 / 4 * (1 - a_b) ** 3
    difference = human_a - human_b
    if spread > 0:
        t = difference * math.sqrt((n - 1) * (1 + a_b) / spread)
    else:
        # Metrics that are equal up to scale: no difference, or one without uncertainty.
        t = 0.0 if abs(difference) < 1e-12 else math.copysign(math.inf, difference)
    return Williams(float(t), n - 3, float(2 * stats.t.sf(abs(t), n - 3)))


def _exchanges(n: int, n_resamples: int, rng: np.random.Generator, exact: bool = False) -> Iterator[Exchanges]:
    """Blocks of shape (exchanges, n): 1 for a unit that is exchanged, else 0; at random, or all 2ⁿ."""
    if exact:
        yield ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
        return
    block = max(1, 2_000_000 // n)  # bounds the memory
    for start in range(0, n_resamples, block):
        yield rng.integers(0, 2, size=(min(block, n_resamples - start), n), dtype=np.int8)


def probability(exchanged: Floats, observed: float, exact: bool = False) -> float:
    """Two-sided p-value: share of exchanges with at least the observed difference.

    The observed difference counts as one of the random exchanges, so that the p-value is never 0 and the test is valid.
    Differences within rounding count as equal.
    """
    extreme = int(np.sum(np.abs(exchanged) >= abs(observed) - 1e-12))
    return extreme / len(exchanged) if exact else (extreme + 1) / (len(exchanged) + 1)


# --- two metrics -----------------------------------------------------------------------------------------------------


def pairwise_test(
    paired: Paired, coefficient: Coefficient, n_resamples: int, rng: np.random.Generator
) -> tuple[Outcome, Floats]:
    """Test metric 1 of ``paired`` against metric 2; also differences after ``n_resamples`` random exchanges."""
    difference = paired.value(1, coefficient) - paired.value(2, coefficient)
    row: Outcome = {"n": paired.texts, "units": paired.units, "difference": difference}
    row |= dict.fromkeys(("williams_t", "williams_p", "permutation_p", "permutation_exact"))
    if math.isnan(difference):
        return row | {"difference": None}, np.empty(0)
    row["permutation_exact"] = exact = 2**paired.units <= n_resamples
    exchanged = _differences(paired, coefficient, _exchanges(paired.units, n_resamples, rng, exact))
    row["permutation_p"] = probability(exchanged, difference, exact)
    if exact:
        exchanged = _differences(paired, coefficient, _exchanges(paired.units, n_resamples, rng))
    if coefficient != "kendall" and paired.documents is None and paired.units >= 4:
        human, a, b = paired.columns
        human_a, human_b, a_b = (coefficient_of(x, y, coefficient) for x, y in ((a, human), (b, human), (a, b)))
        row["williams_t"], _, row["williams_p"] = williams_test(human_a, human_b, a_b, paired.units)
    return row, exchanged


def _differences(paired: Paired, coefficient: Coefficient, blocks: Iterable[Exchanges]) -> Floats:
    """Differences of the two metrics' coefficients after exchanging their scores in some units."""
    if paired.documents is not None:
        # A document's coefficients are exchanged whole: the mean difference with random signs.
        difference = paired.within(1, coefficient) - paired.within(2, coefficient)
        return np.concatenate([(1 - 2 * block) @ difference / paired.units for block in blocks])
    human, a, b = paired.columns
    if coefficient == "pearson":  # on a common scale: standard scores, or ranks
        a, b = ((scores - scores.mean()) / scores.std() for scores in (a, b))
    else:
        human, a, b = (stats.rankdata(scores) for scores in (human, a, b))
    # Exchanged ranks are not ranked anew, so Spearman's coefficient is Pearson's of the ranks.
    statistic: Coefficient = "kendall" if coefficient == "kendall" else "pearson"
    differences = []
    for block in blocks:
        people = np.broadcast_to(human, block.shape)
        first, second = (
            coefficients_of_rows(np.where(block, x, y), people, [statistic])[statistic] for x, y in ((b, a), (a, b))
        )
        differences.append(first - second)
    return np.concatenate(differences)


def compare_correlations(
    scores_a: Scores,
    scores_b: Scores,
    human: Scores,
    coefficient: Coefficient = "pearson",
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Outcome:
    """Does metric A correlate better with human scores than metric B? Williams' test and permutation test.

    The permutation test: under the null hypothesis that the metrics are equally good, their scores of a text are
    exchangeable. So the two scores of random texts are exchanged, and the observed difference of the correlations is
    compared with the differences after exchange. Scores are first brought to a common scale: standard scores for
    Pearson, ranks for the rank coefficients. If there are no more than ``n_resamples`` possible exchanges (2ⁿ), all are
    tried and the p-value is exact. At ``summary`` level a document's two coefficients are exchanged, at ``system``
    level a system's two mean scores. Only texts that have all three scores are used.

    Returns a flat dict of JSON values: ``n`` texts, ``units``, ``difference`` (A's coefficient less B's),
    ``williams_t`` and ``williams_p`` (None for Kendall, at summary level, and for fewer than four units),
    ``permutation_p``, ``permutation_exact``; all None where a coefficient is undefined.

    >>> people = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> row = compare_correlations([1, 2, 3, 4, 5, 6, 8, 7], [2, 1, 4, 3, 8, 5, 7, 6], people, "spearman")
    >>> round(row["difference"], 3), row["permutation_exact"], row["williams_p"] < 0.05
    (0.19, True, True)
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    check_resampling(n_resamples, seed)
    columns = stack({"human": human, "scores_a": scores_a, "scores_b": scores_b})
    paired = Paired.at(columns, level, labels_for(level, documents, systems, columns.shape[1]))
    return pairwise_test(paired, coefficient, n_resamples, np.random.default_rng([seed, 1]))[0]


# --- two systems -----------------------------------------------------------------------------------------------------


def compare_systems(
    scores_a: Scores,
    scores_b: Scores,
    *,
    n_resamples: int = 1000,
    n_exchanges: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Outcome:
    r"""Are two systems' mean scores different? Paired bootstrap and approximate randomization, two-sided.

    Returns a flat dict of JSON values: ``n``; ``mean_a``, ``mean_b``, ``difference``, each also with ``_low`` and
    ``_high``; ``bootstrap_p``, ``randomization_p``, ``randomization_exact``, ``confidence``.

    The bootstrap replicates :math:`d^*` of the difference, centred on 0 instead of the observed :math:`d`, estimate its
    distribution under the null hypothesis, so
    :math:`p = (1 + \#\{|d^* - d| \ge |d|\}) / (1 + B)`. The numbers of trials are sacreBLEU's. (sacreBLEU
    itself centres :math:`|d^*|` and counts its upper tail, so its bootstrap p-value is about half of this one.)

    Approximate randomization exchanges the two systems' scores of random texts; its p-value is the share of exchanges
    after which the means differ at least as much as observed (two-sided, the observation counts as one exchange). If
    all 2ⁿ exchanges are no more than ``n_exchanges``, all are tried and the p-value is exact.

    >>> outcome = compare_systems([0.9, 0.8, 0.7, 0.95], [0.5, 0.6, 0.65, 0.5])
    >>> round(outcome["difference"], 3), outcome["bootstrap_p"] < 0.01, outcome["randomization_p"]
    (0.275, True, 0.125)
    """
    check_resampling(n_resamples, seed, confidence=confidence)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    columns = stack({"scores_a": scores_a, "scores_b": scores_b}, complete=True)
    n = columns.shape[1]
    if not n:
        raise InputError("agreement: scores_a and scores_b: expected at least one score, but got none")
    columns = np.vstack([columns, columns[0] - columns[1]])
    rng = np.random.default_rng(seed)
    means = np.stack([columns[:, rng.integers(0, n, size=n)].mean(axis=1) for _ in range(n_resamples)], axis=1)
    exact = 2**n <= n_exchanges
    blocks = _exchanges(n, n_exchanges, np.random.default_rng(seed), exact)
    exchanged = np.concatenate([(1 - 2 * block) @ columns[2] / n for block in blocks])
    difference = float(columns[2].mean())
    row: Outcome = {"n": n}
    for name, column, replicates in zip(("mean_a", "mean_b", "difference"), columns, means, strict=True):
        row |= with_interval(name, float(column.mean()), replicates, confidence)
    return row | {
        "bootstrap_p": probability(means[2] - difference, difference),
        "randomization_p": probability(exchanged, difference, exact),
        "randomization_exact": exact,
        "confidence": confidence,
    }

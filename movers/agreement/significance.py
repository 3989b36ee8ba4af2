"""Is one metric's correlation with human scores significantly higher than another's?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
from scipy import stats

from movers.agreement.bootstrap import BLOCK_NUMBERS, percentile_interval
from movers.agreement.coefficients import coefficient_of
from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Alternative,
    Coefficient,
    Floats,
    Level,
    Scores,
    check_resampling,
    labels_for,
    stack,
)
from movers.agreement.levels import Estimate, Paired
from movers.errors import InputError
from movers.inputs import check_choice


@dataclass(frozen=True)
class Williams:
    """Outcome of :func:`williams_test`: the statistic, its degrees of freedom, the probability under equality."""

    t: float
    degrees_of_freedom: int
    p: float


def williams_test(
    human_a: float, human_b: float, a_b: float, n: int, alternative: Alternative = "two-sided"
) -> Williams:
    r"""Williams' test of the difference between two dependent correlations with the same human scores.

    The correlations are dependent, because they share the human scores and the metrics are correlated with each other.
    With :math:`r_{12}` and :math:`r_{13}` the metrics' correlations with the human scores and :math:`r_{23}` the
    correlation between the metrics,

    .. math::
        t_{n-3} = (r_{12} - r_{13}) \sqrt{\frac{(n-1)(1 + r_{23})}
        {2K\frac{n-1}{n-3} + \frac{(r_{12} + r_{13})^2}{4}(1 - r_{23})^3}},
        \qquad K = 1 - r_{12}^2 - r_{13}^2 - r_{23}^2 + 2 r_{12} r_{13} r_{23}.

    Clark et al. apply it to Spearman coefficients; Graham and Baldwin, one-sided, to Pearson's.

    Parameters
    ----------
    human_a, human_b : float
        Correlation of metric A, and of metric B, with the human scores.
    a_b : float
        Correlation between the two metrics.
    n : int
        Number of texts, at least 4.
    alternative : {"two-sided", "greater", "less"}
        ``greater``: A correlates better than B.

    Examples
    --------
    Steiger (1980) gives 0.89 for correlations of .5 and .4 with .1 between the two, on 103 people.

    >>> found = williams_test(0.5, 0.4, 0.1, n=103)
    >>> round(found.t, 2), found.degrees_of_freedom, round(found.p, 2)
    (0.89, 100, 0.37)
    """
    check_choice("agreement", "alternative", alternative, get_args(Alternative))
    if n < 4:
        raise InputError(f"agreement: n: expected at least 4 for Williams' test, but got {n}")
    for name, value in (("human_a", human_a), ("human_b", human_b), ("a_b", a_b)):
        if not -1.0 - 1e-9 <= value <= 1.0 + 1e-9:
            raise InputError(f"agreement: {name}: expected a correlation between -1 and 1, but got {value!r}")
    determinant = 1 - human_a**2 - human_b**2 - a_b**2 + 2 * human_a * human_b * a_b
    if determinant < -1e-6:
        raise InputError(
            "agreement: expected a positive semi-definite matrix of correlations, "
            f"but got human_a={human_a!r}, human_b={human_b!r}, a_b={a_b!r}"
        )
    # Rounding can push a matrix of rank 2 slightly below zero.
    determinant = max(determinant, 0.0)
    mean = (human_a + human_b) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - a_b) ** 3
    difference = human_a - human_b
    if spread > 0:
        t = difference * math.sqrt((n - 1) * (1 + a_b) / spread)
    else:
        # Metrics that are equal up to scale: no difference, or one without uncertainty.
        t = 0.0 if abs(difference) < 1e-12 else math.copysign(math.inf, difference)
    distribution = stats.t(n - 3)
    p = {
        "two-sided": 2 * distribution.sf(abs(t)),
        "greater": distribution.sf(t),
        "less": distribution.cdf(t),
    }[alternative]
    return Williams(float(t), n - 3, float(p))


@dataclass(frozen=True)
class Randomization:
    """Outcome of a randomization test: two-sided p-value, number of exchanges, whether they are exhaustive."""

    p: float
    n_resamples: int
    exact: bool


def exchanges(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Blocks, shape (resamples, n), of 0 (stay) and 1 (exchange) at random."""
    block = max(1, BLOCK_NUMBERS // n)
    for start in range(0, n_resamples, block):
        yield rng.integers(0, 2, size=(min(block, n_resamples - start), n), dtype=np.int8).astype(np.float64)


def exchanges_or_all(n: int, n_resamples: int, rng: np.random.Generator) -> tuple[Iterator[Floats], bool]:
    """All 2ⁿ exchanges as one block if they are at most ``n_resamples``, else random ones; whether they are all."""
    if n < 63 and 2**n <= n_resamples:
        every = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return iter([every.astype(np.float64)]), True
    return exchanges(n, n_resamples, rng), False


def probability(exchanged: Floats, observed: float, exact: bool) -> Randomization:
    """Two-sided p-value: share of exchanges with at least the observed difference.

    The observed difference counts as one of the random exchanges, so that the p-value is never 0 and the test is valid.
    Differences within rounding count as equal.
    """
    extreme = int(np.sum(np.abs(exchanged) >= abs(observed) - 1e-12))
    if exact:
        return Randomization(extreme / len(exchanged), len(exchanged), True)
    return Randomization((extreme + 1) / (len(exchanged) + 1), len(exchanged), False)


def _commensurable(scores: Floats, coefficient: Coefficient) -> Floats:
    """Scores on a common scale: standard scores for Pearson, ranks for the rank coefficients."""
    if coefficient == "pearson":
        return (scores - scores.mean()) / scores.std()
    return stats.rankdata(scores)


def _exchanged_differences(a: Floats, b: Floats, human: Floats, coefficient: Coefficient, exchange: Floats) -> Floats:
    """r(A′, human) − r(B′, human) after each exchange; ``a`` and ``b`` on a common scale, ``exchange`` (resamples, n).

    Pearson's r (also of ranks) needs only sums, and these are linear in the exchange, so a block of exchanges is one
    matrix product.
    """
    if coefficient in ("kendall", "kendall_c"):
        swapped = exchange == 1
        pairs = zip(np.where(swapped, b, a), np.where(swapped, a, b), strict=True)
        return np.array(
            [coefficient_of(x, human, coefficient) - coefficient_of(y, human, coefficient) for x, y in pairs]
        )
    people = stats.rankdata(human) if coefficient == "spearman" else human
    people = people - people.mean()
    moved = exchange @ np.stack([b - a, b**2 - a**2, (b - a) * people], axis=1)
    return _pearson_after(a, people, moved) - _pearson_after(b, people, -moved)


def _pearson_after(scores: Floats, people: Floats, moved: Floats) -> Floats:
    """Pearson's r after each exchange, from the sums Σx, Σx², Σxy and their changes; ``moved`` (resamples, 3)."""
    sums = np.array([scores.sum(), (scores**2).sum(), (scores * people).sum()])
    total, squares, products = (sums + moved).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return products / np.sqrt((squares - total**2 / len(scores)) * (people**2).sum())


@dataclass(frozen=True)
class PairwiseTest:
    """Two metrics compared by their correlation with the same human scores.

    ``n`` texts in ``units`` units have all three scores. ``difference`` is metric A's coefficient less metric B's, NaN
    where one is undefined; then there is no ``permutation`` test. ``williams`` is None where the test does not apply:
    Kendall coefficients, means over documents, fewer than four units. ``interval`` is the difference with its paired
    bootstrap interval, if it was asked for, ``exchanged`` (n_resamples,) what a mean over groups is tested with.
    """

    n: int
    units: int
    difference: float
    williams: Williams | None = None
    permutation: Randomization | None = None
    interval: Estimate | None = None
    exchanged: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)


def pairwise_test(paired: Paired, coefficient: Coefficient, n_resamples: int, rng: np.random.Generator) -> PairwiseTest:
    """Test metric 1 of ``paired`` against metric 2."""
    difference = paired.value(1, coefficient) - paired.value(2, coefficient)
    if math.isnan(difference):
        return PairwiseTest(paired.texts, paired.units, difference)
    blocks, exact = exchanges_or_all(paired.units, n_resamples, rng)
    exchanged = _differences(paired, coefficient, blocks)
    permutation = probability(exchanged, difference, exact)
    if exact:  # A mean over groups needs the same number of exchanges in every group.
        exchanged = _differences(paired, coefficient, exchanges(paired.units, n_resamples, rng))
    williams = _williams(paired, coefficient)
    return PairwiseTest(paired.texts, paired.units, difference, williams, permutation, exchanged=exchanged)


def _differences(paired: Paired, coefficient: Coefficient, blocks: Iterator[Floats]) -> Floats:
    """Differences of the two metrics' coefficients after exchanging their scores in some units."""
    if paired.documents is not None:
        # A document's coefficients are exchanged whole: the mean difference with random signs.
        difference = paired.within(1, coefficient) - paired.within(2, coefficient)
        return np.concatenate([(1 - 2 * block) @ difference / paired.units for block in blocks])
    human = paired.columns[0]
    a, b = (_commensurable(column, coefficient) for column in paired.columns[1:])
    return np.concatenate([_exchanged_differences(a, b, human, coefficient, block) for block in blocks])


def _williams(paired: Paired, coefficient: Coefficient) -> Williams | None:
    """Williams' test (two-sided), None where it does not apply."""
    if coefficient not in ("pearson", "spearman") or paired.documents is not None or paired.units < 4:
        return None
    human, a, b = paired.columns
    human_a, human_b, a_b = (coefficient_of(x, y, coefficient) for x, y in ((a, human), (b, human), (a, b)))
    return williams_test(human_a, human_b, a_b, paired.units)


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
    confidence: float = 0.95,
    seed: int = 0,
) -> PairwiseTest:
    """Does metric A correlate better with human scores than metric B? Williams' test, permutation test, bootstrap.

    The permutation test: under the null hypothesis that the metrics are equally good, their scores of a text are
    exchangeable. So the two scores of random texts are exchanged, and the observed difference of the correlations is
    compared with the differences after exchange. Scores are first brought to a common scale: standard scores for
    Pearson, ranks for the rank coefficients. If there are no more than ``n_resamples`` possible exchanges (2ⁿ), all are
    tried and the p-value is exact. At ``summary`` level a document's two coefficients are exchanged, at ``system``
    level a system's two mean scores. Only texts that have all three scores are used.

    Examples
    --------
    >>> people = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> found = compare_correlations([1, 2, 3, 4, 5, 6, 8, 7], [2, 1, 4, 3, 8, 5, 7, 6], people, "spearman")
    >>> round(found.difference, 3), found.permutation.exact, found.williams.p < 0.05
    (0.19, True, True)
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    check_choice("agreement", "level", level, LEVELS)
    check_resampling(n_resamples, seed, confidence=confidence)
    columns = stack({"human": human, "scores_a": scores_a, "scores_b": scores_b})
    paired = Paired.at(columns, level, labels_for(level, documents, systems, columns.shape[1]))
    # Equal seeds: both metrics are bootstrapped on the same resamples.
    a, b = (
        paired.replicates(metric, [coefficient], n_resamples, np.random.default_rng(seed))[coefficient]
        for metric in (1, 2)
    )
    test = pairwise_test(paired, coefficient, n_resamples, np.random.default_rng([seed, 1]))
    return replace(test, interval=Estimate(test.difference, *percentile_interval(a - b, confidence)))

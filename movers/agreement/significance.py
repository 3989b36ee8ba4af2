"""Is one metric's correlation with people higher than another's by more than luck?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy import stats

from movers.agreement.bootstrap import BLOCK_NUMBERS, percentile_interval
from movers.agreement.coefficients import coefficient_of, is_constant
from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Alternative,
    Coefficient,
    Floats,
    Level,
    Score,
    as_complete_floats,
    as_floats,
    check_choice,
    check_lengths,
    check_resampling,
    keep_labels,
    labels_for,
)
from movers.agreement.levels import Estimate, Paired, estimates, pair_up


@dataclass(frozen=True)
class Williams:
    """Outcome of :func:`williams_test`: the statistic, its degrees of freedom, the probability under equality."""

    t: float
    degrees_of_freedom: int
    p: float


def williams_test(
    human_a: float, human_b: float, a_b: float, n: int, alternative: Alternative = "two-sided"
) -> Williams:
    r"""Williams' test: do two metrics correlate differently with the same people, on the same texts?

    The two correlations are dependent, since they share people's scores and the two metrics resemble each other. With
    :math:`r_{12}` and :math:`r_{13}` the metrics' correlations with people and :math:`r_{23}` the correlation between
    the metrics,

    .. math::
        t_{n-3} = (r_{12} - r_{13}) \sqrt{\frac{(n-1)(1 + r_{23})}
        {2K\frac{n-1}{n-3} + \frac{(r_{12} + r_{13})^2}{4}(1 - r_{23})^3}},
        \qquad K = 1 - r_{12}^2 - r_{13}^2 - r_{23}^2 + 2 r_{12} r_{13} r_{23}.

    Clark et al. apply it to Spearman coefficients; Graham and Baldwin, one-sided, to Pearson's.

    Parameters
    ----------
    human_a, human_b : float
        Correlation of metric A, and of metric B, with people.
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
    check_choice("alternative", alternative, get_args(Alternative))
    if n < 4:
        raise ValueError(f"`n` must be at least 4 for Williams' test; got {n}.")
    for name, value in (("human_a", human_a), ("human_b", human_b), ("a_b", a_b)):
        if not -1.0 - 1e-9 <= value <= 1.0 + 1e-9:
            raise ValueError(f"`{name}` must be a correlation between -1 and 1; got {value!r}.")
    determinant = 1 - human_a**2 - human_b**2 - a_b**2 + 2 * human_a * human_b * a_b
    if determinant < -1e-6:
        raise ValueError(
            f"no data have the correlations human_a={human_a!r}, human_b={human_b!r}, a_b={a_b!r} at once "
            "(their matrix is not positive semi-definite)."
        )
    # Rounding can push a matrix of rank 2 slightly below zero.
    determinant = max(determinant, 0.0)
    mean = (human_a + human_b) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - a_b) ** 3
    difference = human_a - human_b
    if spread > 0:
        t = difference * math.sqrt((n - 1) * (1 + a_b) / spread)
    else:
        # Metrics that are the same up to scale: no difference, or one without any uncertainty.
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
    """Outcome of a test by exchange: two-sided probability, number of exchanges tried, whether these were all."""

    p: float
    n_resamples: int
    exact: bool


def exchanges(n: int, n_resamples: int, rng: np.random.Generator) -> tuple[Iterator[Floats], bool]:
    """Blocks, shape (resamples, n), of 0 (stay) and 1 (exchange): all 2ⁿ if they are few enough, else random ones."""
    if n < 63 and 2**n <= n_resamples:
        every = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return iter([every.astype(np.float64)]), True
    return random_exchanges(n, n_resamples, rng), False


def random_exchanges(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    block = max(1, BLOCK_NUMBERS // n)
    for start in range(0, n_resamples, block):
        yield rng.integers(0, 2, size=(min(block, n_resamples - start), n), dtype=np.int8).astype(np.float64)


def probability(exchanged: Floats, observed: float, exact: bool) -> Randomization:
    """Two-sided: how often an exchange differs at least as much as what was observed.

    What was observed counts as one of the random exchanges, so that the probability is never 0 and the test never
    rejects more often than it says. Differences within rounding count as equal.
    """
    extreme = int(np.sum(np.abs(exchanged) >= abs(observed) - 1e-12))
    if exact:
        return Randomization(extreme / len(exchanged), len(exchanged), True)
    return Randomization((extreme + 1) / (len(exchanged) + 1), len(exchanged), False)


def _commensurable(scores: Floats, coefficient: Coefficient) -> Floats:
    """Scores on a scale that two metrics share: standard scores for Pearson, ranks for the rank coefficients."""
    if coefficient == "pearson":
        return (scores - scores.mean()) / scores.std()
    return stats.rankdata(scores)


def _exchanged_differences(a: Floats, b: Floats, human: Floats, coefficient: Coefficient, exchange: Floats) -> Floats:
    """r(A′, human) − r(B′, human) after each exchange; ``a`` and ``b`` on a common scale, ``exchange`` (resamples, n).

    Pearson's r (also of ranks) needs only sums, and these are linear in the exchange, so a block of exchanges is one
    matrix product.
    """
    n = len(human)
    if coefficient in ("kendall", "kendall_c"):
        first = np.where(exchange == 1, b, a)
        second = np.where(exchange == 1, a, b)
        return np.array(
            [
                coefficient_of(x, human, coefficient) - coefficient_of(y, human, coefficient)
                for x, y in zip(first, second, strict=True)
            ]
        )
    centred = (stats.rankdata(human) if coefficient == "spearman" else human) - (
        (n + 1) / 2 if coefficient == "spearman" else human.mean()
    )
    moved = exchange @ np.stack([b - a, b**2 - a**2, (b - a) * centred], axis=1)

    def r(scores: Floats, sign: int) -> Floats:
        total = scores.sum() + sign * moved[:, 0]
        squares = (scores**2).sum() + sign * moved[:, 1]
        products = (scores * centred).sum() + sign * moved[:, 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            return products / np.sqrt((squares - total**2 / n) * (centred**2).sum())

    return r(a, +1) - r(b, -1)


def paired_differences(
    paired: Paired,
    a: int,
    b: int,
    coefficient: Coefficient,
    n_resamples: int,
    rng: np.random.Generator,
    *,
    all_if_few: bool,
) -> tuple[Floats, bool]:
    """Differences of two metrics' coefficients after exchanging their scores in random units; whether exhaustive."""
    blocks, exact = (
        exchanges(paired.units, n_resamples, rng)
        if all_if_few
        else (random_exchanges(paired.units, n_resamples, rng), False)
    )
    if paired.rows_of_unit is not None:
        # A document's coefficients are exchanged whole: the mean difference with random signs.
        difference = (
            paired.per_document(a, [coefficient])[coefficient] - paired.per_document(b, [coefficient])[coefficient]
        )
        return np.concatenate([(1 - 2 * block) @ difference / paired.units for block in blocks]), exact
    human = paired.columns[0]
    first, second = (_commensurable(paired.columns[metric], coefficient) for metric in (a, b))
    return np.concatenate([_exchanged_differences(first, second, human, coefficient, block) for block in blocks]), exact


def permutation_test(
    scores_a: Sequence[Score],
    scores_b: Sequence[Score],
    human: Sequence[Score],
    coefficient: Coefficient = "pearson",
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Randomization:
    """Paired permutation test: do two metrics correlate differently with people?

    If the metrics were equally good, it would not matter which of the two gave a text which of its two scores. So the
    two scores of random texts are exchanged, and the observed difference of the correlations is compared with the
    differences after exchange. Scores are first brought to a common scale: standard scores for Pearson, ranks for the
    rank coefficients. If there are no more than ``n_resamples`` possible exchanges (2ⁿ), all are tried and the
    probability is exact.

    Parameters
    ----------
    scores_a, scores_b, human : sequence of float, shape (n,)
        Complete and not constant.

    Examples
    --------
    >>> people = [1, 2, 3, 4, 5, 6]
    >>> permutation_test([1, 2, 3, 4, 6, 5], [2, 1, 5, 6, 3, 4], people, "spearman", n_resamples=100)
    Randomization(p=0.0625, n_resamples=64, exact=True)
    """
    check_choice("coefficient", coefficient, COEFFICIENTS)
    check_resampling(n_resamples)
    check_lengths(scores_a=scores_a, scores_b=scores_b, human=human)
    named = {"human": human, "scores_a": scores_a, "scores_b": scores_b}
    columns = np.stack([as_complete_floats(column, name) for name, column in named.items()])
    for name, column in zip(named, columns, strict=True):
        if is_constant(column):
            raise ValueError(f"`{name}` is constant, so its correlation is undefined; expected at least two values.")
    observed = coefficient_of(columns[1], columns[0], coefficient) - coefficient_of(columns[2], columns[0], coefficient)
    rng = np.random.default_rng(seed)
    exchanged, exact = paired_differences(
        pair_up(columns, "segment", None), 1, 2, coefficient, n_resamples, rng, all_if_few=True
    )
    return probability(exchanged, observed, exact)


@dataclass(frozen=True)
class CorrelationDifference:
    """Two metrics compared by their correlation with the same people.

    Attributes
    ----------
    coefficient : str
        What is compared.
    n, units : int
        Texts and units that have all three scores.
    difference : Estimate
        Metric A's coefficient less metric B's, with its paired bootstrap interval.
    williams : Williams or None
        None where the test does not apply: Kendall coefficients, means over documents, fewer than four units.
    permutation : Randomization or None
        None where a coefficient is undefined.
    """

    coefficient: Coefficient
    n: int
    units: int
    difference: Estimate
    williams: Williams | None
    permutation: Randomization | None


def williams_of(paired: Paired, a: int, b: int, coefficient: Coefficient) -> Williams | None:
    """Williams' test (two-sided) of two metrics, None where it does not apply."""
    if coefficient not in ("pearson", "spearman") or paired.rows_of_unit is not None or paired.units < 4:
        return None
    human, first, second = (paired.columns[row] for row in (0, a, b))
    human_a, human_b, a_b = (
        coefficient_of(x, y, coefficient) for x, y in ((first, human), (second, human), (first, second))
    )
    if any(map(math.isnan, (human_a, human_b, a_b))):
        return None
    return williams_test(human_a, human_b, a_b, n=paired.units)


def compare_correlations(
    scores_a: Sequence[Score],
    scores_b: Sequence[Score],
    human: Sequence[Score],
    coefficient: Coefficient = "pearson",
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> CorrelationDifference:
    """Does metric A agree with people better than metric B? Williams' test, permutation test, bootstrap interval.

    Only texts that have all three scores are used. At ``summary`` level a document's two coefficients are exchanged,
    at ``system`` level a system's two mean scores.

    Examples
    --------
    >>> people = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> found = compare_correlations([1, 2, 3, 4, 5, 6, 8, 7], [2, 1, 4, 3, 8, 5, 7, 6], people, "spearman")
    >>> round(found.difference.value, 3), found.permutation.exact, found.williams.p < 0.05
    (0.19, True, True)
    """
    check_choice("coefficient", coefficient, COEFFICIENTS)
    check_choice("level", level, LEVELS)
    check_resampling(n_resamples, confidence)
    check_lengths(scores_a=scores_a, scores_b=scores_b, human=human)
    labels = labels_for(level, documents, systems, len(human))
    columns = np.stack([as_floats(human, "human"), as_floats(scores_a, "scores_a"), as_floats(scores_b, "scores_b")])
    complete = np.logical_not(np.isnan(columns).any(axis=0))
    paired = pair_up(columns[:, complete], level, keep_labels(labels, complete))
    # The same seed twice: both metrics are bootstrapped on the same draws.
    (value_a, replicates_a), (value_b, replicates_b) = (
        estimates(paired, metric, [coefficient], n_resamples, np.random.default_rng(seed)) for metric in (1, 2)
    )
    observed = value_a[coefficient] - value_b[coefficient]
    permutation = None
    if not math.isnan(observed):
        rng = np.random.default_rng([seed, 1])
        exchanged, exact = paired_differences(paired, 1, 2, coefficient, n_resamples, rng, all_if_few=True)
        permutation = probability(exchanged, observed, exact)
    interval = percentile_interval(replicates_a[coefficient] - replicates_b[coefficient], confidence)
    return CorrelationDifference(
        coefficient=coefficient,
        n=paired.texts,
        units=paired.units,
        difference=Estimate(observed, *interval),
        williams=williams_of(paired, 1, 2, coefficient),
        permutation=permutation,
    )

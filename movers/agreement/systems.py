"""Are two systems' scores of the same texts different by more than luck?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from movers.agreement.bootstrap import percentile_interval, resample_counts
from movers.agreement.columns import Floats, Score, as_complete_floats, check_lengths, check_resampling
from movers.agreement.levels import Estimate
from movers.agreement.significance import Randomization, exchanges, probability


def paired_bootstrap(
    scores_a: Sequence[Score], scores_b: Sequence[Score], *, n_resamples: int = 1000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Mean scores of two systems on the same resamples of texts.

    Returns
    -------
    means_a, means_b : array, shape (n_resamples,)

    Examples
    --------
    >>> means_a, means_b = paired_bootstrap([0.5, 0.7, 0.9], [0.4, 0.6, 0.8], n_resamples=50)
    >>> bool(abs(means_a - means_b - 0.1).max() < 1e-12)
    True
    """
    check_resampling(n_resamples)
    a, b = _two_systems(scores_a, scores_b)
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [counts @ np.stack([a, b], axis=1) / len(a) for counts in resample_counts(len(a), n_resamples, rng)]
    )
    return means[:, 0], means[:, 1]


def approximate_randomization(
    scores_a: Sequence[Score], scores_b: Sequence[Score], *, n_resamples: int = 10_000, seed: int = 0
) -> Randomization:
    """Could two systems' mean scores differ this much if it did not matter which system wrote which text?

    The two systems' scores of random texts are exchanged; the probability is the share of exchanges after which the
    means differ at least as much as they do (two-sided, what was observed counts as one exchange). If all 2ⁿ exchanges
    are no more than ``n_resamples``, all are tried and the probability is exact.

    Examples
    --------
    >>> approximate_randomization([0.9, 0.8, 0.7, 0.95], [0.5, 0.6, 0.65, 0.5])
    Randomization(p=0.125, n_resamples=16, exact=True)
    """
    check_resampling(n_resamples)
    a, b = _two_systems(scores_a, scores_b)
    difference = a - b
    blocks, exact = exchanges(len(a), n_resamples, np.random.default_rng(seed))
    exchanged = np.concatenate([(1 - 2 * block) @ difference / len(a) for block in blocks])
    return probability(exchanged, float(difference.mean()), exact)


@dataclass(frozen=True)
class SystemComparison:
    """Two systems' scores of the same texts compared.

    Attributes
    ----------
    n : int
        Texts.
    a, b, difference : Estimate
        Mean scores and their difference (A less B), with paired bootstrap intervals.
    bootstrap_p : float
        Two-sided: how often a resampled difference strays from the observed one by at least the observed one.
    randomization : Randomization
        Outcome of :func:`approximate_randomization`.
    """

    n: int
    a: Estimate
    b: Estimate
    difference: Estimate
    bootstrap_p: float
    randomization: Randomization


def compare_systems(
    scores_a: Sequence[Score],
    scores_b: Sequence[Score],
    *,
    n_resamples: int = 1000,
    n_exchanges: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SystemComparison:
    r"""Are two systems' mean scores different? Paired bootstrap and approximate randomisation.

    The bootstrap's replicates :math:`d^*` of the difference scatter around the observed :math:`d`; moved to scatter
    around 0 they show what differences chance makes, so
    :math:`p = (1 + \#\{|d^* - d| \ge |d|\}) / (1 + B)`. The numbers of trials are sacreBLEU's. (sacreBLEU
    itself centres :math:`|d^*|` and counts its upper tail, so its bootstrap probability is about half of this one.)

    Examples
    --------
    >>> found = compare_systems([0.9, 0.8, 0.7, 0.95] * 5, [0.5, 0.6, 0.65, 0.5] * 5)
    >>> round(found.difference.value, 3), found.bootstrap_p < 0.01, found.randomization.p < 0.01
    (0.275, True, True)
    """
    check_resampling(n_resamples, confidence)
    a, b = _two_systems(scores_a, scores_b)
    means_a, means_b = paired_bootstrap(scores_a, scores_b, n_resamples=n_resamples, seed=seed)
    observed = float((a - b).mean())
    return SystemComparison(
        n=len(a),
        a=Estimate(float(a.mean()), *percentile_interval(means_a, confidence)),
        b=Estimate(float(b.mean()), *percentile_interval(means_b, confidence)),
        difference=Estimate(observed, *percentile_interval(means_a - means_b, confidence)),
        bootstrap_p=probability(means_a - means_b - observed, observed, exact=False).p,
        randomization=approximate_randomization(scores_a, scores_b, n_resamples=n_exchanges, seed=seed),
    )


def _two_systems(scores_a: Sequence[Score], scores_b: Sequence[Score]) -> tuple[Floats, Floats]:
    check_lengths(scores_a=scores_a, scores_b=scores_b)
    if not len(scores_a):
        raise ValueError("`scores_a` and `scores_b` must hold at least one score; got none.")
    return as_complete_floats(scores_a, "scores_a"), as_complete_floats(scores_b, "scores_b")

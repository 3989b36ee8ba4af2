"""Significance tests between systems on the same texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from movers.agreement.bootstrap import percentile_interval, resample_counts
from movers.agreement.columns import Scores, check_resampling, stack
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.levels import Estimate
from movers.agreement.scoring import MetricCall, compared_with, score_judged
from movers.agreement.significance import Randomization, exchanges_or_all, probability
from movers.errors import InputError, RowError
from movers.inputs import check_positive, check_text_groups, check_texts
from movers.scores.options import References


@dataclass(frozen=True)
class SystemComparison:
    """Two systems' scores of the same texts compared.

    ``a``, ``b`` and ``difference`` (A less B) are means over ``n`` texts with paired bootstrap intervals,
    ``bootstrap_p`` is two-sided.
    """

    n: int
    a: Estimate
    b: Estimate
    difference: Estimate
    bootstrap_p: float
    randomization: Randomization

    def significant(self, alpha: float = 0.05) -> bool:
        """Whether both tests give p < alpha."""
        return max(self.bootstrap_p, self.randomization.p) < alpha


def compare_systems(
    scores_a: Scores,
    scores_b: Scores,
    *,
    n_resamples: int = 1000,
    n_exchanges: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SystemComparison:
    r"""Are two systems' mean scores different? Paired bootstrap and approximate randomization.

    The bootstrap replicates :math:`d^*` of the difference, centred on 0 instead of the observed :math:`d`, estimate its
    distribution under the null hypothesis, so
    :math:`p = (1 + \#\{|d^* - d| \ge |d|\}) / (1 + B)`. The numbers of trials are sacreBLEU's. (sacreBLEU
    itself centres :math:`|d^*|` and counts its upper tail, so its bootstrap p-value is about half of this one.)

    Approximate randomization exchanges the two systems' scores of random texts; its p-value is the share of exchanges
    after which the means differ at least as much as observed (two-sided, the observation counts as one exchange). If
    all 2ⁿ exchanges are no more than ``n_exchanges``, all are tried and the p-value is exact.

    Examples
    --------
    >>> found = compare_systems([0.9, 0.8, 0.7, 0.95], [0.5, 0.6, 0.65, 0.5])
    >>> round(found.difference.value, 3), found.bootstrap_p < 0.01, found.randomization
    (0.275, True, Randomization(p=0.125, n_resamples=16, exact=True))
    """
    check_resampling(n_resamples, seed, confidence=confidence)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    columns = stack({"scores_a": scores_a, "scores_b": scores_b}, complete=True)
    n = columns.shape[1]
    if not n:
        raise InputError("agreement: scores_a and scores_b: expected at least one score, but got none")
    columns = np.vstack([columns, columns[0] - columns[1]])  # A, B, their difference
    observed = columns.mean(axis=1)
    counts = resample_counts(n, n_resamples, np.random.default_rng(seed))
    means = np.concatenate([block @ columns.T / n for block in counts]).T
    blocks, exact = exchanges_or_all(n, n_exchanges, np.random.default_rng(seed))
    exchanged = np.concatenate([(1 - 2 * block) @ columns[2] / n for block in blocks])
    a, b, difference = (
        Estimate(float(value), *percentile_interval(replicates, confidence))
        for value, replicates in zip(observed, means, strict=True)
    )
    return SystemComparison(
        n=n,
        a=a,
        b=b,
        difference=difference,
        bootstrap_p=probability(means[2] - difference.value, difference.value, exact=False).p,
        randomization=probability(exchanged, difference.value, exact),
    )


@dataclass(frozen=True)
class SystemTest:
    """Comparison of two systems by one metric, with their names and the signature."""

    metric: str
    a: str
    b: str
    signature: str
    outcome: SystemComparison
    alpha: float = 0.05

    @property
    def better(self) -> str | None:
        """The name of the significantly better system, None if there is none."""
        if not self.outcome.significant(self.alpha):
            return None
        return self.a if self.outcome.difference.value > 0 else self.b


def compare_texts(
    systems: Mapping[str, Sequence[str]],
    calls: Sequence[MetricCall],
    *,
    references: References | None = None,
    sources: References | None = None,
    n_resamples: int = 1000,
    n_exchanges: int = 10_000,
    confidence: float = 0.95,
    alpha: float = 0.05,
    seed: int = 0,
    progress: bool | None = None,
) -> list[SystemTest]:
    """Score the texts of several systems with every metric, and compare the first system with each of the others.

    Parameters
    ----------
    systems : mapping of str to sequence of str, each of shape (n,)
        Name → texts, at least two; names and order are kept, the first system is A of every comparison.
    calls : sequence of MetricCall
    references, sources : n texts, or n lists of texts, optional
        References or sources of the texts.
    alpha : float
        A system is better if both tests give p < alpha.
    n_resamples, n_exchanges, confidence, seed
        As in :func:`compare_systems`.

    Returns
    -------
    list of SystemTest
        Ordered by metric, then system.
    """
    if len(systems) < 2:
        raise InputError(f"compare: expected at least two systems, but got {len(systems)}")
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    first, *others = systems
    texts = {name: check_texts("compare", name, own) for name, own in systems.items()}
    n = len(texts[first])
    beside = {"references": references, "sources": sources}
    groups = {key: check_text_groups("compare", key, rows) for key, rows in beside.items() if rows is not None}
    for name, length in {key: len(rows) for part in (texts, groups) for key, rows in part.items()}.items():
        if length != n:
            raise InputError(f"compare: {name}: expected as many rows as {first} has ({n}), but got {length}")
    for call in calls:
        if (needed := compared_with(call.name)) not in groups:
            raise InputError(f"compare: {call.label}: expected {needed} to compare with, but got none")
    nothing: list[list[str]] = [[]] * n
    # All systems together, so that references are encoded once.
    judged = JudgedSet(
        "compare",
        tuple(
            JudgedText(f"{name}:{row}", text, tuple(own), {}, {"source": source})
            for name, rows in texts.items()
            for row, (text, own, source) in enumerate(
                zip(rows, groups.get("references", nothing), groups.get("sources", nothing), strict=True)
            )
        ),
    )
    try:
        scored = score_judged(judged, calls, progress=progress)
    except RowError as error:
        place, row = divmod(error.row, n)
        raise RowError(error.metric, list(systems)[place], row, error.reason) from None
    tests = []
    for label, found in scored.items():
        scores = {name: found.scores[place * n : (place + 1) * n] for place, name in enumerate(systems)}
        for other in others:
            outcome = compare_systems(
                scores[first],
                scores[other],
                n_resamples=n_resamples,
                n_exchanges=n_exchanges,
                confidence=confidence,
                seed=seed,
            )
            tests.append(SystemTest(label, first, other, found.signature, outcome, alpha))
    return tests

"""Systems compared by their scores: intervals, paired tests of every pair with Holm's correction, groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np

from movers.agreement import coefficients
from movers.agreement.coefficients import Floats, Outcome, Scores, check_resampling, probability, with_interval
from movers.errors import InputError
from movers.inputs import check_positive


def compare_systems(
    systems: Mapping[str, Scores],
    *,
    n_resamples: int | None = None,
    n_exchanges: int | None = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[Outcome]:
    r"""Which systems' mean scores are different? Paired bootstrap and approximate randomization of every pair.

    ``systems`` maps two or more names to scores of the same n texts. Returns one flat dict of JSON values per pair: the
    names ``a`` and ``b``; ``n``; ``mean_a``, ``mean_b``, ``difference``, each also with ``_low`` and ``_high``;
    ``bootstrap_p`` and ``randomization_p`` (two-sided); ``holm_p``, the larger of the two after Holm's correction for
    the number of pairs; ``better``, the system with the higher mean if ``holm_p`` < ``alpha``, otherwise None;
    ``group_a`` and ``group_b`` as in :func:`groups_of`.

    The bootstrap p-value is :math:`(1 + \#\{|d^* - d| \ge |d|\}) / (1 + B)`, with replicates :math:`d^*` of the
    difference :math:`d`. (sacreBLEU centres :math:`|d^*|` and counts its upper tail, about half of this.) Randomization
    exchanges the two systems' scores of random texts. By default there are as many trials as in sacreBLEU, 1,000 and
    10,000, or 100 per pair of systems if that is more, so that p-values can be small after the correction too.

    >>> [row] = compare_systems({"a": [0.9, 0.8, 0.7, 0.95], "b": [0.5, 0.6, 0.65, 0.5]})
    >>> round(row["difference"], 3), row["bootstrap_p"] < 0.01, round(row["randomization_p"], 2), row["better"]
    (0.275, True, 0.12, None)
    """
    if len(systems) < 2:
        raise InputError(f"compare: expected at least two systems, but got {len(systems)}")
    pairs = list(combinations(range(len(systems)), 2))
    n_resamples = max(1000, 100 * len(pairs)) if n_resamples is None else n_resamples
    n_exchanges = max(10_000, 100 * len(pairs)) if n_exchanges is None else n_exchanges
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    scores, names = coefficients.stack(systems), list(systems)
    n = scores.shape[1]
    if not n or np.isnan(scores).any():
        raise InputError("compare: expected at least one text, and a score of every system for each text")
    means = scores.mean(axis=1)
    first, second = np.array(pairs).T
    differences = scores[first] - scores[second]  # (pairs, texts)
    resampled = resampled_means(scores, n_resamples, np.random.default_rng(seed))  # (systems, resamples)
    blocks = coefficients.exchanges(n, n_exchanges, np.random.default_rng(seed))
    exchanged = np.concatenate([(1.0 - 2.0 * block) @ differences.T / n for block in blocks])  # (exchanges, pairs)
    rows: list[Outcome] = []
    for place, (a, b) in enumerate(pairs):
        difference = float(differences[place].mean())
        row: Outcome = {"a": names[a], "b": names[b], "n": n}
        row |= with_interval("mean_a", float(means[a]), resampled[a], confidence)
        row |= with_interval("mean_b", float(means[b]), resampled[b], confidence)
        row |= with_interval("difference", difference, resampled[a] - resampled[b], confidence)
        row["bootstrap_p"] = probability(resampled[a] - resampled[b] - difference, difference)
        row["randomization_p"] = probability(exchanged[:, place], difference)
        rows.append(row)
    corrected = holm([max(row["bootstrap_p"], row["randomization_p"]) for row in rows])
    for row, p in zip(rows, corrected, strict=True):
        higher = row["a"] if row["difference"] > 0 else row["b"]
        row |= {"holm_p": p, "better": higher if p < alpha else None}
    better = {(row["better"], row["b"] if row["better"] == row["a"] else row["a"]) for row in rows if row["better"]}
    groups = groups_of(dict(zip(names, means.tolist(), strict=True)), better)
    settings = {"confidence": confidence, "alpha": alpha, "n_resamples": n_resamples}
    return [row | {"group_a": groups[row["a"]], "group_b": groups[row["b"]], **settings} for row in rows]


def resampled_means(scores: Floats, n_resamples: int, rng: np.random.Generator, counts: Floats | None = None) -> Floats:
    """Means (systems, n_resamples) over texts drawn with replacement, the same texts for all systems.

    ``counts`` say how many texts have each of the scores, by default one.
    """
    counts = np.ones(scores.shape[1]) if counts is None else counts
    n, size = int(counts.sum()), max(1, coefficients.BLOCK // len(counts))
    sizes = [min(size, n_resamples - start) for start in range(0, n_resamples, size)]
    return np.hstack([scores @ rng.multinomial(n, counts / n, size=size).T / n for size in sizes])


def mean_interval(scores: Floats, counts: Floats | None = None) -> tuple[float, float]:
    """The 95 % interval of a mean over texts (percentile bootstrap of 1,000 resamples, always the same)."""
    means = resampled_means(scores[None], 1000, np.random.default_rng(0), counts)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of k tests, corrected so that the probability of any false rejection is bounded (Holm, 1979).

    The i-th smallest is multiplied by k − i + 1; none becomes smaller than those before it, or larger than 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    return corrected.tolist()


def groups_of(means: Mapping[str, float], better: Collection[tuple[str, str]]) -> dict[str, int]:
    """The group of each system, from 1 (the best), as tables of WMT print them.

    ``better`` has pairs (winner, loser). A group ends where every system above is better than every system below;
    within a group systems may differ, but nothing separates the group.

    >>> groups_of({"c": 0.1, "a": 0.5, "b": 0.4}, {("a", "c"), ("b", "c")})
    {'a': 1, 'b': 1, 'c': 2}
    """
    order = sorted(means, key=lambda name: -means[name])
    groups, group = {}, 1
    for place, name in enumerate(order):
        separated = all((above, below) in better for above in order[:place] for below in order[place:])
        group += place > 0 and separated
        groups[name] = group
    return groups

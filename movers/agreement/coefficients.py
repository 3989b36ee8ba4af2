"""Correlation with human scores at segment, summary and system level: coefficients, intervals, tests."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy  # `scipy.stats` is imported by its first use: intervals of means do without it
from numpy.typing import NDArray

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
BLOCK = 2_000_000  # numbers that are drawn at a time; bounds the memory


def check_resampling(n_resamples: int, seed: int, **shares: float) -> None:
    """Check the number of trials, the seed, and that every named share (confidence, alpha) is between 0 and 1."""
    check_positive("agreement", "n_resamples", n_resamples, none_allowed=False)
    check_positive("agreement", "seed", seed, none_allowed=False, least=0)
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise InputError(f"agreement: {name}: expected a number between 0 and 1, both excluded, but got {share}")


def stack(columns: Mapping[str, Scores]) -> Floats:
    """Stack named columns into an array of shape (columns, texts); a missing value (None) is NaN."""
    n = len(next(iter(columns.values())))
    for name, values in columns.items():
        check_length(name, values, n)
    return np.array([np.array(values, dtype=float) for values in columns.values()])


def check_length(name: str, values: Sequence[object] | Floats | None, n: int) -> None:
    if values is None or len(values) != n:
        got = "none" if values is None else len(values)
        raise InputError(f"agreement: {name}: expected one value per text ({n}), but got {got}")


def rows_by_label(labels: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Rows of each label, labels in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(members, dtype=np.intp) for label, members in rows.items()}


def coefficients_of(x: Floats, y: Floats, coefficient: Coefficient) -> Floats:
    """The coefficient of every row of ``x`` with the same row of ``y``, both of shape (rows, n).

    NaN where it is undefined: fewer than two texts, or a constant row.
    """
    values = np.full(len(x), math.nan)
    defined = ~(_is_constant(x) | _is_constant(y))
    x, y = x[defined], y[defined]
    if coefficient == "kendall" and x.shape[1] > 32:
        # "asymptotic" concerns the p-value, which is not used; the exact one takes time.
        pairs = zip(x, y, strict=True)
        values[defined] = [scipy.stats.kendalltau(*pair, method="asymptotic").statistic for pair in pairs]
    elif coefficient == "kendall":  # all rows at once, by definition; SciPy's asymptotic method fails for two texts
        signs_x, signs_y = (np.sign(rows[:, :, None] - rows[:, None, :]) for rows in (x, y))
        untied = np.count_nonzero(signs_x, axis=(1, 2)) * np.count_nonzero(signs_y, axis=(1, 2))
        values[defined] = (signs_x * signs_y).sum(axis=(1, 2)) / np.sqrt(untied)
    elif defined.any():
        if coefficient == "spearman":
            x, y = scipy.stats.rankdata(x, axis=1), scipy.stats.rankdata(y, axis=1)
        x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        values[defined] = (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return values


def _is_constant(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray((rows[:, 1:] == rows[:, :-1]).all(axis=1))


def correlation(scores: Scores, human: Scores, coefficient: Coefficient = "pearson") -> float:
    """One correlation coefficient between two complete lists of numbers (:func:`agreement_table` skips missing values).

    ``kendall`` is τ-b. Undefined (fewer than two values, one list constant) is NaN.

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman"), 4)
    0.8
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    x, y = stack({"scores": scores, "human": human})
    return float(coefficients_of(x[None], y[None], coefficient)[0])


@dataclass(frozen=True)
class Paired:
    """Complete columns at one level, on which coefficients are computed.

    ``columns`` has shape (1 + metrics, units), human scores first. At ``summary`` level the coefficient is the mean
    over ``documents`` (the rows of each); at the other levels ``columns`` itself is correlated.
    """

    columns: Floats
    documents: list[NDArray[np.intp]] | None
    n: int  # texts, or systems
    units: int
    texts: int
    skipped: dict[str, int]

    @classmethod
    def at(cls, columns: Floats, level: Level, labels: Sequence[str] | None) -> Paired:
        """Aggregate columns of shape (1 + metrics, texts) to a level; texts with missing values are dropped."""
        no_human, *no_score = np.isnan(columns)
        complete = ~np.any([no_human, *no_score], axis=0)
        columns = columns[:, complete]
        texts = columns.shape[1]
        skipped = {
            "skipped_no_human_score": int(no_human.sum()),
            "skipped_no_metric_score": int((~complete & ~no_human).sum()),
            "skipped_constant_documents": 0,
        }
        if labels is None:
            return cls(columns, None, texts, texts, texts, skipped)
        groups = list(rows_by_label([labels[row] for row in np.flatnonzero(complete).tolist()]).values())
        if level == "system":
            means = np.stack([columns[:, rows].mean(axis=1) for rows in groups], axis=1) if groups else columns
            return cls(means, None, len(groups), len(groups), texts, skipped)
        varied = [rows for rows in groups if not _is_constant(columns[:, rows]).any()]
        texts = sum(map(len, varied))
        skipped["skipped_constant_documents"] = len(groups) - len(varied)
        return cls(columns, varied, texts, len(varied), texts, skipped)

    def within(self, metric: int, coefficient: Coefficient) -> Floats:
        """One metric's coefficient within each document, shape (documents,); at other levels the single coefficient."""
        parts = [self.columns] if self.documents is None else [self.columns[:, rows] for rows in self.documents]
        return np.array([coefficients_of(part[[metric]], part[[0]], coefficient)[0] for part in parts])

    def value(self, metric: int, coefficient: Coefficient) -> float:
        return float(self.within(metric, coefficient).mean()) if self.units else math.nan

    def replicates(self, coefficient: Coefficient, n_resamples: int, rng: np.random.Generator) -> Floats:
        """Bootstrap replicates of the first metric's coefficient, shape (n_resamples,); undefined is NaN."""
        if not self.units:
            return np.full(n_resamples, math.nan)
        within, blocks = self.within(1, coefficient), []
        size = max(1, BLOCK // max(self.units, 1000))  # resamples
        for start in range(0, n_resamples, size):
            drawn = rng.integers(0, self.units, size=(min(size, n_resamples - start), self.units))
            if self.documents is None:
                blocks.append(coefficients_of(self.columns[1][drawn], self.columns[0][drawn], coefficient))
            else:
                blocks.append(within[drawn].mean(axis=1))
        return np.concatenate(blocks)


def with_interval(name: str, value: float, replicates: Floats, confidence: float) -> Outcome:
    """``name``, ``name_low`` and ``name_high``: the central share ``confidence`` of the replicates that are defined."""
    defined = replicates[~np.isnan(replicates)]
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(defined) else [math.nan] * 2
    numbers = {name: value, f"{name}_low": float(low), f"{name}_high": float(high)}
    return {key: None if math.isnan(number) else number for key, number in numbers.items()}


def williams_test(human_a: float, human_b: float, a_b: float, n: int) -> tuple[float, float]:
    r"""Williams' test of the difference between two dependent correlations with the same human scores.

    With :math:`r_{12}` and :math:`r_{13}` the correlations of metrics A and B with the human scores, :math:`r_{23}` the
    correlation between the metrics, and n texts (at least 4),

    .. math::
        t_{n-3} = (r_{12} - r_{13}) \sqrt{\frac{(n-1)(1 + r_{23})}
        {2K\frac{n-1}{n-3} + \frac{(r_{12} + r_{13})^2}{4}(1 - r_{23})^3}},
        \qquad K = 1 - r_{12}^2 - r_{13}^2 - r_{23}^2 + 2 r_{12} r_{13} r_{23}.

    Returns t and the two-sided p-value. Clark et al. apply it to Spearman coefficients, Graham and Baldwin to
    Pearson's. Steiger (1980) gives 0.89 for correlations of .5 and .4 with .1 between the two, on 103 people:

    >>> t, p = williams_test(0.5, 0.4, 0.1, n=103)
    >>> round(t, 2), round(p, 2)
    (0.89, 0.37)
    """
    # Rounding can push the determinant of a matrix of rank 2 slightly below zero.
    determinant = max(1 - human_a**2 - human_b**2 - a_b**2 + 2 * human_a * human_b * a_b, 0.0)
    spread = 2 * determinant * (n - 1) / (n - 3) + (human_a + human_b) ** 2 / 4 * (1 - a_b) ** 3
    # Without a spread the metrics are equal up to scale, and there is no difference.
    t = (human_a - human_b) * math.sqrt((n - 1) * (1 + a_b) / spread) if spread > 0 else 0.0
    return float(t), float(2 * scipy.stats.t.sf(abs(t), n - 3))


def exchanges(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int8]]:
    """Random blocks of shape (exchanges, n): 1 for a unit that is exchanged, else 0."""
    size = max(1, BLOCK // n)
    for start in range(0, n_resamples, size):
        yield rng.integers(0, 2, size=(min(size, n_resamples - start), n), dtype=np.int8)


def probability(exchanged: Floats, observed: float) -> float:
    """Two-sided p-value: share of defined differences of at least the observed one, which counts as a random one."""
    defined = exchanged[~np.isnan(exchanged)]
    extreme = int(np.sum(np.abs(defined) >= abs(observed) - 1e-12))
    return (extreme + 1) / (len(defined) + 1)


class PairwiseTest(NamedTuple):
    """Metric A against metric B: the difference of their coefficients, p-values, differences after random exchanges."""

    difference: float
    permutation_p: float
    williams_p: float | None  # not for Kendall, at summary level, or for fewer than four units
    exchanged: Floats


def pairwise_test(
    paired: Paired, coefficient: Coefficient, n_resamples: int, rng: np.random.Generator
) -> PairwiseTest | None:
    """Test metric 1 of ``paired`` against metric 2; None where a coefficient is undefined."""
    values = paired.value(1, coefficient), paired.value(2, coefficient)
    difference = values[0] - values[1]
    if math.isnan(difference):
        return None
    blocks = exchanges(paired.units, n_resamples, rng)
    if paired.documents is not None:
        # A document's coefficients are exchanged whole: the mean difference with random signs.
        differences = paired.within(1, coefficient) - paired.within(2, coefficient)
        exchanged = np.concatenate([(1 - 2 * block) @ differences / paired.units for block in blocks])
        return PairwiseTest(difference, probability(exchanged, difference), None, exchanged)
    human, a, b = paired.columns
    williams_p = None
    if coefficient != "kendall" and paired.units >= 4:
        between = float(coefficients_of(a[None], b[None], coefficient)[0])
        williams_p = williams_test(*values, between, paired.units)[1]
    if coefficient == "pearson":  # on a common scale: standard scores, or ranks
        # Rounded, so that scores that are equal but for rounding noise make a constant column.
        a, b = (np.round((scores - scores.mean()) / scores.std(), 12) for scores in (a, b))
    else:
        a, b = (scipy.stats.rankdata(scores) for scores in (a, b))
    parts = []
    for block in blocks:
        people = np.broadcast_to(human, block.shape)
        first, second = (coefficients_of(np.where(block, *pair), people, coefficient) for pair in ((b, a), (a, b)))
        parts.append(first - second)
    exchanged = np.concatenate(parts)
    return PairwiseTest(difference, probability(exchanged, difference), williams_p, exchanged)


class Agreement(NamedTuple):
    """One metric with one human score: a row of the table, and the bootstrap replicates of its coefficients."""

    row: Outcome
    replicates: dict[Coefficient, Floats]


Agreements = dict[str, Agreement]  # by metric
Tests = dict[tuple[str, str], PairwiseTest]  # by pair of metrics


def agreement_table(
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    level: Level = "segment",
    labels: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    lower_is_better: Sequence[str] = (),
    tested: Coefficient = "pearson",
    alpha: float = 0.05,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Outcome]:
    """Correlate every metric with every human score, and test all pairs of metrics: one flat dict for each.

    ``metrics`` and ``humans`` map names to scores of the same n texts; texts where either is None (or NaN) are skipped
    and counted. ``labels`` name the document (at ``summary`` level) or the system (at ``system`` level) of each text.
    Texts of one of the ``groups`` (a language pair, say) are correlated separately; a row with the group ``"mean"``
    follows, whose interval and permutation test treat groups as strata. Human scores in ``lower_is_better`` (edits,
    errors) are negated, so that a positive coefficient always means agreement.

    Every row has ``n`` (the sample size: texts, or systems at system level), ``units`` (what the bootstrap drew with
    replacement), ``texts`` (those that were used); ``pearson``, ``spearman``, ``kendall``, each also with ``_low`` and
    ``_high`` (None if undefined); counts ``skipped_*``; ``better_than``, the metrics whose coefficient ``tested`` is
    lower, where every test that applies gives p < alpha (two-sided, not corrected for the number of comparisons);
    ``williams_p`` and ``permutation_p`` against each other metric. Rows are ordered by human score, group, metric.

    The permutation test exchanges two metrics' scores of random texts (standard scores for Pearson, ranks otherwise; at
    ``summary`` level a document's coefficients, at ``system`` level a system's mean scores) and compares the observed
    difference of the correlations with those after exchange.

    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row["metric"], row["n"], round(row["spearman"], 2)) for row in rows]
    [('good', 6, 0.94), ('poor', 5, 0.6)]
    """
    check_choice("agreement", "level", level, LEVELS)
    check_choice("agreement", "tested", tested, COEFFICIENTS)
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    if not metrics or not humans:
        raise InputError("agreement: metrics and humans: expected at least one list of scores each, but got none")
    for name in lower_is_better:
        check_choice("agreement", "lower_is_better", name, humans)
    columns = stack(
        {f"metrics[{name!r}]": column for name, column in metrics.items()}
        | {f"humans[{name!r}]": column for name, column in humans.items()}
    )
    n = columns.shape[1]
    if groups is not None:
        check_length("groups", groups, n)
    if level != "segment":
        check_length("labels", labels, n)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_by_label([str(group) for group in groups])
    settings = {"tested": tested, "alpha": alpha, "confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    table: list[Outcome] = []
    for human_name, human in zip(humans, columns[len(metrics) :], strict=True):
        sign = -1 if human_name in lower_is_better else 1
        blocks: dict[str, tuple[Agreements, Tests]] = {}
        for group, rows in rows_of_group.items():
            # Groups are independent strata with their own random streams, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            part_labels = None if level == "segment" or labels is None else [labels[row] for row in rows]
            people, scores = sign * human[rows], dict(zip(metrics, columns[:, rows], strict=False))
            agreements: Agreements = {}
            for name, column in scores.items():
                paired = Paired.at(np.stack([people, column]), level, part_labels)
                agreements[name] = measure(paired, n_resamples, confidence, stream)
            tests: Tests = {}
            for a, b in combinations(metrics, 2):
                paired = Paired.at(np.stack([people, scores[a], scores[b]]), level, part_labels)
                if test := pairwise_test(paired, tested, n_resamples, np.random.default_rng([*stream, 1])):
                    tests[a, b] = test
            blocks[group] = agreements, tests
        if len(blocks) > 1:
            blocks["mean"] = _means(list(blocks.values()), confidence, seed)
        table += [
            {"metric": name, "human": human_name, "level": level, "group": group, "skipped_groups": 0, **agreement.row}
            | {"lower_is_better": sign < 0, **_outcomes(name, tests, alpha), **settings}
            for group, (agreements, tests) in blocks.items()
            for name, agreement in agreements.items()
        ]
    return table


def measure(paired: Paired, n_resamples: int, confidence: float, stream: Sequence[int]) -> Agreement:
    """Correlate the metric of ``paired`` with the human scores."""
    row: Outcome = {"n": paired.n, "units": paired.units, "texts": paired.texts}
    replicates: dict[Coefficient, Floats] = {}
    for name in COEFFICIENTS:  # of the same resamples
        replicates[name] = paired.replicates(name, n_resamples, np.random.default_rng(stream))
        row |= with_interval(name, paired.value(1, name), replicates[name], confidence)
    return Agreement(row | paired.skipped, replicates)


def _outcomes(metric: str, tests: Tests, alpha: float) -> Outcome:
    """The tests of one metric against each other: p-values, and which metrics it is better than."""
    better_than: list[str] = []
    p_values: dict[str, dict[str, float]] = {"williams_p": {}, "permutation_p": {}}
    for (a, b), test in tests.items():
        if metric in (a, b):
            other, lead = (b, test.difference) if metric == a else (a, -test.difference)
            values = {kind: p for kind in p_values if (p := getattr(test, kind)) is not None}
            for kind, p in values.items():
                p_values[kind][other] = p
            if lead > 0 and max(values.values()) < alpha:
                better_than.append(other)
    return {"better_than": better_than, **p_values}


def _means(blocks: Sequence[tuple[Agreements, Tests]], confidence: float, seed: int) -> tuple[Agreements, Tests]:
    """Means over groups of every metric's coefficients and of every pair's difference, tested by averaged exchanges."""
    agreements: Agreements = {}
    for metric in blocks[0][0]:
        parts = [of_group[metric] for of_group, _ in blocks]
        agreements[metric] = Agreement(_mean_over_groups(parts, confidence, np.random.default_rng(seed)), {})
    tests: Tests = {}
    for pair in dict.fromkeys(pair for _, of_group in blocks for pair in of_group):
        defined = [of_group[pair] for _, of_group in blocks if pair in of_group]
        difference = float(np.mean([test.difference for test in defined]))
        p = probability(np.mean([test.exchanged for test in defined], axis=0), difference)
        tests[pair] = PairwiseTest(difference, p, None, np.empty(0))
    return agreements, tests


def _mean_over_groups(parts: Sequence[Agreement], confidence: float, rng: np.random.Generator) -> Outcome:
    """Mean coefficient over the groups that have one; groups are strata of the bootstrap."""
    defined = [part for part in parts if all(part.row[name] is not None for name in COEFFICIENTS)]
    mean = {key: sum(part.row[key] for part in parts) for key in ("n", "units", "texts")}
    for name in COEFFICIENTS:
        centred = [_centred(part.replicates[name], part.row[name], rng) for part in defined]
        replicates_of_mean = np.mean(centred, axis=0).clip(-1, 1) if defined else np.empty(0)
        value = float(np.mean([part.row[name] for part in defined])) if defined else math.nan
        mean |= with_interval(name, value, replicates_of_mean, confidence)
    mean |= {key: sum(part.row[key] for part in parts) for key in parts[0].row if key.startswith("skipped_")}
    return mean | {"skipped_groups": len(parts) - len(defined)}


def _centred(replicates: Floats, value: float, rng: np.random.Generator) -> Floats:
    """Replicates centred on a group's coefficient, undefined ones replaced by random others."""
    # Resampling a small group is biased (a text drawn twice is a tie): the mean could lie outside its own interval.
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(len(replicates), value)
    filled = np.where(np.isnan(replicates), rng.choice(defined, len(replicates)), replicates)
    return filled - defined.mean() + value

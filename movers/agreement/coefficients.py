"""Correlation with human scores at segment, summary and system level: coefficients, intervals, tests."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from movers.errors import InputError
from movers.inputs import check_choice, check_positive

Coefficient = Literal["pearson", "spearman", "kendall"]
Level = Literal["segment", "summary", "system"]
Floats = NDArray[np.float64]
Outcome = dict[str, Any]  # of JSON values; None is undefined
Scores = Sequence[float | int | None] | Floats
Exchanges = NDArray[np.int8]
Agreements = dict[str, tuple[Outcome, dict[Coefficient, Floats]]]  # by metric: row and replicates
Tests = dict[tuple[str, str], tuple[Outcome, Floats]]  # by pair of metrics: row and differences after exchange

COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
COEFFICIENT_TITLES: dict[Coefficient, str] = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b"}
LEVELS: tuple[Level, ...] = get_args(Level)
FEW_SYSTEMS = 10  # with fewer a system-level coefficient says little: tables and `correlate` warn


# --- input -----------------------------------------------------------------------------------------------------------


def check_resampling(n_resamples: int, seed: int = 0, n_exchanges: int = 1, **shares: float) -> None:
    """Check numbers of trials, the seed, and that every named share (confidence, alpha) is between 0 and 1."""
    check_positive("agreement", "n_resamples", n_resamples, none_allowed=False)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    check_positive("agreement", "seed", seed, none_allowed=False, least=0)
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise InputError(f"agreement: {name}: expected a number between 0 and 1, both excluded, but got {share}")


def stack(columns: Mapping[str, Scores], *, complete: bool = False) -> Floats:
    """Stack named columns into an array of shape (columns, texts); a missing value is NaN, or an error."""
    expected = "a finite number" if complete else "a finite number or None"
    first, length = next((name, len(values)) for name, values in columns.items())
    for name, values in columns.items():
        if len(values) != length:
            expected = f"as many values as {first} has ({length})"
            raise InputError(f"agreement: {name}: expected {expected}, but got {len(values)}")
        for row, value in enumerate(values):
            number = math.nan if value is None else value
            if not isinstance(number, Real) or math.isinf(number) or (complete and math.isnan(number)):
                raise InputError(f"agreement: {name}[{row}]: expected {expected}, but got {value!r:.60}")
    return np.array([np.array(values, dtype=float) for values in columns.values()])


def check_labels(name: str, labels: Sequence[object] | None, expected: int) -> None:
    if labels is None or len(labels) != expected:
        raise InputError(f"agreement: {name}: expected one value per text ({expected}), but got {len(labels or ())}")


def labels_for(
    level: Level, documents: Sequence[str] | None, systems: Sequence[str] | None, expected: int
) -> Sequence[str] | None:
    """The column by which a level groups texts, validated."""
    check_choice("agreement", "level", level, LEVELS)
    if level == "segment":
        return None
    labels = documents if level == "summary" else systems
    check_labels("documents" if level == "summary" else "systems", labels, expected)
    return labels


def rows_by_label(labels: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Rows of each label, labels in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(members, dtype=np.intp) for label, members in rows.items()}


# --- coefficients ----------------------------------------------------------------------------------------------------


def coefficient_of(x: Floats, y: Floats, coefficient: Coefficient) -> float:
    """One coefficient of two complete columns; NaN where it is undefined (fewer than two texts, a constant column)."""
    return float(coefficients_of_rows(x[None], y[None], [coefficient])[coefficient][0])


def coefficients_of_rows(x: Floats, y: Floats, coefficients: Collection[Coefficient]) -> dict[Coefficient, Floats]:
    """Coefficients of every row of ``x`` with the same row of ``y``, both of shape (rows, n)."""
    defined = ~(_is_constant(x) | _is_constant(y))
    values = {name: np.full(len(x), math.nan) for name in coefficients}
    for name in coefficients if defined.any() else ():
        pair = x[defined], y[defined]
        if name == "spearman":
            pair = stats.rankdata(pair[0], axis=1), stats.rankdata(pair[1], axis=1)
        values[name][defined] = (_kendall_of_rows if name == "kendall" else _pearson_of_rows)(*pair)
    return values


def _is_constant(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray((rows[:, 1:] == rows[:, :-1]).all(axis=1))


def _pearson_of_rows(x: Floats, y: Floats) -> Floats:
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    return np.asarray((x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)))


def _kendall_of_rows(x: Floats, y: Floats) -> Floats:
    if x.shape[1] > 32:
        # "asymptotic" concerns the p-value, which is not used; the exact one takes time.
        return np.array([stats.kendalltau(*row, method="asymptotic").statistic for row in zip(x, y, strict=True)])
    # All rows at once, by definition: 1,000 rows of 16 in .015 s, SciPy's calls take .6 s.
    signs_x, signs_y = (np.sign(values[:, :, None] - values[:, None, :]) for values in (x, y))
    untied = np.count_nonzero(signs_x, axis=(1, 2)) * np.count_nonzero(signs_y, axis=(1, 2))
    return np.asarray((signs_x * signs_y).sum(axis=(1, 2)) / np.sqrt(untied))


def correlation(scores: Scores, human: Scores, coefficient: Coefficient = "pearson") -> float:
    """One correlation coefficient between two complete lists of numbers (:func:`correlate` skips missing values).

    ``kendall`` is τ-b. Undefined (fewer than two values, one list constant) is NaN.

    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman"), 4)
    0.8
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    x, y = stack({"scores": scores, "human": human}, complete=True)
    return coefficient_of(x, y, coefficient)


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
        varied = [rows for rows in groups if not _is_constant(columns[:, rows]).any()]
        return cls(columns, varied, sum(map(len, varied)), len(varied), len(groups) - len(varied))

    def within(self, metric: int, coefficient: Coefficient) -> Floats:
        """One metric's coefficient within each document, shape (documents,); at other levels the single coefficient."""
        human, scores = self.columns[0], self.columns[metric]
        if self.documents is None:
            return np.array([coefficient_of(scores, human, coefficient)])
        return np.array([coefficient_of(scores[rows], human[rows], coefficient) for rows in self.documents])

    def value(self, metric: int, coefficient: Coefficient) -> float:
        return float(self.within(metric, coefficient).mean()) if self.units else math.nan

    def replicates(self, n_resamples: int, rng: np.random.Generator) -> dict[Coefficient, Floats]:
        """Bootstrap replicates of the first metric's coefficients, each of shape (n_resamples,); undefined is NaN."""
        if not self.units:
            return {name: np.full(n_resamples, math.nan) for name in COEFFICIENTS}
        within = {name: self.within(1, name) for name in COEFFICIENTS} if self.documents is not None else None
        blocks = []
        size = max(1, 2_000_000 // max(self.units, 1000))  # resamples per block; bounds the memory
        for start in range(0, n_resamples, size):
            drawn = rng.integers(0, self.units, size=(min(size, n_resamples - start), self.units))
            if within is None:
                blocks.append(coefficients_of_rows(self.columns[1][drawn], self.columns[0][drawn], COEFFICIENTS))
            else:
                blocks.append({name: values[drawn].mean(axis=1) for name, values in within.items()})
        return {name: np.concatenate([block[name] for block in blocks]) for name in COEFFICIENTS}


def with_interval(name: str, value: float, replicates: Floats, confidence: float) -> Outcome:
    """``name``, ``name_low`` and ``name_high``: the central share ``confidence`` of the replicates that are defined."""
    defined = replicates[~np.isnan(replicates)]
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(defined) else [math.nan] * 2
    numbers = {name: value, f"{name}_low": float(low), f"{name}_high": float(high)}
    return {key: None if math.isnan(number) else number for key, number in numbers.items()}


def measure(
    columns: Floats,
    level: Level,
    labels: Sequence[str] | None,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[Outcome, dict[Coefficient, Floats]]:
    """:func:`correlate` of validated columns of shape (2, texts), human scores first; also the replicates."""
    paired = Paired.at(columns, level, labels)
    row = {"n": paired.units if level == "system" else paired.texts, "units": paired.units, "texts": paired.texts}
    replicates = paired.replicates(n_resamples, rng)
    for name, column in replicates.items():
        row |= with_interval(name, paired.value(1, name), column, confidence)
    no_human, no_score = np.isnan(columns)
    skipped = {
        "skipped_no_human_score": int(no_human.sum()),
        "skipped_no_metric_score": int((no_score & ~no_human).sum()),
        "skipped_constant_documents": paired.constant_documents,
    }
    return row | skipped, replicates


def few_systems(level: Level, systems: int) -> str:
    """A warning if there are too few systems, else nothing."""
    if level != "system" or systems >= FEW_SYSTEMS:
        return ""
    return f"coefficients between {systems} systems (fewer than {FEW_SYSTEMS}) are very uncertain"


def correlate(
    scores: Scores,
    human: Scores,
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Outcome:
    """Correlate scores with human scores at one level, with percentile bootstrap intervals.

    ``scores`` and ``human`` have one value per text; rows where either is None (or NaN) are skipped and counted.
    ``documents`` (needed at ``summary`` level) and ``systems`` (at ``system`` level) have one label per text. The
    bootstrap draws texts, documents or systems with replacement, depending on the level.

    Returns a flat dict of JSON values: ``n`` (the sample size: texts, or systems at system level), ``units`` (what was
    resampled), ``texts`` (those that were used); ``pearson``, ``spearman``, ``kendall``, each also with ``_low`` and
    ``_high`` (None if undefined); ``skipped_no_human_score`` and ``skipped_no_metric_score`` (texts, each counted once)
    and ``skipped_constant_documents`` (one side is constant).

    >>> row = correlate([0.1, 0.4, None, 0.35, 0.8], [1, 2, 5, 3, 4], n_resamples=100)
    >>> row["n"], row["skipped_no_metric_score"], round(row["spearman"], 4)
    (4, 1, 0.8)
    """
    check_resampling(n_resamples, seed, confidence=confidence)
    columns = stack({"human": human, "scores": scores})
    labels = labels_for(level, documents, systems, columns.shape[1])
    row, _ = measure(columns, level, labels, n_resamples, confidence, np.random.default_rng(seed))
    if warning := few_systems(level, row["units"]):
        warnings.warn(f"agreement: {warning}", stacklevel=2)
    return row


# --- significance -----------------------------------------------------------------------------------------------------


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
        got = f"human_a={human_a!r}, human_b={human_b!r}, a_b={a_b!r}"
        raise InputError(f"agreement: expected a positive semi-definite matrix of correlations, but got {got}")
    # Rounding can push a matrix of rank 2 slightly below zero.
    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (human_a + human_b) ** 2 / 4 * (1 - a_b) ** 3
    difference = human_a - human_b
    if spread > 0:
        t = difference * math.sqrt((n - 1) * (1 + a_b) / spread)
    else:
        # Metrics that are equal up to scale: no difference, or one without uncertainty.
        t = 0.0 if abs(difference) < 1e-12 else math.copysign(math.inf, difference)
    return Williams(float(t), n - 3, float(2 * stats.t.sf(abs(t), n - 3)))


def exchanges(n: int, n_resamples: int, rng: np.random.Generator, exact: bool = False) -> Iterator[Exchanges]:
    """Blocks of shape (exchanges, n): 1 for a unit that is exchanged, else 0; at random, or all 2ⁿ."""
    if exact:
        yield ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
        return
    block = max(1, 2_000_000 // n)  # bounds the memory
    for start in range(0, n_resamples, block):
        yield rng.integers(0, 2, size=(min(block, n_resamples - start), n), dtype=np.int8)


def probability(exchanged: Floats, observed: float, exact: bool = False) -> float:
    """Two-sided p-value: share of exchanges with at least the observed difference, which counts as a random one.

    Undefined differences (NaN) are left out.
    """
    defined = exchanged[~np.isnan(exchanged)]
    extreme = int(np.sum(np.abs(defined) >= abs(observed) - 1e-12))
    return extreme / len(defined) if exact else (extreme + 1) / (len(defined) + 1)


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
    exchanged = _differences(paired, coefficient, exchanges(paired.units, n_resamples, rng, exact))
    row["permutation_p"] = probability(exchanged, difference, exact)
    if exact:
        exchanged = _differences(paired, coefficient, exchanges(paired.units, n_resamples, rng))
    if coefficient != "kendall" and paired.documents is None and paired.units >= 4:
        human, a, b = paired.columns
        human_a, human_b, a_b = (coefficient_of(x, y, coefficient) for x, y in ((a, human), (b, human), (a, b)))
        row["williams_t"], _, row["williams_p"] = williams_test(human_a, human_b, a_b, paired.units)
    return row, exchanged


def _differences(paired: Paired, coefficient: Coefficient, blocks: Iterable[Exchanges]) -> Floats:
    """Differences of the two metrics' coefficients after exchanging their scores in some units; NaN if undefined."""
    if paired.documents is not None:
        # A document's coefficients are exchanged whole: the mean difference with random signs.
        difference = paired.within(1, coefficient) - paired.within(2, coefficient)
        return np.concatenate([(1 - 2 * block) @ difference / paired.units for block in blocks])
    human, a, b = paired.columns
    if coefficient == "pearson":  # on a common scale: standard scores, or ranks
        # Rounded, so that scores that are equal but for rounding noise make a constant column.
        a, b = (np.round((scores - scores.mean()) / scores.std(), 12) for scores in (a, b))
    else:
        a, b = (stats.rankdata(scores) for scores in (a, b))

    def correlated(block: Exchanges, x: Floats, y: Floats) -> Floats:
        people = np.broadcast_to(human, block.shape)
        return coefficients_of_rows(np.where(block, x, y), people, [coefficient])[coefficient]

    return np.concatenate([correlated(block, b, a) - correlated(block, a, b) for block in blocks])


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

    The permutation test exchanges the two metrics' scores of random texts (brought to a common scale: standard scores
    for Pearson, ranks otherwise) and compares the observed difference of the correlations with those after exchange;
    exchanges after which a metric is constant are left out. If there are no more than ``n_resamples`` possible
    exchanges (2ⁿ), all are tried and the p-value is exact. At ``summary`` level a document's two coefficients are
    exchanged, at ``system`` level a system's two mean scores. Only texts that have all three scores are used.

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


# --- all metrics and human scores -------------------------------------------------------------------------------------


def agreement_table(
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    lower_is_better: Sequence[str] = (),
    tested: Coefficient = "pearson",
    alpha: float = 0.05,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Outcome]:
    """Correlate every metric with every human score, and test all pairs of metrics: one flat dict for each.

    ``metrics`` and ``humans`` map names to scores of the same n texts, None if missing. Texts of one of the ``groups``
    (a language pair, say) are correlated separately; a row with the group ``"mean"`` follows, whose interval and
    permutation test treat groups as strata. Human scores in ``lower_is_better`` (edits, errors) are negated, so that a
    positive coefficient always means agreement. The tests compare the coefficient ``tested``; ``better_than`` names
    metrics whose coefficient is lower, where every test that applies gives p < alpha (two-sided, not corrected for the
    number of comparisons), ``williams_p`` and ``permutation_p`` are the p-values against each other metric. Other
    arguments and values as in :func:`correlate`; None is undefined. Rows are ordered by human score, group, metric.

    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row["metric"], row["n"], round(row["spearman"], 2)) for row in rows]
    [('good', 6, 0.94), ('poor', 5, 0.6)]
    """
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
        check_labels("groups", groups, n)
    level_labels = labels_for(level, documents, systems, n)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_by_label([str(group) for group in groups])
    settings = {"tested": tested, "alpha": alpha, "confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    table: list[Outcome] = []
    for human_name, human in zip(humans, columns[len(metrics) :], strict=True):
        sign = -1 if human_name in lower_is_better else 1
        blocks: dict[str, tuple[Agreements, Tests]] = {}
        for group, rows in rows_of_group.items():
            # Groups are independent strata with their own random streams, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            labels = None if level_labels is None else [level_labels[row] for row in rows]
            people, scores = sign * human[rows], dict(zip(metrics, columns[:, rows], strict=False))
            agreements: Agreements = {}
            for name, column in scores.items():
                pair, rng = np.stack([people, column]), np.random.default_rng(stream)
                agreements[name] = measure(pair, level, labels, n_resamples, confidence, rng)
            tests: Tests = {}
            for a, b in combinations(metrics, 2):
                paired = Paired.at(np.stack([people, scores[a], scores[b]]), level, labels)
                tests[a, b] = pairwise_test(paired, tested, n_resamples, np.random.default_rng([*stream, 1]))
            blocks[group] = agreements, tests
        if len(blocks) > 1:
            blocks["mean"] = _means(list(blocks.values()), confidence, seed)
        table += [
            {"metric": name, "human": human_name, "level": level, "group": group, "skipped_groups": 0, **row}
            | {"lower_is_better": sign < 0, **_outcomes(name, tests, alpha), **settings}
            for group, (agreements, tests) in blocks.items()
            for name, (row, _) in agreements.items()
        ]
    if warning := few_systems(level, min(row["units"] for row in table)):
        warnings.warn(f"agreement: {warning}", stacklevel=2)
    return table


def _outcomes(metric: str, tests: Tests, alpha: float) -> Outcome:
    """The tests of one metric against each other: p-values, and which metrics it is better than."""
    better_than: list[str] = []
    p_values: dict[str, dict[str, float]] = {"williams_p": {}, "permutation_p": {}}
    for (a, b), (test, _) in tests.items():
        if metric not in (a, b) or test["permutation_p"] is None:
            continue
        other = b if metric == a else a
        values = {kind: test[kind] for kind in p_values if test[kind] is not None}
        for kind, p in values.items():
            p_values[kind][other] = p
        higher = test["difference"] > 0 if metric == a else test["difference"] < 0
        if higher and max(values.values()) < alpha:
            better_than.append(other)
    return {"better_than": better_than, **p_values}


# --- means over groups -----------------------------------------------------------------------------------------------


def _means(blocks: Sequence[tuple[Agreements, Tests]], confidence: float, seed: int) -> tuple[Agreements, Tests]:
    """Means over groups of every metric's coefficients and of every pair's difference, tested by averaged exchanges."""
    agreements: Agreements = {}
    for metric in blocks[0][0]:
        parts = [of_group[metric] for of_group, _ in blocks]
        agreements[metric] = _mean_over_groups(parts, confidence, np.random.default_rng(seed)), {}
    tests: Tests = {}
    for pair in blocks[0][1]:
        defined = [of_group[pair] for _, of_group in blocks if of_group[pair][0]["difference"] is not None]
        if defined:
            difference = float(np.mean([row["difference"] for row, _ in defined]))
            p = probability(np.mean([exchanged for _, exchanged in defined], axis=0), difference)
            tests[pair] = {"difference": difference, "williams_p": None, "permutation_p": p}, np.empty(0)
    return agreements, tests


def _mean_over_groups(
    parts: Sequence[tuple[Outcome, dict[Coefficient, Floats]]], confidence: float, rng: np.random.Generator
) -> Outcome:
    """Mean coefficient over the groups that have one; groups are strata of the bootstrap."""
    defined = [(row, replicates) for row, replicates in parts if all(row[name] is not None for name in COEFFICIENTS)]
    mean = {key: sum(row[key] for row, _ in parts) for key in ("n", "units", "texts")}
    for name in COEFFICIENTS:
        centred = [_centred(replicates[name], row[name], rng) for row, replicates in defined]
        replicates_of_mean = np.mean(centred, axis=0).clip(-1, 1) if defined else np.empty(0)
        value = float(np.mean([row[name] for row, _ in defined])) if defined else math.nan
        mean |= with_interval(name, value, replicates_of_mean, confidence)
    mean |= {key: sum(row[key] for row, _ in parts) for key in parts[0][0] if key.startswith("skipped_")}
    return mean | {"skipped_groups": len(parts) - len(defined)}


def _centred(replicates: Floats, value: float, rng: np.random.Generator) -> Floats:
    """Replicates centred on a group's coefficient, undefined ones replaced by random others."""
    # Resampling a small group is biased (a text drawn twice is a tie): the mean could lie outside its own interval.
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(len(replicates), value)
    filled = np.where(np.isnan(replicates), rng.choice(defined, len(replicates)), replicates)
    return filled - defined.mean() + value

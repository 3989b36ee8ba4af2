"""Tests of two metrics and of two systems, against published values, SciPy and exhaustive enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from samples import SCIPY
from scipy import stats

from movers import agreement
from movers.errors import InputError


@pytest.mark.parametrize(
    ("human_a", "human_b", "a_b", "n", "t", "p", "source"),
    [
        (0.5, 0.4, 0.1, 103, 0.89, 0.37, "Steiger 1980, as R's psych::r.test prints it"),
        # That version of psych took n − 2 degrees of freedom (n − 3 since 2014), so only its t compares.
        (0.5, 0.1, 0.7, 30, 3.38, None, "R's psych::r.test before 2014"),
        (0.5447, 0.8, 0.0729, 70, -2.8114, 0.0065, "R's cocor, williams1959"),
        (0.8066, 0.2383, 0.2255, 177, 9.3823, 0.0, "R's cocor, williams1959"),
        (-0.1741, 0.2015, 0.3734, 646, -9.0340, 0.0, "R's cocor, williams1959"),
        (0.5, 0.5, 1.0, 50, 0.0, 1.0, "a metric and itself"),
    ],
)
def test_williams_test_gives_published_values(human_a, human_b, a_b, n, t, p, source):
    outcome = agreement.williams_test(human_a, human_b, a_b, n)
    # The sources print four decimals of correlations and two or four of t.
    assert outcome[0] == pytest.approx(t, abs=0.005), source
    assert p is None or outcome[1] == pytest.approx(p, abs=0.005 if p == 0.37 else 0.0001), source


def compare(a, b, human, coefficient="pearson", **options):
    """Metric A against metric B: their rows in the table."""
    return agreement.agreement_table({"a": a, "b": b}, {"human": human}, tested=coefficient, **options)


@pytest.mark.parametrize("n", [8, 5])
@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
def test_the_permutation_test_agrees_with_brute_force_over_all_exchanges(coefficient, n):
    rng = np.random.default_rng(11)
    human = rng.normal(size=8)[:n]
    a, b = (human + spread * rng.normal(size=8)[:n] for spread in (0.5, 2))
    if n == 5:  # exchanging the first two or the last two makes a metric constant, but for rounding noise
        a, b = np.array([0.3, 0.3, 0.3, 0.7, -0.1]), np.array([0.93, 0.27, 0.6, 0.6, 0.6])
    scale = stats.zscore if coefficient == "pearson" else stats.rankdata
    first, second = scale(a), scale(b)
    observed = abs(SCIPY[coefficient](first, human) - SCIPY[coefficient](second, human))
    differences = []
    for exchange in itertools.product([False, True], repeat=n):
        x, y = np.where(exchange, second, first), np.where(exchange, first, second)
        if min(np.ptp(x), np.ptp(y)) > 1e-9:
            differences.append(abs(SCIPY[coefficient](x, human) - SCIPY[coefficient](y, human)))
    row, _ = compare(a, b, human, coefficient, n_resamples=20_000)
    assert row["permutation_p"]["b"] == pytest.approx(np.mean(np.array(differences) >= observed - 1e-12), abs=0.01)
    assert (row["williams_p"] == {}) == (coefficient == "kendall")


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_a_good_metric_is_better_than_noise_at_every_level(level):
    rng = np.random.default_rng(16)
    labels = [f"d{i // 12}" if level == "summary" else f"s{i % 12}" for i in range(180)]
    human = np.tile(np.arange(12.0), 15) + rng.normal(size=180)
    good, noise = human + rng.normal(size=180), rng.normal(size=180)
    row, other = compare(good, noise, human, level=level, labels=labels)
    assert row["permutation_p"]["b"] < 0.01 and (row["better_than"], other["better_than"]) == (["b"], [])
    assert (row["williams_p"] == {}) == (level == "summary")
    assert row["units"] == {"segment": 180, "summary": 15, "system": 12}[level]


@pytest.mark.slow
def test_equally_good_metrics_and_systems_differ_significantly_in_one_case_of_twenty():
    """Of 400 true null hypotheses, 20 ± 3 standard deviations are rejected at p < .05."""
    rng = np.random.default_rng(3)
    rejected = np.zeros(4)
    for _ in range(400):
        human = rng.normal(size=30)
        a, b = human + rng.normal(size=30), human + rng.normal(size=30)
        metrics, _ = compare(a, b, human, n_resamples=199)
        (systems,) = agreement.compare_systems({"a": a, "b": b}, n_resamples=199, n_exchanges=199)
        p_values = metrics["williams_p"]["b"], metrics["permutation_p"]["b"]
        p_values += systems["bootstrap_p"], systems["randomization_p"]
        rejected += np.array(p_values) < 0.05
    assert (np.abs(rejected - 20) <= 3 * np.sqrt(400 * 0.05 * 0.95)).all()


def two_systems(n: int, lead: float) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(18)
    difficulty = rng.uniform(0.2, 0.8, size=n)
    return (difficulty + lead + 0.05 * rng.normal(size=n)).tolist(), (difficulty + 0.05 * rng.normal(size=n)).tolist()


def test_randomization_agrees_with_scipys_exact_one_and_identical_systems_do_not_differ():
    a, b = two_systems(10, 0.03)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    first, same, _ = agreement.compare_systems({"a": a, "b": b, "c": a})
    assert first["randomization_p"] == pytest.approx(theirs.pvalue, abs=0.01)
    assert (same["difference"], same["bootstrap_p"], same["randomization_p"], same["holm_p"]) == (0.0, 1.0, 1.0, 1.0)


def test_the_bootstrap_probability_is_that_of_all_possible_resamples():
    a, b = two_systems(5, 0.03)
    difference = np.array(a) - np.array(b)
    every = np.array([difference[list(drawn)].mean() for drawn in itertools.product(range(5), repeat=5)])
    exact = np.mean(np.abs(every - difference.mean()) >= abs(difference.mean()) - 1e-12)
    (row,) = agreement.compare_systems({"a": a, "b": b}, n_resamples=20_000)
    assert row["bootstrap_p"] == pytest.approx(exact, abs=0.01)
    low, high = np.quantile(every, [0.025, 0.975])
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high), abs=0.002)


def test_holms_correction_rejects_step_by_step():
    """Reject the smallest p-value if p < α / k, then the next if p < α / (k − 1), and stop at the first that is not."""
    rng = np.random.default_rng(5)
    for count in (1, 2, 7, 20):
        p_values = rng.uniform(0, 0.2, size=count) ** 2
        p_values[: count // 3] = p_values[0]  # ties
        corrected = agreement.holm(p_values.tolist())
        for alpha in (0.001, 0.01, 0.05, 0.2):
            rejected = set()
            for step, place in enumerate(np.argsort(p_values, kind="stable")):
                if p_values[place] * (count - step) >= alpha:
                    break
                rejected.add(place)
            assert rejected == {place for place, p in enumerate(corrected) if p < alpha}
    assert agreement.holm([0.9, 0.8]) == [1.0, 1.0]  # never above 1


def test_systems_form_groups_where_all_above_are_better_than_all_below():
    rng = np.random.default_rng(7)
    difficulty = rng.normal(size=60)
    levels = {"bad": 0.0, "good": 2.0, "fair": 1.0, "also good": 2.02, "worst": -3.0}
    scores = {name: difficulty + level + 0.2 * rng.normal(size=60) for name, level in levels.items()}
    rows = agreement.compare_systems(scores)
    groups = {row[side]: row[f"group_{side}"] for row in rows for side in "ab"}
    assert groups == {"bad": 3, "good": 1, "fair": 2, "also good": 1, "worst": 4}
    assert len(rows) == 10 and rows[0]["n_resamples"] == 1000
    for row in rows:
        t = stats.ttest_rel(scores[row["a"]], scores[row["b"]])
        assert (row["better"] is not None) == (t.pvalue * 10 < 0.05)
        assert (row["difference_low"], row["difference_high"]) == pytest.approx(
            tuple(t.confidence_interval()), abs=0.02
        )
    # b and c differ, but a differs from neither: nothing separates the group
    assert agreement.groups_of({"b": 3, "a": 2, "c": 1}, {("b", "c")}) == {"b": 1, "a": 1, "c": 1}


def test_systems_that_cannot_be_compared_are_named():
    with pytest.raises(InputError, match="^compare: expected at least two systems, but got 1"):
        agreement.compare_systems({"a": [1.0]})
    with pytest.raises(InputError, match=r"^agreement: b: expected one value per text \(2\), but got 1"):
        agreement.compare_systems({"a": [1.0, 2.0], "b": [1.0]})
    for scores in ([], [None]):
        with pytest.raises(InputError, match="^compare: expected at least one text, and a score of every system"):
            agreement.compare_systems({"a": scores, "b": scores})

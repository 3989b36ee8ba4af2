"""Tests of two metrics' correlations, against published values, SciPy and exhaustive enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from samples import SCIPY, related
from scipy import stats

from movers import agreement
from movers.errors import InputError

# --- Williams' test --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("human_a", "human_b", "a_b", "n", "t", "p", "source"),
    [
        (0.5, 0.4, 0.1, 103, 0.89, 0.37, "Steiger 1980, as R's psych::r.test prints it"),
        # That version of psych took n − 2 degrees of freedom (n − 3 since 2014), so only its t compares.
        (0.5, 0.1, 0.7, 30, 3.38, None, "R's psych::r.test before 2014"),
        (0.5447, 0.8, 0.0729, 70, -2.8114, 0.0065, "R's cocor, williams1959"),
        (0.8066, 0.2383, 0.2255, 177, 9.3823, 0.0, "R's cocor, williams1959"),
        (-0.1741, 0.2015, 0.3734, 646, -9.0340, 0.0, "R's cocor, williams1959"),
    ],
)
def test_williams_test_gives_published_values(human_a, human_b, a_b, n, t, p, source):
    found = agreement.williams_test(human_a, human_b, a_b, n)
    # The sources print four decimals of correlations and two or four of t.
    assert found.t == pytest.approx(t, abs=0.005), source
    assert p is None or found.p == pytest.approx(p, abs=0.005 if p == 0.37 else 0.0001), source
    assert found.degrees_of_freedom == n - 3


def test_one_sided_williams_tests_are_the_two_halves_of_the_two_sided_one():
    two_sided = agreement.williams_test(0.45, 0.30, 0.6, 120)
    greater = agreement.williams_test(0.45, 0.30, 0.6, 120, "greater")
    less = agreement.williams_test(0.45, 0.30, 0.6, 120, "less")
    assert greater.p == pytest.approx(two_sided.p / 2)
    assert greater.p + less.p == pytest.approx(1)
    assert agreement.williams_test(0.30, 0.45, 0.6, 120).t == pytest.approx(-two_sided.t)


def test_williams_test_of_a_metric_with_itself_finds_no_difference():
    assert agreement.williams_test(0.5, 0.5, 1.0, 50).p == pytest.approx(1)


@pytest.mark.parametrize(
    ("human_a", "human_b", "a_b", "n", "message"),
    [
        (0.9, -0.9, 0.9, 50, "expected a positive semi-definite matrix"),
        (1.5, 0.1, 0.1, 50, "human_a: expected a correlation between -1 and 1, but got 1.5"),
        (0.5, 0.1, 0.1, 3, "n: expected at least 4 for Williams' test, but got 3"),
    ],
)
def test_williams_test_refuses_correlations_that_no_data_have(human_a, human_b, a_b, n, message):
    with pytest.raises(InputError, match=f"^agreement: {message}"):
        agreement.williams_test(human_a, human_b, a_b, n)


# --- permutation test ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
def test_the_permutation_test_equals_brute_force_over_all_exchanges(coefficient):
    rng = np.random.default_rng(11)
    human = rng.normal(size=8)
    a, b = human + 0.5 * rng.normal(size=8), human + 2 * rng.normal(size=8)
    scale = stats.zscore if coefficient == "pearson" else stats.rankdata
    # The rank correlation of exchanged ranks is Pearson's of these ranks: they are not ranked anew.
    statistic = SCIPY["pearson" if coefficient == "spearman" else coefficient]
    people = stats.rankdata(human) if coefficient == "spearman" else human
    first, second = scale(a), scale(b)
    observed = abs(statistic(first, people) - statistic(second, people))
    extreme = 0
    for exchange in itertools.product([False, True], repeat=8):
        x, y = np.where(exchange, second, first), np.where(exchange, first, second)
        extreme += abs(statistic(x, people) - statistic(y, people)) >= observed - 1e-12
    found = agreement.compare_correlations(a, b, human, coefficient, n_resamples=256).permutation
    assert found == agreement.Randomization(extreme / 256, 256, True)


def test_a_metric_does_not_differ_from_itself_on_another_scale():
    scores, human = related(30, 1.0, seed=15)
    found = agreement.compare_correlations(scores, [100 * score for score in scores], human, n_resamples=100)
    assert found.permutation.p == 1
    assert found.williams.p == pytest.approx(1, abs=1e-6)
    assert found.difference == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_a_good_metric_is_found_better_than_noise_at_every_level(level):
    rng = np.random.default_rng(16)
    documents = [f"d{document}" for document in range(15) for _ in range(12)]
    systems = [f"s{system}" for _ in range(15) for system in range(12)]
    human = np.tile(np.arange(12.0), 15) + rng.normal(size=180)
    found = agreement.compare_correlations(
        human + rng.normal(size=180), rng.normal(size=180), human, level=level, documents=documents, systems=systems
    )
    assert found.permutation.p < 0.01
    assert found.interval.low > 0
    assert (found.williams is None) == (level == "summary")
    assert found.units == {"segment": 180, "summary": 15, "system": 12}[level]


def test_kendall_has_no_williams_test():
    scores, human = related(12, 1.0, seed=17)
    assert agreement.compare_correlations(scores, scores[::-1], human, "kendall", n_resamples=20).williams is None


def test_where_a_coefficient_is_undefined_there_is_no_test():
    found = agreement.compare_correlations([1, 1, 1, 1, 1], [1, 2, 4, 3, 5], [1, 2, 3, 4, 5], n_resamples=20)
    assert (found.permutation, found.williams, found.n) == (None, None, 5)
    assert np.isnan(found.difference) and np.isnan(found.interval.low)

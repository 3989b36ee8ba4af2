"""Coefficients, their bootstrap and the three levels, against SciPy and exhaustive counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from samples import SCIPY, complete_rows, judged_grid, related
from scipy import stats

from movers import agreement
from movers.errors import InputError


def replicates_of(scores, human, coefficient, n_resamples, seed=0):
    return agreement.correlate(
        scores, human, coefficients=[coefficient], n_resamples=n_resamples, seed=seed
    ).replicates[coefficient]


# --- coefficients ----------------------------------------------------------------------------------------------------


def test_kendall_coefficients_count_concordant_pairs():
    scores, human = related(40, 1.5, seed=1)
    pairs = list(itertools.combinations(range(40), 2))
    signs = [np.sign(scores[i] - scores[j]) * np.sign(human[i] - human[j]) for i, j in pairs]
    tied = [sum(values[i] == values[j] for i, j in pairs) for values in (scores, human)]
    distinct = min(len(set(scores)), len(set(human)))
    tau_b = sum(signs) / math.sqrt((len(pairs) - tied[0]) * (len(pairs) - tied[1]))
    tau_c = 2 * sum(signs) / (40**2 * (distinct - 1) / distinct)
    assert agreement.correlation(scores, human, "kendall") == pytest.approx(tau_b)
    assert agreement.correlation(scores, human, "kendall_c") == pytest.approx(tau_c)


@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
def test_a_constant_list_has_no_correlation(coefficient):
    assert math.isnan(agreement.correlation([3, 3, 3], [1, 2, 3], coefficient))
    assert math.isnan(agreement.correlation([1], [2], coefficient))


def test_pairs_ranked_right_counts_ties_as_half_and_stays_inside_documents():
    scores = [0.9, 0.2, 0.5, 0.5, 0.1, None]
    human = [1, 0, 1, 0, 0, 1]
    assert agreement.share_of_pairs_ranked_right(scores, human, ["a", "a", "b", "b", "c", "c"]) == (0.75, 2)
    # Without documents the ranked pairs are {0, 2} × {1, 3, 4}: right but for the tie of 2 and 3.
    assert agreement.share_of_pairs_ranked_right(scores, human) == (pytest.approx(5.5 / 6), 6)


def test_the_matrix_of_metrics_equals_numpys():
    columns = {name: np.random.default_rng(2 + place).normal(size=30) for place, name in enumerate("hws")}
    names, matrix = agreement.correlation_matrix(columns)
    assert names == ["h", "w", "s"]
    np.testing.assert_allclose(matrix, np.corrcoef(list(columns.values())), atol=1e-12)


# --- bootstrap -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
def test_coefficients_with_ties_are_scipys(coefficient):
    for n in (3, 5, 60):
        scores, human = related(n, 1.0, seed=n)
        expected = SCIPY[coefficient](scores, human)
        assert agreement.correlation(scores, human, coefficient) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_intervals_agree_with_scipys_bootstrap(coefficient):
    scores, human = related(80, 1.5, seed=6)
    ours = agreement.correlate(scores, human, coefficients=[coefficient], n_resamples=2000).coefficients[coefficient]
    theirs = stats.bootstrap(
        (scores, human),
        SCIPY[coefficient],
        paired=True,
        vectorized=False,
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours.value == pytest.approx(SCIPY[coefficient](scores, human))
    assert (ours.low, ours.high) == (pytest.approx(theirs.low, abs=0.02), pytest.approx(theirs.high, abs=0.02))


def test_the_bootstrap_distribution_is_that_of_all_possible_resamples():
    scores, human = [0.2, 0.9, 0.5, 0.4], [1.0, 3.0, 4.0, 2.0]
    every = []
    for drawn in itertools.product(range(4), repeat=4):
        x, y = np.array(scores)[list(drawn)], np.array(human)[list(drawn)]
        every.append(math.nan if len(set(drawn)) == 1 else SCIPY["spearman"](x, y))
    ours = replicates_of(scores, human, "spearman", 5000)
    assert np.isnan(ours).mean() == pytest.approx(np.isnan(every).mean(), abs=0.01)
    assert np.nanmean(ours) == pytest.approx(np.nanmean(every), abs=0.03)
    assert np.nanquantile(ours, 0.3) == pytest.approx(np.nanquantile(every, 0.3), abs=0.05)


# --- levels ----------------------------------------------------------------------------------------------------------


def test_segment_level_correlates_all_complete_texts():
    grid, rows = judged_grid(), complete_rows(judged_grid())
    found = agreement.correlate(grid["scores"], grid["human"], n_resamples=20)
    expected = SCIPY["spearman"]([grid["scores"][i] for i in rows], [grid["human"][i] for i in rows])
    assert found.coefficients["spearman"].value == pytest.approx(expected)
    assert (found.n, found.units, found.texts) == (28, 28, 28)


def test_summary_level_is_the_mean_over_documents_and_counts_what_it_skips():
    grid = judged_grid()
    found = agreement.correlate(
        grid["scores"], grid["human"], level="summary", documents=grid["documents"], n_resamples=200
    )
    expected = []
    for start in range(0, 25, 5):
        rows = [row for row in complete_rows(grid) if start <= row < start + 5]
        expected.append(SCIPY["kendall"]([grid["scores"][i] for i in rows], [grid["human"][i] for i in rows]))
    kendall = found.coefficients["kendall"]
    assert kendall.value == pytest.approx(np.mean(expected))
    assert (found.units, found.n, found.texts) == (5, 23, 23)
    skipped = {"no_references": 0, "no_human_score": 1, "no_metric_score": 1, "constant_documents": 1, "groups": 0}
    assert found.skipped == skipped
    theirs = stats.bootstrap((expected,), np.mean, method="percentile", n_resamples=2000, rng=np.random.default_rng(1))
    assert kendall.low == pytest.approx(theirs.confidence_interval.low, abs=0.05)
    assert kendall.high == pytest.approx(theirs.confidence_interval.high, abs=0.05)


def test_system_level_correlates_mean_scores_and_counts_systems():
    grid, rows = judged_grid(), complete_rows(judged_grid())
    with pytest.warns(UserWarning, match=r"coefficients between 5 systems \(fewer than 10\) are very uncertain"):
        found = agreement.correlate(
            grid["scores"], grid["human"], level="system", systems=grid["systems"], n_resamples=50
        )
    means = {
        name: [np.mean([grid[name][i] for i in rows if grid["systems"][i] == f"s{system}"]) for system in range(5)]
        for name in ("scores", "human")
    }
    assert found.coefficients["pearson"].value == pytest.approx(SCIPY["pearson"](means["scores"], means["human"]))
    assert (found.n, found.units, found.texts) == (5, 5, 28)


def test_if_every_document_is_constant_the_coefficient_is_undefined_and_the_count_says_why():
    found = agreement.correlate(
        [1, 2, 3, 4], [5, 5, 6, 6], level="summary", documents=["a", "a", "b", "b"], n_resamples=10
    )
    assert math.isnan(found.coefficients["pearson"].value)
    assert (found.units, found.skipped["constant_documents"]) == (0, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement.correlation([1, 2], [1, 2, 3]), r"human: expected as many values as scores has \(2\), .* 3"),
        (lambda: agreement.correlation([1, "2"], [1, 2]), r"scores\[1\]: expected a finite number, but got '2'"),
        (lambda: agreement.correlation([1, None], [1, 2]), r"scores\[1\]: expected a finite number, but got None"),
        (
            lambda: agreement.correlate([1, True], [1, 2]),
            r"scores\[1\]: expected a finite number or None, .* True",
        ),
        (lambda: agreement.correlate([1, math.inf], [1, 2]), r"scores\[1\]: expected a finite number or None, .* inf"),
        (lambda: agreement.correlation("12", [1, 2]), "scores: expected a list of numbers, but got the text '12'"),
        (lambda: agreement.correlation([1, 2], [1, 2], "tau"), "coefficient: expected one of 'pearson', 'spearman'"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="document"), "level: expected one of 'segment', 'summary'"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="system"), "systems: expected one value per text"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="summary", documents=["a", None]), r"documents\[1\]"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="summary", documents=["a"]), r"one value per text \(2\)"),
        (lambda: agreement.correlate([1, 2], [1, 2], n_resamples=0), "n_resamples: expected a whole number above zero"),
        (lambda: agreement.correlate([1, 2], [1, 2], confidence=95), "confidence: expected a number between 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((InputError, ValueError), match=f"^agreement: .*{message}"):
        call()

"""Coefficients, their bootstrap and the three levels, against SciPy and exhaustive counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from samples import SCIPY, judged_grid, related
from scipy import stats

from movers import agreement
from movers.errors import InputError


def correlate(scores, human, **options):
    (row,) = agreement.agreement_table({"metric": scores}, {"human": human}, **options)
    return row


@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
def test_coefficients_with_ties_are_scipys_and_undefined_for_constants(coefficient):
    for n in (3, 5, 60):
        scores, human = related(n, 1.0, seed=n)
        expected = SCIPY[coefficient](scores, human)
        assert agreement.correlation(scores, human, coefficient) == pytest.approx(expected, abs=1e-12)
    assert math.isnan(agreement.correlation([3, 3, 3], [1, 2, 3], coefficient))
    assert math.isnan(agreement.correlation([1], [2], coefficient))
    assert agreement.correlation([1, 2], [4, 3], coefficient) == pytest.approx(-1)


def test_intervals_agree_with_scipys_bootstrap():
    scores, human = related(80, 1.5, seed=6)
    row = correlate(scores, human, n_resamples=2000)
    for name, statistic in SCIPY.items():
        options = {"n_resamples": 500, "method": "percentile", "rng": np.random.default_rng(1)}
        theirs = stats.bootstrap((scores, human), statistic, paired=True, vectorized=False, **options)
        assert row[name] == pytest.approx(statistic(scores, human))
        assert row[f"{name}_low"] == pytest.approx(theirs.confidence_interval.low, abs=0.03)
        assert row[f"{name}_high"] == pytest.approx(theirs.confidence_interval.high, abs=0.03)


def test_summary_level_is_the_mean_over_documents_and_counts_what_it_skips():
    grid = judged_grid()
    row = correlate(grid["scores"], grid["human"], level="summary", labels=grid["documents"])
    expected = []
    for start in range(0, 25, 5):
        rows = [i for i in grid["complete"] if start <= i < start + 5]
        expected.append(SCIPY["kendall"]([grid["scores"][i] for i in rows], [grid["human"][i] for i in rows]))
    assert row["kendall"] == pytest.approx(np.mean(expected))
    assert (row["units"], row["n"], row["texts"]) == (5, 23, 23)
    reasons = ("no_human_score", "no_metric_score", "constant_documents")
    assert [row[f"skipped_{reason}"] for reason in reasons] == [1, 1, 1]
    theirs = stats.bootstrap((expected,), np.mean, method="percentile", n_resamples=2000, rng=np.random.default_rng(1))
    assert row["kendall_low"] == pytest.approx(theirs.confidence_interval.low, abs=0.05)
    assert row["kendall_high"] == pytest.approx(theirs.confidence_interval.high, abs=0.05)
    row = correlate([1, 2, 3, 4], [5, 5, 6, 6], level="summary", labels=["a", "a", "b", "b"])
    assert (row["pearson"], row["units"], row["skipped_constant_documents"]) == (None, 0, 2)


def test_system_level_correlates_mean_scores_and_counts_systems():
    grid = judged_grid()
    row = correlate(grid["scores"], grid["human"], level="system", labels=grid["systems"])
    scores, human = (
        [
            np.mean([grid[name][i] for i in grid["complete"] if grid["systems"][i] == f"s{system}"])
            for system in range(5)
        ]
        for name in ("scores", "human")
    )
    assert row["pearson"] == pytest.approx(SCIPY["pearson"](scores, human))
    assert (row["n"], row["units"], row["texts"]) == (5, 5, 28)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement.correlation([1, 2], [1, 2, 3]), r"human: expected one value per text \(2\), but got 3"),
        (lambda: agreement.correlation([1, 2], [1, 2], "tau"), "coefficient: expected one of 'pearson', 'spearman'"),
        (lambda: correlate([1, 2], [1, 2], level="system"), r"labels: expected one value per text \(2\), but got none"),
        (lambda: correlate([1, 2], [1, 2], groups=["x"]), "groups: expected one value per text"),
        (lambda: correlate([1, 2], [1, 2], lower_is_better=["x"]), "lower_is_better: expected one of 'human'"),
        (lambda: correlate([1, 2], [1, 2], n_resamples=0), "n_resamples: expected a whole number above zero"),
        (lambda: correlate([1, 2], [1, 2], confidence=95), "confidence: expected a number between 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=f"^agreement: .*{message}"):
        call()

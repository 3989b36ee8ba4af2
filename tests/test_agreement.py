"""Correlation, its uncertainty and the tests of differences, against values that come from elsewhere."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from movers import agreement
from movers.agreement import bootstrap as bootstrap_module
from movers.agreement import rendering
from movers.agreement.bootstrap import resample_counts

SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
    "kendall_c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
}


def related(n: int, noise: float, seed: int) -> tuple[list[float], list[float]]:
    """People's scores on a coarse scale (so with ties), and a metric that follows them with some noise."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, size=n).astype(float)
    return (human + noise * rng.normal(size=n)).round(1).tolist(), human.tolist()


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
    documents = ["a", "a", "b", "b", "c", "c"]
    assert agreement.share_of_pairs_ranked_right(scores, human, documents) == (0.75, 2)
    # Without documents the ranked pairs are {0, 2} × {1, 3, 4}: right but for the tie of 2 and 3.
    assert agreement.share_of_pairs_ranked_right(scores, human) == (pytest.approx(5.5 / 6), 6)


def test_the_matrix_of_metrics_equals_numpys():
    rng = np.random.default_rng(2)
    columns = {name: rng.normal(size=30).tolist() for name in ("human", "wms", "sms")}
    names, matrix = agreement.correlation_matrix(columns)
    assert names == ["human", "wms", "sms"]
    np.testing.assert_allclose(matrix, np.corrcoef(list(columns.values())), atol=1e-12)


# --- bootstrap -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", agreement.COEFFICIENTS)
@pytest.mark.parametrize("n", [5, 60])
def test_a_resample_kept_as_counts_has_the_coefficient_of_the_drawn_texts(coefficient, n):
    scores, human = related(n, 1.0, seed=n)
    rng = np.random.default_rng(3)
    counts = next(resample_counts(n, 40, rng))
    replicates = bootstrap_module._block_coefficients(np.array(scores), np.array(human), counts, [coefficient])
    for row, replicate in zip(counts, replicates[coefficient], strict=True):
        drawn = np.repeat(np.arange(n), row.astype(int))
        x, y = np.array(scores)[drawn], np.array(human)[drawn]
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert math.isnan(replicate)
        else:
            assert replicate == pytest.approx(SCIPY[coefficient](x, y), abs=1e-12)


def test_every_resample_draws_as_many_texts_as_there_are():
    counts = np.concatenate(list(resample_counts(7, 500, np.random.default_rng(0))))
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    # Each text is drawn once on average, and is missed with probability (6/7)⁷.
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.15)
    assert (counts == 0).mean() == pytest.approx((6 / 7) ** 7, abs=0.03)


def test_many_texts_and_few_texts_take_different_ways_to_the_same_kendall(monkeypatch):
    scores, human = related(80, 1.0, seed=4)
    by_matrix = agreement.bootstrap_correlation(scores, human, "kendall_c", n_resamples=30)
    monkeypatch.setattr(bootstrap_module, "_MATRIX_KENDALL_LIMIT", 0)
    by_loop = agreement.bootstrap_correlation(scores, human, "kendall_c", n_resamples=30)
    np.testing.assert_allclose(by_matrix, by_loop, atol=1e-12)


def test_blocks_do_not_change_the_replicates(monkeypatch):
    scores, human = related(50, 1.0, seed=5)
    at_once = agreement.bootstrap_correlation(scores, human, "spearman", n_resamples=100)
    monkeypatch.setattr(bootstrap_module, "BLOCK_NUMBERS", 400)
    in_blocks = agreement.bootstrap_correlation(scores, human, "spearman", n_resamples=100)
    np.testing.assert_allclose(at_once, in_blocks)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_intervals_agree_with_scipys_bootstrap(coefficient):
    scores, human = related(80, 1.5, seed=6)
    ours = agreement.correlate(scores, human, n_resamples=4000).coefficients[coefficient]
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
    ours = agreement.bootstrap_correlation(scores, human, "spearman", n_resamples=40_000)
    assert np.isnan(ours).mean() == pytest.approx(np.isnan(every).mean(), abs=0.005)
    assert np.nanmean(ours) == pytest.approx(np.nanmean(every), abs=0.01)
    assert np.nanquantile(ours, 0.3) == pytest.approx(np.nanquantile(every, 0.3), abs=0.02)


def test_intervals_cover_the_true_correlation_as_often_as_they_say():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        human = rng.normal(size=60)
        scores = 0.6 * human + 0.8 * rng.normal(size=60)
        found = agreement.correlate(scores, human, coefficients=["pearson"], n_resamples=300).coefficients["pearson"]
        covered += found.low <= 0.6 <= found.high
    assert 0.90 <= covered / 300 <= 0.98


def test_the_same_seed_gives_the_same_interval_and_pairs_two_metrics():
    scores, human = related(50, 1.0, seed=8)
    once, again = (agreement.bootstrap_correlation(scores, human, seed=3, n_resamples=50) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    scaled = agreement.bootstrap_correlation([2 * score + 1 for score in scores], human, seed=3, n_resamples=50)
    np.testing.assert_allclose(once, scaled)
    assert not np.array_equal(once, agreement.bootstrap_correlation(scores, human, seed=4, n_resamples=50))


# --- levels ----------------------------------------------------------------------------------------------------------


def judged_grid(seed: int = 9) -> dict[str, list]:
    """Six documents by five systems; document d5 is constant for people, one text lacks each kind of score."""
    rng = np.random.default_rng(seed)
    documents = [f"d{document}" for document in range(6) for _ in range(5)]
    systems = [f"s{system}" for _ in range(6) for system in range(5)]
    quality = np.tile([0.0, 1.0, 2.0, 3.0, 4.0], 6)
    human = (quality + rng.integers(-1, 2, size=30)).tolist()
    scores = (quality + rng.normal(size=30)).tolist()
    human[25:] = [3.0] * 5
    human[0] = None
    scores[7] = None
    return {"documents": documents, "systems": systems, "human": human, "scores": scores}


def test_summary_level_is_the_mean_over_documents_and_counts_what_it_skips():
    grid = judged_grid()
    found = agreement.correlate(
        grid["scores"], grid["human"], level="summary", documents=grid["documents"], n_resamples=200
    )
    expected = []
    for start in range(0, 25, 5):
        rows = [i for i in range(start, start + 5) if grid["human"][i] is not None and grid["scores"][i] is not None]
        expected.append(SCIPY["kendall"]([grid["scores"][i] for i in rows], [grid["human"][i] for i in rows]))
    assert found.coefficients["kendall"].value == pytest.approx(np.mean(expected))
    assert (found.units, found.n) == (5, 23)
    assert found.skipped == {"no_human_score": 1, "no_metric_score": 1, "constant_documents": 1}
    assert min(expected) <= found.coefficients["kendall"].low <= found.coefficients["kendall"].high <= max(expected)


def test_system_level_correlates_mean_scores():
    grid = judged_grid()
    found = agreement.correlate(grid["scores"], grid["human"], level="system", systems=grid["systems"], n_resamples=50)
    complete = [i for i in range(30) if grid["human"][i] is not None and grid["scores"][i] is not None]
    means = {
        name: [np.mean([grid[name][i] for i in complete if grid["systems"][i] == f"s{system}"]) for system in range(5)]
        for name in ("scores", "human")
    }
    assert found.coefficients["pearson"].value == pytest.approx(SCIPY["pearson"](means["scores"], means["human"]))
    assert (found.units, found.n) == (5, 28)


def test_segment_level_ignores_documents_and_systems():
    grid = judged_grid()
    found = agreement.correlate(grid["scores"], grid["human"], n_resamples=20)
    complete = [i for i in range(30) if grid["human"][i] is not None and grid["scores"][i] is not None]
    expected = SCIPY["spearman"]([grid["scores"][i] for i in complete], [grid["human"][i] for i in complete])
    assert found.coefficients["spearman"].value == pytest.approx(expected)


def test_if_every_document_is_constant_the_coefficient_is_undefined_and_the_count_says_why():
    found = agreement.correlate(
        [1, 2, 3, 4], [5, 5, 6, 6], level="summary", documents=["a", "a", "b", "b"], n_resamples=10
    )
    assert math.isnan(found.coefficients["pearson"].value)
    assert (found.units, found.skipped["constant_documents"]) == (0, 2)


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


def test_williams_test_rejects_equal_metrics_as_often_as_it_says():
    rng = np.random.default_rng(10)
    rejected = 0
    for _ in range(1000):
        human = rng.normal(size=50)
        a, b = (0.5 * human + rng.normal(size=50) for _ in range(2))
        r = np.corrcoef([human, a, b])
        rejected += agreement.williams_test(r[0, 1], r[0, 2], r[1, 2], 50).p < 0.05
    # 5 % of 1000, give or take three standard errors.
    assert 29 <= rejected <= 71


def test_williams_test_refuses_correlations_that_no_data_have():
    with pytest.raises(ValueError, match="positive semi-definite"):
        agreement.williams_test(0.9, -0.9, 0.9, 50)
    with pytest.raises(ValueError, match="`human_a` must be a correlation between -1 and 1; got 1.5"):
        agreement.williams_test(1.5, 0.1, 0.1, 50)
    with pytest.raises(ValueError, match="`n` must be at least 4"):
        agreement.williams_test(0.5, 0.1, 0.1, 3)


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
    found = agreement.permutation_test(a, b, human, coefficient, n_resamples=256)
    assert found == agreement.Randomization(extreme / 256, 256, True)


def test_the_permutation_test_agrees_with_scipys():
    scores_a, human = related(60, 1.0, seed=12)
    scores_b = [score + noise for score, noise in zip(human, np.random.default_rng(13).normal(size=60), strict=True)]
    a, b = stats.zscore(scores_a), stats.zscore(scores_b)
    theirs = stats.permutation_test(
        (a, b),
        lambda x, y: SCIPY["pearson"](x, human) - SCIPY["pearson"](y, human),
        permutation_type="samples",
        vectorized=False,
        n_resamples=2000,
        rng=np.random.default_rng(2),
    )
    ours = agreement.permutation_test(scores_a, scores_b, human, n_resamples=5000)
    assert ours.p == pytest.approx(theirs.pvalue, abs=0.04)


def test_the_permutation_test_rejects_equal_metrics_as_often_as_it_says():
    rng = np.random.default_rng(14)
    rejected = 0
    for _ in range(400):
        human = rng.normal(size=40)
        a, b = (0.5 * human + rng.normal(size=40) for _ in range(2))
        rejected += agreement.permutation_test(a, b, human, "spearman", n_resamples=200).p < 0.05
    # 5 % of 400, give or take three standard errors.
    assert 7 <= rejected <= 33


def test_a_metric_does_not_differ_from_itself_on_another_scale():
    scores, human = related(30, 1.0, seed=15)
    found = agreement.compare_correlations(scores, [100 * score for score in scores], human, n_resamples=100)
    assert found.permutation.p == 1
    assert found.williams.p == pytest.approx(1, abs=1e-6)
    assert found.difference.value == pytest.approx(0, abs=1e-12)


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
    assert found.difference.low > 0
    assert (found.williams is None) == (level == "summary")
    assert found.units == {"segment": 180, "summary": 15, "system": 12}[level]


def test_kendall_has_no_williams_test():
    scores, human = related(12, 1.0, seed=17)
    assert agreement.compare_correlations(scores, scores[::-1], human, "kendall", n_resamples=20).williams is None


# --- two systems -----------------------------------------------------------------------------------------------------


def two_systems(n: int = 60, lead: float = 0.02, seed: int = 18) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(0.2, 0.8, size=n)
    return (difficulty + lead + 0.05 * rng.normal(size=n)).tolist(), (difficulty + 0.05 * rng.normal(size=n)).tolist()


def test_exact_randomisation_equals_scipys():
    a, b = two_systems(n=10, lead=0.03)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    ours = agreement.approximate_randomization(a, b)
    assert ours.exact and ours.n_resamples == 1024
    assert ours.p == pytest.approx(theirs.pvalue)


def test_the_bootstrap_probability_is_that_of_all_possible_resamples():
    a, b = two_systems(n=5, lead=0.03)
    difference = np.array(a) - np.array(b)
    observed = difference.mean()
    every = np.array([difference[list(drawn)].mean() for drawn in itertools.product(range(5), repeat=5)])
    exact = np.mean(np.abs(every - observed) >= abs(observed) - 1e-12)
    assert agreement.compare_systems(a, b, n_resamples=20_000).bootstrap_p == pytest.approx(exact, abs=0.01)


class MeanOfNumbers:
    """The little that sacreBLEU's significance tests ask of a metric; its corpus score is the mean of its 'texts'."""

    def _extract_corpus_statistics(self, hypotheses, references):
        return [[float(text), 1.0] for text in hypotheses]

    def _compute_score_from_stats(self, totals):
        return SimpleNamespace(name="mean", score=float(totals[0] / totals[1]))

    def _aggregate_and_compute(self, rows):
        return self._compute_score_from_stats(np.sum(rows, axis=0))

    def get_signature(self):
        return SimpleNamespace(update=lambda key, value: None)


@pytest.mark.parametrize("lead", [0.015, 0.02, 0.03])
def test_both_tests_agree_with_sacrebleus(lead):
    significance = pytest.importorskip("sacrebleu.significance", reason="sacrebleu is in the extra `benchmarks`")
    a, b = two_systems(n=100, lead=lead)
    systems = [("b", [repr(score) for score in b]), ("a", [repr(score) for score in a])]
    theirs = {
        kind: significance.PairedTest(systems, {"mean": MeanOfNumbers()}, None, kind, n_samples=5000)()[1]["mean"][1]
        for kind in ("ar", "bs")
    }
    ours = agreement.compare_systems(a, b, n_resamples=5000, n_exchanges=5000)
    assert ours.randomization.p == pytest.approx(theirs["ar"].p_value, abs=0.02)
    # sacreBLEU takes absolute differences before it centres them, which leaves the upper tail (exact for clear leads).
    assert ours.bootstrap_p / 2 == pytest.approx(theirs["bs"].p_value, abs=0.02)
    assert ours.a.value == pytest.approx(theirs["bs"].score, abs=1e-6)
    assert (ours.a.high - ours.a.low) / 2 == pytest.approx(theirs["bs"].ci, rel=0.1)


def test_identical_systems_are_not_different():
    a, _ = two_systems()
    found = agreement.compare_systems(a, a)
    assert (found.difference.value, found.bootstrap_p, found.randomization.p) == (0.0, 1.0, 1.0)


# --- the table -------------------------------------------------------------------------------------------------------


def small_table(**options):
    rng = np.random.default_rng(19)
    groups = ["cs-en"] * 40 + ["de-en"] * 40
    human = rng.normal(size=80)
    metrics = {
        "good": (human + 0.5 * rng.normal(size=80)).tolist(),
        "poor": (human + 4 * rng.normal(size=80)).tolist(),
    }
    metrics["copy"] = metrics["poor"]
    return agreement.agreement_table(metrics, {"da": human.tolist()}, groups=groups, n_resamples=200, **options), groups


def test_groups_are_correlated_apart_and_then_averaged():
    rows, _ = small_table()
    assert [(row.group, row.metric) for row in rows] == [
        (group, metric) for group in ("cs-en", "de-en", "mean") for metric in ("good", "poor", "copy")
    ]
    by_name = {(row.group, row.metric): row for row in rows}
    for coefficient in agreement.COEFFICIENTS:
        parts = [getattr(by_name[group, "good"], coefficient) for group in ("cs-en", "de-en")]
        assert getattr(by_name["mean", "good"], coefficient) == pytest.approx(np.mean(parts))
    # The mean of two groups is known better than each of them.
    widths = {
        group: by_name[group, "poor"].pearson_high - by_name[group, "poor"].pearson_low for group in ("cs-en", "mean")
    }
    assert widths["mean"] < widths["cs-en"]


def test_a_group_scores_the_same_whatever_other_groups_there_are():
    rows, groups = small_table()
    rng = np.random.default_rng(19)
    human = rng.normal(size=80)
    good = human + 0.5 * rng.normal(size=80)
    alone = agreement.agreement_table({"good": good[:40]}, {"da": human[:40]}, groups=groups[:40], n_resamples=200)
    first = rows[0].as_dict()
    for key in ("pearson", "pearson_low", "pearson_high", "kendall_c_low"):
        assert alone[0].as_dict()[key] == pytest.approx(first[key])
    assert len(alone) == 1  # One group needs no mean.


def test_better_than_names_only_metrics_that_are_worse_beyond_luck():
    rows, _ = small_table()
    better = {(row.group, row.metric): row.better_than for row in rows}
    assert better["cs-en", "good"] == ["poor", "copy"]
    assert better["mean", "good"] == ["poor", "copy"]
    assert better["mean", "poor"] == better["mean", "copy"] == []
    copies = next(row for row in rows if row.metric == "copy" and row.group == "mean")
    assert copies.permutation_p["poor"] == 1
    assert copies.williams_p == {}  # There is no Williams test for a mean over groups.


def test_tests_are_those_of_the_single_functions():
    grid = judged_grid(seed=20)
    other = np.random.default_rng(21).normal(size=30).tolist()
    rows = agreement.agreement_table(
        {"a": grid["scores"], "b": other}, {"overall": grid["human"]}, tested="spearman", n_resamples=300
    )
    single = agreement.compare_correlations(grid["scores"], other, grid["human"], "spearman", n_resamples=300)
    assert rows[0].williams_p["b"] == pytest.approx(single.williams.p)
    assert rows[0].permutation_p["b"] == pytest.approx(single.permutation.p, abs=0.06)
    assert rows[0].permutation_p["b"] == rows[1].permutation_p["a"]


def test_every_skipped_text_is_counted_once_with_its_reason():
    scores = [0.1, None, 0.3, None, 0.5, 0.6, 0.8]
    human = [1, 2, None, None, 5, 7, 6]
    has_references = [True, False, True, True, True, True, True]
    (row,) = agreement.agreement_table(
        {"wms": scores}, {"overall": human}, has_references=has_references, n_resamples=10
    )
    assert (row.n, row.skipped_no_references, row.skipped_no_human_score, row.skipped_no_metric_score) == (4, 1, 2, 0)


def test_a_human_score_of_which_less_is_better_is_turned_round():
    scores, human = related(30, 1.0, seed=22)
    edits = [-value for value in human]
    rows = agreement.agreement_table(
        {"wms": scores}, {"overall": human, "edits": edits}, lower_is_better=["edits"], n_resamples=10
    )
    assert rows[0].pearson == pytest.approx(rows[1].pearson)
    assert (rows[0].lower_is_better, rows[1].lower_is_better) == (False, True)


def test_at_summary_level_the_table_counts_pairs_ranked_right():
    documents = ["a", "a", "b", "b", "c", "c"]
    scores, human = [0.9, 0.1, 0.2, 0.8, 0.5, 0.4], [1, 0, 1, 0, 1, 1]
    options = {"documents": documents, "n_resamples": 10}
    (row,) = agreement.agreement_table({"wms": scores}, {"fact": human}, level="summary", **options)
    assert (row.ranked_right, row.ranked_pairs, row.skipped_constant_documents) == (0.5, 2, 1)
    assert "50.0% of 2" in rendering.render([row], "text")
    (row,) = agreement.agreement_table({"wms": scores}, {"fact": human}, n_resamples=10)
    assert row.ranked_right is None and "ranked right" not in rendering.render([row], "text")


def test_a_group_without_a_coefficient_is_left_out_of_the_mean_and_counted():
    human = [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]
    rows = agreement.agreement_table(
        {"wms": [1, 3, 2, 4, 1, 2, 3]}, {"da": human}, groups=["x"] * 4 + ["y"] * 3, n_resamples=20
    )
    assert [row.pearson for row in rows] == [pytest.approx(0.8), None, pytest.approx(0.8)]
    assert rows[-1].skipped_groups == 1


# --- rendering -------------------------------------------------------------------------------------------------------


def test_json_rows_hold_plain_values_and_null_for_what_is_undefined():
    rows = agreement.agreement_table({"wms": [1, 1, 1, 1], "sms": [1, 2, 4, 3]}, {"overall": [1, 2, 3, 4]})
    constant, varied = json.loads(rendering.render(rows, "json"))
    assert constant["pearson"] is None and varied["pearson"] == pytest.approx(0.8)
    assert list(varied)[:5] == ["metric", "human", "level", "group", "n"]
    assert {"spearman", "kendall", "kendall_c", "better_than", "williams_p", "permutation_p"} <= set(varied)


def test_the_text_table_tells_what_was_skipped_and_how_it_was_tested():
    rows = agreement.agreement_table(
        {"wms": [0.1, None, 0.3, 0.5, 0.4], "sms": [0.2, 0.1, 0.3, 0.3, 0.4]}, {"overall": [1, 2, 3, 4, None]}
    )
    text = rendering.render(rows, "text")
    assert "Skipped for wms on overall (texts without a human score: 1, texts without a metric score: 1)." in text
    assert "Williams' test" in text and "seed 0" in text


def test_csv_and_markdown_have_one_line_a_row():
    rows, _ = small_table()
    csv_lines = rendering.render(rows, "csv").splitlines()
    assert len(csv_lines) == 1 + len(rows) and csv_lines[0].startswith("metric,human,level,group,n,units,pearson,")
    markdown = [line for line in rendering.render(rows, "markdown").splitlines() if line.startswith("|")]
    assert len(markdown) == 2 + len(rows)
    assert len({line.count("|") for line in markdown}) == 1


def test_a_comparison_of_systems_is_rendered_in_every_format():
    a, b = two_systems()
    comparisons = [("wms", "first.txt", "second.txt", agreement.compare_systems(a, b, n_exchanges=500))]
    assert "first.txt" in rendering.render_comparison(comparisons, "text")
    (row,) = json.loads(rendering.render_comparison(comparisons, "json"))
    assert row["difference"] == pytest.approx(np.mean(a) - np.mean(b))
    assert len(rendering.render_comparison(comparisons, "csv").splitlines()) == 2


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement.correlation([1, 2], [1, 2, 3]), "`human` must be as long as `scores`: expected 2 values"),
        (lambda: agreement.correlation([1, "2"], [1, 2]), "`scores`, row 1: expected a number or None, got '2'"),
        (lambda: agreement.correlation([1, None], [1, 2]), "`scores`, row 1: expected a number, got None"),
        (lambda: agreement.correlation([1, math.inf], [1, 2]), "`scores`, row 1: expected a finite number, got inf"),
        (lambda: agreement.correlation([1, 2], [1, 2], "tau"), "`coefficient` must be one of pearson, spearman"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="document"), "`level` must be one of segment, summary"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="system"), "level 'system' needs `systems`"),
        (lambda: agreement.correlate([1, 2], [1, 2], level="summary", documents=["a", None]), "`documents`, row 1"),
        (lambda: agreement.correlate([1, 2], [1, 2], n_resamples=0), "`n_resamples` must be at least 1; got 0"),
        (lambda: agreement.correlate([1, 2], [1, 2], confidence=95), "`confidence` must lie between 0 and 1"),
        (lambda: agreement.permutation_test([1, 1], [1, 2], [1, 2]), "`scores_a` is constant"),
        (lambda: agreement.approximate_randomization([], []), "must hold at least one score"),
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1, 2]}), "`humans\\['h'\\]` must hold one score"),
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1]}, lower_is_better=["x"]), "`lower_is_better` must be"),
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1]}, groups=["x", "y"]), "`groups` must hold one value"),
        (lambda: rendering.render([], "text"), "`rows` must hold at least one row"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

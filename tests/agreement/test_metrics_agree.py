"""Do the metrics agree with judgement? Each must order graded texts, and real sets, by a stated minimum.

The graded set comes with these tests. Real sets lie in the folder that MOVERS_DATA names, or in data/human;
without it their tests are skipped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from samples import GRADED

from movers.agreement import correlate, correlation
from movers.agreement.judged import JudgedSet, read_judged
from movers.agreement.scoring import MetricCall, score_judged
from movers.registry import METRICS

# Spearman with the seven grades, over 140 texts.
LEAST_ON_GRADES = {
    "wms": 0.82,
    "sms": 0.75,
    "swms": 0.82,
    "moverscore": 0.85,
    "bertscore_hungarian": 0.82,
    "bertscore_emd": 0.86,
    "reference_free_summary_quality": 0.85,
}


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    """The reference doubles as the source, for metrics that compare with one."""
    judged = read_judged(GRADED)
    return JudgedSet(
        judged.name, tuple(replace(text, fields={**text.fields, "source": text.references[0]}) for text in judged.texts)
    )


@pytest.fixture(scope="module")
def graded_scores(graded):
    """Every metric's scores of the graded texts, computed once."""
    found = score_judged(graded, [MetricCall(name, name) for name in METRICS], progress=False)
    return {name: scored.scores for name, scored in found.items()}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_orders_graded_texts(graded, graded_scores, name):
    assert correlation(graded_scores[name], graded.human("adequacy"), "spearman") >= LEAST_ON_GRADES[name]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("same", "paraphrase"),
        ("same", "wrong_detail"),
        ("paraphrase", "related"),
        ("paraphrase", "off_topic"),
        ("part", "off_topic"),
        ("wrong_detail", "off_topic"),
    ],
)
def test_a_metric_puts_the_better_text_of_a_pair_first(graded, graded_scores, name, better, worse):
    """In at least 18 of the 20 genres."""
    grades = graded.labels("system")
    first, second = (
        [score for score, grade in zip(graded_scores[name], grades, strict=True) if grade == wanted]
        for wanted in (better, worse)
    )
    assert sum(a > b for a, b in zip(first, second, strict=True)) >= 18


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.compared_with == "references"])
def test_repetition_is_worth_less_than_a_paraphrase(graded, graded_scores, name):
    grades = np.array(graded.labels("system"))
    scores = np.array(graded_scores[name])
    assert np.median(scores[grades == "repeated"]) < np.median(scores[grades == "paraphrase"])


def test_optimal_alignment_takes_more_from_repetition_than_from_paraphrase(graded, graded_scores):
    """The point of Jin and Gildea (2022): a greedy alignment lets one reference token serve many repeated ones."""
    grades = np.array(graded.labels("system"))
    call = MetricCall("greedy", "bertscore_emd", {"alignment": "greedy"})
    greedy = np.array(score_judged(graded, [call], progress=False)["greedy"].scores)
    for name in ("bertscore_hungarian", "bertscore_emd"):
        taken = greedy - np.array(graded_scores[name])
        assert np.median(taken[grades == "repeated"]) > np.median(taken[grades == "paraphrase"]) + 0.02


# --- real sets -------------------------------------------------------------------------------------------------------


def scores_of(judged: JudgedSet, name: str, **options) -> list[float | None]:
    if name not in METRICS:
        pytest.skip(f"{name} is not in this version")
    return score_judged(judged, [MetricCall(name, name, options)], progress=False)[name].scores


@pytest.mark.data
def test_spearman_on_news_summaries(judged_file):
    """Clark et al. Table 2: .258 with GloVe vectors; ours are wordllama's."""
    judged = read_judged(judged_file("chaganty18_cnndm")).where("is_reference=false")
    found = correlate(scores_of(judged, "sms"), judged.human("overall"), n_resamples=1)
    assert (found.n, found.skipped["no_human_score"]) == (2085, 1)
    assert found.coefficients["spearman"].value >= 0.27


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"),
    [("wms", 0.25), ("sms", 0.34), ("moverscore", 0.58), ("bertscore_hungarian", 0.57), ("bertscore_emd", 0.60)],
)
def test_pearson_on_translations(judged_file, name, least):
    """One of the seven language pairs of WMT17, to be quick; the benchmark has them all."""
    judged = read_judged(judged_file("wmt17_seg_da_to_en")).where("lp=de-en")
    assert correlation(scores_of(judged, name), judged.human("da_z")) >= least


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"), [("wms", 0.19), ("sms", 0.21), ("moverscore", 0.21), ("bertscore_emd", 0.27)]
)
def test_spearman_on_utterances(judged_file, name, least):
    judged = read_judged(judged_file("bagel"))
    assert correlation(scores_of(judged, name), judged.human("informativeness"), "spearman") >= least


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"), [("wms", 0.66), ("sms", 0.62), ("moverscore", 0.64), ("bertscore_emd", 0.78)]
)
def test_spearman_on_sentence_pairs(judged_file, name, least):
    """Every fourth pair of the STS benchmark's test part."""
    whole = read_judged(judged_file("stsb")).where("split=test")
    assert len(whole) == 1379
    judged = JudgedSet(whole.name, whole.texts[::4])
    assert correlation(scores_of(judged, name), judged.human("similarity"), "spearman") >= least


@pytest.mark.data
def test_kendall_on_summaries_at_summary_level(judged_file):
    judged = read_judged(judged_file("summeval"))
    found = correlate(
        scores_of(judged, "sms"), judged.human("relevance"), level="summary", documents=judged.labels("doc")
    )
    assert found.units + found.skipped["constant_documents"] == 100
    assert found.coefficients["kendall"].value >= 0.1


@pytest.mark.data
def test_pearson_with_facts_of_summaries_without_references(judged_file):
    judged = read_judged(judged_file("qags_cnndm"))
    assert correlation(scores_of(judged, "reference_free_summary_quality"), judged.human("fact")) >= 0.5


@pytest.mark.data
@pytest.mark.slow
def test_pearson_with_the_quality_of_news_summaries(judged_file):
    """Every fifth summary: the sources are long."""
    whole = read_judged(judged_file("cnn_dailymail_555"))
    judged = JudgedSet(whole.name, whole.texts[::5])
    assert correlation(scores_of(judged, "reference_free_summary_quality"), judged.human("quality")) >= 0.2

"""Do the metrics agree with judgement? Each must order graded texts, and real sets (in MOVERS_DATA), by a minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from samples import GRADED

from movers.agreement import correlation
from movers.agreement.judged import JudgedSet, read_judged
from movers.agreement.scoring import MetricCall, score_judged
from movers.registry import METRICS

QUALITY = "reference_free_summary_quality"
# Spearman with the seven grades, over 140 texts.
LEAST_ON_GRADES = {
    "wms": 0.82,
    "sms": 0.75,
    "swms": 0.82,
    "moverscore": 0.85,
    "bertscore_hungarian": 0.82,
    "bertscore_emd": 0.86,
    QUALITY: 0.85,
}


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    """The reference doubles as the source, for metrics that compare with one."""
    texts = read_judged(GRADED).texts
    return JudgedSet("graded", tuple(replace(one, fields={**one.fields, "source": one.references[0]}) for one in texts))


@pytest.fixture(scope="module")
def graded_scores(graded):
    """Every metric's scores of the graded texts, computed once."""
    scored = score_judged(graded, [MetricCall(name, name) for name in METRICS], progress=False)
    return {name: column.scores for name, column in scored.items()}


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

REAL = [  # set, condition, every nth text (to be quick), human score, coefficient, metric → minimum
    ("wmt17_seg_da_to_en", "lp=de-en", 1, "da_z", "pearson", {"wms": 0.25, "sms": 0.34, "moverscore": 0.58}),
    ("wmt17_seg_da_to_en", "lp=de-en", 1, "da_z", "pearson", {"bertscore_hungarian": 0.57, "bertscore_emd": 0.60}),
    ("bagel", None, 1, "informativeness", "spearman", {"wms": 0.19, "sms": 0.21}),
    ("bagel", None, 1, "informativeness", "spearman", {"moverscore": 0.21, "bertscore_emd": 0.27}),
    ("stsb", "split=test", 4, "similarity", "spearman", {"wms": 0.66, "sms": 0.62}),
    ("stsb", "split=test", 4, "similarity", "spearman", {"moverscore": 0.64, "bertscore_emd": 0.78}),
    ("qags_cnndm", None, 2, "fact", "pearson", {QUALITY: 0.5}),
    pytest.param("cnn_dailymail_555", None, 5, "quality", "pearson", {QUALITY: 0.2}, marks=pytest.mark.slow),
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "condition", "step", "human", "coefficient", "least"), REAL)
def test_correlation_on_real_sets(judged_file, name, condition, step, human, coefficient, least):
    judged = read_judged(judged_file(name), where=[condition] if condition else [])
    judged = JudgedSet(name, judged.texts[::step])
    scored = score_judged(judged, [MetricCall(metric, metric) for metric in least], progress=False)
    for metric, minimum in least.items():
        assert correlation(scored[metric].scores, judged.human(human), coefficient) >= minimum, metric

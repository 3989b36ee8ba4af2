"""Do the metrics agree with judgement? Each must do so as closely as when its figures here were measured.

Figures may differ from the measured ones by 0.03 either way. More agreement is no better than less as long as nobody
knows why: judgements may have leaked into a learned metric, and the published figures are out of date in any case.
"""

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
NEAR = 0.03
KINDS = ("paraphrase", "related", "off_topic")
# In tests/data/graded.jsonl: Spearman with the grades of 215 texts, and of 45 triples the share in order.
ON_GRADED = {
    "wms": (0.8325, 33 / 45),
    "sms": (0.7353, 31 / 45),
    "swms": (0.7946, 29 / 45),
    "moverscore": (0.8476, 36 / 45),
    "bertscore_hungarian": (0.8677, 40 / 45),
    "bertscore_emd": (0.8719, 41 / 45),
    QUALITY: (0.8401, 35 / 45),
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
    measured = correlation(graded_scores[name], graded.human("adequacy"), "spearman")
    assert measured == pytest.approx(ON_GRADED[name][0], abs=NEAR)


@pytest.mark.parametrize("name", METRICS)
def test_a_paraphrase_scores_above_a_related_text_and_that_above_an_unrelated_one(graded, graded_scores, name):
    keys = zip(graded.labels("doc"), graded.labels("system"), strict=True)
    scores = dict(zip(keys, graded_scores[name], strict=True))
    triples = [[scores[doc, kind] for kind in KINDS] for doc in dict.fromkeys(graded.labels("doc"))]
    measured = np.mean([better > related > unrelated for better, related, unrelated in triples])
    assert len(triples) == 45 and measured == pytest.approx(ON_GRADED[name][1], abs=NEAR)


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

REAL = [  # set, condition, every nth text (to be quick), human score, coefficient, metric → measured
    (
        *("wmt17_seg_da_to_en", "lp=de-en", 1, "da_z", "pearson"),
        {"wms": 0.5366, "sms": 0.3952, "swms": 0.4891, "moverscore": 0.6001}
        | {"bertscore_hungarian": 0.5881, "bertscore_emd": 0.6135},
    ),
    (
        *("bagel", None, 1, "informativeness", "spearman"),
        {"wms": 0.2452, "sms": 0.2470, "swms": 0.2328, "moverscore": 0.2359}
        | {"bertscore_hungarian": 0.2891, "bertscore_emd": 0.2976},
    ),
    (
        *("stsb", "split=test", 4, "similarity", "spearman"),
        {"wms": 0.7289, "sms": 0.6482, "swms": 0.6993, "moverscore": 0.6750}
        | {"bertscore_hungarian": 0.8148, "bertscore_emd": 0.8167},
    ),
    ("dailynews_300", None, 3, "quality", "pearson", {QUALITY: 0.6312}),
    ("qags_cnndm", None, 2, "fact", "pearson", {QUALITY: 0.5268}),
    pytest.param("cnn_dailymail_555", None, 5, "quality", "pearson", {QUALITY: 0.4953}, marks=pytest.mark.slow),
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "condition", "step", "human", "coefficient", "expected"), REAL)
def test_correlation_on_real_sets(judged_file, name, condition, step, human, coefficient, expected):
    judged = read_judged(judged_file(name), where=[condition] if condition else [])
    judged = JudgedSet(name, judged.texts[::step])
    scored = score_judged(judged, [MetricCall(metric, metric) for metric in expected], progress=False)
    measured = {metric: correlation(scored[metric].scores, judged.human(human), coefficient) for metric in expected}
    assert measured == pytest.approx(expected, abs=NEAR)

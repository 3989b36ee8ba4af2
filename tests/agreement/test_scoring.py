"""Judged sets scored by metrics: groups, what is left out, which options and outputs are used."""

from __future__ import annotations

import pytest
from samples import GRADED

import movers
from movers.agreement.judged import JudgedSet, JudgedText, read_judged
from movers.agreement.scoring import MetricCall, score_judged
from movers.errors import InputError
from movers.weights import IdfTable


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    return read_judged(GRADED)


def direct(judged: JudgedSet, **options) -> list[float]:
    texts = judged.texts
    return movers.wms([text.candidate for text in texts], [list(text.references) for text in texts], **options)[
        "scores"
    ]


def test_scores_are_those_of_the_metric_itself(graded):
    found = score_judged(graded, [MetricCall("words", "wms")], progress=False)["words"]
    assert found.scores == pytest.approx(direct(graded), abs=1e-9)
    assert found.signature.startswith("wms|")


def test_texts_without_references_have_no_score():
    judged = JudgedSet(
        "two", (JudgedText("1", "A dog.", ("A dog.",), {}), JudgedText("2", "A cat.", (), {}, {"source": "A cat."}))
    )
    assert score_judged(judged, [MetricCall("wms", "wms")], progress=False)["wms"].scores == [1.0, None]


def test_document_frequencies_of_the_corpus_are_counted_inside_groups(graded):
    half = ["first" if row < 70 else "second" for row in range(140)]
    call = MetricCall("wms", "wms", {"idf": "corpus"})
    found = score_judged(graded, [call], groups=half, progress=False)["wms"]
    expected = [
        score
        for part in (graded.texts[:70], graded.texts[70:])
        for score in direct(JudgedSet("part", part), idf="corpus")
    ]
    assert found.scores == pytest.approx(expected, abs=1e-9)
    together = score_judged(graded, [call], progress=False)["wms"]
    assert together.scores != pytest.approx(expected, abs=1e-9)
    # Two tables of frequencies, two signatures.
    assert len(found.signature.split(" ")) == 2


def test_a_metric_has_a_score_for_each_of_its_outputs_and_option_values_of_any_kind(graded):
    texts = JudgedSet("small", graded.texts[:10])
    table = IdfTable.build([text.candidate.lower().split() for text in graded.texts])
    calls = [
        MetricCall("f1", "bertscore_emd", {"alignment": "greedy"}, "f1"),
        MetricCall("recall", "bertscore_emd", {"alignment": "greedy"}, "recall"),
        MetricCall("table", "wms", {"idf": table}),
    ]
    scored = score_judged(texts, calls, progress=False)
    result = movers.bertscore_emd(
        [text.candidate for text in texts.texts], [list(text.references) for text in texts.texts], alignment="greedy"
    )
    for name in ("f1", "recall"):
        assert scored[name].scores == pytest.approx(result[name], abs=1e-6)
    assert scored["table"].scores == pytest.approx(direct(texts, idf=table), abs=1e-9)


def test_a_missing_output_is_named_with_those_that_there_are(graded):
    with pytest.raises(InputError, match="wms: output: expected one of scores.*, but got 'recall'"):
        score_judged(graded, [MetricCall("wms", "wms", {}, "recall")], progress=False)


def test_two_metrics_of_one_name_cannot_stand_in_one_table(graded):
    with pytest.raises(InputError, match="metrics: expected each metric once, but got wms, wms"):
        score_judged(graded, [MetricCall("wms", "wms"), MetricCall("wms", "wms")])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("rogue", {}, "metric: expected one of wms, .*rouge, bleu, chrf, but got 'rogue'"),
        ("rouge", {"stem": True}, "rouge: unknown option 'stem'.*; valid options: stemmer, variant"),
        ("wms", {"stopword": None}, "wms: unknown option 'stopword'"),
    ],
)
def test_an_unknown_metric_or_option_lists_the_known_ones_of_either_kind(graded, name, options, message):
    with pytest.raises(InputError, match=message):
        score_judged(graded, [MetricCall(name, name, options)], progress=False)


def test_however_many_metrics_share_an_encoder_each_text_goes_through_it_once(graded, minilm):
    texts = JudgedSet("small", graded.texts[:20])
    calls = [MetricCall(f"layer {layer}", "moverscore", {"aggregation": layer}) for layer in range(7)]
    rows = []
    handle = minilm.model.register_forward_pre_hook(
        lambda module, arguments, keywords: rows.append(len(keywords["input_ids"])), with_kwargs=True
    )
    minilm.cache.clear()
    try:
        scored = score_judged(texts, calls, progress=False)
    finally:
        handle.remove()
        minilm.cache.clear()
    distinct = {text.candidate for text in texts.texts} | {text for row in texts.texts for text in row.references}
    assert sum(rows) == len(distinct)
    assert len({tuple(scored[call.label].scores) for call in calls}) == 7

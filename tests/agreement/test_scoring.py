"""Judged sets scored by metrics: blocks, groups, what is left out, what a later run need not repeat."""

from __future__ import annotations

import pytest
from samples import GRADED

import movers
from movers.agreement import scoring
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.readers import read_file
from movers.agreement.scoring import MetricCall, score_judged
from movers.errors import InputError


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    return read_file(GRADED)


def direct(judged: JudgedSet, **options) -> list[float]:
    texts = judged.texts
    return movers.wms([text.candidate for text in texts], [list(text.references) for text in texts], **options)[
        "scores"
    ]


def test_scores_are_those_of_the_metric_itself_whatever_the_blocks(graded, monkeypatch):
    monkeypatch.setattr(scoring, "_BLOCK", 33)
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


def test_an_interrupted_run_goes_on_where_it_stopped(graded, monkeypatch):
    monkeypatch.setattr(scoring, "_BLOCK", 50)
    calls = [MetricCall("wms", "wms"), MetricCall("sms", "sms")]
    kept: dict[str, dict[int, float]] = {"wms": {}, "sms": {}}
    written = []

    def keep(label, scores, signature):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append((label, len(scores)))
        kept[label] |= scores

    with pytest.raises(KeyboardInterrupt):
        score_judged(graded, calls, progress=False, keep=keep)
    assert written == [("wms", 50), ("sms", 50), ("wms", 50)]
    again = []
    found = score_judged(
        graded, calls, progress=False, known=kept, keep=lambda label, scores, _: again.append((label, len(scores)))
    )
    assert again == [("sms", 50), ("wms", 40), ("sms", 40)]
    assert found["wms"].scores == pytest.approx(direct(graded), abs=1e-9)


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

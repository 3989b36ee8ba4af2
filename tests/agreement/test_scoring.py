"""Judged sets scored by metrics: groups, what is left out, which options and outputs are used."""

from __future__ import annotations

import pytest
from samples import GRADED

import movers
from movers.agreement.judged import JudgedSet, JudgedText, read_judged
from movers.agreement.scoring import MetricCall, score_judged
from movers.errors import InputError


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    return read_judged(GRADED)


def direct(judged: JudgedSet, metric: str, output: str = "scores", **options) -> list[float]:
    texts, references = zip(*((text.candidate, list(text.references)) for text in judged.texts), strict=True)
    return getattr(movers, metric)(list(texts), list(references), **options)[output]


def test_scores_are_those_of_the_metric_itself_for_each_output(graded):
    judged = JudgedSet("small", graded.texts[:10])
    calls = [MetricCall("words", "wms", {"stopwords": None})]
    calls += [MetricCall(name, "bertscore_emd", {"alignment": "greedy"}, name) for name in ("f1", "recall")]
    scored = score_judged(judged, calls, progress=False)
    assert scored["words"].scores == pytest.approx(direct(judged, "wms", stopwords=None), abs=1e-9)
    assert scored["words"].signature.startswith("wms|")
    for name in ("f1", "recall"):
        expected = direct(judged, "bertscore_emd", name, alignment="greedy")
        assert scored[name].scores == pytest.approx(expected, abs=1e-6)


def test_texts_without_references_have_no_score():
    texts = JudgedText("1", "A dog.", ("A dog.",), {}), JudgedText("2", "A cat.", (), {}, {"source": "A cat."})
    assert score_judged(JudgedSet("two", texts), [MetricCall("wms", "wms")])["wms"].scores == [1.0, None]


def test_document_frequencies_of_the_corpus_are_counted_inside_groups(graded):
    halves = JudgedSet("first", graded.texts[:70]), JudgedSet("second", graded.texts[70:])
    groups = [half.name for half in halves for _ in half.texts]
    call = MetricCall("wms", "wms", {"idf": "corpus"})
    scored = score_judged(graded, [call], groups=groups, progress=False)["wms"]
    expected = [score for half in halves for score in direct(half, "wms", idf="corpus")]
    assert scored.scores == pytest.approx(expected, abs=1e-9)
    assert score_judged(graded, [call], progress=False)["wms"].scores != pytest.approx(expected, abs=1e-9)
    assert len(scored.signature.split(" ")) == 2  # two tables of frequencies


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([MetricCall("x", "rouge", {"stem": True})], "rouge: unknown option 'stem'.*; valid options: stemmer, variant"),
        ([MetricCall("x", "wms", {"stopword": None})], "wms: unknown option 'stopword'"),
    ],
)
def test_an_unknown_option_lists_the_known_ones(graded, calls, message):
    with pytest.raises(InputError, match=message):
        score_judged(graded, calls, progress=False)

"""ROUGE, BLEU and chrF through their packages, in the form of our own metrics."""

from __future__ import annotations

import pytest

pytest.importorskip("rouge_score", reason="rouge-score is in the extra `benchmarks`")
pytest.importorskip("sacrebleu", reason="sacrebleu is in the extra `benchmarks`")

from movers import lexical  # noqa: E402

PREDICTIONS = ["the cat sat on the mat", "completely different words"]
REFERENCES = [["the cat lay on the mat", "a dog"], ["nothing in common here"]]


def test_rouge_is_the_f_measure_with_the_best_reference():
    found = lexical.rouge(PREDICTIONS, REFERENCES)
    # Longest common subsequence of 5 in 6 and 6 words.
    assert found["scores"] == [pytest.approx(5 / 6), 0.0]
    assert found["score"] == pytest.approx(5 / 12)
    # Bigrams: the-cat, on-the, the-mat of 5.
    assert lexical.rouge(PREDICTIONS, REFERENCES, variant="rouge2")["scores"][0] == pytest.approx(3 / 5)
    assert found["signature"].startswith("rouge|variant:rougeL|stemmer:False|refs:max|v:")


@pytest.mark.parametrize("name", list(lexical.LEXICAL_METRICS))
def test_equal_texts_score_one_and_results_are_plain_floats(name):
    found = lexical.LEXICAL_METRICS[name](["the cat sat on the mat today"], ["the cat sat on the mat today"])
    assert found["scores"] == [pytest.approx(1.0)]
    assert type(found["score"]) is float and type(found["scores"][0]) is float
    assert found["signature"].startswith(name)


@pytest.mark.parametrize("name", list(lexical.LEXICAL_METRICS))
@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], ["a", "b"], "`references` must be as long as `predictions`: expected 1, got 2"),
        ("a", ["a"], "`predictions` and `references` must be lists of texts; got a text"),
        ([None], ["a"], "`predictions`, row 0: expected a text, got None"),
        (["a"], [[]], "`references`, row 0: expected a text or a list of texts, got \\[\\]"),
        ([], [], "`predictions` must hold at least one text"),
    ],
)
def test_bad_input_is_named(name, predictions, references, message):
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        lexical.LEXICAL_METRICS[name](predictions, references)


def test_an_unknown_variant_lists_the_known_ones():
    with pytest.raises(ValueError, match="`variant` must be one of rouge1, rouge2, rougeL, rougeLsum; got 'rouge9'"):
        lexical.rouge(PREDICTIONS, REFERENCES, variant="rouge9")

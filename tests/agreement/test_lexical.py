"""ROUGE, BLEU and chrF through their packages, in the form of our own metrics."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("rouge_score", reason="rouge-score is in the extra `lexical`")
pytest.importorskip("sacrebleu", reason="sacrebleu is in the extra `lexical`")

from movers.agreement import lexical  # noqa: E402


def test_rouge_is_the_f_measure_with_the_best_reference():
    texts = ["the cat sat on the mat", "other words"], [["the cat lay on the mat", "a dog"], ["nothing in common"]]
    result = lexical.rouge(*texts)
    # Longest common subsequence of 5 in 6 and 6 words.
    assert result["scores"] == [pytest.approx(5 / 6), 0.0]
    assert result["score"] == pytest.approx(5 / 12)
    # Bigrams: the-cat, on-the, the-mat of 5.
    assert lexical.rouge(*texts, variant="rouge2")["scores"][0] == pytest.approx(3 / 5)
    with pytest.raises(ValueError, match="rouge: variant: expected one of 'rouge1', .*'rougeLsum', but got 'rouge9'"):
        lexical.rouge(*texts, variant="rouge9")


@pytest.mark.parametrize("name", list(lexical.LEXICAL_METRICS))
def test_equal_texts_score_one_and_results_are_plain_floats(name):
    result = lexical.LEXICAL_METRICS[name](["the cat sat on the mat today"], ["the cat sat on the mat today"])
    assert result["scores"] == [pytest.approx(1.0)]
    assert type(result["score"]) is float and type(result["scores"][0]) is float
    assert result["signature"].startswith(name)


@pytest.mark.parametrize(("name", "package"), [("rouge", "rouge-score"), ("bleu", "sacrebleu"), ("chrf", "sacrebleu")])
def test_without_the_package_the_pip_line_is_named(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, {"rouge": "rouge_score.rouge_scorer"}.get(name, "sacrebleu.metrics"), None)
    hint = f"^{name} needs the package {package}: pip install '.\\[lexical\\]' in a checkout of movers$"
    with pytest.raises(ValueError, match=hint):
        lexical.LEXICAL_METRICS[name](["a"], ["a"])

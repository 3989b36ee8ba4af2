"""Aspects, computed again from their formulas, and what they see in made-up faults."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from made_up import made_up_text

from movers.quality.aspects import measure_aspects
from movers.quality.facts import WordTable, read_words, unknown_facts
from movers.quality.units import TextVectors


def test_the_aspects_are_what_their_formulas_say() -> None:
    """Written again with Python's numbers."""
    document, summary = made_up_text(5, 1), made_up_text(3, 2, tokens=4)
    document = replace(document, units=tuple(f"Anna sold {n} red cows to Bern ." for n in range(5)))
    summary = replace(summary, units=("Anna sold 3 cows .", "Anna sold red red horses .", "She never came ."))
    found = measure_aspects(document, summary)

    match = (summary.tokens @ document.tokens.T).max(axis=1).astype(float).reshape(3, 4).tolist()
    cosines = (summary.vectors @ document.vectors.T).astype(float)
    unknown = [0, 0, 1]  # the document denies nothing
    sentences = []
    for tokens, row, facts in zip(match, cosines.tolist(), unknown, strict=True):
        scaled = min(1, max(0, (sum(tokens) / 4 - 0.45) / 0.55))
        sentences.append((scaled + min(1, max(0, max(row) / 0.5))) / 2 * 0.5**facts)
    assert found.sentences == pytest.approx(sentences, abs=1e-6)
    assert found.faithfulness == pytest.approx(sum(sentences) / 3, abs=1e-6)

    words = (5 + 5 + 1 + 5 + 5) / 30  # anna, sold, 3, cow, red; every sentence of the document has six words
    early = [math.exp(-place / 5) for place in range(5)]
    said = sum(w * min(1, max(0, max(column))) for w, column in zip(early, cosines.T.tolist(), strict=True)) / sum(
        early
    )
    assert found.coverage == pytest.approx((words + said) / 2, abs=1e-6)
    assert found.non_repetition == pytest.approx(1 - 1 / 11)  # "anna sold" came before; "red red" did not
    assert found.score == pytest.approx(found.faithfulness * found.coverage * found.non_repetition)


def test_sentences_count_by_their_tokens() -> None:
    document, one, two = made_up_text(4, 1), made_up_text(1, 2, tokens=3), made_up_text(1, 3, tokens=9)
    both = TextVectors(
        (*one.units, *two.units),
        np.concatenate([one.vectors, two.vectors]),
        np.concatenate([one.tokens, two.tokens]),
        np.repeat([0, 1], [3, 9]),
    )
    first, second, found = (measure_aspects(document, text).faithfulness for text in (one, two, both))
    assert found == pytest.approx((3 * first + 9 * second) / 12, abs=1e-6)


@pytest.mark.parametrize(
    ("sentence", "unknown"),
    [
        ("Keller led thirty passengers to Porton.", []),
        ("Keller led 30 passenger groups to Porton's harbour.", []),
        ("Keller led forty passengers to Porton.", ["forty"]),
        ("Keller led 31 passengers to Hamberg.", ["31", "Hamberg"]),
        ("They paid 20 , 000 and 2 . 9 million.", []),
        ("They paid 20,001.", ["20,001"]),
        ("Hamberg is far.", []),  # the first word of a sentence may be capitalised for that alone
        ("They did not stop in Porton.", []),
        ("Keller didn't lead passengers.", ["didn't"]),
        ("Keller led no passengers.", ["no"]),
        ("One of them sold a seawall.", []),
        ("They left Porton without charge.", []),
    ],
)
def test_facts_that_the_document_does_not_have(sentence: str, unknown: list[str]) -> None:
    document = WordTable.of(
        ["In May Anna Keller led thirty passengers to Porton.", "They did not stop.", "It cost 20,000, or 2.9 million."]
    )
    assert unknown_facts(read_words(sentence), document) == unknown

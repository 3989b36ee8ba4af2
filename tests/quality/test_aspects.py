"""Aspects, computed again from their formulas, and what they see in made-up faults."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from made_up import made_up_text

from movers.quality.aspects import measure_aspects
from movers.quality.facts import WordTable, read_words, repeated_share, unknown_facts


def test_the_aspects_are_what_their_formulas_say() -> None:
    """Written again with Python's numbers."""
    document, summary = made_up_text(5, 1), made_up_text(3, 2, tokens=4)
    document = replace(document, units=tuple(f"Anna sold {n} red cows to Bern ." * 9 for n in range(5)))
    summary = replace(summary, units=("Anna sold 3 cows .", "Otto sold red red horses .", "She never came ."))
    broken = np.linspace(0.0, 0.7, 15).astype(np.float32)
    found = measure_aspects(document, summary, broken)

    match = (summary.tokens @ document.tokens.T).max(axis=1).astype(float).reshape(3, 4).tolist()
    pairs = set()
    for sentence in document.ids.reshape(5, 5).tolist():
        pairs |= set(zip([None, *sentence], [*sentence, None], strict=True))
    known = [
        [pair in pairs for pair in zip([None, *sentence], [*sentence, None], strict=True)]
        for sentence in summary.ids.reshape(3, 4).tolist()
    ]
    unknown = [0, 0, 1]  # Otto begins its sentence and may be no name; the document denies nothing
    faults = [max(u, sum(value < 0.45 for value in row)) for u, row in zip(unknown, match, strict=True)]
    base = [min(1, max(0, (np.mean(m) - 0.45) / 0.55)) / 2 + np.mean(k) / 2 for m, k in zip(match, known, strict=True)]
    faithfulness = np.mean([b * (2 / 3) ** f for b, f in zip(base, faults, strict=True)])
    assert found.faithfulness == pytest.approx(faithfulness, abs=1e-6)

    counts = Counter(word for unit in document.units for word in ("anna", "sold", "red", "cow", "bern") * 9)
    counts.update(str(n).strip("0") for n in range(5) for _ in range(9))
    words = (counts["anna"] + counts["sold"] + counts["3"] + counts["cow"] + counts["red"]) / sum(counts.values())
    cosines = np.clip((summary.vectors @ document.vectors.T).max(axis=0), 0, 1)
    assert found.coverage == pytest.approx((words + float(found.alignment.weights @ cosines)) / 2, abs=1e-6)

    joins = np.mean([p * (not k) for p, k in zip(broken.tolist(), sum(known, []), strict=True)])
    ends = np.mean(broken[[4, 9, 14]])
    stutter = 1 / 12  # "red red"; there are 12 words
    damage = joins + 0.5 * (1 - np.mean(match)) + ends / 20 + stutter / 2
    assert found.fluency == pytest.approx(math.exp(-6 * damage), abs=1e-6)
    assert found.repeated == 0.0 and found.brevity == 1.0
    assert found.score == pytest.approx((found.faithfulness * found.coverage * found.fluency) ** (1 / 3))


def test_a_whole_copy_is_faithful_and_covers_all_and_is_no_good_summary() -> None:
    document = replace(
        made_up_text(3, 1), units=tuple(f"Anna sold {n} cows to Bern and came home. " * 5 for n in range(3))
    )
    copy = measure_aspects(document, document, np.zeros(18, np.float32))
    assert (copy.faithfulness, copy.brevity) == (pytest.approx(1.0), 0.05)
    assert copy.coverage == pytest.approx(1.0) and copy.score <= 0.05


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
    ],
)
def test_facts_that_the_document_does_not_have(sentence: str, unknown: list[str]) -> None:
    document = WordTable.of(
        ["In May Anna Keller led thirty passengers to Porton.", "They did not stop.", "It cost 20,000, or 2.9 million."]
    )
    assert unknown_facts(read_words(sentence), document) == unknown


def test_repeated_runs_are_counted_once_each() -> None:
    assert repeated_share("a b c d", 2) == 0.0 and repeated_share("a", 2) == 0.0
    assert repeated_share("a b a b a b", 2) == pytest.approx(3 / 5)

"""Negative samples: labels, shares, seeds, and nothing from another side."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from movers.quality.data import Pair
from movers.quality.fact_faults import FACT_FAULTS
from movers.quality.faults import (
    FAULTS,
    PAPER_KINDS,
    WEIGHTS,
    add_fault,
    make_samples,
    mutate,
    split_tokens,
)


def made_up_pairs(count: int) -> list[Pair]:
    pairs = []
    for row in range(count):
        document = tuple(f"Sentence {n} of story{row} tells what fact{row}n{n} the Town{n} saw." for n in range(12))
        summary = (f"The story{row} tells of Town1 and Town2.", f"It names fact{row}n3 and much of fact{row}n4 too.")
        pairs.append(Pair(" ".join(document), " ".join(summary), document, summary))
    return pairs


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["add", "delete", "replace"])
def test_the_label_is_one_minus_the_share_of_changed_tokens(kind: str, share: float) -> None:
    words = [f"w{n}" for n in range(40)]
    text, label = mutate(" ".join(words), kind, share, ["alien"], np.random.default_rng(3))
    after = text.split()
    # counted from outside, on the words themselves
    kept = sum((Counter(words) & Counter(after)).values())
    changed = {"add": len(after) - 40, "delete": 40 - len(after), "replace": 40 - kept}[kind]
    assert changed == 40 * share
    assert label == pytest.approx(1 - share)


def test_cross_pairs_have_another_documents_summary_and_label_zero() -> None:
    pairs = made_up_pairs(6)
    for sample in make_samples(pairs, "cross", fakes=4, seed=2):
        if sample.kind == "cross":
            assert sample.summary_row != sample.row
            assert sample.summary == pairs[sample.summary_row].summary
            assert sample.label == 0.0
        else:
            assert (sample.kind, sample.label, sample.summary) == ("original", 1.0, pairs[sample.row].summary)


def test_mix_is_equal_parts_of_the_papers_four_kinds() -> None:
    counts = Counter(sample.kind for sample in make_samples(made_up_pairs(40), "mix"))
    assert counts == {"original": 40, **dict.fromkeys(PAPER_KINDS, 10)}


def test_the_same_seed_gives_the_same_samples_and_another_seed_others() -> None:
    pairs = made_up_pairs(20)
    assert make_samples(pairs, "broad", fakes=3, seed=4) == make_samples(pairs, "broad", fakes=3, seed=4)
    assert make_samples(pairs, "broad", fakes=3, seed=4) != make_samples(pairs, "broad", fakes=3, seed=5)


def wrong_tokens(kind: str, before: list[str], after: list[str]) -> int:
    """Tokens that a fault made wrong, counted from outside by comparing the texts."""
    kept = sum((Counter(before) & Counter(after)).values())
    if kind in ("missing", "broken"):
        return len(before) - kept
    if kind == "shuffled":
        return sum(first != second for first, second in zip(before, after, strict=True))
    return len(after) - kept  # what is new


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("name", "Mr Hart of Leeds did sell 30 cows to Berta."),
        ("number", "Mr Hart of Porton did sell 77 cows to Berta."),
        ("negation", "Mr Hart of Porton did not sell 30 cows to Berta."),
        ("roles", "Mr Berta of Porton did sell 30 cows to Hart."),
    ],
)
def test_a_false_fact_makes_its_sentence_wrong(kind: str, expected: str) -> None:
    sentence, rest = "Mr Hart of Porton did sell 30 cows to Berta.", "It was late."
    pair = Pair(f"{sentence} {rest}", f"{sentence} {rest}", (), (sentence, rest))
    other = Pair("We saw Leeds with Porton and 77 of 30.", "x")
    found = {add_fault([sentence, rest], kind, pair, other, 0.3, np.random.default_rng(seed)) for seed in range(40)}
    texts = {text for text, _ in found}
    assert f"{expected} {rest}" in texts
    tokens = len(split_tokens(sentence)) + (kind == "negation")
    labels = {round(label, 9) for text, label in found if text.endswith(rest)}
    assert labels == {round(1 - 0.7 * tokens / (tokens + 4), 9)}
    assert add_fault([rest], "name", pair, other, 1.0, np.random.default_rng(0)) == (rest, 1.0)


@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind not in FACT_FAULTS])
def test_the_label_of_a_fault_falls_with_the_share_of_wrong_tokens(kind: str) -> None:
    first, second = made_up_pairs(2)
    before = [token.strip() for token in split_tokens(" ".join(first.summary_sentences))]
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        text, label = add_fault(first.summary_sentences, kind, first, second, 0.8, rng)
        after = [token.strip() for token in split_tokens(text)]
        wrong = wrong_tokens(kind, before, after)
        # what is missing or misplaced counts in tokens of the good summary, what is new in tokens of the bad one
        total = len(before if kind in ("missing", "broken", "shuffled", "misplaced") else after)
        share = min(1.0, wrong / total + 0.25 * (kind == "broken"))
        if kind in ("glued", "foreign", "aside"):  # new text may have words of the old one: they are wrong too
            assert label <= max(0.0, 1 - WEIGHTS[kind] * share) + 1e-9
        elif kind == "misplaced":  # a word that came back elsewhere was wrong twice
            assert label <= 1 - WEIGHTS[kind] * share + 1e-9
        else:
            assert label == pytest.approx(max(0.0, 1 - WEIGHTS[kind] * share)), text
        changed += text != " ".join(first.summary_sentences)
    assert changed == 20

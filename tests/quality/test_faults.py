"""Negative samples: labels, shares, spacing, seeds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from movers.errors import InputError
from movers.quality.data import Pair
from movers.quality.faults import KINDS, SampleMaker, build_vocabulary, mutate, split_tokens

AWKWARD = (
    "Smith (no. 7) said: 'a well-known sea-wall' - or sea/wall - costs $1,200.50, \"too much\"; \u2018nobody\u2019 "
    "paid.It's the U.S. coast...the end",
    "x',y (z) a-b 5/6 \u00a310m e.g.this",
)


def made_up_pairs(count: int) -> list[Pair]:
    return [
        Pair(
            f"Sentence of story{row} tells what fact{row} the Town saw.", f"The story{row} tells of fact{row} and more."
        )
        for row in range(count)
    ]


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


@pytest.mark.parametrize("kind", ["add", "delete", "replace"])
@pytest.mark.parametrize("text", AWKWARD)
def test_no_sample_has_a_word_that_neither_text_nor_vocabulary_has(kind: str, text: str) -> None:
    vocabulary = ["zebra", "U.N", "1987", "Lords"]
    known = {token.strip() for token in split_tokens(text)} | set(vocabulary)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        changed, _ = mutate(text, kind, float(rng.random()), vocabulary, rng)
        assert {token.strip() for token in split_tokens(changed)} <= known, changed


def test_cross_pairs_have_another_documents_summary_and_label_zero() -> None:
    pairs = made_up_pairs(6)
    for sample in SampleMaker(pairs, "cross", (), fakes=4, seed=2):
        others = [pair.summary for row, pair in enumerate(pairs) if row != sample.row]
        if sample.kind == "cross":
            assert sample.summary in others and sample.label == 0.0
        else:
            assert (sample.kind, sample.label, sample.summary) == ("original", 1.0, pairs[sample.row].summary)
    with pytest.raises(InputError, match="cross pairing needs at least two documents, but got 1"):
        SampleMaker(pairs[:1], "cross", ())


def test_with_candidates_cross_pairs_come_nearer_to_the_document() -> None:
    topics = ("sea wall storm", "bank rate rise", "match goal win", "vote law court")
    pairs = [Pair(f"{topics[row % 4]} in place {row}", f"{topics[row % 4]} {row}") for row in range(80)]

    def near(candidates: int) -> float:
        made = [one for one in SampleMaker(pairs, "cross", (), fakes=3, candidates=candidates) if one.label == 0]
        return float(np.mean([topics[one.row % 4] in one.summary for one in made]))

    assert near(1) < 0.4 < 0.5 < near(20)


def test_mix_is_equal_parts_of_the_papers_four_kinds() -> None:
    counts = Counter(sample.kind for sample in SampleMaker(made_up_pairs(40), "mix", ("word",)))
    assert counts == {"original": 40, **dict.fromkeys(KINDS, 10)}


def test_seed_and_epoch_determine_the_samples() -> None:
    pairs = made_up_pairs(20)
    words = build_vocabulary([pair.summary for pair in pairs])
    first, again, other = (SampleMaker(pairs, "mix", words, fakes=3, seed=seed) for seed in (4, 4, 5))
    assert list(first) == list(again) != list(other)
    assert first.sample(1, epoch=1) == again.sample(1, epoch=1) != first.sample(1, epoch=0)

"""Spoiled sentences and the network that finds their broken joins."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_up import DIMENSION, made_up_text

from movers.quality.joins import SPOILERS, JoinNetwork, sentence_joins, spoil

WORDS = "one two three four five six seven eight .".split()
OTHER = "red blue green black white grey".split()


@pytest.mark.parametrize("kind", [*SPOILERS, "glue"])
def test_a_join_is_broken_exactly_where_the_words_were_not_neighbours(kind: str) -> None:
    """Told from the words alone: they are all different, so neighbours can be looked up."""
    sound = set(zip([None, *WORDS], [*WORDS, None], strict=True))
    for seed in range(50):
        words, broken = spoil(WORDS, kind, OTHER, np.random.default_rng(seed))
        assert len(broken) == len(words) + 1
        joins = list(zip([None, *words], [*words, None], strict=True))
        if kind == "glue":  # behind the join the other sentence is sound
            sound_there = set(zip(OTHER, [*OTHER[1:], None], strict=True))
            assert broken.count(True) == 1
            assert all(join in sound | sound_there for join, bad in zip(joins, broken, strict=True) if not bad)
        else:
            assert broken == [join not in sound for join in joins]


def test_every_sentence_is_judged_alone() -> None:
    torch.manual_seed(3)
    network = JoinNetwork(DIMENSION).eval()
    texts = [made_up_text(3, 1), made_up_text(1, 2, tokens=0), made_up_text(2, 3, tokens=9)]
    together = network.broken(texts)
    assert [len(found) for found in together] == [18, 1, 20]
    for text, found in zip(texts, together, strict=True):
        parts = [sentence_joins(text.tokens[text.owners == unit]) for unit in range(len(text.units))]
        with torch.inference_mode():
            alone = [network(torch.from_numpy(part)).sigmoid().numpy() for part in parts]
        assert found == pytest.approx(np.concatenate(alone), abs=1e-6)

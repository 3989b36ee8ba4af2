"""The fast path of static words: what is remembered, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from movers.scores import lexicon
from movers.scores.lexicon import DROPPED, INVISIBLE, UNKNOWN, Lexicon, lexicon_of
from movers.texts import WordRules

RULES = WordRules(stopwords=frozenset({"the"}))


class Numbers:
    """A word's vector is its length; words with a q are unknown."""

    identity = "numbers"
    dimension = 1

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        self.asked += words
        known = np.array(["q" not in word for word in words], dtype=bool)
        lengths = np.array([[len(word)] for word in words], dtype=np.float32).reshape(-1, 1)
        return lengths * known[:, None], known


def test_pieces_are_rows_dropped_unknown_or_invisible() -> None:
    entries = Lexicon(Numbers(), RULES).learn(["The", "Cat", "cat", " ", "qua", "."])
    assert {piece: entries.codes[piece] for piece in ("The", "qua", ".", " ")} == {
        "The": DROPPED,
        "qua": UNKNOWN,
        ".": DROPPED,
        " ": INVISIBLE,
    }
    assert entries.codes["Cat"] == entries.codes["cat"] == 0
    assert entries.words == ["cat"] and entries.vectors[0].tolist() == [3.0]


@pytest.mark.parametrize(
    "text",
    [
        "The cat, the qua-cat; 'apple isn't  it\t3.5% (of) it.\n",
        "caf\u00e9 \u0308a b\u200d c \u200dd x\u00a0y \u3000z 'ella \u2019amour",
        "\u732b\u304c\u597d\u304d " * 3 + "x" * 50,
        "\U0001f1e9\U0001f1ea\U0001f1eb \U0001f1f7 \u05d0\"\u05d1 \u05d0' a\x1cb\x85c",
        " \u0301",
        "",
    ],
)
def test_what_stands_between_white_space_is_cut_as_in_the_whole_text(text: str) -> None:
    rules = WordRules(punctuation=False, keep_numbers=True)
    words = Lexicon(Numbers(), rules)
    for _ in range(2):  # learned, then remembered
        entries, (rows,), (unknown,) = words.read([text])
        expected = rules.words(text)
        assert [entries.words[row] for row in rows] == [word for word in expected if "q" not in word]
        assert unknown == any("q" in word for word in expected)


@given(st.text(max_size=30))
def test_no_text_is_cut_otherwise(text: str) -> None:
    rules = WordRules(punctuation=False, keep_numbers=True)
    entries, (rows,), _ = Lexicon(Numbers(), rules).read([text])
    assert [entries.words[row] for row in rows] == [word for word in rules.words(text) if "q" not in word]


def test_a_word_is_looked_up_once() -> None:
    encoder = Numbers()
    words = Lexicon(encoder, RULES)
    words.learn(["cat", "qua", "bird"])
    entries = words.learn(["Cat", "bird", "horse", "qua"])
    assert sorted(encoder.asked) == ["bird", "cat", "horse", "qua"]
    assert [entries.vectors[entries.codes[word], 0] for word in ("cat", "Cat", "bird", "horse")] == [3, 3, 4, 5]


def test_the_table_grows_and_those_who_hold_the_old_one_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_WORDS_KEPT", 4)
    words = Lexicon(Numbers(), RULES)
    before = words.learn(["cat", "bird"])
    many = ["a" * length for length in range(1, 1500)]
    after = words.learn(many)
    assert [before.vectors[before.codes[word], 0] for word in ("cat", "bird")] == [3, 4]
    found = [after.vectors[after.codes[word], 0] for word in ("cat", "bird", *many)]
    assert found == [3, 4, *range(1, 1500)]
    assert len(before.vectors) < len(found) <= len(after.vectors)
    assert after.squares[after.codes["bird"]] == (before.vectors[before.codes["bird"]] ** 2).sum()


def test_a_lexicon_that_is_full_starts_anew_and_old_entries_stay_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_WORDS_KEPT", 2)
    words = Lexicon(Numbers(), RULES)
    old = words.learn(["cat", "bird"])
    assert words.learn(["horse"]).words == ["bird", "cat", "horse"]  # two words are not too many yet
    new = words.learn(["ox"])
    assert new.words == ["ox"] and new.vectors[new.codes["ox"], 0] == 2
    assert old.vectors[old.codes["bird"], 0] == 4


def test_the_lexicons_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_lexicons", {})
    encoders = [Numbers() for _ in range(5)]
    first = lexicon_of(encoders[0], RULES)
    assert lexicon_of(encoders[0], RULES) is first
    assert lexicon_of(encoders[0], WordRules()) is not first
    second = lexicon_of(encoders[1], RULES)
    assert lexicon_of(encoders[0], RULES) is first
    for encoder in encoders[2:4]:
        lexicon_of(encoder, RULES)
    assert len(lexicon._lexicons) == 4
    assert lexicon_of(encoders[0], RULES) is first
    lexicon_of(encoders[4], RULES)
    assert lexicon_of(encoders[1], RULES) is not second

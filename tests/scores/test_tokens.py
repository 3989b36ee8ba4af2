"""Which tokens of a text are units, and what is told about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from movers.encoders.layers import Aggregation
from movers.scores.tokens import Filters, TokenIdf, TokenOptions, TokenReader, TokenText, build_idf


def text_of(text: str, pieces: Sequence[str], words: Sequence[int]) -> TokenText:
    """Tokens where the pieces stand in the text, between two special tokens; token i has the vector (i, 1)."""
    starts, ends, place = [], [], 0
    for piece in pieces:
        place = text.index(piece, place)
        starts.append(place)
        place += len(piece)
        ends.append(place)
    count = len(pieces) + 2
    return TokenText(
        text=text,
        starts=np.array([0, *starts, 0]),
        ends=np.array([0, *ends, 0]),
        words=np.array([-1, *words, -1]),
        special=np.array([True, *[False] * len(pieces), True]),
        unknown=np.zeros(count, dtype=bool),
        matrix=np.stack([np.arange(count), np.ones(count)], axis=1).astype(np.float32),
        ids=[100 + number for number in range(count)],
        cut=False,
    )


PIECES = ["The", "cat", "s", ",", "“", "thereof", "there", "of", "."]  # of two sentences
TEXT = text_of("The cats, “ thereof. there of.", PIECES, [0, 1, 1, 2, 3, 4, 5, 6, 7])


def kept(**filters: Any) -> list[str]:
    units = TEXT.units(Filters(**filters))
    return [] if units is None else [str(unit["text"]) for unit in units.describe()]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["[start]", *PIECES, "[end]"]),
        ({"special_tokens": False}, PIECES),
        ({"special_tokens": False, "drop_subwords": True}, [piece for piece in PIECES if piece != "s"]),
        ({"special_tokens": False, "punctuation": True}, ["The", "cat", "s", "thereof", "there", "of"]),
        ({"special_tokens": False, "punctuation": "ascii"}, ["The", "cat", "s", "“", "thereof", "there", "of"]),
        (
            {"special_tokens": False, "stopwords": frozenset({"the", "there", "cat", "of"})},
            ["cat", "s", ",", "“", "thereof", "."],  # "cat" belongs to "cats"
        ),
        ({"stopwords": frozenset({"cats"})}, ["[start]", "The", *PIECES[3:], "[end]"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_filters_keep_what_they_say(filters: dict[str, Any], expected: list[str]) -> None:
    assert kept(**filters) == expected


def test_nothing_but_special_tokens_is_nothing() -> None:
    assert text_of("…", ["…"], [0]).units(Filters(punctuation=True)) is None
    assert text_of("", [], []).units(Filters()) is None


def test_units_have_the_vectors_keys_and_sentences_of_their_tokens() -> None:
    units = TEXT.units(Filters(punctuation=True))
    assert units is not None and len(units) == 8
    places = [0, 1, 2, 3, 6, 7, 8, 10]
    assert units.vectors()[:, 0].tolist() == places
    assert units.keys() == [100 + place for place in places]
    assert units.special().tolist() == [True, *[False] * 6, True]
    told = units.describe()
    assert [unit["kind"] for unit in told] == ["special", *["token"] * 6, "special"]
    assert [unit["sentence"] for unit in told[1:-1]] == [0, 0, 0, 0, 1, 1]


def test_a_token_before_the_first_sentence_belongs_to_it() -> None:
    assert text_of(" Cats sat. Dogs ran.", [" Cats", "Dogs"], [0, 1]).sentences.tolist()[:3] == [0, 0, 1]


def test_texts_without_tokens_are_alike_if_both_are_blank_or_have_the_same_unknown_words() -> None:
    nothing, blank = text_of("", [], []), text_of(" \n", [], [])
    strange, other = (replace(text_of(text, [], []), words_missing=True) for text in ("xyzzy", "plugh"))
    assert nothing.empty and not TEXT.empty
    assert nothing.same_as(blank) and strange.same_as(strange)
    assert not strange.same_as(other) and not strange.same_as(nothing) and not nothing.same_as(strange)
    assert not nothing.same_as(TEXT) and not TEXT.same_as(nothing)
    assert strange.has_unknown and not nothing.has_unknown and not TEXT.has_unknown


def test_an_unknown_sign_is_no_punctuation() -> None:
    text = text_of("a €", ["a", "€"], [0, 1])
    strange = replace(text, unknown=np.array([False, False, True, False]))
    for found, names in ((text, ["a"]), (strange, ["a", "€"])):
        units = found.units(Filters(punctuation=True, special_tokens=False))
        assert units is not None and [unit["text"] for unit in units.describe()] == names
        assert units.unknown().tolist() == [name == "€" for name in names]
    assert strange.has_unknown


class Letters:
    """Knows words of ASCII letters; a word's vector is (length, 1)."""

    identity = "letters"
    dimension = 2

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        known = np.array([word.isascii() for word in words], dtype=bool)
        return np.array([[len(word), 1] for word in words], np.float32).reshape(-1, 2) * known[:, None], known


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_of_a_static_encoder_are_tokens(lowercase: bool) -> None:
    reader = TokenReader("moverscore", Letters(), Aggregation("last"), None, TokenOptions(lowercase=lowercase))
    first, second, third = (text for _, text in sorted(reader.read(["A Cat, sat", "é", ""])))
    words = ["a", "cat", ",", "sat"] if lowercase else ["A", "Cat", ",", "sat"]
    assert list(first.ids) == words
    assert first.matrix[:, 0].tolist() == [1, 3, 1, 3]
    assert (first.starts.tolist(), first.ends.tolist()) == ([0, 2, 5, 7], [1, 5, 6, 10])
    assert first.words.tolist() == [0, 1, 2, 3] and not first.special.any()
    assert [(text.empty, text.words_missing) for text in (first, second, third)] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    assert reader.static and reader.table(0) is None
    assert reader.fields() == {"emb": "letters", "case": "lower" if lowercase else "keep"}


def test_idf_tables_count_words_or_token_ids(minilm: Any) -> None:
    texts = ["A cat.", "a dog"]
    words = build_idf(Letters(), texts)
    assert (words.frequencies, words.documents, words.keys) == ({"a": 2, "cat": 1, ".": 1, "dog": 1}, 2, "words")
    assert build_idf(Letters(), texts, lowercase=False).frequencies["A"] == 1
    tokens = TokenIdf(minilm).build(texts)
    assert (tokens.keys, tokens.tokenizer) == ("tokens", minilm.tokenizer_digest)
    start, *_, end = minilm.tokenize(texts)[0].ids.tolist()
    assert tokens.frequencies[start] == tokens.frequencies[end] == 2 and len(tokens.frequencies) == 6

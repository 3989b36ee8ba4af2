from __future__ import annotations

import random
import unicodedata
from typing import Any, Literal

import numpy as np
import pytest
import sentencex

import movers
from movers.errors import InputError, warn_once
from movers.texts import (
    STOP_MASS,
    WordRules,
    is_visible,
    name_stop_words,
    sentence_spans,
    split_pieces,
    split_sentences,
    stop_words,
    token_spans,
)

ENGLISH = stop_words("english")
DROP: dict[str, Any] = {"stop_mass": 0.0}


def random_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    alphabet = [*"aB z.!?…,;:\"'“”()[]$%0123 \n\t-。！？", "Dr. ", "U.S. ", " e.g. ", "...", "の", "ก", "e\u0301", "😀"]
    return ["".join(draw.choices(alphabet, k=draw.randint(1, 60))) for _ in range(count)]


@pytest.mark.parametrize(
    ("lang", "joint", "sentences"),
    [
        ("en", " ", ["Dr. Smith paid $3.50.", "He left at 5 p.m. with J. R. Jones!"]),
        ("en", " ", ["Prof. Ode met Gen. Hart at 10 a.m. on St. Mary St. yesterday."]),
        ("en", " ", ["It needs fruit, e.g. apples, i.e. food, etc.", "The end."]),
        ("en", " ", ["He said, “I will go. You stay.”", "Wait... what?", "Up 2.5%!"]),
        ("en", "\n", ["no capital", "second line"]),
        ("en", "\r\n \t\u2028", ["A title", "and a line"]),
        ("zh", "", ["他来了。", "她走了！", "真的吗？"]),
        ("ja", "", ["これは文です。", "次の文です。"]),
        ("hi", " ", ["यह पहला वाक्य है।", "यह दूसरा है।"]),
        ("ar", " ", ["هذا أول.", "وهذا ثان؟", "نعم."]),
        ("de", " ", ["Das ist z.B. ein Satz.", "Das ist noch einer."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(lang: str, joint: str, sentences: list[str]) -> None:
    assert split_sentences(joint.join(sentences), lang) == sentences


def test_no_visible_character_is_lost_and_offsets_are_right() -> None:
    for text in [*random_texts(300, seed=1), "", " \u3000\n", "Go. Go. Go."]:
        sentences = split_sentences(text)
        assert [text[begin:end] for begin, end in sentence_spans(text)] == sentences
        assert "".join("".join(sentences).split()) == "".join(text.split())
        pieces, spans = split_pieces(text), token_spans(text)
        assert "".join(pieces) == text
        assert [piece for piece, _, _ in spans] == [piece for piece in pieces if is_visible(piece)]
        covered = [place for piece, start, end in spans for place in range(start, end) if text[start:end] == piece]
        assert covered == sorted(set(covered))
        rest = {text[place] for place in set(range(len(text))) - set(covered)}
        assert all(mark.isspace() or unicodedata.category(mark) in ("Cc", "Cf", "Mn") for mark in rest)


def test_a_long_line_is_split_as_a_short_one() -> None:
    for length in (4090, 4096, 4100, 8190):
        line = f"{('snow melts ' * length)[: length - 20]} he said and left. The next one is short. And so on."
        assert split_sentences(line) == [part.strip() for part in sentencex.segment("en", line)]
    sentences = [f'Dr. Smith paid ${number}.50 for "good. soup" with J. R. Jones!' for number in range(300)]
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize("line", ["“" * 200_000, "“a. " * 50_000, "x" * 200_000])
def test_a_line_without_an_end_is_split_at_all(line: str) -> None:
    """In time that does not grow with its square, which would be hours."""
    assert "".join("".join(split_sentences(line)).split()) == "".join(line.split())


def test_the_fast_pattern_for_plain_text_splits_as_the_general_rules_do() -> None:
    draw = random.Random(5)
    for letters in ("aeB9_ .':,;-$\n\"!z0‘’“–…▃€", "".join(map(chr, range(128))), "ae9'’ ‘”—•£°.,"):
        for _ in range(2000):
            text = "".join(draw.choices(letters, k=draw.randint(1, 10)))
            general = [piece for piece in split_pieces(text + " é") if is_visible(piece)]
            assert [piece for piece in split_pieces(text) if is_visible(piece)] == general[:-1], repr(text)


@pytest.mark.parametrize(
    ("text", "rules", "words"),
    [
        ("我们去北京。", {}, list("我们去北京")),  # Han: by character
        ("カタカナ ที่นี่", {}, ["カタカナ", "ที่", "นี่"]),  # a run of katakana; marks stay with their letter
        ("हिन्दी में, Привет! שלום 한국어", {}, ["हिन्दी", "में", "привет", "שלום", "한국어"]),
        ("nai\u0308ve Straße", {}, ["na\u00efve", "straße"]),
        ("don't isn’t can't won't BANK'S", {}, [*"do not is not can not will not bank".split()]),
        ("I'm you're we've O'Brien he'd", {}, [*"i am you are we have o'brien he would".split()]),
        ("Can't", {"lowercase": False}, ["Can", "not"]),
        ("l'homme bank's 1,000", {"lang": "fr"}, ["l'homme", "bank's", "1,000"]),
        ("couldn't go", {"stopwords": ENGLISH, **DROP}, ["go"]),  # negated, and "not" is a stop word
        ("couldn't go", {"stopwords": frozenset({"go"}), **DROP}, ["could", "not"]),
        ("The Bank AND the banks", {"lowercase": False, "stopwords": ENGLISH, **DROP}, ["Bank", "banks"]),
        (
            "In 1998 ½ ٣ were 3rd covid19 u.s. can't 1,000",
            {},
            [*"in 1998 ½ ٣ were 3rd covid19 u.s can not 1000".split()],
        ),
        ("In 1998 ½ ٣ were 3rd covid19 u.s. can't naïve", {"alphabetic": True}, ["in", "were", "can", "naïve"]),
        ("Well - yes! 😀❤️🇩🇪 $5% ▃ | \ue000", {}, ["well", "yes", "😀", "❤️", "🇩🇪", "$", "5", "%", "\ue000"]),
        ("Well - yes! 😀 $", {"stopwords": ENGLISH, **DROP}, ["well", "yes", "😀"]),
    ],
)
def test_words_of_a_text(text: str, rules: dict[str, Any], words: list[str]) -> None:
    assert WordRules(**rules).words(text) == words


def test_every_token_has_its_place_and_the_reason_why_it_is_dropped() -> None:
    text = "The cat's 3 toys."
    spans = WordRules(stopwords=ENGLISH).spans(text)
    assert [(span.text, text[span.start : span.end], span.mass, span.reason) for span in spans] == [
        *(("the", "The", STOP_MASS, ""), ("cat", "cat", 1.0, ""), ("'s", "'s", 0.0, "clitic")),
        *(("3", "3", 1.0, ""), ("toys", "toys", 1.0, ""), (".", ".", 0.0, "punctuation")),
    ]
    assert WordRules(stopwords=ENGLISH, **DROP).spans(text)[0][3:] == (0.0, "stop word")


def test_stop_words_follow_the_language() -> None:
    assert {"the", "of", "not", "is"} <= ENGLISH and ENGLISH.isdisjoint({"good", "man", "say", "year"})
    assert stop_words("auto") == stop_words("auto", lang="en-US") == ENGLISH
    german = stop_words("auto", lang="de-AT")
    assert {"der", "und", "nicht"} <= german and german.isdisjoint({"the", "mensch", "jahr", "gut"})
    assert stop_words("auto", lang="no") == stop_words("auto", lang="nb") != frozenset()
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"wms: stopwords: there is no list for lang='la', so all words count alike"):
        assert stop_words("auto", "wms", "la") == frozenset()
    for words in (["Cat", "DOG"], {"Cat", "DOG"}, np.array(["Cat", "DOG"])):
        assert stop_words(words) == {"cat", "dog"}
    for wrong in ("german", 5, ["a", 3], iter(["a"])):
        with pytest.raises(InputError, match="stopwords: expected .*, but"):
            stop_words(wrong)


def test_a_missing_list_is_reported_once_and_with_its_metric(recwarn: pytest.WarningsRecorder) -> None:
    warn_once.cache_clear()
    movers.wms(["a"], ["b"], lang="xx", temperature=1)
    assert [str(warning.message)[:14] for warning in recwarn if "no list" in str(warning.message)] == ["wms: stopwords"]


@pytest.mark.parametrize("form", ["NFD", "NFC"])
def test_equivalent_unicode_forms_are_one_word(form: Literal["NFD", "NFC"]) -> None:
    """Files from macOS and PDF tools have decomposed accents, which look the same."""
    text = unicodedata.normalize(form, "Le café de Mañana, 한국어")
    assert WordRules().words(text) == ["le", "café", "de", "mañana", "한국어"]
    assert movers.wms([text], ["Le café de Mañana, 한국어"])["score"] == pytest.approx(1)


def test_signatures_name_the_stop_words() -> None:
    assert name_stop_words("auto", "en") == name_stop_words("english", "de") == "english"
    assert name_stop_words("auto", "la") is None and name_stop_words(None) is None
    german = name_stop_words("auto", "de-CH")
    own = name_stop_words(sorted(stop_words("auto", lang="de")))
    assert german and own and german.removeprefix("de") == own.removeprefix("list")  # a digest of the words
    lists = [["new york"], ["new", "york"], ["new", "york "], ['new", "york'], []]
    assert len({name_stop_words(words) for words in lists}) == len(lists)
    assert name_stop_words(["w43385"]) != name_stop_words(["w68515"])  # equal in their first eight digits
    assert name_stop_words(["a", "b"]) == name_stop_words(("B", "a"))

from __future__ import annotations

import time
import unicodedata
import warnings
from typing import Any

import numpy as np
import pytest
import sentencex

from movers.errors import warn_once
from movers.texts import (
    WordRules,
    is_mostly_non_latin,
    is_visible,
    name_stop_words,
    sentence_spans,
    split_pieces,
    split_sentences,
    stop_words,
    token_spans,
)


def words(text: str, **rules: Any) -> list[str]:
    return [span.text for span in WordRules(**rules).spans(text) if span.kept]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith paid $3.50.", "He left at 5 p.m. with J. R. Jones!"],
        ["Mr. and Mrs. Lane live in the U.S.", "They moved in Jan. 2010."],
        ["Prof. Ode met Gen. Hart at 10 a.m. on St. Mary St. yesterday."],
        ["It needs fruit, e.g. apples, i.e. food, etc.", "The end."],
        ["No. 5 is alive.", "Fig. 3 shows it."],
        ["Sales rose 3.5 million.", "Up 2.5%!", "Really?"],
        ['He said "Stop."', "Then he left."],
        ["He said, “I will go. You stay.”", "She cried."],
        ["Wait... what?", "Yes."],
        ["no capital", "second line"],
    ],
)
def test_english_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    joint = "\n" if sentences[0] == "no capital" else " "
    assert split_sentences(joint.join(sentences)) == sentences


@pytest.mark.parametrize(
    ("lang", "sentences", "joint"),
    [
        ("zh", ["他来了。", "她走了！", "真的吗？"], ""),
        ("ja", ["これは文です。", "次の文です。"], ""),
        ("hi", ["यह पहला वाक्य है।", "यह दूसरा है।"], " "),
        ("ru", ["Это первое.", "Это второе!"], " "),
        ("ar", ["هذا أول.", "وهذا ثان؟", "نعم."], " "),
        ("el", ["Αυτό είναι ένα.", "Αυτό είναι δύο."], " "),
        ("de", ["Das ist z.B. ein Satz.", "Das ist noch einer."], " "),
    ],
)
def test_other_scripts_have_sentences_too(lang: str, sentences: list[str], joint: str) -> None:
    assert split_sentences(joint.join(sentences), lang) == sentences


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n \t\n", "\u2028"])
def test_a_line_break_always_ends_a_sentence(end: str) -> None:
    assert split_sentences(f"A title{end}and a line{end}") == ["A title", "and a line"]


@pytest.mark.parametrize("text", ["", " ", "\n\t\n", "\u00a0", "\u3000\n"])
def test_a_blank_text_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def random_texts(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    alphabet = list("aB z.!?…,;:\"'“”()[]$%0123 \n\t-。！？") + [
        "Dr. ",
        "U.S. ",
        " e.g. ",
        "...",
        "の",
        "ก",
        "é",
        "e\u0301",
        "😀",
    ]
    return ["".join(generator.choice(alphabet, size=generator.integers(1, 60))) for _ in range(count)]


def test_splitting_loses_no_visible_character_and_copies_sentences_in_order() -> None:
    for text in random_texts(500, seed=1):
        sentences = split_sentences(text)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        position = 0
        for sentence in sentences:
            assert sentence == sentence.strip() != ""
            position = text.index(sentence, position) + len(sentence)


def test_tokens_stand_where_their_offsets_say_and_cover_all_that_is_visible() -> None:
    for text in random_texts(500, seed=2):
        spans = token_spans(text)
        covered: set[int] = set()
        for piece, start, end in spans:
            assert text[start:end] == piece
            assert covered.isdisjoint(range(start, end))
            covered.update(range(start, end))
        assert [start for _, start, _ in spans] == sorted(start for _, start, _ in spans)
        left = {text[place] for place in range(len(text)) if place not in covered}
        assert all(mark.isspace() or unicodedata.category(mark) in ("Cc", "Cf", "Mn") for mark in left)


def test_pieces_put_together_are_the_text_and_the_visible_ones_are_its_tokens() -> None:
    for text in random_texts(300, seed=3):
        pieces = split_pieces(text)
        assert "".join(pieces) == text
        assert [piece for piece in pieces if is_visible(piece)] == [piece for piece, _, _ in token_spans(text)]


def test_sentence_spans_hold_the_sentences() -> None:
    for text in [*random_texts(300, seed=4), "Go. Go. Go.", "a\na\n a"]:
        spans = sentence_spans(text)
        assert [text[begin:end] for begin, end in spans] == split_sentences(text)
        assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize("piece", ["", " ", "\n", "\t\u00a0", "\u200b", "\ufeff", "\u2028"])
def test_space_and_format_characters_show_nothing(piece: str) -> None:
    assert not is_visible(piece) and token_spans(piece) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我们去北京。", list("我们去北京")),  # Han: by character
        ("ひらがな", list("ひらがな")),
        ("カタカナ", ["カタカナ"]),  # UAX #29 keeps a run of katakana together
        ("ไทย", list("ไทย")),
        ("ที่นี่", ["ที่", "นี่"]),  # marks stay with their letter
        ("हिन्दी में लिखा है", ["हिन्दी", "में", "लिखा", "है"]),
        ("اللُّغَة العربية", ["اللُّغَة", "العربية"]),
        ("Привет, мир!", ["привет", "мир"]),
        ("한국어 문장입니다.", ["한국어", "문장입니다"]),
        ("Ελληνικά λόγια", ["ελληνικά", "λόγια"]),
        ("nai\u0308ve Straße", ["nai\u0308ve", "straße"]),
        ("שלום עולם", ["שלום", "עולם"]),
    ],
)
def test_words_exist_in_every_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't", ["do"]),
        ("isn’t", ["is"]),
        ("can't won't shan't", ["can", "will", "shall"]),
        ("bank's banks'", ["bank", "banks"]),
        ("I'm you're we've she'll he'd it's", ["i", "you", "we", "she", "he", "it"]),
        ("O'Brien d'accord", ["o'brien", "d'accord"]),
        ("BANK'S DON'T", ["bank", "do"]),
    ],
)
def test_english_clitics_are_cut_off(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_negation_keeps_its_case_where_case_is_kept() -> None:
    assert words("Can't Don't can't Won't", lowercase=False) == ["Can", "Do", "can", "Will"]


def test_clitics_of_other_languages_are_left_alone() -> None:
    assert words("l'homme c'est bank's", lang="fr") == ["l'homme", "c'est", "bank's"]


def test_a_negated_auxiliary_is_a_stop_word_where_not_is_one() -> None:
    assert words("couldn't go", stopwords=stop_words("english")) == ["go"]
    assert words("couldn't go", stopwords=frozenset({"go"})) == ["could"]


def test_numbers_are_dropped_unless_kept_and_mixed_tokens_are_words() -> None:
    text = "In 1998 about 3.5 or 1,000 of ½ and ٣ were 3rd covid19"
    assert words(text) == ["in", "about", "or", "of", "and", "were", "3rd", "covid19"]
    kept = words(text, keep_numbers=True)
    assert [word for word in kept if word not in words(text)] == ["1998", "3.5", "1,000", "½", "٣"]


def test_punctuation_and_symbols_are_dropped_unless_kept() -> None:
    assert words("Well - yes! 😀 $") == ["well", "yes"]
    assert words("Well - yes! 😀 $", punctuation=False) == ["well", "-", "yes", "!", "😀", "$"]


def test_case_is_kept_on_request_but_stop_words_are_found_in_any_case() -> None:
    assert words("The Bank AND the banks", lowercase=False, stopwords=stop_words("english")) == ["Bank", "banks"]


def test_every_token_is_reported_with_its_place() -> None:
    text = "The cat's 3 toys."
    spans = WordRules(stopwords=stop_words("english")).spans(text)
    assert [(span.text, text[span.start : span.end], span.kept) for span in spans] == [
        ("the", "The", False),
        ("cat", "cat's", True),
        ("3", "3", False),
        ("toys", "toys", True),
        (".", ".", False),
    ]


def test_words_are_the_kept_tokens_alone() -> None:
    rules = WordRules(stopwords=stop_words("english"))
    assert rules.words("Cats run. It is. ... Dogs.") == ["cats", "run", "dogs"]
    assert rules.words("It is. ...") == []


def test_the_english_list_holds_function_words_only() -> None:
    english = stop_words("english")
    assert {"the", "of", "and", "not", "is", "you"} <= english
    assert english.isdisjoint({"good", "man", "say", "new", "year"})
    assert all(word == word.lower().strip() for word in english)


def test_own_stop_words_are_taken_in_any_case_and_collection() -> None:
    for given in (["Cat", "DOG"], ("Cat", "DOG"), {"Cat", "DOG"}, {"Cat": 1, "DOG": 2}, np.array(["Cat", "DOG"])):
        assert stop_words(given) == {"cat", "dog"}  # type: ignore[arg-type]
    assert stop_words(None) == stop_words([]) == frozenset()


def test_stop_words_that_are_no_words_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 'auto', 'english', None or a list of words, but got 'german'"):
        stop_words("german")
    with pytest.raises(TypeError, match="stopwords: expected words .*item 1 is int"):
        stop_words(["a", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="stopwords: expected 'auto', 'english', None or a list of words, but got int"):
        stop_words(5)  # type: ignore[arg-type]


def test_stop_words_follow_the_language_and_english_ones_stay_the_same() -> None:
    assert stop_words("auto") == stop_words("auto", lang="en-US") == stop_words("english")
    german = stop_words("auto", lang="de")
    assert german == stop_words("auto", lang="de-AT") and {"der", "und", "nicht"} <= german and "the" not in german
    assert not {"mensch", "jahr", "gut", "klein"} & german  # a longer list would drop words that mean something
    assert stop_words("auto", lang="no") == stop_words("auto", lang="nb") != frozenset()
    assert words("Die Katze und der Hund", stopwords=german) == ["katze", "hund"]


def test_a_language_without_a_list_keeps_all_words_and_says_so_once() -> None:
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"wms: stopwords: there is no list for lang='la', so no words are dropped"):
        assert stop_words("auto", "wms", "la") == frozenset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stop_words("auto", "wms", "la") == frozenset()


def test_signatures_tell_which_stop_words_were_dropped() -> None:
    assert name_stop_words("auto", "en") == name_stop_words("english", "de") == "english"
    assert name_stop_words("auto", "la") is None and name_stop_words(None, "de") is None
    german = name_stop_words("auto", "de")
    assert german is not None and german.startswith("de-") and german == name_stop_words("auto", "de-CH")
    # the digest is that of the words, so that another version of the package with other words shows
    assert german.removeprefix("de") == (name_stop_words(sorted(stop_words("auto", lang="de"))) or "").removeprefix(
        "list"
    )


def test_stop_words_that_can_be_read_once_only_are_refused() -> None:
    with pytest.raises(
        TypeError, match="stopwords: expected 'auto', 'english', None or a list of words, but got generator"
    ):
        stop_words(word for word in ["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("123 !?", False),
        ("Hello мир", False),
        ("Привет world мир", True),
        ("我们 ok", False),
        ("我们去", True),
    ],
)
def test_scripts_are_told_by_the_majority_of_letters(text: str, expected: bool) -> None:
    assert is_mostly_non_latin(text) is expected


def test_the_fast_path_for_plain_text_cuts_as_the_general_rules_do() -> None:
    import random

    draw = random.Random(5)
    for letters in ("aeB9_ .':,;-$\n\"!z0‘’“–…▃€", "".join(map(chr, range(128))), "ae9'’ ‘”—•£°.,"):
        for _ in range(5000):
            text = "".join(draw.choice(letters) for _ in range(draw.randint(1, 10)))
            general = [piece for piece in split_pieces(text + " é") if is_visible(piece)]
            assert [piece for piece in split_pieces(text) if is_visible(piece)] == general[:-1], repr(text)
            assert "".join(split_pieces(text)) == text


def test_an_apostrophe_before_a_vowel_is_no_part_of_the_word() -> None:
    assert [word for word, _, _ in token_spans("‘Yes’ and 'apple' — l'amour")] == [
        *("‘", "Yes", "’", "and", "'", "apple", "'", "—", "l'amour")
    ]


def test_a_long_sentence_ends_where_it_ends_wherever_a_line_is_cut() -> None:
    quotation = "“" + "Snow melts. " * 20 + "Ice thaws.” "
    for length in [*range(4080, 4110), 8190, 12_000]:
        for inside in ("", quotation) if length < 8000 else ("",):
            words = ("snow melts " * length)[: length - len(inside) - 20]
            line = f"{words} {inside}he said and left. The next one is short. And so on."
            assert split_sentences(line) == [part.strip() for part in sentencex.segment("en", line)]
            assert len(split_sentences(line)) == 3


def test_a_long_line_has_the_sentences_that_it_has_in_parts() -> None:
    sentences = [f'Dr. Smith paid ${number}.50 for "good. soup" at 5 p.m. with J. R. Jones!' for number in range(300)]
    assert split_sentences(" ".join(sentences)) == sentences
    unbroken = "word " * 3000 + "end."
    assert split_sentences(f"Short one. {unbroken} Another.") == ["Short one.", unbroken, "Another."]


@pytest.mark.parametrize("line", ["“" * 200_000, "(" * 200_000, "“a. " * 50_000, "x" * 200_000])
def test_the_time_for_a_line_does_not_grow_with_its_square(line: str) -> None:
    begun = time.process_time()
    sentences = split_sentences(line)
    assert time.process_time() - begun < 3.0
    assert "".join("".join(sentences).split()) == "".join(line.split())


def test_lists_of_stop_words_are_named_apart() -> None:
    lists = [["new york"], ["new", "york"], ["new", "york "], ['new", "york'], []]
    assert len({name_stop_words(words) for words in lists}) == len(lists)
    assert name_stop_words(["a", "b"]) == name_stop_words(("B", "a")) and name_stop_words(None) is None

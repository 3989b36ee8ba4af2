"""An encoder that cannot read a language is told of once, with a remedy; texts it can read are left in peace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_model, tiny_table, tiny_tokenizer

import movers
from movers.errors import warn_once
from movers.scores.languages import declared_languages, language_of, language_warning, pieces_per_word

GERMAN = ["Die Regierung will die Steuern für kleine Unternehmen senken, aber nicht in diesem Jahr."]
FINNISH = ["Hallitus haluaa alentaa pienyritysten veroja tänä vuonna."]
ENGLISH = ["The government wants to cut taxes for small companies, but not this year."]


@pytest.fixture(autouse=True)
def nothing_warned_before() -> Iterator[None]:
    warn_once.cache_clear()
    yield
    warn_once.cache_clear()


def warned(*arguments: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        language_warning(*arguments, **options)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_a_language_that_the_encoder_does_not_declare_is_warned_of_once(model: str) -> None:
    encoder = movers.load_encoder(model)
    (message,) = warned("wms", encoder, GERMAN, "de-AT")
    assert message.startswith("wms: lang='de-AT' is outside the languages of") and "(en)" in message
    assert "use " in message and "multilingual" in message
    assert warned("wms", encoder, GERMAN, "de-AT") == []
    assert warned("sms", encoder, ENGLISH, "en-GB") == []


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_german_texts_are_recognized_where_lang_was_not_given(model: str) -> None:
    (message,) = warned("moverscore", movers.load_encoder(model), GERMAN)
    assert "the texts look like 'de'" in message


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_words_in_many_pieces_are_warned_of(model: str) -> None:
    encoder = movers.load_encoder(model)
    pieces = pieces_per_word(encoder, FINNISH)
    assert pieces is not None and pieces > 2.5
    (message,) = warned("moverscore", encoder, FINNISH)
    assert "into more than 2.5 pieces on average" in message


def test_pieces_are_those_of_words_without_marks_and_special_tokens() -> None:
    encoder = movers.load_encoder((tiny_model(layers=1), tiny_tokenizer()))
    assert pieces_per_word(encoder, ["the cat, the dog!"]) == 1
    assert pieces_per_word(encoder, ["the zebra"]) == (1 + 5) / 2  # the tiny vocabulary spells zebra
    assert pieces_per_word(encoder, ["... 123"]) is None


def test_an_encoder_of_unknown_languages_is_judged_by_its_pieces_alone() -> None:
    encoder = movers.load_encoder((tiny_model(layers=1), tiny_tokenizer()))
    assert declared_languages(encoder) is None
    assert warned("moverscore", encoder, ["the cat sat on the mat"], "de") == []
    assert "pieces" in warned("moverscore", encoder, GERMAN, "de")[0]


def test_word_vectors_of_a_file_know_whole_words_only(vector_file: Callable[..., Path]) -> None:
    encoder = movers.load_encoder(str(vector_file(tiny_table(["katze", "hund"]))))
    assert pieces_per_word(encoder, GERMAN) is None and warned("wms", encoder, GERMAN, "de") == []


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("---\nlanguage: de\n---\n", {"de"}),
        ("---\ntags:\n- a\nlanguage:\n- en\n- pt-BR\nlicense: mit\n---\n", {"en", "pt"}),
        ("---\nlanguage: [en, fr]\n---\n", {"en", "fr"}),
        ("---\nlanguage:\n- multilingual\n- en\n---\n", None),
        ("# A model\n\nlanguage: de\n", None),
    ],
)
def test_a_model_card_says_which_languages_a_folder_reads(
    header: str, languages: set[str] | None, tmp_path: Path
) -> None:
    tiny_model(layers=1).save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text(header)
    assert declared_languages(movers.load_encoder(str(tmp_path / "m"))) == languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Le gouvernement veut baisser les impôts des petites entreprises, mais pas cette année.", "fr"),
        ("El gobierno quiere bajar los impuestos de las pequeñas empresas, pero no este año.", "es"),
        ("Правительство хочет снизить налоги, но не в этом году, и это не всё.", "ru"),
        (GERMAN[0], "de"),
        (ENGLISH[0], None),
        ("Adolfo Suárez Madrid–Barajas Airport, Paracuellos de Jarama, San Sebastián de los Reyes", None),
        ("Die Katze", None),
    ],
)
def test_prose_is_recognized_by_its_stop_words(text: str, language: str | None) -> None:
    assert language_of([text]) == language


def test_a_language_is_recognized_from_eight_words_on() -> None:
    assert language_of(["Die Katze schläft auf dem Sofa,"], "en") is None
    assert language_of(["Die Katze schläft auf dem Sofa, und"]) is None
    assert language_of(["Die Katze schläft auf dem Sofa, und der"]) == "de"


@pytest.mark.data
@pytest.mark.parametrize("name", ["wmt17_seg_da_to_en", "webnlg2020_en", "summeval", "bagel", "chaganty18_cnndm"])
def test_no_judged_english_text_is_warned_of(name: str, judged: Callable[[str], list[dict[str, Any]]]) -> None:
    """In calls of four texts, which are harder to judge than long ones."""
    texts = [row["candidate"] for row in judged(name)[:1200]]
    encoder = movers.load_encoder("wordllama")
    for start in range(0, len(texts), 4):
        assert warned("wms", encoder, texts[start : start + 4]) == [], texts[start : start + 4]

"""A language that the encoder was not trained on is warned about once, with a remedy; other texts are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_model, tiny_table, tiny_tokenizer

import movers
from movers.errors import warn_once
from movers.scores.languages import language_of, language_warning

GERMAN = ["Die Regierung will die Steuern für kleine Unternehmen senken, aber nicht in diesem Jahr."]
FINNISH = ["Hallitus haluaa alentaa pienyritysten veroja tänä vuonna."]
ENGLISH = ["The government wants to cut taxes for small companies, but not this year."]


@pytest.fixture(autouse=True)
def nothing_warned_before() -> Iterator[None]:
    warn_once.cache_clear()
    yield
    warn_once.cache_clear()


def warned(*arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        language_warning(*arguments)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_texts_that_the_encoder_cannot_read_are_warned_about_once(model: str) -> None:
    encoder = movers.load_encoder(model)
    (message,) = warned("wms", encoder, GERMAN, "de-AT")
    assert message.startswith("wms: lang='de-AT' is outside the languages of") and "(en)" in message
    assert "use " in message and "multilingual" in message
    assert warned("wms", encoder, GERMAN, "de-AT") == []
    assert "the texts look like 'de'" in warned("moverscore", encoder, GERMAN)[0]
    assert "into more than 2.5 pieces on average" in warned("moverscore", encoder, FINNISH)[0]
    assert warned("sms", encoder, ENGLISH, "en-GB") == []


def test_an_encoder_of_unknown_languages_is_judged_by_its_pieces_alone(vector_file: Callable[..., Path]) -> None:
    encoder = movers.load_encoder((tiny_model(layers=1), tiny_tokenizer()))
    assert warned("moverscore", encoder, ["the cat sat on the mat"], "de") == []
    assert "pieces" in warned("moverscore", encoder, GERMAN, "de")[0]
    words = movers.load_encoder(str(vector_file(tiny_table(["katze", "hund"]))))  # knows whole words only
    assert warned("wms", words, GERMAN, "de") == []


def test_prose_is_recognized_by_its_stop_words() -> None:
    french = "Le gouvernement veut baisser les impôts des petites entreprises, mais pas cette année."
    names = "Adolfo Suárez Madrid–Barajas Airport, Paracuellos de Jarama, San Sebastián de los Reyes"
    assert language_of([french]) == "fr" and language_of(GERMAN) == "de"
    assert [language_of([text]) for text in (*ENGLISH, names, "Die Katze")] == [None] * 3

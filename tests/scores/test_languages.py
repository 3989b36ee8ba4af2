"""A warning, once and with a remedy, about an encoder that was not trained on the language of the texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_model, tiny_table, tiny_tokenizer

import movers
from movers.errors import warn_once
from movers.scores.languages import language_warning

GERMAN = ["Die Regierung will die Steuern für kleine Unternehmen senken, aber nicht in diesem Jahr."]
FINNISH = ["Hallitus haluaa alentaa pienyritysten veroja tänä vuonna."]
ENGLISH = ["The government wants to cut taxes for small companies, but not this year."]
NAMES = ["Adolfo Suárez Madrid–Barajas Airport, Paracuellos de Jarama, San Sebastián de los Reyes"]


def warned(encoder: Any, texts: list[str], lang: str = "en", fresh: bool = True) -> str:
    if fresh:
        warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        language_warning("wms", encoder, texts, lang)
    return "".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_a_language_is_outside_by_lang_by_stop_words_or_by_pieces(model: str) -> None:
    encoder = movers.load_encoder(model)
    assert "wms: lang='de-AT' is outside the languages of" in (message := warned(encoder, GERMAN, "de-AT"))
    assert "(en)" in message and "multilingual" in message and not warned(encoder, GERMAN, "de-AT", fresh=False)
    assert "the texts look like 'de'" in warned(encoder, GERMAN)
    assert "into more than 2.5 pieces on average" in warned(encoder, FINNISH)
    assert not warned(encoder, ENGLISH, "en-GB") and not warned(encoder, NAMES) and not warned(encoder, ["Die Katze"])


@pytest.mark.parametrize(
    ("header", "known"), [("tags:\n- a\nlanguage:\n- en\n- pt-BR\nlicense: mit", "en, pt"), ("language: multi", "")]
)
def test_a_model_card_and_word_vectors_say_which_languages_they_know(
    header: str, known: str, tmp_path: Path, vector_file: Callable[..., Path]
) -> None:
    tiny_model(layers=1).save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text(f"---\n{header}\n---\n")
    message = warned(movers.load_encoder(tmp_path / "m"), ["the cat sat on the mat"], "fr")
    assert (f"is outside the languages of m ({known})" in message) if known else not message
    assert not warned(movers.load_encoder(vector_file(tiny_table(["katze", "hund"]))), GERMAN, "de")


@pytest.mark.data
@pytest.mark.parametrize("name", ["wmt17_seg_da_to_en", "webnlg2020_en", "summeval", "bagel", "chaganty18_cnndm"])
def test_no_judged_english_text_is_warned_of(name: str, judged: Callable[[str], list[dict[str, Any]]]) -> None:
    texts = [row["candidate"] for row in judged(name)[:1200]]
    encoder = movers.load_encoder("wordllama")
    for start in range(0, len(texts), 4):  # short calls are harder to judge
        assert not warned(encoder, texts[start : start + 4]), texts[start : start + 4]

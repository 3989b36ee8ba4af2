"""A warning, once and with a remedy, about an encoder that was not trained on the language of the texts."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import ROOT, tiny_model, tiny_table, tiny_tokenizer

import movers
from movers.errors import warn_once
from movers.scores.languages import language_warning

GERMAN = ["Die Regierung will die Steuern für kleine Unternehmen senken, aber nicht in diesem Jahr."]
FINNISH = ["Hallitus haluaa alentaa pienyritysten veroja tänä vuonna."]
ENGLISH = ["The government wants to cut taxes for small companies, but not this year."]
NAMES = ["Adolfo Suárez Madrid–Barajas Airport, Paracuellos de Jarama, San Sebastián de los Reyes"]


CHINESE = ["我爱北京天安门。今天天气很好。", "我喜欢北京的天安门。"]


def warned(encoder: Any, texts: list[str], lang: str = "en", fresh: bool = True) -> str:
    options = SimpleNamespace(lang=lang)
    metric: Any = SimpleNamespace(name="wms", encoder=encoder, options=options, compared_with="references")
    return "".join(warnings_of(lambda: language_warning(metric, texts), fresh))


def warnings_of(call: Callable[[], object], fresh: bool = True) -> list[str]:
    if fresh:
        warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_a_language_is_outside_by_lang_by_stop_words_or_by_pieces(model: str) -> None:
    encoder = movers.load_encoder(model)
    assert "wms: lang='de-AT' is outside the languages of" in (message := warned(encoder, GERMAN, "de-AT"))
    assert "(en)" in message and "multilingual" in message and not warned(encoder, GERMAN, "de-AT", fresh=False)
    assert "the texts look like 'de'" in warned(encoder, GERMAN)
    assert "into more than 2.5 pieces" in warned(encoder, FINNISH)
    mixed = "die und nicht wir {} Adolfo Barajas the of"  # stop words of German, and half as many of English
    assert warned(encoder, [mixed.format("Jarama")]) and not warned(encoder, [mixed.format("and")])
    assert not warned(encoder, ENGLISH, "en-GB") and not warned(encoder, NAMES) and not warned(encoder, ["Die Katze"])


@pytest.mark.parametrize(
    ("header", "known"),
    [("tags:\n- a\nlanguage:\n- en\n- pt-BR\nlicense: mit", "en, pt"), ("language: multi", ""), ("language: de", "de")],
)
def test_a_model_card_and_word_vectors_say_which_languages_they_know(
    header: str, known: str, tmp_path: Path, vector_file: Callable[..., Path]
) -> None:
    tiny_model(layers=1).save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text(f"---\n{header}\n---\n")
    encoder = movers.load_encoder(tmp_path / "m")
    assert not warned(encoder, ["the cat sat on the mat"], "")  # a metric without `lang`
    message = warned(encoder, ["the cat sat on the mat"], "fr")
    assert (f"is outside the languages of m ({known})" in message) if known else not message
    assert not warned(movers.load_encoder(vector_file(tiny_table(["katze", "hund"]))), GERMAN, "de")


@pytest.mark.parametrize("name", movers.registry.METRICS)
def test_a_call_gives_one_warning_that_names_the_language_and_a_remedy(name: str) -> None:
    metric = getattr(movers, name)
    (message,) = warnings_of(lambda: metric(CHINESE, CHINESE))
    assert message.startswith(f"{name}: the texts look like 'zh'") and "cc." not in message
    remedy = "use lang='zh' and a multilingual encoder" if "lang" in inspect.signature(metric).parameters else "use a m"
    assert remedy in message
    for texts in (["15"], ["a", "é", "ß"], ["α", "β", "é", "x"]):
        assert not warnings_of(lambda texts=texts: metric(texts[:1], [texts]))


def test_the_recipe_for_other_languages_works_without_a_warning(tmp_path: Path) -> None:
    model, tokenizer = tiny_model(layers=5), tiny_tokenizer()
    tokenizer.add_tokens(sorted({*"".join(CHINESE)}))
    model.resize_token_embeddings(len(tokenizer))
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    (tmp_path / "README.md").write_text("---\nlanguage: multilingual\n---\n")
    calls = re.search(r"\nencoder = .*?\n(.*?)```", (ROOT / "docs" / "languages.md").read_text(), re.DOTALL)[1]
    names: Any = {"movers": movers, "predictions": CHINESE, "references": CHINESE[::-1], "encoder": str(tmp_path)}
    for call in calls.splitlines():
        assert not warnings_of(lambda call=call: exec(f"result = {call}", names))
        assert 0 <= names["result"]["score"] < 1 and names["result"]["n_unknown"] == 0
    (message,) = warnings_of(lambda: movers.wms(CHINESE, CHINESE, model=str(tmp_path)))
    assert message == "wms: the texts look like 'zh', but the stop words are English; use lang='zh'"


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["wmt17_seg_da_to_en", "webnlg2020_en", "summeval", "bagel", "chaganty18_cnndm", "stsb"]
)
def test_no_judged_english_text_is_warned_of(name: str, judged: Callable[[str], list[dict[str, Any]]]) -> None:
    texts = [row["candidate"] for row in judged(name)[:1200]]
    encoder = movers.load_encoder("wordllama")
    for start in range(0, len(texts), 4):  # short calls are harder to judge
        assert not warned(encoder, texts[start : start + 4]), texts[start : start + 4]

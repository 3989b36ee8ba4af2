"""Options: typed, closed, documented, written once."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import movers
from movers import IdfTable, InputError
from movers.registry import METRICS, find_metric
from movers.scores.clark import SmsOptions, WmsOptions
from movers.scores.options import option_rows

REFERENCE_METRICS = [name for name, spec in METRICS.items() if spec.compared_with == "references"]


@pytest.mark.parametrize("name", REFERENCE_METRICS)
def test_a_functions_signature_and_help_are_the_fields_of_its_options(name: str) -> None:
    function = getattr(movers, name)
    parameters = [*inspect.signature(function).parameters.values()]
    assert [part.name for part in parameters[:2]] == ["predictions", "references"]
    own = fields(find_metric(name).options_class)
    assert {part.name: part.default for part in parameters[2:]} == {item.name: item.default for item in own}
    for item in own:
        assert item.metadata["help"] in function.__doc__
    assert "{options}" not in function.__doc__


def test_wms_has_no_options_of_sentences_and_sms_none_of_words() -> None:
    assert not [item.name for item in fields(WmsOptions) if item.name.startswith("sentence")]
    assert "weights" not in [item.name for item in fields(SmsOptions)]


def test_evaluates_names_are_translated_and_contradict_ours_with_a_word() -> None:
    spec = find_metric("bertscore_emd")
    theirs: Any = spec.parse({"model_type": "a", "num_layers": 4, "nthreads": 3, "verbose": True, "idf": True})
    assert (theirs.model, str(theirs.layer), theirs.threads, theirs.progress) == ("a", "4", 3, True)
    assert (theirs.idf, theirs.weights, theirs.nthreads, theirs.verbose) == ("corpus", "idf", None, False)
    same: Any = spec.parse({"num_layers": 3, "layer": 3, "rescale": False, "rescale_with_baseline": True})
    assert (str(same.layer), same.rescale) == ("3", True)
    for first, second in (("nthreads", "threads"), ("num_layers", "layer"), ("model_type", "model")):
        with pytest.raises(InputError, match=f"bertscore_emd: {first}: expected it or {second}, .* got both: 3 and 2"):
            spec.parse({first: 3, second: 2})
    with pytest.raises(InputError, match="baseline_path: expected rescale_with_baseline=True beside it, but got 'a'"):
        spec.parse({"baseline_path": "a"})


def test_options_of_a_metrics_own_come_before_those_of_all() -> None:
    names = [row.name for row in option_rows(WmsOptions)]
    assert names[0] == "model" and names[-1] == "shared_pass"
    assert max(map(names.index, ("stopwords", "weights"))) < min(map(names.index, ("device", "multi_ref", "idf")))


def test_an_option_is_shown_with_its_values_choices_and_default() -> None:
    rows = {row.name: row for row in option_rows(WmsOptions)}
    assert rows["multi_ref"][:3] == ("multi_ref", "'max', 'mean'", "max")
    assert rows["normalize"].choices == (True, False)
    assert rows["threads"].values == "int or None" and rows["threads"].choices == ()
    assert rows["stopwords"].values == "'auto', 'english', list of words or None"
    bert = {row.name: row.alias_of for row in option_rows(find_metric("bertscore_emd").options_class)}
    assert (bert["model_type"], bert["nthreads"], bert["layer"]) == ("model", "threads", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"stop_words": None},
            r"unknown option 'stop_words' \(did you mean 'stopwords'\?\); valid options: average",
        ),
        ({"n_gram": 2}, "unknown option 'n_gram'.*valid options: average, batch_tokens, context, .*, window, workers$"),
        ({"weights": "tf"}, "weights: expected one of 'count', 'uniform', 'idf', 'norm', None, but got 'tf'"),
        ({"multi_ref": "min"}, "multi_ref: expected one of 'max', 'mean', but got 'min'"),
        ({"distance": "manhattan"}, "distance: expected one of 'euclidean', 'cosine'"),
        ({"layer": "best"}, "layer: expected one of 'pmeans', 'routing', 'last', 'mean' or a layer number"),
        ({"truncation": True}, "truncation: expected one of 'window', 'error', 'cut', but got True"),
        ({"device": 0}, "device: expected a text, but got 0"),
        ({"lowercase": "yes"}, "lowercase: expected one of True, False, but got 'yes'"),
        ({"normalize": None}, "normalize: expected one of True, False, but got None"),
        ({"progress": "on"}, "progress: expected one of True, False, None, but got 'on'"),
        ({"threads": 0}, "threads: expected a whole number above zero, but got 0"),
        ({"window": -5}, "window: expected a whole number above zero"),
        ({"batch_tokens": 1.5}, "batch_tokens: expected a whole number above zero"),
        ({"lang": ""}, "lang: expected a text, but got ''"),
        ({"lang": "english"}, "lang: expected a language code such as 'en' or 'pt-BR', but got 'english'"),
        ({"lang": "xx"}, "lang: expected a language code"),
        ({"stopwords": "german"}, "stopwords: expected 'auto', 'english', None or a list of words, but got 'ger"),
        ({"stopwords": zip("a", strict=False)}, "stopwords: expected 'auto', 'english', None or a list of words"),
        ({"shared_pass": "yes"}, "shared_pass: expected a movers.SharedPass or None, but got str"),
        ({"idf": 3}, "idf: expected 'corpus', a saved table's path or an IdfTable, but got 3"),
        ({"idf": (IdfTable({}, 1), IdfTable({}, 2))}, "idf: expected one table for both sides, but got 2"),
        ({"idf": IdfTable({1: 1}, 1, "tokens", "x")}, "idf: expected a table of words, but got one of tok"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^wms: {message}"):
        movers.wms(["cat"], ["dog"], **options)


def test_sentences_take_their_vectors_from_a_contextual_encoder_only(tiny_bert: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="^sms: sentence_encoder: expected a contextual encoder, but wordllama-256@"):
        movers.sms(["A cat."], ["A dog."], sentence_encoder="wordllama")
    assert (
        f"|sentvec:{movers.load_encoder(tiny_bert).identity}-float32|"
        in (movers.sms(["A cat."], ["A dog."], sentence_encoder=tiny_bert)["signature"])
    )


def test_words_and_sentences_of_one_bag_have_one_encoder(tiny_bert: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="^swms: sentence_encoder: .* expected the same encoder as model"):
        movers.swms(["A cat."], ["A dog."], sentence_encoder=tiny_bert)
    assert movers.swms(["A cat."], ["A cat."], model=tiny_bert, sentence_encoder=tiny_bert)["scores"] == [1.0]


def test_norwegian_and_regions_are_languages() -> None:
    for lang in ("no", "pt-BR", "de"):
        assert f"|lang:{lang}|" in movers.wms(["katt"], ["katt"], lang=lang)["signature"]
    with pytest.raises(InputError, match="bertscore_emd: lang: expected a language code such as 'en'"):
        movers.bertscore_emd(["cat"], ["dog"], lang="english")


def test_presets_are_listed_and_set_defaults() -> None:
    rows = {row.name: row for row in option_rows(find_metric("moverscore").options_class)}
    assert rows["preset"].values == "'paper', 'translation', 'short', None"
    quality = find_metric("reference_free_summary_quality")
    assert {row.name: row.values for row in option_rows(quality.options_class)}["preset"] == "'paper', None"
    paper, shipped = (quality.parse(given) for given in ({"preset": "paper"}, {"preset": "paper", "model": "shipped"}))
    assert [(one.model, one.doc_reduce) for one in (paper, shipped)] == [("paper", "sum"), ("shipped", "sum")]  # type: ignore[attr-defined]


def test_an_encoder_that_is_none_is_told_with_metric_and_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="^moverscore: model: .*expected the folder of a transformers model"):
        movers.moverscore(["a"], ["b"], model=str(tmp_path))
    with pytest.raises(InputError, match="^wms: idf: "):
        movers.wms(["a"], ["b"], idf="no such file")

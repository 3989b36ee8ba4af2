"""Options: typed, closed, documented, declared once. What changes scores is in test_properties.py."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import movers
from movers import IdfTable, InputError
from movers.registry import METRICS, find_metric
from movers.scores.options import RunSettings, option_rows


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_at_most_20_options_and_its_function_documents_them(name: str) -> None:
    spec = find_metric(name)
    rows, settings = option_rows(spec.options_class), option_rows(RunSettings)
    evaluate = {"lang", "all_layers", "use_fast_tokenizer"} if name.startswith("bertscore") else set()
    assert len([row for row in rows if not row.alias_of and row.name not in evaluate]) <= 20
    function: Any = getattr(movers, name)
    first, second, *parameters = inspect.signature(function).parameters.values()
    assert (first.name, second.name) == ("predictions", spec.compared_with)
    assert {item.name: item.default for item in parameters} == {row.name: row.default for row in [*rows, *settings]}
    assert all(row.help in function.__doc__ for row in rows)
    assert [row.name for row in settings] == ["device", "dtype", "batch_size", "threads", "workers", "progress"]


def test_evaluates_names_are_translated_and_contradictions_are_errors() -> None:
    spec = find_metric("bertscore_emd")
    theirs: Any = spec.parse({"model_type": "a", "num_layers": 4, "nthreads": 3, "verbose": True, "idf": True})
    assert (theirs.model, str(theirs.layer), theirs.run.threads, theirs.run.progress) == ("a", "4", 3, True)
    assert (theirs.idf, theirs.weights) == ("corpus", "idf")
    theirs = spec.parse({"num_layers": 0, "rescale_with_baseline": True, "baseline_path": "a"})
    assert (str(theirs.layer), theirs.rescale) == ("0", "a")
    for alias, option in (("nthreads", "threads"), ("num_layers", "layer"), ("model_type", "model")):
        with pytest.raises(InputError, match=f"bertscore_emd: '{alias}' is an alias of '{option}'.* got 3 and 2"):
            spec.parse({alias: 3, option: 2})
    with pytest.raises(InputError, match="baseline_path='a' requires rescale_with_baseline=True"):
        spec.parse({"baseline_path": "a"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wms", {"stop_words": None}, r"unknown option 'stop_words' \(did you mean 'stopwords'\?\); valid options: al"),
        ("wms", {"n_gram": 2}, "unknown option 'n_gram'.*valid options: alphabetic, batch_size, .*, window, workers$"),
        ("wms", {"weights": "tf"}, "weights: expected one of 'count', 'uniform', 'idf', 'norm', None, but got 'tf'"),
        ("wms", {"layer": "best"}, "layer: expected 'pmeans', 'routing', 'last', 'mean', a layer number"),
        ("wms", {"normalize": None}, "normalize: expected one of True, False, but got None"),
        *(
            ("wms", {"threads": value}, "threads: expected a whole number above zero, but got")
            for value in (0, -1, 1.5, "2", True, [1])
        ),
        ("wms", {"lang": "english"}, "lang: expected a language code such as 'en' or 'pt-BR', but got 'english'"),
        (
            "wms",
            {"stopwords": "german"},
            "stopwords: expected 'auto', 'drop', 'english', None or a list of words, but got",
        ),
        ("wms", {"idf": (IdfTable({}, 1), IdfTable({}, 2))}, "idf: expected one table for both sides, but got 2"),
        ("wms", {"idf": IdfTable({1: 1}, 1, "tokens", "x")}, "idf: expected a table of words, but got one of tok"),
        ("wms", {"device": 5}, "device: expected a text, but got 5"),
        ("wms", {"preset": "novel"}, "preset: expected one of 'paper', None, but got 'novel'"),
        ("wms", {"temperature": 0}, "temperature: expected 'auto' or a number above zero, but got 0"),
        ("wms", {"weights": "uniform", "idf": "corpus"}, "idf: a table is given, but weights='uniform'"),
        ("swms", {"sentence_weights": "idf"}, "weights: 'idf' needs a table"),
        ("moverscore", {"n_gram": 0}, "n_gram: expected a whole number above zero or 'sentence', but got 0"),
        ("moverscore", {"aggregation": "max"}, "aggregation: expected 'pmeans', .* but got 'max'"),
        ("wms", {"idf": "per-side"}, "idf: expected one table for both sides, but got per-side"),
        ("moverscore", {"aggregation": 7}, "layer: expected a number from -7 to 6 .* but got 7"),
        ("moverscore", {"model": "."}, "model: .*expected the folder of a transformers model"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_options_are_errors_that_name_metric_and_option(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: {message}"):
        getattr(movers, name)(["cat"], ["dog"], **options)

from __future__ import annotations

from typing import Any

import pytest

import movers
from movers.errors import InputError
from movers.registry import METRICS, find_metric, parse_metric, parse_options, parse_value, score_many, split_metrics
from movers.scores.engine import score
from movers.weights import Corpus

PREDICTIONS = ["A man sells snow. It ships in boxes.", "The dog runs.", ""]
REFERENCES = [["Snow is sold by a man."], ["A dog ran. It was fast.", "The cat sleeps."], [""]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("none", None),
        ("None", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),  # Norwegian
        ("5", 5),
        ("-1", -1),
        ("0.25", 0.25),
        ("english", "english"),
        (" corpus ", "corpus"),
        ("4+6", "4+6"),
        ("/some/path,with=signs.txt", "/some/path,with=signs.txt"),
        ('["the", "a"]', ["the", "a"]),
        ("[1, 2]", [1, 2]),
        ('"no"', "no"),
        ('"5"', "5"),
    ],
)
def test_values_are_read_as_what_they_look_like(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", ["[the, a]", "[1, 2", '"no'])
def test_a_list_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="option value: expected"):
        parse_value(text)


def test_options_are_keys_and_values() -> None:
    assert parse_options(["n_gram=2", "drop-subwords=false", "lang=no", "model=a=b"]) == {
        "n_gram": 2,
        "drop_subwords": False,
        "lang": "no",
        "model": "a=b",
    }


@pytest.mark.parametrize("item", ["n_gram", "=2", " =2"])
def test_an_option_without_key_or_value_is_refused(item: str) -> None:
    with pytest.raises(InputError, match="option: expected key=value, but got"):
        parse_options([item])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("wms", {}),
        (" wms [ ] ", {}),
        ("wms[stopwords=none]", {"stopwords": None}),
        ('wms[stopwords=["a","b"],normalize=true]', {"stopwords": ["a", "b"], "normalize": True}),
        ('wms[normalize=true,stopwords=["a","b"]]', {"stopwords": ["a", "b"], "normalize": True}),
        ('wms[stopwords=["a"],model=x,lang=en]', {"stopwords": ["a"], "model": "x", "lang": "en"}),
    ],
)
def test_a_metric_with_options_in_brackets(text: str, options: dict[str, Any]) -> None:
    metric, found = parse_metric(text)
    assert (metric.name, found) == ("wms", options)


@pytest.mark.parametrize("text", ["", "wms[", "wms]", "wms(a=1)", "wms sms"])
def test_what_is_no_metric_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="metric: expected NAME"):
        parse_metric(text)


def test_an_unknown_metric_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        InputError, match=r"expected one of wms, .* but got 'moverscor' \(did you mean 'moverscore'\?\)"
    ):
        parse_metric("moverscor")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("wms", ["wms"]),
        ("wms, sms", ["wms", "sms"]),
        ("wms[a=1,b=2],sms", ["wms[a=1,b=2]", "sms"]),
        ("wms[a=1,b=[2,3]],sms", ["wms[a=1,b=[2,3]]", "sms"]),
        ("wms[a=[1,2],b=3],sms[c=[4]]", ["wms[a=[1,2],b=3]", "sms[c=[4]]"]),
        ("", []),
    ],
)
def test_a_list_of_metrics_is_cut_outside_of_brackets(text: str, parts: list[str]) -> None:
    assert split_metrics(text) == parts


# ---------------------------------------------------------------------------------------------------------------------
# Metrics by name


@pytest.mark.parametrize("name", [name for name, spec in METRICS.items() if spec.compared_with == "references"])
def test_a_spec_leads_to_the_function_and_to_the_same_scores(name: str) -> None:
    spec = find_metric(name)
    assert spec.function is getattr(movers, name)
    metric = spec.build(spec.parse({"multi_ref": "mean"}))
    assert score(metric, PREDICTIONS, REFERENCES) == spec.function(PREDICTIONS, REFERENCES, multi_ref="mean")
    with pytest.raises(InputError, match=f"{name}: unknown option 'modle' \\(did you mean 'model'"):
        spec.parse({"modle": 1})


def test_a_metric_and_its_spec_name_the_texts_to_compare_with_alike() -> None:
    for spec in METRICS.values():
        assert spec.metric_class.compared_with == spec.compared_with


def test_a_table_of_the_corpus_needs_the_texts_of_the_whole_call() -> None:
    spec = find_metric("wms")
    options = spec.parse({"idf": "corpus"})
    with pytest.raises(InputError, match="wms: idf: 'corpus' needs the texts of the whole call; pass an IdfTable here"):
        spec.build(options)
    metric = spec.build(options, Corpus(PREDICTIONS, REFERENCES))
    assert score(metric, PREDICTIONS, REFERENCES) == movers.wms(PREDICTIONS, REFERENCES, idf="corpus")


# ---------------------------------------------------------------------------------------------------------------------
# Several metrics in one pass


def test_several_metrics_give_what_each_gives_alone() -> None:
    names = ["wms", "sms[normalize=true]", "moverscore[idf=corpus]", "bertscore_emd"]
    results = movers.score_many(names, PREDICTIONS, REFERENCES)
    assert [*results] == names
    assert results["wms"] == movers.wms(PREDICTIONS, REFERENCES)
    assert results["sms[normalize=true]"] == movers.sms(PREDICTIONS, REFERENCES, normalize=True)
    alone = movers.moverscore(PREDICTIONS, REFERENCES, idf="corpus")
    assert results["moverscore[idf=corpus]"]["scores"] == pytest.approx(alone["scores"], abs=1e-6)
    assert results["moverscore[idf=corpus]"]["signature"] == alone["signature"]
    assert results["bertscore_emd"] == movers.bertscore_emd(PREDICTIONS, REFERENCES)


@pytest.mark.parametrize(
    ("metrics", "given", "message"),
    [
        ([], {"references": ["a"]}, "score_many: metrics: expected different metrics, but got none"),
        (["wms", "wms"], {"references": ["a"]}, "score_many: metrics: expected different metrics, but got wms, wms"),
        (["wms"], {"sources": ["a"]}, "wms: references: expected references to compare with, but got none"),
        (
            ["wms", "reference_free_summary_quality"],
            {"references": ["a"]},
            "reference_free_summary_quality: sources: expected sources to compare with, but got none",
        ),
        (["wms", "sms[x=1]"], {"references": ["a"]}, "sms: unknown option 'x'"),
        (["wms"], {"references": ["a", "b"]}, "equally many rows, but got 1 predictions and 2 references"),
    ],
    ids=["none", "twice", "no-references", "no-sources", "option", "rows"],
)
def test_what_cannot_be_scored_together_is_refused(metrics: list[str], given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score_many(metrics, ["a"], **given)

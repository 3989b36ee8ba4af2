from __future__ import annotations

from typing import Any

import pytest

from movers.registry import parse_metric, parse_options, parse_value, split_metrics


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

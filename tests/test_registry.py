"""Metrics by name, as strings with options, several at once; and signatures."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import movers
from movers.errors import InputError
from movers.registry import METRICS, find_metric, parse_metric, parse_options, parse_value, split_metrics
from movers.signature import short_digest, signature
from movers.version import VERSION


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("None", None), ("true", True), ("False", False), ("no", "no")),  # Norwegian
        *(("5", 5), ("-1", -1), ("0.25", 0.25), ("4+6", "4+6"), (" corpus ", "corpus"), ("/a,b=c.txt", "/a,b=c.txt")),
        *(('["the", "a"]', ["the", "a"]), ("[1, 2]", [1, 2]), ('"no"', "no"), ('"5"', "5")),
    ],
)
def test_values_are_read_as_what_they_look_like(text: str, value: Any) -> None:
    parsed = parse_value(text)
    assert parsed == value and type(parsed) is type(value)


def test_the_case_of_a_name_does_not_hide_what_is_meant() -> None:
    with pytest.raises(InputError, match=r"but got 'WMS' \(did you mean 'wms'\?\)"):
        find_metric("WMS")


def test_metrics_with_options() -> None:
    assert parse_options(["drop-subwords=false", "model=a=b"]) == {"drop_subwords": False, "model": "a=b"}
    for text, options in [
        ("wms", {}),
        (" wms [ ] ", {}),
        ('wms[stopwords=["a","b"],normalize=true,lang=en]', {"stopwords": ["a", "b"], "normalize": True, "lang": "en"}),
        (("wms", {"lang": "en"}), {"lang": "en"}),
    ]:
        spec, parsed = parse_metric(text)  # type: ignore[arg-type]
        assert (spec.name, parsed) == ("wms", options)
    parts = ["wms[a=[1,2],b=3]", "sms[c=[4]]", "swms"]
    assert split_metrics(", ".join(parts)) == parts and split_metrics("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "metric: expected NAME") for text in ("", "wms[", "wms]", "wms(a=1)", "wms sms", ("wms", 3))),
        ("moverscor", r"metric: expected one of wms, .* but got 'moverscor' \(did you mean 'moverscore'\?\)"),
        *((f"wms[{item}]", "option: expected key=value, but got") for item in ("n_gram", "=2")),
        *((f"wms[stopwords={value}]", "option value: expected a JSON list or text") for value in ("[the, a]", '"no')),
    ],
)
def test_what_is_no_metric_is_refused(text: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_metric(text)


def test_a_metric_has_one_function_and_closed_options() -> None:
    for name, spec in METRICS.items():
        assert find_metric(name).function is getattr(movers, name)
        assert spec.metric_class.compared_with == spec.compared_with
        with pytest.raises(InputError, match=f"{name}: unknown option 'modle' \\(did you mean 'model'"):
            spec.parse({"modle": 1})


@pytest.mark.parametrize(
    ("metrics", "texts", "message"),
    [
        ([], {"references": ["a"]}, "metrics: expected at least one metric, but got none"),
        (["wms", "wms"], {"references": ["a"]}, "metrics: expected different metrics, but got wms, wms"),
        (["wms"], {"sources": ["a"]}, "wms: references: expected references to compare with, but got none"),
        (["wms", "reference_free_summary_quality"], {"references": ["a"]}, "quality: sources: expected sources"),
        (["wms", "sms[x=1]"], {"references": ["a"]}, "sms: unknown option 'x'"),
        (["wms"], {"references": ["a", "b"]}, "equally many rows, but got 1 predictions and 2 references"),
    ],
)
def test_what_cannot_be_scored_together_is_refused(metrics: list[str], texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        movers.score_many(metrics, ["a"], **texts)


def test_a_signature_is_one_line_of_fields() -> None:
    line = signature("sms", {"b": 1, "a": "x|weights:idf", "n": None, "t": True, "f": False})
    assert line == f"sms|b:1|a:x_weights:idf|n:none|t:yes|f:no|v:{VERSION}"  # a value cannot forge a field
    assert short_digest("Größe") == hashlib.sha256("Größe".encode()).hexdigest()[:16]
    assert short_digest("\ud800") != short_digest("\ud801")

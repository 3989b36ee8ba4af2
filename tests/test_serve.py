"""The pages without a browser: the form, the limits, what is shown, and that nothing is sent or kept."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import fields
from pathlib import Path

import pytest

import movers
from movers.errors import InputError
from movers.registry import METRICS
from movers.serve import all_metrics_page, metric_page
from movers.serve.answers import FileRun, Pair, PairAnswer, chosen_options, form_rows
from movers.serve.answers import score_pair as score_checked
from movers.serve.examples import EXAMPLES
from movers.serve.limits import LIMITS


def score_pair(*request: object) -> PairAnswer:
    return score_checked(Pair.check(*request))


@pytest.mark.parametrize("name", METRICS)
def test_the_form_offers_options_of_the_metric_with_their_defaults(name: str) -> None:
    rows = form_rows(name)
    defaults = {item.name: item.default for item in fields(METRICS[name].options_class)}
    assert rows and {row.name for row in rows} <= defaults.keys()
    assert chosen_options(name, {row.name: row.default for row in rows}) == {}
    for row in rows:
        assert str(row.default).lower() == str(defaults[row.name]).lower()


@pytest.mark.parametrize("name", METRICS)
def test_every_choice_of_the_form_is_valid_by_itself(name: str) -> None:
    for row in form_rows(name):
        for choice in row.choices:
            try:
                chosen_options(name, {row.name: choice})
            except InputError as error:  # a choice may need another option beside it, and then the message names one
                assert "needs a table: idf=" in str(error) or "expected baseline_path too" in str(error)


@pytest.mark.parametrize(
    "option", ["model", "lm", "idf", "baseline_path", "sentence_encoder", "device", "workers", "shared_pass"]
)
def test_visitors_cannot_name_files_or_devices_of_the_server(option: str) -> None:
    for name in METRICS:
        with pytest.raises(InputError, match="options: expected some of|expected one of"):
            chosen_options(name, {option: "/etc/passwd"})


def test_a_changed_option_changes_the_score_as_in_the_function() -> None:
    answer = score_pair("wms", "Snow melts.", ["Ice thaws."], {"normalize": True, "stopwords": "none"})
    expected = movers.wms(["Snow melts."], ["Ice thaws."], normalize=True, stopwords=None)
    assert answer.explanation.score == expected["score"]
    assert answer.result()["signature"] == expected["signature"]


def test_scores_have_four_significant_digits_and_the_papers_number_is_beside_them() -> None:
    answer = score_pair("wms", "cats", ["parliaments"], {})
    distance = answer.explanation.numbers["distance"]
    assert f"<b>{answer.explanation.score:.4g}</b>" in answer.summary
    assert f"<b>{math.exp(-distance):.4g}</b> <span>in the paper" in answer.summary


def test_several_references_are_used_and_blank_ones_are_not() -> None:
    answer = score_pair("moverscore", "Snow melts.", ["Ice thaws.", "", "Shares fell.", " "], {})
    expected = movers.moverscore(["Snow melts."], [["Ice thaws.", "Shares fell."]])
    assert answer.explanation.score == pytest.approx(expected["score"], abs=1e-6)


@pytest.mark.parametrize(
    ("prediction", "others", "message"),
    [
        ("a" * (LIMITS.characters + 1), ["b"], "wms: prediction: expected at most 20,000 characters, but got 20,001"),
        ("a", ["b" * (LIMITS.characters + 1)], "wms: reference: expected at most 20,000 characters"),
        ("a", ["b"] * (LIMITS.references + 1), "wms: references: expected 1 to 4 texts, but got 5"),
        ("\ud800", ["b"], "expected valid Unicode"),
    ],
)
def test_what_is_too_much_is_refused_with_a_message(prediction: str, others: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score_pair("wms", prediction, others, {})


def uploaded(tmp_path: Path, name: str, content: str) -> str:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def test_a_file_is_scored_as_the_function_scores_it(tmp_path: Path) -> None:
    rows = [{"prediction": "Snow <b>melts</b>.", "reference": ["Ice thaws."]}, {"prediction": "", "reference": "a"}]
    run = FileRun.open("wms", uploaded(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))), {})
    answer = run.answer(list(run.examples()))
    expected = movers.wms(["Snow <b>melts</b>.", ""], [["Ice thaws."], ["a"]])
    table = list(csv.DictReader(io.StringIO(answer.csv)))
    assert [float(row["score"]) for row in table] == expected["scores"]
    assert [row["empty"] for row in table] == ["0", "1"]
    assert "1 empty" in answer.summary and answer.signature == expected["signature"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "{broken", r"a\.jsonl"),
        ("a.csv", "prediction,other\na,b\n", "expected --reference-column to name a column"),
        ("a.csv", "prediction,reference\n", "expected at least one row"),
        ("a.bin", "\x00\x01", "expected JSONL, JSON, CSV, TSV or Parquet"),
        ("a.csv", "prediction,reference\n" + "a,b\n" * (LIMITS.rows + 1), "expected at most 2,000 rows"),
        ("a.csv", "prediction,reference\n" + "a" * (LIMITS.characters + 1) + ",b\n", "row 1: expected at most 20,000"),
    ],
)
def test_bad_files_are_refused_with_a_message_that_hides_the_servers_folders(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        FileRun.open("wms", uploaded(tmp_path, name, content), {})
    assert str(tmp_path) not in str(caught.value)


def test_the_page_sends_no_usage_data_and_deletes_files() -> None:
    for page in (metric_page("wms"), all_metrics_page()):
        assert page.analytics_enabled is False
        assert page.delete_cache is not None


def test_the_page_of_all_metrics_has_an_endpoint_for_each_and_no_other() -> None:
    endpoints = all_metrics_page().get_api_info()["named_endpoints"]
    assert sorted(endpoints) == sorted(f"/{name}" for name in METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_examples_of_its_strength_and_its_weakness(name: str) -> None:
    labels = [example.label.split(":")[0] for example in EXAMPLES[name]]
    assert {"Strength", "Weakness"} <= set(labels)

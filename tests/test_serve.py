"""The pages without a browser: the form, the limits, what programs get, and that nothing is kept."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

import movers
from movers.errors import InputError
from movers.pictures.explain import about
from movers.registry import METRICS

pytest.importorskip("gradio", reason="gradio is in the extra `demo`")
from gradio_client import Client  # noqa: E402

from movers import serve  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:gradio", "ignore:.*silent_downcasting", "ignore:The copy"
)


# --- the form ---


@pytest.mark.parametrize("name", METRICS)
def test_the_form_offers_options_of_the_metric_with_their_defaults(name: str) -> None:
    rows = serve.form_rows(name)
    defaults = {item.name: item.default for item in fields(METRICS[name].options_class)}
    assert rows and serve.chosen_options(name, {row.name: row.default for row in rows}) == {}
    for row in rows:
        assert row.default == defaults[row.name] and row.default in row.choices


@pytest.mark.parametrize("value", ["/etc/passwd", "corpus.json", "org/model", "../x", ["/etc/passwd"], {"path": "/x"}])
def test_no_option_takes_a_path(value: object) -> None:
    for name, spec in METRICS.items():
        for item in fields(spec.options_class):
            with pytest.raises(InputError, match="options: expected some of|expected one of") as caught:
                serve.chosen_options(name, {item.name: value})
            assert isinstance(value, str) or "/" not in str(caught.value).split("but got")[1]


def test_a_chosen_option_changes_the_score_as_in_the_function() -> None:
    explanation = serve.score_pair("wms", "Snow melts.", ["Ice thaws."], {"normalize": True, "stopwords": "none"})
    expected = movers.wms(["Snow melts."], ["Ice thaws."], normalize=True, stopwords=None)
    assert (explanation.score, explanation.signature) == (expected["score"], expected["signature"])
    with_idf = serve.score_pair("wms", "Snow melts fast.", ["Ice thaws.", "Snow falls."], {"idf": "corpus"})
    assert with_idf.score == movers.wms(["Snow melts fast."], [["Ice thaws.", "Snow falls."]], idf="corpus")["score"]


def test_several_references_are_used_and_blank_ones_are_not() -> None:
    explanation = serve.score_pair("moverscore", "Snow melts.", ["Ice thaws.", "", "Shares fell.", " "], {})
    expected = movers.moverscore(["Snow melts."], [["Ice thaws.", "Shares fell."]])
    assert explanation.score == pytest.approx(expected["score"], abs=1e-6)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            ("a" * (serve.CHARACTERS + 1), ["b"], {}),
            r"predictions\[0\]: expected at most 5,000 characters, but got 5,001",
        ),
        (("a", ["b", "b" * 6000], {}), r"references\[1\]: expected at most 5,000 characters, but got 6,000"),
        (("a", ["b"] * 5, {}), "wms: references: expected a list of 1 to 4 texts, but got 5"),
        (("a", "b", {}), "expected a list of 1 to 4 texts, but got str"),
        ((5, ["a"], {}), r"wms: predictions\[0\]: expected a text, but got int"),
        (("a", [{"path": "/etc/passwd"}], {}), r"references\[0\]: expected a text, but got dict$"),
        (("a", ["b"], [1]), "wms: options: expected names with values, but got list"),
    ],
)
def test_what_is_too_much_or_of_another_type_is_refused(request_: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        serve.score_pair("wms", *request_)


# --- files ---


def uploaded(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


COLUMNS = ("prediction", "reference")


def test_a_file_is_scored_as_the_function_scores_it(tmp_path: Path) -> None:
    rows = [{"prediction": "Snow <b>melts</b>.", "reference": ["Ice thaws."]}, {"prediction": "", "reference": "a"}]
    path = uploaded(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    summary, signature, table = serve.score_file("wms", path, {}, COLUMNS)
    expected = movers.wms(["Snow <b>melts</b>.", ""], [["Ice thaws."], ["a"]])
    records = [dict(zip(table[0], row, strict=True)) for row in table[1:]]
    assert [record["score"] for record in records] == expected["scores"]
    assert [record["empty"] for record in records] == [0, 1]
    assert "over 2 rows, 1 empty" in summary and signature == expected["signature"]


def test_columns_have_common_names_or_are_chosen_and_idf_is_of_the_whole_file(tmp_path: Path) -> None:
    path = uploaded(tmp_path, "a.csv", "hypothesis, y\nSnow melts,Ice thaws\nSnow fell,Rain fell\n")
    assert serve.find_columns("wms", path) == (["hypothesis", " y"], ["hypothesis", None])
    with pytest.raises(InputError, match="choose the column of references: expected one of hypothesis,  y"):
        serve.score_file("wms", path, {}, ("hypothesis", None))
    _, _, (_, *rows) = serve.score_file("wms", path, {"idf": "corpus"}, ("hypothesis", " y"))
    expected = movers.wms(["Snow melts", "Snow fell"], ["Ice thaws", "Rain fell"], idf="corpus")
    assert [row[1] for row in rows] == expected["scores"]


HEAD = "prediction,reference\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "{broken", r"a\.jsonl"),
        ("a.csv", HEAD, "expected 1 to 2,000 rows, but got none"),
        ("a.json", '["a"]', "expected an object, but got a text"),
        ("a.jsonl", '{"prediction": "a", "reference": 5}', r"row\[1\]: expected a text"),
        ("a.txt", "a\n", "expected JSONL, JSON, CSV or TSV"),
        ("a.csv", gzip.compress(HEAD.encode() + b"a" * 50_000_000), "uncompressed"),
        ("a.csv", HEAD + "a,b\n" * (serve.FILE_ROWS + 1), "expected 1 to 2,000 rows, but got more"),
        ("a.csv", HEAD + "a,b\n" + "a" * (serve.CHARACTERS + 1) + ",b\n", "row 2: expected at most 5,000 .* got 5,001"),
    ],
)
def test_bad_files_are_refused_without_the_servers_path(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        serve.score_file("wms", uploaded(tmp_path, name, content), {}, COLUMNS)
    assert str(tmp_path) not in str(caught.value) and "--" not in str(caught.value)


def handler(name: str, *metrics: str) -> Any:
    """The first function of that name that handles events of a page."""
    page = serve.all_metrics_page(metrics)
    return next(event.fn for event in page.fns.values() if getattr(event.fn, "__name__", "") == name)


def test_a_wrong_column_is_mended_without_another_upload_and_the_csv_holds_no_formula(tmp_path: Path) -> None:
    show, options = handler("show", "wms"), ["default"] * 4
    path = uploaded(tmp_path, "a.jsonl", json.dumps({"prediction": "=1+1", "wrong": "=2", "reference": "<b>Ice."}))
    os.utime(path, (0, 0))
    assert "choose the column of references" in str(show("wms", path, "prediction", "typo", *options))
    message, table, _ = show("wms", path, "prediction", "reference", *options).values()
    assert table["rows"] == [(1, 1, movers.wms(["=1+1"], ["<b>Ice."])["score"], "=1+1", "<b>Ice.")]
    data = base64.b64decode(re.search('base64,([^"]+)', message)[1]).decode()
    assert list(csv.DictReader(io.StringIO(data)))[0]["prediction"] == "'=1+1"
    assert os.stat(path).st_mtime > 0  # kept for another ten minutes
    assert "upload it again" in str(show("wms", str(tmp_path / "gone.csv"), "", "", *options))
    assert "expected a file, but there is none" in str(show("wms", None, "", "", *options))


# --- a pair ---


def test_every_metric_with_references_scores_a_pair_and_each_score_is_shown_when_it_is_there() -> None:
    fields = ("Snow melts.", "Ice thaws.", "paper", "default", "default", "default", "default")
    steps = list(handler("score")("sms", *fields))
    tables = [value for step in steps for value in step.values() if isinstance(value, dict)]
    names = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
    counts = [sum(row[2] is not None for row in table["rows"]) for table in tables]
    assert counts == list(range(len(names) + 1)) and {table["chosen"] for table in tables} == {"sms"}
    for name, _, score, unrelated, _ in tables[-1]["rows"]:
        expected = METRICS[name].function(["Snow melts."], ["Ice thaws."], preset="paper")
        assert score == pytest.approx(expected["score"])
        assert 0 < unrelated < 1
    assert sum("iframe" in str(step) for step in steps) == 1


def test_the_page_refuses_long_texts_with_their_length_and_shows_warnings() -> None:
    score = handler("score", "wms")
    *_, refused = score("wms", "a", "b" * 20_001, *["default"] * 4)
    assert "Reference: expected at most 5,000 characters, but got 20,001" in str(refused)
    german = ("Der Hund jagt die Katze und bellt.", "Die Katze wird von dem Hund gejagt.")
    *_, warned = score("wms", *german, *["default"] * 4)
    assert "look like &#x27;de&#x27;" in str(warned)


def test_a_link_fills_the_page_and_the_guide_names_the_address_that_is_served() -> None:
    follow = handler("follow_link")
    query = "prediction=%3Cb%3ESnow&reference=Ice%20thaws.&metric="
    assert "<b>Snow" in follow(f"https://x.org/m/?{query}moverscore").values()
    linked = follow(f"https://x.org/m/?{query}reference_free_summary_quality#top")
    assert any(getattr(value, "selected", None) == "sources" for value in linked.values())
    assert 'Client("https://x.org/m/")' in next(iter(linked.values()))
    assert len(follow("http://127.0.0.1:7860/?metric=/etc/passwd")) == 1


# --- over the network, which is loopback ---


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    page = serve.all_metrics_page(["wms", "moverscore"])
    serve.launch(page, prevent_thread_lock=True, quiet=True)
    yield page.local_url
    page.close()


def test_programs_get_what_the_function_returns(address: str) -> None:
    result = Client(address, verbose=False).predict("Snow falls.", ["Rain falls."], {"lang": "en"}, api_name="/wms")
    expected = movers.wms(["Snow falls."], ["Rain falls."])
    assert (result["score"], result["signature"]) == (expected["score"], expected["signature"])
    assert [(flow["from"], flow["to"]) for flow in result["flows"]] == [("snow", "rain"), ("falls", "falls")]


def test_the_guide_on_the_page_runs(address: str) -> None:
    guide = next(iter(handler("follow_link", "wms")(address).values()))
    exec(guide.split("```python")[1].split("```")[0], {})


FILE = {"meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (("a" * 5_001, ["b"], {}), "expected at most 5,000 characters, but got 5,001"),
        (("a", ["b"], {"model": "/etc/passwd"}), "wms: model: expected one of wordllama"),
        (("a", ["b"], {"idf": "/etc/passwd"}), "wms: idf: expected one of none, corpus"),
        (("a", ["b"], {"rescale": "/etc/passwd"}), "wms: rescale: expected one of false, true"),
        (("a", ["b"], {"sentence_encoder": "/etc/passwd"}), "wms: options: expected some of model"),
        (("a", ["b"], {"baseline_path": "/etc/passwd"}), "wms: options: expected some of model"),
        (({"path": "http://127.0.0.1:9/", **FILE}, ["b"], {}), "expected an upload, but got an address"),
        (("a", ["b"], {"lang": {"path": "https://example.org/x", **FILE}}), "but got an address"),
        (({"path": "/etc/passwd", **FILE}, ["b"], {}), "expected an upload, but got another path"),
    ],
)
def test_refusals_reach_programs_as_messages(address: str, data: tuple[object, ...], message: str) -> None:
    url = f"{address}gradio_api/call/wms"
    event = httpx.post(url, json={"data": data}).json()["event_id"]
    answer = httpx.get(f"{url}/{event}", timeout=300).text
    assert "event: error" in answer and message in answer


def test_uploads_that_are_too_large_are_refused(address: str) -> None:
    answer = httpx.post(f"{address}gradio_api/upload", files={"files": ("a.csv", b"a" * (serve.FILE_BYTES + 1))})
    assert answer.status_code == 413


def test_a_page_has_an_endpoint_per_metric_and_no_other_and_sends_no_usage_data() -> None:
    page = serve.all_metrics_page()
    assert sorted(page.get_api_info()["named_endpoints"]) == sorted(f"/{name}" for name in METRICS)
    assert page.analytics_enabled is False


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_space_and_examples_of_its_strength_and_its_weakness(name: str) -> None:
    space: dict[str, Any] = {"__name__": "app"}
    exec((Path(movers.module_path(name)) / "app.py").read_text(), space)
    assert list(space["demo"].get_api_info()["named_endpoints"]) == [f"/{name}"]
    assert {"Strength", "Weakness"} <= {label.split(":")[0] for label, _, _ in about(name)["examples"]}

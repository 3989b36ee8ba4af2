"""The pages without a browser: the form, the limits, what programs get, and that nothing is kept."""

from __future__ import annotations

import csv
import gzip
import io
import json
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
        assert row.choices[row.default] == defaults[row.name]


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


def test_a_file_is_scored_as_the_function_scores_it(tmp_path: Path) -> None:
    rows = [{"prediction": "Snow <b>melts</b>.", "reference": ["Ice thaws."]}, {"prediction": "", "reference": "a"}]
    scored = serve.score_file("wms", uploaded(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))), {})
    expected = movers.wms(["Snow <b>melts</b>.", ""], [["Ice thaws."], ["a"]])
    table = list(csv.DictReader(io.StringIO(scored.csv)))
    assert [float(row["score"]) for row in table] == expected["scores"] == scored.scores
    assert [row["empty"] for row in table] == ["0", "1"]
    assert "over 2 rows, 1 empty" in scored.summary and scored.signature == expected["signature"]


def test_columns_can_be_named_and_idf_is_of_the_whole_file(tmp_path: Path) -> None:
    path = uploaded(tmp_path, "a.csv", "x,y\nSnow melts,Ice thaws\nSnow fell,Rain fell\n")
    scored = serve.score_file("wms", path, {"idf": "corpus"}, "x", " y ")
    expected = movers.wms(["Snow melts", "Snow fell"], ["Ice thaws", "Rain fell"], idf="corpus")
    assert scored.scores == expected["scores"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\tx"])
def test_the_csv_holds_no_formula(text: str, tmp_path: Path) -> None:
    row = json.dumps({"prediction": text, "reference": "a"})
    scored = serve.score_file("wms", uploaded(tmp_path, "a.jsonl", row), {})
    assert list(csv.DictReader(io.StringIO(scored.csv)))[0]["prediction"] == "'" + text


HEAD = "prediction,reference\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "{broken", r"a\.jsonl"),
        ("a.csv", "prediction,other\na,b\n", "reference-column"),
        ("a.csv", HEAD, "expected at least one row"),
        ("a.txt", "a\n", "expected JSONL, JSON, CSV or TSV"),
        ("a.parquet", "PAR1", "expected JSONL, JSON, CSV or TSV"),
        ("a.csv", gzip.compress(HEAD.encode() + b"a" * 50_000_000), "uncompressed"),
        ("a.csv", HEAD + "a,b\n" * (serve.FILE_ROWS + 1), "expected at most 2,000 rows, but got more"),
        ("a.csv", HEAD + "a,b\n" + "a" * (serve.CHARACTERS + 1) + ",b\n", "row 2: expected at most 5,000 .* got 5,001"),
        ("a.csv", "a" * (serve.FILE_BYTES + 1), "expected at most 1,000,000 bytes, but got more"),
    ],
)
def test_bad_files_are_refused_without_the_servers_path(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        serve.score_file("wms", uploaded(tmp_path, name, content), {})
    assert str(tmp_path) not in str(caught.value)


def test_an_upload_is_deleted_whether_it_was_scored_or_refused(tmp_path: Path) -> None:
    show = next(event.fn for event in serve.metric_page("wms").fns.values() if len(event.outputs) == 4)
    defaults = [row.default for row in serve.form_rows("wms")]
    for content, answer in ((HEAD + "Snow <b>melts</b>.,Ice thaws.\n", "over 1 rows"), ("no,columns\n1,2\n", "alert")):
        folder = tmp_path / answer.split()[-1]
        folder.mkdir()
        shown = show(uploaded(folder, "rows.csv", content), "", None, *defaults)
        assert answer in shown[0] and not folder.exists()
    assert "expected a file, but got none" in show(None, "", "", *defaults)[0]
    assert "upload it again" in show(str(tmp_path / "gone.csv"), "", "", *defaults)[0]


# --- over the network, which is loopback ---


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    page = serve.all_metrics_page(["wms", "moverscore"])
    serve.launch(page, prevent_thread_lock=True, quiet=True)
    yield page.local_url
    page.close()


@pytest.fixture(scope="module")
def client(address: str) -> Any:
    from gradio_client import Client

    return Client(address, verbose=False)


def test_programs_get_what_the_function_returns(client: Any) -> None:
    result = client.predict("Snow falls.", ["Rain falls."], {"lowercase": True}, api_name="/wms")
    expected = movers.wms(["Snow falls."], ["Rain falls."])
    assert (result["score"], result["signature"]) == (expected["score"], expected["signature"])
    assert [(flow["from"], flow["to"]) for flow in result["flows"]] == [("snow", "rain"), ("falls", "falls")]


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
    answer = httpx.get(f"{url}/{event}", timeout=60).text
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


def test_a_visitor_is_told_of_a_language_that_the_encoder_does_not_suit() -> None:
    german = serve.score_pair("wms", "Der Hund jagt die Katze und bellt.", ["Die Katze wird von dem Hund gejagt."], {})
    assert "the texts look like 'de'" in german.warning and "look like" in german.html()
    assert not serve.score_pair("wms", "The dog chased the cat.", ["The cat was chased."], {}).warning

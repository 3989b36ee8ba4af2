"""Pages under hostile hands: what is refused and how, what is stopped, what stays on disk, and that nothing is sent."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio
import httpx
import pytest

import movers
from movers.errors import InputError
from movers.registry import METRICS
from movers.serve import all_metrics_page, launch, metric_page
from movers.serve.answers import Pair, form_rows
from movers.serve.guard import sweep, upload_folder
from movers.serve.lanes import SHORT, Lane
from movers.serve.limits import LIMITS, estimate_seconds

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:gradio", "ignore:.*silent_downcasting", "ignore:The copy"
)
WORDS = " ".join(f"{one}{two}" for one in "bcdfghjklmnpqrstvwxz" for two in ("a", "e", "i", "o", "u", "an", "en", "in"))
SNOW = {"kind": "pair", "pair": Pair("wms", "Snow melts.", ["Snow melts."], {})}


def endpoint(name: str) -> Callable[..., dict[str, Any]]:
    return next(event.fn for event in metric_page(name).fns.values() if event.api_name == name)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused before it starts


def test_a_request_that_would_take_too_long_is_refused_with_the_estimate() -> None:
    with pytest.raises(gradio.Error, match=r"at most 30 seconds, but this would take about \d+; shorten the texts"):
        endpoint("moverscore")("天地人" * 6000, ["人天" * 9000], {})


def test_rows_are_added_up_in_the_estimate() -> None:
    row = ("Snow melts in spring.", ["Ice thaws.", "It rains."])
    for name in METRICS:
        one, many = (estimate_seconds(name, [row] * count, {}) for count in (1, 100))
        assert many == pytest.approx(100 * one)
        assert one < LIMITS.short_seconds


@pytest.mark.parametrize("option", [{"model": "all-MiniLM-L6-v2"}, {"sentence_encoder": "all-MiniLM-L6-v2"}])
def test_a_contextual_encoder_and_short_windows_cost_more(option: dict[str, object]) -> None:
    rows = [(WORDS, [WORDS])]
    static, contextual, short = (
        estimate_seconds("sms", rows, options) for options in ({}, option, {**option, "window": 8})
    )
    assert static < contextual < short


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ((5, ["a"], {}), r"wms: predictions\[0\]: expected a text \(str\), but got int"),
        ((None, ["a"], {}), r"wms: predictions\[0\]: expected a text \(str\), but got None"),
        (("a", "b", {}), "wms: references: expected a list of texts, but got str"),
        (("a", [["b"]], {}), r"wms: references\[0\]: expected a text"),
        (("a", [], {}), "wms: references: expected 1 to 4 texts, but got 0"),
        (("a", ["b"], [1]), "wms: options: expected names with values, but got list"),
        (("a", ["b"], {"stopwords": "x" * 201}), "wms: stopwords: expected at most 200 characters, but got 201"),
        (("a", ["b"], {"stopwords": "\ud800"}), "expected valid Unicode"),
        (("a", ["b"], {"lang": {"x": [1]}}), "lang"),
    ],
)
def test_what_programs_send_is_checked_by_type_and_length(request_: tuple[object, ...], message: str) -> None:
    with pytest.raises(gradio.Error, match=message):
        endpoint("wms")(*request_)


# ---------------------------------------------------------------------------------------------------------------------
# The processes that score


@pytest.fixture
def lane() -> Iterator[Lane]:
    lane = Lane(60.0)
    yield lane
    lane.stop()


def test_a_request_past_its_deadline_is_stopped_and_the_next_one_is_answered(lane: Lane) -> None:
    words = [f"{a}{b}{c}" for a in "bcdfgklmnp" for b in "aeiou" for c in "bdfgklmnpstvrxz"]
    long = Pair("wms", " ".join(words * 4), [" ".join(f"{word}{word}" for word in words)], {"stopwords": None})
    lane.ask(SNOW, 0.0)
    lane.deadline = 0.001
    with pytest.raises(InputError, match="stopped: it took longer than 0 seconds"):
        lane.ask({"kind": "pair", "pair": long}, 1.0)
    lane.deadline = 60.0
    assert lane.ask(SNOW, 0.0)["result"]["score"] == 1.0


def test_a_process_that_dies_is_replaced(lane: Lane) -> None:
    lane.ask(SNOW, 0.0)
    assert lane._worker is not None
    lane._worker._process.kill()
    lane._worker._process.wait()
    with pytest.raises(InputError, match="try again"):
        lane.ask(SNOW, 0.0)
    assert lane.ask(SNOW, 0.0)["result"]["score"] == 1.0


def test_a_bug_keeps_its_traceback(lane: Lane) -> None:
    with pytest.raises(RuntimeError, match=r"Traceback(.|\n)*KeyError: 'nothing'"):
        lane.ask({"kind": "nothing"}, 0.0)


@pytest.mark.parametrize("estimates", [[0.1] * (LIMITS.waiting + 1), [LIMITS.waiting_seconds + 1]])
def test_load_is_shed_with_a_message(lane: Lane, estimates: list[float]) -> None:
    lane._estimates += [(f"10.0.0.{number}", seconds) for number, seconds in enumerate(estimates)]
    with pytest.raises(InputError, match=rf"busy: {len(estimates)} requests with about \d+ seconds of work wait"):
        lane.ask(SNOW, 0.0)
    lane._estimates.clear()
    assert lane.ask(SNOW, 0.0)["result"]["score"] == 1.0
    assert lane._estimates == []


@pytest.mark.parametrize("estimates", [[0.1] * (LIMITS.own_waiting + 1), [LIMITS.own_waiting_seconds + 1]])
def test_one_visitor_cannot_take_all_the_places(lane: Lane, estimates: list[float]) -> None:
    lane._estimates += [("10.0.0.1", seconds) for seconds in estimates]
    with pytest.raises(InputError, match=rf"busy: {len(estimates)} requests from your address with about \d+ seconds"):
        lane.ask(SNOW, 0.0, visitor="10.0.0.1")
    assert lane.ask(SNOW, 0.0, visitor="10.0.0.2")["result"]["score"] == 1.0
    assert len(lane._estimates) == len(estimates)


def test_requests_at_once_get_their_own_answers(lane: Lane) -> None:
    texts = ["Snow melts.", "Ice thaws.", "Shares fell.", "The court adjourned."]
    answers: dict[str, float] = {}

    def ask(text: str) -> None:
        pair = Pair("wms", text, ["Snow melts in spring."], {})
        answers[text] = lane.ask({"kind": "pair", "pair": pair}, 0.1)["result"]["score"]

    threads = [threading.Thread(target=ask, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {text: movers.wms([text], ["Snow melts in spring."])["score"] for text in texts}


# ---------------------------------------------------------------------------------------------------------------------
# Over the network, which is loopback


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    page = metric_page("wms")
    launch(page, prevent_thread_lock=True, quiet=True)
    yield f"{page.local_url.rstrip('/')}/gradio_api"
    page.close()


def call(address: str, *data: object) -> tuple[str, Any]:
    """The event and the data that the endpoint answers with."""
    begun = httpx.post(f"{address}/call/wms", json={"data": data})
    assert begun.status_code == 200, begun.text
    told = httpx.get(f"{address}/call/wms/{begun.json()['event_id']}", timeout=60).text
    event, _, content = told.rpartition("event: ")[2].partition("\ndata: ")
    return event, json.loads(content)


def upload(address: str, content: bytes, name: str = "rows.csv") -> str:
    answer = httpx.post(f"{address}/upload", files={"files": (name, content)})
    assert answer.status_code == 200, answer.text
    return answer.json()[0]


def score_file(address: str, path: str) -> dict[str, Any]:
    """What the page gets for its button `Score the file`."""
    config = httpx.get(f"{address.removesuffix('/gradio_api')}/config").json()
    event = next(item for item in config["dependencies"] if len(item["outputs"]) == 4 and len(item["inputs"]) > 5)
    file = {"path": path, "orig_name": "rows.csv", "meta": {"_type": "gradio.FileData"}}
    data = [file, "", "", *(row.default for row in form_rows("wms"))]
    session = f"s{time.monotonic_ns()}"
    joined = httpx.post(f"{address}/queue/join", json={"data": data, "fn_index": event["id"], "session_hash": session})
    assert joined.status_code == 200, joined.text
    with httpx.stream("GET", f"{address}/queue/data", params={"session_hash": session}, timeout=60) as lines:
        for line in lines.iter_lines():
            if '"process_completed"' in line:
                return json.loads(line.removeprefix("data: "))["output"]
    raise AssertionError("no answer")


def left() -> list[Path]:
    """What the folder of uploads holds; gradio makes an empty file beside every one that it hands on."""
    return [path for path in Path(upload_folder()).rglob("*") if not path.is_dir() and path.stat().st_size]


def test_the_endpoint_answers_as_the_function(address: str) -> None:
    event, (answer,) = call(address, "Snow melts.", ["Ice thaws."], {"normalize": True})
    assert event == "complete"
    assert answer["score"] == movers.wms(["Snow melts."], ["Ice thaws."], normalize=True)["score"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (("a" * 20_001, ["b"], {}), "expected at most 20,000 characters, but got 20,001"),
        (("a", ["b"]), "data: expected 3 values, but got 2"),
        (("a", ["b"], {"model": "/etc/passwd"}), "expected one of wordllama"),
        (({"path": "http://127.0.0.1:9/", "meta": {"_type": "gradio.FileData"}}, ["b"], {}), "but got an address"),
        (({"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}, ["b"], {}), "but got another path"),
    ],
)
def test_refusals_reach_programs_as_messages(address: str, data: tuple[object, ...], message: str) -> None:
    event, answer = call(address, *data)
    assert event == "error" and message in answer["error"]


def test_requests_that_are_too_large_are_not_read(address: str) -> None:
    size = LIMITS.request_bytes + 1
    answer = httpx.post(f"{address}/call/wms", content=b" " * size)
    assert answer.status_code == 413
    assert f"expected at most 2,000,000 bytes, but got {size}" in answer.json()["detail"]
    chunks = (b" " * 100_000 for _ in range(50))  # without a length
    assert httpx.post(f"{address}/call/wms", content=chunks).status_code in (400, 413)
    answer = httpx.post(f"{address}/upload", files={"files": ("a.csv", b"a" * (LIMITS.file_bytes + 20_000))})
    assert answer.status_code == 413
    event, _ = call(address, "Snow melts.", ["Ice thaws."], {})
    assert event == "complete"


def test_nothing_that_was_uploaded_stays_on_disk(address: str) -> None:
    answer = score_file(address, upload(address, b"prediction,reference\nSnow <b>melts</b>.,Ice thaws.\n"))
    assert "over 1 rows" in answer["data"][0] and "data:text/csv;base64" in answer["data"][3]
    answer = score_file(address, upload(address, b"no,columns\n1,2\n"))
    assert 'role="alert"' in answer["data"][0]
    bomb = gzip.compress(b"prediction,reference\n" + b"a" * 20_000_000)
    answer = score_file(address, upload(address, bomb, "bomb.csv.gz"))
    assert 'role="alert"' in answer["data"][0] and "5,000,000" in answer["data"][0]
    assert left() == []
    answer = score_file(address, f"{upload_folder()}/gone/rows.csv")
    assert "it has been deleted; upload it again" in answer["data"][0]


def test_uploads_that_break_off_or_are_never_scored_are_swept_away(address: str) -> None:
    def broken() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
        for _ in range(60):
            yield b"a" * 100_000

    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert httpx.post(f"{address}/upload", content=broken(), headers=headers).status_code == 413
    path = Path(upload(address, b"prediction,reference\na,b\n", "kept.csv"))
    for file in left():
        os.utime(file, (0, 0))
    sweep(upload_folder())
    assert left() == [path]
    os.utime(path.parent, (0, 0))
    sweep(upload_folder())
    assert left() == []


def test_uploads_beyond_the_room_for_them_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(upload(address, b"prediction,reference\na,b\n"))
    monkeypatch.setattr("movers.serve.guard.LIMITS", LIMITS._replace(upload_bytes=10))
    answer = httpx.post(f"{address}/upload", files={"files": ("b.csv", b"a")})
    assert answer.status_code == 503 and "too many uploads" in answer.json()["detail"]
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere this machine has one address")
def test_visitors_are_told_apart_by_their_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHORT, "_estimates", [("127.0.0.1", 0.1)] * (LIMITS.own_waiting + 1))
    told = {}
    for own in ("127.0.0.1", "127.0.0.2"):
        with httpx.Client(transport=httpx.HTTPTransport(local_address=own), timeout=60) as client:
            begun = client.post(f"{address}/call/wms", json={"data": ["Snow melts.", ["Snow melts."], {}]}).json()
            told[own] = client.get(f"{address}/call/wms/{begun['event_id']}").text
    assert "requests from your address" in told["127.0.0.1"] and "event: error" in told["127.0.0.1"]
    assert '"score": 1.0' in told["127.0.0.2"]
    monkeypatch.setattr("movers.serve.guard.LIMITS", LIMITS._replace(own_connections=0))
    answer = httpx.get(f"{address}/info")
    assert answer.status_code == 503 and "too many visitors" in answer.json()["detail"]


def test_more_visitors_than_allowed_are_told_so(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.serve.guard.LIMITS", LIMITS._replace(connections=0))
    answer = httpx.get(f"{address}/info")
    assert answer.status_code == 503 and "too many visitors" in answer.json()["detail"]


OFFLINE = """
import os, socket

connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo


def note(asked):
    with open(os.environ["ASKED"], "a") as file:
        file.write(f"{asked}\\n")
    raise OSError(f"the network was asked for: {asked}")


def connect_here(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        note(address)
    return connect(self, address)


def resolve_here(host, *rest, **options):
    if host not in ("127.0.0.1", "::1", "localhost", "0.0.0.0", None):
        note(host)
    return getaddrinfo(host, *rest, **options)


socket.socket.connect, socket.getaddrinfo = connect_here, resolve_here
"""
PAGES = """
import httpx, json, sys
from movers.registry import METRICS
from movers.serve import all_metrics_page, launch
from movers.serve.examples import EXAMPLES

page = all_metrics_page()
launch(page, prevent_thread_lock=True, quiet=True)
scores = {}
for name in METRICS:
    _, prediction, other = EXAMPLES[name][0]
    begun = httpx.post(f"{page.local_url}gradio_api/call/{name}", json={"data": [prediction, [other], {}]}).json()
    told = httpx.get(f"{page.local_url}gradio_api/call/{name}/{begun['event_id']}", timeout=100).text
    scores[name] = json.loads(told.rpartition("data: ")[2])[0]["score"]
page.close()
import socket
assert socket.getaddrinfo.__name__ == "resolve_here"
print(json.dumps(scores))
"""


def test_all_pages_score_with_the_network_blocked(tmp_path: Path, run_python: Callable[..., str]) -> None:
    from movers.serve.examples import EXAMPLES

    (tmp_path / "sitecustomize.py").write_text(OFFLINE)  # in the page's process and in those that score
    path = os.pathsep.join([str(tmp_path), str(Path(movers.__file__).parents[1])])
    asked = tmp_path / "asked.txt"
    scores = json.loads(run_python(PAGES, PYTHONPATH=path, ASKED=str(asked)).splitlines()[-1])
    assert not asked.exists()
    for name, spec in METRICS.items():
        _, prediction, other = EXAMPLES[name][0]
        assert scores[name] == pytest.approx(spec.function([prediction], [other])["score"], abs=1e-6)


def test_the_page_of_all_metrics_shares_one_bound_on_scoring() -> None:
    scoring = [event for event in all_metrics_page().fns.values() if event.concurrency_id == "score"]
    assert len(scoring) >= 4 * len(METRICS)
    assert all(event.concurrency_limit > 2 * (LIMITS.waiting + 1) for event in scoring)

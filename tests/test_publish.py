"""Publishing, with the real client of the Hub against a stand-in for the Hub on loopback."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi

from movers.publish import CHECKOUT, main, publish, space_files
from movers.registry import METRICS


class HubHandler(BaseHTTPRequestHandler):
    """Answers what creating a Space and committing small files ask for, and remembers the requests."""

    requests: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, body))
        if self.path.endswith("/preupload/main"):
            files = [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            answer: dict[str, Any] = {"files": files}
        elif self.path.endswith("/commit/main"):
            answer = {
                "success": True,
                "commitUrl": f"http://127.0.0.1/spaces/o/n/commit/{'0' * 40}",
                "commitOid": "0" * 40,
            }
        elif self.path == "/api/repos/create":
            answer = {"url": "http://127.0.0.1/spaces/o/n", "id": "o/n"}
        else:
            answer = {"errors": [], "warnings": []}
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HfApi, list[tuple[str, bytes]]]]:
    """A client of the stand-in, and the requests the stand-in got."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # the tests forbid the network otherwise
    requests: list[tuple[str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"requests": requests}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield HfApi(endpoint=f"http://127.0.0.1:{server.server_port}", token="hf_of_nobody"), requests
    server.shutdown()
    server.server_close()


def body_of(requests: list[tuple[str, bytes]], path: str) -> bytes:
    return next(body for asked, body in requests if asked == path)


def test_publishing_creates_a_gradio_space(hub: tuple[HfApi, list[tuple[str, bytes]]]) -> None:
    api, requests = hub
    assert publish("wms", "somebody", api=api) == "somebody/wms"
    created = json.loads(body_of(requests, "/api/repos/create"))
    assert (created["organization"], created["name"]) == ("somebody", "wms")
    assert (created["type"], created["sdk"]) == ("space", "gradio")


def test_publishing_uploads_the_folder_as_it_is(hub: tuple[HfApi, list[tuple[str, bytes]]]) -> None:
    api, requests = hub
    publish("wms", "somebody", api=api)
    lines = [json.loads(line) for line in body_of(requests, "/api/spaces/somebody/wms/commit/main").splitlines()]
    uploaded = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"
    }
    assert uploaded == {file.name: file.read_bytes() for file in space_files("wms")}


def test_files_beside_the_metric_are_not_uploaded(hub: tuple[HfApi, list[tuple[str, bytes]]], tmp_path: Path) -> None:
    api, requests = hub
    for file in space_files("wms"):
        copy = tmp_path / file.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    (tmp_path / "metrics" / "wms" / "notes.txt").write_text("private")
    publish("wms", "somebody", checkout=tmp_path, api=api)
    assert b"notes.txt" not in body_of(requests, "/api/spaces/somebody/wms/commit/main")


def test_every_metric_has_the_files_of_a_space() -> None:
    assert [len(space_files(name)) for name in METRICS] == [4] * len(METRICS)


def test_publishing_without_a_checkout_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="^publish: expected a checkout with .*wms/README.md"):
        publish("wms", "somebody", checkout=tmp_path)


def test_a_typing_error_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[str] = []
    monkeypatch.setattr("movers.publish.publish", lambda name, org, private: published.append(name))
    with pytest.raises(ValueError, match="did you mean 'wms'"):
        main(["--org", "somebody", "sms", "wmss"])
    assert published == []

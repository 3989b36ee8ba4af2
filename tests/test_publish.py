"""Publishing, with the real client of the Hub against a stand-in for the Hub on loopback."""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from publish import CHECKOUT, main, publish, space_files

from movers.errors import InputError
from movers.registry import METRICS

PACKAGE = "git+https://example.org/movers@v1"


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
    assert publish("wms", "somebody", PACKAGE, api=api) == "somebody/wms"
    created = json.loads(body_of(requests, "/api/repos/create"))
    assert (created["organization"], created["name"]) == ("somebody", "wms")
    assert (created["type"], created["sdk"]) == ("space", "gradio")


def uploaded(requests: list[tuple[str, bytes]]) -> dict[str, str]:
    lines = [json.loads(line) for line in body_of(requests, "/api/spaces/somebody/wms/commit/main").splitlines()]
    files = [line["value"] for line in lines if line["key"] == "file"]
    return {file["path"]: base64.b64decode(file["content"]).decode() for file in files}


def test_publishing_uploads_the_files_of_the_space_and_none_beside_them(
    hub: tuple[HfApi, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    api, requests = hub
    folder = tmp_path / "metrics" / "wms"
    shutil.copytree(CHECKOUT / "metrics" / "wms", folder)
    (folder / "notes.txt").write_text("private")
    publish("wms", "somebody", PACKAGE, checkout=tmp_path, api=api)
    files = uploaded(requests)
    assert sorted(files) == ["README.md", "app.py", "requirements.txt", "wms.py"]
    for same in ("README.md", "app.py"):
        assert files[same] == (folder / same).read_text(encoding="utf-8")


def test_publishing_fills_in_where_the_package_comes_from(
    hub: tuple[HfApi, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    from evaluate.loading import get_imports

    api, requests = hub
    publish("wms", "somebody", PACKAGE, api=api)
    files = uploaded(requests)
    assert files["requirements.txt"] == f"movers[demo] @ {PACKAGE}\n"
    (tmp_path / "wms.py").write_text(files["wms.py"])
    hints = [place for _, module, place, _ in get_imports(str(tmp_path / "wms.py")) if module == "movers"]
    assert set(hints) == {PACKAGE}


def test_every_metric_can_be_published() -> None:
    for name in METRICS:
        assert space_files(name, "movers==0.1.0")["requirements.txt"] == "movers[demo]==0.1.0\n"


def test_publishing_without_a_checkout_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="^publish: expected a checkout with .*wms/README.md"):
        publish("wms", "somebody", PACKAGE, checkout=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--package", PACKAGE, "sms", "wmss"], "did you mean 'wms'"), (["--package", "mover", "sms"], "but got 'mover'")],
)
def test_a_typo_publishes_nothing(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[str] = []
    monkeypatch.setattr("publish.publish", lambda name, *_, **__: published.append(name))
    with pytest.raises(SystemExit, match=message):
        main(["--org", "somebody", *arguments])
    assert published == []

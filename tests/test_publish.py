"""Publishing, with the real client of the Hub against a stand-in for the Hub on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from publish import CHECKOUT, main, publish, space_files

from movers.errors import InputError
from movers.registry import METRICS
from movers.version import VERSION

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


def uploaded(requests: list[tuple[str, bytes]]) -> dict[str, bytes]:
    lines = [json.loads(line) for line in body_of(requests, "/api/spaces/somebody/wms/commit/main").splitlines()]
    files = [line["value"] for line in lines if line["key"] == "file"]
    return {file["path"]: base64.b64decode(file["content"]) for file in files}


def test_publishing_uploads_the_files_of_the_space_and_none_beside_them(
    hub: tuple[HfApi, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    api, requests = hub
    folder = tmp_path / "metrics" / "wms"
    shutil.copytree(CHECKOUT / "metrics" / "wms", folder)
    (folder / "notes.txt").write_text("private")
    publish("wms", "somebody", PACKAGE, checkout=tmp_path, api=api)
    files = uploaded(requests)
    assert sorted(files) == ["README.md", "app.py", "picture.png", "requirements.txt", "wms.py"]
    for same in ("README.md", "app.py", "picture.png"):
        assert files[same] == (folder / same).read_bytes()


def test_publishing_fills_in_where_the_package_comes_from(
    hub: tuple[HfApi, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    from evaluate.loading import get_imports

    api, requests = hub
    publish("wms", "somebody", PACKAGE, api=api)
    files = uploaded(requests)
    assert files["requirements.txt"].decode().startswith(f"movers[demo] @ {PACKAGE}\n")
    (tmp_path / "wms.py").write_bytes(files["wms.py"])
    hints = [place for _, module, place, _ in get_imports(str(tmp_path / "wms.py")) if module == "movers"]
    assert set(hints) == {PACKAGE}


def test_every_metric_can_be_published() -> None:
    for name in METRICS:
        first, *pins = space_files(name, "movers==0.1.0")["requirements.txt"].decode().splitlines()
        assert first == "movers[demo]==0.1.0"
        assert {"torch", "transformers", "evaluate"} <= {pin.split("==")[0] for pin in pins}
        assert all(re.fullmatch(r"[\w-]+==\S+", pin) for pin in pins)


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


# --- what was built works ---


class FolderHandler(BaseHTTPRequestHandler):
    """Serves `/spaces/<org>/<name>/resolve/main/<file>` from a folder, as the Hub does."""

    folder: Path

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def answer(self, with_body: bool) -> None:
        found = re.fullmatch(r"/spaces/(somebody/\w+)/resolve/main/([\w.]+)", self.path)
        file = self.folder / found[1] / found[2] if found else self.folder / "none"
        body = file.read_bytes() if file.is_file() else b""
        self.send_response(200 if body else 404)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of all Spaces."""
    folder = tmp_path_factory.mktemp("spaces")
    main(["--org", "somebody", "--dry-run", str(folder)])
    return folder


def environment(folder: Path) -> dict[str, str]:
    """That of somebody who has the package and nothing else: empty caches, not in the checkout."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "MOVERS_", "TRANSFORMERS_"))}
    return {
        **kept,
        "PYTHONPATH": str(CHECKOUT),
        "HF_HOME": str(folder / "huggingface"),
        "MOVERS_CACHE": str(folder / "cache"),
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "NO_PROXY": "127.0.0.1",
    }


def test_a_dry_run_writes_every_space_whole(spaces: Path) -> None:
    for name in METRICS:
        written = {path.name: path.read_bytes() for path in (spaces / "somebody" / name).iterdir()}
        assert written == space_files(name, f"movers=={VERSION}")


def test_evaluate_loads_what_was_built(spaces: Path, tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (FolderHandler,), {"folder": spaces}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = f"""
import evaluate
for name, other in {[(name, spec.compared_with) for name, spec in METRICS.items()]}:
    module = evaluate.load("somebody/" + name)
    print(module.compute(predictions=["Snow melts."], **{{other: ["Snow melts."]}})["score"])
"""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**environment(tmp_path), "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(METRICS)
    assert [float(score) for score in done.stdout.split()[:6]] == pytest.approx([1.0] * 6, abs=1e-4)


@pytest.mark.parametrize(
    "name", [name if name == "wms" else pytest.param(name, marks=pytest.mark.slow) for name in METRICS]
)
def test_the_app_of_a_space_starts_and_answers(name: str, spaces: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=spaces / "somebody" / name,
        env={**environment(tmp_path), "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address, last = f"http://127.0.0.1:{port}/gradio_api/info", time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:
                    endpoints = json.load(answer)["named_endpoints"]
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < last
                time.sleep(0.2)
        from gradio_client import Client

        begin = time.monotonic()
        result = Client(f"http://127.0.0.1:{port}", verbose=False).predict(
            "Snow melts.", ["Snow melts."], {}, api_name=f"/{name}"
        )
        assert time.monotonic() - begin < 60
    finally:
        process.terminate()
        process.wait(30)
    assert list(endpoints) == [f"/{name}"]
    assert result["signature"].startswith(f"{name}|")

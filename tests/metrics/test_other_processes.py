"""Modules in other processes: two that evaluate together, and one that loads from the Hub (a stand-in on loopback)."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.registry import METRICS

Near = Callable[[dict[str, Any]], dict[str, Any]]
ORG = "somebody"
PREDICTIONS = ["Snow melts in spring.", "The bank was not surprised.", "A cat slept."]
OTHERS = ["Ice thaws when it gets warm.", "Nobody at the bank wondered.", "The dog did not sleep."]


@pytest.fixture(scope="module")
def rows_by_name() -> dict[str, dict[str, list[str]]]:
    return {name: {"predictions": PREDICTIONS, spec.compared_with: OTHERS} for name, spec in METRICS.items()}


def start(script: str, *arguments: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def wait_for(processes: list[subprocess.Popen[str]]) -> None:
    try:
        errors = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, error in zip(processes, errors, strict=True):
        assert process.returncode == 0, error


class SpacesHandler(BaseHTTPRequestHandler):
    """Serves `/spaces/<org>/<name>/resolve/main/<file>` as the Hub does; there are no tags."""

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def answer(self, with_body: bool) -> None:
        parts = self.path.strip("/").split("/")
        known = len(parts) == 6 and [parts[0], parts[1], parts[3], parts[4]] == ["spaces", ORG, "resolve", "main"]
        file = Path(movers.module_path(parts[2])) / parts[5] if known else None
        body = file.read_bytes() if file is not None and file.is_file() else b""
        self.send_response(200 if body else 404)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    """Address of a server that behaves like the Hub towards evaluate's loader."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), SpacesHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def hub_results(
    hub: str,
    rows_by_name: dict[str, dict[str, list[str]]],
    other_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hub")
    (folder / "job.json").write_text(json.dumps({"org": ORG, "rows": rows_by_name}))
    environment = {**other_environment, "HF_ENDPOINT": hub, "HF_HOME": str(folder / "huggingface")}
    wait_for([start("_hub_user.py", str(folder / "job.json"), environment=environment)])
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def distributed_results(
    rows_by_name: dict[str, dict[str, list[str]]],
    other_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[dict[str, Any]]:
    """What each of two processes got, after a computation that failed on the first of them."""
    folder = tmp_path_factory.mktemp("distributed")
    job = {"rows": rows_by_name, "experiment": "two"}
    (folder / "job.json").write_text(json.dumps(job))
    environment = {**other_environment, "HF_HOME": str(folder / "huggingface")}
    wait_for(
        [start("_distributed_worker.py", str(folder / "job.json"), str(i), environment=environment) for i in range(2)]
    )
    return [json.loads((folder / f"result{process_id}.json").read_text()) for process_id in range(2)]


def test_a_module_loaded_from_the_hub_equals_the_plain_function(
    name: str, hub_results: dict[str, Any], near: Near
) -> None:
    assert hub_results[name] == near(getattr(movers, name)(PREDICTIONS, OTHERS))


def test_two_processes_give_one_result_on_the_first(
    name: str, distributed_results: list[dict[str, Any]], near: Near
) -> None:
    # Rows are gathered process by process, so their order is that of the shares.
    predictions, others = ([texts[i] for i in (0, 2, 1)] for texts in (PREDICTIONS, OTHERS))
    assert distributed_results[0][name] == near(getattr(movers, name)(predictions, others))
    assert distributed_results[1][name] is None

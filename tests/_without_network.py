"""Every metric, command and page while nothing but this machine can be reached; prints `done`."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

ASKED: list[object] = []
HERE = {"127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "", None, socket.gethostname()}
resolve, connect = socket.getaddrinfo, socket.socket.connect


def refuse(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name not in HERE:
        ASKED.append(name)
        raise OSError(f"{name}: the network is blocked")


def guarded_resolve(host: Any, *further: Any, **options: Any) -> Any:
    refuse(host)
    return resolve(host, *further, **options)


def guarded_connect(self: socket.socket, address: Any) -> Any:
    refuse(address[0] if isinstance(address, tuple) else None)
    return connect(self, address)


socket.getaddrinfo = guarded_resolve
socket.socket.connect = guarded_connect  # type: ignore[method-assign]
socket.socket.connect_ex = lambda self, address: guarded_connect(self, address) or 0  # type: ignore[method-assign]

import evaluate  # noqa: E402

import movers  # noqa: E402
from movers.cli import main  # noqa: E402
from movers.registry import METRICS  # noqa: E402
from movers.serve import all_metrics_page, launch  # noqa: E402

folder = Path(sys.argv[1])
predictions, references = ["Snow fell on the town."], ["It snowed in the city."]
for name, spec in METRICS.items():
    score = getattr(movers, name)(predictions, references)["score"]
    module = evaluate.load(movers.module_path(name))
    assert abs(module.compute(predictions=predictions, **{spec.compared_with: references})["score"] - score) < 1e-6

for name in ("texts.txt", "other.txt"):
    (folder / name).write_text("Snow fell on the town.\nA cat slept.\n")
rows = [{"candidate": f"A cat {n}.", "references": ["A dog."], "scores": {"overall": n}} for n in range(5)]
(folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
texts = str(folder / "texts.txt")
for command in (
    ["metrics"],
    ["options", "wms"],
    ["score", "wms,moverscore", "-p", texts, "-r", texts],
    ["compare", texts, str(folder / "other.txt"), "-r", texts, "--resamples", "10", "--exchanges", "10"],
    ["correlate", "--data", str(folder / "judged.jsonl"), "--metrics", "wms", "--resamples", "10"],
    ["explain", "swms", "--prediction", "Snow.", "--reference", "Ice.", "-o", str(folder / "page.html")],
    ["baseline", "--metric", "wms", "--corpus", texts, "--pairs", "2"],
    ["demo"],
):
    assert main(command) == 0, command

page = all_metrics_page()
launch(page, prevent_thread_lock=True, quiet=True)
with urllib.request.urlopen(page.local_url, timeout=300) as answer:
    assert answer.status == 200
page.close()
assert not ASKED, ASKED

try:  # a Hub name is the one thing that asks
    movers.load_encoder("somebody/some-model")
except movers.InputError as error:
    assert "cannot be reached" in str(error)
assert ASKED
print("done")

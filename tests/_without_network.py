"""Every metric, command and page while nothing but this machine can be reached; prints `done`."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from pathlib import Path
from typing import Any

ASKED: list[object] = []
resolve, connect = socket.getaddrinfo, socket.socket.connect
HERE = {"127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "", None, socket.gethostname()}


def guarded_resolve(host: Any, *further: Any, **options: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    if name not in HERE:
        ASKED.append(name)
        raise OSError(f"{name}: the network is blocked")
    return resolve(host, *further, **options)


def guarded_connect(self: socket.socket, address: Any) -> None:
    if isinstance(address, tuple) and address[0] not in HERE:
        ASKED.append(address)
        raise OSError(f"{address}: the network is blocked")
    connect(self, address)


socket.getaddrinfo = guarded_resolve
socket.socket.connect = guarded_connect  # type: ignore[method-assign]
socket.socket.connect_ex = lambda self, address: guarded_connect(self, address) or 0  # type: ignore[method-assign]

import evaluate  # noqa: E402

import movers  # noqa: E402
from movers.cli import main  # noqa: E402
from movers.registry import METRICS  # noqa: E402
from movers.serve import all_metrics_page, launch  # noqa: E402

folder = Path(os.environ["WITHOUT_NETWORK"])
PREDICTIONS, OTHERS = ["Snow fell on the town."], ["It snowed in the city."]
for name in ("predictions", "references"):
    (folder / f"{name}.txt").write_text("Snow fell on the town.\nA cat slept.\n")
rows = [{"candidate": f"A cat {n}.", "references": ["A dog."], "scores": {"overall": n}} for n in range(5)]
(folder / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

for name, spec in METRICS.items():
    score = getattr(movers, name)(PREDICTIONS, OTHERS)["score"]
    module = evaluate.load(movers.module_path(name))
    assert abs(module.compute(predictions=PREDICTIONS, **{spec.compared_with: OTHERS})["score"] - score) < 1e-6
texts = [str(folder / "predictions.txt"), "-r", str(folder / "references.txt")]
for command in (
    ["metrics"],
    ["options", "wms"],
    ["score", "wms,moverscore", "-p", *texts],
    ["compare", texts[0], str(folder / "references.txt"), *texts[1:], "--resamples", "10", "--exchanges", "10"],
    ["correlate", "--data", str(folder / "judged.jsonl"), "--metrics", "wms", "--resamples", "10"],
    ["explain", "swms", "--prediction", "Snow.", "--reference", "Ice.", "-o", str(folder / "page.html")],
    ["baseline", "--metric", "wms", "--corpus", texts[0], "--pairs", "2"],
    ["demo"],
):
    assert main(command) == 0, command

page = all_metrics_page()
launch(page, prevent_thread_lock=True, quiet=True)
address = page.local_url
with urllib.request.urlopen(address, timeout=60) as answer:
    assert answer.status == 200
call = urllib.request.Request(
    f"{address}gradio_api/call/wms", json.dumps({"data": [PREDICTIONS[0], OTHERS, {}]}).encode(),
    {"Content-Type": "application/json"},
)  # fmt: skip
with urllib.request.urlopen(call, timeout=60) as answer:
    event = json.load(answer)["event_id"]
with urllib.request.urlopen(f"{address}gradio_api/call/wms/{event}", timeout=60) as answer:
    assert '"score"' in answer.read().decode()
page.close()
assert not ASKED, ASKED

# A Hub name is the one thing that asks.
try:
    movers.load_encoder("somebody/some-model")
except movers.InputError as error:
    assert "cannot be reached" in str(error)
assert ASKED
print("done")

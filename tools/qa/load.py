"""Load on `movers serve` over loopback: valid and hostile requests mixed, every answer checked.

    python tools/qa/load.py [--minutes 60] [--seed 0]

About one valid request per second: pairs of texts whose scores must be those of the metric's function, now and then
with a contextual metric. Every ten seconds a visitor has a pair scored by every metric on the page itself, every minute
one uploads a file. Beside them hostile requests, which must be refused with a message or, where they are within the
limits, scored right. Every five minutes 40 requests come at once. Prints tables of answers, latency and memory of the
server. The exit status is 1 if an answer is wrong or, in a run of at least 30 minutes, if memory in the last ten
exceeds that of minutes 10 to 20 by more than a tenth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]

from movers.registry import METRICS
from movers.scores.unrelated import unrelated_texts

SENTENCES = unrelated_texts()
Request = Callable[["Server"], str]  # returns `right`, `refused: …` or `wrong: …`


class Server:
    """`movers serve` with a separate folder for uploads."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "movers", "serve", "--port", str(port)]
        environment = {**os.environ, "GRADIO_TEMP_DIR": folder, "NO_PROXY": "127.0.0.1,localhost"}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        address = f"http://127.0.0.1:{port}"
        # A connection per request: the server may close one that idles just when it is used again.
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=0)
        self.client = httpx.Client(base_url=f"{address}/gradio_api", timeout=200, limits=limits)
        for _ in range(300):
            try:
                self.config = httpx.get(f"{address}/config").json()
                time.sleep(10)  # gradio ends if its own first request is not answered soon
                return
            except httpx.TransportError:
                time.sleep(0.5)
        raise SystemExit("the server did not start")

    def call(self, name: str, *data: object) -> Any:
        """The result of an endpoint, or the message of a refusal."""
        return self.post(name, json.dumps({"data": data}).encode())

    def post(self, name: str, body: bytes) -> Any:
        begun = self.client.post(f"/call/{name}", content=body, headers={"content-type": "application/json"})
        if begun.status_code != 200:
            return begun.text
        events = self.client.get(f"/call/{name}/{begun.json()['event_id']}").text
        event, _, content = events.rpartition("event: ")[2].partition("\ndata: ")
        answer = json.loads(content)
        return answer[0] if event == "complete" else str((answer or {}).get("error"))

    def press(self, button: str, *data: object) -> Any:
        """What the page shows after a click on a button, or the message of a refusal; options have their defaults."""
        ids = [one["id"] for one in self.config["components"] if one["props"].get("value") == button]
        event = next(one for one in self.config["dependencies"] if [ids[0], "click"] in one["targets"])
        values = [*data, *["default"] * (len(event["inputs"]) - len(data))]
        session = uuid.uuid4().hex
        body = {"data": values, "fn_index": event["id"], "session_hash": session}
        begun = self.client.post("/queue/join", json=body)
        if begun.status_code != 200:
            return begun.text
        with self.client.stream("GET", "/queue/data", params={"session_hash": session}) as events:
            for line in events.iter_lines():
                message = json.loads(line.removeprefix("data: ") or "{}")
                if message.get("msg") == "process_completed":
                    return message["output"].get("data") or str(message["output"].get("error"))
        return ""

    def memory(self) -> float:
        """MiB of the server and its children."""
        tree = psutil.Process(self.process.pid)
        return sum(process.memory_full_info().pss for process in [tree, *tree.children(recursive=True)]) / 2**20


def scored(metric: str, texts: list[tuple[str, str]]) -> list[Request]:
    """Requests of pairs, whose answers must be the scores of the metric's function."""
    predictions, references = [first for first, _ in texts], [second for _, second in texts]
    scores = METRICS[metric].function(predictions, references, progress=False)["scores"]

    def request(prediction: str, reference: str, score: float) -> Request:
        def send(server: Server) -> str:
            answer = server.call(metric, prediction, [reference], {})
            if isinstance(answer, str):
                return refusal(answer)
            right = math.isclose(answer["score"], score, abs_tol=1e-6)
            return "right" if right else f"wrong: {metric} {answer['score']}, expected {score}"

        return send

    return [request(*row) for row in zip(predictions, references, scores, strict=True)]


def visits(texts: list[tuple[str, str]]) -> tuple[list[Request], Request]:
    """Visits of the page whose tables must show the functions' scores: of pairs, and of a file with all of them."""
    names = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
    columns = [list(column) for column in zip(*texts, strict=True)]
    scores = {name: METRICS[name].function(*columns, progress=False)["scores"] for name in names}

    def check(answer: Any, expected: list[float]) -> str:
        if isinstance(answer, str):
            return refusal(answer)
        shown = [row[2] for row in answer[1]["rows"]]
        right = len(shown) == len(expected) and all(
            map(lambda *pair: math.isclose(*pair, abs_tol=1e-6), shown, expected)
        )
        return "right" if right else f"wrong: the table shows {shown[:6]}, expected {expected[:6]}"

    def visit(index: int) -> Request:
        expected = [scores[name][index] for name in names]
        return lambda server: check(server.press("Score", "wms", *texts[index]), expected)

    def upload(server: Server) -> str:
        lines = "".join(json.dumps({"prediction": one, "reference": other}) + "\n" for one, other in texts)
        (path,) = server.client.post("/upload", files={"files": ("rows.jsonl", lines.encode())}).json()
        file = {"path": path, "meta": {"_type": "gradio.FileData"}}
        return check(server.press("Score the file", "wms", file, "prediction", "reference"), scores["wms"])

    return [visit(index) for index in range(len(texts))], upload


def refusal(answer: object) -> str:
    """A message is a refusal; a result, or a traceback, is wrong."""
    refused = isinstance(answer, str) and answer not in ("", "None") and "Traceback" not in answer
    return f"refused: {answer}" if refused else f"wrong: {answer!r:.200}"


def odd_texts() -> list[tuple[str, str]]:
    """Texts within the limits that have done harm elsewhere."""
    return [
        ("<script>alert(1)</script>" * 50, "<img src=x onerror=alert(1)> snow"),
        ("\x00\x01\x1b[31m snow\r\n" * 40, "\u202esnow\u202c \u200b\u200d\ufeff"),
        ("a\u0301\u0302\u0303" * 1000, "e" + "\u0301" * 4000),
        ("." * 5_000, "…" * 5_000),
        ("ก" * 5000, "ข" * 3000),
        ("😀" * 4000, "👩‍👩‍👧‍👦" * 500),
        ("a. " * 1600, "b! " * 1600),
        (" " * 5_000, "\n" * 5_000),
        ("{{7*7}} ${jndi:ldap://x} ' OR 1=1 --", "../../etc/passwd"),
    ]


def hostile_requests() -> dict[str, Request]:
    """Requests by name, all of which must be refused."""

    def call(*data: object) -> Request:
        return lambda server: refusal(server.call("wms", *data))

    def cut_off(server: Server) -> str:
        """An upload that breaks off; the server must go on."""
        with socket.create_connection((server.client.base_url.host, int(server.client.base_url.port or 0))) as line:
            line.sendall(
                b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n"
                b"Content-Length: 90000\r\n\r\n--x\r\n"
                b'Content-Disposition: form-data; name="files"; filename="b.csv"\r\n\r\nsnow'
            )
        return "refused: connection closed by us"

    def large_upload(server: Server) -> str:
        answer = server.client.post("/upload", files={"files": ("big.csv", b"a" * 60_000_000)})
        return refusal(answer.text if answer.status_code != 200 else answer.json())

    return {
        "long text": call("a" * 200_000, ["b"], {}),
        "request of 3 MB": call("a" * 3_000_000, ["b"], {}),
        "number in place of a text": call(7, ["b"], {}),
        "nested lists": call("a", [[[["b"]]]], {}),
        "lone surrogate": lambda server: refusal(server.post("wms", b'{"data": ["\\ud800", ["ice"], {}]}')),
        "broken JSON": lambda server: refusal(server.post("wms", b'{"data": ' * 5000)),
        "unknown option": call("snow", ["ice"], {"no_such_option": 1}),
        "file of the server as model": call("snow", ["ice"], {"model": "/etc/passwd"}),
        "values missing": call("snow"),
        "upload of 60 MB": large_upload,
        "upload that breaks off": cut_off,
    }


@dataclass
class Record:
    """Answers so far; filled from several threads."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, kind: str, request: Request, server: Server) -> None:
        begin = time.monotonic()
        try:
            outcome, _, message = request(server).partition(": ")
        except Exception as error:
            outcome, message = "wrong", repr(error)
        with self.lock:
            self.outcomes.setdefault(kind, Counter())[outcome] += 1
            self.seconds.setdefault(kind, []).append(time.monotonic() - begin)
            if outcome == "wrong":
                print(f"{kind}: {message}", flush=True)
            elif message:
                self.messages.setdefault(kind, message)


def run(minutes: float, seed: int) -> tuple[Record, list[float]]:
    """Answers, and memory (MiB) every ten seconds."""
    draw = random.Random(seed)
    pairs = [(" ".join(draw.sample(SENTENCES, draw.randint(1, 4))), draw.choice(SENTENCES)) for _ in range(60)]
    static = [request for name in ("wms", "sms", "swms") for request in scored(name, pairs)]
    contextual = [request for name in list(METRICS)[3:] for request in scored(name, pairs[:6])]
    odd = [request for name in ("wms", "sms") for request in scored(name, odd_texts())]
    hostile, (visit, upload) = hostile_requests(), visits(pairs[:12])
    record, memory = Record(), []
    with tempfile.TemporaryDirectory(prefix="movers-load-") as folder, ThreadPoolExecutor(64) as pool:
        server = Server(folder)
        try:
            for request in contextual[::6]:  # until every encoder is loaded nothing is measured
                request(server)
            begin, tick = time.monotonic(), 0
            while time.monotonic() - begin < 60 * minutes:
                tick += 1
                kind, requests = ("valid, contextual", contextual) if tick % 25 == 0 else ("valid, static", static)
                pool.submit(record.send, kind, draw.choice(requests), server)
                if tick % 4 == 0:
                    name = draw.choice(list(hostile))
                    pool.submit(record.send, name, hostile[name], server)
                if tick % 20 == 10:
                    pool.submit(record.send, "odd texts within the limits", draw.choice(odd), server)
                if tick % 10 == 5:
                    pool.submit(record.send, "a visit of the page", draw.choice(visit), server)
                if tick % 60 == 30:
                    pool.submit(record.send, "a file on the page", upload, server)
                if tick % 300 == 200:
                    for _ in range(40):
                        pool.submit(record.send, "40 at once", draw.choice(static), server)
                if tick % 10 == 0:
                    memory.append(server.memory())
                time.sleep(max(0.0, tick - (time.monotonic() - begin)))
            pool.shutdown(wait=True)
        finally:
            server.process.kill()
            server.process.wait()
    return record, memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    record, memory = run(arguments.minutes, arguments.seed)
    print("| request | sent | right | refused | wrong | median | slowest | a refusal |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for kind, counts in sorted(record.outcomes.items()):
        times, message = record.seconds[kind], " ".join(record.messages.get(kind, "").split())[:100].replace("|", "¦")
        cells = " | ".join(
            str(count) for count in (counts.total(), counts["right"], counts["refused"], counts["wrong"])
        )
        print(f"| {kind} | {cells} | {statistics.median(times):.2f} s | {max(times):.2f} s | {message} |")
    parts = [memory[begin : begin + 60] for begin in range(0, len(memory), 60)]  # of ten minutes
    print("\nMemory in MiB, medians of ten minutes:", ", ".join(f"{statistics.median(part):,.0f}" for part in parts))
    wrong = any(counts["wrong"] for counts in record.outcomes.values())
    if len(memory) < 180:
        return int(wrong)
    growth = statistics.median(memory[-60:]) / statistics.median(memory[60:120])
    print(f"Memory of the last ten minutes over that of minutes 10 to 20: {growth:.3f} (at most 1.1)")
    return int(wrong or growth > 1.1)


if __name__ == "__main__":
    sys.exit(main())

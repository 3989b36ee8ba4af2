"""An hour of bounded load on `movers serve` over loopback: friendly and hostile requests mixed, every answer checked.

    python benchmarks/load.py --minutes 60

About one friendly request a second: pairs of all kinds of texts, now and then a contextual metric or a file, whose
scores must be those of the metric's function. Beside them hostile ones, which must be refused with a message or, where
they are within the limits, scored right. Once in five minutes 40 requests come at once, all from one address; the
other requests come from 20 addresses of this machine, hostile ones from three more. Memory is that of the server with
the processes that score for it.
"""

from __future__ import annotations

import argparse
import base64
import copy
import csv
import gzip
import io
import json
import math
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
from common import RESULTS, machine, write

import movers
from movers.io import write_file
from movers.registry import METRICS
from movers.serve.answers import form_rows

LINES = resources.files("movers.data").joinpath("unrelated.txt").read_text(encoding="utf-8").splitlines()
SENTENCES = [line for line in LINES if line and not line.startswith("#")]
SYLLABLES = [first + second for first in "bcdfghklmnprstvw" for second in "aeiou"]
REFUSALS = ("expected", "busy", "stopped", "too busy", "Queue is full", "more memory")


# ---------------------------------------------------------------------------------------------------------------------
# The server


class Server:
    """`movers serve` with a folder for uploads of its own."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder = Path(folder)
        self.log = (self.folder / "log.txt").open("w")
        self.uploads = self.folder / "uploads"
        self.uploads.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "movers", "serve", "--port", str(port)],
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, "GRADIO_TEMP_DIR": str(self.uploads)},
        )
        self.address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                self.config = httpx.get(f"{self.address}/config").json()
                break
            except httpx.TransportError:
                time.sleep(0.5)
        self.client: httpx.Client = self.visitor("127.0.0.1").client

    def visitor(self, address: str) -> Server:
        """The same server, asked from another address of this machine."""
        seen = copy.copy(self)
        transport = httpx.HTTPTransport(local_address=address, limits=httpx.Limits(max_connections=200))
        seen.client = httpx.Client(base_url=f"{self.address}/gradio_api", timeout=200, transport=transport)
        return seen

    def tree(self) -> list[int]:
        """The server's process and those below it."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
                parents[int(stat.parent.name)] = int(fields[1])
            except (OSError, ValueError):
                continue
        found = [self.process.pid]
        for process in found:
            found += [child for child, parent in parents.items() if parent == process]
        return found

    def memory(self) -> float:
        """MiB in use by the tree; pages that two processes share count once."""
        total = 0
        for process in self.tree():
            try:
                told = Path(f"/proc/{process}/smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+)", told, re.MULTILINE)[1])  # type: ignore[index]
            except (OSError, TypeError):
                continue
        return total / 1024

    def processor_seconds(self) -> float:
        total = 0.0
        for process in self.tree():
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            except OSError:
                continue
        return total

    def kept(self) -> list[Path]:
        """Files with content in the folder of uploads."""
        return [path for path in self.uploads.rglob("*") if path.is_file() and path.stat().st_size]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()

    # --- requests ---

    def call(self, name: str, *data: object) -> Any:
        """What an endpoint answers: its result, or the text of a refusal."""
        begun = self.client.post(f"/call/{name}", json={"data": data})
        if begun.status_code != 200:
            return _detail(begun)
        told = self.client.get(f"/call/{name}/{begun.json()['event_id']}").text
        event, _, content = told.rpartition("event: ")[2].partition("\ndata: ")
        answer = json.loads(content)
        return answer[0] if event == "complete" else str((answer or {}).get("error"))

    def upload(self, name: str, content: bytes) -> str:
        answer = self.client.post("/upload", files={"files": (name, content)})
        return answer.json()[0] if answer.status_code == 200 else f"refused: {_detail(answer)}"

    def score_file(self, name: str, content: bytes, metric: str = "wms") -> Any:
        """Scores of an uploaded file as its CSV has them, or the text of a refusal."""
        path = self.upload(name, content)
        if path.startswith("refused: "):
            return path
        return self.press_score_file({"path": path, "orig_name": name}, metric)

    def press_score_file(self, file: Mapping[str, object], metric: str = "wms") -> Any:
        fields = [item for item in self.config["dependencies"] if len(item["outputs"]) == 4 and len(item["inputs"]) > 3]
        number = fields[list(METRICS).index(metric)]["id"]
        data = [{**file, "meta": {"_type": "gradio.FileData"}}, "", "", *(row.default for row in form_rows(metric))]
        session = f"load{random.getrandbits(60)}"
        body = {"data": data, "fn_index": number, "session_hash": session}
        joined = self.client.post("/queue/join", json=body)
        if joined.status_code != 200:
            return _detail(joined)
        with self.client.stream("GET", "/queue/data", params={"session_hash": session}) as lines:
            for line in lines.iter_lines():
                if '"process_completed"' in line:
                    output = json.loads(line.removeprefix("data: "))["output"]
                    return _file_scores(output)
        return "no answer"


def _file_scores(output: Mapping[str, Any]) -> Any:
    if "data" not in output:
        return str(output.get("error"))
    link = re.search(r"base64,([^\"]+)", output["data"][3] or "")
    if link is None:
        return re.sub("<[^>]+>", "", output["data"][0])
    return [float(row["score"]) for row in csv.DictReader(io.StringIO(base64.b64decode(link[1]).decode()))]


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]


# ---------------------------------------------------------------------------------------------------------------------
# What is sent


@dataclass(frozen=True)
class Pair:
    """A pair with the score that the metric's function gives it."""

    metric: str
    prediction: str
    reference: str
    score: float

    def send(self, server: Server) -> str:
        """`right`, a refusal, or what is wrong."""
        answer = server.call(self.metric, self.prediction, [self.reference], {})
        if isinstance(answer, str):
            return must_refuse(answer)
        right = math.isclose(answer["score"], self.score, abs_tol=1e-6)
        return "right" if right else f"wrong: {self.metric} {answer['score']} for {self.score}"


def scored(metric: str, texts: list[tuple[str, str]]) -> list[Pair]:
    function = METRICS[metric].function
    scores = function([first for first, _ in texts], [second for _, second in texts], progress=False)["scores"]
    return [Pair(metric, *pair, score) for pair, score in zip(texts, scores, strict=True)]


def friendly_pairs(draw: random.Random) -> list[list[Pair]]:
    """Pairs of sentences and of short texts; those of the static metrics come more often."""
    pairs = [(" ".join(draw.sample(SENTENCES, draw.randint(1, 4))), draw.choice(SENTENCES)) for _ in range(60)]
    static = [pair for name in ("wms", "sms", "swms") for pair in scored(name, pairs)]
    contextual = [pair for name in list(METRICS)[3:] for pair in scored(name, pairs[:12])]
    return [static, contextual]


def odd_pairs() -> list[Pair]:
    """Texts within the limits that have done harm elsewhere."""
    words = [a + b + c for a in SYLLABLES for b in SYLLABLES[::7] for c in "nrst"]
    texts = [
        ("<script>alert(1)</script>" * 50, "<img src=x onerror=alert(1)> snow"),
        ("\x00\x01\x1b[31m snow\r\n" * 40, "\u202esnow\u202c \u200b\u200d\ufeff"),
        ("a\u0301\u0302\u0303" * 2000, "e" + "\u0301" * 5000),
        ("." * 20_000, "…" * 20_000),
        ("“" * 20_000, "snow"),
        ("ก" * 5000, "ข" * 3000),
        ("😀" * 4000, "👩‍👩‍👧‍👦" * 500),
        ("a. " * 6600, "b! " * 6600),
        (" " * 20_000, "\n" * 20_000),
        ("x" * 20_000, "y" * 20_000),
        ("{{7*7}} ${jndi:ldap://x} ' OR 1=1 --", "../../etc/passwd"),
    ]
    heavy = (" ".join(words[:1300]), " ".join(words[1300:2600]))
    return [*(pair for name in ("wms", "sms") for pair in scored(name, texts)), *scored("wms", [heavy])]


def must_refuse(answer: object) -> str:
    """What comes back for a request that must be refused."""
    if isinstance(answer, str) and any(word in answer for word in (*REFUSALS, "error parsing")):
        return f"refused: {answer}"
    return f"wrong: {answer!r:.200}"


def hostile_requests() -> dict[str, Callable[[Server], str]]:
    """Requests by name, each returning `right`, a refusal, or what is wrong."""
    bomb = gzip.compress(b"prediction,reference\n" + b"a" * 200_000_000 + b",b\n")
    rows = b"prediction,reference\n" + b"snow,ice\n" * 2001
    costly: tuple[str, list[str], dict[str, object]] = ("天地人" * 6000, ["人天" * 9000], {})

    def cut_off(server: Server) -> str:
        """An upload that breaks off, and a listener that goes away."""
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(
                b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n"
                b"Content-Length: 90000\r\n\r\n--x\r\n"
                b'Content-Disposition: form-data; name="files"; filename="b.csv"\r\n\r\nsecret'
            )
        begun = server.client.post("/call/wms", json={"data": ["snow", ["ice"], {}]})
        return "right" if begun.status_code == 200 else must_refuse(_detail(begun))

    def never_scored(server: Server) -> str:
        path = server.upload("kept.csv", b"prediction,reference\n%d,b\n" % random.getrandbits(40))
        return "right" if path.endswith("kept.csv") else path

    def endless(server: Server) -> str:
        blocks: Iterator[bytes] = (b" " * 100_000 for _ in range(40))
        try:
            return must_refuse(_detail(server.client.post("/call/wms", content=blocks)))
        except httpx.TransportError as error:
            return f"refused: connection closed ({type(error).__name__})"

    def lone_surrogate(server: Server) -> str:
        headers = {"content-type": "application/json"}
        begun = server.client.post("/call/wms", content=b'{"data": ["\\ud800", ["ice"], {}]}', headers=headers)
        if begun.status_code != 200:
            return must_refuse(_detail(begun))
        return must_refuse(server.client.get(f"/call/wms/{begun.json()['event_id']}").text)

    def call(*data: object, metric: str = "wms") -> Callable[[Server], str]:
        return lambda server: must_refuse(server.call(metric, *data))

    def path(place: str) -> Callable[[Server], str]:
        return lambda server: must_refuse(server.press_score_file({"path": place, "orig_name": "a.csv"}))

    def file(name: str, content: bytes) -> Callable[[Server], str]:
        return lambda server: must_refuse(server.score_file(name, content))

    return {
        "text of 20,001 characters": call("a" * 20_001, ["b"], {}),
        "request of 3 MB": call("a" * 3_000_000, ["b"], {}),
        "request of 4 MB without a length": endless,
        "number in place of a text": call(7, ["b"], {}),
        "nested lists": call("a", [[[["b"]]]], {}),
        "lone surrogate": lone_surrogate,
        "option of 300 characters": call("snow", ["ice"], {"stopwords": "x" * 300}),
        "unknown option": call("snow", ["ice"], {"device": "cuda"}),
        "file of the server as model": call("snow", ["ice"], {"model": "/etc/passwd"}),
        "values missing": call("snow"),
        "address in place of a file": path("http://169.254.169.254/latest/meta-data"),
        "file of the server in place of an upload": path("/etc/passwd"),
        "ten minutes of work": call(*costly, metric="moverscore"),
        "2,001 rows": file("rows.csv", rows),
        "6 MB file": file("big.csv", b"a" * 6_000_000),
        "200 kB of gzip that are 200 MB": file("bomb.csv.gz", bomb),
        "broken JSON": file("a.jsonl", b'{"prediction": ' * 5000),
        "binary as CSV": file("a.csv", bytes(range(256)) * 100),
        "upload that breaks off": cut_off,
        "upload that is never scored": never_scored,
    }


# ---------------------------------------------------------------------------------------------------------------------
# The run


@dataclass
class Record:
    """Answers so far; filled from several threads."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict)
    waiting: list[float] = field(default_factory=list)  # processes that wanted a core
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, outcome: str, took: float) -> None:
        word, _, message = outcome.partition(": ")
        with self.lock:
            self.outcomes.setdefault(kind, Counter())[word] += 1
            self.seconds.setdefault(kind, []).append(took)
            if word == "refused":
                self.messages.setdefault(kind, message)
            elif word != "right":
                self.wrong.append(f"{kind}: {outcome}")
                print(self.wrong[-1], flush=True)


def run(minutes: float, seed: int) -> tuple[Record, list[tuple[float, float]], float, int]:
    """Answers, memory over time (minutes, MiB), share of one core, files left on disk."""
    draw = random.Random(seed)
    static, contextual = friendly_pairs(draw)
    odd, hostile = odd_pairs(), hostile_requests()
    table = [(draw.choice(SENTENCES), draw.choice(SENTENCES)) for _ in range(20)]
    expected = movers.wms([first for first, _ in table], [second for _, second in table])["scores"]
    written = io.StringIO()
    csv.writer(written).writerows([("prediction", "reference"), *table])
    content = written.getvalue().encode()
    record = Record()

    def send(kind: str, request: Callable[[Server], str], visitor: int = 0) -> None:
        begin = time.monotonic()
        try:
            outcome = request(visitors[visitor])
        except Exception as error:
            outcome = f"wrong: {error!r}"
        record.add(kind, outcome, time.monotonic() - begin)

    def friendly_file(server: Server) -> str:
        answer = server.score_file("rows.csv", content)
        if isinstance(answer, str):
            return must_refuse(answer)
        return "right" if answer == expected else f"wrong: {answer}"

    with tempfile.TemporaryDirectory(prefix="movers-load-") as folder, ThreadPoolExecutor(64) as pool:
        server = Server(folder)
        visitors = [server.visitor(f"127.0.1.{number}") for number in range(1, 25)]
        for pair in contextual[::12]:  # until every encoder is loaded nothing is measured
            send("first", pair.send)
        record.outcomes.clear()
        record.seconds.clear()
        memory = []
        begin, used = time.monotonic(), server.processor_seconds()
        tick = 0
        while (now := time.monotonic() - begin) < 60 * minutes:
            tick += 1
            kind, pairs = ("friendly, contextual", contextual) if tick % 25 == 0 else ("friendly, static", static)
            pool.submit(send, kind, draw.choice(pairs).send, tick % 20)
            if tick % 60 == 30:
                pool.submit(send, "friendly, file", friendly_file, tick % 20)
            if tick % 4 == 0:
                name = draw.choice(list(hostile))
                pool.submit(send, name, hostile[name], 20 + tick % 3)
            if tick % 20 == 10:
                pool.submit(send, "odd texts within the limits", draw.choice(odd).send, 20)
            if tick % 300 == 200:
                for _ in range(40):
                    pool.submit(send, "40 at once", draw.choice(static).send, 23)
            if tick % 10 == 0:
                memory.append((now / 60, server.memory()))
                record.waiting.append(os.getloadavg()[0])
            time.sleep(max(0.0, tick - (time.monotonic() - begin)))
        share = (server.processor_seconds() - used) / (60 * minutes)
        pool.shutdown(wait=True)
        begin = time.monotonic()
        # gradio keeps complete uploads ten minutes; those that broke off go after one.
        while [path for path in server.kept() if path.name != "kept.csv"] and time.monotonic() - begin < 120:
            time.sleep(5)
        left = len([path for path in server.kept() if path.name != "kept.csv"])
        server.stop()
        left += len(server.kept())  # now nothing at all may be there
    return record, memory, share, left


def report(record: Record, memory: list[tuple[float, float]], share: float, left: int, minutes: float) -> list[str]:
    total = sum(sum(counts.values()) for counts in record.outcomes.values())
    friendly = [took for kind, times in record.seconds.items() if kind.startswith("friendly") for took in times]
    lines = [
        f"# {minutes:.0f} minutes of load on `movers serve`",
        "",
        "Written by `python benchmarks/load.py`, which says what is sent. The machine was shared with other work: "
        f"{statistics.mean(record.waiting):.0f} processes on average wanted its {os.cpu_count()} cores. All times are "
        "by the clock.",
        "",
        machine(("gradio", "numpy", "torch", "POT")),
        "",
        f"{total:,} requests: {sum(counts['right'] for counts in record.outcomes.values()):,} answered right, "
        f"{sum(counts['refused'] for counts in record.outcomes.values()):,} refused with a message, "
        f"**{len(record.wrong)} wrong**. Slowest friendly answer: **{max(friendly):.1f} s** (median "
        f"{statistics.median(friendly):.2f} s, 99 % within {sorted(friendly)[int(0.99 * len(friendly))]:.2f} s). "
        f"The server used {100 * share:.0f} % of one core. Uploads left on disk: {left}.",
        "",
        "Memory of the server and the processes that score for it (proportional set size):",
        "",
        "| minutes | least | median | most |",
        "|---|---|---|---|",
    ]
    step = max(minutes / 6, 0.5)
    for part in range(math.ceil(minutes / step)):
        own = [value for at, value in memory if part * step <= at < (part + 1) * step]
        if own:
            lines.append(
                f"| {part * step:.0f}–{(part + 1) * step:.0f} | {min(own):,.0f} MiB "
                f"| {statistics.median(own):,.0f} MiB | {max(own):,.0f} MiB |"
            )
    lines += ["", "![Memory over time](load.png)", "", "| request | sent | right | refused | median | slowest |"]
    lines.append("|---|---|---|---|---|---|")
    for kind, counts in sorted(record.outcomes.items(), key=lambda item: (not item[0].startswith("friendly"), item[0])):
        times = record.seconds[kind]
        lines.append(
            f"| {kind} | {sum(counts.values()):,} | {counts['right']:,} | {counts['refused']:,} "
            f"| {statistics.median(times):.2f} s | {max(times):.2f} s |"
        )
    lines += ["", "| request | a refusal |", "|---|---|"]
    for kind, message in sorted(record.messages.items()):
        lines.append(f"| {kind} | {' '.join(message.split())[:160].replace('|', '¦')} |")
    return lines + [f"- {text[:300]}" for text in record.wrong]


def draw_memory(memory: list[tuple[float, float]]) -> bytes:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 2.4), layout="constrained")
    axes.plot(*zip(*memory, strict=True), linewidth=1)
    axes.set(xlabel="minutes", ylabel="MiB", ylim=(0, None))
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=80)
    return written.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=16)
    options = parser.parse_args()
    record, memory, share, left = run(options.minutes, options.seed)
    if options.minutes >= 60:
        write_file(RESULTS / "load.png", draw_memory(memory))
        write("load", report(record, memory, share, left, options.minutes))
    else:
        print("\n".join(report(record, memory, share, left, options.minutes)))


if __name__ == "__main__":
    main()

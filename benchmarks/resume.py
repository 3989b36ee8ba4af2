"""Kill `movers score` at random moments, go on with `--resume`, and compare with a run that was not stopped.

    MOVERS_DATA=… python benchmarks/resume.py [MOMENTS [PAIRS]]

Each row: a run is killed (SIGKILL) at a random moment after it has made its partial file and before it has finished,
`--resume` goes on, and file and printed summary are compared byte for byte. Pairs are WMT17's translations with
references, shifted against each other in each further round, so that pairs do not repeat. Formats take turns.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import judged, machine, write

FORMATS = (".jsonl.gz", ".csv", ".parquet", ".jsonl", ".arrow")
METRICS = "wms[idf=corpus],sms"


def make(path: Path, count: int) -> None:
    rows = judged("wmt17_seg_da_to_en")
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            turn, place = divmod(number, len(rows))
            other = rows[(place + turn) % len(rows)]["references"][0]
            file.write(json.dumps({"prediction": rows[place]["candidate"], "reference": other}) + "\n")


def start(data: Path, output: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "movers", "score", METRICS, "-p", data, "-r", data, "-o", output, *more]
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(running: subprocess.Popen[str]) -> tuple[str, str]:
    streams = running.communicate()
    assert running.returncode == 0, streams[1]
    return streams


def kept_rows(partial: Path) -> int:
    """Rows in the complete blocks, found as the run will find them."""
    from movers.io import open_blocks

    with open_blocks(partial.with_name(partial.name.removesuffix(".partial")), resume=True) as blocks:
        return blocks.state[0]["totals"]["rows"] if blocks.state else 0  # type: ignore[index]


def main(moments: int = 10, pairs: int = 20_000) -> None:
    draw = random.Random(15)
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "pairs.jsonl"
        make(data, pairs)
        expected: dict[str, tuple[bytes, tuple[str, str]]] = {}
        took = 0.0
        for number in range(moments):
            kind = FORMATS[number % len(FORMATS)]
            output = folder / f"scores{kind}"
            if kind not in expected:
                begin = time.perf_counter()
                said = finish(start(data, output))
                took = time.perf_counter() - begin
                expected[kind] = output.read_bytes(), said
            output.unlink(missing_ok=True)
            while not output.with_name(f"{output.name}.partial").exists():  # killed too early or too late: once more
                output.unlink(missing_ok=True)
                moment = draw.uniform(0.0, took)
                running = start(data, output)
                time.sleep(moment)
                running.send_signal(signal.SIGKILL)
                running.communicate()
            kept = kept_rows(output.with_name(f"{output.name}.partial"))
            begin = time.perf_counter()
            said = finish(start(data, output, "--resume"))
            again = time.perf_counter() - begin
            equal = output.read_bytes() == expected[kind][0]
            cells = [kind, f"{moment:.1f} s of {took:.1f} s", f"{kept:,}"]
            cells += [f"{again:.1f} s", "yes" if equal else "NO", "yes" if said == expected[kind][1] else "NO"]
            lines.append(f"| {number + 1} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
            output.unlink()
            left = sorted(path.name for path in folder.iterdir())
            assert left == [data.name], left
    write(
        "resume",
        [
            "# Runs that were killed and went on",
            "",
            machine(("numpy", "POT", "pyarrow")),
            "",
            f"`movers score {METRICS}` on {pairs:,} pairs of WMT17 texts; times on a shared machine.",
            "",
            "| # | output | killed after | rows kept | time of --resume | bytes equal | summary equal |",
            "|--:|---|---|--:|--:|---|---|",
            *lines,
        ],
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

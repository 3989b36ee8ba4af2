"""Peak memory of `movers score wms` on 20,000 and on 200,000 pairs.

    python benchmarks/memory.py

Texts are drawn from a vocabulary of 30,000 made-up words with Zipf's frequencies, 12 words each.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from common import machine, write


def make(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    letters = "bcdfghklmnprst"
    vowels = "aeiou"
    words = [
        "".join(draw.choice(letters) + draw.choice(vowels) for _ in range(draw.randint(2, 4))) for _ in range(30_000)
    ]
    weights = [*accumulate(1 / (rank + 1) for rank in range(len(words)))]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            chosen = draw.choices(words, cum_weights=weights, k=12)
            file.write(" ".join(chosen[:6]).capitalize() + ". " + " ".join(chosen[6:]).capitalize() + ".\n")


def main() -> None:
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (20_000, 200_000):
            predictions, references, output = (Path(folder) / f"{name}{count}.txt" for name in "pro")
            make(predictions, count, 1)
            make(references, count, 2)
            begin = time.perf_counter()
            command = [
                sys.executable,
                "-m",
                "movers",
                "score",
                "wms",
                "-p",
                predictions,
                "-r",
                references,
                "-o",
                output,
            ]
            child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            assert status == 0
            took = time.perf_counter() - begin
            assert sum(1 for _ in output.open()) == count
            lines.append(f"| {count:,} | {usage.ru_maxrss / 1024:,.0f} MiB | {took:.0f} s |")
    write(
        "memory",
        [
            "# Memory of `movers score wms`",
            "",
            machine(("numpy", "POT")),
            "",
            "| pairs | peak RSS | time |",
            "|---|---|---|",
            *lines,
        ],
    )


if __name__ == "__main__":
    main()

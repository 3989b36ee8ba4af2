"""What the benchmarks share: the machine they ran on, data, and ratios measured in one interleaved run."""

from __future__ import annotations

import html
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from pathlib import Path
from typing import Any

from movers.io import read_records, write_file

RESULTS = Path(__file__).parent / "results"


def machine(packages: Sequence[str] = ("numpy", "scipy", "torch", "transformers", "POT")) -> str:
    """One line about processor, threads and versions."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = []
    for package in ("movers", *packages):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}; {', '.join(versions)}"


def data_folder() -> Path:
    """The folder that MOVERS_DATA names, with human/ and corpora/ in it."""
    folder = os.environ.get("MOVERS_DATA")
    if not folder:
        sys.exit("set MOVERS_DATA to the folder that holds human/<name>.jsonl.gz")
    return Path(folder)


def judged(name: str, decode: bool = False) -> list[dict[str, Any]]:
    """Rows of `$MOVERS_DATA/human/<name>.jsonl.gz`; `decode` turns HTML entities of the texts into characters."""
    rows: list[dict[str, Any]] = list(read_records(data_folder() / "human" / f"{name}.jsonl.gz"))
    if decode:
        for row in rows:
            row["candidate"] = html.unescape(row["candidate"])
            row["references"] = [html.unescape(text) for text in row["references"]]
    return rows


def chaganty() -> list[dict[str, Any]]:
    """The 2,085 judged system summaries of Clark et al. Table 2."""
    rows = judged("chaganty18_cnndm")
    return [row for row in rows if not row["is_reference"] and row["scores"]["overall"] is not None]


def made_up(count: int, words: int = 12, seed: int = 1) -> Iterator[str]:
    """Texts of two sentences from 30,000 made-up words with Zipf's frequencies."""
    draw = random.Random(seed)
    pairs = [letter + vowel for letter in "bcdfghklmnprst" for vowel in "aeiou"]
    forms = ["".join(draw.choices(pairs, k=draw.randint(2, 4))) for _ in range(30_000)]
    weights = [*accumulate(1 / (rank + 1) for rank in range(len(forms)))]
    for _ in range(count):
        chosen = draw.choices(forms, cum_weights=weights, k=words)
        yield " ".join(chosen[: words // 2]).capitalize() + ". " + " ".join(chosen[words // 2 :]).capitalize() + "."


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


@dataclass(frozen=True)
class Measured:
    """Seconds of the kept runs of ours and of the floor around them, how many were repeated, whether all were quiet."""

    ours: list[float]
    floors: list[float]
    repeated: int
    quiet: bool

    @property
    def ratios(self) -> list[float]:
        return sorted(ours / floor for ours, floor in zip(self.ours, self.floors, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def describe(self, name: str) -> str:
        """A ratio as a line of text."""
        note = "" if self.quiet else " (noisy: the two floors of a run differed by more than 10 %)"
        return (
            f"{name}: {self.ratio:.2f} × (from {self.ratios[0]:.2f} to {self.ratios[-1]:.2f}); "
            f"{statistics.median(self.ours):.2f} s against {statistics.median(self.floors):.2f} s{note}"
        )


def interleaved(
    floor: Callable[[], object],
    ours: Callable[[], object],
    runs: int = 5,
    tolerance: float = 0.1,
    tries: int | None = None,
) -> Measured:
    """Runs of floor, ours, floor; one whose two floors differ too much is repeated, up to `tries` (3 × runs) in all."""
    measured: list[tuple[float, float, float]] = []  # how much the floors differ, ours, mean of the floors
    while sum(noise <= tolerance for noise, *_ in measured) < runs and len(measured) < (tries or 3 * runs):
        before, middle, after = seconds(floor), seconds(ours), seconds(floor)
        measured.append((abs(before - after) / min(before, after), middle, (before + after) / 2))
    kept = sorted(measured)[:runs]  # on a machine that never rests: the calmest runs, and the result says so
    quiet = kept[-1][0] <= tolerance
    return Measured([middle for _, middle, _ in kept], [base for *_, base in kept], len(measured) - len(kept), quiet)


def write(name: str, lines: list[str]) -> None:
    """Print the result, and keep it in `benchmarks/results`."""
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    write_file(RESULTS / f"{name}.md", text)
    print(text)

"""What the benchmarks share: the machine they ran on, data, and ratios measured in one interleaved run."""

from __future__ import annotations

import gzip
import html
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine(packages: tuple[str, ...] = ("numpy", "scipy", "torch", "transformers", "POT")) -> str:
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


def judged(name: str, decode: bool = False) -> list[dict[str, Any]]:
    """Rows of `$MOVERS_DATA/human/<name>.jsonl.gz`; `decode` turns HTML entities of the texts into characters."""
    folder = os.environ.get("MOVERS_DATA")
    if not folder:
        sys.exit("Set MOVERS_DATA to the folder that holds human/<name>.jsonl.gz")
    path = Path(folder) / "human" / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if decode:
        for row in rows:
            row["candidate"] = html.unescape(row["candidate"])
            row["references"] = [html.unescape(text) for text in row["references"]]
    return rows


def chaganty() -> list[dict[str, Any]]:
    """The 2,085 judged system summaries of Clark et al. Table 2."""
    rows = judged("chaganty18_cnndm")
    return [row for row in rows if not row["is_reference"] and row["scores"]["overall"] is not None]


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def interleaved(
    floor: Callable[[], Any], ours: Callable[[], Any], runs: int = 5, tolerance: float = 0.1, tries: int = 15
) -> dict[str, Any]:
    """Ratio ours ÷ floor: median of runs of floor, ours, floor; one whose two floors differ too much is repeated."""
    kept: list[tuple[float, float, float]] = []
    fallback: list[tuple[float, tuple[float, float, float]]] = []
    dropped = 0
    while len(kept) < runs and len(kept) + dropped < tries:
        before, middle, after = seconds(floor), seconds(ours), seconds(floor)
        measured = (middle / ((before + after) / 2), middle, (before + after) / 2)
        fallback.append((abs(before - after) / min(before, after), measured))
        if abs(before - after) <= tolerance * min(before, after):
            kept.append(measured)
        else:
            dropped += 1
    quiet = len(kept) == runs
    if not quiet:  # a machine that never rests: the calmest runs, and the result says so
        kept = [measured for _, measured in sorted(fallback)[:runs]]
    ratios = sorted(ratio for ratio, _, _ in kept)
    return {
        "ratio": statistics.median(ratios),
        "spread": [ratios[0], ratios[-1]],
        "ours_seconds": statistics.median(middle for _, middle, _ in kept),
        "floor_seconds": statistics.median(base for _, _, base in kept),
        "repeated": dropped,
        "quiet": quiet,
    }


def describe(name: str, measured: dict[str, Any]) -> str:
    """A ratio as a line of text."""
    low, high = measured["spread"]
    note = "" if measured["quiet"] else " (noisy: the two floors of a run differed by more than 10 %)"
    return (
        f"{name}: {measured['ratio']:.2f} × (from {low:.2f} to {high:.2f}); "
        f"{measured['ours_seconds']:.2f} s against {measured['floor_seconds']:.2f} s{note}"
    )


def write(name: str, lines: list[str]) -> None:
    """Print the result, and keep it in `benchmarks/results`."""
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)

"""What many pairs cost, from the rates that `bench.py` measured: writes SCALE.md.

    python benchmarks/scale.py

Whatever is not measured is an assumption with a name; change it here and run again.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import RESULTS

from movers.io import write_file

COUNTS = {"10 million": 10_000_000, "1 billion": 1_000_000_000}
# Assumptions
CORE_HOUR = 0.04  # dollars per core and hour, rented
GPU_HOUR = 1.50  # dollars per hour, one GPU with 24 GB and its host
GPU_SPEED = 150.0  # encoder forward on such a GPU in float16 against one core in float32
LOSS = 0.85  # of the ideal rate is left with many processes: shared caches and memory, clock under load
NODES, NODE_CORES = 16, 64
BYTES = 300  # read and written per pair: two texts of 20 words and a score, not compressed
DISK = 200e6  # bytes per second of one file on network storage


@dataclass(frozen=True)
class Cost:
    """Core seconds per pair: all of it, and what stays on a processor when a GPU encodes."""

    metric: str
    total: float
    host: float


def median(found: dict[str, Any], name: str, kind: str = "cpu") -> float:
    return statistics.median(one[name][kind] for one in found["repeats"]) / 1e6


def measured() -> tuple[list[Cost], str]:
    """Core seconds per pair by the medians of processor time, and what they were measured on."""
    static, contextual = (json.loads((RESULTS / f"bench_{part}.json").read_text()) for part in ("wms", "contextual"))
    words = median(static, "wms, 1 process, 1 thread")
    costs = [Cost("wms", words, words)]
    floor = median(contextual, "encoder alone")
    for name in ("moverscore", "bertscore_emd"):
        total = median(contextual, name)
        costs.append(Cost(name, total, max(total - floor, 0.01 * floor)))
    counts = (f"{found['settings']['pairs']:,} pairs at load {found['load'][0]:.0f}" for found in (static, contextual))
    return costs, f"{static['machine']} ({' and '.join(counts)})"


def duration(seconds: float) -> str:
    for unit, size in (("years", 365 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def dollars(value: float) -> str:
    return f"${value:,.0f}" if value >= 10 else f"${value:.2f}"


def rows(costs: list[Cost]) -> list[str]:
    lines = ["| pairs | metric | where | time | cost | binds first |", "|---|---|---|--:|--:|---|"]
    for label, count in COUNTS.items():
        reading = count * BYTES / DISK
        for cost in costs:
            cores = {
                "one core": 1.0,
                "64 cores": 64 * LOSS,
                f"cluster, {NODES} × {NODE_CORES} cores": NODES * NODE_CORES * LOSS,
            }
            for where, speed in cores.items():
                compute, paid = count * cost.total / speed, 1 if speed == 1 else speed / LOSS
                spent = max(compute, reading)
                binds = (
                    "reading one file" if reading > compute else "encoder" if cost.host < cost.total else "processor"
                )
                price = dollars(paid * spent / 3600 * CORE_HOUR)
                lines.append(f"| {label} | {cost.metric} | {where} | {duration(spent)} | {price} | {binds} |")
            if cost.host < cost.total:
                encoding = count * (cost.total - cost.host) / GPU_SPEED
                solving = count * cost.host / (8 * LOSS)
                spent = max(encoding, solving, reading)
                binds = (
                    "transport on 8 host cores"
                    if solving >= spent
                    else "GPU"
                    if encoding >= spent
                    else "reading one file"
                )
                price = dollars(spent / 3600 * GPU_HOUR)
                lines.append(f"| {label} | {cost.metric} | one GPU, 8 cores | {duration(spent)} | {price} | {binds} |")
    return lines


def main() -> None:
    costs, machine = measured()
    lines = [
        "# What many pairs cost",
        "",
        "Written by `scale.py` from the rates in [results/bench.md](results/bench.md); only these are measured:",
        "",
        "| metric | core seconds per 1,000 pairs | of these not the encoder's forward pass |",
        "|---|--:|--:|",
        *(f"| {cost.metric} | {1000 * cost.total:.3g} | {1000 * cost.host:.3g} |" for cost in costs),
        "",
        f"Measured on {machine}: news summaries of about 30 × 30 word types for `wms`, sentences of WMT17 with "
        "all-MiniLM-L6-v2 for the others, every text distinct. An encoder with ten times the parameters takes about "
        "ten times as long; texts that come again within a block of 1,024 pairs are encoded once.",
        "",
        "Assumed, not measured:",
        "",
        f"- {LOSS:.0%} of the ideal rate is left on many cores (caches, memory and clock are shared);",
        f"- a GPU encodes {GPU_SPEED:.0f} times as fast in float16 as one of these cores in float32; transport runs on "
        "8 cores beside it;",
        f"- a core costs ${CORE_HOUR} per hour, a GPU with its host ${GPU_HOUR};",
        f"- a pair is {BYTES} bytes of text and score, and one file is read and written at {DISK / 1e6:.0f} MB/s; with "
        "several files, one per node, this bound moves away.",
        "",
        *rows(costs),
        "",
        "Memory does not bind: it does not grow with the pairs (see the growth part of the results).",
    ]
    write_file(Path(__file__).parent / "SCALE.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

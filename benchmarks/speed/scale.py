"""What many pairs cost, from the rates in results.csv: the part `scale` of bench.py.

Whatever is not measured is an assumption with a name; change it here and run again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from common import read_results  # noqa: E402

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


def measured() -> list[Cost]:
    """Core seconds per pair by the medians of processor time."""
    tables = read_results(Path(__file__).parent)
    words = float(tables["wms"]["wms, 1 process, 1 thread"]["CPU µs"]) / 1e6
    contextual = {name: float(cells["CPU µs"]) / 1e6 for name, cells in tables["contextual"].items()}
    floor = contextual["encoder alone"]
    return [Cost("wms", words, words)] + [
        Cost(name, contextual[name], max(contextual[name] - floor, 0.01 * floor))
        for name in ("moverscore", "bertscore_emd")
    ]


def duration(seconds: float) -> str:
    for unit, size in (("years", 365 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def estimate(quick: bool) -> dict[str, dict[str, dict[str, object]]]:
    costs = measured()
    rows: dict[str, dict[str, object]] = {}
    for label, count in COUNTS.items():
        reading = count * BYTES / DISK
        for cost in costs:
            for where, cores in (("one core", 1), ("64 cores", 64), ("16 × 64 cores", NODES * NODE_CORES)):
                computing = count * cost.total / (cores if cores == 1 else cores * LOSS)
                limit = "encoder" if cost.host < cost.total else "processor"
                times = {limit: computing, "reading one file": reading}
                rows[f"{label}, {cost.metric}, {where}"] = _row(times, cores * CORE_HOUR)
            if cost.host < cost.total:
                times = {
                    "GPU": count * (cost.total - cost.host) / GPU_SPEED,
                    "transport on 8 host cores": count * cost.host / (8 * LOSS),
                    "reading one file": reading,
                }
                rows[f"{label}, {cost.metric}, one GPU, 8 cores"] = _row(times, GPU_HOUR)
    rates: dict[str, dict[str, object]] = {
        cost.metric: {
            "core seconds per 1,000 pairs": f"{1000 * cost.total:.3g}",
            "without the encoder's forward pass": f"{1000 * cost.host:.3g}",
        }
        for cost in costs
    }
    return {"rates": rates, "many pairs": rows}


def _row(times: dict[str, float], price: float) -> dict[str, object]:
    limit = max(times, key=lambda name: times[name])
    dollars = price * times[limit] / 3600
    return {
        "time": duration(times[limit]),
        "cost": f"${dollars:,.0f}" if dollars >= 10 else f"${dollars:.2f}",
        "limited by": limit,
    }

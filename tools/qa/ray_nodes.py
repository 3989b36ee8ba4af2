"""Two Ray nodes on this machine, one of them killed in mid-run: the scores must be those of a run without Ray.

    python tools/qa/ray_nodes.py

The second node's raylet and workers get SIGKILL as soon as one of its workers is scoring. Prints a table; the exit
status is 1 if a row differs.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import sys
import threading
import time
from contextlib import suppress

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

import psutil  # type: ignore[import-untyped]  # noqa: E402
import ray  # noqa: E402
from datasets import Dataset  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

from movers.engines import score_dataset  # noqa: E402
from movers.scores.unrelated import unrelated_texts  # noqa: E402

NODE = {"num_cpus": 1, "object_store_memory": 200_000_000}


def kill_when_scoring(raylet: int, killed: list[int]) -> None:
    """End a node without warning once its workers score."""
    node = psutil.Process(raylet)
    while node.is_running():
        with suppress(psutil.NoSuchProcess):  # a process that has just ended
            family = [node, *node.children(recursive=True)]
            scoring = [process for process in family if "MapWorker" in " ".join(process.cmdline())]
            if any(process.cpu_times().user > 3 for process in scoring):  # it has loaded the metric
                time.sleep(1)
                for process in family:
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(signal.SIGKILL)
                killed.append(len(scoring))
                return
        time.sleep(0.2)


def run(metric: str, rows: int, batch_size: int) -> bool:
    """Print a row of the table; whether all scores are equal."""
    draw = random.Random(0)
    texts = [[" ".join(draw.sample(unrelated_texts(), 2)) for _ in range(rows)] for _ in range(2)]
    dataset = Dataset.from_dict({"prediction": texts[0], "reference": texts[1]})
    expected = score_dataset(dataset, metric, batch_size=batch_size, threads=1).dataset[metric]
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    second = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    ray.init(cluster.address, logging_level="ERROR")
    killed: list[int] = []
    raylet = second.all_processes["raylet"][0].process.pid
    threading.Thread(target=kill_when_scoring, args=(raylet, killed), daemon=True).start()
    scored = score_dataset(dataset, metric, engine="ray", batch_size=batch_size, concurrency=2, threads=1)
    equal = sum(a == b for a, b in zip(expected, scored.dataset[metric], strict=True))
    alive = sum(node["Alive"] for node in ray.nodes())
    print(f"| {metric} | {rows:,} | {killed} | {alive} | {equal:,} |", flush=True)
    ray.shutdown()
    cluster.shutdown()
    return equal == rows and bool(killed)


def main() -> int:
    print("| metric | rows | scoring workers killed | nodes left | equal rows |\n|---|--:|--:|--:|--:|")
    return int(not all([run("wms", 60_000, 1024), run("moverscore", 1_200, 16)]))


if __name__ == "__main__":
    sys.exit(main())

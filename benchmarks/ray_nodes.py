"""Two Ray nodes on this machine, one of them killed in mid-run: the scores are those of a run without Ray.

    python benchmarks/ray_nodes.py

`wms` scores made-up texts, `moverscore` sentences of the shipped list of unrelated texts. The second
node's raylet and workers get SIGKILL when the first results are there.
"""

from __future__ import annotations

import os
import secrets
import signal

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

import psutil  # type: ignore[import-untyped]  # noqa: E402
import ray  # noqa: E402
from common import machine, made_up, write  # noqa: E402
from ray.cluster_utils import Cluster as Nodes  # noqa: E402

from movers.engines.cluster import Cluster, score_on_cluster  # noqa: E402
from movers.engines.job import Scored, Section, make_sections, score_sections  # noqa: E402
from movers.registry import METRICS  # noqa: E402
from movers.scores.rescaling import unrelated_texts  # noqa: E402

NODE = {"num_cpus": 1, "object_store_memory": 200_000_000}


def kill(raylet: int) -> int:
    """End a node without warning. Returns how many of its workers were scoring."""
    node = psutil.Process(raylet)
    family = [node, *node.children(recursive=True)]
    busy = sum("MapWorker" in " ".join(process.cmdline()) for process in family)
    for process in family:
        process.send_signal(signal.SIGKILL)
    return busy


def run(name: str, sections: list[Section], kill_after: int) -> list[str]:
    metric = METRICS[name].build(METRICS[name].parse({"progress": False, "threads": 1}))
    expected = list(score_sections([metric], sections))
    nodes = Nodes(initialize_head=True, head_node_args=NODE)
    second = nodes.add_node(**NODE)
    nodes.wait_for_nodes()
    ray.init(nodes.address, logging_level="ERROR")
    found: list[Scored] = []
    killed = 0
    for scored in score_on_cluster([metric], sections, Cluster()):
        found.append(scored)
        if len(found) >= kill_after and not killed:
            killed = kill(second.all_processes["raylet"][0].process.pid)
    alive = sum(node["Alive"] for node in ray.nodes())
    ray.shutdown()
    nodes.shutdown()
    assert killed, "the second node had no actor: nothing was shown"
    rows = sum(len(own) for own in expected)
    same = sum(a == b for own, other in zip(expected, found, strict=True) for a, b in zip(own, other, strict=True))
    return [name, f"{rows:,}", str(len(sections)), f"{kill_after}", str(killed), str(alive), f"{same:,}"]


def main() -> None:
    references = [[text] for text in made_up(40_000, seed=2)]
    words = list(make_sections(list(made_up(40_000, seed=1)), {"references": references}, 1024))
    real = unrelated_texts()
    pairs = [(real[n % len(real)], [real[n * 7 % len(real)]]) for n in range(400)]
    sentences = list(make_sections([text for text, _ in pairs], {"references": [own for _, own in pairs]}, 16))
    table = [run("wms", words, 12), run("moverscore", sentences, 8)]
    write(
        "ray_nodes",
        [
            "# One of two Ray nodes killed in mid-run",
            "",
            machine(("ray", "pyarrow", "numpy", "torch", "POT")),
            "",
            "Two nodes of one processor on one machine. After some sections the second node's raylet and "
            "workers got SIGKILL. A row is equal if score, parts, flags and distance are, float by float.",
            "",
            "| metric | rows | sections | killed after | scoring workers killed | nodes left | equal rows |",
            "|---|---|---|---|---|---|---|",
            *(f"| {' | '.join(row)} |" for row in table),
        ],
    )


if __name__ == "__main__":
    main()

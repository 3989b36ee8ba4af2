"""Threads, processes forked after use, and processes that fill one cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tiny import ROOT, tiny_table, vector_bytes

import movers

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("wms", {"idf": "corpus", "distance": "cosine"}),
    ("wms", {"stopwords": None, "temperature": 1, "multi_ref": "mean"}),
    ("sms", {"rescale": True}),
    ("swms", {"normalize": True, "threads": 1}),
    ("moverscore", {"device": "cpu", "n_gram": 2, "idf": "corpus"}),
    ("bertscore_emd", {"device": "cpu", "layer": 3}),
    ("bertscore_hungarian", {"device": "cpu", "alignment": "greedy"}),
]


def scores(call: tuple[str, dict[str, Any]]) -> list[float]:
    predictions = ["Snow fell on the old town.", "The bank was not surprised. It rained.", "", "A cat slept on 3 mats."]
    references = [["It snowed in the city.", "Rain."], ["Nobody wondered."], ["Ice."], ["The dog did not sleep."]]
    return getattr(movers, call[0])(predictions, references, **call[1])["scores"]


def test_calls_with_different_options_in_threads_give_what_each_gives_alone() -> None:
    alone = [scores(call) for call in CALLS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(scores, CALLS * 2))
    for expected, actual in zip(alone * 2, together, strict=True):
        assert actual == pytest.approx(expected, abs=1e-6)


# Texts long enough for torch to use its threads; a child scores others than its parent, which are not in the cache.
FORK = """
import multiprocessing, random, movers
words = "the of and man sells snow online river town rain bank rate people house water night".split()
def make(seed):
    return [" ".join(random.Random(seed + n).choices(words, k=40)) for n in range(8)]
def score(metric, seed):
    return getattr(movers, metric)(make(seed), make(seed)[::-1], device="cpu")["scores"]
def close(one, other):
    return max(abs(x - y) for x, y in zip(one, other, strict=True)) < 1e-6
"""


@pytest.mark.parametrize("metric", ["wms", "moverscore"])
def test_a_child_forked_after_use_gives_the_same_scores(metric: str, run_python: Callable[..., str]) -> None:
    code = f"""{FORK}
score("{metric}", 1)
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=lambda: queue.put(score("{metric}", 20)), daemon=True)
child.start()
print(close(queue.get(timeout=300), score("{metric}", 20)))
"""
    assert run_python(code, OMP_NUM_THREADS="2") == "True"


def test_processes_that_fill_one_cache_at_once_read_the_same_vectors(tmp_path: Path) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_bytes(vector_bytes(tiny_table(["snow", "ice", *(f"word{n}" for n in range(5000))]), "glove"))
    code = f"import movers; print(movers.wms(['snow word7'], ['ice'], model={str(vectors)!r}, temperature=1))"
    environment = {"MOVERS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT), "PATH": ""}
    arguments: dict[str, Any] = {"env": environment, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", code], **arguments) for _ in range(3)]
    printed = {process.communicate(timeout=600)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(printed) == 1 and "wms|emb:v-4@" in printed.pop()
    assert len(list((tmp_path / "cache" / "vectors").iterdir())) == 1  # nothing half-built beside it

"""Many threads with different options, and processes that fill one cache."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny import ROOT, tiny_table, vector_bytes

import movers

PREDICTIONS = ["Snow fell on the old town.", "The bank was not surprised. It rained.", "", "A cat slept on 3 mats."]
REFERENCES = [
    ["It snowed in the city.", "Rain."],
    ["Nobody at the bank wondered."],
    ["Ice."],
    ["The dog did not sleep."],
]
CALLS: list[tuple[str, dict[str, object]]] = [
    ("wms", {}),
    ("wms", {"idf": "corpus", "distance": "cosine"}),
    ("wms", {"stopwords": None, "temperature": 1, "multi_ref": "mean"}),
    ("sms", {"rescale": True}),
    ("swms", {"normalize": True, "threads": 1}),
    ("wms", {"model": "all-MiniLM-L6-v2", "device": "cpu"}),
    ("moverscore", {"device": "cpu"}),
    ("moverscore", {"device": "cpu", "n_gram": 2, "idf": "corpus"}),
    ("bertscore_emd", {"device": "cpu", "layer": 3}),
    ("bertscore_hungarian", {"device": "cpu", "alignment": "greedy"}),
]


def scores(call: tuple[str, dict[str, object]]) -> list[float]:
    name, options = call
    return getattr(movers, name)(PREDICTIONS, REFERENCES, **options)["scores"]


def test_threads_with_different_options_get_what_each_would_get_alone() -> None:
    alone = [scores(call) for call in CALLS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(scores, CALLS * 3))
    for expected, found in zip(alone * 3, together, strict=True):
        assert found == pytest.approx(expected, abs=1e-6)


def test_processes_that_fill_one_cache_at_once_read_the_same_vectors(tmp_path: Path) -> None:
    words = ["snow", "ice", *(f"word{number}" for number in range(5000))]
    (tmp_path / "v.txt").write_bytes(vector_bytes(tiny_table(words), "glove"))
    code = (
        f"import movers; print(movers.wms(['snow word7'], ['ice'], model={str(tmp_path / 'v.txt')!r}, temperature=1))"
    )
    environment = {"MOVERS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT), "PATH": ""}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = {process.communicate(timeout=120)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(printed) == 1 and "wms|emb:v-4@" in printed.pop()
    assert len(list((tmp_path / "cache" / "vectors").iterdir())) == 1  # nothing half-built beside it

"""Many threads with different options, spawned workers, processes that fill one cache, thousands of calls."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tiny import ROOT, tiny_model, tiny_table, tiny_tokenizer, vector_bytes

import movers
from movers.encoders import load
from movers.encoders.cache import VECTORS
from movers.scores import rescaling

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
    VECTORS.clear()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(scores, CALLS * 3))
    for expected, found in zip(alone * 3, together, strict=True):
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_spawned_worker_gives_the_same_scores(run_python: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(
        "import json, multiprocessing, movers\n"
        f"texts = {PREDICTIONS!r}, {REFERENCES!r}\n"
        "def score(name):\n"
        "    return getattr(movers, name)(*texts)['scores']\n"
        "if __name__ == '__main__':\n"
        "    names = ['wms', 'moverscore']\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(json.dumps([pool.map(score, names), list(map(score, names))]))\n"
    )
    there, here = json.loads(run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"))
    assert [pytest.approx(row, abs=1e-6) for row in here] == there


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


def test_thousands_of_calls_keep_a_bounded_number_of_things(tmp_path: Path, empty_cache: Path) -> None:
    for number in range(2000):  # as a reward in a training loop calls
        movers.wms([f"Snow fell {number} times on the town of n{number}."], ["It snowed."])
    for number in range(30):
        path = tmp_path / f"v{number}.txt"
        path.write_bytes(vector_bytes(tiny_table(["snow", "ice"], seed=number), "glove"))
        movers.wms(["snow"], ["ice"], model=str(path), temperature=1)
    assert len(load._static) <= load._STATIC_KEPT
    tokenizer = tiny_tokenizer()
    for number in range(load._CONTEXTUAL_KEPT + 2):
        folder = tmp_path / f"model{number}"
        tiny_model(layers=1, seed=number).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        movers.load_encoder(str(folder), device="cpu")
    assert len(load._contextual) <= load._CONTEXTUAL_KEPT
    assert VECTORS.size <= VECTORS.capacity and len(rescaling._known) <= rescaling._KEPT


def test_loading_an_encoder_leaves_the_random_state_of_its_surroundings_alone(tmp_path: Path) -> None:
    tiny_model(layers=1).save_pretrained(tmp_path)  # without the pooler that AutoModel adds
    tiny_tokenizer().save_pretrained(tmp_path)
    before = torch.get_rng_state()
    first = movers.load_encoder(str(tmp_path), device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    load._contextual.clear()
    again = movers.load_encoder(str(tmp_path), device="cpu")
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name

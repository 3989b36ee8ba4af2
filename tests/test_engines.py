"""`score_dataset` in this process and on a Ray cluster: scores, order and columns, and what it refuses."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from tiny import ROOT

import movers
from movers.engines import score_dataset
from movers.errors import InputError

PREDICTIONS = ["The cat sat.", "A red dog runs.", "The cat sat.", "", "Snow ships in a box."]
REFERENCES = [["A cat sat on it."], ["The dog runs.", "It is red."], ["A cat sat on it."], ["A box."], ["Snow is old."]]


def rows(times: int = 1, **columns: object) -> Dataset:
    return Dataset.from_dict({"prediction": PREDICTIONS * times, "reference": REFERENCES * times, **columns})


def test_score_columns_are_what_the_functions_return() -> None:
    dataset = rows(number=[5, 4, 3, 2, 1]).rename_column("prediction", "output").with_format("numpy")
    metrics = ["wms[idf=corpus]", ("sms", {"idf": "corpus"})]
    scored = score_dataset(dataset, metrics, predictions="output", batch_size=2)
    expected = {
        "wms[idf=corpus]": movers.wms(PREDICTIONS, REFERENCES, idf="corpus"),
        "sms": movers.sms(PREDICTIONS, REFERENCES, idf="corpus"),
    }
    assert scored.dataset.column_names == ["output", "reference", "number", *expected]
    assert scored.dataset.select_columns(dataset.column_names).to_dict() == dataset.to_dict()
    for label, result in expected.items():
        assert list(scored.dataset[label]) == pytest.approx(result["scores"], abs=1e-12)
        assert scored.results[label] == {name: result[name] for name in scored.results[label]}
        assert {"score", "signature", "n_empty", "n_unknown"} <= set(scored.results[label])


def test_further_numbers_of_a_pair_are_columns_too(tiny_bert: tuple[Any, Any]) -> None:
    scored = score_dataset(rows(), "bertscore_hungarian", model=tiny_bert, layer="last")
    result = movers.bertscore_hungarian(PREDICTIONS, REFERENCES, model=tiny_bert, layer="last")
    for part in ("precision", "recall", "f1"):
        assert list(scored.dataset[f"bertscore_hungarian_{part}"]) == pytest.approx(result[part], abs=1e-6)


def test_scores_of_a_batch_depend_on_no_other_batch(tiny_bert: tuple[Any, Any]) -> None:
    whole = list(score_dataset(rows(), "moverscore", model=tiny_bert, batch_size=2).dataset["moverscore"])
    alone = score_dataset(rows().select([2, 3]), "moverscore", model=tiny_bert, batch_size=2)
    assert list(alone.dataset["moverscore"]) == whole[2:4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"predictions": "text"}, "predictions: expected a column 'text', but got prediction, reference"),
        ({"metrics": "reference_free_summary_quality"}, "sources: expected a column 'source', but got prediction"),
        ({"engine": "dask"}, "score_dataset: engine: expected one of 'local', 'ray', but got 'dask'"),
        ({"dataset": [1]}, r"score_dataset: dataset: expected a datasets.Dataset with rows, but got \[1\]"),
        ({"dataset": rows(wms=[0.0] * 5)}, "expected no column of that name, but got 'wms'"),
    ],
)
def test_what_cannot_be_scored_is_an_error(call: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score_dataset(**{"dataset": rows(), "metrics": "wms", **call})


def test_a_row_that_fails_has_no_score_on_request(monkeypatch: pytest.MonkeyPatch, tiny_bert: tuple[Any, Any]) -> None:
    monkeypatch.setattr("movers.scores.metric._MOST_CELLS", 23)
    with pytest.warns(UserWarning, match=r"bertscore_emd: 1 row\(s\) have no score; row 0: comparing"):
        scored = score_dataset(rows(), "bertscore_emd", model=tiny_bert, batch_size=1, on_error="null")
    assert [score is None for score in scored.dataset["bertscore_emd"]] == [True, False, True, False, True]
    assert scored.dataset["bertscore_emd_f1"][0] is None and scored.results["bertscore_emd"]["n_failed"] == 3


def test_a_row_without_text_is_named() -> None:
    dataset = Dataset.from_dict({"prediction": ["a", "b", None], "reference": ["a", "b", "c"]})
    with pytest.raises(InputError, match=r"wms: predictions\[2\]: expected a text \(str\), but got None"):
        score_dataset(dataset, "wms", batch_size=2)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(InputError, match=r"engine: 'ray' needs Ray Data: pip install '\.\[ray\]' in a checkout"):
        score_dataset(rows(), "wms", engine="ray")


def test_an_address_where_nothing_listens_is_an_error_at_once() -> None:
    pytest.importorskip("ray", reason="needs the extra movers[ray]")
    with socket.socket() as bound:  # but not listening
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(InputError, match=f"^address: expected a running Ray cluster at {address}, but got: "):
            score_dataset(rows(), "wms", engine="ray", address=address)


def test_an_encoder_that_only_this_process_has_is_an_error(tiny_bert: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="^moverscore: model: expected a name or path, from .*, but got tuple"):
        score_dataset(rows(), "moverscore", engine="ray", model=tiny_bert)


@pytest.fixture(scope="module")
def two_processors() -> Iterator[None]:
    """A Ray cluster of two processors on this machine."""
    ray = pytest.importorskip("ray", reason="needs the extra movers[ray]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        ray.init("local", num_cpus=2, object_store_memory=100_000_000, include_dashboard=False, logging_level="ERROR")
        yield
        ray.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("two_processors")
def test_a_cluster_gives_the_scores_of_one_machine(tiny_bert: tuple[Any, Any], tmp_path: Path) -> None:
    for part in tiny_bert:
        part.save_pretrained(tmp_path)
    options = {"model": str(tmp_path), "idf": "corpus"}
    metrics = ["wms[idf=corpus]", ("moverscore", options), ("bertscore_emd", {**options, "layer": "last"})]
    local, cluster = (score_dataset(rows(4), metrics, batch_size=3, engine=engine) for engine in ("local", "ray"))
    assert cluster.dataset.column_names == local.dataset.column_names
    for name in local.dataset.column_names[2:]:
        tolerance = 1e-12 if name.startswith("wms") else 1e-6
        assert list(cluster.dataset[name]) == pytest.approx(list(local.dataset[name]), abs=tolerance)
    assert {label: result["signature"] for label, result in cluster.results.items()} == {
        label: result["signature"] for label, result in local.results.items()
    }

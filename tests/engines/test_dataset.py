"""`movers.engines.score_dataset` in this process, and what it refuses."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest
from datasets import Dataset

import movers
from movers.encoders.cache import VECTORS
from movers.engines import score_dataset
from movers.engines.job import Job, make_sections
from movers.errors import InputError
from movers.registry import METRICS

PREDICTIONS = ["The cat sat.", "A red dog runs.", "The cat sat.", "", "Snow ships in a box."]
REFERENCES = [["A cat sat on it."], ["The dog runs.", "It is red."], ["A cat sat on it."], ["A box."], ["Snow is old."]]


def rows(**columns: object) -> Dataset:
    return Dataset.from_dict({"prediction": PREDICTIONS, "reference": REFERENCES, **columns})


def test_score_columns_are_what_the_functions_return() -> None:
    given = rows(number=[5, 4, 3, 2, 1])
    scored = score_dataset(given, ["wms[idf=corpus]", ("sms", {"normalize": True})], batch_size=2)
    expected = {
        "wms[idf=corpus]": movers.wms(PREDICTIONS, REFERENCES, idf="corpus"),
        "sms": movers.sms(PREDICTIONS, REFERENCES, normalize=True),
    }
    assert scored.dataset.column_names == ["prediction", "reference", "number", *expected]
    assert scored.dataset.select_columns(given.column_names).to_dict() == given.to_dict()
    for label, result in expected.items():
        assert list(scored.dataset[label]) == result["scores"]
        assert scored.results[label] == {name: result[name] for name in scored.results[label]}
        assert {"score", "signature", "n_empty", "n_unknown"} <= set(scored.results[label])


def test_further_numbers_of_a_pair_are_columns_too(tiny_bert: tuple[Any, Any]) -> None:
    scored = score_dataset(rows(), "bertscore_hungarian", model=tiny_bert, layer="last")
    result = movers.bertscore_hungarian(PREDICTIONS, REFERENCES, model=tiny_bert, layer="last")
    for part in ("precision", "recall", "f1"):
        assert list(scored.dataset[f"bertscore_hungarian_{part}"]) == pytest.approx(result[part], abs=1e-6)


def test_other_columns_and_a_corpus_score_of_distances() -> None:
    given = Dataset.from_dict({"output": PREDICTIONS, "gold": [group[0] for group in REFERENCES]})
    scored = score_dataset(given, "wms", predictions="output", references="gold", average="distances")
    expected = movers.wms(PREDICTIONS, [group[0] for group in REFERENCES], average="distances")
    assert scored.results["wms"]["score"] == expected["score"]


def test_scores_of_a_batch_depend_on_no_other_batch(tiny_bert: tuple[Any, Any]) -> None:
    once = list(score_dataset(rows(), "moverscore", model=tiny_bert, batch_size=2).dataset["moverscore"])
    VECTORS.clear()
    alone = score_dataset(rows().select([2, 3]), "moverscore", model=tiny_bert, batch_size=2)
    assert list(alone.dataset["moverscore"]) == once[2:4]
    movers.moverscore(
        ["The cat sat.", "The cat sat on the big red mat. It is old."], ["A dog.", "Snow."], model=tiny_bert
    )
    assert list(score_dataset(rows(), "moverscore", model=tiny_bert, batch_size=2).dataset["moverscore"]) == once


def test_sections_hold_consecutive_rows() -> None:
    found = list(make_sections("abcde", {"references": [[1], [2], [3], [4], [5]]}, 2, 10))  # type: ignore[dict-item]
    assert [(own.first_row, "".join(own.predictions)) for own in found] == [(10, "ab"), (12, "cd"), (14, "e")]
    assert [list(own.compared["references"]) for own in found] == [[[1], [2]], [[3], [4]], [[5]]]


def test_processes_of_this_machine_give_the_same_scores() -> None:
    one, two = (score_dataset(rows(), ["wms[idf=corpus]", "sms"], batch_size=2, workers=n) for n in (1, 2))
    assert two.dataset.to_dict() == one.dataset.to_dict() and two.results == one.results


def test_a_worker_that_would_score_otherwise_is_refused() -> None:
    spec = METRICS["wms"]
    job = Job.of([spec.build(spec.parse({}))], threads=1)
    assert [metric.signature for metric in job.build()] == list(job.signatures)
    other = Job(job.names, job.options, ("wms|emb:other|v:0",))
    with pytest.raises(InputError, match="expected the same movers and models on every machine: wms.emb:other"):
        other.build()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"predictions": "text"}, "wms: predictions: expected a column 'text', but got the columns prediction, "),
        ({"metrics": ["wms", "wms"]}, "score_dataset: metrics: expected different metrics, but got wms, wms"),
        ({"metrics": []}, "score_dataset: metrics: expected different metrics, but got none"),
        ({"metrics": "reference_free_summary_quality"}, "sources: expected a column 'source', but got the columns"),
        ({"engine": "dask"}, "score_dataset: engine: expected one of 'local', 'ray', but got 'dask'"),
        ({"batch_size": 0}, "score_dataset: batch_size: expected a whole number above zero, but got 0"),
        ({"dataset": [1]}, "score_dataset: dataset: expected a datasets.Dataset or a ray.data.Dataset, but got list"),
        ({"return_alignment": True}, "wms: return_alignment: expected False"),
        ({"nonsense": 1}, "wms: unknown option 'nonsense'"),
        ({"dataset": rows(wms=[0.0] * 5)}, "expected no column of that name, but the dataset has 'wms'"),
        ({"dataset": rows().select([])}, "wms: predictions: expected at least one text, but got an empty dataset"),
    ],
)
def test_what_cannot_be_scored_is_an_error(call: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score_dataset(**{"dataset": rows(), "metrics": "wms", **call})


def test_a_row_without_text_is_named() -> None:
    given = Dataset.from_dict({"prediction": ["a", "b", None], "reference": ["a", "b", "c"]})
    with pytest.raises(InputError, match=r"wms: predictions\[2\]: expected a text \(str\), but got None"):
        score_dataset(given, "wms", batch_size=2)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"engine: 'ray' needs Ray Data: pip install 'movers\[ray\]'"):
        score_dataset(rows(), "wms", engine="ray")


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_an_error_at_once(scheme: str) -> None:
    pytest.importorskip("ray", reason="needs the extra movers[ray]")
    with socket.socket() as bound:  # but not listening
        bound.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(InputError, match=f"^address: expected a running Ray cluster at {address}, but got: "):
            score_dataset(rows(), "wms", engine="ray", address=address)

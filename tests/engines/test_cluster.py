"""Scoring on a Ray cluster: the floats, order and columns of one machine, also when workers die."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from movers.cli import main
from movers.engines import cluster, score_dataset
from movers.engines.cluster import Cluster, Scorer, score_on_cluster
from movers.engines.job import Scored, Section, make_sections, score_sections
from movers.errors import InputError
from movers.registry import METRICS

ray = pytest.importorskip("ray", reason="needs the extra movers[ray]")

ROWS = {
    "number": list(range(20)),
    "prediction": [f"The {word} cat sat. A dog runs." for word in ("red", "big", "old", "red", "") * 4],
    "reference": [[f"A {word} dog sat.", "It is a box."] for word in ("old", "red", "big", "red") * 5],
}


@pytest.fixture(scope="module", autouse=True)
def nodes() -> Iterator[None]:
    """A cluster of this machine alone, of two processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(Path(cluster.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        )
        ray.init("local", num_cpus=2, object_store_memory=100_000_000, include_dashboard=False, logging_level="ERROR")
        yield
        ray.shutdown()


def test_a_dataset_has_the_scores_of_one_machine(tiny_bert: tuple[Any, Any], tmp_path: Path) -> None:
    for part in tiny_bert:
        part.save_pretrained(tmp_path)
    given = Dataset.from_dict(ROWS)
    options = {"model": str(tmp_path), "idf": "corpus"}
    metrics = ["wms[idf=corpus]", ("moverscore", options), ("bertscore_emd", {**options, "layer": "last"})]
    here, there = (score_dataset(given, metrics, batch_size=3, engine=engine) for engine in ("local", "ray"))
    assert there.dataset.to_dict() == here.dataset.to_dict()
    assert there.results == here.results


def test_a_ray_dataset_keeps_its_order_and_columns() -> None:
    records = Dataset.from_dict(ROWS).to_list()
    given = ray.data.from_items(records, override_num_blocks=3)
    found = score_dataset(given, "wms", batch_size=6, concurrency=1, idf="corpus")
    here = score_dataset(Dataset.from_dict(ROWS), "wms", batch_size=6, idf="corpus")
    assert found.dataset.take_all() == here.dataset.to_list()
    assert found.results == here.results
    with pytest.raises(InputError, match="engine: expected one of 'ray', but got 'local'"):
        score_dataset(given, "wms", engine="local")


def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died = tmp_path / "died"

    class Dying(cluster._SectionScorer):
        def score(self, section: Section) -> Scored:
            if section.first_row == 4 and not died.exists():
                died.touch()
                os._exit(1)
            warnings.warn("of a worker", stacklevel=1)
            return Scorer.score(self, section)

    monkeypatch.setattr(cluster, "_SectionScorer", Dying)
    metric = METRICS["wms"].build(METRICS["wms"].parse({"progress": False}))
    sections = list(make_sections(ROWS["prediction"], {"references": ROWS["reference"]}, 4))  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="^of a worker$"):
        found = list(score_on_cluster([metric], sections, Cluster()))
    assert died.exists()
    assert found == list(score_sections([metric], sections))


def test_the_command_line_writes_the_same_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("p.txt", "r.txt", "here.jsonl", "there.jsonl")]
    files[0].write_text("\n".join(ROWS["prediction"]))  # type: ignore[arg-type]
    files[1].write_text("\n".join(group[0] for group in ROWS["reference"]))  # type: ignore[index]
    common = ["score", "wms[idf=corpus],sms", "-p", str(files[0]), "-r", str(files[1]), "--alignment", "-q"]
    assert main([*common, "-o", str(files[2])]) == 0
    assert main([*common, "-o", str(files[3]), "--engine", "ray"]) == 0
    assert files[3].read_bytes() == files[2].read_bytes()
    assert main([*common, "--address", "auto"]) == 2


def test_what_a_worker_refuses_is_an_error_with_its_row() -> None:
    with pytest.raises(InputError, match=r"^wms: predictions\[3\]: comparing . with . units .* more than max_cells=8;"):
        score_dataset(
            Dataset.from_dict({"prediction": ["A dog."] * 3 + ["A big red dog"], "reference": ["An old cat sat."] * 4}),
            "wms",
            batch_size=2,
            engine="ray",
            concurrency=1,
            max_cells=8,
        )


def test_an_encoder_that_only_this_process_has_is_an_error(tiny_bert: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="^moverscore: model: expected a name or path, from .*, but got tuple"):
        score_dataset(Dataset.from_dict(ROWS), "moverscore", engine="ray", model=tiny_bert)


def test_more_than_the_cluster_has_is_said() -> None:
    metric = METRICS["wms"].build(METRICS["wms"].parse({}))
    with pytest.warns(UserWarning, match="an actor needs 3 CPU, but the cluster has 2: waiting for more nodes"):
        cluster._mapped(ray, ray.data.range(1), Scorer, (None,), [metric], Cluster(num_cpus=3))

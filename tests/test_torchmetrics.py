"""`TransportScore` against the plain call: batches in any split, two ranks, and what torchmetrics does to a metric."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch

import movers

torchmetrics = pytest.importorskip("torchmetrics", reason="needs the extra `torchmetrics`")

PREDICTIONS = ["A cat sat.", "Snow melts in spring.", "The dog runs.", "", "Shares fell on Monday.", "Rain."]
REFERENCES = [["The cat sat.", "A cat."], ["Snow melts."], ["A dog."], ["Rain."], ["Stocks fell."], ["Snow.", "Rain."]]
EXPECTED = {name: getattr(movers, name)(PREDICTIONS, REFERENCES)["score"] for name in ("wms", "bertscore_emd")}


@pytest.mark.parametrize("metric", EXPECTED)
@pytest.mark.parametrize("sizes", [[6], [1, 5], [2, 2, 2], [1] * 6])
def test_batches_in_any_split_give_the_score_of_the_plain_call(metric: str, sizes: list[int]) -> None:
    score = torchmetrics.MetricCollection({"ours": movers.torchmetrics.TransportScore(metric)})["ours"]
    for _ in range(2):
        start = 0
        for size in sizes:
            batch = PREDICTIONS[start : start + size], REFERENCES[start : start + size]
            value = score(*batch)  # `forward` returns the value of the batch
            assert value.item() == pytest.approx(getattr(movers, metric)(*batch)["score"], abs=1e-6)
            start += size
        restored = pickle.loads(pickle.dumps(score.clone()))
        assert restored.compute().item() == pytest.approx(EXPECTED[metric], abs=1e-6) and score.count == 6
        score.reset()
    assert score.signature == getattr(movers, metric)(["a"], ["a"])["signature"]


def rank(number: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=2)
    score = movers.torchmetrics.TransportScore("wms")
    for row in ([0, 2, 3, 4], [1, 5])[number]:  # ranks may have seen different numbers of texts
        score.update(PREDICTIONS[row], [REFERENCES[row]])
    Path(folder, str(number)).write_text(repr(score.compute().item()))
    torch.distributed.destroy_process_group()


def test_two_ranks_give_the_score_of_all_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    torch.multiprocessing.spawn(rank, (str(tmp_path),), nprocs=2)
    scores = [float((tmp_path / str(number)).read_text()) for number in range(2)]
    assert scores == pytest.approx([EXPECTED["wms"]] * 2, abs=1e-9)


def test_a_score_that_depends_on_the_batch_is_refused() -> None:
    with pytest.raises(movers.InputError, match="idf: expected a table, whatever the batch is, but got 'corpus'"):
        movers.torchmetrics.TransportScore("moverscore", idf="corpus")
    with pytest.raises(movers.InputError, match="unknown option 'dist'"):
        movers.torchmetrics.TransportScore("moverscore", dist=1)

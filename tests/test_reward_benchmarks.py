"""The papers' runs: linearised graphs, the pointer network and the report."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tiny import ROOT


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks import each other by their place below `benchmarks`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def load(name: str) -> ModuleType:
    return importlib.import_module(f"rewards.{name}")


def test_graphs_are_linearised_depth_first() -> None:
    linearise = load("amr_to_text.data").linearise
    graph = "(s / see-01 :ARG0 (i / i) :ARG1 (p / picture :wiki - :mod (m / red)) :ARG2 i)"
    assert linearise(graph) == "see :ARG0 i :ARG1 ( picture :mod red ) :ARG2 i"
    named = '(b / book :name (n / name :op1 "True" :op2 "Stories"))'
    assert linearise(named) == "book :name ( name :op1 True :op2 Stories )"


@pytest.fixture
def network() -> ModuleType:
    return load("summarization.network")


def made(network: ModuleType) -> tuple[object, object]:
    torch.manual_seed(0)
    model = network.PointerGenerator(torch.randn(12, 6), hidden=5).eval().requires_grad_(False)
    documents = model.encode(torch.tensor([[4, 5, 12, 13], [6, 12, 0, 0]]), torch.tensor([4, 2]), extra=2)
    return model, documents


def test_teacher_forcing_gives_what_single_steps_give(network: ModuleType) -> None:
    model, documents = made(network)
    outputs = [[7, 12], [8]]
    log_probs, mask = model.log_probs(documents, outputs)
    assert mask.tolist() == [[1, 1, 1], [1, 1, 0]]
    last, state, alone = torch.tensor([[2], [2]]), documents.state, []
    for words in ((7, 8), (12, network.END)):
        scores, state = model.step(documents, last, state)
        alone.append([float(scores[row, 0, word].detach()) for row, word in enumerate(words)])
        last = torch.tensor(words)[:, None]
    assert log_probs.detach()[:, :2].T.tolist() == [pytest.approx(step, abs=1e-5) for step in alone]


def test_the_report_has_every_row_of_the_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """RESULTS.md is what report.py writes from results.csv."""
    report, folder = load("report"), ROOT / "benchmarks" / "rewards"
    monkeypatch.setattr(report, "HERE", tmp_path)
    report.main()
    assert (tmp_path / "RESULTS.md").read_text(encoding="utf-8") == (folder / "RESULTS.md").read_text(encoding="utf-8")

"""The papers' runs: linearised graphs and the report."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest
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


def test_the_report_has_every_row_of_the_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """RESULTS.md is what report.py writes from results.csv."""
    report, folder = load("report"), ROOT / "benchmarks" / "rewards"
    monkeypatch.setattr(report, "HERE", tmp_path)
    report.main()
    assert (tmp_path / "RESULTS.md").read_text(encoding="utf-8") == (folder / "RESULTS.md").read_text(encoding="utf-8")

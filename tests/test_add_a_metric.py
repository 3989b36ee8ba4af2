"""The metric that `docs/add_a_metric.md` builds works everywhere: function, module, command line, correlation."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path

import evaluate
import pytest
from tiny import ROOT

import movers
from movers.cli import main
from movers.registry import METRICS, MetricSpec

PAIRS = [("Snow melts.", "Ice melts.", 3), ("Shares fell.", "Prices dropped.", 2), ("A cat.", "The tax law.", 1)]


@pytest.fixture
def module_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The page's three blocks in place; returns the evaluate module."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "add_a_metric.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    assert len(blocks[0].splitlines()) <= 60
    home = types.ModuleType("movers.scores.centroid")
    monkeypatch.setitem(sys.modules, home.__name__, home)
    exec(blocks[0], home.__dict__)
    monkeypatch.setattr("movers.registry.METRICS", METRICS)  # restored with the entry below
    monkeypatch.setitem(METRICS, "centroid", METRICS["wms"])
    exec(blocks[1], {"METRICS": METRICS, "MetricSpec": MetricSpec})
    target = tmp_path / "centroid" / "centroid.py"
    target.parent.mkdir()
    target.write_text(blocks[2])
    return target


def test_the_metric_of_the_page_runs_everywhere(
    module_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions, references, judgements = zip(*PAIRS, strict=True)
    result = METRICS["centroid"].function(list(predictions), list(references))
    assert all(0 < score < 1 for score in result["scores"])
    assert METRICS["centroid"].function(["", "Snow"], ["Snow", "snow"])["scores"] == [0.0, pytest.approx(1.0)]
    with pytest.raises(movers.InputError, match="centroid: unknown option 'stopword'"):
        METRICS["centroid"].function(["a"], ["b"], stopword=1)

    module = evaluate.load(str(module_file))
    assert module.compute(predictions=list(predictions), references=list(references))["scores"] == result["scores"]

    rows = [
        {"id": str(n), "system": "s", "candidate": pair[0], "references": [pair[1]], "scores": {"meaning": pair[2]}}
        for n, pair in enumerate(PAIRS)
    ]
    judged = tmp_path / "judged.jsonl"
    judged.write_text("\n".join(map(json.dumps, rows)))
    for name, column in (("p.txt", predictions), ("r.txt", references)):
        (tmp_path / name).write_text("\n".join(column))
    monkeypatch.chdir(tmp_path)
    assert main(["score", "centroid", "-p", "p.txt", "-r", "r.txt"]) == 0
    assert f"{result['score']:.4f}" in capsys.readouterr().out
    assert main(["correlate", "--data", "judged.jsonl", "--metrics", "centroid"]) == 0
    assert "centroid" in capsys.readouterr().out

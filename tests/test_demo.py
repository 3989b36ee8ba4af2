from __future__ import annotations

import pytest

from movers.cli import main
from movers.demo import example, flow_lines, table_lines
from movers.registry import METRICS


def test_the_example_has_a_reference_and_named_candidates() -> None:
    texts = example()
    names = [candidate["name"] for candidate in texts["candidates"]]
    assert len(names) == len(set(names)) >= 4
    assert all(text.strip() for text in (texts["document"], texts["reference"], *names))


def test_the_demo_prints_a_row_a_candidate_and_a_column_a_metric(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        monkeypatch.setenv(f"POT_BACKEND_DISABLE_{library}", "1")
    assert main(["demo"]) == 0
    streams = capsys.readouterr()
    lines = streams.out.splitlines()
    header = next(place for place, line in enumerate(lines) if line.split() == list(METRICS))
    names = [candidate["name"] for candidate in example()["candidates"]]
    for name, line in zip(names, lines[header + 1 :], strict=False):
        assert line.startswith(name)
        values = [float(cell) for cell in line[len(name) :].split()]
        assert len(values) == len(METRICS)
        assert all(-3 <= value <= 1.0001 for value in values)
    assert example()["reference"] in streams.out
    assert "→" in streams.out
    assert lines[-1].startswith("sms|emb:wordllama")
    assert streams.err == ""  # no bar where there is no terminal


def test_a_table_has_four_digits_and_aligned_columns() -> None:
    lines = table_lines(["one", "another"], {"wms": [0.123456, 1e-7], "a_metric_of_length": [1.0, -0.5]})
    assert [line.split() for line in lines] == [
        ["wms", "a_metric_of_length"],
        ["one", "0.1235", "1"],
        ["another", "1e-07", "-0.5"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_the_largest_flows_come_first_and_long_texts_are_cut() -> None:
    units = [{"text": "x" * 60}, {"text": "y"}]
    flows = [{"i": 0, "j": 1, "mass": 0.25, "cost": 0.5}, {"i": 1, "j": 0, "mass": 0.75, "cost": 0.0}]
    lines = flow_lines({"prediction": units, "reference": units, "flows": flows})
    assert [line.split(" %")[0].strip() for line in lines] == ["75.0", "25.0"]
    assert "x" * 60 not in lines[0] and "x" * 43 + "…" in lines[0]
    assert len(flow_lines({"prediction": units, "reference": units, "flows": flows}, most=1)) == 1
    assert flow_lines({"prediction": [], "reference": [], "flows": []}) == []

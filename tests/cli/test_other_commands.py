"""`movers metrics`, `options`, `baseline`, `demo` and `serve`."""

from __future__ import annotations

import json
import socket
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

import movers
from movers.cli import listing, main
from movers.cli.demo import example, flow_lines
from movers.registry import METRICS

from cli_texts import PREDICTIONS, REFERENCES, Failure, Run  # isort: skip


def test_metrics_and_options_are_listed(run: Run, failure: Failure) -> None:
    code, out, _ = run("metrics")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(METRICS)
    code, out, _ = run("options", "moverscore")
    assert code == 0
    found = {line.split("  ")[0] for line in out.splitlines()}
    assert {"variant='v1'", "n_gram=1", "multi_ref='mean'", "model='all-MiniLM-L6-v2'"} <= found
    assert "did you mean 'moverscore'" in failure("options", "movescore")


def test_on_a_terminal_descriptions_are_wrapped_below_each_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _, plain, _ = run("options", "wms")
    monkeypatch.setattr(listing, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setenv("COLUMNS", "70")
    _, wrapped, _ = run("options", "wms")
    assert max(map(len, plain.splitlines())) > 70 >= max(map(len, wrapped.splitlines()))
    assert wrapped.split() == plain.split()
    column = plain.splitlines()[0].index("  ") + 2
    continued = [line for line in wrapped.splitlines() if line.startswith(" " * column)]
    assert continued and len(wrapped.splitlines()) - len(continued) == len(plain.splitlines())


def test_a_baseline_is_printed_or_written(run: Run, failure: Failure, tmp_path: Path) -> None:
    texts = [*PREDICTIONS, *REFERENCES]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))
    arguments = ["baseline", "--metric", "wms", "--corpus", tmp_path / "c.jsonl", "--corpus-column", "t"]
    code, out, _ = run(*arguments, "--pairs", 300, "--seed", 5)
    record = json.loads(out)
    assert code == 0 and (record["metric"], record["pairs"], record["seed"], record["texts"]) == ("wms", 300, 5, 6)
    # every pair of different texts, each as likely
    pairs = [(a, b) for a in texts for b in texts if a != b]
    assert record["score"] == pytest.approx(movers.wms(*map(list, zip(*pairs, strict=True)))["score"], abs=0.02)
    path = tmp_path / "b.json"
    code, out, _ = run(*arguments, "--pairs", 300, "--seed", 5, "-o", path)
    assert code == 0 and out == f"{path}: score {record['score']:.4f}\n"
    assert json.loads(path.read_text()) == record
    assert "expected a whole number above zero" in failure(*arguments, "--pairs", 0)
    assert "there is no folder" in failure(*arguments, "-o", tmp_path / "none" / "b.json")
    assert "expected --corpus-column to name a column, but got the columns t" in failure(*arguments[:-2])


def test_the_demo_prints_a_row_per_candidate_and_a_column_per_metric(run: Run) -> None:
    code, out, err = run("demo")
    lines = out.splitlines()
    texts = example()
    candidates = texts["candidates"]
    header = next(place for place, line in enumerate(lines) if line.startswith("candidate  "))
    names = list(METRICS)
    for row, candidate in enumerate(candidates):
        line = lines[header + 2 + row]
        assert line.startswith(candidate["name"])
        found = line[len(candidate["name"]) :].split()
        assert len(found) == len(names)
        score = METRICS["wms"].function([candidate["text"]], [texts["reference"]], rescale=True)["score"]
        assert int(found[names.index("wms")]) == round(100 * score)
        score = METRICS[names[-1]].function([candidate["text"]], [texts["document"]])["score"]
        assert int(found[-1]) == round(100 * score)
    assert code == 0 and err == ""  # no bar where there is no terminal
    assert texts["reference"] in out and "→" in out
    assert lines[-1].startswith("sms|emb:wordllama")


def test_the_largest_flows_come_first_and_long_texts_are_cut() -> None:
    units = [{"text": "x" * 60}, {"text": "y"}]
    flows = [{"i": 0, "j": 1, "mass": 0.25, "cost": 0.5}, {"i": 1, "j": 0, "mass": 0.75, "cost": 0.0}]
    lines = flow_lines({"prediction": units, "reference": units, "flows": flows})
    assert [line.split(" %")[0].strip() for line in lines] == ["75.0", "25.0"]
    assert "x" * 60 not in lines[0] and "x" * 43 + "…" in lines[0]
    assert len(flow_lines({"prediction": units, "reference": units, "flows": flows}, most=1)) == 1
    assert flow_lines({"prediction": [], "reference": [], "flows": []}) == []


def test_pages_are_served_to_this_machine_by_default(
    run: Run, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio", reason="gradio is in the extra `demo`")
    served: list[object] = []

    def page(names: list[str] | None) -> SimpleNamespace:
        waiting = SimpleNamespace(pending_messages_per_session=SimpleNamespace(max_size=2000))
        return SimpleNamespace(
            queue=lambda **_: None,
            _queue=waiting,
            fns={},
            launch=lambda **options: served.append((names, options)),
        )

    monkeypatch.setattr("movers.serve.all_metrics_page", page)
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        port = probe.getsockname()[1]
    assert run("serve", "--metrics", "wms,sms", "--port", port)[0] == 0
    assert run("serve", "--host", "0.0.0.0", "--port", port)[0] == 0
    (first, options), (second, others) = served
    assert (first, options["server_name"], options["server_port"], options["share"]) == (
        ["wms", "sms"],
        "127.0.0.1",
        port,
        False,
    )
    assert (second, others["server_name"]) == (None, "0.0.0.0")
    assert "did you mean 'wms'" in failure("serve", "--metrics", "wmss")
    assert "expected a number from 1 to 65535, but got 0" in failure("serve", "--port", 0)


def test_a_port_in_use_is_told(failure: Failure) -> None:
    pytest.importorskip("gradio", reason="gradio is in the extra `demo`")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in failure("serve", "--metrics", "wms", "--port", port)


def test_train_takes_every_hyperparameter_and_checks_it_before_data_are_read(
    failure: Failure, capsys: pytest.CaptureFixture[str]
) -> None:
    from movers.quality.training import TrainingOptions

    with pytest.raises(SystemExit):
        main(["train", "quality", "--help"])
    shown = capsys.readouterr().out
    for item in fields(TrainingOptions):
        assert f"--{item.name} " in shown
    texts = ["train", "quality", "--data", "none.jsonl", "-o", "none"]
    assert "epochs: expected a whole number above zero, but got 0" in failure(*texts, "--epochs", 0)
    assert "rate: expected a number above zero, but got 'fast'" in failure(*texts, "--rate", "fast")
    assert "none.jsonl" in failure(*texts, "--rate", "0.5", "--negatives", "cross", "--encoder", "wordllama")

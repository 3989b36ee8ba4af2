"""`movers metrics`, `options`, `baseline`, `demo` and `serve`."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

import movers
from movers.cli import main
from movers.cli.basics import example
from movers.registry import METRICS

from cli_texts import PREDICTIONS, REFERENCES, Failure, Run  # isort: skip


def test_metrics_and_options_are_listed(run: Run, failure: Failure) -> None:
    code, out, _ = run("metrics")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(METRICS)
    code, out, _ = run("options", "moverscore")
    assert code == 0
    options, _, settings = out.partition("run settings, which concern the machine:\n")
    names = {line.split("  ")[0] for line in options.splitlines()}
    assert {"n_gram=1", "multi_ref='mean'", "model='all-MiniLM-L6-v2'"} <= names
    names = {line.split("=")[0] for line in settings.splitlines()}
    assert names == {"device", "dtype", "batch_size", "threads", "workers", "progress"}
    assert "did you mean 'moverscore'" in failure("options", "movescore")


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
    assert "expected --corpus-column to choose a column, but got the columns 't'" in failure(*arguments[:-2])


def test_the_demo_prints_a_row_per_candidate_and_a_column_per_metric(run: Run) -> None:
    code, out, err = run("demo")
    texts, lines = example(), out.splitlines()
    assert code == 0 and err == "" and texts["reference"] in out
    header = next(place for place, line in enumerate(lines) if line.startswith("candidate  "))
    for candidate, line in zip(texts["candidates"], lines[header + 2 :], strict=False):
        name, *scores = line.split()
        wms = movers.wms([candidate["text"]], [texts["reference"]], rescale=True)["score"]
        quality = movers.reference_free_summary_quality([candidate["text"]], [texts["document"]])["score"]
        assert (name, len(scores)) == (candidate["name"], len(METRICS))
        assert (int(scores[0]), int(scores[-1])) == (round(100 * wms), round(100 * quality))
    assert any(line.startswith("sms") for line in lines[header + 2 + len(texts["candidates"]) :])


def test_pages_are_served_to_this_machine_by_default(
    run: Run, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio", reason="gradio is in the extra `demo`")
    served: list[object] = []
    monkeypatch.setattr("movers.serve.all_metrics_page", lambda names: names)
    monkeypatch.setattr("movers.serve.launch", lambda names, **options: served.append((names, options)))
    assert run("serve", "--metrics", "wms,sms", "--port", 7861)[0] == 0
    assert run("serve", "--host", "0.0.0.0")[0] == 0
    assert served == [
        (["wms", "sms"], {"server_name": "127.0.0.1", "server_port": 7861}),
        (None, {"server_name": "0.0.0.0", "server_port": 7860}),
    ]
    assert "did you mean 'wms'" in failure("serve", "--metrics", "wmss")


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
    assert "limit: expected a whole number above zero, but got -1" in failure(*texts, "--limit", -1)

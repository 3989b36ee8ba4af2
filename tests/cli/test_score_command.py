"""`movers score` from files to scores."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import movers

from cli_texts import PREDICTIONS, REFERENCES, Failure, Files, Run  # isort: skip

OTHERS = ["Somebody ships snow.", "The suspects were jailed.", "It rained."]
LONG = "snow " * 2000  # longer than the window of a contextual model


@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv.gz"])
def test_score_prints_signature_and_mean_with_an_interval(run: Run, files: Files, kind: str) -> None:
    result = movers.wms(PREDICTIONS, REFERENCES)
    # Three rows that are all the lowest are drawn in 1 case of 27, more often than 2.5 %.
    mean, low, high = result["score"], min(result["scores"]), max(result["scores"])
    shown = f"{result['signature']} = {mean:.4f} [{low:.4f}, {high:.4f}]\n"
    assert run("score", "wms", *files(kind)) == (0, shown, "")
    percent = f"{result['signature']} = {100 * mean:.2f} % [{100 * low:.2f}, {100 * high:.2f}]\n"
    assert run("score", "wms", *files(kind), "--percent")[1] == percent


def test_the_interval_of_many_rows_is_scipys_bootstrap_and_one_row_has_none(run: Run, tmp_path: Path) -> None:
    words = "snow rain ice wind sun fog hail heat frost cloud storm thaw".split()
    (tmp_path / "p.txt").write_text("".join(f"{first} and {second}\n" for first in words for second in words))
    (tmp_path / "r.txt").write_text("snow and rain\n" * 144)
    texts = ["-p", tmp_path / "p.txt", "-r", tmp_path / "r.txt"]
    out = run("score", "wms", *texts, "-o", tmp_path / "s.txt")[1]
    scores = [float(line) for line in (tmp_path / "s.txt").read_text().split()]
    theirs = stats.bootstrap((scores,), np.mean, method="percentile", rng=np.random.default_rng(0)).confidence_interval
    shown = map(float, re.findall(r"[\d.]+", out.rpartition("[")[2]))
    assert tuple(shown) == pytest.approx((theirs.low, theirs.high), abs=0.003)
    for name in ("p.txt", "r.txt"):
        (tmp_path / name).write_text("snow\n")
    assert run("score", "wms", *texts)[1].endswith(" = 1.0000\n")


def test_several_metrics_give_a_list_with_their_names(run: Run, files: Files) -> None:
    printed = json.loads(run("score", "wms,sms[idf=corpus]", *files(), "-s", "multi_ref=mean", "--json")[1])
    assert [result["metric"] for result in printed] == ["wms", "sms[idf=corpus]"]
    expected = [
        movers.wms(PREDICTIONS, REFERENCES, multi_ref="mean"),
        movers.sms(PREDICTIONS, REFERENCES, multi_ref="mean", idf="corpus"),
    ]
    for result, function_result in zip(printed, expected, strict=True):
        assert result["scores"] == pytest.approx(function_result["scores"], abs=1e-6)
        assert result["signature"] == function_result["signature"]
    out = run("score", "wms,sms", *files())[1]
    assert [line.split("|")[0] for line in out.splitlines()] == ["wms", "sms"]


def test_several_files_of_references_after_one_flag_or_several(run: Run, files: Files, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("\n".join(OTHERS) + "\n")
    expected = movers.wms(PREDICTIONS, [list(pair) for pair in zip(REFERENCES, OTHERS, strict=True)])
    for more in ([tmp_path / "more.txt"], ["-r", tmp_path / "more.txt"], ["--references", tmp_path / "more.txt"]):
        assert json.loads(run("score", "wms", *files(), *more, "--json")[1]) == expected


def test_one_pipe_serves_predictions_and_references(run: Run, tmp_path: Path) -> None:
    rows = [{"prediction": a, "reference": b} for a, b in zip(PREDICTIONS, REFERENCES, strict=True)]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=["".join(json.dumps(row) + "\n" for row in rows)])
    writer.start()
    out = run("score", "wms[idf=corpus]", "-p", pipe, "-r", pipe, "--json")[1]
    writer.join()
    assert json.loads(out) == movers.wms(PREDICTIONS, REFERENCES, idf="corpus")


def test_options_come_in_brackets_and_by_set_and_brackets_win(run: Run, files: Files) -> None:
    expected = movers.wms(PREDICTIONS, REFERENCES, stopwords=None, normalize=True)
    for arguments in (
        ["wms[stopwords=none,normalize=true]"],
        ["wms", "--set", "stopwords=none", "-s", "normalize=true"],
        ["wms[normalize=true,stopwords=none]", "--set", "stopwords=english", "--threads", "1", "-m", "wordllama", "-q"],
        ["wms[stopwords=none,normalize=true]", "--device", "cpu", "--batch-size", "2", "--lang", "en"],
    ):
        assert json.loads(run("score", *arguments, *files(), "--json")[1]) == expected
    assert "|lang:de|" in run("score", "wms", *files(), "--lang", "de")[1]


def test_counts_of_odd_rows_go_to_standard_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("snow\n\n...\n")
    (tmp_path / "r.txt").write_text("snow\nsnow\nsnow\n")
    texts = ["-p", tmp_path / "p.txt", "-r", tmp_path / "r.txt"]
    code, out, err = run("score", "wms", *texts)
    assert code == 0 and out.count("\n") == 1
    assert err == "  n_empty: 1 of 3\n  n_unfiltered: 1 of 3\n"
    assert run("score", "sms,wms", *texts)[2].splitlines()[-1] == "  wms: n_unfiltered: 1 of 3"


def read_scores(path: Path) -> list[dict[str, Any]]:
    """The rows of an output file."""
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return pytest.importorskip("pyarrow.feather").read_table(path).to_pylist()
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    kind = path.name.split(".")[1]
    if kind in ("csv", "tsv"):
        return list(csv.DictReader(text.splitlines(), delimiter="," if kind == "csv" else "\t"))
    return json.loads(text) if kind == "json" else [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "jsonl.gz", "json.gz", "parquet", "arrow"])
def test_scores_are_written_in_every_format(run: Run, files: Files, tmp_path: Path, kind: str) -> None:
    results = {
        "wms[stopwords=none,normalize=true]": movers.wms(PREDICTIONS, REFERENCES, stopwords=None, normalize=True),
        "sms": movers.sms(PREDICTIONS, REFERENCES),
    }
    path = tmp_path / f"s.{kind}"
    assert run("score", ",".join(results), *files(), "-o", path)[1].count("\n") == 2
    rows = read_scores(path)
    assert [int(row["index"]) for row in rows] == [0, 1, 2]
    for label, result in results.items():
        cells = [row[label] for row in rows]
        assert [float(cell["score"] if isinstance(cell, dict) else cell) for cell in cells] == result["scores"]
    assert run("score", "sms", *files(), "-o", path)[0] == 0
    assert [float(row["score"]) for row in read_scores(path)] == results["sms"]["scores"]
    if kind.startswith(("json", "parquet", "arrow")):
        assert [row["distance"] for row in read_scores(path)] == results["sms"]["distances"]


def test_alignments_on_request(run: Run, files: Files, tmp_path: Path) -> None:
    expected = movers.wms(PREDICTIONS, REFERENCES, return_alignment=True)["alignments"]
    assert json.loads(run("score", "wms", *files(), "--json", "--alignment")[1])["alignments"] == expected
    assert run("score", "wms", *files(), "--alignment", "-o", tmp_path / "s.jsonl")[0] == 0
    assert [row["alignments"] for row in read_scores(tmp_path / "s.jsonl")] == expected


@pytest.mark.slow
def test_ray_writes_the_same_bytes(run: Run, files: Files, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    printed = [
        run("score", "wms,moverscore", *files(), "-o", tmp_path / f"{engine}.jsonl", "--engine", engine)[:2]
        for engine in ("local", "ray")
    ]
    assert printed[0] == printed[1] and printed[0][0] == 0
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_a_bad_last_row_is_reported_before_a_model_is_loaded(
    failure: Failure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions, references, output = tmp_path / "p.jsonl", tmp_path / "r.txt", tmp_path / "scores.txt"
    predictions.write_text('{"text": "snow"}\n' * 1500 + '{"text": null}\n')
    references.write_text("snow\n" * 1501)
    output.write_text("earlier\n")
    monkeypatch.setattr("movers.scorer.Scorer", None)  # using it would fail
    assert failure("score", "wms", "-p", predictions, "-r", references, "-o", output) == (
        f"predictions: {predictions}: line 1501: column 'text': expected a text, but got null"
    )
    assert output.read_text() == "earlier\n"


def test_files_that_do_not_fit_together_are_reported(failure: Failure, files: Files, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one\ntwo\n")
    error = failure("score", "wms", *files(), tmp_path / "short.txt")
    assert "expected equally many rows" in error and "has 3 and" in error and "short.txt has 2" in error
    (tmp_path / "empty.txt").write_text("")
    assert "empty.txt: expected at least one row, but got none" in failure(
        "score", "wms", "-p", tmp_path / "empty.txt", "-r", tmp_path / "empty.txt"
    )
    assert (
        failure("score", "wms", *files()[:2])
        == "--references FILE is required: the metric compares predictions with references"
    )
    assert (
        failure("score", "wms,reference_free_summary_quality", *files())
        == "--sources FILE is required: the metric compares predictions with sources"
    )


def test_a_text_that_is_refused_is_reported_with_its_file_and_line(
    failure: Failure, files: Files, tmp_path: Path
) -> None:
    metric = "bertscore_emd[truncation=error]"
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"refs": ["a", text]}) + "\n" for text in ("b", "c", LONG)))
    error = failure("score", metric, *files()[:4], "-r", lists)
    assert error.startswith(f"bertscore_emd: references: {lists}: line 3: ") and "truncation" in error
    table = tmp_path / "t.csv"
    table.write_text(f'prediction,reference\n"two\nlines",a\n{LONG},b\n')
    error = failure("score", metric, "-p", table, "-r", table)
    assert error.startswith(f"bertscore_emd: predictions: {table}: line 4: ")


def test_unknown_metrics_and_options_are_reported_before_files_are_read(failure: Failure) -> None:
    missing = ["-p", "none.txt", "-r", "none.txt"]
    assert "ends in .txt or .csv or .tsv or .jsonl or .json or" in failure("score", "wms", *missing, "-o", "scores.xml")
    assert "but got 'wsm' (did you mean 'wms'?)" in failure("score", "sms,wsm", *missing)
    error = failure("score", "wms", "--set", "n_gram=2", *missing)
    assert "wms: unknown option 'n_gram'" in error and "valid options:" in error
    assert "multi_ref: expected one of 'max', 'mean'" in failure("score", "wms[multi_ref=min]", *missing)
    assert "expected key=value" in failure("score", "wms", "--set", "stopwords", *missing)
    assert failure("score", "wms,wms", *missing) == "metric: expected different metrics, but got 'wms,wms'"
    assert failure("score", ",", *missing) == "metric: expected different metrics, but got ','"
    belongs = "rouge is for comparison: use it in `movers correlate` or `movers compare`"
    assert failure("score", "wms,rouge[stemmer=true]", *missing) == belongs

"""`movers explain`: a pair as text and as pictures, a file as a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import movers
from movers.cli import main

from cli_texts import Failure  # isort: skip

PAIR = ["--prediction", "Snow is sold online.", "--reference", "A man sells snow on the internet."]


def test_the_strongest_flows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "wms", *PAIR]) == 0
    shown = capsys.readouterr().out
    score = movers.wms([PAIR[1]], [PAIR[3]])["score"]
    assert f" = {score:.4g}\nwms {score:.3f}: snow → snow (0.000)" in shown


@pytest.mark.parametrize(("suffix", "start"), [("html", b"<!DOCTYPE html>"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_a_picture_is_written(suffix: str, start: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"a.{suffix}"
    assert main(["explain", "wms[normalize=true]", *PAIR, "-o", str(target)]) == 0
    assert target.read_bytes().startswith(start)
    assert f"wrote {target}" in capsys.readouterr().out


def test_a_file_becomes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"prediction": "Snow melts.", "reference": ["Snow melts.", "Ice thaws."]},
        {"prediction": "", "reference": "a"},
    ]
    source, target = tmp_path / "rows.jsonl", tmp_path / "report.html"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["explain", "wms", "--file", str(source), "-o", str(target)]) == 0
    shown = capsys.readouterr().out
    assert "= 0.5\n" in shown and "n_empty: 1 of 2" in shown
    assert "<h1>Word Mover&#x27;s Similarity</h1>" in target.read_text()
    texts, references = tmp_path / "p.txt", tmp_path / "r.txt"
    texts.write_text("Snow melts.\n\n")
    references.write_text("Snow melts.\na\n")
    assert main(["explain", "wms", "--file", str(texts), "-r", str(references), "-o", str(target)]) == 0
    assert capsys.readouterr().out == shown
    source.write_text(json.dumps({"prediction": "snow " * 2000, "reference": "a"}) + "\n")
    assert main(["explain", "bertscore_emd[truncation=error]", "--file", str(source), "-o", str(target)]) == 2
    assert f"error: bertscore_emd: predictions: {source}: line 1: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wms", "--prediction", "a"], "wms: expected --prediction TEXT and --reference TEXT, or --file FILE"),
        (["wms", *PAIR, "-o", "a.pdf"], "a.pdf: cannot write it: expected a name that ends in .html or .svg or .png"),
        (["wms", "--file", "a.jsonl"], "--file requires -o report.html"),
        (["wms", "--file", "none.jsonl", "-o", "a.html"], "none.jsonl: no such file"),
        (["wms", *PAIR, "--set", "distance=far"], "wms: distance: expected"),
    ],
)
def test_mistakes_are_named_in_one_line(
    failure: Failure, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert failure("explain", *arguments).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "content"), [("p.txt", "Snow melts.\n"), ("p.jsonl", '{"text": "Snow melts."}\n')])
def test_a_file_of_predictions_alone_is_not_compared_with_itself(
    failure: Failure, name: str, content: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    expected = f"{path} has no column of references: pass --references FILE"
    assert failure("explain", "wms", "--file", path, "-o", tmp_path / "a.html") == expected

"""`movers score --resume`: a run that was killed at any moment continues to the same bytes and the same mean."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import ROOT

from cli_texts import Failure, Run  # isort: skip

WORDS = "snow rain ice wind sun fog hail heat frost cloud storm thaw".split()
# Of many lengths, and each in several sections.
TEXTS = [f"The {a}" + f" and the {b}" * (place % 13) + " came." for a in WORDS for place, b in enumerate(WORDS)]
ROWS = [{"prediction": TEXTS[row % 40], "references": [TEXTS[-row % 40], TEXTS[row]]} for row in range(50)]
SECTION = 8
SECTIONS = 7

# Kills itself in the middle of a section, before or after its sidecar, or before or after the file is moved.
KILLED = """if True:
    import os, signal, sys
    import movers.io, movers.scorer
    from movers.io import ResumableFile
    movers.scorer.SECTION = 8
    when, count, calls = sys.argv.pop(1), int(sys.argv.pop(1)), []
    append, replace = ResumableFile.append, os.replace
    def die_if(now):
        if now == when and len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
    def torn(self, text, state):
        calls.append(text)
        if when == "torn" and len(calls) == count:
            self._file.write(text[: len(text) // 2].encode())
        die_if("torn")
        append(self, text, state)
    def saved(part, target):
        die_if("before sidecar")
        replace(part, target)
        die_if("after sidecar")
    def moved(part, target):
        die_if("before move")
        replace(part, target)
        die_if("after move")
    ResumableFile.append, os.replace, movers.io._move = torn, saved, moved
    from movers.cli import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture(autouse=True)
def short_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.scorer.SECTION", SECTION)


@pytest.fixture
def killed(data: Path) -> Callable[..., None]:
    """Run the command line in a process that kills itself."""

    def call(output: Path, when: str = "after sidecar", count: int = 3, metric: str = "wms", *more: str) -> None:
        command = [sys.executable, "-c", KILLED, when, str(count), "score", metric, *more]
        done = subprocess.run([*command, "-p", data, "-r", data, "-o", output], cwd=ROOT, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert output.exists() == (when == "after move")

    return call


@pytest.mark.parametrize(
    ("name", "when", "count"),
    [
        ("s.jsonl", "torn", 1),  # no section is whole
        ("s.jsonl.gz", "torn", 3),
        ("s.csv", "before sidecar", 1),
        ("s.csv.gz", "after sidecar", 4),
        ("s.tsv", "before sidecar", SECTIONS),
        ("s.txt", "after sidecar", SECTIONS),
        ("s.jsonl", "before move", SECTIONS),
        ("s.jsonl.gz", "after move", SECTIONS),
    ],
)
def test_a_killed_run_continues_to_equal_bytes(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path, name: str, when: str, count: int
) -> None:
    # Vectors of an earlier section must not change a digit.
    metric = "moverscore,bertscore_emd" if count == 3 else "wms[idf=corpus],sms"
    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    printed = run("score", metric, "-p", data, "-r", data, "-o", whole)
    assert printed[0] == 0
    killed(output, when, count, metric)
    assert run("score", metric, "-p", data, "-r", data, "-o", output, "--resume") == printed
    assert output.read_bytes() == whole.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} - {data.name, output.name, whole.name} == set()


def test_rows_without_a_score_are_empty_and_counted_also_in_a_continued_run(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path
) -> None:
    metric, texts = "moverscore[truncation=error,window=16]", ["-p", data, "-r", data, "--on-error", "null"]
    assert run("score", metric, "-p", data, "-r", data)[0] == 2
    code, out, err = run("score", metric, *texts, "-o", tmp_path / "whole.jsonl")
    rows = [json.loads(line)["score"] for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    failed, scores = rows.count(None), [score for score in rows if score is not None]
    assert code == 0 and 0 < failed < len(rows) == 50 and f"  n_failed: {failed} of 50\n" in err
    assert f" = {sum(scores) / len(scores):.4f} [" in out
    assert run("score", metric, *texts, "-o", tmp_path / "s.csv")[0] == 0
    assert (tmp_path / "s.csv").read_text().count(",\n") == failed
    killed(tmp_path / "s.jsonl", "after sidecar", 3, metric, "--on-error", "null")
    again = run("score", metric, *texts, "-o", tmp_path / "s.jsonl", "--resume")
    assert again[:2] == (code, out) and f"n_failed: {failed} of 50" in again[2]
    assert (tmp_path / "s.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_an_unfinished_run_is_neither_overwritten_nor_mixed_with_another(
    failure: Failure, killed: Callable[..., None], data: Path, tmp_path: Path
) -> None:
    output, partial = tmp_path / "s.jsonl", tmp_path / "s.jsonl.partial"
    killed(output)
    before = partial.read_bytes()
    texts = ["-p", data, "-r", data, "-o", output]
    expected = f"{partial} is an unfinished run: continue it with --resume, or delete it"
    assert failure("score", "wms", *texts) == expected
    for arguments, difference in (
        (["wms", *texts, "-s", "stopwords=none"], "signature of wms (wms|"),
        (["wms", *texts, "--alignment"], "options (none), but got return_alignment=True"),
        (["wms,sms", *texts], "metrics (wms), but got wms, sms"),
    ):
        error = failure("score", *arguments, "--resume")
        assert error.startswith(f"{partial}: cannot resume: expected the same ") and difference in error
    data.write_text(data.read_text().replace('"prediction": "The snow', '"prediction": "No snow', 1))
    error = failure("score", "wms", *texts, "--resume")
    assert "expected the same predictions (file 1) (sha256 " in error
    assert partial.read_bytes() == before and not output.exists()


@pytest.mark.parametrize("more", [[], ["-o", "s.jsonl", "--json"], ["-o", "s.json"], ["-o", "s.parquet"]])
def test_resume_requires_a_file_of_lines(failure: Failure, data: Path, more: list[str]) -> None:
    assert failure("score", "wms", "-p", data, "-r", data, "--resume", *more).startswith("--resume requires --output")


def test_an_interrupted_run_says_how_to_continue(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from movers.scorer import Scorer

    stream = Scorer.stream

    def interrupted(self: Scorer, *arguments: object, **options: object) -> object:
        for number, example in enumerate(stream(self, *arguments, **options)):  # type: ignore[arg-type]
            if number == 20:
                raise KeyboardInterrupt
            yield example

    output = tmp_path / "s.csv"
    texts = ["score", "wms", "-p", data, "-r", data, "-o", output]
    with monkeypatch.context() as patch:
        patch.setattr(Scorer, "stream", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(*texts)
    assert capsys.readouterr().err == f"movers: continue with --resume: {output}.partial has the finished rows\n"
    assert run(*texts, "--resume")[0] == 0
    assert output.read_text().count("\n") == len(ROWS) + 1

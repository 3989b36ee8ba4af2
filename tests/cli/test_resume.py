"""`movers score` on files in sections: a run that was killed goes on with --resume, and its results are the same."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import ROOT

from movers.cli import main
from movers.encoders.cache import VECTORS

from cli_texts import Failure, Run  # isort: skip

WORDS = "snow rain ice wind sun fog hail heat frost cloud storm thaw".split()
# Of many lengths, and each in several sections.
TEXTS = [f"The {a}" + f" and the {b}" * (place % 13) + " came." for a in WORDS for place, b in enumerate(WORDS)]
ROWS = [{"prediction": TEXTS[row % 40], "references": [TEXTS[-row % 40], TEXTS[row]]} for row in range(50)]
SECTION = 8

# Kills itself: while a block is being written, when blocks are complete, or while the whole file is being written.
KILLED = """if True:
    import os, signal, sys
    import movers.scores.engine, movers.io.blocks
    from movers.io.blocks import BlockFile
    movers.scores.engine.SECTION = 8
    when, count = sys.argv.pop(1), int(sys.argv.pop(1))
    append, die = BlockFile._append, lambda: os.kill(os.getpid(), signal.SIGKILL)
    written = []
    def broken(self, data):
        written.append(data)
        if len(written) > count:
            append(self, data[:len(data) // 2] if when == "torn" else b"")
            die()
        append(self, data)
    BlockFile._append = broken
    if when == "whole":
        movers.io.blocks.open_output = lambda *_, beside: (beside.write_bytes(b"some"), die())
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
    monkeypatch.setattr("movers.scores.engine.SECTION", SECTION)


@pytest.fixture
def killed(data: Path) -> Callable[..., None]:
    """Run the command line until it kills itself; the target is not there, its partial file is."""

    def call(output: Path, when: str = "complete", count: int = 3, metric: str = "wms") -> None:
        command = [sys.executable, "-c", KILLED, when, str(count), "score", metric]
        done = subprocess.run([*command, "-p", data, "-r", data, "-o", output], cwd=ROOT, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not output.exists() and output.with_name(f"{output.name}.partial").exists()

    return call


def members(data: bytes) -> list[bytes]:
    found = []
    while data:
        stream = zlib.decompressobj(wbits=31)
        stream.decompress(data)
        assert stream.eof
        found.append(data[: len(data) - len(stream.unused_data)])
        data = stream.unused_data
    return found


@pytest.mark.parametrize(
    ("name", "when", "count"),
    [
        ("s.jsonl", "torn", 0),  # not even the head is complete
        ("s.jsonl.gz", "torn", 3),
        ("s.csv", "complete", 1),  # head only
        ("s.csv.gz", "complete", 4),
        ("s.tsv", "torn", 7),
        ("s.txt", "torn", 2),
        ("s.parquet", "torn", 3),
        ("s.arrow", "complete", 5),
        ("s.feather", "whole", 99),
        ("s.jsonl.gz", "whole", 99),
    ],
)
def test_a_killed_run_goes_on_to_equal_bytes(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path, name: str, when: str, count: int
) -> None:
    metric = "wms[idf=corpus,average=distances],sms"
    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    texts = ["-p", data, "-r", data]
    said = run("score", metric, *texts, "-o", whole)
    assert said[0] == 0
    killed(output, when, count, metric)
    assert run("score", metric, *texts, "-o", output, "--resume") == said
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([data.name, output.name, whole.name])


def test_what_was_finished_is_not_scored_again(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import movers.scores.engine

    killed(tmp_path / "s.jsonl", count=4)  # the head and three sections
    rows: list[object] = []
    score_block = movers.scores.engine.score_block

    def noted(metric: object, block: list[object], *more: object, **named: object) -> object:
        rows.extend(block)
        return score_block(metric, block, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("movers.scores.engine.score_block", noted)
    assert run("score", "wms", "-p", data, "-r", data, "-o", tmp_path / "s.jsonl", "--resume")[0] == 0
    assert rows == [(row["prediction"], row["references"]) for row in ROWS[3 * SECTION :]]
    assert [json.loads(line)["index"] for line in (tmp_path / "s.jsonl").read_text().splitlines()] == list(range(50))


def test_contextual_vectors_of_an_earlier_section_change_no_digit(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path
) -> None:
    metric = "moverscore,bertscore_emd"
    texts = ["-p", data, "-r", data]
    VECTORS.clear()
    assert run("score", metric, *texts, "-o", tmp_path / "whole.jsonl")[0] == 0
    killed(tmp_path / "s.jsonl", "torn", 5, metric)
    VECTORS.clear()  # as in a process of its own
    assert run("score", metric, *texts, "-o", tmp_path / "s.jsonl", "--resume")[0] == 0
    assert (tmp_path / "s.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_each_section_is_a_gzip_member_without_time_or_name(run: Run, data: Path, tmp_path: Path) -> None:
    for name in ("s.jsonl.gz", "s.jsonl"):
        assert run("score", "wms", "-p", data, "-r", data, "-o", tmp_path / name)[0] == 0
    found = members((tmp_path / "s.jsonl.gz").read_bytes())
    assert [gzip.decompress(member).count(b"\n") for member in found] == [8, 8, 8, 8, 8, 8, 2]
    for member in found:
        assert member[:3] == b"\x1f\x8b\x08" and member[3] == 0  # no name, no comment
        assert member[4:8] == bytes(4)  # no time
    assert gzip.decompress(b"".join(found)) == (tmp_path / "s.jsonl").read_bytes()


def test_sections_change_no_score(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["score", "wms[average=distances],moverscore", "-p", data, "-r", data, "--json"]
    found = json.loads(run(*asked)[1])
    monkeypatch.setattr("movers.scores.engine.SECTION", 4096)
    for own, whole in zip(found, json.loads(run(*asked)[1]), strict=True):
        assert own["scores"] == pytest.approx(whole["scores"], abs=1e-6)
        assert own["score"] == pytest.approx(whole["score"], abs=1e-6)


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_while_the_first_writes(failure: Failure, data: Path, tmp_path: Path) -> None:
    partial = tmp_path / "s.jsonl.partial"
    with partial.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for more in ([], ["--resume"]):
            error = failure("score", "wms", "-p", data, "-r", data, "-o", tmp_path / "s.jsonl", *more)
            assert error == f"{partial}: another run is writing it; wait for it, or stop it first"
    assert partial.exists()


def test_an_unfinished_run_is_neither_overwritten_nor_mixed_with_another(
    failure: Failure, killed: Callable[..., None], data: Path, tmp_path: Path
) -> None:
    output, partial = tmp_path / "s.jsonl", tmp_path / "s.jsonl.partial"
    killed(output)
    kept = partial.read_bytes()
    texts = ["-p", data, "-r", data, "-o", output]
    assert failure("score", "wms", *texts) == (
        f"{partial}: an unfinished run is there: go on with --resume, or delete the file to begin again"
    )
    for arguments, differs in (
        (["wms", *texts, "-s", "stopwords=none"], "options of wms: none, but got stopwords=None"),
        (["wms", *texts, "--alignment"], "options of wms: none, but got return_alignment=True"),
        (["wms,sms", *texts], "metrics: wms, but got wms, sms"),
    ):
        error = failure("score", *arguments, "--resume")
        assert error.startswith(f"{partial}: cannot resume this run: ") and f"expected {differs}" in error
    data.write_text(data.read_text().replace('"prediction": "The snow', '"prediction": "No snow', 1))
    error = failure("score", "wms", *texts, "--resume")
    assert "expected predictions: sha256 " in error and "references" not in error
    assert partial.read_bytes() == kept
    assert not output.exists()


def test_the_texts_count_and_not_the_files_form(
    run: Run, killed: Callable[..., None], data: Path, tmp_path: Path
) -> None:
    output, moved = tmp_path / "s.jsonl", tmp_path / "moved.jsonl.gz"
    killed(output)
    moved.write_bytes(gzip.compress(data.read_bytes()))
    arguments = ["score", "wms", "-p", moved, "-r", moved, "-o", output, "--resume", "--threads", 1, "-q"]
    assert run(*arguments)[0] == 0


def test_files_of_others_are_left_alone(failure: Failure, data: Path, tmp_path: Path) -> None:
    partial = tmp_path / "s.jsonl.partial"
    partial.write_text("my own notes\n")
    error = failure("score", "wms", "-p", data, "-r", data, "-o", tmp_path / "s.jsonl", "--resume")
    assert error == f"{partial}: expected an unfinished run of movers, but it is something else"
    assert partial.read_text() == "my own notes\n"


def test_resume_needs_a_file_to_go_on_with(failure: Failure, data: Path, tmp_path: Path) -> None:
    texts = ["-p", data, "-r", data]
    for more in ([], ["-o", tmp_path / "s.jsonl", "--json"]):
        assert "--resume: expected --output FILE" in failure("score", "wms", *texts, *more, "--resume")
    assert failure("score", "wms", *texts, "-o", "-", "--resume") == "-: cannot resume: expected the name of a file"


# --- runs that end early ---------------------------------------------------------------------------------------------


def test_an_interrupted_run_says_that_it_can_go_on(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "s.csv"
    texts = ["-p", data, "-r", data, "-o", output]
    with monkeypatch.context() as patch:
        patch.setattr("movers.encoders.cache.VECTORS.clear", _interrupt_at(3))
        code, out, err = run("score", "wms", *texts)
    assert (code, out) == (130, "")
    kept = f"movers: finished rows are kept in {output}.partial; continue with --resume\n"
    assert err == f"{kept}movers: interrupted\n"
    assert run("score", "wms", *texts, "--resume")[0] == 0
    assert output.read_text().count("\n") == len(ROWS) + 1
    with monkeypatch.context() as patch:  # nothing is finished: nothing is left
        patch.setattr("movers.encoders.cache.VECTORS.clear", _interrupt_at(1))
        assert run("score", "wms", "-p", data, "-r", data, "-o", tmp_path / "t.csv")[2] == "movers: interrupted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [data.name, output.name]


def _interrupt_at(call: int) -> Callable[[], None]:
    calls = []

    def clear() -> None:
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt

    return clear


def test_standard_output_gets_every_section(data: Path) -> None:
    code = "import sys; sys.argv[0] = 'movers'; import movers.scores.engine as engine; engine.SECTION = 8\n"
    code += "from movers.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "score", "wms", "-p", data, "-r", data, "-o", "/dev/stdout"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(ROWS) and "wms|emb:" in done.stderr  # the summary is no row


def test_resume_without_an_earlier_run_begins(tmp_path: Path, data: Path) -> None:
    output = tmp_path / "s.txt"
    assert main(["score", "wms", "-p", str(data), "-r", str(data), "-o", str(output), "--resume", "-q"]) == 0
    assert len(output.read_text().splitlines()) == len(ROWS)

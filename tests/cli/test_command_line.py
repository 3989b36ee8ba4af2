"""The command line as a process: how it ends, what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT

from cli_texts import Files  # isort: skip


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "movers", *arguments],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("POT_")} | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_an_error_is_one_line_and_exit_code_2(files: Files) -> None:
    done = process("score", "wms", "-p", "none.txt", "-r", "none.txt")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "movers: error: none.txt: no such file\n")
    offline = {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}
    done = process("score", "moverscore", *files(), "-m", "nobody/no-such-model", **offline)  # within the time limit
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "nobody/no-such-model" in done.stderr


@pytest.mark.parametrize(
    "command", ["metrics", "score wms -p {p} -r {p} --json", "score wms -p {p} -r {p} -o /dev/stdout"]
)
def test_a_reader_that_stops_early_ends_the_process_quietly(tmp_path: Path, command: str) -> None:
    (tmp_path / "p.txt").write_text("snow fell\n" * 3000)
    shell = f"set -o pipefail; {sys.executable} -m movers {command.format(p=tmp_path / 'p.txt')} | true"
    done = subprocess.run(["bash", "-c", shell], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (141, "")


def test_standard_input_may_be_read(files: Files) -> None:
    predictions, references = files()[1], files()[3]
    shell = f"{sys.executable} -m movers score wms -p - -r <(cat {references}) --json < {predictions}"
    done = subprocess.run(["bash", "-c", shell], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stdout == process("score", "wms", *files(), "--json").stdout and done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", ["scores.txt", "scores.json"])
def test_a_stopped_process_leaves_the_old_output_and_nothing_else(tmp_path: Path, number: int, name: str) -> None:
    (tmp_path / name).write_text("old\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = f"""if True:
        import sys, threading, time
        from movers.scorer import Scorer
        def wait(*_, **options):
            threading.Thread(target=time.sleep, args=[100]).start()  # as if it were solving
            open({str(pipe)!r}, "w").close()
            time.sleep(100)
        Scorer.stream = wait
        from movers.__main__ import main
        sys.exit(main())
    """
    (tmp_path / "p.txt").write_text("snow\n")
    texts = ["-p", str(tmp_path / "p.txt"), "-r", str(tmp_path / "p.txt"), "-o", str(tmp_path / name)]
    running = subprocess.Popen(
        [sys.executable, "-c", program, "score", "wms", *texts], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    pipe.read_text()  # until it is scoring
    running.send_signal(number)
    _, err = running.communicate(timeout=600)
    assert (running.returncode, err) == (130, "movers: interrupted\n")
    assert (tmp_path / name).read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.txt", "pipe", name]

"""The command line in this process, and files for it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from movers.cli import main

from cli_texts import PREDICTIONS, REFERENCES, Failure, Files, Run  # isort: skip


@pytest.fixture(autouse=True)
def environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        monkeypatch.setenv(f"POT_BACKEND_DISABLE_{library}", "1")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, standard output and standard error of the command line."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture
def failure(run: Run) -> Failure:
    """What a command says that fails, with exit code 2."""

    def call(*arguments: object) -> str:
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("movers: error: ")
        return err.removeprefix("movers: error: ").rstrip("\n")

    return call


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """`files(".txt")` → arguments that name a file of predictions and one of references."""

    def table(rows: list[str], key: str, suffix: str) -> str:
        if suffix == ".txt":
            return "".join(f"{row}\n" for row in rows)
        if suffix == ".jsonl":
            return "".join(json.dumps({key: row}) + "\n" for row in rows)
        return f"id,{key}\n" + "".join(f'{number},"{row}"\n' for number, row in enumerate(rows))

    def write(kind: str = ".txt") -> list[str]:
        arguments = []
        for option, key, rows in (("-p", "out", PREDICTIONS), ("-r", "ref", REFERENCES)):
            data = table(rows, key, kind.removesuffix(".gz")).encode()
            path = tmp_path / f"{key}{kind}"
            path.write_bytes(gzip.compress(data) if kind.endswith(".gz") else data)
            arguments += [option, str(path)]
        if not kind.startswith(".txt"):
            arguments += ["--prediction-column", "out", "--reference-column", "ref"]
        return arguments

    return write

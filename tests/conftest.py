"""What several tests share: an empty cache, no network, judged texts if they are there, tiny vectors and models."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import ROOT, VectorTable, tiny_model, tiny_tokenizer, vector_bytes

collect_ignore = ["_without_network.py"]  # a script of its own process

# Before any test module imports transformers or huggingface_hub, which read these once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for tiny models, waking threads costs more than the work
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background job; commands under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
_CACHE = tempfile.TemporaryDirectory(prefix="movers-tests-")
os.environ["MOVERS_CACHE"] = _CACHE.name
os.environ["HF_HOME"] = f"{_CACHE.name}/huggingface"


@pytest.fixture(scope="session", autouse=True)
def session_cache() -> Iterator[Path]:
    """The folder that takes the place of the user's cache, for this session alone."""
    yield Path(_CACHE.name)
    _CACHE.cleanup()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MOVERS_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def judged_file() -> Callable[[str], Path]:
    """The file of a human-judged set by name, from the folder that MOVERS_DATA names or from what `make data` brought.

    A test whose set is in neither is skipped.
    """

    def find(name: str) -> Path:
        folders = [Path(os.environ["MOVERS_DATA"])] if os.environ.get("MOVERS_DATA") else []
        for folder in (*folders, ROOT / "data"):
            for path in (folder / "human" / f"{name}.jsonl.gz", folder / f"{name}.jsonl.gz"):
                if path.is_file():
                    return path
        pytest.skip(f"no {name}.jsonl.gz in the folder that MOVERS_DATA names, nor in data/human (`make data`)")

    return find


@pytest.fixture(scope="session")
def judged(judged_file: Callable[[str], Path]) -> Callable[[str], list[dict[str, Any]]]:
    """Rows of a human-judged set by name."""

    def read(name: str) -> list[dict[str, Any]]:
        with gzip.open(judged_file(name), "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Run code in a fresh interpreter that imports this checkout; returns what it prints."""

    def run(code: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def vector_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a table of word vectors; a name that ends in .gz is compressed."""

    def write(table: VectorTable, form: str = "glove", name: str | None = None) -> Path:
        path = tmp_path / (name or f"tiny-{form}.{'bin' if form == 'binary' else 'txt'}")
        data = vector_bytes(table, form)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return write


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a small disk takes the superuser")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="session")
def tiny_bert() -> tuple[Any, Any]:
    return tiny_model("bert"), tiny_tokenizer("bert")


@pytest.fixture
def minilm() -> Any:
    """The default contextual encoder, the very object that metrics take now: the one used longest ago is let go."""
    from movers import load_encoder

    return load_encoder("all-MiniLM-L6-v2", device="cpu")

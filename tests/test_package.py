"""The wheel holds all that the metrics need, and works away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

from movers.version import VERSION


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    # A copy of what is packaged, so that nothing is left in the checkout and nothing stale is picked up from it.
    source = tmp_path_factory.mktemp("source")
    for name in ("movers", "setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    target = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), ".", cwd=source)
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_is_named_by_the_version(wheel: Path) -> None:
    assert wheel.name == f"movers-{VERSION}-py3-none-any.whl"


def test_the_wheel_holds_every_module_and_data_file_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "movers").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == files
    assert {"movers/py.typed", "movers/data/stopwords_english.txt"} <= held


def test_the_wheel_carries_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for file in ("LICENSE", "NOTICE"):
        assert any(".dist-info/" in name and name.endswith(file) for name in names)


def test_the_installed_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    run(*pip, "--target", str(target), str(wheel), cwd=tmp_path)
    code = """
import movers
from importlib import metadata
from movers.texts import stop_words
print(movers.__file__)
print(len(stop_words("english")), movers.wms(["The cat sat."], ["A cat sat."])["score"], metadata.version("movers"))
"""
    file, result = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(target)).splitlines()
    assert Path(file).is_relative_to(target)
    assert result == f"127 1.0 {VERSION}"

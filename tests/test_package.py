"""The sdist is complete, and the wheel built from it works away from the checkout, evaluate modules included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from tiny import ROOT

from movers.version import VERSION

pytestmark = pytest.mark.slow

# What a release consists of: packaged code and data, and what is needed to test, measure and publish it.
PARTS = ["*.md", "LICENSE", "Makefile", "MANIFEST.in", "NOTICE", "constraints.txt", "pyproject.toml", "setup.py"]
PARTS += ["benchmarks", "docs", "examples", "metrics", "movers", "tests", "tools"]


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files under version control, so that nothing stale is picked up from the checkout."""
    source = tmp_path_factory.mktemp("source")
    names = run("git", "ls-files", *PARTS, cwd=ROOT).splitlines()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    return source


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, and the wheel that is built from the sdist alone."""
    pytest.importorskip("build")
    target = tmp_path_factory.mktemp("dist")
    work = target / "work"
    shutil.copytree(source, work)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), ".", cwd=work)
    (sdist,), (wheel,) = target.glob("movers-*.tar.gz"), target.glob("movers-*.whl")
    return Built(sdist, wheel)


def test_the_sdist_is_complete(built: Built, source: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert files_below(source) - held == set()


def test_the_wheel_holds_the_package_with_the_modules_inside_and_nothing_else(built: Built, source: Path) -> None:
    held = {name for name in zipfile.ZipFile(built.wheel).namelist() if ".dist-info/" not in name}
    package = {f"movers/{name}" for name in files_below(source / "movers")}
    modules = {f"movers/metrics/{name}" for name in files_below(source / "metrics") if not name.endswith(".txt")}
    assert held == package | modules
    assert any(name.endswith("licenses/LICENSE") for name in zipfile.ZipFile(built.wheel).namelist())
    assert {"movers/py.typed", "movers/data/stopwords_english.txt", "movers/metrics/wms/wms.py"} <= held


def test_an_installed_wheel_scores_and_evaluate_loads_its_modules(built: Built, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with zipfile.ZipFile(built.wheel) as archive:  # what pip does with a wheel of pure Python
        archive.extractall(target)
    code = """
from importlib import metadata
import evaluate
import movers
rows = {"predictions": ["The cat sat."], "references": ["A cat sat."]}
print(movers.__file__)
print(movers.module_path("wms"))
module = evaluate.load(movers.module_path("wms"))
print(metadata.version("movers"), movers.wms(**rows)["score"], module.compute(**rows)["score"])
"""
    environment = {"PYTHONPATH": str(target), "HF_HOME": str(tmp_path / "huggingface")}
    package, module, result = run(sys.executable, "-c", code, cwd=tmp_path, **environment).splitlines()
    assert Path(package).is_relative_to(target)
    assert Path(module) == target / "movers" / "metrics" / "wms"
    assert result == f"{VERSION} 1.0 1.0"

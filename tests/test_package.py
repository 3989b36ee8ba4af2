"""The sdist is complete, and the wheel built from it works away from the checkout, evaluate modules included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tiny import ROOT

from movers.version import VERSION

pytestmark = pytest.mark.slow


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def files() -> set[str]:
    """What a release consists of: files of the checkout that are not hidden."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    return {
        name for name in run("git", "ls-files", cwd=ROOT).splitlines() if (ROOT / name).is_file() and name[0] != "."
    }


@pytest.fixture(scope="module")
def dist(files: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from the sdist alone."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    for name in files:
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), ".", cwd=folder / "source")
    return folder


def test_the_sdist_is_complete(dist: Path, files: set[str]) -> None:
    with tarfile.open(dist / f"movers-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files - names == set()


def test_the_wheel_holds_the_package_with_the_modules_inside_and_nothing_else(dist: Path, files: set[str]) -> None:
    names = zipfile.ZipFile(dist / f"movers-{VERSION}-py3-none-any.whl").namelist()
    package = {name for name in files if name.startswith("movers/")}
    modules = {f"movers/{name}" for name in files if name.startswith("metrics/") and not name.endswith(".txt")}
    assert {name for name in names if ".dist-info/" not in name} == package | modules
    assert {"movers/py.typed", "movers/metrics/wms/wms.py"} <= set(names)
    assert any(".dist-info/" in name and name.endswith("LICENSE") for name in names)


def test_an_installed_wheel_scores_and_evaluate_loads_its_modules(dist: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with zipfile.ZipFile(dist / f"movers-{VERSION}-py3-none-any.whl") as archive:  # as pip installs pure Python
        archive.extractall(target)
    code = """
import evaluate, movers
rows = {"predictions": ["The cat sat."], "references": ["The cat sat."]}
module = evaluate.load(movers.module_path("wms"))
print(movers.module_path("wms"), movers.wms(**rows)["score"], module.compute(**rows)["score"])
"""
    environment = {"PYTHONPATH": str(target), "HF_HOME": str(tmp_path / "huggingface")}
    printed = run(sys.executable, "-c", code, cwd=tmp_path, **environment)
    assert printed == f"{target / 'movers' / 'metrics' / 'wms'} 1.0 1.0"


def test_two_builds_of_a_commit_are_the_same_bytes(files: set[str], tmp_path: Path) -> None:
    run(sys.executable, "tools/release.py", "--ref", "HEAD", "--out", str(tmp_path / "dist"), cwd=ROOT)
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]

"""What the documents say: examples run, links lead to files, commands exist."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT

from movers.cli import basics, main

DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for pattern in ("*.md", "docs/*.md", "metrics/*/README.md", "benchmarks/**/*.md")
    for path in sorted(ROOT.glob(pattern))
}


@pytest.mark.parametrize("document", ["README.md", "docs/choosing.md", "docs/mbr.md"])
def test_python_examples_are_true(document: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(ROOT / document), module_relative=False, optionflags=flags)
    assert results.attempted > 4
    assert results.failed == 0


def test_the_first_five_blocks_of_the_readme_are_python_or_run_in_a_shell(tmp_path: Path) -> None:
    """`pip` does nothing here: what it would install is what the tests run on."""
    assert len(DOCUMENTS["README.md"].split()) <= 900
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENTS["README.md"], re.DOTALL | re.MULTILINE)[:5]
    assert [language for language, _ in blocks] == ["bash", "python", "python", "python", "bash"]
    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    shell = "set -e\n" + "".join(code for language, code in blocks if language == "bash")
    printed = subprocess.check_output(["bash", "-c", shell], cwd=tmp_path, env={**os.environ, "PATH": path}, text=True)
    assert re.findall(r"^(\w+)\|.* = 0\.\d+", printed, re.MULTILINE) == ["wms", "moverscore"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_to_files_lead_somewhere(document: str) -> None:
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", DOCUMENTS[document])]
    folder = (ROOT / document).parent
    assert [link for link in links if "://" not in link and not (folder / link).exists()] == []


def test_targets_of_make_and_files_that_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", "\n".join(DOCUMENTS.values()), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets
    files = re.findall(r"`((?:movers|tests|tools|benchmarks|docs)/[\w/.]+\.\w+)`", DOCUMENTS["CONTRIBUTING.md"])
    assert files and [path for path in files if not (ROOT / path).exists()] == []


def test_the_container_has_its_files_and_serves_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied and [name for name in copied if not (ROOT / name).exists()] == []
    served: list[object] = []
    monkeypatch.setattr(basics, "serve", served.append)
    assert main(json.loads(lines[-1].removeprefix("CMD "))[1:]) == 0
    assert f"EXPOSE {vars(served[0])['port']}" in lines

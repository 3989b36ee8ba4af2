"""What the documents say: examples run, links lead to files, commands exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from tiny import ROOT

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "metrics/*/README.md", "benchmarks/**/*.md")
    for path in ROOT.glob(pattern)
)


def test_the_examples_of_the_readme_are_true(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=flags)
    assert results.attempted > 5
    assert results.failed == 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_to_files_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / document).parent / link).exists()]
    assert missing == []


def test_the_targets_of_make_that_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {"demo", "test"} <= named <= targets


def test_the_files_that_contributing_names_exist() -> None:
    named = re.findall(
        r"`((?:movers|tests|tools|benchmarks|docs)/[\w/.]+\.\w+)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert named and [path for path in named if not (ROOT / path).exists()] == []

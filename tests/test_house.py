"""The size of the house: what grows past these bounds is divided, merged or deleted."""

from __future__ import annotations

import re
from pathlib import Path

from tiny import ROOT

PACKAGE = sorted((ROOT / "movers").rglob("*.py"))
FILES = [*PACKAGE, *sorted((ROOT / "metrics").rglob("*.py"))]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    assert {str(path.relative_to(ROOT)): len(lines(path)) for path in FILES if len(lines(path)) > 400} == {}


def test_any_stands_in_at_most_a_hundred_lines() -> None:
    assert sum(bool(re.search(r"\bAny\b", line)) for path in PACKAGE for line in lines(path)) <= 100

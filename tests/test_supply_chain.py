"""What is installed with movers is listed with reason and licence; a release is the same bytes whoever builds it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tiny import ROOT


def wanted() -> dict[str, set[str]]:
    """Package → what setup.py wants it for: `always`, or extras."""
    found: dict[str, set[str]] = {}
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("REQUIRES", "EXTRAS"):
            # the one comprehension, over the five parts of mpnet, is evaluated by hand
            text = re.sub(r"\[f'(.*?)\{part\}'.*?\]", r"['\g<1>1']", ast.unparse(node.value))
            value = ast.literal_eval(text)
            for purpose, packages in ({"always": value} if isinstance(value, list) else value).items():
                for package in packages:
                    found.setdefault(re.split(r"[<>=\[]", package)[0], set()).add(purpose)
    return found


def listed() -> dict[str, list[str]]:
    """Package → purposes, reason and licence in the table of SECURITY.md."""
    table = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("## Dependencies")[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {cells[0].removesuffix(" to -005"): cells[1:] for cells in rows[2:]}


def test_every_dependency_is_listed_with_purpose_reason_and_licence() -> None:
    assert {name: {*cells[0].split(", ")} for name, cells in listed().items()} == wanted()
    assert all(len(cells) == 3 and all(cells) for cells in listed().values())


def test_licences_are_those_the_packages_state() -> None:
    compared = 0
    for name, (_, _, licence) in listed().items():
        try:
            stated = metadata.metadata(name).get("License-Expression")
        except metadata.PackageNotFoundError:
            continue
        if stated and name != "torch":
            compared += 1
            assert re.split(r" and |;", licence)[0] in stated, name
    assert compared > 8


def test_every_tested_version_is_pinned() -> None:
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    assert {name.lower().replace("-", "_") for name in wanted()} <= {name.replace("-", "_") for name in pinned}


def test_two_builds_of_a_commit_are_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("build")
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = [sys.executable, str(ROOT / "tools" / "release.py"), "--ref", "HEAD", "--out", str(tmp_path / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("two builds of HEAD are equal, byte for byte\n")
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]

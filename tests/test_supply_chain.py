"""A release is the same bytes whoever builds it, and every dependency has a tested version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT


def test_every_dependency_has_a_tested_version() -> None:
    required = re.findall(r'^ {4,8}"([\w-]+)(?:\[\w+\])?>=', (ROOT / "setup.py").read_text(), re.MULTILINE)
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()}
    assert len(required) > 15
    assert {name.lower().replace("_", "-") for name in required} - pinned == set()


@pytest.mark.slow
def test_two_builds_of_a_commit_are_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("build")
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = [sys.executable, str(ROOT / "tools" / "release.py"), "--ref", "HEAD", "--out", str(tmp_path / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]

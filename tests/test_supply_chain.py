"""A release is the same bytes whoever builds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT


@pytest.mark.slow
def test_two_builds_of_a_commit_are_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("build")
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    command = [sys.executable, str(ROOT / "tools" / "release.py"), "--ref", "HEAD", "--out", str(tmp_path / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]

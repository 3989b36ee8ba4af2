"""What turns a folder in `metrics/` into a Space: card, page and requirements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import ROOT

import movers


@pytest.fixture
def folder(name: str) -> Path:
    return Path(movers.module_path(name))


def front_matter(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


def test_the_card_declares_a_space_that_evaluate_finds_and_the_hub_accepts(folder: Path) -> None:
    matter = front_matter(folder)
    assert (matter["sdk"], matter["app_file"]) == ("gradio", "app.py")
    assert {"evaluate", "metric"} <= set(matter["tags"])
    assert f"gradio=={matter['sdk_version']}\n" in (ROOT / "constraints.txt").read_text()  # what is tested
    assert 0 < len(matter["short_description"]) <= 60


def test_the_card_has_the_sections_of_evaluate_s_template(folder: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = ["Metric Description", "How to Use", "Inputs", "Output Values", "Values from Popular Papers", "Examples"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert headings.index("Limitations and Bias") < headings.index("Citation")


def test_the_committed_files_name_the_package_without_an_address(name: str, folder: Path) -> None:
    assert (folder / "requirements.txt").read_text() == "movers[demo]\n"
    assert "# From:" not in (folder / f"{name}.py").read_text(encoding="utf-8")

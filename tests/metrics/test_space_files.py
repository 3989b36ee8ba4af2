"""What turns a folder in `metrics/` into a Space: card, page and requirements."""

from __future__ import annotations

import re
import runpy
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from movers.registry import find_metric
from movers.version import VERSION

PACKAGE = f"git+https://github.com/movers-metrics/movers@v{VERSION}"


def front_matter(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


def test_the_card_declares_a_gradio_space_that_evaluate_finds(folder: Path) -> None:
    matter = front_matter(folder)
    assert (matter["sdk"], matter["app_file"]) == ("gradio", "app.py")
    assert {"evaluate", "metric"} <= set(matter["tags"])


def test_the_space_runs_the_gradio_that_is_tested(folder: Path, root: Path) -> None:
    assert f"gradio=={front_matter(folder)['sdk_version']}\n" in (root / "constraints.txt").read_text()


def test_the_hub_would_accept_the_short_description(folder: Path) -> None:
    assert 0 < len(front_matter(folder)["short_description"]) <= 60


def test_the_card_has_the_sections_of_evaluate_s_template(folder: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = ["Metric Description", "How to Use", "Inputs", "Output Values", "Values from Popular Papers", "Examples"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert headings.index("Limitations and Bias") < headings.index("Citation")


def test_the_card_lists_every_option_with_its_default(name: str, folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \*\*(\w+)\*\* \| `([^`]*)` \|", card, re.MULTILINE))
    options = {item.name: repr(item.default).replace("'", '"') for item in fields(find_metric(name).options_class)}
    assert {option: listed.get(option) for option in options} == options


def test_the_space_installs_this_version_of_the_package(folder: Path) -> None:
    assert (folder / "requirements.txt").read_text() == f"movers[demo] @ {PACKAGE}\n"


def test_a_user_without_the_package_is_told_how_to_install_this_version(name: str, folder: Path) -> None:
    from evaluate.loading import get_imports

    places = {place for _, module, place, _ in get_imports(str(folder / f"{name}.py")) if module == "movers"}
    assert places == {PACKAGE}


def test_the_page_scores_a_pair_through_its_api(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradio_client import Client

    monkeypatch.chdir(shutil.copytree(folder, tmp_path / name))
    page = runpy.run_path("app.py")["demo"]
    _, address, _ = page.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    try:
        score, signature, _ = Client(address, verbose=False).predict("Snow melts.", "Ice thaws.", api_name=f"/{name}")
    finally:
        page.close()
    expected = find_metric(name).function(["Snow melts."], ["Ice thaws."])
    assert (score, signature) == (f"{expected['score']:.4g}", expected["signature"])

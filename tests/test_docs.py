"""The site: the tutorial runs, links between pages lead somewhere, and mkdocs builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import docs
import movers
from movers.registry import METRICS


def test_the_tutorial_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = [text for kind, text in docs.notebook_cells(docs.CHECKOUT / "docs" / "tutorial.ipynb") if kind == "code"]
    for cell in cells:
        exec(compile(cell, "tutorial.ipynb", "exec"), names)
    assert len(cells) > 3 and hasattr(names["explanation"], "save")
    assert "['Tokyo']" in capsys.readouterr().out


def test_links_between_pages_and_to_pictures_lead_somewhere(tmp_path: Path) -> None:
    docs.write_sources(tmp_path)
    pages = list(tmp_path.rglob("*.md"))
    assert {f"{name}.md" for name in METRICS} <= {page.name for page in pages}
    found = [(page, re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))) for page in pages]
    links = [(page, address) for page, addresses in found for address in addresses if "://" not in address]
    assert len(links) > 10
    assert [(page.name, address) for page, address in links if not (page.parent / address).is_file()] == []


@pytest.mark.slow
def test_the_site_is_built_with_every_name_of_the_api(tmp_path: Path) -> None:
    pytest.importorskip("mkdocstrings", reason="needs the extra `docs`")
    docs.main(tmp_path)
    api = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    for name in movers.__all__:
        assert name == "__version__" or f'id="movers.{name}"' in api
    assert "temperature" in api

"""Build the site from README, cards, results and docstrings: `make docs` (into build/site).

Pages are gathered in build/docs: links between files of the checkout become links between pages, and links to files
that have no page become plain text. mkdocs then checks every link (`--strict`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import movers
from movers.registry import METRICS

__all__ = ["notebook_cells", "notebook_page", "site_pages", "write_sources"]

CHECKOUT = Path(__file__).parents[1]
_SUITES = ("agreement", "mbr", "quality", "rewards", "settings", "speed")
_RESULTS = {f"results/{suite}.md": f"benchmarks/{suite}/RESULTS.md" for suite in _SUITES}
_GUIDES = sorted(file.name for file in (CHECKOUT / "docs").glob("*.md"))
_SETTINGS = """
site_name: movers
docs_dir: {docs}
site_dir: {site}
theme: {{name: readthedocs, highlightjs: false, locale: en}}
use_directory_urls: false
plugins:
  - search
  - mkdocstrings:
      handlers:
        python:
          paths: ["{checkout}"]
          options:
            docstring_style: numpy
            force_inspection: true
            show_root_heading: true
            show_source: false
            filters: ["!^_"]
markdown_extensions: [tables, fenced_code]
nav:
  - movers: index.md
  - Tutorial: tutorial.md
  - Guides: [{guides}]
  - Metrics: [{metrics}]
  - Results: [{results}]
  - API: api.md
"""


def notebook_cells(path: Path) -> list[tuple[str, str]]:
    """Kind (`markdown`, `code`) and text of every cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def notebook_page(path: Path) -> str:
    """A notebook as Markdown."""
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in notebook_cells(path))


def site_pages(checkout: Path = CHECKOUT) -> dict[str, tuple[Path, str]]:
    """Name of every page → the file it comes from, and its Markdown."""
    pages = {"index.md": checkout / "README.md"}
    pages |= {name: checkout / "docs" / name for name in _GUIDES}
    pages |= {f"metrics/{name}.md": checkout / "metrics" / name / "README.md" for name in METRICS}
    pages |= {page: checkout / file for page, file in _RESULTS.items()}
    contents = {page: (file, file.read_text(encoding="utf-8")) for page, file in pages.items()}
    notebook = checkout / "docs" / "tutorial.ipynb"
    contents["tutorial.md"] = (notebook, notebook_page(notebook))
    contents["api.md"] = (Path(movers.__file__), _api())
    return contents


def _api() -> str:
    names = [name for name in movers.__all__ if name != "__version__"]
    return "# API\n\n" + "\n\n".join(f"::: movers.{name}" for name in names) + "\n"


def write_sources(target: Path, checkout: Path = CHECKOUT) -> None:
    """Write the pages and the pictures that they show."""
    pages = site_pages(checkout)
    homes = {file.resolve(): page for page, (file, _) in pages.items()}
    homes |= {file.parent.resolve(): page for page, (file, _) in pages.items() if page.startswith("metrics/")}
    for page, (file, text) in pages.items():
        text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        depth = "../" * page.count("/")

        def link(match: re.Match[str], file: Path = file, depth: str = depth) -> str:
            mark, words, address = match.groups()
            if "://" in address or address.startswith("#"):
                return match[0]
            place = (file.parent / address.partition("#")[0]).resolve()
            if mark and place.is_file():
                name = f"{place.parent.name}-{place.name}"
                shutil.copy(place, target / name)
                return f"![{words}]({depth}{name})"
            return f"[{words}]({depth}{homes[place]})" if place in homes else words

        (target / page).parent.mkdir(parents=True, exist_ok=True)
        (target / page).write_text(re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, text), encoding="utf-8")


def main(build: Path = CHECKOUT / "build") -> None:
    docs = build / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    docs.mkdir(parents=True)
    write_sources(docs)
    settings = build / "mkdocs.yml"
    settings.write_text(
        _SETTINGS.format(
            docs=docs,
            site=build / "site",
            checkout=CHECKOUT,
            guides=", ".join(_GUIDES),
            metrics=", ".join(f"metrics/{name}.md" for name in METRICS),
            results=", ".join(_RESULTS),
        ),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(settings)]
    if code := subprocess.run(command).returncode:
        sys.exit(code)
    print(f"wrote {build / 'site' / 'index.html'}")


if __name__ == "__main__":
    main()

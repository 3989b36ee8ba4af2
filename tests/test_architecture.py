"""Imports go forward along the walk of a text; nothing heavy is imported before it is used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import movers

PACKAGE = Path(movers.__file__).parent
#: Parts in the order in which they may import each other: only what stands before.
WALK = [
    *("version", "errors", "signature", "threads", "pot", "paths", "io", "inputs", "texts", "weights", "transport"),
    *("encoders", "bag", "scores", "registry", "scorer"),
]
#: Outer layers, and those of them that they may import.
OUTER = {
    **{"baseline": set(), "quality": set(), "module": set(), "engines": set(), "agreement": set(), "pictures": set()},
    **{"all_pairs": set(), "decoding": {"all_pairs"}, "torchmetrics": set()},
    "rewards": {"agreement", "quality"},
    "hooks": {"agreement", "pictures"},
    "serve": {"baseline", "pictures"},
    "cli": {"agreement", "all_pairs", "baseline", "engines", "pictures", "quality", "rewards", "serve"},
    "__main__": {"cli"},
}
#: Imported when they are used, not by the module: classes of metrics by name, and functions of metrics.
LATE = {("registry", "scorer")}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """Parts of movers that a file imports, anywhere in it but under `if TYPE_CHECKING`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    skipped = {id(child) for node in typing for child in ast.walk(node)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "movers":
            names |= {movers._HOMES.get(alias.name, f"movers.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[1] for name in names if name.startswith("movers.")} - {part_of(path)}


def test_imports_go_forward_and_the_core_imports_no_outer_layer() -> None:
    backward = set()
    for path in PACKAGE.rglob("*.py"):
        part = part_of(path)
        if part != "__init__":
            allowed = set(WALK[: WALK.index(part)]) if part in WALK else set(WALK) | OUTER[part]
            backward |= {(part, other) for other in imported_parts(path) - allowed}
    assert backward <= LATE


@pytest.mark.parametrize(
    "code",
    [
        "import movers",
        "from movers.registry import METRICS; list(METRICS)",
        "from movers.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from movers import sms, swms, wms\nfor metric in (wms, sms, swms): metric(['A cat. A dog.'], ['The dog.'])",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code: str, run_python: Callable[..., str]) -> None:
    heavy = "torch transformers datasets evaluate ot pandas spacy gradio matplotlib ray trl wordllama".split()
    code += f"\nimport sys; print(sorted(set({heavy}) & set(sys.modules)))"
    assert run_python(code).splitlines()[-1] == "[]"

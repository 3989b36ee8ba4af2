"""Who may know whom: texts go forward through the package, never back, and the core knows no door."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import movers

PACKAGE = Path(movers.__file__).parent
CORE = [
    "_pot",
    "baseline",
    "encoders",
    "inputs",
    "quality",
    "registry",
    "scores",
    "signature",
    "texts",
    "transport",
    "version",
    "weights",
]
# What each part of the core may import from movers, beside itself.
ALLOWED = {
    "_pot": set(),
    "version": set(),
    "texts": set(),
    "inputs": set(),
    "transport": {"_pot"},
    "signature": {"version"},
    "weights": {"signature"},
    "encoders": {"inputs", "signature", "version"},
    "registry": {"inputs", "scores", "quality"},
    # `baseline` writes files by the registry and reads them for `scores`, which therefore imports it late.
    "baseline": {"inputs", "registry", "signature", "version"},
    "scores": {"baseline", "encoders", "inputs", "signature", "texts", "transport", "weights", "version"},
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Absolute names of all modules a file imports, wherever in the file, resolved if relative."""
    here = ["movers", *path.relative_to(PACKAGE).with_suffix("").parts]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = here[: -node.level] if node.level else []
            base = ".".join([*package, *([node.module] if node.module else [])])
            names.add(base)
            if base == "movers":
                names.update(f"movers.{alias.name}" for alias in node.names)
    return names


def parts_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path) if name.startswith("movers.")} - {part_of(path)}


FILES = sorted(PACKAGE.rglob("*.py"))


def test_the_rules_speak_of_files_that_exist() -> None:
    parts = {part_of(path) for path in FILES}
    assert set(ALLOWED) <= parts and len(FILES) > 15


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_part_of_the_core_imports_only_what_comes_before_it(part: str) -> None:
    for path in FILES:
        if part_of(path) == part:
            assert parts_imported(path) <= ALLOWED[part], path.name


def test_the_core_knows_no_door() -> None:
    for path in FILES:
        if part_of(path) in CORE:
            assert parts_imported(path) <= set(CORE), f"{path.name} imports a door"


def test_scores_know_baselines_only_where_one_is_asked_for() -> None:
    for path in FILES:
        if part_of(path) == "scores":
            top = [
                node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)
            ]
            assert "movers.baseline" not in {node.module for node in top}, path.name


@pytest.mark.parametrize(
    ("part", "strangers"),
    [
        ("texts", {"numpy", "scipy", "torch", "transformers", "tokenizers", "safetensors"}),
        ("transport", {"regex", "sentencex", "torch", "transformers", "tokenizers", "safetensors"}),
        ("inputs", {"numpy", "torch", "datasets", "evaluate"}),
        ("encoders", {"ot", "scipy", "sentencex"}),
        ("scores", {"ot", "evaluate", "datasets", "gradio"}),
    ],
)
def test_a_part_leaves_the_libraries_of_others_alone(part: str, strangers: set[str]) -> None:
    for path in FILES:
        if part_of(path) == part:
            assert {name.split(".")[0] for name in imported(path)}.isdisjoint(strangers), path.name


HEAVY = (
    "torch transformers tokenizers datasets evaluate ot scipy numpy pandas spacy gradio matplotlib ray trl sentencex"
)


def test_importing_movers_imports_nothing_heavy(run_python: Callable[..., str]) -> None:
    assert run_python(f"import sys, movers; print(sorted(set('{HEAVY}'.split()) & set(sys.modules)))") == "[]"


def test_listing_the_metrics_imports_none_of_them(run_python: Callable[..., str]) -> None:
    code = f"""
import sys
from movers.registry import METRICS
assert "wms" in METRICS
print(sorted(set("{HEAVY}".split()) & set(sys.modules)), [name for name in sys.modules if "movers.scores" in name])
"""
    assert run_python(code) == "[] []"


def test_modules_of_the_core_import_no_torch_at_their_top(run_python: Callable[..., str]) -> None:
    modules = [
        ".".join(["movers", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in FILES
        if part_of(path) in ALLOWED
    ]
    code = f"""
import importlib, sys
for name in {modules}:
    importlib.import_module(name)
print([name for name in ("torch", "transformers", "datasets", "evaluate", "ot", "spacy") if name in sys.modules])
"""
    assert run_python(code) == "[]"


def test_every_exported_name_resolves() -> None:
    for name in movers.__all__:
        assert getattr(movers, name) is not None
        assert name in dir(movers)
    assert movers.__version__ == movers.VERSION
    with pytest.raises(AttributeError, match="module 'movers' has no attribute 'nothing'"):
        movers.nothing  # noqa: B018


def test_every_module_states_what_it_exports_and_has_it() -> None:
    import importlib

    for path in FILES:
        if part_of(path) not in ALLOWED or path.name == "__init__.py":
            continue
        module = importlib.import_module(".".join(["movers", *path.relative_to(PACKAGE).with_suffix("").parts]))
        assert module.__doc__, path.name
        for name in getattr(module, "__all__", []):
            assert hasattr(module, name), f"{path.name}: {name}"


def test_every_file_postpones_annotations() -> None:
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        if "import " in source:
            assert "from __future__ import annotations" in source, path.name

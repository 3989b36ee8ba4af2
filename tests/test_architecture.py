"""Who may know whom: texts go forward through the package, never back, and the core knows no door."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

import movers

PACKAGE = Path(movers.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# What each part may import from movers, beside itself: only what stands to the left of it on a text's way.
_BASIS = {"errors", "version", "signature"}
_CORE = {*_BASIS, "encoders", "inputs", "io", "processes", "scores", "texts", "threads", "transport", "weights"}
_METRICS = {*_CORE, "registry"}
ALLOWED: dict[str, set[str]] = {
    "threads": set(),
    "_pot": {"threads"},
    "errors": set(),
    "processes": {"errors"},
    "version": set(),
    "signature": {"version"},
    "inputs": {"errors"},
    "io": {"errors"},
    "paths": {"errors"},
    "texts": {"errors", "signature"},
    "transport": {"_pot", "errors"},
    "weights": {"errors", "io", "signature"},
    "encoders": {*_BASIS, "io", "threads"},
    "scores": _CORE,
    "training": _CORE,
    "quality": {*_CORE, "training"},
    "finetuning": {*_CORE, "training"},
    "registry": {*_CORE, "quality"},
    "baseline": _METRICS,
    "agreement": _METRICS,
    "papers": set(),
    "pictures": {*_METRICS, "papers"},
    "rewards": {*_METRICS, "agreement", "quality", "training"},  # lexical rewards, splits, the loop
    "hooks": {*_METRICS, "rewards"},
    "module": _METRICS,
    "engines": _METRICS,
    "serve": {*_METRICS, "baseline", "papers", "paths", "pictures"},
    "cli": {
        *_METRICS,
        "agreement",
        "baseline",
        "engines",
        "finetuning",
        "paths",
        "pictures",
        "quality",
        "rewards",
        "serve",
        "training",
    },
    "__main__": {"cli"},
}
# `import movers` offers these names without importing anything before they are used.
LAZY = "__init__"


def module_name(path: Path) -> str:
    return ".".join(["movers", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


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
            names.update(home_of(alias.name) for alias in node.names) if base == "movers" else names.add(base)
    return names


def home_of(name: str) -> str:
    """The module that `from movers import name` leads to."""
    return {"VERSION": "movers.version", "__version__": "movers.version", **movers._HOMES}.get(name, f"movers.{name}")


def parts_imported(path: Path) -> set[str]:
    names = imported(path)
    parts = {name.split(".")[1] for name in names if name.startswith("movers.")} - {part_of(path)}
    return parts | ({LAZY} if "movers" in names else set())


def test_every_part_is_in_the_table() -> None:
    assert {part_of(path) for path in FILES} - {LAZY} <= set(ALLOWED)


def test_the_table_leads_forward_only() -> None:
    places = {part: place for place, part in enumerate(ALLOWED)}
    for part, others in ALLOWED.items():
        assert all(places[other] < places[part] for other in others - {part}), part


@pytest.mark.parametrize("part", sorted({part_of(path) for path in FILES} - {LAZY}))
def test_a_part_imports_only_what_comes_before_it(part: str) -> None:
    for path in FILES:
        if part_of(path) == part:
            assert parts_imported(path) <= ALLOWED[part] | {part}, path.relative_to(PACKAGE)


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


CORE = {*_CORE, "_pot", "baseline", "registry"}
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
    modules = [module_name(path) for path in FILES if part_of(path) in CORE]
    assert len(modules) > 30
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


def test_every_module_says_what_it_is_and_states_what_it_exports() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        if part_of(path) in CORE:
            module = importlib.import_module(module_name(path))
            public = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            if any(not name.startswith("_") for name in public):
                assert set(module.__all__) <= set(vars(module)), path


def test_every_file_postpones_annotations() -> None:
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        if "import " in source:
            assert "from __future__ import annotations" in source, path

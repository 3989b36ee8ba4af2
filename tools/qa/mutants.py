"""Mutation testing: how many small errors in the formulas do the tests detect?

    python tools/qa/mutants.py [--limit 30] [--seed 13] [--only TEXT]

Functions of `movers/scores/`, `movers/weights.py` and `movers/transport.py` are broken by one small edit at a time:
plus for minus, maximum for minimum, one axis for the other, a condition negated, a constant changed, two arguments
swapped. For each edit the tests of the file are run on a copy of the package; an edit is caught if one of them fails.
Error messages, warnings, annotations and default arguments are left alone. Some edits change nothing that a user could
see (a cache size, a symmetric argument): look at the survivors.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 900  # seconds; an edit that makes a loop endless is caught too
Node = TypeVar("Node", bound=ast.AST)
PAIRS = [
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or), (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
]  # fmt: skip
SWAPS: dict[type[ast.AST], type[ast.AST]] = {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult}
SWAPS |= {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
NAMES = {"argmax": "argmin", "amax": "amin", "ones": "zeros", "sum": "mean", "maximum": "minimum", "any": "all"}
NAMES |= {other: name for name, other in NAMES.items()} | {"max": "min", "min": "max"}
NOT_SWAPPED = {"isinstance", "getattr", "hasattr", "setattr", "replace", "cast", "field", "option", "zip"}
SILENT = {"isinstance", "warn", "warn_once", "signature"}


class Mutant(NamedTuple):
    """One edit: the n-th node of the file's tree, and which of the edits that it allows."""

    file: str
    function: str
    line: int
    edit: str
    node: int
    variant: int


def tests_of(file: str) -> list[str]:
    """Its doctests, the test module of the same name, and the tests of all scores."""
    named = [ROOT / "tests" / Path(file).relative_to("movers").with_name(f"test_{Path(file).name}")]
    others = [ROOT / "tests" / "scores", ROOT / "tests" / "test_properties.py"]
    return [file, *(str(path.relative_to(ROOT)) for path in [*named, *others] if path.exists())]


def edits(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """What may be done to a node: a description, and the node in its place."""
    changed: list[ast.AST] = []
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        changed.append(_with(node, op=SWAPS[type(node.op)]()))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        changed.append(_with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]]))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        changed.append(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        changed.append(ast.Constant(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        changed.append(ast.Constant(node.value + (0.5 if isinstance(node.value, float) else 1)))
    elif isinstance(node, ast.keyword) and node.arg in ("axis", "dim") and isinstance(node.value, ast.Constant):
        changed.append(_with(node, value=ast.Constant(0 if node.value.value else 1)))
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        negated = ast.UnaryOp(ast.Not(), node.test)
        return [(f"if {ast.unparse(node.test)} → if {ast.unparse(negated)}", _with(node, test=negated))]
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and called(node) in NAMES:
            changed.append(_with(node, func=_with(node.func, attr=NAMES[called(node)])))
        if isinstance(node.func, ast.Name) and called(node) in ("max", "min", "any", "all"):
            changed.append(_with(node, func=ast.Name(NAMES[called(node)], ast.Load())))
        if len(node.args) > 1 and _alike(node.args[0], node.args[1]) and called(node) not in NOT_SWAPPED:
            changed.append(_with(node, args=[node.args[1], node.args[0], *node.args[2:]]))
    return [(f"{ast.unparse(node)} → {ast.unparse(other)}".strip(), other) for other in changed]


def _with(node: Node, **fields: object) -> Node:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _alike(one: ast.expr, other: ast.expr) -> bool:
    return type(one) is type(other) and not isinstance(one, ast.Starred) and ast.dump(one) != ast.dump(other)


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def functions(tree: ast.AST, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods with their names; a function inside another belongs to it."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            yield ".".join([*names, child.name]), child
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, (*names, child.name))


def computing(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that compute something."""
    if isinstance(node, ast.FunctionDef):
        for statement in node.body:
            yield from computing(statement)
    elif isinstance(node, ast.AnnAssign):
        yield from computing(node.value) if node.value is not None else ()
    elif isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
        return
    elif isinstance(node, ast.Call) and called(node) in SILENT:
        return
    elif isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel", "total", "desc", "unit"):
        return
    else:
        yield node
        for child in ast.iter_child_nodes(node):
            yield from computing(child)


def mutants_of(file: str) -> Iterator[Mutant]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for name, function in functions(tree):
        line = function.lineno
        for node in computing(function):
            line = getattr(node, "lineno", line)
            for variant, (edit, _) in enumerate(edits(node)):
                yield Mutant(file, name, line, " ".join(edit.split())[:160], numbers[id(node)], variant)


def mutated(mutant: Mutant, source: str) -> str:
    """The file's source with the edit made."""
    tree = ast.parse(source)
    target = [*ast.walk(tree)][mutant.node]
    _, changed = edits(target)[mutant.variant]

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return changed if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Put().visit(tree)))


def tests_pass(folder: Path, tests: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow and not data", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, timeout=TIMEOUT, stdout=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="number of edits")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", default="", metavar="TEXT", help="edits whose file, function or edit contains this")
    arguments = parser.parse_args()
    scores = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "movers" / "scores").glob("[!_]*.py"))
    every = [mutant for file in ("movers/transport.py", "movers/weights.py", *scores) for mutant in mutants_of(file)]
    chosen = [mutant for mutant in every if arguments.only in f"{mutant.file} {mutant.function} {mutant.edit}"]
    chosen = random.Random(arguments.seed).sample(chosen, min(arguments.limit, len(chosen)))
    caught = 0
    print("| file | function | line | edit | result |\n|---|---|--:|---|---|")
    with tempfile.TemporaryDirectory(prefix="movers-mutants-") as name:
        folder = Path(name)
        for part in ("movers", "metrics", "tests", "tools"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for mutant in chosen:
            source = (folder / mutant.file).read_text(encoding="utf-8")
            (folder / mutant.file).write_text(mutated(mutant, source), encoding="utf-8")
            survived = tests_pass(folder, tests_of(mutant.file))
            (folder / mutant.file).write_text(source, encoding="utf-8")
            caught += not survived
            edit = mutant.edit.replace("|", "\\|")
            result = "**survived**" if survived else "caught"
            print(f"| {mutant.file} | {mutant.function} | {mutant.line} | `{edit}` | {result} |", flush=True)
    print(f"\n{caught} of {len(chosen)} edits caught, of {len(every):,} possible ones; seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

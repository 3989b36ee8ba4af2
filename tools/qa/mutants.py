"""Mutation testing: how many small errors in the formulas do the tests detect?

    python tools/qa/mutants.py [--limit 100] [--seed 13] [--only TEXT] [--out tools/qa/mutants.csv]

Functions of `movers/scores/`, `movers/weights.py` and `movers/transport.py` are broken by one small edit at a time:
plus for minus, maximum for minimum, one axis for the other, a condition negated, a constant changed, two arguments
swapped. An edit is caught if a test fails. Error messages, warnings, annotations and default arguments are left alone.
Some edits change nothing that a user could see (a cache size, a symmetric argument): look at the survivors.

All tests run once to learn which of them call a function; an edit then meets these, the quickest first, and the others
afterwards. Every run is a fork of a process that has imported the libraries already, on a copy of the
package. Each result is appended to the file, and edits that stand there with the same source are not tried again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import hashlib
import importlib
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCOPE = ["movers/transport.py", "movers/weights.py", "movers/scores"]
TESTS = [
    *SCOPE,
    *(f"tests/{name}" for name in ("test_transport.py", "test_weights.py", "scores", "test_properties.py")),
    *(f"tests/{name}" for name in ("test_cards.py", "test_all_pairs.py", "test_meaning.py")),
]
LIBRARIES = ("scipy.optimize", "scipy.spatial", "transformers", "torch", "hypothesis", "safetensors.torch", "evaluate")
PROCESSOR_SECONDS = 300  # an edit that makes a loop endless is caught too
SECONDS = 7200  # an edit that makes a thread wait is not counted: the machine may have had other work
FORK = multiprocessing.get_context("fork")
Tests = dict[str, tuple[float, set[str]]]  # test → its processor time and the functions that it calls
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


class Watch:
    """A plugin of pytest: the first test that fails, each test's processor time, and the functions that it calls.

    What a fixture calls counts for every test of the module, whose tests may share it.
    """

    def __init__(self, trace: bool) -> None:
        self.failed, self.trace = "", trace
        self.seconds: dict[str, float] = {}
        self.called: dict[str, set[Any]] = {}
        self.current: set[Any] = set()

    def profile(self, frame: Any, event: str, _: object) -> None:
        if event == "call":
            self.current.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.current = self.called.setdefault(item.nodeid.partition("::")[0], set())
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.current, start = self.called.setdefault(item.nodeid, set()), time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def functions_of(self, test: str) -> set[str]:
        """What a test calls, each as ``file:function``."""
        codes = self.called[test] | self.called[test.partition("::")[0]]
        names = ((os.path.relpath(code.co_filename), code.co_qualname.partition(".<locals>")[0]) for code in codes)
        return {f"{file}:{name}" for file, name in names if file.startswith("movers")}

    def run(self, tests: list[str]) -> int:
        with open(os.devnull, "w") as nowhere:
            for stream in (1, 2):
                os.dup2(nowhere.fileno(), stream)
        if self.trace:
            threading.setprofile(self.profile)
            sys.setprofile(self.profile)
        return int(pytest.main(["-x", "-q", "-p", "no:xdist", "-m", "not slow and not data", *tests], plugins=[self]))


def learn() -> Tests | str:
    """All tests, or the one that fails without any edit."""
    watch = Watch(trace=True)
    if code := watch.run(TESTS):
        return watch.failed or f"pytest's exit code {code}"
    return {test: (watch.seconds[test], watch.functions_of(test)) for test in watch.seconds}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def in_order(tests: Tests, function: str) -> list[str]:
    """Tests that call the function first, then the quickest first."""
    return sorted(tests, key=lambda test: (function not in tests[test][1], tests[test][0]))


def first_failure(tests: list[str]) -> str:
    """The first test that fails, or ``import`` if nothing can be imported; empty if all pass."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    watch = Watch(trace=False)
    return watch.run(tests) and (watch.failed or "import") or ""


def in_a_fork(function: Callable[..., Any], *arguments: object) -> Any:
    """What the function returns in a separate process; ``crash`` if that dies, ``wait`` if it does not end."""
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: sender.send(function(*arguments)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(SECONDS) else "wait"
    except EOFError:
        return "crash"
    finally:
        process.kill()
        process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="number of edits")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", default="", metavar="TEXT", help="edits whose file, function or edit contains this")
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "qa" / "mutants.csv")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    files = [path for name in SCOPE for path in sorted((ROOT / name).glob("[!_]*.py")) or [ROOT / name]]
    every = [mutant for path in files for mutant in mutants_of(str(path.relative_to(ROOT)))]
    chosen = [mutant for mutant in every if arguments.only in f"{mutant.file} {mutant.function} {mutant.edit}"]
    equal: Counter[tuple[str, ...]] = Counter()
    order = {}  # of digests, so that a sample hardly changes when a line of the source does
    for mutant in chosen:
        name = mutant.file, mutant.function, mutant.edit
        equal[name] += 1
        order[mutant] = digest(f"{arguments.seed} {name} {equal[name]}")
    chosen.sort(key=order.__getitem__)
    results = {}
    if out.exists():
        with out.open(encoding="utf-8", newline="") as file:
            results = {tuple(row[:6]): row for row in csv.reader(file)}
    else:
        out.write_text("file,source,function,line,node,edit,result,caught by,seconds\n", encoding="utf-8")
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    for library in LIBRARIES:
        importlib.import_module(library)
    caught = 0
    with tempfile.TemporaryDirectory(prefix="movers-mutants-") as temporary, out.open("a", encoding="utf-8") as file:
        folder = Path(temporary)
        for part in ("movers", "metrics", "tests", "tools", "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        os.chdir(folder)
        sys.path.insert(0, temporary)
        os.environ |= {"PYTHONPATH": temporary, "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        tests: Tests = {}
        for number, mutant in enumerate(chosen[: arguments.limit], start=1):
            source = Path(mutant.file).read_text(encoding="utf-8")
            place = (mutant.file, digest(source), mutant.function, str(mutant.line))
            key = (*place, f"{mutant.node}.{mutant.variant}", mutant.edit)
            if key not in results:
                tests = tests or in_a_fork(learn)
                if not isinstance(tests, dict):
                    raise SystemExit(f"without any edit: {tests}")
                Path(mutant.file).write_text(mutated(mutant, source), encoding="utf-8")
                start = time.monotonic()
                failed = in_a_fork(first_failure, in_order(tests, f"{mutant.file}:{mutant.function}"))
                Path(mutant.file).write_text(source, encoding="utf-8")
                result = "survived" if not failed else "undecided" if failed == "wait" else "caught"
                row = [*key, result, failed, f"{time.monotonic() - start:.0f}"]
                csv.writer(file, lineterminator="\n").writerow(row)
                file.flush()
                results[key] = row
                print(f"{number}: {' '.join(row)}", flush=True)
            caught += results[key][6] == "caught"
    print(f"{caught} of {number} edits caught, of {len(every):,} possible ones; seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

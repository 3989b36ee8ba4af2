"""How many small errors in the formulas the tests notice.

Every function of `movers/scores/`, `movers/weights.py` and `movers/transport.py` is broken by small edits, one at a
time: plus for minus, maximum for minimum, one axis for the other, a condition negated, a constant changed, two alike
arguments swapped. For each edit the tests that cover the file are run in a temporary copy of the package; an edit is
caught if one of them fails. Docstrings, annotations, error messages and warnings are left alone.

    python benchmarks/mutants.py --limit 100 --output benchmarks/results/mutants.md
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 300  # seconds of processor time; an edit that makes a loop endless is caught too
PATIENCE = 20  # times as long by the clock: a busy machine catches nothing

# For each file the tests that could notice, the fastest first; its own doctests come before them.
TESTS: dict[str, list[str]] = {
    "movers/transport.py": ["tests/test_transport.py"],
    "movers/weights.py": ["tests/test_weights.py", "tests/scores/test_clark.py"],
    "movers/scores/bags.py": ["tests/scores/test_bags.py"],
    "movers/scores/bertscore.py": ["tests/scores/test_options.py", "tests/scores/test_bertscore.py"],
    "movers/scores/clark.py": [
        "tests/scores/test_clark.py",
        "tests/scores/test_engine.py",
        "tests/scores/test_readable.py",
    ],
    "movers/scores/clark_costs.py": ["tests/scores/test_clark.py", "tests/scores/test_readable.py"],
    "movers/scores/clark_options.py": ["tests/scores/test_options.py", "tests/scores/test_readable.py"],
    "movers/scores/metric.py": ["tests/scores/test_engine.py", "tests/scores/test_readable.py"],
    "movers/scores/engine.py": [
        "tests/scores/test_engine.py",
        "tests/scores/test_readable.py",
        "tests/test_processes.py",
    ],
    "movers/scores/languages.py": ["tests/scores/test_languages.py"],
    "movers/scores/lexicon.py": ["tests/scores/test_lexicon.py", "tests/scores/test_clark.py"],
    "movers/scores/moverscore.py": ["tests/scores/test_moverscore.py", "tests/scores/test_papers.py"],
    "movers/scores/options.py": ["tests/scores/test_options.py", "tests/scores/test_readable.py"],
    "movers/scores/rescaling.py": ["tests/scores/test_readable.py", "tests/scores/test_bertscore.py"],
    "movers/scores/result.py": ["tests/scores/test_engine.py", "tests/scores/test_readable.py"],
    "movers/scores/tensors.py": ["tests/scores/test_tensors.py"],
    "movers/scores/tokens.py": ["tests/scores/test_tokens.py", "tests/scores/test_moverscore.py"],
    "movers/scores/words.py": ["tests/scores/test_clark.py", "tests/scores/test_readable.py"],
}

# Edits that change nothing a user could see: (file, function, edit) → why.
_THREAD = "decides only on which thread something is computed"
_ROOM = "decides only how much is in memory at a time"
_EXACT = "another bound takes the exact way, by the difference itself, more or less often"
_SINGLE = "single precision as single precision is itself"
_KEPT = "decides only how much is remembered"
_MEAN = "the harmonic mean is symmetric"
_FLOW = "the one-to-one alignment does not depend on masses; zero masses are equal ones a few lines later"
_CONSTANT = "a constant added to all costs moves no mass elsewhere"
_UNREAD = "rows are written before they are read"
_WORD_ROWS, _WIDER = "(2 * _WORDS_KEPT, self.encoder.dimension), np.float32", "(size, *old.shape[1:]), old.dtype"
_CELLS_OF_PAIR = "len(bags[0].masses) * len(bags[1].masses)"
_LARGEST = "min(_SMALL, options.max_cells)"
_SMALL_PAIR = f"{_CELLS_OF_PAIR} > {_LARGEST} → {_CELLS_OF_PAIR} >= {_LARGEST}"
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (f"movers/{file}", function, edit): reason
    for file, function, edit, reason in (
        ("scores/bertscore.py", "BertScore.compare", "f1_of(precision, recall) → f1_of(recall, precision)", _MEAN),
        ("scores/moverscore.py", "MoverScore._hard", "f1_of(precision, recall) → f1_of(recall, precision)", _MEAN),
        (
            "scores/clark.py",
            "MoverSimilarity.overlaps",
            "not isinstance(self.reader, StaticReader) → isinstance(self.reader, StaticReader)",
            _THREAD,
        ),
        ("scores/metric.py", "PairMetric.overlaps", "True → False", _THREAD),
        ("scores/engine.py", "score_stream", "1 → 2", "moves the progress bar only"),
        ("scores/engine.py", "_Block._compare_prepared", "0 → 1", _ROOM),
        ("scores/engine.py", "_Block._compare_prepared", "size >= _GROUP → size > _GROUP", _ROOM),
        ("scores/engine.py", "_Block.read_and_compare", "len(ready) >= _CHUNK → len(ready) > _CHUNK", _ROOM),
        ("scores/engine.py", "_Block._run", "1 → 2", _ROOM),
        ("scores/engine.py", "_Block._run", "2 → 3", _ROOM),
        ("scores/bertscore.py", "BertScore.compare", "m * n → m / n", _ROOM),
        ("scores/moverscore.py", "MoverScore.compare", "m * n → m / n", _ROOM),
        ("scores/clark_costs.py", "small_costs", _SMALL_PAIR, "computed on another thread where they are large"),
        ("scores/lexicon.py", "Lexicon._append", "end > len(self._vectors) → end >= len(self._vectors)", _ROOM),
        ("scores/lexicon.py", "Lexicon._forget", "2 → 3", _ROOM),
        ("scores/lexicon.py", "Lexicon._forget", f"np.zeros({_WORD_ROWS}) → np.ones({_WORD_ROWS})", _UNREAD),
        ("scores/lexicon.py", "Lexicon._forget", "np.zeros(2 * _WORDS_KEPT) → np.ones(2 * _WORDS_KEPT)", _UNREAD),
        ("scores/lexicon.py", "_wider", f"np.zeros({_WIDER}) → np.ones({_WIDER})", _UNREAD),
        ("scores/result.py", "Totals.corpus_score", "0.0 → 0.5", "the mean distance of no rows"),
        ("scores/bertscore.py", "hungarian_scores", "1.0 → 1.5", _CONSTANT),
        ("scores/tokens.py", "TokenIdf._documents", "1024 → 1025", _ROOM),
        ("scores/tensors.py", "_at_least_single", "4 → 5", _SINGLE),
        (
            "scores/tensors.py",
            "_at_least_single",
            "values.element_size() < 4 → values.element_size() <= 4",
            _SINGLE,
        ),
        ("scores/tensors.py", "_shares", "np.ones(len(i)) → np.zeros(len(i))", _FLOW),
        ("scores/tensors.py", "_shares", "np.ones(len(j)) → np.zeros(len(j))", _FLOW),
        ("scores/bertscore.py", "emd_scores", "1.0 → 1.5", _CONSTANT),
        ("scores/rescaling.py", "_unrelated_examples", "False → True", "our texts have no entities, and no reader"),
        ("scores/rescaling.py", "_unrelated_examples", "len(_known) > _KEPT → len(_known) >= _KEPT", _KEPT),
        ("transport.py", "emd_of_normalised", "costs.sum() → costs.mean()", "both are finite where all costs are"),
        ("transport.py", "pairwise_distances", "0.0 → 0.5", _EXACT),
        ("transport.py", "pairwise_distances", "x_square.max(initial=0.0) → x_square.min(initial=0.0)", _EXACT),
        ("transport.py", "pairwise_distances", "y_square.max(initial=0.0) → y_square.min(initial=0.0)", _EXACT),
        ("weights.py", "IdfTable.save", "False → True", "escaped letters are read back as the same letters"),
    )
}

Node = TypeVar("Node", bound=ast.AST)
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BUILTINS = {"max": "min", "min": "max", "any": "all", "all": "any", "bisect_right": "bisect_left"}
METHODS = {"argmax": "argmin", "amax": "amin", "ones": "zeros", "sum": "mean", "maximum": "minimum", "any": "all"}
METHODS |= {other: name for name, other in METHODS.items()} | {"max": "min", "min": "max"}
NOT_SWAPPED = {"isinstance", "getattr", "hasattr", "setattr", "replace", "cast", "field", "option"}
SILENT = {"isinstance", "warn", "warn_no_mass", "signature"}


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
    elif isinstance(node, ast.comprehension) and node.ifs:
        changed.append(_with(node, ifs=[ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]]))
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and called(node) in METHODS:
            changed.append(_with(node, func=_with(node.func, attr=METHODS[called(node)])))
        if isinstance(node.func, ast.Name) and called(node) in BUILTINS:
            changed.append(_with(node, func=ast.Name(BUILTINS[called(node)], ast.Load())))
        if len(node.args) > 1 and _alike(node.args[0], node.args[1]) and called(node) not in NOT_SWAPPED:
            changed.append(_with(node, args=[node.args[1], node.args[0], *node.args[2:]]))
    return [(f"{ast.unparse(node)} → {ast.unparse(other)}".strip(), other) for other in changed]


def _with(node: Node, **fields: object) -> Node:
    """A copy of a node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _alike(one: ast.expr, other: ast.expr) -> bool:
    return type(one) is type(other) and not isinstance(one, ast.Starred) and ast.dump(one) != ast.dump(other)


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
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
        return
    if isinstance(node, ast.Call) and called(node) in SILENT:
        return
    if isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel", "total", "desc", "unit"):
        return
    if isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield from computing(node.value)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from computing(child)


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def all_mutants(file: str) -> list[Mutant]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found = []
    for name, function in functions(tree):
        line = function.lineno
        for node in computing(function):
            line = getattr(node, "lineno", line)
            for variant, (edit, _) in enumerate(edits(node)):
                found.append(Mutant(file, name, line, " ".join(edit.split())[:160], numbers[id(node)], variant))
    return found


def chosen_mutants(per_function: int, limit: int | None, seed: int) -> list[Mutant]:
    """At most `per_function` edits of each function, and at most `limit` of all, by a fixed seed."""
    draw = random.Random(seed)
    found = []
    for file in TESTS:
        groups: dict[str, list[Mutant]] = {}
        for mutant in all_mutants(file):
            groups.setdefault(mutant.function, []).append(mutant)
        for group in groups.values():
            found += draw.sample(group, min(per_function, len(group)))
    if limit is not None and limit < len(found):
        found = draw.sample(found, limit)
    draw.shuffle(found)  # so that a run that is stopped has tried a fair sample
    return [mutant for mutant in found if (mutant.file, mutant.function, mutant.edit) not in EQUIVALENT]


def mutated(mutant: Mutant, source: str) -> str:
    """The file's source with the edit made."""
    tree = ast.parse(source)
    target = [*ast.walk(tree)][mutant.node]
    _, changed = edits(target)[mutant.variant]

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return changed if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Put().visit(tree)))


# ---------------------------------------------------------------------------------------------------------------------
# Running the tests


def run_tests(copy_root: Path, tests: list[str], log: Path, timeout: int = TIMEOUT) -> int:
    """Exit code of pytest in a forked process: libraries and encoders are loaded already, what is edited is not."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout))
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(copy_root)
        import pytest

        code = 1
        with contextlib.suppress(BaseException):
            code = int(pytest.main(["-x", "-q", "-m", "not slow and not data", "-p", "no:cacheprovider", *tests]))
        os._exit(code)
    end = time.monotonic() + PATIENCE * timeout
    done = 0
    try:
        while not done and time.monotonic() < end:
            time.sleep(0.05)
            done, status = os.waitpid(child, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else -1
    finally:
        if not done:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def prepare(copy_root: Path) -> None:
    for name in ("movers", "metrics", "tests"):
        shutil.copytree(ROOT / name, copy_root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy_root)
    sys.dont_write_bytecode = True  # two edits in one second would share a compiled file
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy_root), "OMP_NUM_THREADS": "1"}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != ROOT]
    sys.path.insert(0, str(copy_root))
    import scipy.optimize  # noqa: F401
    import torch

    from movers.encoders import load_encoder  # encoders import nothing that is edited

    torch.set_num_threads(1)
    for name in ("wordllama", "all-MiniLM-L6-v2"):
        load_encoder(name)
    edited = {file.removesuffix(".py").replace("/", ".") for file in TESTS}
    assert edited.isdisjoint(sys.modules), edited & {*sys.modules}


def existing(file: str) -> list[str]:
    return [file, *(test for test in TESTS[file] if (ROOT / test).exists())]


def run(mutants: list[Mutant], check: bool) -> dict[Mutant, bool]:
    """For each mutant whether a test failed; if the run is stopped, for those that were tried.

    check : run the tests without any edit first
    """
    caught: dict[Mutant, bool] = {}
    with tempfile.TemporaryDirectory(prefix="movers-mutants-") as folder:
        copy_root = Path(folder)
        prepare(copy_root)
        log = copy_root / "log.txt"
        files = dict.fromkeys(test for mutant in mutants for test in existing(mutant.file))
        if check and run_tests(copy_root, [*files], log, len(files) * TIMEOUT):
            raise SystemExit(f"the tests fail without any edit:\n{log.read_text()[-3000:]}")
        with contextlib.suppress(KeyboardInterrupt):
            for number, mutant in enumerate(mutants, 1):
                begin = time.monotonic()
                source = (copy_root / mutant.file).read_text(encoding="utf-8")
                (copy_root / mutant.file).write_text(mutated(mutant, source), encoding="utf-8")
                caught[mutant] = run_tests(copy_root, existing(mutant.file), log) != 0
                (copy_root / mutant.file).write_text(source, encoding="utf-8")
                seconds = time.monotonic() - begin
                print(f"{number}/{len(mutants)} {seconds:4.0f} s {row(mutant, caught[mutant])}", flush=True)
    return caught


def row(mutant: Mutant, caught: bool) -> str:
    edit = mutant.edit.replace("|", "\\|")
    name = "caught" if caught else "**survived**"
    return f"| {mutant.file} | {mutant.function} | {mutant.line} | `{edit}` | {name} |"


def report(caught: dict[Mutant, bool], total: int, seed: int) -> str:
    share = sum(caught.values()) / len(caught)
    lines = [
        "# Small errors in the formulas, and how many of them the tests notice",
        "",
        "Written by `python benchmarks/mutants.py`. Each row is one edit of one function; the tests that cover the",
        "file were run on a copy of the package with this edit alone.",
        "",
        f"**{share:.1%} caught**: {sum(caught.values())} of {len(caught)} edits tried, drawn with seed {seed} from",
        f"{total} possible ones. Edits known to change nothing are left out; the script lists them with reasons.",
        "",
        "| file | tried | caught |",
        "|---|---|---|",
    ]
    for file in dict.fromkeys(mutant.file for mutant in caught):
        own = [found for mutant, found in caught.items() if mutant.file == file]
        lines.append(f"| {file} | {len(own)} | {sum(own)} |")
    lines += ["", "| file | function | line | edit | result |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(row(mutant, found) for mutant, found in caught.items()), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-function", type=int, default=3, metavar="N", help="edits of each function at most")
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="edits in all at most")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", default="", metavar="TEXT", help="only edits whose file, function or edit has this")
    parser.add_argument("--no-check", action="store_true", help="the tests are known to pass without any edit")
    parser.add_argument("--list", action="store_true", help="list the edits, run nothing")
    parser.add_argument("--output", type=Path, default=None, metavar="FILE", help="write the table to this file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, with a report on what was tried
    missing = {f"movers/scores/{path.name}" for path in (ROOT / "movers" / "scores").glob("[!_]*.py")} - {*TESTS}
    if missing:
        raise SystemExit(f"which tests cover {', '.join(sorted(missing))}?")
    mutants = chosen_mutants(options.per_function, options.limit, options.seed)
    mutants = [mutant for mutant in mutants if options.only in f"{mutant.file} {mutant.function} {mutant.edit}"]
    if options.list:
        print("\n".join(f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.edit}" for mutant in sorted(mutants)))
        return
    total = sum(len(all_mutants(file)) for file in TESTS)
    caught = dict(sorted(run(mutants, check=not options.no_check).items()))
    text = report(caught, total, options.seed)
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

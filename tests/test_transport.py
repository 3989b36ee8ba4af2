from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import eye, kron, vstack
from scipy.spatial.distance import cdist

from movers._pot import kernel
from movers.errors import InputError
from movers.threads import threaded_map
from movers.transport import assignment, emd, greedy, pairwise_distances, row_distances, unit_rows

Floats = NDArray[np.float64]


def linear_program(a: Floats, b: Floats, costs: Floats) -> float:
    """The optimum by SciPy's general solver, which knows nothing of transport."""
    m, n = costs.shape
    marginals = vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))]).tocsr()
    masses = np.concatenate([a / a.sum(), b / b.sum()])
    # The last condition follows from the others; rounding could make it contradict them.
    result = linprog(costs.ravel(), A_eq=marginals[:-1], b_eq=masses[:-1], method="highs")
    assert result.status == 0, result.message
    return float(result.fun)


def assert_solves(a: Floats, b: Floats, costs: Floats) -> None:
    plan = emd(a, b, costs)
    assert plan.flow.shape == costs.shape and (plan.flow >= 0).all()
    np.testing.assert_allclose(plan.flow.sum(axis=1), a / a.sum(), atol=1e-9, rtol=0)
    np.testing.assert_allclose(plan.flow.sum(axis=0), b / b.sum(), atol=1e-9, rtol=0)
    assert plan.cost == pytest.approx(float((plan.flow * costs).sum()), abs=1e-9)
    assert plan.cost == pytest.approx(linear_program(a, b, costs), abs=1e-8, rel=1e-8)


def random_problem(generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    m, n = generator.integers(1, 13, size=2)
    x, y = generator.normal(size=(m, 3)), generator.normal(size=(n, 3))
    shared = min(m, n) // 2
    if generator.random() < 0.5:
        y[:shared] = x[:shared]
    return generator.random(m) + 1e-3, generator.random(n) + 1e-3, cdist(x, y)


def test_emd_equals_the_linear_program_on_random_problems() -> None:
    generator = np.random.default_rng(0)
    for _ in range(100):
        assert_solves(*random_problem(generator))


def test_emd_equals_the_linear_program_where_many_plans_are_optimal() -> None:
    generator = np.random.default_rng(100)
    for _ in range(40):
        m, n = generator.integers(2, 10, size=2)
        ties = generator.integers(0, 3, size=(m, n)).astype(float)
        assert_solves(generator.integers(1, 4, size=m).astype(float), generator.integers(1, 4, size=n) * 1.0, ties)


def test_units_of_zero_mass_move_nothing() -> None:
    generator = np.random.default_rng(200)
    for _ in range(40):
        m, n = generator.integers(3, 10, size=2)
        a, b = generator.random(m), generator.random(n)
        a[generator.integers(m)] = b[generator.integers(n)] = 0.0
        costs = generator.random((m, n))
        assert_solves(a, b, costs)
        flow = emd(a, b, costs).flow
        assert flow[a == 0].max(initial=0.0) == 0.0 and flow[:, b == 0].max(initial=0.0) == 0.0


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 7), (7, 1), (2, 300), (300, 2), (60, 60)])
def test_emd_solves_very_unequal_sizes(m: int, n: int) -> None:
    generator = np.random.default_rng(m * 1000 + n)
    assert_solves(generator.random(m) + 0.01, generator.random(n) + 0.01, generator.random((m, n)))


def test_emd_solves_a_large_problem() -> None:
    generator = np.random.default_rng(5)
    x, y = generator.normal(size=(400, 16)), generator.normal(size=(300, 16))
    a, b, costs = generator.random(400), generator.random(300), cdist(x, y)
    plan = emd(a, b, costs)
    np.testing.assert_allclose(plan.flow.sum(axis=1), a / a.sum(), atol=1e-9, rtol=0)
    np.testing.assert_allclose(plan.flow.sum(axis=0), b / b.sum(), atol=1e-9, rtol=0)
    assert plan.cost == pytest.approx(linear_program(a, b, costs), rel=1e-7)


def test_equal_bags_cost_nothing_in_any_order() -> None:
    generator = np.random.default_rng(1)
    points, masses, order = generator.normal(size=(30, 5)), generator.random(30), generator.permutation(30)
    costs = pairwise_distances(points, points[order])
    assert emd(masses, masses[order], costs).cost == pytest.approx(0.0, abs=1e-12)


def test_masses_of_very_different_size_keep_their_marginals() -> None:
    generator = np.random.default_rng(2)
    a, b = 10.0 ** generator.uniform(-9, 3, 20), 10.0 ** generator.uniform(-9, 3, 15)
    assert_solves(a, b, generator.random((20, 15)))


@pytest.mark.filterwarnings("ignore:overflow")
def test_the_largest_finite_costs_are_no_infinity() -> None:
    assert emd(np.ones(1), np.ones(2), np.full((1, 2), 1e308)).cost == pytest.approx(1e308)


def test_only_the_proportions_of_the_masses_count() -> None:
    generator = np.random.default_rng(3)
    a, b, costs = generator.random(6), generator.random(5), generator.random((6, 5))
    assert emd(a * 1e6, b * 1e-6, costs).cost == pytest.approx(emd(a, b, costs).cost, abs=1e-12)


def test_the_caller_keeps_the_arrays_and_any_layout_will_do() -> None:
    generator = np.random.default_rng(4)
    a, b, costs = generator.random(6), generator.random(5), generator.random((6, 5))
    copies = a.copy(), b.copy(), costs.copy()
    expected = emd(a, b, costs)
    assert all((given == copy).all() for given, copy in zip((a, b, costs), copies, strict=True))
    again = emd(list(a), b[::-1][::-1], np.asfortranarray(costs))  # type: ignore[arg-type]
    assert again.cost == expected.cost and (again.flow == expected.flow).all()


@pytest.mark.parametrize(
    ("a", "b", "costs", "message"),
    [
        ([], [1], np.zeros((0, 1)), r"emd: a: expected a vector with at least one mass, but got shape \(0,\)"),
        ([1], [], np.zeros((1, 0)), r"emd: b: expected a vector with at least one mass"),
        ([[1.0]], [1], np.zeros((1, 1)), r"emd: a: .* but got shape \(1, 1\)"),
        ([1, -1], [1, 1], np.zeros((2, 2)), "emd: a: expected finite masses, none negative"),
        ([1, 1], [0, 0], np.zeros((2, 2)), "emd: b: .*with a sum above zero"),
        ([1, np.nan], [1, 1], np.zeros((2, 2)), "emd: a: expected finite masses"),
        ([1, np.inf], [1, 1], np.zeros((2, 2)), "emd: a: expected finite masses"),
        ([1, 1], [1, 1], np.array([[0, 1], [np.nan, 0]]), r"emd: costs\[1, 0\]: expected a finite number, but got nan"),
        ([1, 1], [1, 1], np.full((2, 2), np.nan), r"emd: costs\[0, 0\]: expected a finite number"),
        ([1], [1], np.array([[np.inf]]), r"emd: costs\[0, 0\]: expected a finite number, but got inf"),
        ([1, 1], [1, 1], np.zeros((2, 3)), r"emd: costs: expected shape \(2, 2\), but got \(2, 3\)"),
        ([1, 1], [1, 1], np.zeros(4), r"emd: costs: expected shape \(2, 2\), but got \(4,\)"),
    ],
)
def test_bad_problems_are_refused(a: Any, b: Any, costs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        emd(a, b, costs)


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5), (5, 2), (6, 6), (4, 7)])
def test_assignment_is_the_best_of_all_permutations(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(sum(shape))
    for costs in (generator.random(shape), generator.integers(0, 3, shape).astype(float)):
        rows, columns = assignment(costs)
        assert len(rows) == len(set(rows.tolist())) == len(set(columns.tolist())) == min(shape)
        wide = costs if shape[0] <= shape[1] else costs.T
        best = min(
            sum(wide[row, column] for row, column in enumerate(choice))
            for choice in itertools.permutations(range(wide.shape[1]), wide.shape[0])
        )
        assert costs[rows, columns].sum() == pytest.approx(best)


def test_greedy_takes_the_best_partner_of_each_unit_the_first_among_equals() -> None:
    similarity = np.array([[0.1, 0.9, 0.9], [0.8, 0.2, 0.9]])
    best_columns, best_rows = greedy(similarity)
    assert best_columns.tolist() == [1, 2] and best_rows.tolist() == [1, 0, 0]


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_distances_equal_scipys(distance: Any, scale: float) -> None:
    generator = np.random.default_rng(8)
    x, y = scale * generator.normal(size=(30, 20)), scale * generator.normal(size=(25, 20))
    y[:5] = x[:5] * (1 + 1e-9)  # nearly equal rows, where an expanded square has no digits left
    y[5:8] = x[5:8] + 1e-6 * scale
    np.testing.assert_allclose(
        pairwise_distances(x, y, distance), cdist(x, y, distance), rtol=1e-6, atol=1e-12 * (scale if scale > 1 else 1)
    )


@pytest.mark.parametrize("distance", ["euclidean", "sqeuclidean", "cosine"])
def test_equal_rows_are_at_distance_zero_exactly(distance: Any) -> None:
    generator = np.random.default_rng(9)
    x = generator.normal(size=(300, 33)).astype(np.float32)
    assert (np.diag(pairwise_distances(x, x, distance)) == 0.0).all()
    assert pairwise_distances(x, x, distance).min() == 0.0


def test_a_zero_vector_has_cosine_zero_with_everything() -> None:
    assert pairwise_distances(np.zeros((1, 3)), np.array([[1.0, 2, 3], [0, 0, 0]]), "cosine").tolist() == [[1.0, 1.0]]


def test_float32_vectors_are_compared_in_double_precision() -> None:
    generator = np.random.default_rng(10)
    x, y = generator.normal(size=(2, 4, 300)).astype(np.float32)
    np.testing.assert_allclose(pairwise_distances(x, y), cdist(x.astype(float), y.astype(float)), rtol=1e-12)


def test_unit_rows_have_length_one_and_zero_rows_stay() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]])
    np.testing.assert_allclose(unit_rows(x), [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0]])


# ---------------------------------------------------------------------------------------------------------------------
# POT's kernel and what takes its place


@pytest.fixture
def fresh_kernel(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(kernel, "_KERNEL", None)
    return monkeypatch


class _Module:
    """A compiled module whose function is not the one we know."""

    def __init__(self, emd_c: Callable[..., Any] | None) -> None:
        if emd_c is not None:
            self.emd_c = emd_c


def _wrong_result(a: Floats, b: Floats, costs: Floats, iterations: int, threads: int) -> Any:
    return np.outer(a, b), float(np.vdot(np.outer(a, b), costs)), a, b, 1


def _refuses(*arguments: Any) -> Any:
    raise RuntimeError("not today")


@pytest.mark.parametrize(
    "module",
    [
        _Module(lambda a, b, costs: None),  # takes other arguments
        _Module(lambda a, b, costs, iterations, threads: (np.outer(a, b), 1)),  # returns other things
        _Module(_wrong_result),
        _Module(lambda a, b, costs, iterations, threads: (np.outer(a, b), 0.75, a, b, 3)),  # other codes
        _Module(_refuses),
        _Module(None),
    ],
    ids=["signature", "returns", "wrong-result", "codes", "raises", "missing"],
)
def test_pots_public_function_takes_the_place_of_an_unexpected_kernel(
    fresh_kernel: pytest.MonkeyPatch, module: Any
) -> None:
    generator = np.random.default_rng(11)
    problems = [random_problem(generator) for _ in range(20)]
    expected = [emd(*problem) for problem in problems]
    fresh_kernel.setattr(kernel, "_KERNEL", None)
    fresh_kernel.setattr(kernel, "_compiled_module", lambda: module)
    for problem, plan in zip(problems, expected, strict=True):
        again = emd(*problem)
        assert again.cost == pytest.approx(plan.cost, abs=1e-12)
        np.testing.assert_allclose(again.flow, plan.flow, atol=1e-12)
    assert_solves(*problems[0])


def test_pots_public_function_takes_the_place_of_a_missing_file(fresh_kernel: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise StopIteration

    fresh_kernel.setattr(kernel, "_compiled_module", missing)
    assert_solves(np.ones(3), np.array([1.0, 2.0]), np.arange(6.0).reshape(3, 2))


def test_a_solver_that_gives_up_is_an_error(fresh_kernel: pytest.MonkeyPatch) -> None:
    fresh_kernel.setattr(kernel, "_KERNEL", lambda a, b, costs: (np.outer(a, b), 1.0, 3))
    with pytest.raises(RuntimeError, match="without an optimum \\(code 3\\) on a 2 × 2 problem"):
        emd(np.ones(2), np.ones(2), np.ones((2, 2)))


def test_importing_pot_after_our_kernel_works(run_python: Callable[..., str]) -> None:
    code = """
import sys
import numpy as np
from movers.transport import emd
costs = np.array([[0.0, 1.0], [2.0, 1.0]])
a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
ours = emd(a, b, costs).cost
assert "ot" not in sys.modules and "torch" not in sys.modules
import ot
assert ot.lp.emd_wrap.emd_c(a, b, costs, 1000, 1)[1] == ours
assert abs(ot.emd2(a, b, costs) - ours) < 1e-12
x, y = np.array([0.0, 1.0, 3.0]), np.array([5.0, 6.0, 8.0])
assert abs(ot.emd2_1d(x, y, metric="euclidean") - 5.0) < 1e-12
from ot.lp.emd_wrap import emd_1d_sorted
assert ot.lp.emd_wrap is sys.modules["ot.lp.emd_wrap"]
assert abs(emd_1d_sorted(np.ones(3) / 3, np.ones(3) / 3, x, y, "cityblock")[2] - 5.0) < 1e-12
assert abs(emd_1d_sorted(np.ones(3) / 3, np.ones(3) / 3, x, y, "minkowski", 2.0)[2] - 25.0) < 1e-12
assert emd(a, b, costs).cost == ours
print("fine")
"""
    assert run_python(code, POT_BACKEND_DISABLE_PYTORCH="1") == "fine"


def test_our_kernel_works_after_pot_was_imported(run_python: Callable[..., str]) -> None:
    code = """
import numpy as np, ot
from movers import transport
from movers._pot import kernel
print(transport.emd(np.ones(2), np.array([1.0, 3.0]), np.array([[0.0, 1.0], [2.0, 1.0]])).cost)
assert kernel._compiled_module() is ot.lp.emd_wrap
"""
    assert run_python(code, POT_BACKEND_DISABLE_PYTORCH="1") == "0.75"


def test_static_metrics_import_no_torch(run_python: Callable[..., str]) -> None:
    code = """
import sys, movers
for metric in (movers.wms, movers.sms, movers.swms):
    metric(["A cat sat. A dog ran."], ["The dog ran."])
print([name for name in ("torch", "transformers", "ot", "spacy", "datasets", "evaluate") if name in sys.modules])
"""
    assert run_python(code) == "[]"


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("threads", "chunk"), [(None, 32), (1, 1), (2, 3), (5, 1)])
def test_threads_keep_the_order_of_the_items(threads: int | None, chunk: int) -> None:
    def slow_for_even(number: int) -> int:
        time.sleep(0.001 if number % 2 == 0 else 0)
        return -number

    assert list(threaded_map(slow_for_even, range(70), threads, chunk)) == [-number for number in range(70)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_reaches_the_caller_after_the_results_before_it(threads: int) -> None:
    def fails_at_ten(number: int) -> int:
        if number == 10:
            raise KeyError("ten")
        return number

    seen = []
    with pytest.raises(KeyError, match="ten"):
        for result in threaded_map(fails_at_ten, range(100), threads, chunk=1):
            seen.append(result)
    assert seen == list(range(10))


def test_no_items_give_no_results() -> None:
    assert list(threaded_map(str, [], threads=3)) == []


def test_endless_items_are_read_as_they_are_needed() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for number in itertools.count():
            read += 1
            yield number

    results = threaded_map(lambda number: number + 1, items(), threads=2, chunk=4)
    assert [next(results) for _ in range(10)] == list(range(1, 11))
    results.close()  # type: ignore[attr-defined]
    assert read <= 4 * (4 * 2 + 1 + 10)


def test_several_threads_share_the_work() -> None:
    names = set()

    def note(_: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.005)

    list(threaded_map(note, range(40), threads=3, chunk=1))
    assert len(names) == 3 and threading.current_thread().name not in names


def test_plans_do_not_depend_on_threads() -> None:
    generator = np.random.default_rng(12)
    problems = [random_problem(generator) for _ in range(100)]
    alone = [emd(*problem) for problem in problems]
    together = list(threaded_map(lambda problem: emd(*problem), problems, threads=4, chunk=3))
    for one, other in zip(alone, together, strict=True):
        assert one.cost == other.cost and (one.flow == other.flow).all()


def test_distances_of_many_pairs_are_those_of_each_pair() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(40, 7)).astype(np.float32)
    table[3], table[4] = table[5], table[5] * (1 + 1e-6)  # equal and nearly equal points
    squares = np.einsum("ij,ij->i", table.astype(np.float64), table.astype(np.float64))
    pairs = [([3, 4, 8], [5]), ([1], [2]), ([9, 5, 3, 0], [5, 4, 9]), ([7], [7])]
    for (first, second), found in zip(pairs, row_distances(table, squares, pairs), strict=True):
        difference = table[first].astype(np.float64)[:, None] - table[second].astype(np.float64)
        np.testing.assert_allclose(found, np.linalg.norm(difference, axis=-1), rtol=1e-12, atol=0)
        assert np.array_equal(found, pairwise_distances(table[first], table[second]))
    assert row_distances(table, squares, []) == []

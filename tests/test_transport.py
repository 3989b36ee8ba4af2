from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import eye, kron, vstack
from scipy.spatial.distance import cdist

from movers import pot
from movers.errors import InputError
from movers.threads import solver_pool
from movers.transport import assignment, emd, greedy, pairwise_distances, unit_rows

Floats = NDArray[np.float64]
Problem = tuple[Floats, Floats, Floats]


def linear_program(a: Floats, b: Floats, costs: Floats) -> float:
    """The optimum by SciPy's general solver, which knows nothing of transport."""
    m, n = costs.shape
    marginals = vstack([kron(eye(m), np.ones((1, n))), kron(np.ones((1, m)), eye(n))]).tocsr()
    masses = np.concatenate([a / a.sum(), b / b.sum()])
    # The last condition follows from the others; rounding could make it contradict them.
    result = linprog(costs.ravel(), A_eq=marginals[:-1], b_eq=masses[:-1], method="highs")
    assert result.status == 0, result.message
    return float(result.fun)


def assert_solves(a: Floats, b: Floats, costs: Floats, tolerance: float = 1e-8) -> None:
    plan = emd(a, b, costs)
    assert plan.flow.shape == costs.shape and (plan.flow >= 0).all()
    np.testing.assert_allclose(plan.flow.sum(axis=1), a / a.sum(), atol=1e-9, rtol=0)
    np.testing.assert_allclose(plan.flow.sum(axis=0), b / b.sum(), atol=1e-9, rtol=0)
    assert plan.cost == pytest.approx(float((plan.flow * costs).sum()), abs=1e-9)
    assert plan.cost == pytest.approx(linear_program(a, b, costs), abs=tolerance)


def problems(kind: str) -> Iterator[Problem]:
    draw = np.random.default_rng(7)
    if kind == "sizes":
        for m, n in [(1, 1), (1, 7), (7, 1), (2, 300), (300, 2), (60, 60)]:
            yield draw.random(m) + 0.01, draw.random(n) + 0.01, draw.random((m, n))
        return
    for _ in range(50):
        m, n = draw.integers(2, 13, size=2)
        x, y = draw.normal(size=(m, 3)), draw.normal(size=(n, 3))
        a, b, costs = draw.random(m) + 1e-3, draw.random(n) + 1e-3, cdist(x, y)
        if kind == "ties":
            a, b = draw.integers(1, 4, size=m) * 1.0, draw.integers(1, 4, size=n) * 1.0
            costs = draw.integers(0, 3, size=(m, n)) * 1.0
        elif kind == "zero masses":
            a[draw.integers(m)] = b[draw.integers(n)] = 0.0
        elif kind == "unequal masses":
            a, b = 10.0 ** draw.uniform(-9, 3, m), 10.0 ** draw.uniform(-9, 3, n)
        elif kind == "shared points":
            y[: min(m, n) // 2] = x[: min(m, n) // 2]
            costs = cdist(x, y)
        yield a, b, costs


@pytest.mark.parametrize("kind", ["random", "ties", "zero masses", "unequal masses", "shared points", "sizes"])
def test_emd_equals_the_linear_program(kind: str) -> None:
    for problem in problems(kind):
        # SciPy's masses may be wrong by 1e-7, which shows where masses are smaller.
        assert_solves(*problem, tolerance=1e-6 if kind == "unequal masses" else 1e-8)


def test_emd_depends_on_proportions_only_and_leaves_its_arguments_alone() -> None:
    for a, b, costs in problems("random"):
        copies, plan = (a.copy(), b.copy(), costs.copy()), emd(a, b, costs)
        assert all((array == copy).all() for array, copy in zip((a, b, costs), copies, strict=True))
        assert emd(a * 1e6, b * 1e-6, costs).cost == pytest.approx(plan.cost, abs=1e-12)
        again = emd(list(a), b[::-1][::-1], np.asfortranarray(costs))
        assert again.cost == plan.cost and (again.flow == plan.flow).all()
        order = np.random.default_rng(1).permutation(len(a))
        assert emd(a, a[order], pairwise_distances(costs, costs[order])).cost == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "costs", "message"),
    [
        ([], [1], np.zeros((0, 1)), r"a: expected a vector with at least one mass, but got shape \(0,\)"),
        ([[1.0]], [1], np.zeros((1, 1)), r"a: .* but got shape \(1, 1\)"),
        ([2, -1], [1, 1], np.zeros((2, 2)), "a: expected finite masses, none negative"),
        ([1, 1], [0, 0], np.zeros((2, 2)), "b: .*with a sum above zero"),
        ([1, np.nan], [1, 1], np.zeros((2, 2)), "a: expected finite masses"),
        ([1, 1], [1, 1], np.array([[0, 1], [np.nan, 0]]), r"costs\[1, 0\]: expected a finite number, but got nan"),
        ([1], [1], np.array([[np.inf]]), r"costs\[0, 0\]: expected a finite number, but got inf"),
        ([1, 1], [1, 1], np.zeros((2, 3)), r"costs: expected shape \(2, 2\), but got \(2, 3\)"),
    ],
)
def test_bad_problems_are_refused(a: Any, b: Any, costs: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"emd: {message}"):
        emd(a, b, costs)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5), (5, 2), (6, 6)])
def test_assignment_is_the_best_of_all_permutations(shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(sum(shape))
    for costs in (draw.random(shape), draw.integers(0, 3, shape) * 1.0):
        rows, columns = assignment(costs)
        assert len(rows) == len(set(rows.tolist())) == len(set(columns.tolist())) == min(shape)
        wide = costs if shape[0] <= shape[1] else costs.T
        choices = itertools.permutations(range(wide.shape[1]), wide.shape[0])
        best = min(sum(wide[row, column] for row, column in enumerate(choice)) for choice in choices)
        assert costs[rows, columns].sum() == pytest.approx(best)


def test_greedy_takes_the_best_partner_of_each_unit_the_first_among_equals() -> None:
    columns, rows = greedy(np.array([[0.1, 0.9, 0.9], [0.8, 0.2, 0.9]]))
    assert columns.tolist() == [1, 2] and rows.tolist() == [1, 0, 0]


@pytest.mark.parametrize("distance", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_distances_equal_scipys_and_equal_rows_have_none(distance: Any, scale: float) -> None:
    draw = np.random.default_rng(8)
    x, y = scale * draw.normal(size=(30, 20)), scale * draw.normal(size=(25, 20))
    y[:5], y[5:8] = x[:5] * (1 + 1e-9), x[5:8] + 1e-6 * scale  # an expanded square has no digits left there
    tolerance = 1e-12 * max(scale, 1)
    np.testing.assert_allclose(pairwise_distances(x, y, distance), cdist(x, y, distance), rtol=1e-6, atol=tolerance)
    single = x.astype(np.float32)
    assert (np.diag(pairwise_distances(single, single, distance)) == 0.0).all()


def test_vectors_of_length_zero_stay_and_are_equal_to_each_other_alone() -> None:
    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])
    assert pairwise_distances(np.zeros((1, 3)), np.array([[1.0, 2, 3], [0, 0, 0]]), "cosine").tolist() == [[1.0, 0.0]]


def test_threads_change_neither_plans_nor_their_order() -> None:
    with solver_pool(4) as pool:
        plans = list(pool.map(lambda problem: emd(*problem), problems("random")))
    for problem, plan in zip(problems("random"), plans, strict=True):
        alone = emd(*problem)
        assert alone.cost == plan.cost and (alone.flow == plan.flow).all()


def test_pots_public_function_takes_the_place_of_an_unknown_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [emd(*problem).cost for problem in problems("random")]
    monkeypatch.setattr(pot, "_compiled", lambda: None)
    pot._solver.cache_clear()
    assert [emd(*problem).cost for problem in problems("random")] == pytest.approx(expected, abs=1e-12)
    pot._solver.cache_clear()


def test_threads_that_need_the_solver_at_once_load_it_once(run_python: Callable[..., str]) -> None:
    code = """
import sys, numpy as np
from concurrent.futures import ThreadPoolExecutor
from movers.pot import solver
sys.setswitchinterval(1e-6)
with ThreadPoolExecutor(8) as pool:
    tasks = [pool.submit(solver) for _ in range(8)]
print(len({task.result() for task in tasks}))
"""
    assert run_python(code).split() == ["1"]


@pytest.mark.slow
def test_pot_can_be_imported_afterwards(run_python: Callable[..., str]) -> None:
    code = """
import numpy as np, movers.transport
a, b, costs = np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([[0.0, 1.0], [2.0, 1.0]])
print(movers.transport.emd(a, b, costs).cost)
import ot
print(ot.emd2(a, b, costs), ot.emd2_1d(np.array([0.0, 1.0, 3.0]), np.array([5.0, 6.0, 8.0]), metric="euclidean"))
"""
    assert run_python(code, POT_BACKEND_DISABLE_PYTORCH="1").split() == ["0.75", "0.75", "5.0"]

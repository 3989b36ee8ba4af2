r"""Masses and costs → plan. Knows no text and no encoder.

Three ways to align the m units of one side with the n units of the other:

- `emd`: exact optimal transport, :math:`\min_T \sum_{ij} T_{ij} C_{ij}` with :math:`T 1 = a`, :math:`T^\top 1 = b`,
  :math:`T \ge 0` (Kusner et al. 2015; Clark et al. 2019, Eq. 2), solved by POT's network simplex;
- `assignment`: the optimal one-to-one alignment (Jin & Gildea 2022, Eq. 1), solved by SciPy;
- `greedy`: each unit takes its best partner, however often that one is taken (Zhang et al. 2020).

All three release Python's lock in their compiled parts; `threaded_map` runs many problems at once on a thread pool.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Distance",
    "Plan",
    "assignment",
    "default_threads",
    "emd",
    "emd_of_normalised",
    "greedy",
    "one_blas_thread",
    "pairwise_distances",
    "threaded_map",
]

Floats = NDArray[np.float64]
Distance = Literal["euclidean", "sqeuclidean", "cosine"]
Kernel = Callable[[Floats, Floats, Floats], tuple[Floats, float, int]]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_ITERATIONS = 10_000_000  # a bound against endless loops; sentences need hundreds, documents of 5,000 words 200,000
_OPTIMAL = 1


class Plan(NamedTuple):
    """What moves where.

    Attributes
    ----------
    flow : (m, n) float64
        `flow[i, j]` is the mass that moves from unit i to unit j.
    cost : float
        The sum of `flow * costs`.
    """

    flow: Floats
    cost: float


def pairwise_distances(x: NDArray[Any], y: NDArray[Any], distance: Distance = "euclidean") -> Floats:
    """Distances between the rows of x (m, d) and y (n, d), as an (m, n) float64 array.

    `euclidean` ‖x−y‖, `sqeuclidean` ‖x−y‖², `cosine` 1 − cos(x, y) (a zero vector has cosine 0 with everything).
    Equal rows are at distance 0 exactly.

    >>> pairwise_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 4.0]])).tolist()
    [[5.0], [0.0]]
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if distance == "cosine":
        x, y = unit_rows(x), unit_rows(y)
        # ‖x−y‖²/2 = 1 − cos for unit vectors, but zero vectors are not unit vectors: take the product itself.
        cosines = x @ y.T
        costs = 1.0 - cosines
        # The product of two (nearly) equal unit vectors is 1 up to rounding: there, take the difference itself.
        close_rows, close_columns = np.nonzero(cosines > 1.0 - 1e-7)
        if len(close_rows):
            difference = x[close_rows] - y[close_columns]
            costs[close_rows, close_columns] = np.einsum("ij,ij->i", difference, difference) / 2
        return costs
    x_square = np.einsum("ij,ij->i", x, x)
    y_square = np.einsum("ij,ij->i", y, y)
    squares = x @ y.T
    squares *= -2.0
    squares += x_square[:, None]
    squares += y_square
    # The expanded square loses digits where two points (nearly) coincide: there, take the difference itself.
    rows, columns = (squares < 1e-7 * (x_square.max(initial=0.0) + y_square.max(initial=0.0))).nonzero()
    if len(rows):
        difference = x[rows] - y[columns]
        squares[rows, columns] = np.einsum("ij,ij->i", difference, difference)
    return squares if distance == "sqeuclidean" else np.sqrt(squares, out=squares)


def unit_rows(x: NDArray[Any]) -> NDArray[Any]:
    """Rows of x scaled to length 1; zero rows stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
    return x / np.where(lengths > 0, lengths, 1.0)[:, None]


def emd(a: NDArray[Any], b: NDArray[Any], costs: NDArray[Any]) -> Plan:
    r"""Exact earth mover's distance between two bags of units.

    .. math:: \min_{T \ge 0} \sum_{ij} T_{ij} C_{ij} \quad s.t. \quad T 1 = a / \sum a, \; T^\top 1 = b / \sum b

    Parameters
    ----------
    a : (m,) array
        Masses of one side; not negative, their sum above zero. They are normalised to sum 1.
    b : (n,) array
        Masses of the other side.
    costs : (m, n) array
        What it costs to move one unit of mass from i to j; finite.

    Returns
    -------
    Plan
        `flow` (m, n) with these marginals, and its cost.

    Examples
    --------
    Half of the mass stays, the other half moves at cost 4:

    >>> emd(np.array([1.0, 1.0]), np.array([1.0]), np.array([[0.0], [4.0]])).cost
    2.0
    """
    return emd_of_normalised(_masses("a", a), _masses("b", b), np.ascontiguousarray(costs, dtype=np.float64))


def emd_of_normalised(a: Floats, b: Floats, costs: Floats) -> Plan:
    """As `emd`, for masses that are known to be positive or zero and to sum to 1, and a contiguous float64 matrix."""
    if costs.shape != (len(a), len(b)):
        raise ValueError(f"emd: costs: expected shape {(len(a), len(b))}, but got {costs.shape}")
    # One pass in the common case: NaN and infinity both show in the sum (which may overflow without them).
    if not math.isfinite(costs.sum()) and not np.isfinite(costs).all():
        row, column = np.argwhere(~np.isfinite(costs))[0]
        raise ValueError(f"emd: costs[{row}, {column}]: expected a finite number, but got {costs[row, column]}")
    if len(a) == 1 or len(b) == 1:  # only one plan exists
        flow = a[:, None] * b
        return Plan(flow, float(np.vdot(flow, costs)))
    flow, cost, code = _kernel()(a, b, costs)
    if code != _OPTIMAL:
        raise RuntimeError(f"emd: the solver stopped without an optimum (code {code}) on a {len(a)} × {len(b)} problem")
    return Plan(flow, cost)


def _masses(name: str, values: NDArray[Any]) -> Floats:
    masses = np.ascontiguousarray(values, dtype=np.float64)
    if masses.ndim != 1 or not len(masses):
        # POT would read an empty vector as "uniform".
        raise ValueError(f"emd: {name}: expected a vector with at least one mass, but got shape {masses.shape}")
    total = masses.sum()
    if not np.isfinite(total) or masses.min() < 0 or total <= 0:
        raise ValueError(f"emd: {name}: expected finite masses, none negative, with a sum above zero, but got {masses}")
    return masses / total


def assignment(costs: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Optimal one-to-one alignment: rows i and columns j of the min(m, n) pairs with the least total cost.

    >>> [indices.tolist() for indices in assignment(np.array([[1.0, 2.0], [1.0, 5.0]]))]
    [[0, 1], [1, 0]]
    """
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(costs)


def greedy(similarity: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Best column of every row (m,), and best row of every column (n,)."""
    return similarity.argmax(axis=1), similarity.argmax(axis=0)


# ---------------------------------------------------------------------------------------------------------------------
# POT's kernel. `ot.emd` spends three times as long in Python as in C at the size of a sentence, and `import ot` takes
# seconds because it imports every tensor library it finds. So the compiled module is loaded alone, tried once on a
# problem whose solution is known, and `ot.emd` takes its place if anything about it is not as expected.


def _kernel() -> Kernel:
    global _KERNEL
    if _KERNEL is None:
        with _KERNEL_LOCK:
            if _KERNEL is None:
                _KERNEL = _find_kernel()
    return _KERNEL


_KERNEL: Kernel | None = None
_KERNEL_LOCK = threading.Lock()


def _find_kernel() -> Kernel:
    try:
        kernel = _compiled_kernel()
        if _solves_the_trial(kernel):
            return kernel
    except Exception:  # whatever is different about this POT, its public function works
        pass
    return _public_kernel()


def _solves_the_trial(kernel: Kernel) -> bool:
    flow, cost, code = kernel(np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([[0.0, 1.0], [2.0, 1.0]]))
    return code == _OPTIMAL and abs(cost - 0.75) < 1e-12 and np.allclose(flow, [[0.25, 0.25], [0.0, 0.5]], atol=1e-12)


def _compiled_kernel() -> Kernel:
    emd_c = _compiled_module().emd_c

    def solve(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float, int]:
        flow, cost, _, _, code = emd_c(a, b, costs, _MAX_ITERATIONS, 1)
        return flow, float(cost), int(code)

    return solve


def _public_kernel() -> Kernel:
    import ot

    def solve(a: Floats, b: Floats, costs: Floats) -> tuple[Floats, float, int]:
        flow, log = ot.emd(a, b, costs, numItermax=_MAX_ITERATIONS, log=True)
        return flow, float(log["cost"]), int(log["result_code"])

    return solve


_KERNEL_NAME = "ot.lp.emd_wrap"


class _LoadedOnce:
    """Hands the compiled module out again if POT itself is imported later: it cannot be initialised twice."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == _KERNEL_NAME else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.module

    def exec_module(self, module: Any) -> None:
        """Nothing to do: it has run already."""


def _compiled_module() -> Any:
    import importlib.util

    if "ot" in sys.modules:
        return importlib.import_module(_KERNEL_NAME)
    package = importlib.util.find_spec("ot")
    if package is None or not package.submodule_search_locations:
        raise ImportError("POT is not installed: pip install POT")
    folder = Path(next(iter(package.submodule_search_locations))) / "lp"
    file = next(path for suffix in EXTENSION_SUFFIXES if (path := folder / f"emd_wrap{suffix}").exists())
    spec = importlib.util.spec_from_file_location(_KERNEL_NAME, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its `from ..utils import dist` is answered by movers._pot.utils instead of by all of POT.
    real = module.__package__, module.__spec__
    module.__package__, module.__spec__ = "movers._pot.lp", ModuleSpec("movers._pot.lp.emd_wrap", None)
    try:
        spec.loader.exec_module(module)
    finally:
        module.__package__, module.__spec__ = real
    sys.modules.pop(_KERNEL_NAME, None)  # so that `import ot` finds it by the finder, and binds it to its package
    sys.meta_path.insert(0, _LoadedOnce(module))
    return module


# ---------------------------------------------------------------------------------------------------------------------


def default_threads() -> int:
    """The processors this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on Linux
        return max(1, os.cpu_count() or 1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep NumPy's matrix products on the thread that asks for them.

    At the size of a sentence, waking BLAS's own threads takes several times as long as the product, and pairs are
    spread over threads anyway. Only OpenBLAS is held back (NumPy's own copy of it), never the library of an encoder.
    """
    global _BLAS
    if _BLAS is None:
        from threadpoolctl import ThreadpoolController

        _BLAS = ThreadpoolController().select(internal_api="openblas")
    with _BLAS.limit(limits=1):
        yield


_BLAS: Any = None


def threaded_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None, chunk: int = 32
) -> Iterator[Result]:
    """`map(function, items)` on a thread pool: results in the order of the items, a bounded number under way.

    Items go to the threads in chunks, because handing over a single sentence costs as much as solving it.

    >>> list(threaded_map(lambda n: n * n, range(5), threads=2))
    [0, 1, 4, 9, 16]
    """
    threads = default_threads() if threads is None else threads
    if threads == 1:
        yield from map(function, items)
        return

    def run(part: list[Item]) -> list[Result]:
        return [function(item) for item in part]

    with one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="movers") as pool:
        under_way: deque[Future[list[Result]]] = deque()
        for part in _chunks(items, chunk):
            under_way.append(pool.submit(run, part))
            if len(under_way) > 4 * threads:
                yield from under_way.popleft().result()
        while under_way:
            yield from under_way.popleft().result()


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    part: list[Item] = []
    for item in items:
        part.append(item)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part

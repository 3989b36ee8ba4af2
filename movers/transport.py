r"""Optimal transport and alignment: masses and costs → plan. Independent of texts and encoders.

Three ways to align the m units of one side with the n units of the other:

- `emd`: exact optimal transport, :math:`\min_T \sum_{ij} T_{ij} C_{ij}` with :math:`T 1 = a`, :math:`T^\top 1 = b`,
  :math:`T \ge 0` (Kusner et al. 2015; Clark et al. 2019, Eq. 2), solved by POT's network simplex;
- `assignment`: the optimal one-to-one alignment (Jin & Gildea 2022, Eq. 1), solved by SciPy;
- `greedy`: each unit is aligned with its most similar one, which may be aligned repeatedly (Zhang et al. 2020).

All three release the GIL in compiled code, so that problems can be solved in parallel threads.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from movers.errors import InputError
from movers.pot import solver

Floats = NDArray[np.float64]
Distance = Literal["euclidean", "sqeuclidean", "cosine"]
Real = TypeVar("Real", np.float32, np.float64)


class Plan(NamedTuple):
    """A transport plan (m, n): the mass transported from unit i to unit j, and its total cost."""

    flow: Floats
    cost: float


def pairwise_distances(x: ArrayLike, y: ArrayLike, distance: Distance = "euclidean") -> Floats:
    """Distances between the rows of x (m, d) and y (n, d), as an (m, n) float64 array.

    `euclidean` ‖x−y‖, `sqeuclidean` ‖x−y‖², `cosine` 1 − cos(x, y) (a zero vector has cosine 0 with all others).
    Equal rows have distance 0 exactly.

    >>> pairwise_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 4.0]])).tolist()
    [[5.0], [0.0]]
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if distance == "cosine":
        x, y = unit_rows(x), unit_rows(y)
        # Not ‖x−y‖²/2, which is 1 − cos for unit vectors but not for zero vectors.
        cosines = x @ y.T
        costs = 1.0 - cosines
        # For nearly equal unit vectors 1 − cos is dominated by rounding: use ‖x−y‖²/2 there.
        close_rows, close_columns = np.nonzero(cosines > 1.0 - 1e-7)
        if len(close_rows):
            difference = x[close_rows] - y[close_columns]
            costs[close_rows, close_columns] = np.einsum("ij,ij->i", difference, difference) / 2
        if not (x_known := x.any(axis=1)).all() and not (y_known := y.any(axis=1)).all():
            costs[np.ix_(~x_known, ~y_known)] = 0.0
        return costs
    x_square, y_square = np.vecdot(x, x), np.vecdot(y, y)
    squares = np.matmul(x, y.T)
    squares *= -2.0
    squares += x_square[:, None]
    squares += y_square
    # The expanded square loses precision where two points nearly coincide: use the difference there.
    close = (squares < 1e-7 * (x_square.max(initial=0.0) + y_square.max(initial=0.0))).nonzero()
    if len(close[0]):
        difference = x.take(close[0], axis=0) - y.take(close[1], axis=0)
        squares[close] = np.vecdot(difference, difference)
    return squares if distance == "sqeuclidean" else np.sqrt(squares, out=squares)


def unit_rows(x: NDArray[Real]) -> NDArray[Real]:
    """Scale the rows of x to length 1; zero rows stay zero. Norms are in float64, where squares do not overflow."""
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64))
    return np.asarray(x / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=x.dtype)


def emd(a: ArrayLike, b: ArrayLike, costs: ArrayLike) -> Plan:
    r"""Exact earth mover's distance between two bags of units.

    .. math:: \min_{T \ge 0} \sum_{ij} T_{ij} C_{ij} \quad s.t. \quad T 1 = a / \sum a, \; T^\top 1 = b / \sum b

    Masses (m,) and (n,) are non-negative, with a positive sum, and are normalised to sum to 1; costs (m, n) are finite.

    Examples
    --------
    Half of the mass stays, the other half moves at cost 4:

    >>> emd(np.array([1.0, 1.0]), np.array([1.0]), np.array([[0.0], [4.0]])).cost
    2.0
    """
    m, n = _masses("a", a), _masses("b", b)
    matrix = np.ascontiguousarray(costs, dtype=np.float64)
    if matrix.shape != (len(m), len(n)):
        raise InputError(f"emd: costs: expected shape {(len(m), len(n))}, but got {matrix.shape}")
    if not np.isfinite(matrix).all():  # POT may crash on them
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"emd: costs[{row}, {column}]: expected a finite number, but got {matrix[row, column]}")
    return emd_of_normalised(m, n, matrix)


def emd_of_normalised(a: Floats, b: Floats, costs: Floats) -> Plan:
    """Like `emd`, for masses known to be non-negative and to sum to 1, and a finite contiguous float64 matrix."""
    if len(a) == 1 or len(b) == 1:  # there is only one feasible plan
        flow = a[:, None] * b
        return Plan(flow, float(np.vdot(flow, costs)))
    return Plan(*solver()(a, b, costs))


def _masses(name: str, values: ArrayLike) -> Floats:
    masses = np.ascontiguousarray(values, dtype=np.float64)
    if masses.ndim != 1 or not len(masses):
        # POT interprets an empty vector as uniform masses.
        raise InputError(f"emd: {name}: expected a vector with at least one mass, but got shape {masses.shape}")
    total = masses.sum()
    if not np.isfinite(total) or masses.min() < 0 or total <= 0:
        raise InputError(f"emd: {name}: expected finite masses, none negative, with a sum above zero, but got {masses}")
    return masses / total


def assignment(costs: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Optimal one-to-one alignment: rows i and columns j of the min(m, n) pairs with minimum total cost."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(costs)


def greedy(similarity: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Best column of every row (m,), and best row of every column (n,)."""
    return similarity.argmax(axis=1), similarity.argmax(axis=0)

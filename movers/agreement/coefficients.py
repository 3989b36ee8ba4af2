"""Correlation coefficients of complete columns (no missing values)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from movers.agreement.columns import COEFFICIENTS, Coefficient, Floats, Scores, check_labels, rows_of_each, stack
from movers.errors import InputError
from movers.inputs import check_choice


def is_constant(values: Floats) -> bool:
    return len(values) < 2 or bool(values.min() == values.max())


def coefficient_of(scores: Floats, human: Floats, coefficient: Coefficient) -> float:
    """One coefficient of two complete columns; NaN where it is undefined (fewer than two texts, a constant column)."""
    if is_constant(scores) or is_constant(human):
        return math.nan
    if coefficient == "pearson":
        return float(stats.pearsonr(scores, human).statistic)
    if coefficient == "spearman":
        return float(stats.spearmanr(scores, human).statistic)
    return float(stats.kendalltau(scores, human, variant="b" if coefficient == "kendall" else "c").statistic)


def correlation(scores: Scores, human: Scores, coefficient: Coefficient = "pearson") -> float:
    r"""One correlation coefficient between two lists of numbers, computed by SciPy.

    Parameters
    ----------
    scores, human : sequence of float, shape (n,)
        Complete: a missing value is an error here (:func:`correlate` skips and counts them).
    coefficient : {"pearson", "spearman", "kendall", "kendall_c"}
        With *P* concordant and *Q* discordant pairs, :math:`n_0 = n(n-1)/2`, *t* and *u* the pairs tied in the first
        and in the second list, *m* the smaller number of distinct values:
        ``kendall`` is :math:`\tau_b = (P - Q) / \sqrt{(n_0 - t)(n_0 - u)}`,
        ``kendall_c`` is :math:`\tau_c = 2 (P - Q) / (n^2 (m - 1) / m)`.

    Returns
    -------
    float
        NaN where the coefficient is undefined: fewer than two values, or one list constant.

    Examples
    --------
    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman"), 4)
    0.8
    >>> round(correlation([1, 2, 3, 4], [1, 3, 2, 4], "kendall"), 4)
    0.6667
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    x, y = stack({"scores": scores, "human": human}, complete=True)
    return coefficient_of(x, y, coefficient)


def correlation_matrix(columns: Mapping[str, Scores], coefficient: Coefficient = "pearson") -> tuple[list[str], Floats]:
    """Coefficients between every two columns, on the rows in which all columns have a value.

    Returns
    -------
    names : list of str
        The columns in the order given.
    matrix : array, shape (columns, columns)
        Symmetric, with ones on the diagonal.

    Examples
    --------
    >>> names, matrix = correlation_matrix({"people": [1, 2, 3], "metric": [2, 4, 6.5], "other": [3, None, 1]})
    >>> names
    ['people', 'metric', 'other']
    >>> matrix.round(2).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    check_choice("agreement", "coefficient", coefficient, COEFFICIENTS)
    if not columns:
        raise InputError("agreement: columns: expected at least one list of scores, but got none")
    table = stack(columns)
    table = table[:, ~np.isnan(table).any(axis=0)]
    matrix = np.eye(len(columns))
    for first in range(len(columns)):
        for second in range(first):
            matrix[first, second] = matrix[second, first] = coefficient_of(table[first], table[second], coefficient)
    return list(columns), matrix


def share_of_pairs_ranked_right(
    scores: Scores, human: Scores, documents: Sequence[str] | None = None
) -> tuple[float, int]:
    """Share of the pairs of texts ranked by humans that the scores rank in the same order.

    A pair that the scores tie counts one half. With ``documents``, only texts of the same document are paired. Pairs
    with a missing value are left out.

    Returns
    -------
    share : float
        NaN if humans rank no pair.
    pairs : int
        Number of pairs ranked by humans.

    Examples
    --------
    >>> share_of_pairs_ranked_right([0.9, 0.1, 0.4, 0.6], [1, 0, 1, 0], ["a", "a", "b", "b"])
    (0.5, 2)
    """
    columns = stack({"scores": scores, "human": human})
    if documents is not None:
        check_labels("documents", documents, len(scores))
    right, pairs = 0.0, 0
    for rows in rows_of_each([""] * len(scores) if documents is None else documents).values():
        first, second = np.triu_indices(len(rows), 1)
        by_score, by_people = (np.sign(own[first] - own[second]) for own in columns[:, rows])
        ranked = (by_people != 0) & ~np.isnan(by_people) & ~np.isnan(by_score)
        right += float(np.sum((1 + by_score[ranked] * by_people[ranked]) / 2))
        pairs += int(ranked.sum())
    return (right / pairs if pairs else math.nan), pairs

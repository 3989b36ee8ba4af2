"""Correlation coefficients of complete columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from movers.agreement.columns import (
    COEFFICIENTS,
    Coefficient,
    Floats,
    Score,
    as_complete_floats,
    as_floats,
    check_choice,
    check_lengths,
    rows_of_each,
)


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


def correlation(scores: Sequence[Score], human: Sequence[Score], coefficient: Coefficient = "pearson") -> float:
    r"""One correlation coefficient between two lists of numbers, through SciPy.

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
    check_choice("coefficient", coefficient, COEFFICIENTS)
    check_lengths(scores=scores, human=human)
    return coefficient_of(as_complete_floats(scores, "scores"), as_complete_floats(human, "human"), coefficient)


def correlation_matrix(
    columns: Mapping[str, Sequence[Score]], coefficient: Coefficient = "pearson"
) -> tuple[list[str], Floats]:
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
    check_choice("coefficient", coefficient, COEFFICIENTS)
    if not columns:
        raise ValueError("`columns` must hold at least one list of scores; got none.")
    check_lengths(**columns)
    table = np.stack([as_floats(column, name) for name, column in columns.items()])
    table = table[:, ~np.isnan(table).any(axis=0)]
    matrix = np.eye(len(columns))
    for first in range(len(columns)):
        for second in range(first):
            matrix[first, second] = matrix[second, first] = coefficient_of(table[first], table[second], coefficient)
    return list(columns), matrix


def share_of_pairs_ranked_right(
    scores: Sequence[Score], human: Sequence[Score], documents: Sequence[str] | None = None
) -> tuple[float, int]:
    """Of all pairs of texts that people rank differently, the share that the scores rank the same way round.

    A pair that the scores tie counts one half. With ``documents``, only texts of the same document are paired. Pairs
    with a missing value are left out.

    Returns
    -------
    share : float
        NaN if people rank no pair.
    pairs : int
        The number of pairs that people rank.

    Examples
    --------
    >>> share_of_pairs_ranked_right([0.9, 0.1, 0.4, 0.6], [1, 0, 1, 0], ["a", "a", "b", "b"])
    (0.5, 2)
    """
    check_lengths(scores=scores, human=human)
    score_column, human_column = as_floats(scores, "scores"), as_floats(human, "human")
    if documents is not None:
        check_lengths(scores=scores, documents=documents)
    right, pairs = 0.0, 0
    for rows in rows_of_each(documents if documents is not None else [""] * len(scores)).values():
        a, b = score_column[rows], human_column[rows]
        upper = np.triu_indices(len(rows), 1)
        by_score, by_people = (np.sign(values[upper[0]] - values[upper[1]]) for values in (a, b))
        ranked = (by_people != 0) & ~np.isnan(by_people) & ~np.isnan(by_score)
        right += float(np.sum((1 + by_score[ranked] * by_people[ranked]) / 2))
        pairs += int(ranked.sum())
    return (right / pairs if pairs else math.nan), pairs

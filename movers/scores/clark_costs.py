"""Cost matrices and pooled sentence vectors, for `movers.scores.clark`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from movers.scores.bags import Bag, match_unknown
from movers.scores.clark_options import ClarkOptions
from movers.scores.metric import check_size
from movers.scores.words import Vectors, Words, WordUnits
from movers.transport import pairwise_distances, row_distances, unit_rows

__all__ = ["costs_of", "pooled", "small_costs"]

Floats = NDArray[np.float64]
_SMALL = 1 << 16  # cells of a cost matrix
_GATHERED = 4096  # words


def costs_of(first: Bag, second: Bag, options: ClarkOptions, unit: float) -> Floats:
    """(m, n) distances between the units of two bags; with `oov="match"`, unknown words are at distance `unit`."""
    check_size(len(first.masses), len(second.masses), options.max_cells)
    x, y = first.units.vectors(), second.units.vectors()
    if options.normalize:
        x, y = unit_rows(x), unit_rows(y)
    costs = pairwise_distances(x, y, options.distance)
    if options.oov == "match":
        match_unknown(costs, first.units, second.units, unit)
    return costs


def small_costs(pairs: Sequence[tuple[Bag, Bag] | None], options: ClarkOptions, unit: float) -> list[Floats | None]:
    """Cost matrices of small pairs, those between static words computed in one batch; None for large pairs."""
    plain = not options.normalize and options.distance == "euclidean" and options.oov != "match"
    found: list[Floats | None] = [None] * len(pairs)
    together: dict[int, tuple[list[int], list[int]]] = {}
    table: Words | None = None
    for place, bags in enumerate(pairs):
        if bags is None or len(bags[0].masses) * len(bags[1].masses) > min(_SMALL, options.max_cells):
            continue
        x, y = bags[0].units, bags[1].units
        if plain and isinstance(x, WordUnits) and isinstance(y, WordUnits) and x.words.squares is not None:
            table = x.words if table is None else table
            if table.vectors is x.words.vectors and table.vectors is y.words.vectors:
                together[place] = x.types, y.types
                continue
        found[place] = costs_of(*bags, options, unit)
    if table is not None and table.squares is not None:
        distances = row_distances(table.vectors, table.squares, list(together.values()))
        for place, costs in zip(together, distances, strict=True):
            found[place] = costs
    return found


def pooled(
    words: Words, starts: NDArray[np.intp], lengths: NDArray[np.intp], pooling: Literal["mean", "max"]
) -> Vectors:
    """(m, d) mean or maximum of the vectors of each sentence's words, which begin at (m,) `starts` of (n,) rows.

    Vectors are gathered in groups of words, because those of a text of one megabyte would take a gigabyte. The order of
    the additions, and so every bit of the result, is the same as without groups.
    """
    join = np.maximum if pooling == "max" else np.add
    found = np.zeros((len(starts), words.vectors.shape[1]), np.float32 if pooling == "max" else np.float64)
    for begin in range(0, len(words.rows), _GATHERED):
        inside = words.vectors[words.rows[begin : begin + _GATHERED]].astype(found.dtype)
        first, last = np.searchsorted(starts, [begin, begin + len(inside)])
        if first == len(starts) or starts[first] > begin:  # the group begins inside a sentence
            first -= 1
            inside[0] = join(found[first], inside[0])
        found[first:last] = join.reduceat(inside, np.maximum(starts[first:last] - begin, 0), axis=0)
    return (found if pooling == "max" else found / lengths[:, None]).astype(np.float32)

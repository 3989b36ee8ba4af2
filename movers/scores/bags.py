"""A text as a bag of units (words, tokens, n-grams or sentences) with masses, for all transport metrics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bag", "Units", "alignment_of", "match_unknown", "no_alignment"]

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


class Units(Protocol):
    """n units of a text."""

    def vectors(self) -> Vectors:
        """(n, d), gathered only when a pair is compared, so that a block of texts does not hold all vectors at once."""
        ...

    def keys(self) -> Sequence[Hashable]:
        """n keys of an IDF table: words or token ids."""
        ...

    def unknown(self) -> NDArray[np.bool_]:
        """(n,) True for units without a vector."""
        ...

    def describe(self) -> list[dict[str, object]]:
        """n dicts with `text`, `kind` and `sentence` (index of the first sentence that contains the unit)."""
        ...


class Bag(NamedTuple):
    """n units and their masses (n,)."""

    units: Units
    masses: Floats


def alignment_of(
    prediction: Bag, reference: Bag, flow: Floats, costs: Floats, distance: float | None
) -> dict[str, object]:
    """Units of both sides, and the non-zero entries of the plan (m, n) with their mass and cost."""
    rows, columns = np.nonzero(flow)
    return {
        "distance": distance,
        "prediction": _describe(prediction),
        "reference": _describe(reference),
        "flows": [
            {"i": i, "j": j, "mass": float(flow[i, j]), "cost": float(costs[i, j])}
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ],
    }


def _describe(bag: Bag) -> list[dict[str, object]]:
    shares = (bag.masses / bag.masses.sum()).tolist()
    return [{**unit, "weight": share} for unit, share in zip(bag.units.describe(), shares, strict=True)]


def no_alignment() -> dict[str, object]:
    """The alignment of a pair without units."""
    return {"distance": None, "prediction": [], "reference": [], "flows": []}


def match_unknown(costs: Floats, first: Units, second: Units, unit: float) -> None:
    """Set the costs of words without a vector, in place: 0 to an identical word, `unit` to everything else."""
    rows, columns = np.flatnonzero(first.unknown()).tolist(), np.flatnonzero(second.unknown()).tolist()
    costs[rows, :] = unit
    costs[:, columns] = unit
    if rows and columns:
        written, others = first.keys(), second.keys()
        for i, j in product(rows, columns):
            if written[i] == others[j]:
                costs[i, j] = 0.0

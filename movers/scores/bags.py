"""The bag that all transport metrics move: units of a text with masses."""

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
        """(n, d), gathered when a pair is compared: a block of texts need not hold all its words' vectors at once."""
        ...

    def keys(self) -> Sequence[Hashable]:
        """n keys of an IDF table: words, or ids of tokens."""
        ...

    def unknown(self) -> NDArray[np.bool_]:
        """(n,) which of them the encoder has no vector for."""
        ...

    def describe(self) -> list[dict[str, object]]:
        """n dicts of `text`, `kind` and `sentence` (the number of the first sentence the unit stands in)."""
        ...


class Bag(NamedTuple):
    """n units and their masses (n,)."""

    units: Units
    masses: Floats


def alignment_of(
    prediction: Bag, reference: Bag, flow: Floats, costs: Floats, distance: float | None
) -> dict[str, object]:
    """Which units were matched, with which mass and at what cost: the non-zero entries of a plan (m, n)."""
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
    """Words without a vector, in place: no distance from themselves, one unit from everything else."""
    rows, columns = np.flatnonzero(first.unknown()).tolist(), np.flatnonzero(second.unknown()).tolist()
    costs[rows, :] = unit
    costs[:, columns] = unit
    if rows and columns:
        written, others = first.keys(), second.keys()
        for i, j in product(rows, columns):
            if written[i] == others[j]:
                costs[i, j] = 0.0

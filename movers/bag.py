"""A text as a bag of units (words, tokens, n-grams, sentences) with vectors and masses: all that is compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bag", "Label", "alignment_of"]


class Label(NamedTuple):
    """A unit for alignments.

    Attributes
    ----------
    text : str
    kind : str
        `word`, `token`, `special`, `sentence`, `2-gram` …
    sentence : int
        Index of the sentence in which it begins.
    reason : str
        Why it was dropped: `stop word`, `punctuation`, `number`, `subword` or `no vector`; empty for units of the bag.
    """

    text: str
    kind: str
    sentence: int
    reason: str = ""


class Bag(NamedTuple):
    """n units of a text, complete when the text has been read.

    Attributes
    ----------
    text : str
    vectors : (n, d)
    masses : (n,)
    labels : n labels, read for alignments only
    dropped : labels of what was filtered out, read for alignments only
    unmatched : n words for which there is no vector, None for the others; empty if all have one
    unknown : bool
        The encoder does not know all words or subwords of the text.
    cut : bool
        The text was truncated.
    blank : bool
        The text has no token at all.
    as_reference : Bag or None
        The bag of the text on the side of the references, if masses differ there.
    """

    text: str
    vectors: NDArray[np.floating]
    masses: NDArray[np.float64]
    labels: tuple[Label, ...] = ()
    dropped: tuple[Label, ...] = ()
    unmatched: tuple[str | None, ...] = ()
    unknown: bool = False
    cut: bool = False
    blank: bool = False
    as_reference: Bag | None = None


def alignment_of(
    prediction: Bag,
    reference: Bag,
    flow: NDArray[np.float64],
    costs: NDArray[np.float64],
    distance: float | None,
) -> dict[str, object]:
    """Units of both sides, and the non-zero entries of the plan (m, n) with their mass and cost."""
    rows, columns = np.nonzero(flow)
    return {
        "distance": distance,
        "prediction": _units(prediction),
        "reference": _units(reference),
        "flows": [
            {"i": i, "j": j, "mass": float(flow[i, j]), "cost": float(costs[i, j])}
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ],
    }


def _units(bag: Bag) -> list[dict[str, object]]:
    shares = (bag.masses / bag.masses.sum()).tolist()
    return [
        {"text": label.text, "kind": label.kind, "sentence": label.sentence, "weight": share}
        for label, share in zip(bag.labels, shares, strict=True)
    ]

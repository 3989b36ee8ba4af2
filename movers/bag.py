"""A text as a bag of units (words, tokens, n-grams, sentences) with vectors and masses: all that is compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Label(NamedTuple):
    """A unit for alignments, with its character offsets; `sentence` is the index of the sentence in which it begins."""

    text: str
    kind: str  # "word", "token", "special", "sentence", "2-gram" …
    sentence: int
    start: int
    end: int
    reason: str = ""  # why it was dropped: "stop word", "punctuation", "clitic", "subword", "no vector" …


class Bag(NamedTuple):
    """n units of a text, complete when the text has been read; labels are read for alignments only."""

    text: str
    vectors: NDArray[np.floating] = np.zeros((0, 1), np.float32)  # (n, d)
    masses: NDArray[np.float64] = np.zeros(0)  # (n,)
    labels: tuple[Label, ...] = ()  # of the n units
    dropped: tuple[Label, ...] = ()  # of what was filtered out
    unmatched: tuple[str | None, ...] = ()  # the word of each unit without a vector; empty if all have one
    unknown: bool = False  # the encoder does not know all words or subwords of the text
    cut: bool = False  # the text was truncated
    blank: bool = False  # the text has no token at all
    unfiltered: bool = False  # filters would have left no unit, so that all tokens are kept
    as_reference: Bag | None = None  # the bag on the side of the references, if masses differ there


def alignment_of(
    prediction: Bag, reference: Bag, flow: NDArray[np.float64], costs: NDArray[np.float64], distance: float | None
) -> dict[str, object]:
    """Units of both sides, kept and dropped, and the non-zero entries of the plan (m, n) with their mass and cost."""
    rows, columns = np.nonzero(flow)
    bags = {"prediction": prediction, "reference": reference}
    return {
        "distance": distance,
        **{side: _units(bag) for side, bag in bags.items()},
        "flows": [
            {"i": i, "j": j, "mass": float(flow[i, j]), "cost": float(costs[i, j])}
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ],
        "dropped": {side: [label._asdict() for label in bag.dropped] for side, bag in bags.items()},
    }


def _units(bag: Bag) -> list[dict[str, object]]:
    shares = (bag.masses / bag.masses.sum()).tolist()
    names = Label._fields[:-1]  # what is kept has no reason
    return [
        dict(zip(names, label[:-1], strict=True)) | {"weight": share}
        for label, share in zip(bag.labels, shares, strict=True)
    ]

"""Vectors and a small set of documents, made up for the tests of the learned metric."""

from __future__ import annotations

import numpy as np

from movers.quality.data import Pair
from movers.quality.units import TextVectors

PLACES = ("Arden", "Birley", "Corwen", "Dunmore", "Elgin", "Fowey", "Girvan", "Hexham", "Ilkley", "Jarrow")
THINGS = ("bridge", "school", "market", "harbour", "library", "museum", "garden", "station", "theatre", "clinic")
DIMENSION = 12


def small_data() -> list[Pair]:
    """Thirty short documents, each on another thing in another place."""
    rows = []
    for n in range(30):
        place, thing = PLACES[n % 10], THINGS[(n * 3 + n // 10) % 10]
        document = (
            f"The {thing} of {place} will be closed for repairs. Work starts in week {n}. "
            f"People of {place} use the {thing} every day. The council pays {n + 2} million."
        )
        rows.append(Pair(document, f"{place} closes its {thing} in week {n}. Repairs cost {n + 2} million."))
    return rows


def made_up_text(sentences: int, seed: int, tokens: int = 5) -> TextVectors:
    """Random unit vectors of sentences and of their tokens."""
    rng = np.random.default_rng(seed)

    def unit(*shape: int) -> np.ndarray:
        vectors = rng.normal(size=shape).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    names = tuple(f"word{seed} number{n} of{n} text{n} number{n} of{n}" for n in range(sentences))
    owners = np.repeat(np.arange(sentences), tokens)
    return TextVectors(names, unit(sentences, DIMENSION), unit(sentences * tokens, DIMENSION), owners)

"""False facts in a sentence of a summary: another name or number, a negation, two names in each other's place."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from movers.quality.data import Pair
from movers.quality.facts import read_words

__all__ = ["FACT_FAULTS"]

Rng = np.random.Generator
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|would|can|could|has|have|had|should|may|might|must|does|do|did)\b(?! not\b)"
)


def _of_kind(text: str, kind: str) -> list[str]:
    return [word.text for word in read_words(text) if word.kind == kind]


def _swap(sentence: str, old: str, new: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, sentence, count=1)


def _replaced(sentence: str, kind: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    """One of the sentence's words of a kind gives way to one of another document that the own one does not have."""
    old, new = _of_kind(sentence, kind), [word for word in _of_kind(other.document, kind) if word not in pair.document]
    if not old or not new:
        return None
    return _swap(sentence, old[int(rng.integers(len(old)))], new[int(rng.integers(len(new)))])


def _name(sentence: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    return _replaced(sentence, "name", pair, other, rng)


def _number(sentence: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    return _replaced(sentence, "number", pair, other, rng)


def _negation(sentence: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    changed = _AUXILIARY.sub(r"\1 not", sentence, count=1)
    return None if changed == sentence else changed


def _roles(sentence: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    names = list(dict.fromkeys(_of_kind(sentence, "name")))
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :] if a not in b and b not in a]
    if not pairs:
        return None
    first, second = pairs[int(rng.integers(len(pairs)))]
    return _swap(_swap(_swap(sentence, first, "\0"), second, first), "\0", second)


#: A sentence, its pair and another one → the sentence with a false fact; None if it has nothing to falsify.
FACT_FAULTS: dict[str, Callable[[str, Pair, Pair, Rng], str | None]] = {
    "name": _name, "number": _number, "negation": _negation, "roles": _roles,
}  # fmt: skip

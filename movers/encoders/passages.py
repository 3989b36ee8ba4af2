"""Texts that an encoder reads in passages: each distinct passage once, each text handed on when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

__all__ = ["when_whole"]

Encoded = TypeVar("Encoded")


def when_whole(
    passages: Sequence[Sequence[str]], encode: Callable[[list[str]], Iterable[tuple[int, Encoded]]]
) -> Iterator[tuple[int, list[Encoded]]]:
    """`(index, encoded passages)` of every text as soon as the last of its passages is ready, in any order.

    Parameters
    ----------
    passages : for each text its passages, in order; none for a text without any
    encode : function
        Distinct passages → `(place, encoded)` for each, in any order, as soon as it is ready.

    >>> list(when_whole([["a", "b"], [], ["b"]], lambda parts: [(1, "B"), (0, "A")]))
    [(1, []), (2, ['B']), (0, ['A', 'B'])]
    """
    numbers: dict[str, int] = {}
    owners: list[list[int]] = []
    for index, own in enumerate(passages):
        for passage in dict.fromkeys(own):
            number = numbers.setdefault(passage, len(owners))
            if number == len(owners):
                owners.append([])
            owners[number].append(index)
    left = [len(set(own)) for own in passages]
    for index, count in enumerate(left):
        if not count:
            yield index, []
    ready: dict[int, Encoded] = {}
    for number, encoded in encode(list(numbers)):
        ready[number] = encoded
        for index in owners[number]:
            left[index] -= 1
            if not left[index]:
                yield index, [ready[numbers[passage]] for passage in passages[index]]

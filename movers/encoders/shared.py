"""Metrics that are computed together reuse one forward pass per text, if the caller says so."""

from __future__ import annotations

from movers.encoders.layers import Aggregation

__all__ = ["SharedPass"]


class SharedPass:
    """What several metrics read from the layers of one encoder.

    Give the same object to metrics that will score the same texts, in the call or in `evaluate.load`: the first of
    them to see a text computes what all of them need in one forward pass, and the others find it in the cache. No score
    changes.

    >>> import movers
    >>> shared = movers.SharedPass()
    >>> texts = ["A man sells snow."], ["Snow is sold by a man."]
    >>> first = movers.moverscore(*texts, shared_pass=shared)
    >>> second = movers.bertscore_emd(*texts, shared_pass=shared)
    """

    def __init__(self) -> None:
        self._wanted: dict[str, dict[Aggregation, None]] = {}

    def add(self, encoder: str, aggregation: Aggregation) -> None:
        """Note that a metric reads this aggregation from the encoder of that identity."""
        self._wanted.setdefault(encoder, {})[aggregation] = None

    def wanted(self, encoder: str) -> tuple[Aggregation, ...]:
        """Everything that is read from the encoder of that identity."""
        return tuple(self._wanted.get(encoder, ()))

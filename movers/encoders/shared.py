"""Metrics that are computed together reuse one forward pass per text, if the caller says so."""

from __future__ import annotations

from movers.encoders.layers import Aggregation

__all__ = ["SharedPass"]


class SharedPass:
    """What several metrics read from the layers of one encoder.

    Give the same object to metrics when they are built or loaded, before any of them scores: the first to see a text
    computes what all of them need in one forward pass, and the others find it in the cache. No score changes.
    `movers.score_many` does this in one call.

    >>> from movers.registry import find_metric
    >>> shared = SharedPass()
    >>> specs = find_metric("moverscore"), find_metric("bertscore_emd")
    >>> metrics = [spec.build(spec.parse({"shared_pass": shared})) for spec in specs]
    >>> [str(kind) for kind in shared.wanted(metrics[0].reader.encoder.identity)]
    ['pmeans', 'last']
    """

    def __init__(self) -> None:
        self._wanted: dict[str, dict[Aggregation, None]] = {}

    def add(self, encoder: str, aggregation: Aggregation) -> None:
        """Note that a metric reads this aggregation from the encoder of that identity."""
        self._wanted.setdefault(encoder, {})[aggregation] = None

    def wanted(self, encoder: str) -> tuple[Aggregation, ...]:
        """Everything that is read from the encoder of that identity."""
        return tuple(self._wanted.get(encoder, ()))

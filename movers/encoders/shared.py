"""One forward pass per text, shared by several metrics."""

from __future__ import annotations

from movers.encoders.layers import Aggregation

__all__ = ["SharedPass"]


class SharedPass:
    """Lets several metrics with the same encoder share forward passes.

    Pass the same object to all metrics when they are built or loaded, before any of them scores: the first to see a
    text computes what all of them need in one forward pass, and the others find it in the cache. Scores do not change.
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
        """Register that a metric needs this aggregation of the encoder."""
        self._wanted.setdefault(encoder, {})[aggregation] = None

    def wanted(self, encoder: str) -> tuple[Aggregation, ...]:
        """All registered aggregations of the encoder."""
        return tuple(self._wanted.get(encoder, ()))

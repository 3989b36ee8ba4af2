"""A metric as a `torchmetrics.Metric`, for training loops that log those (extra `torchmetrics`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from movers.errors import InputError, install_hint
from movers.scorer import Scorer

try:
    from torchmetrics import Metric
except ImportError:
    raise ImportError(f"movers.torchmetrics needs torchmetrics: {install_hint('torchmetrics')}") from None

__all__ = ["TransportScore"]


class TransportScore(Metric):
    """Mean score of all texts of all batches and all ranks.

    `metric` is `name` or `name[key=value,…]`; `idf="corpus"` is refused, because a score must not depend on the batch.
    `options` are those of the metric and of `torchmetrics.Metric`. The attribute `signature` says what is computed.

    >>> score = TransportScore("wms", stopwords="drop")
    >>> score.update(["Snow melts.", "Shares fell."], ["Snow melts.", "Snow melts."])
    >>> 0.5 < score.compute().item() < 0.8
    True
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    total: torch.Tensor
    count: torch.Tensor

    def __init__(self, metric: str, **options: object) -> None:
        names = ("compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn", "distributed_available_fn",
                 "sync_on_compute", "compute_with_cache")  # fmt: skip
        super().__init__(**{name: options.pop(name) for name in names if name in options})
        self.scorer = Scorer(metric, **options)
        if self.scorer.needs_corpus:
            raise InputError(f"{metric}: idf: expected a table, whatever the batch is, but got 'corpus'")
        self.signature = next(iter(self.scorer.signatures.values()))
        exact = torch.float32 if torch.backends.mps.is_available() else torch.float64  # MPS has no float64
        self.add_state("total", torch.zeros((), dtype=exact), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, preds: str | Sequence[str], target: str | Sequence[str] | Sequence[Sequence[str]]) -> None:
        """Score a batch: predictions, and references (or source documents), one or a list of them per prediction."""
        texts = [[each] if isinstance(each, str) else each for each in (preds, target)]
        ((label, spec),) = self.scorer.specs.items()
        result = self.scorer.score(texts[0], **{spec.compared_with: texts[1]})[label]
        self.total += sum(result["scores"])
        self.count += len(result["scores"])

    def compute(self) -> torch.Tensor:
        """The mean score so far."""
        return self.total / self.count

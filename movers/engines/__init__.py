"""The same scoring over a whole dataset, in this process or on a Ray cluster."""

from __future__ import annotations

from movers.engines.cluster import Cluster, score_rows
from movers.engines.dataset import ScoredDataset, score_dataset

__all__ = ["Cluster", "ScoredDataset", "score_dataset", "score_rows"]

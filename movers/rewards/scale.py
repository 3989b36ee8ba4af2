"""From scores to rewards: the scale that rewards have by default, and the lower bound of every reward.

Metrics make their scores readable themselves: `temperature="auto"` measures distances in units of those of unrelated
texts (plain exp(−WMD) is of the order of 1e-6 there, which gives no gradient), and `rescale=True` puts unrelated texts
at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from movers.errors import InputError

__all__ = ["DISTANCE_METRICS", "LOWER_BOUNDS", "Scale", "Transform", "mean", "parse_scale"]

Transform = Literal["log"]
DISTANCE_METRICS = ("wms", "sms", "swms")  # their score is exp(−distance / temperature)
#: What a completion without a word earns, and nothing earns less; by how the reward is scaled.
LOWER_BOUNDS = {"similarity": 0.0, "log": -4.0, "rescaled": -1.0, "learned": 0.0}


@dataclass(frozen=True)
class Scale:
    """How a metric's score becomes a reward, and what is the least."""

    kind: Literal["similarity", "log", "rescaled", "learned"]

    @property
    def lower(self) -> float:
        return LOWER_BOUNDS[self.kind]

    def apply(self, value: float) -> float:
        """The reward for a score."""
        if self.kind == "log":
            value = math.log(value) if value > 0 else self.lower
        return max(value, self.lower)


def parse_scale(metric: str, options: dict[str, object], transform: object) -> tuple[Scale, dict[str, object]]:
    """The scale of a reward, and the options of its metric with `rescale=True` where nothing else was asked for."""
    if transform not in (None, "log"):
        raise InputError(f"{metric}: transform: expected 'log' or None, but got {transform!r}")
    if transform == "log" and (metric not in DISTANCE_METRICS or options.get("rescale")):
        plain = ", ".join(DISTANCE_METRICS)
        raise InputError(f"{metric}: transform: expected None, but got 'log', which {plain} have without rescale")
    if metric == "reference_free_summary_quality":
        return Scale("learned"), options
    if metric in DISTANCE_METRICS and not options.get("rescale"):
        return Scale("log" if transform == "log" else "similarity"), options
    return Scale("rescaled"), {"rescale": True, **options}


def mean(values: Sequence[float]) -> float:
    """Mean of a sequence that has at least one number."""
    return math.fsum(values) / len(values)

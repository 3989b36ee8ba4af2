"""A scale on which rewards can be read and learned from, and the lower bound of every reward.

exp(−WMD) of the mover metrics is of the order of 1e-6 for texts that have little to do with each other, which gives no
gradient; scores of contextual metrics crowd in the upper part of their range. Both are measured here against unrelated
texts: a temperature makes the distance of unrelated texts the unit, rescaling puts their score at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from movers.errors import InputError
from movers.scores.engine import PairMetric, score

__all__ = ["DISTANCE_METRICS", "LOWER_BOUNDS", "UNRELATED", "Scale", "Transform", "parse_scale"]

Transform = Literal["log"]
DISTANCE_METRICS = ("wms", "sms", "swms")  # their score is exp(−distance)
#: What a completion without a word earns, and nothing earns less; by how the reward is scaled.
LOWER_BOUNDS = {"temperature": 0.0, "log": -4.0, "rescale": -1.0, "plain": 0.0}
UNRELATED = (
    "The court adjourned until Monday. Two witnesses had failed to appear.",
    "Whisk the eggs with sugar until pale. Fold in the flour and bake for twenty minutes.",
    "Heavy rain flooded the valley overnight. Farmers moved their cattle to higher ground.",
    "The new phone has a brighter screen. Its battery lasts about two days.",
    "She practised the violin every morning. Her first concert was sold out.",
    "The striker scored twice in the second half. Supporters sang until midnight.",
    "Enzymes lower the activation energy of reactions. Their shape decides what they bind.",
    "The museum bought a painting from the seventeenth century. Restoration will take a year.",
    "Shares of the airline fell by nine percent. Investors fear higher fuel prices.",
    "We propose a sorting algorithm for sparse matrices. It needs less memory than earlier ones.",
    "The little dog barked at the postman. Nobody in the street paid attention.",
    "Parliament passed the pension bill by a narrow margin. Unions announced a strike.",
)


@dataclass(frozen=True)
class Scale:
    """How a metric's score becomes a reward.

    Attributes
    ----------
    kind : {"temperature", "log", "rescale", "plain"}
        exp(−WMD / unit), −WMD / unit, (score − unit) / (1 − unit), or the score itself.
    unit : float or None
        None: the mean of unrelated texts, measured by `settle`.
    """

    kind: Literal["temperature", "log", "rescale", "plain"]
    unit: float | None

    @property
    def lower(self) -> float:
        return LOWER_BOUNDS[self.kind]

    # The temperature and the rescaling of rewards are computed here and in `settle` alone. Metrics that offer the two
    # as their own options can take them over: then `kind` is "plain" or "log", and `unit` goes to the metric.
    def apply(self, value: float) -> float:
        """The reward for a score."""
        unit = self.unit or 0.0
        if self.kind in ("temperature", "log"):
            relative = -math.inf if value <= 0 else math.log(value) / unit
            value = relative if self.kind == "log" else math.exp(relative)
        elif self.kind == "rescale":
            value = (value - unit) / (1 - unit)
        return max(value, self.lower)

    def settle(self, metric: PairMetric[object]) -> Scale:
        """Itself, with the unit measured on unrelated texts if it was not given."""
        if self.unit is not None or self.kind == "plain":
            return self
        pairs = list(combinations(UNRELATED, 2))
        scores = score(metric, [first for first, _ in pairs], [[second] for _, second in pairs])["scores"]
        assert isinstance(scores, list)
        if self.kind == "rescale":
            return Scale(self.kind, math.fsum(scores) / len(scores))
        return Scale(self.kind, -math.fsum(math.log(max(value, 1e-300)) for value in scores) / len(scores))


def parse_scale(metric: str, options: dict[str, object], transform: object) -> tuple[Scale, dict[str, object]]:
    """The scale that `transform`, and the options `temperature` and `rescale`, ask for; and the other options."""
    rest = dict(options)
    if transform not in (None, "log"):
        raise InputError(f"{metric}: transform: expected 'log' or None, but got {transform!r}")
    if metric in DISTANCE_METRICS:
        temperature = rest.pop("temperature", "auto")
        if temperature != "auto" and (
            isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 < temperature < math.inf
        ):
            raise InputError(f"{metric}: temperature: expected 'auto' or a number above zero, but got {temperature!r}")
        unit = None if isinstance(temperature, str) else float(temperature)
        return Scale("temperature" if transform is None else "log", unit), rest
    if transform is not None:
        raise InputError(f"{metric}: transform: expected None, but got 'log', which {', '.join(DISTANCE_METRICS)} have")
    if metric == "reference_free_summary_quality":
        return Scale("plain", None), rest
    rescale = rest.pop("rescale", True)
    if not isinstance(rescale, bool):
        raise InputError(f"{metric}: rescale: expected True or False, but got {rescale!r}")
    return Scale("rescale", None if rescale else 0.0), rest


def mean(values: Sequence[float]) -> float:
    """Mean of a sequence that has at least one number."""
    return math.fsum(values) / len(values)

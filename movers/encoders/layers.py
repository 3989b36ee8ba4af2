"""Aggregation of a transformer's layers, numbered from 0 (the embeddings) to L, into one vector per token."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

from movers.errors import InputError

if TYPE_CHECKING:
    import torch

_LAST_LAYERS = 5  # Zhao et al. 2019, section 3.3


@dataclass(frozen=True)
class Aggregation:
    """How layers are aggregated into a token vector; hashable, as part of cache keys.

    `pmeans` and `routing` (Zhao et al. 2019) read the last five layers, `mean` is the mean of all hidden states (as
    Clark et al. 2019 do with ELMo), `last` is the last layer, `layer` the one with the given number, and `join`
    concatenates several layers, each scaled to length 1.
    """

    kind: Literal["pmeans", "routing", "last", "mean", "layer", "join"]
    layer: int = -1
    joined: tuple[int, ...] = ()

    def __str__(self) -> str:
        names = {"layer": str(self.layer), "join": "+".join(map(str, self.joined)), "routing": "routing-gaussian"}
        return names.get(self.kind, self.kind)

    def needed(self, states: int) -> list[int]:
        """Indices of the hidden states it reads, out of `states` = L + 1."""
        if self.kind in ("pmeans", "routing", "mean"):
            return list(range(0 if self.kind == "mean" else max(0, states - _LAST_LAYERS), states))
        numbers = self.joined or (self.layer if self.kind == "layer" else -1,)
        for number in numbers:
            if not -states <= number < states:
                span = f"{-states} to {states - 1} (0 = embeddings, {states - 1} = last layer of this model)"
                raise InputError(f"layer: expected a number from {span}, but got {number}")
        return [number % states for number in numbers]

    def combine(self, layers: Sequence[torch.Tensor]) -> torch.Tensor:
        """(n, D) vectors from the hidden states (n, d) of n tokens in the needed layers."""
        import torch

        if self.kind == "pmeans":
            return pmeans(layers)
        if self.kind == "routing":
            return routing(layers)
        if self.kind == "join":  # cosine distances of the joined vectors are the means of the layers' own
            return torch.cat([unit_vectors(layer) for layer in layers], dim=-1) / len(layers) ** 0.5
        return torch.stack(list(layers)).mean(dim=0) if self.kind == "mean" else layers[0]


def parse_aggregation(metric: str, value: object, option: str = "layer") -> Aggregation:
    """The aggregation that the option `layer` (`aggregation` of `moverscore`) names.

    >>> [str(parse_aggregation("moverscore", value)) for value in ("pmeans", 5, [4, 6], "4+6")]
    ['pmeans', '5', '4+6', '4+6']
    """
    if isinstance(value, Aggregation):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Aggregation("layer", value)
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\+-?\d+)+", value):
        value = [int(number) for number in value.split("+")]
    if isinstance(value, list | tuple) and len(value) > 1 and all(type(number) is int for number in value):
        return Aggregation("join", joined=tuple(value))
    if isinstance(value, str) and value in ("pmeans", "routing", "last", "mean"):
        return Aggregation(value)  # type: ignore[arg-type]
    expected = "'pmeans', 'routing', 'last', 'mean', a layer number or several ('4+6')"
    raise InputError(f"{metric}: {option}: expected {expected}, but got {value!r}")


def unit_vectors(layers: torch.Tensor) -> torch.Tensor:
    """Scale vectors to length 1; zero vectors stay zero. Extreme norms are in float64: squares do not overflow."""
    import torch

    lengths = torch.linalg.vector_norm(layers, dim=-1, keepdim=True)
    if lengths.numel() and 1e-15 < lengths.min() and lengths.max() < 1e15:
        return layers / lengths
    lengths = torch.linalg.vector_norm(layers, dim=-1, keepdim=True, dtype=torch.float64)
    return (layers / torch.where(lengths > 0, lengths, 1.0)).to(layers.dtype)


def pmeans(layers: Sequence[torch.Tensor]) -> torch.Tensor:
    r"""Concatenated power means over layers (Zhao et al. 2019, Eq. 4 and 5).

    .. math:: h^{(p)} = \left( \frac{z_1^p + \dots + z_L^p}{L} \right)^{1/p}

    elementwise, for p = −∞ (the minimum), 1 (the mean) and ∞ (the maximum) in this order: L matrices (n, d) become one
    (n, 3·d). Each vector is scaled to length 1 first, as the authors do.
    """
    import torch

    unit = [unit_vectors(layer) for layer in layers]
    mean = reduce(torch.add, unit) / len(unit)
    return torch.cat([reduce(torch.minimum, unit), mean, reduce(torch.maximum, unit)], dim=-1)


def routing(layers: Sequence[torch.Tensor]) -> torch.Tensor:
    r"""Aggregation of layers by routing, a mean-shift procedure with normalised weights (Zhao et al. 2019, A.2).

    With :math:`z_l` the token's unit vector in layer l, :math:`v` starts as their mean and :math:`\gamma_l` as 0;
    every round takes

    .. math::
        \gamma \leftarrow \mathrm{softmax}(\gamma), \quad
        v \leftarrow \frac{\sum_l \gamma_l k_l z_l}{\sum_l \gamma_l k_l}, \quad
        \gamma_l \leftarrow \gamma_l + k_l

    where :math:`k_l = e^{-\|v - z_l\|^2 / 2}`, computed anew for each step. It stops when the loss
    :math:`-\sum_l k_l` moves by less than 1e-6 for every token, or after 20 rounds. L matrices (n, d) become one.
    """
    import torch

    unit = unit_vectors(torch.stack(list(layers)))  # (L, n, d)
    value = unit.mean(dim=0)
    gamma = unit.new_zeros(unit.shape[:2])  # (L, n)
    loss = unit.new_full(unit.shape[1:2], math.inf)
    moving = torch.ones_like(loss, dtype=torch.bool)
    for _ in range(20):
        gamma = torch.softmax(gamma, dim=0)
        mass = gamma * torch.exp(-(value - unit).square().sum(dim=-1) / 2)
        moved = (mass.unsqueeze(-1) * unit).sum(dim=0) / mass.sum(dim=0).unsqueeze(-1)
        # Converged tokens are frozen, so that a vector does not depend on the other tokens in the batch.
        value = torch.where(moving.unsqueeze(-1), moved, value)
        kernel = torch.exp(-(value - unit).square().sum(dim=-1) / 2)
        gamma = torch.where(moving, gamma + kernel, gamma)
        new_loss = -kernel.sum(dim=0)
        moving = moving & ((new_loss - loss).abs() >= 1e-6)
        loss = new_loss
        if not bool(moving.any()):
            break
    return value

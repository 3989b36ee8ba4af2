r"""Aggregation of layers into one vector per token.

`hidden_states` of a transformer are numbered from 0 (the embeddings) to L; a negative number counts from the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from movers.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = [
    "Aggregation",
    "AggregationName",
    "join",
    "parse_aggregation",
    "pmeans",
    "routing",
    "routing_of_the_paper",
    "unit_vectors",
]

AggregationName = Literal["pmeans", "routing", "last", "mean"]
Kernel = Literal["gaussian", "epanechnikov", "paper"]
DEFAULT_POWERS = (-math.inf, 1.0, math.inf)
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
    kernel: Kernel = "gaussian"
    joined: tuple[int, ...] = ()
    powers: tuple[float, ...] = DEFAULT_POWERS

    def __str__(self) -> str:
        if self.kind == "layer":
            return str(self.layer)
        if self.kind == "join":
            return "+".join(map(str, self.joined))
        if self.kind == "pmeans" and self.powers != DEFAULT_POWERS:
            return "pmeans-" + ",".join(f"{power:g}" for power in self.powers)
        return f"routing-{self.kernel}" if self.kind == "routing" else self.kind

    def needed(self, states: int) -> list[int]:
        """Indices of the hidden states it reads, out of `states` = L + 1.

        >>> Aggregation("pmeans").needed(7), Aggregation("layer", -2).needed(7)
        ([2, 3, 4, 5, 6], [5])
        """
        if self.kind in ("pmeans", "routing"):
            return list(range(max(0, states - _LAST_LAYERS), states))
        if self.kind == "mean":
            return list(range(states))
        if self.kind == "join":
            return [_state(number, states) for number in self.joined]
        return [_state(self.layer if self.kind == "layer" else -1, states)]

    def combine(self, layers: Sequence[torch.Tensor]) -> torch.Tensor:
        """(n, D) vectors from the hidden states (n, d) of n tokens in the needed layers."""
        import torch

        if self.kind == "pmeans":
            return pmeans(layers, self.powers)
        if self.kind == "routing":
            stacked = torch.stack(list(layers))
            return routing_of_the_paper(stacked) if self.kernel == "paper" else routing(stacked, self.kernel)
        if self.kind == "join":
            return join(layers)
        return torch.stack(list(layers)).mean(dim=0) if self.kind == "mean" else layers[0]


def _state(number: int, states: int) -> int:
    if not -states <= number < states:
        raise InputError(
            f"layer: expected a number from {-states} to {states - 1} "
            f"(0 = embeddings, {states - 1} = last layer of this model), but got {number}"
        )
    return number % states


def parse_aggregation(metric: str, value: object, kernel: Kernel = "gaussian", powers: object = None) -> Aggregation:
    """Parse the value of an option.

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
        chosen = DEFAULT_POWERS if powers is None else _powers(metric, powers)
        return Aggregation(
            value,  # type: ignore[arg-type]
            kernel=kernel if value == "routing" else "gaussian",
            powers=chosen if value == "pmeans" else DEFAULT_POWERS,
        )
    raise InputError(
        f"{metric}: layer: expected one of 'pmeans', 'routing', 'last', 'mean' or a layer number "
        f"or several ('4+6'), but got {value!r}"
    )


def _powers(metric: str, powers: object) -> tuple[float, ...]:
    items = list(powers) if isinstance(powers, list | tuple) else []
    try:
        values = tuple(float(item) for item in items)
    except (TypeError, ValueError):
        values = ()
    if not values or not all(abs(value) == math.inf or (value > 0 and value == int(value)) for value in values):
        raise InputError(f"{metric}: powers: expected whole numbers above zero, inf or -inf, but got {powers!r}")
    return values


def unit_vectors(layers: torch.Tensor) -> torch.Tensor:
    """Scale vectors to length 1; zero vectors stay zero. Extreme norms are in float64: squares do not overflow."""
    import torch

    lengths = torch.linalg.vector_norm(layers, dim=-1, keepdim=True)
    if lengths.numel() and 1e-15 < lengths.min() and lengths.max() < 1e15:
        return layers / lengths
    lengths = torch.linalg.vector_norm(layers, dim=-1, keepdim=True, dtype=torch.float64)
    return (layers / torch.where(lengths > 0, lengths, 1.0)).to(layers.dtype)


def join(layers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Concatenate the L layers (n, d), each scaled to length 1, into (n, L·d) unit vectors.

    The cosine distance of two such vectors is the mean of the layers' own cosine distances.
    """
    import torch

    return torch.cat([unit_vectors(layer) for layer in layers], dim=-1) / len(layers) ** 0.5


def pmeans(layers: Sequence[torch.Tensor], powers: tuple[float, ...] = DEFAULT_POWERS) -> torch.Tensor:
    r"""Concatenated power means over layers (Zhao et al. 2019, Eq. 4 and 5).

    .. math:: h^{(p)} = \left( \frac{z_1^p + \dots + z_L^p}{L} \right)^{1/p}

    elementwise: the mean for p = 1, the minimum and the maximum for p = ∓∞. The root keeps the sign.

    Parameters
    ----------
    layers : L matrices (n, d)
        Hidden states; each vector is scaled to length 1 first, as the authors do.
    powers : K numbers
        ∞, −∞, or positive integers.

    Returns
    -------
    (n, K·d) : the concatenated means.
    """
    import torch

    unit = torch.stack([unit_vectors(layer) for layer in layers])
    means = []
    for power in powers:
        if power == math.inf:
            means.append(unit.amax(dim=0))
        elif power == -math.inf:
            means.append(unit.amin(dim=0))
        elif power == 1:
            means.append(unit.mean(dim=0))
        else:
            mean = unit.pow(int(power)).mean(dim=0)
            means.append(mean.sign() * mean.abs().pow(1.0 / power))
    return torch.cat(means, dim=-1)


def routing_of_the_paper(layers: torch.Tensor, step: float = 1.0, rounds: int = 20) -> torch.Tensor:
    r"""Algorithm 1 of Zhao et al. 2019, appendix A.2, as printed, with the Gaussian kernel :math:`k(x) = e^{-x/2}`.

    It differs from `routing` in the denominator, :math:`v \leftarrow \sum_l \gamma_l k'_l z_l / \sum_l k'_l`, and in
    the loss, :math:`\log \sum_l \gamma_l k_l`. The paper leaves open where v starts (here: the mean of the layers),
    the step size (1), the tolerance (1e-6) and the maximum number of rounds (20).

    Parameters
    ----------
    layers : (L, n, d)

    Returns
    -------
    (n, d)
    """
    import torch

    unit = unit_vectors(layers)  # (L, n, d)
    value = unit.mean(dim=0)
    gamma = torch.zeros(unit.shape[:2], dtype=unit.dtype, device=unit.device)  # (L, n)
    loss = torch.full(unit.shape[1:2], math.inf, dtype=unit.dtype, device=unit.device)
    moving = torch.ones(unit.shape[1], dtype=torch.bool, device=unit.device)
    for _ in range(rounds):
        gamma = torch.softmax(gamma, dim=0)
        slope = torch.exp(-(value - unit).square().sum(dim=-1) / 2)
        moved = ((gamma * slope).unsqueeze(-1) * unit).sum(dim=0) / slope.sum(dim=0).unsqueeze(-1)
        # Converged tokens are frozen, so that a vector does not depend on the other tokens in the batch.
        value = torch.where(moving.unsqueeze(-1), moved, value)
        kernel = torch.exp(-(value - unit).square().sum(dim=-1) / 2)
        gamma = torch.where(moving, gamma + step * kernel, gamma)
        new_loss = (gamma * kernel).sum(dim=0).log()
        moving = moving & ((new_loss - loss).abs() >= 1e-6)
        loss = new_loss
        if not bool(moving.any()):
            break
    return value


def routing(layers: torch.Tensor, kernel: Kernel = "gaussian", step: float = 1.0, rounds: int = 20) -> torch.Tensor:
    r"""Aggregation of layers by routing, a mean-shift procedure with normalised weights (Zhao et al. 2019, A.2).

    With :math:`z_l` the token's unit vector in layer l, :math:`v` starts as their mean and :math:`\gamma_l` as 0;
    every round takes

    .. math::
        \gamma \leftarrow \mathrm{softmax}(\gamma), \quad
        v \leftarrow \frac{\sum_l \gamma_l k'_l z_l}{\sum_l \gamma_l k'_l}, \quad
        \gamma_l \leftarrow \gamma_l + \alpha k_l

    where :math:`k_l` is the kernel of :math:`u_l = \|v - z_l\|` and :math:`k'_l` its slope against :math:`u_l^2 / 2`:
    :math:`e^{-u^2/2}` for both with the Gaussian; :math:`k = \max(0, 1 - u^2)` and :math:`k' = [u < 1]` with
    Epanechnikov's. It stops when the loss :math:`-\sum_l k_l` moves by less than 1e-6 for every token, or after
    20 rounds. A token with no layer inside the kernel keeps the mean.

    Parameters
    ----------
    layers : (L, n, d)

    Returns
    -------
    (n, d)
    """
    import torch

    unit = unit_vectors(layers)  # (L, n, d)
    mean = unit.mean(dim=0)
    value = mean
    gamma = torch.zeros(unit.shape[:2], dtype=unit.dtype, device=unit.device)  # (L, n)
    loss: torch.Tensor | None = None
    moving = torch.ones(unit.shape[1], dtype=torch.bool, device=unit.device)
    for _ in range(rounds):
        gamma = torch.softmax(gamma, dim=0)
        square = (value - unit).square().sum(dim=-1)  # (L, n)
        if kernel == "gaussian":
            slope = torch.exp(-square / 2)
        else:
            slope = (square < 1).to(unit.dtype)
        mass = gamma * slope
        total = mass.sum(dim=0)
        moved = (mass.unsqueeze(-1) * unit).sum(dim=0) / total.clamp_min(1e-12).unsqueeze(-1)
        moved = torch.where((total > 0).unsqueeze(-1), moved, mean)
        # Converged tokens are frozen, so that a vector does not depend on the other tokens in the batch.
        value = torch.where(moving.unsqueeze(-1), moved, value)
        square = (value - unit).square().sum(dim=-1)
        strength = torch.exp(-square / 2) if kernel == "gaussian" else (1 - square).clamp_min(0)
        gamma = torch.where(moving, gamma + step * strength, gamma)
        new_loss = -strength.sum(dim=0)
        if loss is not None:
            moving = moving & ((new_loss - loss).abs() >= 1e-6)
        loss = new_loss
        if not bool(moving.any()):
            break
    return value

r"""Losses of self-critical training, for a plain PyTorch loop.

The sample ŷ is compared with what the model decodes greedily, ỹ, so that no critic has to be learned:

L_RL = (r(ỹ) − r(ŷ)) Σ_t log p(ŷ_t | ŷ_<t, x)    (Clark et al. 2019, Eq. 7 and 11; Jin & Gildea 2022, §4)

Clark et al. mix it with the likelihood of the reference as γ L_RL + (1 − γ) L_MLE with γ rising from .97, Jin & Gildea
as λ L_RL + (1 − λ) L_XENT with λ = .3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from movers.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["likelihood_loss", "mixed_loss", "rising_weight", "self_critical_loss", "token_log_probs"]


def token_log_probs(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities (B, T) of tokens `ids` (B, T) under `logits` (B, T, V); logits[:, t] predict ids[:, t].

    >>> import torch
    >>> token_log_probs(torch.zeros(1, 2, 4), torch.tensor([[1, 3]])).exp().tolist()
    [[0.25, 0.25]]
    """
    import torch

    return -torch.nn.functional.cross_entropy(logits.transpose(1, 2).float(), ids, reduction="none")


def self_critical_loss(
    log_probs: Tensor,
    mask: Tensor,
    reward: Tensor | Sequence[float | None],
    baseline: Tensor | Sequence[float | None],
    *,
    per_token: bool = False,
) -> Tensor:
    """Mean over the batch of (baseline − reward) Σ_t log p(ŷ_t).

    Parameters
    ----------
    log_probs : (B, T)
        Log-probabilities of the sampled tokens, with gradient. What stands at masked places does not matter.
    mask : (B, T)
        True (or 1) for the tokens of the sample, the end-of-sequence token included.
    reward, baseline : (B,)
        Rewards of the samples and of the greedily decoded outputs; constants. A row where either is None or not a
        number has no reward, and does not count.
    per_token : bool
        Divide each row's sum by its number of tokens, so that long samples do not weigh more.

    Returns
    -------
    scalar tensor; 0 with a gradient of 0 if no row has a reward

    Examples
    --------
    >>> import torch
    >>> log_probs = torch.log(torch.tensor([[0.5, 0.5], [0.25, 1.0]]))
    >>> mask = torch.tensor([[1, 1], [1, 0]])
    >>> round(float(self_critical_loss(log_probs, mask, [0.9, 0.1], [0.4, 0.1])), 4)  # −0.5 · log 0.25 / 2 rows
    0.3466
    """
    import torch

    if log_probs.ndim != 2 or mask.shape != log_probs.shape:
        raise InputError(
            "self_critical_loss: log_probs, mask: expected two tensors of shape (B, T), "
            f"but got {tuple(log_probs.shape)} and {tuple(mask.shape)}"
        )
    advantage = _rewards("baseline", baseline, log_probs) - _rewards("reward", reward, log_probs)
    counted = torch.isfinite(advantage)
    sums = _masked_sums(log_probs, mask, per_token)
    products = torch.where(counted, advantage, 0.0) * sums
    return products.sum() / counted.sum().clamp_min(1)


def likelihood_loss(log_probs: Tensor, mask: Tensor, *, per_token: bool = False) -> Tensor:
    """Mean over the batch of −Σ_t log p(y_t): L_MLE (Clark et al. 2019, Eq. 6), on the same scale as L_RL.

    >>> import torch
    >>> round(float(likelihood_loss(torch.full((1, 3), -2.0), torch.tensor([[1, 1, 0]]))), 4)
    4.0
    """
    return -_masked_sums(log_probs, mask, per_token).mean()


def mixed_loss(reward_loss: Tensor, likelihood: Tensor, weight: float) -> Tensor:
    """`weight` · L_RL + (1 − `weight`) · L_MLE: γ in Clark et al. 2019 (Eq. 8), λ in Jin & Gildea 2022.

    >>> import torch
    >>> round(float(mixed_loss(torch.tensor(1.0), torch.tensor(2.0), 0.3)), 4)
    1.7
    """
    if not 0 <= weight <= 1:
        raise InputError(f"mixed_loss: weight: expected a number from 0 to 1, but got {weight!r}")
    return weight * reward_loss + (1 - weight) * likelihood


def rising_weight(step: int, steps: int, start: float = 0.97, end: float = 0.9984) -> float:
    """γ of Clark et al. 2019: from `start` at step 0 in a straight line to `end` at the last of `steps` steps.

    The paper gives the start, .97, and says that γ rises; .9984 is where Paulus et al. 2018 hold it.

    >>> [round(rising_weight(step, 3, 0.9, 1.0), 2) for step in range(3)]
    [0.9, 0.95, 1.0]
    """
    return start + (end - start) * min(step / max(steps - 1, 1), 1.0)


def _rewards(name: str, values: Tensor | Sequence[float | None], like: Tensor) -> Tensor:
    import torch

    if not isinstance(values, torch.Tensor):
        values = torch.tensor([float("nan") if value is None else float(value) for value in values])
    if values.shape != like.shape[:1]:
        raise InputError(
            f"self_critical_loss: {name}: expected one number per row, {like.shape[0]}, but got {tuple(values.shape)}"
        )
    return values.detach().to(device=like.device, dtype=like.dtype)


def _masked_sums(log_probs: Tensor, mask: Tensor, per_token: bool) -> Tensor:
    sums = log_probs.masked_fill(~mask.bool(), 0.0).sum(dim=1)
    return sums / mask.sum(dim=1).clamp_min(1) if per_token else sums

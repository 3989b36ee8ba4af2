"""The metrics as rewards: for TRL's trainers, for a plain PyTorch loop, and on a generator's own embeddings."""

from __future__ import annotations

from movers.rewards.losses import likelihood_loss, mixed_loss, rising_weight, self_critical_loss, token_log_probs

__all__ = ["likelihood_loss", "mixed_loss", "rising_weight", "self_critical_loss", "token_log_probs"]

"""The metrics as rewards: for TRL's trainers, for a plain PyTorch loop, and on a generator's own embeddings."""

from __future__ import annotations

from movers.rewards.embedding import EmbeddingReward, embedding_reward
from movers.rewards.losses import likelihood_loss, mixed_loss, rising_weight, self_critical_loss, token_log_probs
from movers.rewards.metric import Reward, reward

__all__ = ["EmbeddingReward", "Reward", "embedding_reward", "likelihood_loss", "mixed_loss", "reward", "rising_weight",
           "self_critical_loss", "token_log_probs"]  # fmt: skip

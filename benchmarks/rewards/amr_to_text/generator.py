"""What the training loop needs of a generator: a causal language model, or an encoder with a decoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

MAX_NEW_TOKENS = 48
Prompts = TypeVar("Prompts", bound=Sized)


class Continuation(Protocol):
    """Outputs in the making, one token after the other."""

    def logits(self) -> Tensor:
        """Of the next token (B, V)."""
        ...

    def feed(self, chosen: Tensor) -> None:
        """Go on with these tokens (B,)."""
        ...


class Generator(ABC, Generic[Prompts]):
    """Graphs → sentences; one pass over a graph serves all its sentences."""

    model: nn.Module
    end: int
    half: bool  # whether training computes in bfloat16

    @property
    @abstractmethod
    def table(self) -> Tensor:
        """Token embeddings (V, d), on which the reward is measured. They are not trained."""

    @abstractmethod
    def encode_graph(self, graph: str) -> list[int]: ...

    @abstractmethod
    def encode_sentence(self, sentence: str) -> list[int]: ...

    @abstractmethod
    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]: ...

    @abstractmethod
    def read_prompts(self, graphs: Sequence[str]) -> Prompts:
        """Graphs as the decoder needs them, with gradient."""

    @abstractmethod
    def log_probs(self, prompts: Prompts, ids: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities (r·B, T) of sentences (r·B, T) that end with the end token: all prompts, then all again."""

    @abstractmethod
    def begin(self, prompts: Prompts, repeats: int) -> Continuation:
        """Empty outputs of all prompts, `repeats` times."""

    @abstractmethod
    def restart(self, seed: int) -> None:
        """Weights as they were before any training."""

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    @torch.no_grad()
    def generate(self, prompts: Prompts, sample: bool, generator: torch.Generator | None = None) -> list[list[int]]:
        """Greedy outputs of all prompts, and after them, if wanted, a sampled one of each; without end token."""
        training = self.model.training
        self.model.eval()
        rows, repeats = len(prompts), 2 if sample else 1
        outputs = self.begin(prompts, repeats)
        found: list[list[int]] = [[] for _ in range(rows * repeats)]
        running = torch.ones(rows * repeats, dtype=torch.bool)
        for step in range(MAX_NEW_TOKENS):
            logits = outputs.logits()
            chosen = logits.argmax(-1)
            if sample:
                chosen[rows:] = torch.multinomial(logits[rows:].softmax(-1), 1, generator=generator)[:, 0]
            running &= chosen != self.end
            if not running.any():
                break
            for row in running.nonzero()[:, 0].tolist():
                found[row].append(int(chosen[row]))
            if step + 1 < MAX_NEW_TOKENS:
                outputs.feed(chosen)
        self.model.train(training)
        return found

    def pad(self, rows: Sequence[Sequence[int]], end: bool = True) -> tuple[Tensor, Tensor]:
        """Ids and mask (B, T) of rows padded on the right; `end` puts the end token after each."""
        ended = [[*row, self.end] if end else list(row) for row in rows]
        width = max(1, *map(len, ended))
        ids = torch.tensor([row + [self.end] * (width - len(row)) for row in ended])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ended])
        return ids, mask

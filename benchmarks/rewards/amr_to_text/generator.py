"""What the training loop needs of a generator, and the first of two: a pretrained causal language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from movers.rewards import token_log_probs

MAX_NEW_TOKENS = 48
Read = TypeVar("Read")


class Generator(ABC, Generic[Read]):
    """Graphs → sentences; `Read` is what is known of graphs before a sentence is written."""

    model: nn.Module
    end: int
    half: bool  # whether training computes in bfloat16

    @property
    @abstractmethod
    def table(self) -> Tensor:
        """Token embeddings (V, d) as they are now, on which the reward is measured."""

    @property
    @abstractmethod
    def untrained_table(self) -> Tensor:
        """Token embeddings (V, d) before any training, on which systems are compared."""

    @abstractmethod
    def encode_graph(self, graph: str) -> list[int]: ...

    @abstractmethod
    def encode_sentence(self, sentence: str) -> list[int]: ...

    @abstractmethod
    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]: ...

    @abstractmethod
    def read_prompts(self, graphs: Sequence[str]) -> Read: ...

    @abstractmethod
    def log_probs(self, prompts: Read, ids: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities (r·B, T) of sentences (r·B, T) that end with the end token: all prompts, then all again."""

    @abstractmethod
    def generate(self, prompts: Read, sample: bool, generator: torch.Generator | None = None) -> list[list[int]]:
        """Greedy outputs of all prompts, and after them, if wanted, a sampled one of each; without end token."""

    @abstractmethod
    def restart(self, seed: int) -> None:
        """Weights as they were before any training."""

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    def pad(self, rows: Sequence[Sequence[int]], end: bool = True) -> tuple[Tensor, Tensor]:
        """Ids and mask (B, T) of rows padded on the right; `end` puts the end token after each."""
        ended = [[*row, self.end] if end else list(row) for row in rows]
        width = max(1, *map(len, ended))
        ids = torch.tensor([row + [self.end] * (width - len(row)) for row in ended])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ended])
        return ids, mask


@dataclass(frozen=True)
class Prompts:
    """Prompts, padded on the left."""

    ids: Tensor  # (B, P)
    mask: Tensor  # (B, P)


class CausalGenerator(Generator[Prompts]):
    """A model that continues linearised graphs; its embeddings and its lower layers are frozen."""

    half = True

    def __init__(self, folder: Path, trained_layers: int) -> None:
        self.model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.end = int(self.tokenizer.eos_token_id)
        self.model.requires_grad_(False)
        for layer in self.model.model.layers[-trained_layers:]:
            layer.requires_grad_(True)
        self.model.model.norm.requires_grad_(True)
        self._pretrained = {name: value.detach().clone() for name, value in self.trained.items()}

    def restart(self, seed: int) -> None:
        self.model.load_state_dict(self._pretrained, strict=False)

    @property
    def table(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    untrained_table = table

    def encode_graph(self, graph: str) -> list[int]:
        return self.tokenizer(f"{graph} =>", add_special_tokens=False).input_ids

    def encode_sentence(self, sentence: str) -> list[int]:
        return self.tokenizer(f" {sentence}", add_special_tokens=False).input_ids

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]

    def read_prompts(self, graphs: Sequence[str]) -> Prompts:
        ids, mask = self.pad([self.encode_graph(graph)[::-1] for graph in graphs], end=False)
        return Prompts(ids.flip(1), mask.flip(1))

    def log_probs(self, prompts: Prompts, ids: Tensor, mask: Tensor) -> Tensor:
        repeats = len(ids) // len(prompts.ids)
        both = torch.cat([torch.cat([prompts.mask] * repeats), mask], 1)
        logits = self.model(
            input_ids=torch.cat([torch.cat([prompts.ids] * repeats), ids], 1),
            attention_mask=both,
            position_ids=(both.cumsum(1) - 1).clamp_min(0),
            logits_to_keep=ids.shape[1] + 1,
        ).logits[:, :-1]
        return token_log_probs(logits, ids)

    @torch.no_grad()
    def generate(self, prompts: Prompts, sample: bool, generator: torch.Generator | None = None) -> list[list[int]]:
        training = self.model.training
        self.model.eval()
        if generator is not None:
            torch.manual_seed(generator.initial_seed())
        options = {"max_new_tokens": MAX_NEW_TOKENS, "pad_token_id": self.end, "eos_token_id": self.end, "top_k": 0}
        rows: list[list[int]] = []
        for drawn in (False, True) if sample else (False,):
            outputs = self.model.generate(prompts.ids, attention_mask=prompts.mask, do_sample=drawn, **options)
            rows += outputs[:, prompts.ids.shape[1] :].tolist()
        self.model.train(training)
        return [row[: row.index(self.end)] if self.end in row else row for row in rows]

"""A causal language model that continues linearised graphs: one pass over a prompt serves all its continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

MAX_NEW_TOKENS = 48


@dataclass(frozen=True)
class Prompts:
    """Hidden state of the last token, keys and values of prompts padded on the left, with gradient."""

    mask: Tensor  # (B, P)
    last: Tensor  # (B, 1, d)
    keys_values: list[tuple[Tensor, Tensor]]

    def cache(self, repeats: int, detach: bool = False) -> DynamicCache:
        """A fresh cache with every prompt `repeats` times: all prompts, then all again."""
        cache = DynamicCache()
        for number, (keys, values) in enumerate(self.keys_values):
            if detach:
                keys, values = keys.detach(), values.detach()
            cache.update(torch.cat([keys] * repeats), torch.cat([values] * repeats), number)
        return cache


class Generator:
    """The model, with its embeddings (the reward is measured on them) and its lower layers frozen."""

    def __init__(self, folder: Path, trained_layers: int) -> None:
        self.model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder)
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
        self.end = int(self.tokenizer.eos_token_id)
        self.model.requires_grad_(False)
        for layer in self.model.model.layers[-trained_layers:]:
            layer.requires_grad_(True)
        self.model.model.norm.requires_grad_(True)
        self.model.train()  # the model has no dropout

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        return {name: value for name, value in self.model.named_parameters() if value.requires_grad}

    def encode_graph(self, graph: str) -> list[int]:
        return self.tokenizer(f"{graph} =>", add_special_tokens=False).input_ids

    def encode_sentence(self, sentence: str) -> list[int]:
        return self.tokenizer(f" {sentence}", add_special_tokens=False).input_ids

    def read_prompts(self, graphs: Sequence[str]) -> Prompts:
        rows = [self.encode_graph(graph) for graph in graphs]
        width = max(map(len, rows))
        ids = torch.tensor([[self.end] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        out = self.model.model(
            input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp_min(0), use_cache=True
        )
        pairs = [(layer.keys, layer.values) for layer in out.past_key_values.layers]
        return Prompts(mask, out.last_hidden_state[:, -1:], pairs)

    def log_probs(self, prompts: Prompts, ids: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities (r·B, T) of continuations (r·B, T) that end with the end token."""
        repeats = len(ids) // len(prompts.mask)
        prompt_mask = torch.cat([prompts.mask] * repeats)
        position = prompt_mask.sum(1, keepdim=True) + torch.arange(ids.shape[1] - 1)
        out = self.model.model(
            input_ids=ids[:, :-1],
            attention_mask=torch.cat([prompt_mask, mask[:, :-1]], 1),
            position_ids=position,
            past_key_values=prompts.cache(repeats),
            use_cache=True,
        )
        hidden = torch.cat([torch.cat([prompts.last] * repeats), out.last_hidden_state], 1)[mask.bool()]
        logits = self.model.lm_head(hidden).float()  # (tokens, V): the padding is left out
        found = -torch.nn.functional.cross_entropy(logits, ids[mask.bool()], reduction="none")
        return torch.zeros(mask.shape).masked_scatter(mask.bool(), found)

    @torch.no_grad()
    def generate(self, prompts: Prompts, sample: bool, generator: torch.Generator | None = None) -> list[list[int]]:
        """Greedy continuations of all prompts, and after them, if wanted, a sampled one of each; without end token."""
        rows = len(prompts.mask)
        repeats = 2 if sample else 1
        cache = prompts.cache(repeats, detach=True)
        mask = torch.cat([prompts.mask] * repeats)
        hidden = torch.cat([prompts.last.detach()] * repeats)
        found: list[list[int]] = [[] for _ in range(rows * repeats)]
        running = torch.ones(rows * repeats, dtype=torch.bool)
        for step in range(MAX_NEW_TOKENS):
            logits = self.model.lm_head(hidden[:, -1]).float()
            chosen = logits.argmax(-1)
            if sample:
                chosen[rows:] = torch.multinomial(logits[rows:].softmax(-1), 1, generator=generator)[:, 0]
            running &= chosen != self.end
            if not running.any():
                break
            for row in running.nonzero()[:, 0].tolist():
                found[row].append(int(chosen[row]))
            if step + 1 == MAX_NEW_TOKENS:
                break
            position = mask.sum(1, keepdim=True)
            mask = torch.cat([mask, torch.ones(len(mask), 1, dtype=mask.dtype)], 1)
            hidden = self.model.model(
                input_ids=chosen[:, None], attention_mask=mask, position_ids=position, past_key_values=cache
            ).last_hidden_state
        return found

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]

    def pad(self, rows: Sequence[Sequence[int]], end: bool = True) -> tuple[Tensor, Tensor]:
        """Ids and mask (B, T) of rows padded on the right; `end` puts the end token after each."""
        ended = [[*row, self.end] if end else list(row) for row in rows]
        width = max(1, *map(len, ended))
        ids = torch.tensor([row + [self.end] * (width - len(row)) for row in ended])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ended])
        return ids, mask

"""A causal language model that continues linearised graphs: one pass over a prompt serves all its continuations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

sys.path.insert(0, str(Path(__file__).parents[2]))
from rewards.amr_to_text.generator import Generator


@dataclass(frozen=True)
class Prompts:
    """Hidden state of the last token, keys and values of prompts padded on the left, with gradient."""

    mask: Tensor  # (B, P)
    last: Tensor  # (B, 1, d)
    keys_values: list[tuple[Tensor, Tensor]]

    def __len__(self) -> int:
        return len(self.mask)

    def cache(self, repeats: int) -> DynamicCache:
        """A fresh cache with every prompt `repeats` times: all prompts, then all again."""
        cache = DynamicCache()
        for number, (keys, values) in enumerate(self.keys_values):
            cache.update(torch.cat([keys] * repeats), torch.cat([values] * repeats), number)
        return cache

    def single(self) -> Prompts:
        """For generation: no gradient, and float32, like the weights outside of autocast."""
        pairs = [(keys.detach().float(), values.detach().float()) for keys, values in self.keys_values]
        return Prompts(self.mask, self.last.detach().float(), pairs)


class Continued:
    """Continuations in the making."""

    def __init__(self, model: PreTrainedModel, prompts: Prompts, repeats: int) -> None:
        self._model, self._cache = model, prompts.cache(repeats)
        self._mask = torch.cat([prompts.mask] * repeats)
        self._hidden = torch.cat([prompts.last] * repeats)

    def logits(self) -> Tensor:
        return self._model.lm_head(self._hidden[:, -1]).float()

    def feed(self, chosen: Tensor) -> None:
        position = self._mask.sum(1, keepdim=True)
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], 1)
        self._hidden = self._model.model(
            input_ids=chosen[:, None],
            attention_mask=self._mask,
            position_ids=position,
            past_key_values=self._cache,
        ).last_hidden_state


class CausalGenerator(Generator[Prompts]):
    """The model, with its embeddings (the reward is measured on them) and its lower layers frozen."""

    half = True

    def __init__(self, folder: Path, trained_layers: int) -> None:
        self.model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder)
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
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

    def begin(self, prompts: Prompts, repeats: int) -> Continued:
        return Continued(self.model, prompts.single(), repeats)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]

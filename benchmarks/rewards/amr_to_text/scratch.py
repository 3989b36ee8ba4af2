"""A small Transformer from scratch on WordLlama's static vectors: cheap enough for many seeds.

As T5's pretrained embeddings in Jin & Gildea 2022, the vectors compare meanings before any training, are the
generator's own lowest layer, and are trained with it. Roles and brackets of a graph are symbols of their own, with
random vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import normalize, scaled_dot_product_attention

from movers.rewards import token_log_probs

sys.path.insert(0, str(Path(__file__).parents[2]))
from rewards.amr_to_text.data import Pair
from rewards.amr_to_text.generator import Generator

LONGEST = 24  # tokens of an output


class Attention(nn.Module):
    """Attention over keys and values that were computed before, so that they can be cached."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key_value, self.out = nn.Linear(size, size), nn.Linear(size, 2 * size), nn.Linear(size, size)

    def keys_values(self, states: Tensor) -> Tensor:
        """(2, B, heads, n, size / heads)"""
        return self.key_value(states).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def forward(self, states: Tensor, keys_values: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        query = self.query(states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        keys, values = keys_values
        attended = scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal)
        return self.out(attended.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Normalisation before each part (Xiong et al. 2020); with `across`, attention to the graph too."""

    def __init__(self, size: int, heads: int, dropout: float, across: bool) -> None:
        super().__init__()
        self.itself = Attention(size, heads)
        self.across = Attention(size, heads) if across else None
        self.forward_part = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3 if across else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, states: Tensor, mask: Tensor | None, memory: Tensor | None = None, past: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """New states (B, n, d) and the layer's keys and values; `mask` is that of the graph."""
        inner = self.norms[0](states)
        cached = self.itself.keys_values(inner)
        if past is not None:
            cached = torch.cat([past, cached], 3)
        masks = (None, mask) if self.across else (mask, None)
        causal = self.across is not None and states.shape[1] > 1
        states = states + self.dropout(self.itself(inner, cached, masks[0], causal))
        if self.across is not None and memory is not None:
            states = states + self.dropout(self.across(self.norms[1](states), memory, masks[1]))
        return states + self.dropout(self.forward_part(self.norms[-1](states))), cached


class Network(nn.Module):
    """Encoder and decoder between the same vectors (V, d), whose first `words` may be written."""

    def __init__(self, table: Tensor, words: int, size: int, layers: int, dropout: float, heads: int = 4) -> None:
        super().__init__()
        self.vectors = nn.Parameter(table.clone())
        self.words = words
        self.positions = nn.Parameter(0.5 * torch.randn(2, 256, size))
        self.encoder = nn.ModuleList(Layer(size, heads, dropout, across=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(size, heads, dropout, across=True) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.enter, self.leave = nn.Linear(table.shape[1], size), nn.Linear(size, table.shape[1])
        self.bias = nn.Parameter(torch.zeros(words))
        self.dropout = nn.Dropout(dropout)

    def embed(self, ids: Tensor, side: int, begin: int = 0) -> Tensor:
        return self.dropout(self.enter(self.vectors[ids]) + self.positions[side, begin : begin + ids.shape[1]])

    def encode(self, ids: Tensor, mask: Tensor) -> list[Tensor]:
        """Keys and values of the graphs for each layer of the decoder."""
        states = self.embed(ids, 0)
        for layer in self.encoder:
            states, _ = layer(states, mask[:, None, None].bool())
        states = self.norms[0](states)
        return [cast(Attention, layer.across).keys_values(states) for layer in self.decoder]

    def decode(
        self, ids: Tensor, memory: list[Tensor], mask: Tensor, past: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """States (B, n, d) after ids (B, n), and the keys and values of all that is written."""
        states = self.embed(ids, 1, past[0].shape[3] if past else 0)
        written = []
        for number, layer in enumerate(self.decoder):
            states, cached = layer(states, mask[:, None, None].bool(), memory[number], past[number] if past else None)
            written.append(cached)
        return self.norms[1](states), written

    def logits(self, states: Tensor) -> Tensor:
        """Of the tokens (…, words) after states (…, d)."""
        scale = self.vectors.shape[1] ** -0.5  # as in T5, where input and output share their vectors too
        return scale * self.leave(self.dropout(states)) @ self.vectors[: self.words].T + self.bias


@dataclass(frozen=True)
class Graphs:
    """Graphs, encoded with gradient."""

    ids: Tensor  # (B, S)
    mask: Tensor  # (B, S)
    memory: list[Tensor]


class SmallTransformer(Generator[Graphs]):
    """The network with WordLlama's tokenizer; it writes tokens that occur in the sentences it is trained on."""

    half = False
    model: Network

    def __init__(self, parts: Mapping[str, list[Pair]], size: int, layers: int, dropout: float) -> None:
        wheel = distribution("wordllama")
        tokenizer = wheel.locate_file("wordllama/tokenizers/l2_supercat_tokenizer_config.json")
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        (vectors,) = load_file(str(wheel.locate_file("wordllama/weights/l2_supercat_256.safetensors"))).values()
        begin, end = self._tokenizer.encode("<s></s>", add_special_tokens=False).ids
        written = {number for pair in parts["train"] for number in self._pieces(pair.sentence)} - {begin, end}
        pairs = [pair for part in parts.values() for pair in part]
        tokens = {token for pair in pairs for token in pair.graph.split()}
        roles = sorted(token for token in tokens if token in "()" or token[0] == ":")
        texts = [*(pair.sentence for pair in pairs), *tokens.difference(roles)]
        read = {number for text in texts for number in self._pieces(text)} - {*written, end}
        self._pieces_in_order: list[int] = [end, *sorted(written), *sorted({*read, begin})]
        self._places = {number: place for place, number in enumerate(self._pieces_in_order)}
        self.end, self._start = 0, self._places[begin]
        self._roles = {role: len(self._places) + place for place, role in enumerate(roles)}
        drawn = torch.randn(len(roles), vectors.shape[1], generator=torch.Generator().manual_seed(0))
        table = normalize(torch.cat([vectors[self._pieces_in_order].float(), drawn]), dim=1)
        self._table = table * table.shape[1] ** 0.5
        self._known: dict[str, list[int]] = {}
        self._sizes = (1 + len(written), size, layers, dropout)
        self.restart(0)

    def restart(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = Network(self._table, *self._sizes)

    @property
    def table(self) -> Tensor:
        return self.model.vectors.detach()

    @property
    def untrained_table(self) -> Tensor:
        return self._table

    def _pieces(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_graph(self, graph: str) -> list[int]:
        return [
            place
            for token in graph.split()
            for place in ([self._roles[token]] if token in self._roles else self.encode_sentence(token))
        ]

    def encode_sentence(self, sentence: str) -> list[int]:
        if sentence not in self._known:
            self._known[sentence] = [self._places[number] for number in self._pieces(sentence)]
        return self._known[sentence]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self._tokenizer.decode([self._pieces_in_order[place] for place in row]).strip() for row in rows]

    def read_prompts(self, graphs: Sequence[str]) -> Graphs:
        ids, mask = self.pad([self.encode_graph(graph) for graph in graphs])
        return Graphs(ids, mask, self.model.encode(ids, mask))

    def log_probs(self, prompts: Graphs, ids: Tensor, mask: Tensor) -> Tensor:
        repeats = len(ids) // len(prompts.ids)
        before = torch.cat([torch.full((len(ids), 1), self._start), ids[:, :-1]], 1)
        states, _ = self.model.decode(before, *_repeated(prompts.memory, prompts.mask, repeats), [])
        log_probs = token_log_probs(self.model.logits(states[mask.bool()])[None], ids[mask.bool()][None])  # no padding
        return torch.zeros(mask.shape).masked_scatter(mask.bool(), log_probs)

    @torch.no_grad()
    def generate(self, prompts: Graphs, sample: bool, generator: torch.Generator | None = None) -> list[list[int]]:
        training = self.model.training
        self.model.eval()
        memory = self.model.encode(prompts.ids, prompts.mask)  # again, because here nothing is dropped out
        rows, repeats = len(prompts.ids), 2 if sample else 1
        memory, mask = _repeated(memory, prompts.mask, repeats)
        outputs: list[list[int]] = [[] for _ in range(rows * repeats)]
        running = torch.ones(rows * repeats, dtype=torch.bool)
        chosen, past = torch.full((rows * repeats,), self._start), list[Tensor]()
        for _ in range(LONGEST):
            states, past = self.model.decode(chosen[:, None], memory, mask, past)
            logits = self.model.logits(states[:, -1])
            chosen = logits.argmax(-1)
            if sample:
                chosen[rows:] = torch.multinomial(logits[rows:].softmax(-1), 1, generator=generator)[:, 0]
            running &= chosen != self.end
            if not running.any():
                break
            for row in running.nonzero()[:, 0].tolist():
                outputs[row].append(int(chosen[row]))
        self.model.train(training)
        return outputs


def _repeated(memory: Sequence[Tensor], mask: Tensor, times: int) -> tuple[list[Tensor], Tensor]:
    return [torch.cat([part] * times, 1) for part in memory], torch.cat([mask] * times)

"""The cross-encoder of Bao et al. 2020: `[CLS] document [SEP] summary [SEP]` through a transformer.

The paper cuts both texts in parallel to the window, which leaves a summary of a long document some ten tokens. Here the
window holds the summary and the *evidence*: the sentences of the document that share most rare tokens with it. A
summary that would fill more than half of the window is read in parts, each beside its own evidence.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from movers.encoders import load_encoder
from movers.encoders.load import find_device
from movers.errors import InputError
from movers.quality.heads import Network
from movers.quality.units import split_units

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from movers.encoders.contextual import ContextualEncoder

Ids = list[int]


def select_evidence(summary: Ids, sentences: Sequence[Ids], room: int) -> list[int]:
    """Places of the sentences that are read beside a summary, in document order.

    Until the room is full, the next is the one with the largest weight of tokens of the summary that no chosen sentence
    has; a token weighs one over the number of sentences that have it. At last the earliest sentences follow.
    """
    sets = [frozenset(sentence) for sentence in sentences]
    counts = Counter(token for tokens in sets for token in tokens)
    uncovered = set(summary)
    left, chosen = list(range(len(sentences))), []
    while left and room > 0:
        gains = [sum(1 / counts[token] for token in uncovered & sets[place]) for place in left]
        best = left.pop(gains.index(max(gains)))
        uncovered -= sets[best]
        chosen.append(best)
        room -= len(sentences[best])
    return sorted(chosen)


class CrossEncoder(Network):
    """A transformer with frozen embeddings; on its first token the paper's fully connected network (128 neurons)."""

    def __init__(self, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, window: int) -> None:
        super().__init__()
        self.transformer, self.tokenizer, self.window = transformer, tokenizer, window
        self.room = window - 3  # tokens of both texts beside the three special ones
        self.hidden, self.output = nn.Linear(int(transformer.config.hidden_size), 128), nn.Linear(128, 1)
        for name, value in transformer.named_parameters():
            value.requires_grad_(not name.startswith(("embeddings.", "pooler.")))

    def sentence_ids(self, text: str, lang: str = "en") -> list[Ids]:
        """Token ids of the sentences of a text, without special tokens."""
        sentences = split_units(text, "sentences", lang)
        settings = {"add_special_tokens": False, "truncation": False, "verbose": False}
        return self.tokenizer(sentences, **settings)["input_ids"] if sentences else []

    def parts(self, summary: Sequence[Ids]) -> list[Ids]:
        """A summary as parts of equal length, each at most half of the room."""
        ids = [token for sentence in summary for token in sentence]
        count = max(1, -(-len(ids) // (self.room // 2)))
        size = -(-len(ids) // count)
        return [ids[place * size : (place + 1) * size] for place in range(count)]

    def features(self, document: Sequence[Ids], part: Ids) -> dict[str, Ids]:
        """What the transformer reads: the evidence in the document, and a part of the summary."""
        room = self.room - len(part)
        evidence = [token for place in select_evidence(part, document, room) for token in document[place]][:room]
        begin, end = int(self.tokenizer.cls_token_id), int(self.tokenizer.sep_token_id)
        ids = [begin, *evidence, end, *part, end]
        kinds = [0] * (len(evidence) + 2) + [1] * (len(part) + 1)
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": kinds}

    def collate(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Rows of `features`, padded; labels as one tensor."""
        texts = [{name: row[name] for name in ("input_ids", "attention_mask", "token_type_ids")} for row in rows]
        batch = dict(self.tokenizer.pad(texts, padding=True, return_tensors="pt"))
        return batch | ({"labels": torch.tensor([row["labels"] for row in rows])} if "labels" in rows[0] else {})

    def logits(self, **inputs: Tensor) -> Tensor:
        if getattr(self.transformer.config, "type_vocab_size", 0) < 2:
            inputs.pop("token_type_ids")
        first = self.transformer(**inputs).last_hidden_state[:, 0].float()
        return self.output(torch.relu(self.hidden(first))).squeeze(-1)

    def score_rows(self, rows: Sequence[dict[str, Any]], batch_size: int | None = None) -> list[float]:
        """Scores in [0, 1] of rows of `features`; `batch_size` rows per forward pass."""
        device, size = self.output.weight.device, batch_size or 16
        scores: list[float] = []
        for begin in range(0, len(rows), size):
            batch = {name: value.to(device) for name, value in self.collate(rows[begin : begin + size]).items()}
            with torch.inference_mode():
                scores += self.logits(**batch).double().sigmoid().tolist()
        return scores

    def placed(self, device: str | None, dtype: str) -> CrossEncoder:
        """A copy on a device, the transformer in a precision."""
        copied = copy.deepcopy(self).to(find_device(device))
        copied.transformer.to(getattr(torch, dtype))
        return copied


def load_cross_encoder(name: str, window: int) -> CrossEncoder:
    """A cross-encoder on a copy of the named transformer."""
    encoder = cast("ContextualEncoder", load_encoder(name))
    model, tokenizer = copy.deepcopy((encoder.model, encoder.objects[1]))
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise InputError(f"train quality: unit: 'cross' needs an encoder with [CLS] and [SEP], but got {name!r}")
    if not 16 <= window <= encoder.max_window:
        raise InputError(f"train quality: window: expected 16 to {encoder.max_window} tokens, but got {window}")
    return CrossEncoder(model, tokenizer, window)

"""The cross-encoder of Bao et al. 2020: `[CLS] document [SEP] summary [SEP]` through a transformer, fine-tuned.

For training both texts are cut in parallel to the window, as in the paper. For scoring nothing is cut: the document is
read through windows, each beside the summary, and the best window counts.

This module imports torch; import it late.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from movers.encoders import load_encoder

__all__ = ["CrossEncoder", "cut_in_parallel", "document_windows", "load_cross_encoder"]

Batch = dict[str, Tensor]


def cut_in_parallel(document: int, summary: int, room: int) -> tuple[int, int]:
    """Tokens to keep of each text, in proportion to their lengths, at least one of each.

    >>> cut_in_parallel(900, 100, 100), cut_in_parallel(30, 20, 100)
    ((90, 10), (30, 20))
    """
    if document + summary <= room:
        return document, summary
    kept = min(summary, max(1, round(room * summary / (document + summary))))
    return min(document, room - kept), kept


def document_windows(document: int, summary: int, room: int) -> list[tuple[int, int]]:
    """(begin, end) of document windows that fit beside the whole summary, overlapping by half.

    >>> document_windows(10, 2, 6)
    [(0, 4), (2, 6), (4, 8), (6, 10)]
    """
    size = room - summary
    if size < 2:
        raise ValueError(f"quality: a summary of {summary} tokens leaves no room for the document in {room}")
    if document <= size:
        return [(0, document)]
    return [(begin, begin + size) for begin in [*range(0, document - size, size // 2), document - size]]


class CrossEncoder(nn.Module):
    """A transformer with the paper's fully connected network (128 neurons) on its first token."""

    def __init__(self, transformer: Any, tokenizer: Any, window: int, hidden: int = 128) -> None:
        super().__init__()
        self.transformer = transformer
        self.tokenizer = tokenizer
        self.window = window
        self.hidden = nn.Linear(int(transformer.config.hidden_size), hidden)
        self.output = nn.Linear(hidden, 1)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]

    @property
    def room(self) -> int:
        """Tokens of both texts that fit beside the three special ones."""
        return self.window - 3

    def batch_rows(self, rows: Sequence[tuple[list[int], list[int]]]) -> Batch:
        """Token ids of (document, summary) rows, framed and padded."""
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        width = max(len(document) + len(summary) for document, summary in rows) + 3
        ids = torch.full((len(rows), width), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        kinds = torch.zeros((len(rows), width), dtype=torch.long)
        for place, (document, summary) in enumerate(rows):
            row = [begin, *document, end, *summary, end]
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
            kinds[place, len(document) + 2 : len(row)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}

    def collate_cut(self, pairs: Sequence[tuple[str, str]]) -> Batch:
        """A batch of (document, summary) with both cut in parallel to the window."""
        rows = []
        for document, summary in pairs:
            first, second = self._ids(document), self._ids(summary)
            kept = cut_in_parallel(len(first), len(second), self.room)
            rows.append((first[: kept[0]], second[: kept[1]]))
        return self.batch_rows(rows)

    def windows(self, document: str, summary: str) -> list[list[tuple[list[int], list[int]]]]:
        """All of both texts: for each part of the summary the windows of the document, each beside that part."""
        first, second = self._ids(document), self._ids(summary)
        # a summary that would leave the document less than half of the room is read in parts of that size
        step = max(1, self.room // 2)
        parts = [second[begin : begin + step] for begin in range(0, max(1, len(second)), step)]
        return [
            [(first[begin:end], part) for begin, end in document_windows(len(first), len(part), self.room)]
            for part in parts
        ]

    def forward(self, batch: Batch) -> Tensor:
        inputs = dict(batch)
        if getattr(self.transformer.config, "type_vocab_size", 0) < 2:
            inputs.pop("token_type_ids")
        first = self.transformer(**inputs).last_hidden_state[:, 0]
        return self.output(torch.relu(self.hidden(first))).squeeze(-1)


def load_cross_encoder(name: str, window: int | None = None) -> CrossEncoder:
    """A cross-encoder on a copy of the named transformer; `name` may be the folder of a saved one."""
    import copy

    import transformers

    if Path(name).is_dir() and (Path(name) / "transformer.json").is_file():
        folder = Path(name)
        config = transformers.AutoConfig.from_pretrained(folder / "transformer.json")
        model = transformers.AutoModel.from_config(config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
        limit = int(getattr(config, "max_position_embeddings", 512))
    else:
        encoder = load_encoder(name)
        if not hasattr(encoder, "tokenize"):
            raise ValueError("train quality: unit: 'cross' needs a transformer, as 'all-MiniLM-L6-v2'")
        model = copy.deepcopy(encoder.model)
        limit = encoder.max_window
        from movers.encoders import _find_weights

        source, _, _ = _find_weights(name, None)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    chosen = limit if window is None else window
    if not 16 <= chosen <= limit:
        raise ValueError(f"train quality: window: expected 16 to {limit} tokens, but got {chosen}")
    return CrossEncoder(model, tokenizer, chosen)

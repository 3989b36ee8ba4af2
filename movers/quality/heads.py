"""Vectors of a document and a summary → one logit; its sigmoid is the score in [0, 1].

`fc`, `cnn` and `lstm` are the networks of Bao et al. 2020, section 3.2, at the paper's sizes: they read the units of
the document and then those of the summary as one sequence, padded or cut to the lengths that cover 80 % of the training
data.

This module imports torch; import it late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from movers.inputs import check_choice
from movers.quality.model import ModelConfig
from movers.quality.units import Array, TextVectors

__all__ = ["Batch", "CnnHead", "FcHead", "Head", "Loss", "LstmHead", "PairInput",
           "build_head", "sample_losses"]  # fmt: skip

Loss = Literal["cross_entropy", "squared_error"]
Batch = dict[str, Tensor]


def sample_losses(logits: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """(B,) losses of (B,) logits."""
    if loss == "squared_error":
        return (logits.sigmoid() - labels).square()
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


@dataclass(frozen=True)
class PairInput:
    """A document and a summary as vectors."""

    document: TextVectors
    summary: TextVectors


def _as_tensor(vectors: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(vectors)).float()


class Head(nn.Module):
    """What all heads have: `collate` makes a batch of pairs, `forward` gives its (B,) logits."""

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        raise NotImplementedError


class _SequenceHead(Head):
    """Document and summary as one (B, N + M, d) sequence: N units of the document, M of the summary."""

    def __init__(self, dimension: int, document_length: int, summary_length: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.lengths = document_length, summary_length

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        first, second = self.lengths
        sequence = torch.zeros(len(pairs), first + second, self.dimension)
        for row, pair in zip(sequence, pairs, strict=True):
            for text, room in ((pair.document, row[:first]), (pair.summary, row[first:])):
                part = _as_tensor(text.vectors[: len(room)])
                room[: len(part)] = part
        return {"sequence": sequence}


class FcHead(_SequenceHead):
    """One hidden layer of 128 neurons on the flattened sequence."""

    def __init__(self, dimension: int, document_length: int, summary_length: int, hidden: int = 128) -> None:
        super().__init__(dimension, document_length, summary_length)
        self.hidden = nn.Linear((document_length + summary_length) * dimension, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, batch: Batch) -> Tensor:
        return self.output(torch.relu(self.hidden(batch["sequence"].flatten(1)))).squeeze(-1)


class CnnHead(_SequenceHead):
    """128 filters of 5 × d over the sequence, the maximum of each, one output neuron."""

    def __init__(self, dimension: int, document_length: int, summary_length: int, filters: int = 128) -> None:
        super().__init__(dimension, document_length, summary_length)
        self.filters = nn.Conv1d(dimension, filters, kernel_size=5, padding=2)
        self.output = nn.Linear(filters, 1)

    def forward(self, batch: Batch) -> Tensor:
        found = torch.relu(self.filters(batch["sequence"].transpose(1, 2)))
        return self.output(found.amax(dim=-1)).squeeze(-1)


class LstmHead(_SequenceHead):
    """One layer of LSTM units over the sequence (128 for sentences, 25 for words), its last state to one neuron."""

    def __init__(self, dimension: int, document_length: int, summary_length: int, units: int = 128) -> None:
        super().__init__(dimension, document_length, summary_length)
        self.lstm = nn.LSTM(dimension, units, batch_first=True)
        self.output = nn.Linear(units, 1)

    def forward(self, batch: Batch) -> Tensor:
        _, (last, _) = self.lstm(batch["sequence"])
        return self.output(last[-1]).squeeze(-1)


def build_head(config: ModelConfig) -> Head:
    """The head that a model's configuration names, with fresh weights.

    >>> build_head({"head": "fc", "dimension": 4, "document_length": 3, "summary_length": 2}).hidden.in_features
    20
    """
    name, dimension = config["head"], config["dimension"]
    check_choice("reference_free_summary_quality", "head", name, ("fc", "cnn", "lstm"))
    lengths = config["document_length"], config["summary_length"]
    if name == "lstm":
        return LstmHead(dimension, *lengths, units=25 if config["unit"] == "words" else 128)
    return FcHead(dimension, *lengths) if name == "fc" else CnnHead(dimension, *lengths)

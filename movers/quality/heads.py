"""Vectors of a document and a summary → one logit; its sigmoid is the score in [0, 1].

`fc`, `cnn` and `lstm` are the networks of Bao et al. 2020, section 3.2, at the paper's sizes: they read the units of
the document and then those of the summary as one sequence, padded or cut to the lengths that cover 80 % of the training
data. This module imports torch; import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from movers.inputs import check_choice
from movers.quality.units import Array

if TYPE_CHECKING:
    from movers.quality.model import ModelConfig

__all__ = ["CnnHead", "FcHead", "Head", "LstmHead", "Network", "build_head"]


class Network(nn.Module):
    """What all models have, in the form that `transformers.Trainer` trains."""

    def logits(self, **inputs: Tensor) -> Tensor:
        """(B,) logits."""
        raise NotImplementedError

    def forward(
        self, labels: Tensor | None = None, num_items_in_batch: object = None, **inputs: Tensor
    ) -> dict[str, Tensor]:
        """Logits, and the cross-entropy with soft labels in [0, 1] if there are any; Trainer also passes a count."""
        logits = self.logits(**inputs)
        if labels is None:
            return {"logits": logits}
        return {"loss": functional.binary_cross_entropy_with_logits(logits, labels.float()), "logits": logits}


class Head(Network):
    """Document and summary as one (B, N + M, d) sequence: N units of the document, M of the summary."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dimension, self.lengths = config["dimension"], (config["document_length"], config["summary_length"])

    def sequence(self, document: Array, summary: Array) -> Tensor:
        """(N + M, d) of a pair's (n, d) and (m, d) vectors."""
        first = self.lengths[0]
        sequence = torch.zeros(sum(self.lengths), self.dimension)
        for vectors, room in ((document, sequence[:first]), (summary, sequence[first:])):
            if len(vectors):
                room[: len(vectors)] = torch.from_numpy(np.asarray(vectors[: len(room)], np.float32))
        return sequence

    def score(self, document: Array, summary: Array) -> float:
        """Score in [0, 1] of a pair's vectors."""
        with torch.inference_mode():
            return float(self.logits(sequence=self.sequence(document, summary)[None]).double().sigmoid())


class FcHead(Head):
    """One hidden layer of 128 neurons on the flattened sequence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.hidden, self.output = nn.Linear(sum(self.lengths) * self.dimension, 128), nn.Linear(128, 1)

    def logits(self, sequence: Tensor) -> Tensor:  # type: ignore[override]
        return self.output(torch.relu(self.hidden(sequence.flatten(1)))).squeeze(-1)


class CnnHead(Head):
    """128 filters of 5 × d over the sequence, the maximum of each, one output neuron."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.filters, self.output = nn.Conv1d(self.dimension, 128, kernel_size=5, padding=2), nn.Linear(128, 1)

    def logits(self, sequence: Tensor) -> Tensor:  # type: ignore[override]
        return self.output(torch.relu(self.filters(sequence.transpose(1, 2))).amax(dim=-1)).squeeze(-1)


class LstmHead(Head):
    """One layer of LSTM units over the sequence (128 for sentences, 25 for words), its last state to one neuron."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        units = 25 if config["unit"] == "words" else 128
        self.lstm, self.output = nn.LSTM(self.dimension, units, batch_first=True), nn.Linear(units, 1)

    def logits(self, sequence: Tensor) -> Tensor:  # type: ignore[override]
        return self.output(self.lstm(sequence)[1][0][-1]).squeeze(-1)


def build_head(config: ModelConfig) -> Head:
    """The head that a model's configuration names, with fresh weights."""
    heads = {"fc": FcHead, "cnn": CnnHead, "lstm": LstmHead}
    check_choice("reference_free_summary_quality", "head", config["head"], tuple(heads))
    return heads[config["head"]](config)

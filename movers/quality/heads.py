"""Vectors of a document and a summary → one logit; its sigmoid is the score in [0, 1].

The networks of Bao et al. 2020, section 3.2, at the paper's sizes. This module imports torch; import it late.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from movers.quality.model import ModelConfig
from movers.quality.units import Array


class Network(nn.Module):
    """What all models have, in the form that `transformers.Trainer` trains."""

    def logits(self, **inputs: Tensor) -> Tensor:
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
    """Document and summary as one sequence, each padded or cut to a length that covers 80 % of the training data.

    * `fc`: one hidden layer of 128 neurons on the flattened sequence;
    * `cnn`: 128 filters of 5 × d over the sequence, the maximum of each;
    * `lstm`: the last state of one layer of LSTM units (128 for sentences, 25 for words); each to one neuron.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind, self.dimension = config["head"], config["dimension"]
        self.document_length = config["document_length"]
        self.length = self.document_length + config["summary_length"]
        width = 25 if self.kind == "lstm" and config["unit"] == "words" else 128
        self.body: nn.Module = nn.Linear(self.length * self.dimension, width)
        if self.kind == "cnn":
            self.body = nn.Conv1d(self.dimension, width, kernel_size=5, padding=2)
        elif self.kind == "lstm":
            self.body = nn.LSTM(self.dimension, width, batch_first=True)
        self.output = nn.Linear(width, 1)

    def sequence(self, document: Array, summary: Array) -> Tensor:
        """(N + M, d) of a pair's (n, d) and (m, d) vectors."""
        sequence = torch.zeros(self.length, self.dimension)
        rooms = sequence[: self.document_length], sequence[self.document_length :]
        for vectors, room in zip((document, summary), rooms, strict=True):
            if len(vectors):
                room[: len(vectors)] = torch.from_numpy(np.asarray(vectors[: len(room)], np.float32))
        return sequence

    def logits(self, sequence: Tensor) -> Tensor:  # type: ignore[override]
        if self.kind == "lstm":
            return self.output(self.body(sequence)[1][0][-1]).squeeze(-1)
        if self.kind == "cnn":
            return self.output(torch.relu(self.body(sequence.transpose(1, 2))).amax(dim=-1)).squeeze(-1)
        return self.output(torch.relu(self.body(sequence.flatten(1)))).squeeze(-1)

    def score(self, document: Array, summary: Array) -> float:
        with torch.inference_mode():
            return float(self.logits(sequence=self.sequence(document, summary)[None]).double().sigmoid())

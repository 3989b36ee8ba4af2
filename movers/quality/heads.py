"""Vectors of a document and a summary → one logit; its sigmoid is the score in [0, 1].

`fc`, `cnn` and `lstm` are the networks of Bao et al. 2020, section 3.2, at the paper's sizes: they read the units of
the document and then those of the summary as one sequence, padded or cut to the lengths that cover 80 % of the training
data. `align` knows no positions: it reads how summary sentences align with document sentences (`movers.quality.
alignment`), so that nothing is cut or padded.

This module imports torch; import it late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from movers.inputs import check_choice
from movers.quality.alignment import FEATURES, Floats, align
from movers.quality.model import HeadName, ModelConfig
from movers.quality.units import Array, TextVectors

__all__ = ["AlignHead", "Batch", "CnnHead", "FcHead", "Head", "Loss", "LstmHead", "PairInput",
           "build_head", "sample_losses"]  # fmt: skip

Loss = Literal["cross_entropy", "squared_error"]
Batch = dict[str, Tensor]
#: Weights of the features at the start of training; set by hand, by agreement with people on the first 50 documents of
#: SummEval, after a wider search over features and sample weights on the same 50.
PRIOR = dict.fromkeys(FEATURES, 0.15) | {
    "token_match": 0.3, "support": 0.3, "coverage": 0.2, "central_coverage": 0.2, "mean_cosine": 0.24,
    "centrality": 0.16, "distinct_bigrams": 0.55, "concision": 0.23,
}  # fmt: skip


def sample_losses(logits: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """(B,) losses of (B,) logits."""
    if loss == "squared_error":
        return (logits.sigmoid() - labels).square()
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


@dataclass(frozen=True)
class PairInput:
    """A document and a summary as vectors; `features` are those of their alignment, if known."""

    document: TextVectors
    summary: TextVectors
    features: Floats | None = None


def _as_tensor(vectors: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(vectors)).float()


class Head(nn.Module):
    """What all heads have: `collate` makes a batch of pairs, `forward` gives its (B,) logits."""

    #: Whether it reads the tokens inside sentences.
    reads_tokens = False

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        raise NotImplementedError

    def loss(self, batch: Batch, labels: Tensor, kinds: Sequence[str], loss: Loss) -> Tensor:
        """The training loss of samples with the given labels and kinds."""
        return sample_losses(self(batch), labels, loss).mean()


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


# ---------------------------------------------------------------------------------------------------------------------


class Monotone(nn.Module):
    """(B, F) → (B,) numbers that never fall when a feature rises: all weights are positive.

    Made-up faults teach which features matter; without this constraint they also teach that a summary which matches
    its document *too* well was not written by a person, and the score turns against people's judgement.
    """

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.randn(hidden, features) * 0.3 - 1.0)
        self.shift = nn.Parameter(torch.randn(hidden))
        self.outer = nn.Parameter(torch.randn(hidden) * 0.3)
        self.linear = nn.Parameter(torch.full((features,), -2.0))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, features: Tensor) -> Tensor:
        hidden = torch.tanh(features @ functional.softplus(self.inner).T + self.shift)
        return hidden @ functional.softplus(self.outer) + features @ functional.softplus(self.linear) + self.bias


class WeightedSum(nn.Module):
    """(B, F) features → (B,) logits: a sum with positive weights, then a learned rising curve.

    The weights start from :data:`PRIOR` and move slowly: made-up faults are good at telling where the curve rises and
    poor at telling how much people care for one feature against another.
    """

    _slowness = 0.01

    def __init__(self, hidden: int) -> None:
        super().__init__()
        start = torch.tensor([PRIOR[name] for name in FEATURES])
        self.raw = nn.Parameter(torch.log(torch.expm1(start)) / self._slowness)  # the inverse of what weights() does
        self.curve = Monotone(1, hidden)

    def weights(self) -> Tensor:
        """(F,) positive weights of the standardised features."""
        return functional.softplus(self.raw * self._slowness)

    def forward(self, features: Tensor) -> Tensor:
        return self.curve((features @ self.weights()).unsqueeze(-1))


class AlignHead(Head):
    r"""Alignment of sentences and tokens, times how intact the summary's language is.

    .. math::
        p = \sigma(g(x)) \cdot t\Big(\exp\big(-\sum_k u_k\, c_k(u, \ell)\big)\Big)

    :math:`g` is a rising curve over a weighted sum of the alignment features x, all weights positive; :math:`u_k` is
    the mean over the summary's tokens of damage k that a small network sees in the vectors of a token and the next (a
    word that does not belong, a gap); :math:`c_k \ge 0` is what such damage costs, given all damage and the logarithm
    :math:`\ell` of the number of tokens. Without damage the exponential is 1, whatever the length. The tolerance
    :math:`t(v) = 1 - \max(0, 1 - v - \theta) / (1 - \theta)`
    makes the second factor exactly 1 for language that is about as intact as people's own: which of two sound
    summaries is better is left to the alignment.
    """

    reads_tokens = True
    #: Damage below this is no more than good summaries seem to have.
    tolerance = 0.22
    #: Samples whose label is about their language alone: these teach the second factor.
    language_kinds = frozenset({"original", "extract", "add", "delete", "replace", "shuffled"})
    #: Weight of a kind of sample in the score's loss. Faults of language are the second factor's task; extracts and
    #: other documents' summaries say most about the alignment; the first factor must not learn the share of changed
    #: words.
    importance = (
        {"extract": 2.0, "cross": 6.0, "missing": 2.0}
        | dict.fromkeys(("add", "delete", "replace"), 6.0)
        | dict.fromkeys(("repeated", "glued", "broken", "shuffled", "padded"), 0.3)
    )

    def __init__(self, dimension: int, hidden: int = 8, token_hidden: int = 96, kinds: int = 8) -> None:
        super().__init__()
        self.dimension = dimension
        self.quality = WeightedSum(hidden)
        self.norm = nn.LayerNorm(2 * dimension)
        self.token = nn.Sequential(nn.Linear(2 * dimension, token_hidden), nn.ReLU(), nn.Dropout(0.1))
        self.damage = nn.Linear(token_hidden, kinds)
        self.cost = nn.Sequential(nn.Linear(kinds + 1, 32), nn.Tanh(), nn.Linear(32, kinds))
        nn.init.constant_(self.damage.bias, -2.0)
        self.center: Tensor
        self.scale: Tensor
        self.register_buffer("center", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))

    def calibrate(self, features: Floats) -> None:
        """Take centre and spread of the features from (n, 13) measured pairs, before training."""
        self.center.copy_(torch.from_numpy(features.mean(axis=0)))
        self.scale.copy_(torch.from_numpy(features.std(axis=0) + 1e-3))

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        lengths = [max(1, len(pair.summary.tokens)) for pair in pairs]
        tokens = torch.zeros(len(pairs), max(lengths), self.dimension)
        mask = torch.zeros(len(pairs), max(lengths))
        features = torch.zeros(len(pairs), len(FEATURES))
        for row, pair in enumerate(pairs):
            part = _as_tensor(pair.summary.tokens)
            tokens[row, : len(part)] = part
            mask[row, : lengths[row]] = 1
            if not pair.summary.blank and not pair.document.blank:
                known = pair.features if pair.features is not None else align(pair.document, pair.summary).features
                features[row] = torch.from_numpy(known)
        return {"tokens": tokens, "mask": mask, "features": features}

    def token_damage(self, tokens: Tensor) -> Tensor:
        """(B, t, K) damage in [0, 1] that is seen in each of (B, t, d) tokens and the one after it."""
        after = torch.cat([tokens[:, 1:], torch.zeros_like(tokens[:, :1])], dim=1)
        # unit vectors have small entries; the norm brings them to the scale that layers like
        return self.damage(self.token(self.norm(torch.cat([tokens, after], dim=-1)))).sigmoid()

    def parts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B,) logits of the alignment's quality and (B,) how intact the language is, in (0, 1]."""
        return self.quality((batch["features"] - self.center) / self.scale), self.intact(batch)

    def intact(self, batch: Batch) -> Tensor:
        """(B,) how intact the language is, in (0, 1]."""
        mask = batch["mask"].unsqueeze(-1)
        count = mask.sum(1)
        mean = (self.token_damage(batch["tokens"]) * mask).sum(1) / count
        cost = functional.softplus(self.cost(torch.cat([mean, count.log() / 4], dim=-1)))
        return torch.exp(-(mean * cost).sum(-1))

    def combine(self, quality: Tensor, intact: Tensor) -> Tensor:
        """(B,) logits of the product."""
        factor = 1 - functional.relu(1 - intact - self.tolerance) / (1 - self.tolerance)
        log_score = (functional.logsigmoid(quality) + factor.clamp(min=1e-6).log()).clamp(max=-1e-6)
        return log_score - torch.log(-torch.expm1(log_score))  # log p - log(1 - p)

    def forward(self, batch: Batch) -> Tensor:
        return self.combine(*self.parts(batch))

    def loss(self, batch: Batch, labels: Tensor, kinds: Sequence[str], loss: Loss) -> Tensor:
        """The score's loss plus the mean square error of the second factor where the label is about language.

        The score teaches the alignment alone: otherwise it would also explain faults of content by the style of the
        tokens.
        """
        chosen = torch.tensor([kind in self.language_kinds for kind in kinds])
        seen = self.intact({name: value[chosen] for name, value in batch.items()})
        intact = torch.ones(len(kinds))
        intact[chosen] = seen.detach()
        with torch.no_grad():
            intact[~chosen] = self.intact({name: value[~chosen] for name, value in batch.items()})
        quality = self.quality((batch["features"] - self.center) / self.scale)
        weights = torch.tensor([self.importance.get(kind, 1.0) for kind in kinds])
        total = (sample_losses(self.combine(quality, intact), labels, loss) * weights).mean()
        return total + functional.mse_loss(seen, labels[chosen]) if len(seen) else total


def build_head(config: ModelConfig) -> Head:
    """The head that a model's configuration names, with fresh weights.

    >>> build_head({"head": "fc", "dimension": 4, "document_length": 3, "summary_length": 2}).hidden.in_features
    20
    """
    name, dimension = config["head"], config["dimension"]
    check_choice("reference_free_summary_quality", "head", name, get_args(HeadName))
    if name == "align":
        return AlignHead(dimension)
    lengths = config["document_length"], config["summary_length"]
    if name == "lstm":
        return LstmHead(dimension, *lengths, units=25 if config["unit"] == "words" else 128)
    return FcHead(dimension, *lengths) if name == "fc" else CnnHead(dimension, *lengths)

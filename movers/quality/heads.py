"""Vectors of a document and a summary → one logit; its sigmoid is the score in [0, 1].

`fc`, `cnn` and `lstm` are the networks of Bao et al. 2020, section 3.2, at the paper's sizes: they read the units of
the document and then those of the summary as one sequence, padded or cut to the lengths that cover 80 % of the training
data. `align` does not see positions: it aligns summary sentences with document sentences and judges how well each is
supported and how much of the document is covered, so that nothing is cut or padded.

This module imports torch; import it late.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from movers.quality.vectors import EncodedText

__all__ = [
    "FEATURES",
    "AlignHead",
    "Alignment",
    "CnnHead",
    "FcHead",
    "Head",
    "HeadName",
    "LstmHead",
    "PairInput",
    "align",
    "build_head",
    "match_tokens",
]

HeadName = Literal["fc", "cnn", "lstm", "align"]
Batch = dict[str, Tensor]
LossFunction = Callable[[Tensor, Tensor], Tensor]  # (B,) logits, (B,) labels → (B,) losses
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class PairInput:
    """A document and a summary as vectors; `features` holds what `align` measures, if known."""

    document: EncodedText
    summary: EncodedText
    features: NDArray[np.float32] | None = None


def _half_to_float(vectors: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(vectors)).float()


class Head(nn.Module):
    """What all heads have: `collate` makes a batch of pairs, `forward` gives its (B,) logits."""

    #: Whether it reads the tokens inside sentences.
    reads_tokens = False

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        raise NotImplementedError

    def loss(self, batch: Batch, labels: Tensor, kinds: Sequence[str], loss_of: LossFunction) -> Tensor:
        """What training lowers, for samples of the given labels and kinds."""
        return loss_of(self(batch), labels).mean()


class _SequenceHead(Head):
    """Document and summary as one (B, N + M, d) sequence: N units of the document, M of the summary."""

    def __init__(self, dimension: int, document_length: int, summary_length: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.document_length = document_length
        self.summary_length = summary_length

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        size = (len(pairs), self.document_length + self.summary_length, self.dimension)
        sequence = torch.zeros(size)
        for row, pair in enumerate(pairs):
            for text, begin, length in (
                (pair.document, 0, self.document_length),
                (pair.summary, self.document_length, self.summary_length),
            ):
                part = _half_to_float(text.vectors[:length])
                sequence[row, begin : begin + len(part)] = part
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

#: What `align` measures on a pair, each so that more is better (see alignment_features).
FEATURES = (
    "token_match", "weak_token_match", "local_match", "weak_local_match", "weakest_sentence_match",
    "support", "least_support", "coverage", "central_coverage", "mean_cosine", "centrality",
    "distinct_bigrams", "concision",
)  # fmt: skip
#: Weights from which the features' sum starts; set by hand, by agreement with people on the first 50 documents of
#: SummEval, after a wider search over features and sample weights on the same 50.
PRIOR = dict.fromkeys(FEATURES, 0.15) | {
    "token_match": 0.3, "support": 0.3, "coverage": 0.2, "central_coverage": 0.2, "mean_cosine": 0.24,
    "centrality": 0.16, "distinct_bigrams": 0.55, "concision": 0.23,
}  # fmt: skip
_CENTRAL = 5.0  # sharpness of the weights that central document sentences get in `central_coverage`


def _single(vectors: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(vectors, np.float32)


def match_tokens(document: EncodedText, summary: EncodedText, neighbours: int = 3) -> NDArray[np.float32]:
    """How well each token of the summary is found in the document.

    Parameters
    ----------
    document, summary
        With (N, d) and (t, d) token vectors of length 1.
    neighbours
        How many document sentences a summary sentence is laid beside.

    Returns
    -------
    (t, 2)
        Best cosine over all tokens of the document; best cosine over the tokens of the document sentences nearest
        to the token's own sentence. A word taken from elsewhere in the document has a high first and a lower second.
    """
    if not len(summary.tokens) or not len(document.tokens):
        return np.zeros((len(summary.tokens), 2), np.float32)
    cosines = _single(summary.tokens) @ _single(document.tokens).T  # (t, N)
    present, begins = np.unique(document.owners, return_index=True)  # a sentence of unreadable signs has no tokens
    by_sentence = np.maximum.reduceat(cosines, begins, axis=1)  # (t, n)
    nearness = _single(summary.vectors) @ _single(document.vectors[present]).T  # (m, n)
    count = min(neighbours, len(present))
    nearest = np.argpartition(-nearness, count - 1, axis=1)[:, :count]  # (m, count)
    local = np.take_along_axis(by_sentence, nearest[summary.owners], axis=1).max(axis=1)
    return np.stack([by_sentence.max(axis=1), local], axis=1)


def _weakest(values: NDArray[Any], share: float = 0.2) -> float:
    """Mean of the lowest fifth."""
    count = max(1, math.ceil(share * len(values)))
    return float(np.partition(values, count - 1)[:count].mean())


def _distinct_bigrams(sentences: Sequence[str]) -> float:
    words = [word for sentence in sentences for word in _WORD.findall(sentence.lower())]
    pairs = list(zip(words, words[1:], strict=False))
    return len(set(pairs)) / len(pairs) if pairs else 1.0


def _concision(document: EncodedText, summary: EncodedText) -> float:
    """1 − the length of the summary in lengths of the document (in characters), at least 0."""
    lengths = [sum(map(len, text.units)) for text in (summary, document)]
    return max(0.0, 1.0 - lengths[0] / max(1, lengths[1]))


@dataclass(frozen=True)
class Alignment:
    """A summary of m sentences laid beside a document of n.

    Attributes
    ----------
    cosines : (m, n)
    sentence_match : (m,) mean local match of a sentence's tokens
    features : (13,) in the order of FEATURES
    """

    cosines: NDArray[np.float32]
    sentence_match: NDArray[np.float32]
    features: NDArray[np.float32]

    @property
    def support(self) -> NDArray[np.float32]:
        """(m,) the best match of each summary sentence in the document."""
        return self.cosines.max(axis=1)

    @property
    def coverage(self) -> NDArray[np.float32]:
        """(n,) the best match of each document sentence in the summary."""
        return self.cosines.max(axis=0)


def align(document: EncodedText, summary: EncodedText) -> Alignment:
    r"""Align the sentences of a summary with those of a document and measure the alignment.

    With unit vectors :math:`s_j` of the m summary sentences and :math:`d_i` of the n document sentences,
    :math:`C_{ji} = s_j \cdot d_i`:

    * support of a summary sentence :math:`\max_i C_{ji}`; its mean and minimum over j are features;
    * coverage of a document sentence :math:`\max_j C_{ji}`; its mean over i, plain and weighted by
      :math:`\mathrm{softmax}(5\, d_i \cdot \bar d)`;
    * the cosine of the means, and the mean of :math:`s_j \cdot \bar d`;
    * the best matches of tokens (match_tokens): mean, mean of the lowest fifth, lowest sentence;
    * distinctness: the share of distinct pairs of neighbouring words; concision: the share of the document's length
      that the summary saves.

    None hangs on the order of the document's sentences, nor on how many pairs are scored at once.
    """
    source, target = _single(document.vectors), _single(summary.vectors)
    cosines = target @ source.T
    match = match_tokens(document, summary)
    if not len(match):  # signs that the tokenizer does not know: nothing is matched
        match = np.zeros((1, 2), np.float32)
        owners = np.zeros(1, np.int64)
    else:
        owners = summary.owners
    counts = np.bincount(owners, minlength=len(target))
    sentence_match = np.bincount(owners, match[:, 1], minlength=len(target)) / np.maximum(counts, 1)
    filled = sentence_match[counts > 0]
    center = source.mean(axis=0)
    center = center / max(float(np.linalg.norm(center)), 1e-12)
    mean = target.mean(axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-12)
    coverage = cosines.max(axis=0)
    weights = np.exp(_CENTRAL * (source @ center))
    support = cosines.max(axis=1)
    features = [
        match[:, 0].mean(), _weakest(match[:, 0]), match[:, 1].mean(), _weakest(match[:, 1]), filled.min(),
        support.mean(), support.min(), coverage.mean(), (coverage * weights).sum() / weights.sum(), mean @ center,
        (target @ center).mean(), _distinct_bigrams(summary.units), _concision(document, summary),
    ]  # fmt: skip
    return Alignment(cosines, sentence_match.astype(np.float32), np.asarray(features, np.float32))


class _Monotone(nn.Module):
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


class _WeightedSum(nn.Module):
    """(B, F) features → (B,) logits: a sum with positive weights, then a learned rising curve.

    The weights start from :data:`PRIOR` and move slowly: made-up faults are good at telling where the curve rises and
    poor at telling how much people care for one feature against another.
    """

    _slowness = 0.01

    def __init__(self, hidden: int) -> None:
        super().__init__()
        start = torch.tensor([PRIOR[name] for name in FEATURES])
        self.raw = nn.Parameter(torch.log(torch.expm1(start)) / self._slowness)  # the inverse of what weights() does
        self.curve = _Monotone(1, hidden)

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

    def __init__(self, dimension: int, hidden: int = 8, token_hidden: int = 96, kinds: int = 8) -> None:
        super().__init__()
        self.dimension = dimension
        self.quality = _WeightedSum(hidden)
        self.norm = nn.LayerNorm(2 * dimension)
        self.token = nn.Sequential(nn.Linear(2 * dimension, token_hidden), nn.ReLU(), nn.Dropout(0.1))
        self.damage = nn.Linear(token_hidden, kinds)
        self.cost = nn.Sequential(nn.Linear(kinds + 1, 32), nn.Tanh(), nn.Linear(32, kinds))
        nn.init.constant_(self.damage.bias, -2.0)
        self.center: Tensor
        self.scale: Tensor
        self.register_buffer("center", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))

    def calibrate(self, features: NDArray[np.float32]) -> None:
        """Take centre and spread of the features from (n, 13) measured pairs, before training."""
        self.center.copy_(torch.from_numpy(features.mean(axis=0)))
        self.scale.copy_(torch.from_numpy(features.std(axis=0) + 1e-3))

    def collate(self, pairs: Sequence[PairInput]) -> Batch:
        lengths = [max(1, len(pair.summary.tokens)) for pair in pairs]
        tokens = torch.zeros(len(pairs), max(lengths), self.dimension)
        mask = torch.zeros(len(pairs), max(lengths))
        features = torch.zeros(len(pairs), len(FEATURES))
        for row, pair in enumerate(pairs):
            part = _half_to_float(pair.summary.tokens)
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
        # log p - log(1 - p): the loop works with logits
        return log_score - torch.log(-torch.expm1(log_score))

    def forward(self, batch: Batch) -> Tensor:
        return self.combine(*self.parts(batch))

    #: What a kind of sample counts in the score's loss. Faults of language are the second factor's business; extracts
    #: and other documents' summaries say most about the alignment; and the first factor shall leave the share of
    #: changed words to the second.
    importance = (
        {"extract": 2.0, "cross": 6.0, "missing": 2.0}
        | dict.fromkeys(("add", "delete", "replace"), 6.0)
        | dict.fromkeys(("repeated", "glued", "broken", "shuffled", "padded"), 0.3)
    )

    def loss(self, batch: Batch, labels: Tensor, kinds: Sequence[str], loss_of: LossFunction) -> Tensor:
        """The score's loss, and beside it the mean square error of the second factor where the label is about it.

        The score teaches the alignment alone: left to itself it would also explain faults of content by the style of
        the tokens.
        """
        chosen = torch.tensor([kind in self.language_kinds for kind in kinds])
        seen = self.intact({name: value[chosen] for name, value in batch.items()})
        intact = torch.ones(len(kinds))
        intact[chosen] = seen.detach()
        with torch.no_grad():
            intact[~chosen] = self.intact({name: value[~chosen] for name, value in batch.items()})
        quality = self.quality((batch["features"] - self.center) / self.scale)
        weights = torch.tensor([self.importance.get(kind, 1.0) for kind in kinds])
        loss = (loss_of(self.combine(quality, intact), labels) * weights).mean()
        return loss + functional.mse_loss(seen, labels[chosen]) if len(seen) else loss


def build_head(config: Mapping[str, Any]) -> Head:
    """The head that a model's configuration names, with fresh weights.

    >>> build_head({"head": "fc", "dimension": 4, "document_length": 3, "summary_length": 2}).hidden.in_features
    20
    """
    name, dimension = config["head"], int(config["dimension"])
    if name == "align":
        return AlignHead(dimension)
    lengths = int(config["document_length"]), int(config["summary_length"])
    if name == "fc":
        return FcHead(dimension, *lengths)
    if name == "cnn":
        return CnnHead(dimension, *lengths)
    if name == "lstm":
        return LstmHead(dimension, *lengths, units=25 if config["unit"] == "words" else 128)
    raise ValueError(f"quality: head: expected one of fc, cnn, lstm, align, but got {name!r}")

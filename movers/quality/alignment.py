"""How a summary aligns with its document: which sentences support it, what it covers, and 13 measures of that.

Nothing here is learned, and nothing depends on the order of the document's sentences or on the other pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from movers.quality.units import Array, TextVectors

__all__ = ["FEATURES", "SummaryAlignment", "align", "match_tokens"]

Floats = NDArray[np.float32]
#: Measures of an alignment, each so that more is better.
FEATURES = (
    "token_match", "weak_token_match", "local_match", "weak_local_match", "weakest_sentence_match",
    "support", "least_support", "coverage", "central_coverage", "mean_cosine", "centrality",
    "distinct_bigrams", "concision",
)  # fmt: skip
_CENTRAL = 5.0  # sharpness of the weights that central document sentences get in `central_coverage`
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SummaryAlignment:
    """A summary of m sentences beside a document of n.

    Attributes
    ----------
    cosines : (m, n)
    sentence_match : (m,) mean local match of a sentence's tokens
    features : (13,) in the order of FEATURES
    """

    cosines: Floats
    sentence_match: Floats
    features: Floats

    @property
    def named_features(self) -> dict[str, float]:
        return dict(zip(FEATURES, self.features.tolist(), strict=True))

    def describe(self, summary: Sequence[str], document: Sequence[str]) -> dict[str, object]:
        """Which summary sentences the document supports, and which of its sentences are covered."""
        source, target = self.cosines.argmax(axis=1).tolist(), self.cosines.argmax(axis=0).tolist()
        support, coverage = self.cosines.max(axis=1).tolist(), self.cosines.max(axis=0).tolist()
        match = self.sentence_match.tolist()
        return {
            "summary": [
                {"text": text, "support": support[j], "nearest": source[j], "token_match": match[j]}
                for j, text in enumerate(summary)
            ],
            "document": [
                {"text": text, "coverage": coverage[i], "nearest": target[i]} for i, text in enumerate(document)
            ],
        }


def match_tokens(document: TextVectors, summary: TextVectors, neighbours: int = 3) -> Floats:
    """How well each token of the summary is found in the document.

    Parameters
    ----------
    document, summary
        With (N, d) and (t, d) token vectors of length 1.
    neighbours
        Number of document sentences that a summary sentence is compared with.

    Returns
    -------
    (t, 2)
        Best cosine over all tokens of the document; best cosine over the tokens of the document sentences nearest
        to the token's own sentence. A word taken from elsewhere in the document has a high first and a lower second.
    """
    if not len(summary.tokens) or not len(document.tokens):
        return np.zeros((len(summary.tokens), 2), np.float32)
    cosines = np.asarray(summary.tokens, np.float32) @ np.asarray(document.tokens, np.float32).T  # (t, N)
    present, begins = np.unique(document.owners, return_index=True)  # a sentence of unreadable signs has no tokens
    by_sentence = np.maximum.reduceat(cosines, begins, axis=1)  # (t, n)
    nearness = np.asarray(summary.vectors, np.float32) @ np.asarray(document.vectors[present], np.float32).T  # (m, n)
    count = min(neighbours, len(present))
    nearest = np.argpartition(-nearness, count - 1, axis=1)[:, :count]  # (m, count)
    local = np.take_along_axis(by_sentence, nearest[summary.owners], axis=1).max(axis=1)
    return np.stack([by_sentence.max(axis=1), local], axis=1)


def align(document: TextVectors, summary: TextVectors) -> SummaryAlignment:
    r"""Align the sentences of a summary with those of a document and measure the alignment.

    With unit vectors :math:`s_j` of the m summary sentences and :math:`d_i` of the n document sentences,
    :math:`C_{ji} = s_j \cdot d_i`:

    * support of a summary sentence :math:`\max_i C_{ji}`; its mean and minimum over j are features;
    * coverage of a document sentence :math:`\max_j C_{ji}`; its mean over i, plain and weighted by
      :math:`\mathrm{softmax}(5\, d_i \cdot \bar d)`;
    * the cosine of the means, and the mean of :math:`s_j \cdot \bar d`;
    * the best matches of tokens (`match_tokens`): mean, mean of the lowest fifth, lowest sentence;
    * the share of distinct bigrams, and the share of the document's length that the summary saves.
    """
    source, target = np.asarray(document.vectors, np.float32), np.asarray(summary.vectors, np.float32)
    cosines = target @ source.T
    support, coverage = cosines.max(axis=1), cosines.max(axis=0)
    match, owners = match_tokens(document, summary), summary.owners
    if not len(match):  # characters that the tokenizer does not know: nothing is matched
        match, owners = np.zeros((1, 2), np.float32), np.zeros(1, np.int64)
    counts = np.bincount(owners, minlength=len(target))
    sentence_match = np.bincount(owners, match[:, 1], minlength=len(target)) / np.maximum(counts, 1)
    center, mean = _direction(source), _direction(target)
    weights = np.exp(_CENTRAL * (source @ center))
    features = [
        match[:, 0].mean(), _weakest(match[:, 0]), match[:, 1].mean(), _weakest(match[:, 1]),
        sentence_match[counts > 0].min(), support.mean(), support.min(), coverage.mean(),
        (coverage * weights).sum() / weights.sum(), mean @ center, (target @ center).mean(),
        _distinct_bigrams(summary.units), _concision(document.units, summary.units),
    ]  # fmt: skip
    return SummaryAlignment(cosines, sentence_match.astype(np.float32), np.asarray(features, np.float32))


def _direction(vectors: Floats) -> Floats:
    """Mean of (n, d) vectors, as a unit vector."""
    mean = vectors.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


def _weakest(values: Array, share: float = 0.2) -> float:
    """Mean of the lowest fifth."""
    count = max(1, math.ceil(share * len(values)))
    return float(np.partition(values, count - 1)[:count].mean())


def _distinct_bigrams(sentences: Sequence[str]) -> float:
    words = [word for sentence in sentences for word in _WORD.findall(sentence.lower())]
    bigrams = list(zip(words, words[1:], strict=False))
    return len(set(bigrams)) / len(bigrams) if bigrams else 1.0


def _concision(document: Sequence[str], summary: Sequence[str]) -> float:
    """1 − the length of the summary in lengths of the document (in characters), at least 0."""
    return max(0.0, 1.0 - sum(map(len, summary)) / max(1, sum(map(len, document))))

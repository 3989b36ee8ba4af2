"""How a summary aligns with its document: which sentences support it, what it covers, which tokens it shares.

Nothing here is learned, and nothing depends on the other pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from movers.quality.units import TextVectors

__all__ = ["SummaryAlignment", "align"]

Floats = NDArray[np.floating]
_CENTRAL = 5.0  # sharpness of the weights that central sentences of the document get
_EARLY = 5.0  # sentences after which the weight of being early has fallen to 1/e


@dataclass(frozen=True)
class SummaryAlignment:
    """A summary of m sentences and t tokens beside a document of n sentences.

    Attributes
    ----------
    cosines : (m, n) of sentences
    token_match : (t,) best cosine of each token over all tokens of the document
    known_joins : (t + m,) whether the document has the token and the next side by side too
    weights : (n,) how much each sentence of the document matters; they sum to 1
    """

    cosines: Floats
    token_match: Floats
    known_joins: NDArray[np.bool_]
    weights: Floats

    @property
    def support(self) -> Floats:
        """(m,) best cosine of each sentence of the summary."""
        return self.cosines.max(axis=1)

    @property
    def coverage(self) -> Floats:
        """(n,) best cosine of each sentence of the document."""
        return self.cosines.max(axis=0)

    def describe(self, summary: Sequence[str], document: Sequence[str]) -> dict[str, list[dict[str, object]]]:
        """Which summary sentences the document supports, and which of its sentences are covered."""
        source, target = self.cosines.argmax(axis=1).tolist(), self.cosines.argmax(axis=0).tolist()
        support, coverage, weights = self.support.tolist(), self.coverage.tolist(), self.weights.tolist()
        return {
            "summary": [{"text": text, "support": support[j], "nearest": source[j]} for j, text in enumerate(summary)],
            "document": [
                {"text": text, "coverage": coverage[i], "nearest": target[i], "weight": weights[i]}
                for i, text in enumerate(document)
            ],
        }


def align(document: TextVectors, summary: TextVectors) -> SummaryAlignment:
    r"""Align the sentences and tokens of a summary with those of a document.

    A sentence of the document matters for two reasons, each half of its weight: it is central,
    :math:`\mathrm{softmax}(5\, d_i \cdot \bar d)` with unit vectors :math:`d_i` and their mean direction
    :math:`\bar d`, and it comes early, in proportion to :math:`e^{-i/5}`.
    """
    source, target = np.asarray(document.vectors, np.float32), np.asarray(summary.vectors, np.float32)
    mean = source.mean(axis=0)
    central = np.exp(_CENTRAL * (source @ mean) / max(float(np.linalg.norm(mean)), 1e-12))
    early = np.exp(-np.arange(len(source)) / _EARLY)
    if len(summary.tokens) and len(document.tokens):
        tokens = np.asarray(summary.tokens, np.float32) @ np.asarray(document.tokens, np.float32).T
        match = tokens.max(axis=1)
    else:  # characters that the tokenizer does not know: nothing is matched
        match = np.zeros(len(summary.tokens), np.float32)
    return SummaryAlignment(
        target @ source.T,
        match,
        np.isin(summary.joins, document.joins),
        (central / central.sum() + early / early.sum()) / 2,
    )

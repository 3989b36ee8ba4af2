r"""What is good about a summary: faithfulness, coverage, non-repetition, and their product, the score.

.. math:: \mathrm{score} = \mathrm{faithfulness} \cdot \mathrm{coverage} \cdot \mathrm{non\_repetition}

* **faithfulness** is the mean over the summary's sentences, each with its share of the tokens, of
  :math:`\tfrac12 (t_j + s_j) \cdot c^{u_j}`: :math:`t_j` is the mean of its tokens' best cosines in the document, from
  0 for unrelated texts to 1; :math:`s_j` is its best cosine with a sentence of the document, full from `PARAPHRASE` on;
  :math:`u_j` counts its names, numbers and negations that the document does not have.
* **coverage** is the mean of two shares of the document: of its words (each as often as it occurs) that the summary
  has, and of its sentences, each by its best cosine with a sentence of the summary and weighted by
  :math:`e^{-i/n_0}`: what comes early in a text matters most.
* **non_repetition** is the share of the summary's word pairs that it did not have before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from movers.quality.facts import WORD, unknown_facts
from movers.quality.units import TextVectors
from movers.texts import repeated_share

Floats = NDArray[np.floating]
#: In the order in which results have them.
ASPECTS = ("faithfulness", "coverage", "non_repetition")
#: Mean token match of a summary with the document of another one, on the training corpora.
UNRELATED = 0.45
#: Cosine from which on a sentence counts as a paraphrase of a sentence of the document.
PARAPHRASE = 0.5
#: What is left of a sentence's faithfulness with each fact that the document does not have.
LEFT_WITH_UNKNOWN = 0.5
#: Sentences after which the weight of a document's sentence has fallen to 1/e.
EARLY = 5.0


@dataclass(frozen=True)
class Aspects:
    """The aspects of a summary of m sentences beside a document of n, each in [0, 1], and what they were made of."""

    faithfulness: float
    coverage: float
    non_repetition: float
    sentences: Floats  # (m,) faithfulness of each sentence of the summary
    unknown: tuple[list[str], ...]  # for each sentence, its names, numbers and negations that the document lacks
    cosines: Floats  # (m, n) of sentences

    @property
    def parts(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in ASPECTS}

    @property
    def score(self) -> float:
        return self.faithfulness * self.coverage * self.non_repetition

    def describe(self, summary: TextVectors, document: TextVectors) -> dict[str, object]:
        """Every sentence of the summary with its support and unknown facts, and which of the document are covered."""
        rows = zip(summary.units, self.cosines, self.sentences.tolist(), self.unknown, strict=True)
        of_summary = [
            {
                "text": text,
                "support": float(row.max()),
                "nearest": int(row.argmax()),
                "faithfulness": value,
                "unknown": new,
            }
            for text, row, value, new in rows
        ]
        of_document = [
            {"text": text, "coverage": float(column.max()), "nearest": int(column.argmax()),
             "covered": bool(column.max() >= PARAPHRASE)}
            for text, column in zip(document.units, self.cosines.T, strict=True)
        ]  # fmt: skip
        return {"summary": of_summary, "document": of_document, "repeated": 1 - self.non_repetition}


def _token_match(document: TextVectors, summary: TextVectors) -> Floats:
    """(t,) best cosine of each token of the summary over all tokens of the document."""
    if not len(summary.tokens) or not len(document.tokens):  # characters that the tokenizer does not know
        return np.zeros(len(summary.tokens), np.float32)
    return (np.asarray(summary.tokens, np.float32) @ np.asarray(document.tokens, np.float32).T).max(axis=1)


def measure_aspects(document: TextVectors, summary: TextVectors) -> Aspects:
    """Aspects of a summary; neither text is blank."""
    cosines = np.asarray(summary.vectors, np.float32) @ np.asarray(document.vectors, np.float32).T
    sizes = np.bincount(summary.owners, minlength=len(summary.units))
    match = np.bincount(summary.owners, _token_match(document, summary), minlength=len(sizes)) / np.maximum(sizes, 1)
    tokens = np.clip((match - UNRELATED) / (1 - UNRELATED), 0, 1)
    support = np.clip(cosines.max(axis=1) / PARAPHRASE, 0, 1)
    unknown = tuple(unknown_facts(sentence, document.words) for sentence in summary.words.sentences)
    penalties = LEFT_WITH_UNKNOWN ** np.array([len(facts) for facts in unknown])
    sentences = np.where(sizes > 0, (tokens + support) / 2 * penalties, 0.0)

    weights = np.exp(-np.arange(len(document.units)) / EARLY)
    covered = float(weights @ np.clip(cosines.max(axis=0), 0, 1) / weights.sum())
    return Aspects(
        float(sentences @ sizes / max(1, sizes.sum())),
        (document.words.covered_by(summary.words) + covered) / 2,
        1 - repeated_share(WORD.findall(" ".join(summary.units).lower())),
        sentences,
        unknown,
        cosines,
    )

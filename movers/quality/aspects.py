r"""What is good about a summary: faithfulness, coverage, fluency, and the score they give together.

With the token match :math:`t` (best cosine in the document) and the joins (a token and the next) of a sentence j:

.. math::
    \mathrm{faithfulness} &= \sum_j w_j \, \tfrac12 \Big(\frac{\bar t_j - t_0}{1 - t_0} + \kappa_j\Big)
        \Big(1 - \tfrac13\Big)^{u_j} \\
    \mathrm{coverage} &= \tfrac12\, c_{words} + \tfrac12 \sum_i v_i \max_j s_j \cdot d_i \\
    \mathrm{fluency} &= \exp\Big(-6 \big(b + \tfrac12 (1 - \bar t) + \tfrac1{20} e + \tfrac1{10} r_4
        + \tfrac12 r_1\big)\Big) \\
    \mathrm{score} &= \sqrt[3]{\mathrm{faithfulness} \cdot \mathrm{coverage} \cdot \mathrm{fluency}}
        \cdot (1 - r_2) \cdot \mathrm{brevity}

With a language model, whose likelihood :math:`p` is the geometric mean of the probabilities of the summary's tokens
after the document, repetitions left out (`movers.quality.lm`), every aspect :math:`a` becomes
:math:`\sqrt[3]{a^2 \, p^{1/5}}`: the exponent puts the likelihood on the scale of the aspects, so that they keep their
level. As the likelihood sees what faithfulness and fluency see, coverage then counts twice in the mean of which the
score is made. Written out, the likelihood takes the place of half of faithfulness and fluency
(:math:`q = \tfrac12`), and their balance with coverage stays as it is without a language model:

.. math::
    \mathrm{score} = \sqrt[3]{(\mathrm{faithfulness} \cdot \mathrm{fluency})^{1-q} \cdot \mathrm{coverage}
        \cdot p^{2q/5}} \cdot (1 - r_2) \cdot \mathrm{brevity}

* :math:`w_j` is the sentence's share of the tokens, :math:`\kappa_j` the share of its joins that the document has too,
  :math:`u_j` the number of its names, numbers and negations that the document does not have, or of its other new words
  with a token below :math:`t_0`, whichever is more; :math:`t_0 = 0.45` is what the tokens of unrelated texts have;
* :math:`c_{words}` is the share of the document's words that the summary has, :math:`v_i` how much a sentence of the
  document matters;
* :math:`b` is the mean over the joins of the probability that a join is broken (a small network,
  `movers.quality.joins`), 0 where the document has the join; :math:`e` the same for the ends of sentences alone;
* :math:`r_k` is the share of repeated runs of k words (:math:`r_1`: of short runs that follow themselves at once);
  `brevity` is 1 up to half of the document's length or 300 characters, and falls to a twentieth for a whole copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from movers.quality.alignment import Floats, SummaryAlignment, align
from movers.quality.facts import repeated_share, split_words, unknown_facts
from movers.quality.units import TextVectors

if TYPE_CHECKING:
    from movers.quality.lm import Likelihood

__all__ = ["ASPECTS", "LIKELIHOOD_SCALE", "REPLACED", "Aspects", "measure_aspects"]

#: In the order in which results have them.
ASPECTS = ("faithfulness", "coverage", "fluency")
#: The power that puts the likelihood on the scale of faithfulness and fluency: with it, the median summary that people
#: wrote for documents of the training corpora has the same value in both (`benchmarks/quality/RESULTS.md`).
LIKELIHOOD_SCALE = 0.2
#: Share of faithfulness and fluency in the score whose place the likelihood takes. More of it helps where people judge
#: the language of copied sentences, and harms where they reward coverage or judge the facts of free wording.
REPLACED = 0.5
_SHARE = 2 * REPLACED / 3  # of the likelihood in each aspect
_TIMES = 1 / (1 - REPLACED)  # that coverage counts beside faithfulness and fluency, for that share
_UNRELATED = 0.45  # mean token match of a summary with another document
_CUT = 1 / 3  # what a sentence loses of its faithfulness with each unknown fact
_SHARPNESS = 6.0  # of fluency
_STRANGE = 0.5  # what tokens in a context that the document does not have cost


@dataclass(frozen=True)
class Aspects:
    """The aspects of a summary, each in [0, 1], and of each of its sentences.

    Attributes
    ----------
    faithfulness, coverage, fluency : float
    repeated : float
        Share of the pairs of words that the summary had before.
    brevity : float
        1 unless the summary is longer than half of its document.
    sentences : (m,) faithfulness of each sentence
    unknown : for each sentence, its names, numbers and negations that the document does not have
    alignment : SummaryAlignment
    likelihood : float or None
        Geometric mean of the probabilities that a language model gives all tokens of the summary.
    """

    faithfulness: float
    coverage: float
    fluency: float
    repeated: float
    brevity: float
    sentences: Floats
    unknown: tuple[list[str], ...]
    alignment: SummaryAlignment
    likelihood: float | None = None

    @property
    def parts(self) -> dict[str, float]:
        """What the result has beside the score."""
        likely = {} if self.likelihood is None else {"likelihood": self.likelihood}
        return {**{name: getattr(self, name) for name in ASPECTS}, **likely}

    @property
    def score(self) -> float:
        times = 1 if self.likelihood is None else _TIMES
        mean = (self.faithfulness * self.coverage**times * self.fluency) ** (1 / (2 + times))
        return mean * (1 - self.repeated) * self.brevity

    def describe(self, summary: Sequence[str], document: Sequence[str]) -> dict[str, object]:
        """The alignment, with each sentence's faithfulness and unknown facts, and what lowered the score beyond it."""
        told = self.alignment.describe(summary, document)
        for entry, value, unknown in zip(told["summary"], self.sentences.tolist(), self.unknown, strict=True):
            entry.update(faithfulness=value, unknown=unknown)
        return {**told, "repeated": self.repeated, "brevity": self.brevity}


def measure_aspects(
    document: TextVectors, summary: TextVectors, broken: Floats, likelihood: Likelihood | None = None
) -> Aspects:
    """Aspects of a summary; `broken` has the (t + m,) probabilities that its joins are broken."""
    found = align(document, summary)
    sizes = np.bincount(summary.owners, minlength=len(summary.units))
    of_join = np.repeat(np.arange(len(sizes)), sizes + 1)
    match = np.bincount(summary.owners, found.token_match, minlength=len(sizes)) / np.maximum(sizes, 1)
    known = np.bincount(of_join, found.known_joins) / (sizes + 1)
    unknown = tuple(unknown_facts(sentence, document.words) for sentence in summary.words.sentences)
    alien = np.bincount(summary.owners, found.token_match < _UNRELATED, minlength=len(sizes))
    # an alien token counts only beside a word that the document does not have, and not a second time for a name
    new = [sum(not document.words.has(word) for word in words) for words in summary.words.sentences]
    faults = np.maximum([len(facts) for facts in unknown], np.minimum(alien, new))
    base = (np.clip((match - _UNRELATED) / (1 - _UNRELATED), 0, 1) + known) / 2
    sentences = np.where(sizes > 0, base, 0.0) * (1 - _CUT) ** faults
    shares = sizes / max(1, sizes.sum())

    nearest = np.clip(found.coverage, 0, 1)
    coverage = (document.words.covered_by(summary.words) + float(found.weights @ nearest)) / 2

    text = " ".join(summary.units)
    unseen = broken * ~found.known_joins
    ends = np.cumsum(sizes + 1) - 1
    damage = (
        float((np.bincount(of_join, unseen) / (sizes + 1)) @ shares)
        + _STRANGE * (1 - float(match @ shares))
        + float(broken[ends].mean()) / 20
        + repeated_share(text, 4) / 10
        + _stutter(text) / 2
    )
    faithfulness, fluency = float(sentences @ shares), float(np.exp(-_SHARPNESS * damage))
    share, factor = (0.0, 1.0) if likelihood is None else (_SHARE, likelihood.new ** (LIKELIHOOD_SCALE * _SHARE))
    return Aspects(
        faithfulness ** (1 - share) * factor,
        min(1.0, coverage) ** (1 - share) * factor,
        fluency ** (1 - share) * factor,
        repeated_share(text),
        _brevity(sum(map(len, summary.units)), sum(map(len, document.units))),
        sentences,
        unknown,
        found,
        None if likelihood is None else likelihood.whole,
    )


def _brevity(summary: int, document: int) -> float:
    """1 for a summary of up to half of the document's length or 300 characters, falling to 1/20 towards a whole copy.

    >>> _brevity(300, 350), _brevity(500, 1000), _brevity(750, 1000), _brevity(1000, 1000)
    (1.0, 1.0, 0.5, 0.05)
    """
    allowed = max(document / 2, 300)
    if summary <= allowed or document <= allowed:
        return 1.0
    return max(0.05, (document - summary) / (document - allowed))


def _stutter(text: str) -> float:
    """Share of the words at which the last one, two or three words are said again at once.

    >>> _stutter("the dog the dog ran ran")
    0.3333333333333333
    """
    words = split_words(text)
    again = sum(
        words[place : place + size] == words[place + size : place + 2 * size]
        for size in (1, 2, 3)
        for place in range(len(words) - 2 * size + 1)
    )
    return again / max(1, len(words))

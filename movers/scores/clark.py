r"""Word, Sentence, and Sentence + Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019).

A text is a bag of vectors with masses. The distance between two texts is the minimum cost of transforming one bag into
the other:

.. math::
    \mathrm{WMD}(A, B) = \min_{T \ge 0} \sum_{ij} T_{ij} \|v_i - v_j\|_2
    \quad s.t. \quad T 1 = d_A, \; T^\top 1 = d_B \qquad (2)

.. math:: \mathrm{WMS}(A, B) = \exp(-\mathrm{WMD}(A, B) / \tau) \qquad (3)

In the paper :math:`\tau = 1`. By default :math:`\tau` is the mean distance between unrelated texts under the options of
the call, so that unrelated texts score about .37 whatever the scale of the vectors.

The three metrics differ in the bag: words (`word_bag`, Eq. 1), sentences (`sentence_bag`, Eq. 4), or both
(`sentence_and_word_bag`, Eq. 5).

Reference: E. Clark, A. Celikyilmaz, N. A. Smith. Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence
Texts. ACL 2019.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from movers.encoders import load_encoder
from movers.encoders.checks import check_vectors
from movers.encoders.layers import parse_aggregation
from movers.encoders.static import StaticEncoder
from movers.scores.bags import Bag, alignment_of, no_alignment
from movers.scores.clark_costs import costs_of, pooled, small_costs
from movers.scores.clark_options import (
    BagDistance,
    ClarkOptions,
    SentenceOptions,
    SmsOptions,
    SwmsOptions,
    WmsOptions,
    sentence_encoder,
)
from movers.scores.engine import Comparison, PairMetric, check_size, run
from movers.scores.languages import language_warning
from movers.scores.options import MultiRef, References, documented
from movers.scores.words import (
    ContextualReader,
    JoinedUnits,
    SentenceUnits,
    StaticReader,
    WordIdf,
    WordReader,
    Words,
    WordText,
    WordUnits,
    sentence_of,
)
from movers.signature import signature
from movers.texts import name_stop_words, warn_about_script
from movers.threads import CELLS
from movers.transport import Plan, emd, emd_of_normalised, pairwise_distances
from movers.weights import Corpus, IdfTable, normalised, resolve_tables, weigh

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder

__all__ = ["SmsOptions", "SwmsOptions", "WmsOptions", "mover_distance", "sms", "swms", "wms"]

Floats = NDArray[np.float64]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def word_bag(words: Words, weights: str, table: IdfTable | None, metric: str) -> Bag:
    r"""Eq. 1: :math:`d_{A,i} = \mathrm{count}(i) / |A|` for word type i; a contextual token is its own type (fn. 3)."""
    rows = words.rows
    counts = dict.fromkeys(rows, 1)  # types in order of first occurrence
    if len(counts) < len(rows):
        counts = dict.fromkeys(rows, 0)
        for row in rows:  # faster than collections.Counter at sentence length
            counts[row] += 1
    units = WordUnits(words, list(counts))
    masses = np.array([*counts.values()], dtype=np.float64)
    if weights == "count":
        return Bag(units, masses / len(rows))
    return Bag(units, normalised(metric, weigh(weights, masses, units, table)))


def sentence_bag(
    words: Words,
    weights: str,
    table: IdfTable | None,
    encoder: ContextualEncoder | None,
    metric: str,
    pooling: Literal["mean", "max"] = "mean",
) -> Bag:
    r"""Eq. 4: :math:`d_{A,i} = |i| / |A|` for sentence i, whose vector is the mean (or maximum) of its word vectors."""
    owners = sentence_of(words)
    numbers, starts = np.unique(owners, return_index=True)
    lengths = np.diff([*starts, len(owners)])
    spans = words.spans()
    texts = [words.text[slice(*spans[number])] for number in numbers]
    if encoder is None:
        vectors = pooled(words, starts, lengths, pooling)
    else:
        vectors = check_vectors(encoder.identity, texts[0], encoder.sentence_vectors(texts), len(texts))
    masses = lengths.astype(np.float64)
    if weights == "uniform":
        masses = np.ones(len(lengths))
    elif weights == "idf":
        assert table is not None
        inside = np.split(table([words.words[row] for row in words.rows]), starts[1:])
        masses = np.array([part.sum() for part in inside])
    return Bag(SentenceUnits(vectors, texts, numbers.tolist()), normalised(metric, masses))


def sentence_and_word_bag(words: Bag, sentences: Bag) -> Bag:
    r"""Eq. 5: words and sentences in one bag, normalised by :math:`2|A|`: half of the mass each."""
    return Bag(JoinedUnits(words, sentences), np.concatenate([words.masses, sentences.masses]) / 2)


def mover_distance(
    vectors_a: ArrayLike,
    masses_a: ArrayLike,
    vectors_b: ArrayLike,
    masses_b: ArrayLike,
    distance: BagDistance = "euclidean",
) -> tuple[Plan, Floats]:
    """Eq. 2 on given vectors: the transport plan, whose cost is the distance, and the cost matrix.

    Parameters
    ----------
    vectors_a, vectors_b : (m, d) and (n, d)
    masses_a, masses_b : (m,) and (n,)
        Non-negative; normalised to sum to 1.

    Examples
    --------
    >>> plan, costs = mover_distance(np.array([[0.0, 0.0]]), np.ones(1), np.array([[3.0, 4.0], [0.0, 1.0]]), np.ones(2))
    >>> plan.cost
    3.0
    """
    costs = pairwise_distances(vectors_a, vectors_b, distance)
    return emd(masses_a, masses_b, costs), costs


def similarity(distance: float, temperature: float) -> float:
    """Eq. 3, with a temperature."""
    return math.exp(-distance / temperature)


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


class ReadText(NamedTuple):
    """A text and the bag of its kept units; None if filtering leaves nothing."""

    text: WordText
    bag: Bag | None


@dataclass(frozen=True, kw_only=True)
class MoverSimilarity(PairMetric[ReadText]):
    """Base of the three metrics; a subclass defines the bag."""

    options: ClarkOptions
    reader: WordReader
    table: IdfTable | None
    sentence_encoder: ContextualEncoder | None
    temperature: float

    @abc.abstractmethod
    def bag(self, words: Words) -> Bag:
        """The units of a text with their masses."""

    @property
    def multi_ref(self) -> MultiRef:
        return self.options.multi_ref

    @property
    def overlaps(self) -> bool:
        return not isinstance(self.reader, StaticReader)

    @property
    def runs_in_processes(self) -> bool:
        return isinstance(self.reader, StaticReader) and self.sentence_encoder is None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, ReadText]]:
        if name_stop_words(self.options.stopwords, self.options.lang) == "english":
            warn_about_script(self.name, texts)
        language_warning(self.name, self.reader.encoder, texts, self.options.lang)
        for index, text in self.reader.read(texts):
            words = text.words(filtered=True)
            yield index, ReadText(text, None if words is None else self.bag(words))

    def was_cut(self, text: ReadText) -> bool:
        return text.text.cut

    def has_unknown(self, text: ReadText) -> bool:
        if text.text.unknown or self.sentence_encoder is None:
            return text.text.unknown
        (tokens,) = self.sentence_encoder.tokenize([text.text.text])
        return bool(tokens.unknown.any())

    def costs_many(self, pairs: Sequence[tuple[ReadText, ReadText]]) -> list[Floats | None]:
        return small_costs([self._bags(*pair) for pair in pairs], self.options, self.temperature)

    def compare(self, prediction: ReadText, reference: ReadText, costs: Floats | None = None) -> Comparison:
        aligned = self.options.return_alignment
        bags = self._bags(prediction, reference)
        if bags is None:
            same = prediction.text.text.split() == reference.text.text.split()
            alike = same or (prediction.text.blank and reference.text.blank)
            alignment = no_alignment() if aligned else None
            return Comparison(float(alike), empty=True, alignment=alignment, distance=0.0 if alike else None)
        m, n, limit = len(bags[0].masses), len(bags[1].masses), self.options.max_cells
        check_size(m, n, limit)
        with CELLS.hold(m * n, limit):
            costs = costs_of(*bags, self.options, self.temperature) if costs is None else costs
            plan = emd_of_normalised(bags[0].masses, bags[1].masses, costs)
        alignment = alignment_of(*bags, plan.flow, costs, plan.cost) if aligned else None
        unfiltered = prediction.bag is None or reference.bag is None
        value = self.similarity(plan.cost)
        return Comparison(value, unfiltered=unfiltered, alignment=alignment, distance=plan.cost)

    def idf_tables(self) -> IdfTable | None:
        return self.table

    def reading_whole(self) -> Self:
        if isinstance(self.reader, ContextualReader):
            return replace(self, reader=replace(self.reader, truncation="window"))
        return self

    def similarity(self, distance: float) -> float:
        return similarity(distance, self.temperature)

    def extra(self) -> dict[str, object]:
        return {"temperature": self.temperature}

    def _bags(self, prediction: ReadText, reference: ReadText) -> tuple[Bag, Bag] | None:
        """Both bags, of kept units or, if a side has none, of all tokens; None if a side has no token at all."""
        if prediction.bag is not None and reference.bag is not None:
            return prediction.bag, reference.bag
        first, second = prediction.text.words(filtered=False), reference.text.words(filtered=False)
        return None if first is None or second is None else (self.bag(first), self.bag(second))

    @classmethod
    def build(cls, name: str, options: ClarkOptions, corpus: Corpus | None = None) -> Self:
        rules = options.rules()
        tables = resolve_tables(name, options.idf, corpus, WordIdf(rules))
        table = None if tables is None else tables.references
        encoder = load_encoder(options.model, device=options.device, dtype=options.dtype, progress=options.progress)
        sentences = sentence_encoder(name, options, encoder) if isinstance(options, SentenceOptions) else None
        fields: dict[str, object] = {"emb": encoder.identity}
        if isinstance(encoder, StaticEncoder):
            reader: WordReader = StaticReader(encoder, rules, options.oov != "drop")
            fields["oov"] = options.oov
        else:
            layer = parse_aggregation(name, options.layer)
            window = encoder.window_for(options.window)
            fields |= {"layer": layer, "context": options.context, "dtype": encoder.dtype}
            fields["window"] = f"{window}-{options.truncation}"
            reader = ContextualReader(
                encoder, rules, layer, options.context, options.batch_tokens, options.truncation, options.window
            )
        fields |= options.unit_fields(None if sentences is None else f"{sentences.identity}-{sentences.dtype}")
        if table is not None:
            fields["idf"] = table.digest
        fields |= options.reading_fields()
        ends: dict[str, object] = {"temp": options.temperature, "refs": options.multi_ref}
        if options.average != "scores":
            ends["average"] = options.average
        metric = cls(
            name=name,
            signature=signature(name, fields),  # all that determines distances: the key under which `auto` is cached
            options=options,
            reader=reader,
            table=table,
            sentence_encoder=sentences,
            temperature=1.0 if options.temperature == "auto" else float(str(options.temperature)),
        )
        if options.temperature == "auto":
            from movers.scores.rescaling import mean_unrelated_distance

            # The unit does not depend on how unknown words are treated.
            known = replace(metric, options=replace(options, oov="drop"))
            metric = replace(metric, temperature=mean_unrelated_distance(known))
        return replace(metric, signature=signature(name, fields | ends))


@dataclass(frozen=True, kw_only=True)
class WordMover(MoverSimilarity):
    """Eq. 1: the bag of words."""

    options: WmsOptions
    options_class = WmsOptions

    def bag(self, words: Words) -> Bag:
        return word_bag(words, self.options.weights or "count", self.table, self.name)


@dataclass(frozen=True, kw_only=True)
class SentenceMover(MoverSimilarity):
    """Eq. 4: the bag of sentences."""

    options: SmsOptions
    options_class = SmsOptions

    def bag(self, words: Words) -> Bag:
        return sentence_bag(
            words, self.options.sentence_weights, self.table, self.sentence_encoder, self.name, self.options.pooling
        )


@dataclass(frozen=True, kw_only=True)
class SentenceAndWordMover(MoverSimilarity):
    """Eq. 5: words and sentences in one bag."""

    options: SwmsOptions
    options_class = SwmsOptions

    def bag(self, words: Words) -> Bag:
        return sentence_and_word_bag(
            word_bag(words, self.options.weights or "count", self.table, self.name),
            sentence_bag(
                words, self.options.sentence_weights, self.table, self.sentence_encoder, self.name, self.options.pooling
            ),
        )


@documented(WmsOptions)
def wms(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """Word Mover's Similarity (Eq. 1–3): minimum cost of transforming one text's words into the other's.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (n floats in (0, 1], 0 if one side is blank), `distances`, `temperature`,
        `signature`, `n_empty`, `n_unfiltered`, `n_truncated`, `n_unknown`, and `alignments` on request.

    Examples
    --------
    >>> result = wms(["A man sells snow online."], ["A man is selling snow on the internet."])
    >>> round(result["score"], 4)
    0.7449
    """
    return run(WordMover, "wms", predictions, references, options)


@documented(SmsOptions)
def sms(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """Sentence Mover's Similarity (Eq. 2–4): like `wms`, with sentences as units, weighted by their length.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Examples
    --------
    >>> result = sms(["Snow is sold online. It ships in a box."], ["It ships in a box. Snow is sold online."])
    >>> result["score"]
    1.0
    """
    return run(SentenceMover, "sms", predictions, references, options)


@documented(SwmsOptions)
def swms(predictions: Sequence[str], references: References, **options: object) -> dict[str, Any]:
    """Sentence and Word Mover's Similarity (Eq. 2, 3, 5): words and sentences in one bag.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    {options}

    Examples
    --------
    >>> result = swms(["Snow is sold online."], ["They sell snow. It ships in a box."], return_alignment=True)
    >>> sorted({unit["kind"] for unit in result["alignments"][0][0]["reference"]})
    ['sentence', 'word']
    """
    return run(SentenceAndWordMover, "swms", predictions, references, options)

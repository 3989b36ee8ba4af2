r"""Word, Sentence, and Sentence + Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019).

A text is a bag of vectors with masses. The distance between two texts is the minimum cost of transforming one bag into
the other:

.. math::
    \mathrm{WMD}(A, B) = \min_{T \ge 0} \sum_{ij} T_{ij} \|v_i - v_j\|_2
    \quad s.t. \quad T 1 = d_A, \; T^\top 1 = d_B \qquad (2)

.. math:: \mathrm{WMS}(A, B) = \exp(-\mathrm{WMD}(A, B) / \tau) \qquad (3)

`preset="paper"` is this definition, with :math:`\tau = 1`, alphabetic words only and without stop words. By default

* :math:`\tau` is the mean distance between unrelated texts under the options of the call, so that unrelated texts score
  about .37 whatever the scale of the vectors;
* no word that differs is invisible: a stop word counts as a twentieth of a word, and the vector of a number has a
  direction of its own surface beside the mean of its subwords (`movers.scores.words`);
* `wms` compares by cosine. `sms` and `swms` do not: the length of a mean vector tells how alike its words are.

The three metrics differ in the bag: words (`word_bag`, Eq. 1), sentences (`sentence_bag`, Eq. 4), or both
(`joint_bag`, Eq. 5).

Reference: E. Clark, A. Celikyilmaz, N. A. Smith. Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence
Texts. ACL 2019.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from movers.bag import Bag, Label, alignment_of
from movers.encoders import Encoder, load_encoder
from movers.encoders.contextual import ContextualEncoder
from movers.encoders.layers import parse_aggregation
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.inputs import check_choice
from movers.scores.metric import Comparison, Encoding, TransportMetric
from movers.scores.options import PairOptions, option
from movers.scores.unrelated import mean_unrelated_distance
from movers.scores.words import SURFACE, Words, read_contextual, static_reader
from movers.signature import signature
from movers.texts import STOP_MASS, WordRules, check_language, main_language, name_stop_words, stop_words
from movers.transport import Distance, Plan, emd, emd_of_normalised, pairwise_distances, unit_rows
from movers.weights import Corpus, IdfTable, Weights, choose_weights, idf_tables, normalised, weigh

Floats = NDArray[np.float64]
BagDistance = Literal["euclidean", "cosine"]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def word_bag(words: Words, weights: str, table: IdfTable | None, metric: str, labelled: bool) -> Bag:
    r"""Eq. 1: :math:`d_{A,i} = \mathrm{count}(i) / |A|` for word type i; a contextual token is its own type (fn. 3).

    A stop word counts as a fraction of a word.
    """
    counts = dict.fromkeys(words.rows, 0)  # types in order of first occurrence
    for row in words.rows:  # faster than collections.Counter at sentence length
        counts[row] += 1
    types = list(counts)
    vectors = words.table.take(types, axis=0)
    masses, shares = np.array([*counts.values()], dtype=np.float64), words.masses.take(types)
    if weights == "count":
        masses *= shares
        masses /= masses.sum()
    else:
        keys = [words.names[row] for row in types] if weights == "idf" else []
        masses = normalised(metric, shares * weigh(weights, masses, vectors, keys, table))
    labels: list[Label] = []
    if labelled:
        occurrences = zip(words.rows, words.sentences, words.offsets, strict=True)
        first = {row: (sentence, *offsets) for row, sentence, offsets in reversed([*occurrences])}
        labels = [Label(words.names[row], "word", *first[row]) for row in types]
    unmatched: tuple[str | None, ...] = ()
    if words.missing:
        unmatched = tuple(words.names[row] if row in words.missing else None for row in types)
    return words.bag._replace(vectors=vectors, masses=masses, labels=tuple(labels), unmatched=unmatched)


def sentence_bag(
    words: Words, weights: str, table: IdfTable | None, encoder: ContextualEncoder | None, metric: str
) -> Bag:
    r"""Eq. 4: :math:`d_{A,i} = |i| / |A|` for sentence i, whose vector is the mean of its word vectors.

    In the mean and in the mass, a stop word counts as a fraction of a word.
    """
    text, unknown = words.bag.text, words.bag.unknown
    numbers, starts = np.unique(words.sentences, return_index=True)
    sentences = [text[slice(*words.spans[number])] for number in numbers]
    word_masses = words.masses.take(words.rows)
    masses = np.add.reduceat(word_masses, starts)
    if encoder is None:
        weighted = words.table.take(words.rows, axis=0) * word_masses[:, None]
        vectors = (np.add.reduceat(weighted, starts, axis=0) / masses[:, None]).astype(np.float32)
    else:
        vectors = encoder.sentence_vectors(sentences)
        unknown = unknown or bool(encoder.tokenize([text])[0].unknown.any())
    if weights == "uniform":
        masses = np.ones(len(masses))
    elif weights == "idf":
        assert table is not None
        masses = np.add.reduceat(table([words.names[row] for row in words.rows]) * word_masses, starts)
    units = zip(sentences, numbers.tolist(), strict=True)
    labels = tuple(Label(sentence, "sentence", number, *words.spans[number]) for sentence, number in units)
    return words.bag._replace(vectors=vectors, masses=normalised(metric, masses), labels=labels, unknown=unknown)


def joint_bag(words: Bag, sentences: Bag) -> Bag:
    r"""Eq. 5: words and sentences in one bag, normalised by :math:`2|A|`: half of the mass each."""
    unmatched = words.unmatched and words.unmatched + (None,) * len(sentences.masses)
    return words._replace(
        vectors=np.concatenate([words.vectors, sentences.vectors]),
        masses=np.concatenate([words.masses, sentences.masses]) / 2,
        labels=words.labels + sentences.labels,
        unmatched=unmatched,
    )


def mover_distance(
    vectors_a: ArrayLike,
    masses_a: ArrayLike,
    vectors_b: ArrayLike,
    masses_b: ArrayLike,
    distance: Distance = "euclidean",
) -> tuple[Plan, Floats]:
    """Eq. 2 on given vectors: the transport plan, whose cost is the distance, and the cost matrix.

    Vectors are (m, d) and (n, d); masses (m,) and (n,) are non-negative and are normalised to sum to 1.

    Examples
    --------
    >>> plan, costs = mover_distance(np.array([[0.0, 0.0]]), np.ones(1), np.array([[3.0, 4.0], [0.0, 1.0]]), np.ones(2))
    >>> plan.cost
    3.0
    """
    check_choice("mover_distance", "distance", distance, get_args(Distance))
    a, b = np.shape(vectors_a), np.shape(vectors_b)
    if len(a) != 2 or len(b) != 2 or a[1] != b[1]:
        raise InputError(f"mover_distance: vectors: expected shapes (m, d) and (n, d), but got {a} and {b}")
    costs = pairwise_distances(vectors_a, vectors_b, distance)
    return emd(masses_a, masses_b, costs), costs


def match_missing(costs: Floats, first: Bag, second: Bag, unit: float) -> None:
    """Set the costs of words without a vector, in place: 0 to an identical word, `unit` to everything else."""
    rows = [(i, word) for i, word in enumerate(first.unmatched) if word is not None]
    columns = [(j, word) for j, word in enumerate(second.unmatched) if word is not None]
    costs[[i for i, _ in rows], :] = unit
    costs[:, [j for j, _ in columns]] = unit
    for (i, word), (j, other) in product(rows, columns):
        if word == other:
            costs[i, j] = 0.0


# ---------------------------------------------------------------------------------------------------------------------
# Options


_DISTANCE = "distance between two vectors; `euclidean` in the paper"


@dataclass(frozen=True, kw_only=True)
class ClarkOptions(PairOptions):
    """Options shared by `wms`, `sms` and `swms`."""

    stopwords: object = option(
        "auto",
        "words that have a twentieth of the mass of others: the list for `lang` (`auto`), or your own; `drop` drops "
        "the list for `lang`, as the paper does",
        values="'auto', 'drop', 'english', list of words or None",
    )
    lowercase: bool = option(True, "lowercase words (a contextual model still reads the original case)")
    alphabetic: bool = option(False, "drop numbers, symbols and all else but words of letters, as the paper does")
    temperature: object = option(
        "auto",
        "score = exp(−distance / temperature): 1 is the paper's Eq. 3; `auto` is the mean distance between unrelated "
        "texts under these options",
        values="'auto' or a number above zero",
    )
    oov: Literal["drop", "zero", "match"] = option(
        "drop",
        "words without a vector: dropped, placed at the origin (the authors' script), or at distance 0 from "
        "identical words and `temperature` from all others",
    )
    lang: str = option("en", "language code, for sentence splitting and stop words")
    distance: BagDistance = option("euclidean", _DISTANCE)
    normalize: bool = option(False, "scale every vector to length 1 first")
    layer: object = option(
        "mean",
        "how the layers of a contextual model are aggregated into a word vector",
        values="'mean', 'last', 'pmeans', 'routing', a layer number or several ('4+6')",
    )
    context: Literal["sentence", "text"] = option("sentence", "what a contextual model encodes at a time")

    presets = {
        "paper": {"stopwords": "drop", "alphabetic": True, "distance": "euclidean", "temperature": 1.0, "oov": "zero"}
    }

    def settle(self, metric: str) -> Self:
        layer = parse_aggregation(metric, self.layer)
        check_language(metric, self.lang)
        stop_words(self.stopwords, metric, self.lang)
        number = type(self.temperature) in (int, float) and 0 < float(str(self.temperature)) < math.inf
        if not number and not (isinstance(self.temperature, str) and self.temperature == "auto"):
            raise InputError(
                f"{metric}: temperature: expected 'auto' or a number above zero, but got {self.temperature!r}"
            )
        return replace(self, layer=layer, lang=main_language(self.lang))

    def rules(self) -> WordRules:
        return WordRules(
            stopwords=stop_words(self.stopwords, lang=self.lang),
            stop_mass=0.0 if self.stopwords == "drop" else STOP_MASS,
            lowercase=self.lowercase,
            alphabetic=self.alphabetic,
            lang=self.lang,
        )

    def fields(self) -> dict[str, object]:
        """Signature fields; not every metric has both kinds of weights."""
        weights = {"weights": "weights", "sentences": "sentence_weights"}
        name = name_stop_words(self.stopwords, self.lang)
        return {field: getattr(self, own) for field, own in weights.items() if hasattr(self, own)} | {
            "stop": name and f"{name}-{'drop' if self.stopwords == 'drop' else STOP_MASS}",
            "case": "lower" if self.lowercase else "keep",
            "words": "alphabetic" if self.alphabetic else f"all-{SURFACE}",
            "lang": self.lang,
            "dist": self.distance,
            "norm": self.normalize,
        }


_WORD_WEIGHTS = "mass of a word: its count (Eq. 1, the default), uniform, IDF or vector norm"
_SENTENCE_WEIGHTS = "mass of a sentence: its number of kept words (Eq. 4), uniform, or the sum of its words' IDF"


@dataclass(frozen=True, kw_only=True)
class WmsOptions(ClarkOptions):
    weights: Weights | None = option(None, _WORD_WEIGHTS)
    distance: BagDistance = option("cosine", _DISTANCE)

    def settle(self, metric: str) -> Self:
        return replace(super().settle(metric), weights=choose_weights(metric, self.weights, self.idf, "count"))


@dataclass(frozen=True, kw_only=True)
class SmsOptions(ClarkOptions):
    sentence_weights: Literal["count", "uniform", "idf"] = option("count", _SENTENCE_WEIGHTS)
    sentence_encoder: object = option(
        None,
        "contextual encoder for sentence vectors, instead of the mean of word vectors",
        values="str, path, (model, tokenizer), encoder or None",
    )

    def settle(self, metric: str) -> Self:
        explicit = None if self.sentence_weights == "count" else self.sentence_weights
        weights = choose_weights(metric, explicit, self.idf, "count", option="sentence_weights")
        return replace(super().settle(metric), sentence_weights=weights)


@dataclass(frozen=True, kw_only=True)
class SwmsOptions(ClarkOptions):
    weights: Weights | None = option(None, _WORD_WEIGHTS)
    sentence_weights: Literal["count", "uniform", "idf"] = option("count", _SENTENCE_WEIGHTS)

    def settle(self, metric: str) -> Self:
        # The sentences may use the table without the words doing so.
        weights = self.weights or ("idf" if self.idf is not None else None)
        uses = weights == "idf" or self.sentence_weights == "idf"
        choose_weights(metric, "idf" if uses else weights, self.idf, "count")
        return replace(super().settle(metric), weights=weights or "count")


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


@dataclass(frozen=True, kw_only=True)
class MoverSimilarity(TransportMetric):
    """Base of the three metrics; a subclass defines the bag."""

    options: ClarkOptions
    encoder: Encoder
    rules: WordRules
    temperature: float
    sentence_encoder: ContextualEncoder | None = None

    #: Whether the bag has sentences.
    sentences = True

    @property
    def table(self) -> IdfTable | None:
        return self.tables[0] if self.tables else None

    @abc.abstractmethod
    def bag(self, words: Words) -> Bag:
        """The units of a text with their masses."""

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Bag]]:
        labelled = self.options.return_alignment
        if isinstance(self.encoder, StaticEncoder):
            reader = static_reader(self.encoder, self.rules, self.options.oov != "drop")  # type: ignore[arg-type]
            words = reader.read(texts, self.sentences or labelled, labelled)
        else:
            assert self.encoding is not None
            words = read_contextual(texts, self.encoding, self.rules, self.options.context)
        for index, each in words:
            yield index, self.bag(each) if each.rows else each.bag

    def align(self, prediction: Bag, reference: Bag) -> Comparison:
        """Eq. 2 and 3."""
        x, y = prediction.vectors, reference.vectors
        if self.options.normalize:
            x, y = unit_rows(x), unit_rows(y)
        costs = pairwise_distances(x, y, self.options.distance)
        if self.options.oov == "match":
            match_missing(costs, prediction, reference, self.temperature)
        plan = emd_of_normalised(prediction.masses, reference.masses, costs)
        aligned = self.options.return_alignment
        alignment = alignment_of(prediction, reference, plan.flow, costs, plan.cost) if aligned else None
        return Comparison(math.exp(-plan.cost / self.temperature), alignment=alignment, distance=plan.cost)

    @property
    def extra(self) -> dict[str, object]:
        return {"temperature": self.temperature}

    @classmethod
    def build(cls, name: str, options: ClarkOptions, corpus: Corpus | None = None) -> Self:
        rules, run = options.rules(), options.run
        tables = idf_tables(name, options.idf, corpus, lambda texts: IdfTable.build(map(rules.words, texts)))
        encoder = load_encoder(options.model, device=run.device, dtype=run.dtype)
        fields: dict[str, object] = {"emb": encoder.identity}
        encoding, sentence_encoder = None, None
        if isinstance(encoder, StaticEncoder):
            fields["oov"] = options.oov
        else:
            encoding = Encoding(encoder, parse_aggregation(name, options.layer), options)
            fields |= {**encoding.fields(), "context": options.context}
        if cls.sentences:
            fields["sentvec"] = "mean"
        if isinstance(options, SmsOptions) and options.sentence_encoder is not None:
            loaded = load_encoder(options.sentence_encoder, device=run.device, dtype=run.dtype)
            if isinstance(loaded, StaticEncoder):
                actual = f"{loaded.identity} is static"
                raise InputError(f"{name}: sentence_encoder: expected a contextual encoder, but {actual}")
            sentence_encoder = loaded
            fields["sentvec"] = f"{loaded.identity}-{loaded.dtype}-{loaded.sentence_window}"
        fields |= options.fields()
        if tables:
            fields["idf"] = tables[0].digest
        metric = cls(
            name=name,
            signature=signature(name, fields),  # all that determines distances: the key under which `auto` is cached
            options=options,
            encoding=encoding,
            encoder=encoder,
            rules=rules,
            tables=tables,
            sentence_encoder=sentence_encoder,
            temperature=1.0,
        )
        temperature = options.temperature
        if temperature == "auto":
            # The unit does not depend on how unknown words are matched.
            temperature = mean_unrelated_distance(replace(metric, options=replace(options, oov="drop")))
        return replace(
            metric,
            temperature=float(str(temperature)),
            signature=signature(name, fields | {"temp": options.temperature, "refs": options.multi_ref}),
        )


@dataclass(frozen=True, kw_only=True)
class WordMover(MoverSimilarity):
    """Word Mover's Similarity (Eq. 1–3): minimum cost of transforming one text's words into the other's.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (n floats in (0, 1], 0 if one side is blank), `distances`, `temperature`,
        `signature`, `n_empty`, `n_unfiltered`, `n_truncated`, `n_unknown`, and `alignments` on request.

    Examples
    --------
    >>> import movers
    >>> result = movers.wms(["A man sells snow online."], ["A man is selling snow on the internet."])
    >>> round(result["score"], 4)
    0.8062
    """

    options: WmsOptions
    options_class = WmsOptions
    sentences = False

    def bag(self, words: Words) -> Bag:
        return word_bag(words, self.options.weights or "count", self.table, self.name, self.options.return_alignment)


@dataclass(frozen=True, kw_only=True)
class SentenceMover(MoverSimilarity):
    """Sentence Mover's Similarity (Eq. 2–4): like `wms`, with sentences as units, weighted by their length.

    Examples
    --------
    >>> import movers
    >>> movers.sms(["Snow is sold online. It ships in a box."], ["It ships in a box. Snow is sold online."])["score"]
    1.0
    """

    options: SmsOptions
    options_class = SmsOptions

    def bag(self, words: Words) -> Bag:
        return sentence_bag(words, self.options.sentence_weights, self.table, self.sentence_encoder, self.name)


@dataclass(frozen=True, kw_only=True)
class SentenceAndWordMover(MoverSimilarity):
    """Sentence + Word Mover's Similarity (Eq. 2, 3, 5): words and sentences in one bag.

    Examples
    --------
    >>> import movers
    >>> 0 < movers.swms(["Snow is sold online."], ["A man sells snow. It ships in a box."])["score"] < 1
    True
    """

    options: SwmsOptions
    options_class = SwmsOptions

    def bag(self, words: Words) -> Bag:
        weights, labelled = self.options.weights or "count", self.options.return_alignment
        return joint_bag(
            word_bag(words, weights, self.table, self.name, labelled),
            sentence_bag(words, self.options.sentence_weights, self.table, None, self.name),
        )

r"""Word, Sentence, and Sentence + Word Mover's Similarity (Clark, Celikyilmaz & Smith 2019).

A text is a bag of vectors with masses; two texts are as far apart as it costs to move one bag into the other:

.. math::
    \mathrm{WMD}(A, B) = \min_{T \ge 0} \sum_{ij} T_{ij} \|v_i - v_j\|_2
    \quad s.t. \quad T 1 = d_A, \; T^\top 1 = d_B \qquad (2)

.. math:: \mathrm{WMS}(A, B) = \exp(-\mathrm{WMD}(A, B)) \qquad (3)

What differs is the bag: words (`word_bag`, Eq. 1), sentences (`sentence_bag`, Eq. 4), or both (`swms`, Eq. 5).

Reference: E. Clark, A. Celikyilmaz, N. A. Smith. Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence
Texts. ACL 2019.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders import load_encoder
from movers.encoders.layers import Aggregation, parse_aggregation
from movers.encoders.static import StaticEncoder
from movers.inputs import check_choice, check_pairs
from movers.scores.options import CommonKwargs, CommonOptions, make_options, resolve_idf
from movers.scores.pairs import Comparison, Scorer
from movers.signature import short_digest, signature
from movers.texts import Span, WordRules, is_mostly_non_latin, split_sentences, stop_words
from movers.transport import Plan, emd, pairwise_distances, unit_rows
from movers.weights import IdfTable, Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Bag",
    "MoverSimilarityOptions",
    "mover_distance",
    "mover_similarity_scorer",
    "sms",
    "swms",
    "wms",
]

Name = Literal["wms", "sms", "swms"]
SentenceWeights = Literal["count", "uniform", "idf"]
Context = Literal["sentence", "text"]
BagDistance = Literal["euclidean", "cosine"]
Vectors = NDArray[np.float32]
Masses = NDArray[np.float64]


class Bag(NamedTuple):
    """A text as units with masses.

    Attributes
    ----------
    vectors : (n, d) float32
    masses : (n,) float64, sum 1
    texts : n unit texts
    kinds : n of "word" or "sentence"
    sentences : n numbers of the sentence a unit stands in first
    """

    vectors: Vectors
    masses: Masses
    texts: Sequence[str]
    kinds: Sequence[str]
    sentences: Sequence[int]


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def word_bag(reading: Reading, weigh: Callable[[list[str], Vectors, Masses], Masses]) -> Bag:
    r"""Eq. 1: :math:`d_{A,i} = \mathrm{count}(i) / |A|` for word type i; contextual words are each their own type."""
    places: dict[Any, int] = {}
    counts: list[int] = []
    first: list[int] = []
    for place, word in enumerate(reading.words):
        key = word if reading.types else place
        number = places.setdefault(key, len(places))
        if number == len(counts):
            counts.append(0)
            first.append(place)
        counts[number] += 1
    words = [reading.words[place] for place in first]
    vectors = reading.vectors[first]
    masses = weigh(words, vectors, np.array(counts, dtype=np.float64))
    return Bag(vectors, masses, words, ["word"] * len(words), [reading.sentence_of[place] for place in first])


def sentence_bag(
    reading: Reading, weigh: Callable[[list[str], Sequence[Sequence[str]]], Masses], vectors_of: SentenceVectors | None
) -> Bag:
    r"""Eq. 4: :math:`d_{A,i} = |i| / |A|` for sentence i, whose vector is the mean of its words' vectors."""
    owners = np.asarray(reading.sentence_of)
    numbers, starts = np.unique(owners, return_index=True)
    texts = [reading.sentence_texts[number] for number in numbers]
    words = [list(part) for part in _split(reading.words, starts)]
    if vectors_of is None:
        sums = np.add.reduceat(reading.vectors.astype(np.float64), starts, axis=0)
        vectors = (sums / np.diff([*starts, len(owners)])[:, None]).astype(np.float32)
    else:
        vectors = vectors_of(texts)
    return Bag(vectors, weigh(texts, words), texts, ["sentence"] * len(texts), numbers.tolist())


def sentence_and_word_bag(words: Bag, sentences: Bag) -> Bag:
    r"""Eq. 5: words and sentences in one bag, normalised by :math:`2|A|`: each half has half of the mass."""
    return Bag(
        np.concatenate([words.vectors, sentences.vectors]),
        np.concatenate([words.masses, sentences.masses]) / 2,
        [*words.texts, *sentences.texts],
        [*words.kinds, *sentences.kinds],
        [*words.sentences, *sentences.sentences],
    )


def mover_distance(
    vectors_a: NDArray[Any],
    masses_a: NDArray[Any],
    vectors_b: NDArray[Any],
    masses_b: NDArray[Any],
    distance: BagDistance = "euclidean",
) -> tuple[Plan, NDArray[np.float64]]:
    """Eq. 2 on ready vectors: the plan, whose cost is the distance, and the cost matrix.

    Parameters
    ----------
    vectors_a, vectors_b : (m, d) and (n, d)
    masses_a, masses_b : (m,) and (n,)
        Not negative; normalised to sum 1.

    Examples
    --------
    >>> plan, costs = mover_distance(np.array([[0.0, 0.0]]), np.ones(1), np.array([[3.0, 4.0], [0.0, 1.0]]), np.ones(2))
    >>> plan.cost
    3.0
    """
    costs = pairwise_distances(vectors_a, vectors_b, distance)
    return emd(masses_a, masses_b, costs), costs


def similarity(distance: float) -> float:
    """Eq. 3."""
    return math.exp(-distance)


# ---------------------------------------------------------------------------------------------------------------------
# Options


class MoverSimilarityKwargs(CommonKwargs, total=False):
    """Keyword arguments of `wms`, `sms` and `swms`; see `MoverSimilarityOptions`."""

    stopwords: Any
    punctuation: bool
    lowercase: bool
    keep_numbers: bool
    lang: str
    sentence_weights: SentenceWeights
    sentence_encoder: Any
    distance: BagDistance
    normalize: bool
    layer: Any
    context: Context


@dataclass(frozen=True, kw_only=True)
class MoverSimilarityOptions(CommonOptions):
    """Options of `wms`, `sms` and `swms`, beside those of `CommonOptions`.

    Parameters
    ----------
    stopwords : "english", list of words or None
        Words to drop.
    punctuation : bool
        Drop tokens that have neither letter nor digit.
    lowercase : bool
        Lower-case the words (a contextual encoder still reads the original case).
    keep_numbers : bool
        Keep tokens of digits alone.
    lang : str
        Language code for the sentence rules.
    sentence_weights : {"count", "uniform", "idf"}
        Mass of a sentence: its kept words (Eq. 4), equal, or the sum of its words' inverse document frequencies.
    sentence_encoder : str or encoder, optional
        A sentence encoder instead of the mean of the words' vectors.
    distance : {"euclidean", "cosine"}
    normalize : bool
        Scale every unit's vector to length 1.
    layer : "mean", "last", "pmeans", "routing" or a number
        Which layers of a contextual encoder give a word its vector.
    context : {"sentence", "text"}
        What a contextual encoder reads at a time.
    """

    stopwords: Any = "english"
    punctuation: bool = True
    lowercase: bool = True
    keep_numbers: bool = False
    lang: str = "en"
    sentence_weights: SentenceWeights = "count"
    sentence_encoder: Any = None
    distance: BagDistance = "euclidean"
    normalize: bool = False
    layer: Any = "mean"
    context: Context = "sentence"

    def check(self, metric: Name) -> MoverSimilarityOptions:
        """Validated options, with what one implies for another filled in."""
        self.check_common(metric)
        for option in ("punctuation", "lowercase", "keep_numbers", "normalize"):
            check_choice(metric, option, getattr(self, option), (True, False))
        check_choice(metric, "sentence_weights", self.sentence_weights, SentenceWeights)
        check_choice(metric, "distance", self.distance, BagDistance)
        check_choice(metric, "context", self.context, Context)
        parse_aggregation(metric, self.layer)
        if not isinstance(self.lang, str) or not self.lang:
            raise ValueError(f"{metric}: lang: expected a language code such as 'en', but got {self.lang!r}")
        try:
            stop_words(self.stopwords)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{metric}: {error}") from None
        weights = self.weights
        if weights is None:
            weights = "idf" if self.idf is not None and metric != "sms" else "count"
        check_choice(metric, "weights", weights, Weights)
        sentence_weights = self.sentence_weights
        if self.idf is not None and metric == "sms" and sentence_weights == "count" and self.weights is None:
            sentence_weights = "idf"
        uses_idf = (weights == "idf" and metric != "sms") or (sentence_weights == "idf" and metric != "wms")
        if uses_idf and self.idf is None:
            raise ValueError(
                f"{metric}: weights: 'idf' needs a table: idf='corpus', a saved table's path or an IdfTable"
            )
        if self.idf is not None and not uses_idf:
            raise ValueError(
                f"{metric}: idf: a table is given, but weights={weights!r} and sentence_weights={sentence_weights!r} do not use it"
            )
        if metric == "wms" and self.sentence_encoder is not None:
            raise ValueError("wms: sentence_encoder: wms compares words only; use sms")
        return replace(self, weights=weights, sentence_weights=sentence_weights)

    def rules(self) -> WordRules:
        return WordRules(
            stopwords=stop_words(self.stopwords),
            lowercase=self.lowercase,
            keep_numbers=self.keep_numbers,
            punctuation=self.punctuation,
            lang=self.lang,
        )


# ---------------------------------------------------------------------------------------------------------------------
# From texts to bags

SentenceVectors = Callable[[Sequence[str]], Vectors]


class Reading(NamedTuple):
    """The units of a text with their vectors, before they become a bag.

    Attributes
    ----------
    words : n words in text order
    vectors : (n, d)
    sentence_of : n sentence numbers, ascending
    sentence_texts : the sentences
    types : whether equal words have equal vectors
    """

    words: list[str]
    vectors: Vectors
    sentence_of: list[int]
    sentence_texts: list[str]
    types: bool


class TextBags(NamedTuple):
    """A text's bag of kept units, and how to get the bag of all its tokens if that one is empty."""

    bag: Bag | None
    unfiltered: Callable[[], Bag | None]
    blank: bool
    cut: bool


def _split(items: list[str], starts: NDArray[np.intp]) -> Iterator[list[str]]:
    ends = [*starts[1:].tolist(), len(items)]
    for start, end in zip(starts.tolist(), ends, strict=True):
        yield items[start:end]


class _ReadText(NamedTuple):
    """Sentences of a text and their tokens."""

    sentences: list[str]
    spans: list[list[Span]]

    def tokens(self, filtered: bool) -> list[tuple[str, int]]:
        return [
            (span.text, number)
            for number, spans in enumerate(self.spans)
            for span in spans
            if span.kept or not filtered
        ]


def _read(text: str, rules: WordRules) -> _ReadText:
    sentences = split_sentences(text, rules.lang)
    return _ReadText(sentences, [rules.spans(sentence) for sentence in sentences])


def _static_bags(
    texts: Sequence[str], encoder: StaticEncoder, rules: WordRules, make: Callable[[Reading], Bag]
) -> Iterator[tuple[int, TextBags]]:
    documents = [_read(text, rules) for text in texts]
    kept = [document.tokens(filtered=True) for document in documents]
    vocabulary = list(dict.fromkeys(word for tokens in kept for word, _ in tokens))
    table, known = encoder.vectors(vocabulary)
    rows = {word: row for row, (word, is_known) in enumerate(zip(vocabulary, known.tolist(), strict=True)) if is_known}

    def bag(document: _ReadText, tokens: list[tuple[str, int]], rows: dict[str, int], table: Vectors) -> Bag | None:
        found = [(word, number, row) for word, number in tokens if (row := rows.get(word)) is not None]
        if not found:
            return None
        words, numbers, places = map(list, zip(*found, strict=True))
        return make(Reading(words, table[places], numbers, document.sentences, types=True))

    def unfiltered(document: _ReadText) -> Bag | None:
        tokens = document.tokens(filtered=False)
        words = list(dict.fromkeys(word for word, _ in tokens))
        vectors, is_known = encoder.vectors(words)
        return bag(document, tokens, {word: row for row, word in enumerate(words) if is_known[row]}, vectors)

    for index, (document, tokens) in enumerate(zip(documents, kept, strict=True)):
        blank = not any(document.spans)
        yield index, TextBags(bag(document, tokens, rows, table), lambda d=document: unfiltered(d), blank, False)


def _contextual_bags(
    texts: Sequence[str],
    encoder: Any,
    options: MoverSimilarityOptions,
    make: Callable[[Reading], Bag],
) -> Iterator[tuple[int, TextBags]]:
    rules = options.rules()
    aggregation = parse_aggregation("layer", options.layer)
    documents = [_read(text, rules) for text in texts]
    whole = options.context == "text"
    # What the encoder reads: each distinct sentence once, or each text.
    passages = (
        list(texts) if whole else list(dict.fromkeys(part for document in documents for part in document.sentences))
    )
    numbers = {passage: number for number, passage in enumerate(passages)}
    # A text is ready when the last of its passages is.
    owners: dict[int, list[int]] = {}
    left = []
    for index, document in enumerate(documents):
        needed = {index} if whole else {numbers[sentence] for sentence in document.sentences}
        left.append(len(needed))
        for number in needed:
            owners.setdefault(number, []).append(index)
    encoded: dict[int, Any] = {}

    def finish(index: int) -> TextBags:
        text, document = texts[index], documents[index]
        words, vectors, places, kept, cut = [], [], [], [], False
        position = 0
        for number, (sentence, spans) in enumerate(zip(document.sentences, document.spans, strict=True)):
            offset = 0
            if whole:
                offset = position = text.index(sentence, position)
                position += len(sentence)
            passage = encoded[index if whole else numbers[sentence]]
            cut = cut or passage.cut
            for span, vector in zip(spans, _word_vectors(passage, spans, offset), strict=True):
                if vector is not None:
                    words.append(span.text)
                    vectors.append(vector)
                    places.append(number)
                    kept.append(span.kept)

        def bag(filtered: bool) -> Bag | None:
            chosen = [place for place, keep in enumerate(kept) if keep or not filtered]
            if not chosen:
                return None
            return make(
                Reading(
                    [words[place] for place in chosen],
                    np.stack([vectors[place] for place in chosen]),
                    [places[place] for place in chosen],
                    document.sentences,
                    types=False,
                )
            )

        return TextBags(bag(True), lambda: bag(False), not any(document.spans), cut)

    for index, count in enumerate(left):
        if not count:
            yield index, finish(index)
    for number, passage in encoder.encode(
        passages,
        aggregation,
        batch_tokens=options.batch_tokens,
        truncation=options.truncation,
        window=options.window,
    ):
        encoded[number] = passage
        for index in owners.get(number, []):
            left[index] -= 1
            if not left[index]:
                yield index, finish(index)


def _word_vectors(passage: Any, spans: Sequence[Span], offset: int) -> list[Vectors | None]:
    """Mean of the sub-words that overlap each word; None where the tokenizer left nothing of it."""
    tokens = passage.tokens
    body = np.flatnonzero(~tokens.special & (tokens.ends > tokens.starts))
    starts, ends = tokens.starts[body], tokens.ends[body]
    means: list[Vectors | None] = []
    for span in spans:
        first = int(np.searchsorted(ends, span.start + offset, side="right"))
        last = int(np.searchsorted(starts, span.end + offset, side="left"))
        means.append(passage.vectors[body[first:last]].mean(axis=0) if last > first else None)
    return means


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


def mover_similarity_scorer(
    metric: Name, options: MoverSimilarityOptions, references: Iterable[str] | None = None
) -> Scorer:
    """`metric` with its options settled; `references` (all of the call) are needed for `idf="corpus"` only."""
    options = options.check(metric)
    rules = options.rules()
    options = resolve_idf(options, metric, lambda texts: _build_idf(texts, rules), references)
    if options.idf is not None:
        options.idf.check(metric, "words")
    encoder = load_encoder(options.model, device=options.device, dtype=options.dtype, progress=options.progress)
    static = isinstance(encoder, StaticEncoder)
    sentence_encoder = _sentence_encoder(metric, options, encoder)
    make = _bag_maker(metric, options, sentence_encoder)

    def represent(texts: Sequence[str]) -> Iterator[tuple[int, TextBags]]:
        _warn_about_script(metric, options, texts)
        if static:
            return _static_bags(texts, encoder, rules, make)
        return _contextual_bags(texts, encoder, options, make)

    def compare(first: TextBags, second: TextBags, aligned: bool) -> Comparison:
        return _compare(first, second, options.distance, aligned)

    return Scorer(
        name=metric,
        signature=_signature(metric, options, encoder, static, sentence_encoder),
        represent=represent,
        compare=compare,
        was_cut=lambda bags: bags.cut,
        multi_ref=options.multi_ref,
        threads=options.threads,
        progress=options.progress,
    )


def _build_idf(texts: Iterable[str], rules: WordRules) -> IdfTable:
    return IdfTable.build(
        [word for words in rules.words(split_sentences(text, rules.lang)) for word in words] for text in texts
    )


def _sentence_encoder(metric: Name, options: MoverSimilarityOptions, words: Any) -> Any:
    if options.sentence_encoder is None:
        return None
    encoder = load_encoder(options.sentence_encoder, device=options.device, dtype=options.dtype)
    if not hasattr(encoder, "sentence_vectors"):
        raise ValueError(f"{metric}: sentence_encoder: expected a contextual encoder, but {encoder.identity} is static")
    if metric == "swms" and encoder is not words:
        raise ValueError(
            "swms: sentence_encoder: words and sentences are in one bag, so they need one space: "
            f"expected the same encoder as model ({words.identity}), but got {encoder.identity}"
        )
    return encoder


def _bag_maker(metric: Name, options: MoverSimilarityOptions, sentence_encoder: Any) -> Callable[[Reading], Bag]:
    table: IdfTable | None = options.idf

    def weigh_words(words: list[str], vectors: Vectors, counts: Masses) -> Masses:
        if options.weights == "uniform":
            counts = np.ones(len(words))
        elif options.weights == "idf":
            assert table is not None
            counts = counts * table(words)
        elif options.weights == "norm":
            counts = counts * np.linalg.norm(vectors, axis=1)
        return _normalised(metric, counts)

    def weigh_sentences(texts: list[str], words: Sequence[Sequence[str]]) -> Masses:
        if options.sentence_weights == "uniform":
            return _normalised(metric, np.ones(len(texts)))
        if options.sentence_weights == "idf":
            assert table is not None
            return _normalised(metric, np.array([table(part).sum() for part in words]))
        return _normalised(metric, np.array([len(part) for part in words], dtype=np.float64))

    vectors_of = None if sentence_encoder is None else sentence_encoder.sentence_vectors

    def make(reading: Reading) -> Bag:
        if metric == "wms":
            bag = word_bag(reading, weigh_words)
        elif metric == "sms":
            bag = sentence_bag(reading, weigh_sentences, vectors_of)
        else:
            bag = sentence_and_word_bag(
                word_bag(reading, weigh_words), sentence_bag(reading, weigh_sentences, vectors_of)
            )
        return bag._replace(vectors=unit_rows(bag.vectors).astype(np.float32)) if options.normalize else bag

    return make


def _normalised(metric: str, masses: Masses) -> Masses:
    total = masses.sum()
    if total > 0:
        return masses / total
    warnings.warn(f"{metric}: a text has no mass under these weights; its units weigh the same", stacklevel=2)
    return np.full(len(masses), 1.0 / len(masses))


def _compare(first: TextBags, second: TextBags, distance: BagDistance, aligned: bool) -> Comparison:
    bag_a, bag_b, unfiltered = first.bag, second.bag, False
    if bag_a is None or bag_b is None:
        if first.blank and second.blank:
            return Comparison(1.0, empty=True, alignment=_no_flows() if aligned else None)
        bag_a, bag_b, unfiltered = first.unfiltered(), second.unfiltered(), True
        if bag_a is None or bag_b is None:
            return Comparison(0.0, empty=True, alignment=_no_flows() if aligned else None)
    plan, costs = mover_distance(bag_a.vectors, bag_a.masses, bag_b.vectors, bag_b.masses, distance)
    alignment = _alignment(bag_a, bag_b, plan, costs) if aligned else None
    return Comparison(similarity(plan.cost), unfiltered=unfiltered, alignment=alignment)


def _no_flows() -> dict[str, Any]:
    return {"distance": None, "prediction": [], "reference": [], "flows": []}


def _alignment(bag_a: Bag, bag_b: Bag, plan: Plan, costs: NDArray[np.float64]) -> dict[str, Any]:
    rows, columns = np.nonzero(plan.flow)
    flows = [
        {"i": i, "j": j, "mass": float(plan.flow[i, j]), "cost": float(costs[i, j])}
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return {"distance": plan.cost, "prediction": _units(bag_a), "reference": _units(bag_b), "flows": flows}


def _units(bag: Bag) -> list[dict[str, Any]]:
    columns = zip(bag.texts, bag.kinds, bag.sentences, bag.masses.tolist(), strict=True)
    return [
        {"text": text, "kind": kind, "sentence": int(sentence), "weight": weight}
        for text, kind, sentence, weight in columns
    ]


def _warn_about_script(metric: str, options: MoverSimilarityOptions, texts: Sequence[str]) -> None:
    if options.stopwords != "english":
        return
    foreign = sum(is_mostly_non_latin(text) for text in texts[:64])
    if 2 * foreign > len(texts[:64]):
        warnings.warn(
            f"{metric}: stopwords='english' on mostly non-Latin text drops nothing; pass stopwords=None or your own list",
            stacklevel=2,
        )


def _signature(metric: Name, options: MoverSimilarityOptions, encoder: Any, static: bool, sentence_encoder: Any) -> str:
    stop = options.stopwords
    if stop is not None and not isinstance(stop, str):
        stop = f"list-{short_digest(' '.join(sorted(stop_words(stop))))}"
    fields: dict[str, object] = {"emb": encoder.identity}
    if not static:
        fields["layer"] = parse_aggregation(metric, options.layer)
        fields["context"] = options.context
        fields["dtype"] = options.dtype
        fields["window"] = f"{encoder.window_for(options.window)}-{options.truncation}"
    if metric != "sms":
        fields["weights"] = options.weights
    if metric != "wms":
        fields["sentences"] = options.sentence_weights
        fields["sentvec"] = "mean" if sentence_encoder is None else sentence_encoder.identity
    if options.idf is not None:
        fields["idf"] = options.idf.digest
    fields["stop"] = stop
    fields["punct"] = "drop" if options.punctuation else "keep"
    fields["case"] = "lower" if options.lowercase else "keep"
    fields["numbers"] = "keep" if options.keep_numbers else "drop"
    fields["lang"] = options.lang
    fields["dist"] = options.distance
    fields["norm"] = options.normalize
    fields["refs"] = options.multi_ref
    return signature(metric, fields)


def _score(metric: Name, predictions: Any, references: Any, return_alignment: bool, options: Any) -> dict[str, Any]:
    settled = make_options(MoverSimilarityOptions, metric, options).check(metric)
    check_choice(metric, "return_alignment", return_alignment, (True, False))
    texts, groups = check_pairs(metric, predictions, references)
    scorer = mover_similarity_scorer(metric, settled, (text for group in groups for text in group))
    return scorer.score(texts, groups, return_alignment)


def wms(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[MoverSimilarityKwargs],
) -> dict[str, Any]:
    """Word Mover's Similarity (Eq. 1–3): how cheaply the words of one text turn into those of the other.

    Parameters
    ----------
    predictions : n texts
    references : n texts, or n lists of texts
    return_alignment : bool
        Add `alignments`: what moved where.
    **options
        See `MoverSimilarityOptions`.

    Returns
    -------
    dict
        `score` (mean of `scores`), `scores` (n floats in (0, 1], 0 for a blank side), `signature`, `n_empty`,
        `n_unfiltered`, `n_truncated`, and `alignments` on request.

    Examples
    --------
    >>> result = wms(["A man sells snow online."], ["A man is selling snow on the internet."])
    >>> round(result["score"], 4)
    0.1466
    """
    return _score("wms", predictions, references, return_alignment, options)


def sms(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[MoverSimilarityKwargs],
) -> dict[str, Any]:
    """Sentence Mover's Similarity (Eq. 2–4): as `wms`, with sentences as units, weighted by their lengths.

    >>> result = sms(["Snow is sold online. It ships in a box."], ["It ships in a box. Snow is sold online."])
    >>> result["score"]
    1.0
    """
    return _score("sms", predictions, references, return_alignment, options)


def swms(
    predictions: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    return_alignment: bool = False,
    **options: Unpack[MoverSimilarityKwargs],
) -> dict[str, Any]:
    """Sentence and Word Mover's Similarity (Eq. 2, 3, 5): words and sentences in one bag.

    >>> result = swms(["Snow is sold online."], ["They sell snow. It ships in a box."], return_alignment=True)
    >>> sorted({unit["kind"] for unit in result["alignments"][0][0]["reference"]})
    ['sentence', 'word']
    """
    return _score("swms", predictions, references, return_alignment, options)

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
import threading
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders import load_encoder
from movers.encoders.layers import parse_aggregation
from movers.encoders.passages import when_whole
from movers.encoders.static import StaticEncoder
from movers.inputs import check_choice, check_pairs
from movers.scores.options import CommonKwargs, CommonOptions, make_options
from movers.scores.pairs import Comparison, Scorer, list_flows, no_flows
from movers.scores.weighing import (
    Corpus,
    check_stop_words,
    name_stop_words,
    normalised,
    resolve_tables,
    weigh,
)
from movers.signature import signature
from movers.texts import (
    Span,
    WordRules,
    is_mostly_non_latin,
    is_visible,
    sentence_spans,
    split_pieces,
    stop_words,
)
from movers.transport import Plan, emd, emd_of_normalised, pairwise_distances, unit_rows
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
    gather : function
        The (n, d) vectors. They are put together when a pair is compared and forgotten after it: a block of texts
        need not hold all of its words' vectors at once.
    masses : (n,) float64, sum 1
    describe : function
        The n units as dicts of `text`, `kind` ("word" or "sentence") and `sentence` (number of the first it stands in).
    """

    gather: Callable[[], Vectors]
    masses: Masses
    describe: Callable[[], list[dict[str, Any]]]


class Reading(NamedTuple):
    """The word occurrences of a text, before they become a bag.

    Attributes
    ----------
    text : str
    rows : n rows of `vectors`, in text order; equal rows are the same word type
    starts : function that gives the n character offsets
    words : the word of each row of `vectors`
    vectors : (N, d)
    spans : function that gives the sentences' character spans
    """

    text: str
    rows: list[int]
    starts: Callable[[], list[int]]
    words: Sequence[str]
    vectors: Vectors
    spans: Callable[[], list[tuple[int, int]]]

    def sentence_of(self) -> NDArray[np.intp]:
        """(n,) number of the sentence in which each occurrence begins."""
        begins = [begin for begin, _ in self.spans()]
        # A space before a combining mark belongs to its token, but not to the sentence it begins.
        return np.maximum(np.searchsorted(begins, self.starts(), side="right") - 1, 0)


# ---------------------------------------------------------------------------------------------------------------------
# The definitions


def word_bag(reading: Reading, weigh: WeighWords) -> Bag:
    r"""Eq. 1: :math:`d_{A,i} = \mathrm{count}(i) / |A|` for word type i; contextual words are each their own type."""
    counts: dict[int, int] = {}  # types in the order of their first occurrence
    for row in reading.rows:  # at the size of a sentence a Counter spends most of its time on what it was given
        counts[row] = counts.get(row, 0) + 1
    types = list(counts)
    table, words = reading.vectors, reading.words

    def gather() -> Vectors:
        return table[types]

    masses = weigh(lambda: [words[row] for row in types], gather, np.array([*counts.values()], dtype=np.float64))

    def describe() -> list[dict[str, Any]]:
        owners = reading.sentence_of()
        first: dict[int, int] = {}
        for row, owner in zip(reading.rows, owners.tolist(), strict=True):
            first.setdefault(row, owner)
        return [{"text": reading.words[row], "kind": "word", "sentence": first[row]} for row in types]

    return Bag(gather, masses, describe)


def sentence_bag(reading: Reading, weigh: WeighSentences, vectors_of: SentenceVectors | None) -> Bag:
    r"""Eq. 4: :math:`d_{A,i} = |i| / |A|` for sentence i, whose vector is the mean of its words' vectors."""
    owners = reading.sentence_of()
    numbers, starts = np.unique(owners, return_index=True)
    lengths = np.diff([*starts, len(owners)])
    spans = reading.spans()
    texts = [reading.text[slice(*spans[number])] for number in numbers]
    if vectors_of is None:
        sums = np.add.reduceat(reading.vectors[reading.rows].astype(np.float64), starts, axis=0)
        vectors = (sums / lengths[:, None]).astype(np.float32)
    else:
        vectors = vectors_of(texts)

    def words() -> list[list[str]]:
        ends = starts + lengths
        return [[reading.words[row] for row in reading.rows[i:j]] for i, j in zip(starts, ends, strict=True)]

    def describe() -> list[dict[str, Any]]:
        columns = zip(texts, numbers.tolist(), strict=True)
        return [{"text": text, "kind": "sentence", "sentence": number} for text, number in columns]

    return Bag(lambda: vectors, weigh(words, lengths.astype(np.float64)), describe)


def sentence_and_word_bag(words: Bag, sentences: Bag) -> Bag:
    r"""Eq. 5: words and sentences in one bag, normalised by :math:`2|A|`: each half has half of the mass."""
    return Bag(
        lambda: np.concatenate([words.gather(), sentences.gather()]),
        np.concatenate([words.masses, sentences.masses]) / 2,
        lambda: words.describe() + sentences.describe(),
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
        check_stop_words(metric, self.stopwords)
        if self.weights is not None:
            check_choice(metric, "weights", self.weights, Weights)
        if metric == "sms" and self.weights not in (None, "count", "idf"):
            raise ValueError(f"sms: weights: sms has no words to weigh by {self.weights!r}; set sentence_weights")
        if metric == "wms" and self.sentence_weights != "count":
            raise ValueError("wms: sentence_weights: wms compares words only; set weights, or use sms")
        weights = self.weights
        if weights is None:
            weights = "idf" if self.idf is not None and metric != "sms" else "count"
        sentence_weights = self.sentence_weights
        if self.idf is not None and metric == "sms" and sentence_weights == "count" and self.weights in (None, "idf"):
            sentence_weights = "idf"
        uses_idf = (weights == "idf" and metric != "sms") or (sentence_weights == "idf" and metric != "wms")
        if uses_idf and self.idf is None:
            raise ValueError(
                f"{metric}: weights: 'idf' needs a table: idf='corpus', a saved table's path or an IdfTable"
            )
        if self.idf is not None and not uses_idf:
            raise ValueError(
                f"{metric}: idf: a table is given, but weights={weights!r} and "
                f"sentence_weights={sentence_weights!r} do not use it"
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

WeighWords = Callable[[Callable[[], list[str]], Callable[[], Vectors], Masses], Masses]
WeighSentences = Callable[[Callable[[], list[list[str]]], Masses], Masses]
SentenceVectors = Callable[[Sequence[str]], Vectors]


class TextBags(NamedTuple):
    """A text's bag of kept units, and how to get the bag of all its tokens if that one is empty."""

    bag: Bag | None
    unfiltered: Callable[[], Bag | None]
    blank: bool
    cut: bool


class Lexicon:
    """What each written piece of text means to a static metric: a row of vectors, or nothing.

    Texts are read as pieces between word boundaries; judging a piece and finding its vector is done once, so that a
    text costs little more than the lookups of its pieces.
    """

    INVISIBLE, DROPPED = -1, -2
    _LIMIT = 1 << 16  # words kept: 64 MiB at 256 dimensions

    def __init__(self, encoder: StaticEncoder, rules: WordRules) -> None:
        self._encoder = encoder
        self._rules = rules
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._codes: dict[str, int] = {}
        self._row_of: dict[str, int] = {}
        self._words: list[str] = []
        self._vectors: Vectors = np.zeros((1024, self._encoder.dimension), np.float32)

    def learn(self, pieces: Iterable[str]) -> tuple[dict[str, int], list[str], Vectors]:
        """Codes of all these pieces (a row, INVISIBLE or DROPPED), and the words and vectors of the rows."""
        with self._lock:
            distinct = set(pieces)
            if len(self._words) > self._LIMIT:
                self._forget()  # those who hold the old lists keep them
            new = sorted(distinct.difference(self._codes))
            judged = [(piece, *self._rules.judge(piece)) for piece in new if is_visible(piece)]
            words = list(dict.fromkeys(word for _, word, kept in judged if kept and word not in self._row_of))
            vectors, known = self._encoder.vectors(words)
            self._append(
                [word for word, is_known in zip(words, known.tolist(), strict=True) if is_known], vectors[known]
            )
            self._codes.update(dict.fromkeys(new, self.INVISIBLE))
            for piece, word, kept in judged:
                self._codes[piece] = self._row_of.get(word, self.DROPPED) if kept else self.DROPPED
            return self._codes, self._words, self._vectors

    def _append(self, words: list[str], vectors: Vectors) -> None:
        begin, end = len(self._words), len(self._words) + len(words)
        if end > len(self._vectors):  # room for twice as many; those who hold the old array keep it
            wider = np.zeros((2 * end, self._vectors.shape[1]), np.float32)
            wider[:begin] = self._vectors[:begin]
            self._vectors = wider
        self._vectors[begin:end] = vectors
        self._row_of.update(zip(words, range(begin, end), strict=True))
        self._words += words


@lru_cache(maxsize=4)
def _lexicon(encoder: Any, rules: WordRules) -> Lexicon:
    return Lexicon(encoder, rules)


def _static_bags(
    texts: Sequence[str], encoder: Any, rules: WordRules, make: Callable[[Reading], Bag]
) -> Iterator[tuple[int, TextBags]]:
    def bag(text: str, pieces: list[str], codes: dict[str, int], words: Sequence[str], vectors: Vectors) -> Bag | None:
        rows = [row for piece in pieces if (row := codes[piece]) >= 0]
        if not rows:
            return None

        def starts() -> list[int]:
            ends = accumulate(map(len, pieces))
            return [end - len(piece) for end, piece in zip(ends, pieces, strict=True) if codes[piece] >= 0]

        return make(Reading(text, rows, starts, words, vectors, lambda: sentence_spans(text, rules.lang)))

    def unfiltered(text: str) -> Bag | None:
        everything = replace(rules, stopwords=frozenset(), keep_numbers=True, punctuation=False)
        pieces = split_pieces(text)
        return bag(text, pieces, *_lexicon(encoder, everything).learn(pieces))

    read = [split_pieces(text) for text in texts]
    codes, words, vectors = _lexicon(encoder, rules).learn(chain.from_iterable(read))
    for index, (text, pieces) in enumerate(zip(texts, read, strict=True)):
        kept = bag(text, pieces, codes, words, vectors)
        blank = kept is None and all(codes[piece] == Lexicon.INVISIBLE for piece in pieces)
        yield index, TextBags(kept, partial(unfiltered, text), blank, cut=False)


def _contextual_bags(
    texts: Sequence[str], encoder: Any, options: MoverSimilarityOptions, make: Callable[[Reading], Bag]
) -> Iterator[tuple[int, TextBags]]:
    rules = options.rules()
    sentences = [sentence_spans(text, rules.lang) for text in texts]
    # What the encoder reads: each distinct sentence once, or each distinct text.
    if options.context == "text":
        spans = [[(0, len(text))] if found else [] for text, found in zip(texts, sentences, strict=True)]
    else:
        spans = sentences

    def finish(index: int, encoded: Sequence[Any]) -> TextBags:
        text = texts[index]
        tokens = rules.spans(text)
        begins = [begin for begin, _ in spans[index]]
        found: list[Span] = []
        vectors: list[Vectors] = []
        for token in tokens:
            place = max(bisect_right(begins, token.start) - 1, 0)
            vector = _word_vector(encoded[place], token.start - begins[place], token.end - begins[place])
            if vector is not None:
                found.append(token)
                vectors.append(vector)

        def bag(filtered: bool) -> Bag | None:
            rows = [row for row, token in enumerate(found) if token.kept or not filtered]
            if not rows:
                return None
            words = [token.text for token in found]
            starts = [found[row].start for row in rows]
            return make(Reading(text, rows, lambda: starts, words, np.stack(vectors), lambda: sentences[index]))

        cut = any(passage.cut for passage in encoded)
        return TextBags(bag(True), partial(bag, False), not tokens, cut)

    aggregation = parse_aggregation("layer", options.layer)
    settings = {"batch_tokens": options.batch_tokens, "truncation": options.truncation, "window": options.window}
    passages = [[text[begin:end] for begin, end in own] for text, own in zip(texts, spans, strict=True)]
    for index, encoded in when_whole(passages, lambda distinct: encoder.encode(distinct, aggregation, **settings)):
        yield index, finish(index, encoded)


def _word_vector(passage: Any, start: int, end: int) -> Vectors | None:
    """Mean of the sub-words that overlap the characters from start to end; None if there is none."""
    tokens = passage.tokens
    overlap = np.flatnonzero((tokens.starts < end) & (tokens.ends > start) & ~tokens.special)
    return passage.vectors[overlap].mean(axis=0) if len(overlap) else None


# ---------------------------------------------------------------------------------------------------------------------
# The metrics


def mover_similarity_scorer(metric: Name, options: MoverSimilarityOptions, corpus: Corpus | None = None) -> Scorer:
    """`metric` with its options settled; the texts of the whole call are needed for `idf="corpus"` only."""
    options = options.check(metric)
    rules = options.rules()
    build = partial(_build_idf, rules)
    if isinstance(options.idf, tuple | list):
        raise TypeError(f"{metric}: idf: expected one table for both sides, but got {len(options.idf)}")
    tables = resolve_tables(metric, options.idf, corpus, build, "words")
    table = None if tables is None else tables.references
    encoder = load_encoder(options.model, device=options.device, dtype=options.dtype, progress=options.progress)
    static = isinstance(encoder, StaticEncoder)
    sentence_encoder = _sentence_encoder(metric, options, encoder)
    make = _bag_maker(metric, options, table, sentence_encoder)

    def represent(texts: Sequence[str]) -> Iterator[tuple[int, TextBags]]:
        _warn_about_script(metric, options, texts)
        if static:
            return _static_bags(texts, encoder, rules, make)
        return _contextual_bags(texts, encoder, options, make)

    def prepare(pairs: Sequence[tuple[TextBags, TextBags]]) -> Iterator[list[Problem | float]]:
        return _prepare(pairs, options.distance)

    return Scorer(
        name=metric,
        signature=_signature(metric, options, encoder, static, sentence_encoder, table),
        represent=represent,
        prepare=prepare,
        compare=_compare,
        was_cut=lambda bags: bags.cut,
        multi_ref=options.multi_ref,
        threads=options.threads,
        overlap=not static,
        progress=options.progress,
    )


def _build_idf(rules: WordRules, texts: Iterable[str]) -> IdfTable:
    return IdfTable.build(rules.words(text) for text in texts)


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


def _bag_maker(
    metric: Name, options: MoverSimilarityOptions, table: IdfTable | None, sentence_encoder: Any
) -> Callable[[Reading], Bag]:
    def weigh_words(words: Callable[[], list[str]], vectors: Callable[[], Vectors], counts: Masses) -> Masses:
        return normalised(metric, weigh(options.weights, counts, vectors, words, table))

    def weigh_sentences(words: Callable[[], list[list[str]]], lengths: Masses) -> Masses:
        if options.sentence_weights == "uniform":
            lengths = np.ones(len(lengths))
        elif options.sentence_weights == "idf":
            assert table is not None
            lengths = np.array([table(part).sum() for part in words()])
        return normalised(metric, lengths)

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
        return bag._replace(gather=lambda: unit_rows(bag.gather())) if options.normalize else bag

    return make


class Problem(NamedTuple):
    """Two bags, the costs between their units (m, n), and whether the bags are unfiltered."""

    first: Bag
    second: Bag
    costs: NDArray[np.float64]
    unfiltered: bool


_GROUP = 1 << 21  # numbers in a group's cost matrices: 16 MiB, or one matrix if that is more


def _prepare(pairs: Sequence[tuple[TextBags, TextBags]], distance: BagDistance) -> Iterator[list[Problem | float]]:
    """Groups of problems in the order of the pairs; a number is the score of a pair that has nothing to compare."""
    group: list[Problem | float] = []
    size = 0
    for texts in pairs:
        chosen = _choose_bags(*texts)
        if isinstance(chosen, float):
            group.append(chosen)
            continue
        first, second, unfiltered = chosen
        costs = pairwise_distances(first.gather(), second.gather(), distance)
        group.append(Problem(first, second, costs, unfiltered))
        size += costs.size
        if size >= _GROUP:
            yield group
            group, size = [], 0
    yield group


def _compare(problems: Sequence[Problem | float], aligned: bool) -> list[Comparison]:
    return [_solve(problem, aligned) for problem in problems]


def _choose_bags(first: TextBags, second: TextBags) -> tuple[Bag, Bag, bool] | float:
    """Both texts' bags and whether they are unfiltered; or the score of a pair that has nothing to compare."""
    if first.bag is not None and second.bag is not None:
        return first.bag, second.bag, False
    if first.blank and second.blank:
        return 1.0
    bag_a, bag_b = first.unfiltered(), second.unfiltered()
    return 0.0 if bag_a is None or bag_b is None else (bag_a, bag_b, True)


def _solve(problem: Problem | float, aligned: bool) -> Comparison:
    if isinstance(problem, float):
        return Comparison(problem, empty=True, alignment=no_flows() if aligned else None)
    plan = emd_of_normalised(problem.first.masses, problem.second.masses, problem.costs)
    alignment = _alignment(problem, plan) if aligned else None
    return Comparison(similarity(plan.cost), unfiltered=problem.unfiltered, alignment=alignment)


def _alignment(problem: Problem, plan: Plan) -> dict[str, Any]:
    return {
        "distance": plan.cost,
        "prediction": _units(problem.first),
        "reference": _units(problem.second),
        "flows": list_flows(plan.flow, problem.costs),
    }


def _units(bag: Bag) -> list[dict[str, Any]]:
    return [{**unit, "weight": mass} for unit, mass in zip(bag.describe(), bag.masses.tolist(), strict=True)]


def _warn_about_script(metric: str, options: MoverSimilarityOptions, texts: Sequence[str]) -> None:
    if options.stopwords != "english":
        return
    foreign = sum(is_mostly_non_latin(text) for text in texts[:64])
    if 2 * foreign > len(texts[:64]):
        warnings.warn(
            f"{metric}: stopwords='english' drops nothing from non-Latin text; pass stopwords=None or your own list",
            stacklevel=2,
        )


def _signature(
    metric: Name,
    options: MoverSimilarityOptions,
    encoder: Any,
    static: bool,
    sentence_encoder: Any,
    table: IdfTable | None,
) -> str:
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
    if table is not None:
        fields["idf"] = table.digest
    fields["stop"] = name_stop_words(options.stopwords)
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
    scorer = mover_similarity_scorer(metric, settled, Corpus.of(texts, groups))
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
    0.0102
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

"""Texts → words with vectors, static or contextual, for `wms`, `sms` and `swms`."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.bag import Bag, Label
from movers.encoders.contextual import EncodedText, surface_vectors
from movers.encoders.static import StaticEncoder, known_vectors
from movers.encoders.windows import group_when_complete
from movers.scores.metric import Encoding
from movers.texts import WordRules, cut_alike_alone, is_visible, needs_surface, sentence_spans, split_pieces

Vectors = NDArray[np.float32]
_Word = tuple[str, float]  # with its mass
_WORDS_KEPT = 1 << 15  # 32 MiB at 256 dimensions
#: Length of the direction that marks the surface of a number, relative to its vector.
SURFACE = 0.4
_LONGEST_TOKEN = 40  # characters; without spaces between words, tokens are whole sentences that hardly ever recur


class Words(NamedTuple):
    """The n words of a text that the rules keep and that have a vector, in text order."""

    bag: Bag  # the text and what is known of it, still without units
    rows: list[int]  # n rows of the table; equal rows are the same word type
    table: Vectors  # (N, d)
    names: Sequence[str]  # the N words of the table
    masses: NDArray[np.float64]  # (N,) mass of one occurrence: 1, or less for a stop word
    sentences: list[int]  # n indices of the sentence in which each begins; all 0 unless the reader splits sentences
    spans: list[tuple[int, int]]  # start and end of every sentence
    offsets: Sequence[tuple[int, int]] = ()  # n starts and ends of the words, for alignments only
    missing: frozenset[int] = frozenset()  # rows of words without a vector, if such words are kept


def _sentence_at(starts: Sequence[int], place: int) -> int:
    # A token can begin before its sentence: a space before a combining mark is part of the token.
    return max(bisect_right(starts, place) - 1, 0)


class StaticReader:
    """Reads texts with a static encoder, and remembers the words seen so far with their vectors.

    White space always ends a word, so the words of each whitespace-separated token are remembered: reading a text
    costs little more than one dictionary lookup per token.
    """

    def __init__(self, encoder: StaticEncoder, rules: WordRules, keep_unknown: bool) -> None:
        self.encoder, self.rules = encoder, rules
        self.keep_unknown = keep_unknown  # keep words without a vector, at the origin
        self.lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        """Begin anew; readers of the old lists keep them."""
        self.names: list[str] = []
        self.masses = np.zeros(1024)
        self.missing: set[int] = set()
        self.table = np.zeros((1024, self.encoder.dimension), np.float32)
        self.row_of: dict[_Word, int] = {}  # −1 for a word without a vector
        self._tokens: dict[str, tuple[int, ...]] = {}

    def read(self, texts: Sequence[str], split: bool, labelled: bool) -> Iterator[tuple[int, Words]]:
        """The words of each text; `split` tells their sentences, `labelled` their places and what was dropped."""
        spans = [sentence_spans(text, self.rules.lang) if split else [(0, len(text))] for text in texts]
        with self.lock:
            rows = self._rows_by_sentence(texts, spans) if split else [[own] for own in self._rows(texts)]
            return enumerate([self._words(*each, labelled) for each in zip(texts, rows, spans, strict=True)])

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Rows of the kept words of each text; −1 for a word without a vector, unless such words are kept."""
        if max(len(self.row_of), len(self._tokens) // 2) > _WORDS_KEPT:
            self._forget()
        written = [text.split() for text in texts]
        new = set(chain.from_iterable(written)).difference(self._tokens)
        whole: dict[int, list[_Word]] = {}
        if new:
            odd = {token for token in new if len(token) > _LONGEST_TOKEN or not cut_alike_alone(token)}
            words = {token: self._words_in(token) for token in new - odd}
            whole = {n: self._words_in(text) for n, text in enumerate(texts) if odd and not odd.isdisjoint(written[n])}
            self._learn(chain(*words.values(), *whole.values()))
            self._tokens.update((token, tuple(map(self.row_of.__getitem__, kept))) for token, kept in words.items())
        rows_of = self._tokens.__getitem__
        return [
            [*map(self.row_of.__getitem__, whole[n])] if n in whole else [*chain.from_iterable(map(rows_of, tokens))]
            for n, tokens in enumerate(written)
        ]

    def _words_in(self, text: str) -> list[_Word]:
        pieces = filter(is_visible, split_pieces(text))
        return [(span.text, span.mass) for piece in pieces for span in self.rules.judge(piece) if not span.reason]

    def _learn(self, words: Iterable[_Word]) -> None:
        new = [word for word in dict.fromkeys(words) if word not in self.row_of]
        names = [name for name, _ in new]
        vectors, known = known_vectors(self.encoder, names)
        vectors = mark_surfaces(names, vectors)
        begin = len(self.names)
        if self.keep_unknown:
            self.missing.update((begin + np.flatnonzero(~known)).tolist())
        else:
            self.row_of.update(dict.fromkeys(new, -1))
            new, vectors = [word for word, has in zip(new, known, strict=True) if has], vectors[known]
        end = begin + len(new)
        if end > len(self.table):
            wider = np.zeros((2 * end, self.encoder.dimension), np.float32)
            wider[:begin] = self.table[:begin]
            self.table, self.masses = wider, np.resize(self.masses, 2 * end)
        self.table[begin:end] = vectors
        self.masses[begin:end] = [mass for _, mass in new]
        self.row_of.update(zip(new, range(begin, end), strict=True))
        self.names += [name for name, _ in new]

    def _rows_by_sentence(self, texts: Sequence[str], spans: list[list[tuple[int, int]]]) -> list[list[list[int]]]:
        starts = [[begin for begin, _ in own] for own in spans]
        # A boundary inside "end.Next", which is one word, or before a combining mark: the text is read whole.
        odd = {
            index
            for index, text in enumerate(texts)
            if any(not (text[start - 1].isspace() and cut_alike_alone(text[start])) for start in starts[index] if start)
        }
        plain = [index for index in range(len(texts)) if index not in odd]
        part_rows = iter(self._rows([texts[index][begin:end] for index in plain for begin, end in spans[index]]))
        return [
            self._rows_of_whole(text, starts[index]) if index in odd else [next(part_rows) for _ in spans[index]]
            for index, text in enumerate(texts)
        ]

    def _rows_of_whole(self, text: str, starts: list[int], every: bool = False) -> list[list[int]]:
        """Rows of the words of each sentence; with `every`, of all tokens."""
        words: list[list[_Word]] = [[] for _ in starts]
        for span in self.rules.spans(text):
            if every or not span.reason:
                words[_sentence_at(starts, span.start)].append((span.text, span.mass or 1.0))
        self._learn(chain.from_iterable(words))
        return [[*map(self.row_of.__getitem__, sentence)] for sentence in words]

    def _words(self, text: str, rows: list[list[int]], spans: list[tuple[int, int]], labelled: bool) -> Words:
        starts = [begin for begin, _ in spans]
        unfiltered = not any(rows) and is_visible(text)
        if unfiltered:
            rows = self._rows_of_whole(text, starts, every=True)
        every = rows[0] if len(rows) == 1 else [*chain.from_iterable(rows)]
        sentences = [0] * len(every) if len(rows) == 1 else [n for n, own in enumerate(rows) for _ in own]
        unknown = -1 in every
        if unknown:
            sentences = [number for number, row in zip(sentences, every, strict=True) if row >= 0]
            every = [row for row in every if row >= 0]
        missing = frozenset(self.missing.intersection(every)) if self.missing else frozenset()
        dropped: list[Label] = []
        offsets: list[tuple[int, int]] = []
        for word, start, end, mass, reason in self.rules.spans(text) if labelled else ():
            reason = "" if unfiltered else reason
            reason = reason or ("" if self.row_of.get((word, mass or 1.0), 0) >= 0 else "no vector")
            if reason:
                dropped.append(Label(word, "word", _sentence_at(starts, start), start, end, reason))
            else:
                offsets.append((start, end))
        blank = not every and not is_visible(text)
        bag = Bag(text, dropped=tuple(dropped), unknown=unknown or bool(missing), blank=blank, unfiltered=unfiltered)
        return Words(bag, every, self.table, self.names, self.masses, sentences, spans, offsets, missing)


#: One reader for all metrics with the same encoder and rules.
static_reader = lru_cache(maxsize=4)(StaticReader)


def read_contextual(
    texts: Sequence[str], encoding: Encoding, rules: WordRules, context: str
) -> Iterator[tuple[int, Words]]:
    """Read texts with a transformer, one sentence or one text at a time (`context`); each word is its own type."""
    sentences = [sentence_spans(text, rules.lang) for text in texts]
    spans = sentences
    if context == "text":
        spans = [[(0, len(text))] if own else [] for text, own in zip(texts, sentences, strict=True)]
    passages = [[text[begin:end] for begin, end in own] for text, own in zip(texts, spans, strict=True)]
    # The encoder reads each distinct passage once.
    for index, encoded in group_when_complete(passages, encoding):
        text, begins = texts[index], [begin for begin, _ in spans[index]]
        tokens, starts = rules.spans(text), [begin for begin, _ in sentences[index]]
        unfiltered = bool(tokens) and all(span.reason for span in tokens)
        names, vectors, masses, owners, offsets, dropped = [], [], [], [], [], []
        for word, start, end, mass, reason in tokens:
            if unfiltered or not reason:
                place = _sentence_at(begins, start)
                vector = _word_vector(encoded[place], start - begins[place], end - begins[place])
                if vector is not None:
                    names.append(word)
                    vectors.append(vector)
                    masses.append(mass or 1.0)
                    owners.append(_sentence_at(starts, start))
                    offsets.append((start, end))
                    continue
            dropped.append(Label(word, "word", _sentence_at(starts, start), start, end, reason or "no vector"))
        unknown = any(passage.tokens.unknown.any() for passage in encoded)
        cut = any(passage.cut for passage in encoded)
        bag = Bag(text, dropped=tuple(dropped), unknown=unknown, cut=cut, blank=not tokens, unfiltered=unfiltered)
        table, rows = mark_surfaces(names, np.stack(vectors)) if vectors else bag.vectors, list(range(len(names)))
        yield index, Words(bag, rows, table, names, np.array(masses), owners, sentences[index], offsets)


def _word_vector(passage: EncodedText, start: int, end: int) -> Vectors | None:
    """Mean vector of the subwords that overlap the characters from start to end; None if there is none."""
    tokens = passage.tokens
    overlap = np.flatnonzero((tokens.starts < end) & (tokens.ends > start) & ~tokens.special)
    return passage.vectors[overlap].mean(axis=0) if len(overlap) else None


def mark_surfaces(words: Sequence[str], vectors: Vectors) -> Vectors:
    """The vectors (n, d), those of numbers and symbols with a direction of their own surface added.

    The mean of subword vectors is the same for 15 and 51, and nearly so for 100 and 1000, or for two emoji.
    """
    marked = [place for place, word in enumerate(words) if needs_surface(word)]
    if marked:
        lengths = SURFACE * np.linalg.norm(vectors[marked].astype(np.float64), axis=1)
        vectors = vectors.copy()
        vectors[marked] += surface_vectors([words[place].lower() for place in marked], lengths, vectors.shape[1])
    return vectors

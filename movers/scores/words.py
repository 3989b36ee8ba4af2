"""Texts → words with vectors, static or contextual, for `wms`, `sms` and `swms`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from movers.encoders import Encoder
from movers.encoders.checks import checked_texts
from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder
from movers.encoders.windows import Truncation, group_when_complete
from movers.scores.bags import Bag
from movers.scores.lexicon import INVISIBLE, Entries, lexicon_of
from movers.texts import Span, WordRules, is_visible, sentence_spans, split_pieces
from movers.weights import IdfTable, Keys

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder, EncodedText

__all__ = [
    "ContextualReader",
    "JoinedUnits",
    "SentenceUnits",
    "StaticReader",
    "WordIdf",
    "WordReader",
    "WordText",
    "WordUnits",
    "Words",
    "sentence_of",
]

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


class Words(Protocol):
    """Word occurrences of a text.

    Attributes
    ----------
    text : str
    rows : n rows of `vectors`, in text order; equal rows are the same word type
    words : the word of each row of `vectors`
    vectors : (N, d)
    squares : (N,) squared norms of the vectors, or None
    """

    @property
    def text(self) -> str: ...

    @property
    def rows(self) -> list[int]: ...

    @property
    def words(self) -> Sequence[str]: ...

    @property
    def vectors(self) -> Vectors: ...

    @property
    def squares(self) -> Floats | None: ...

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of every sentence."""
        ...

    def unknown_rows(self) -> AbstractSet[int]:
        """Rows of words without a vector, if such words are kept."""
        ...

    def starts(self) -> list[int]:
        """Character offsets of the n occurrences."""
        ...


def sentence_of(words: Words) -> NDArray[np.intp]:
    """(n,) index of the sentence in which each occurrence begins."""
    begins = [begin for begin, _ in words.spans()]
    # A token can begin before its sentence: a space before a combining mark is part of the token.
    return np.maximum(np.searchsorted(begins, words.starts(), side="right") - 1, 0)


class WordUnits(NamedTuple):
    """Word types of a text in order of first occurrence; `types` are rows of `words.vectors`."""

    words: Words
    types: list[int]

    def vectors(self) -> Vectors:
        return self.words.vectors.take(self.types, axis=0)

    def unknown(self) -> NDArray[np.bool_]:
        return np.isin(self.types, list(self.words.unknown_rows()))

    def keys(self) -> list[str]:
        return [self.words.words[row] for row in self.types]

    def describe(self) -> list[dict[str, object]]:
        first: dict[int, int] = {}
        for row, number in zip(self.words.rows, sentence_of(self.words).tolist(), strict=True):
            first.setdefault(row, number)
        return [{"text": self.words.words[row], "kind": "word", "sentence": first[row]} for row in self.types]


@dataclass(frozen=True)
class SentenceUnits:
    """Sentences of a text with their (n, d) vectors and their indices."""

    matrix: Vectors
    texts: list[str]
    numbers: list[int]

    def vectors(self) -> Vectors:
        return self.matrix

    def unknown(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.numbers), dtype=bool)

    def keys(self) -> list[str]:
        return self.texts

    def describe(self) -> list[dict[str, object]]:
        columns = zip(self.texts, self.numbers, strict=True)
        return [{"text": text, "kind": "sentence", "sentence": number} for text, number in columns]


@dataclass(frozen=True)
class JoinedUnits:
    """Words and sentences of a text in one bag."""

    words: Bag
    sentences: Bag

    def vectors(self) -> Vectors:
        return np.concatenate([self.words.units.vectors(), self.sentences.units.vectors()])

    def unknown(self) -> NDArray[np.bool_]:
        return np.concatenate([self.words.units.unknown(), self.sentences.units.unknown()])

    def keys(self) -> list[Hashable]:
        return [*self.words.units.keys(), *self.sentences.units.keys()]

    def describe(self) -> list[dict[str, object]]:
        return self.words.units.describe() + self.sentences.units.describe()


class WordText(Protocol):
    """A text that has been read."""

    @property
    def text(self) -> str: ...

    @property
    def cut(self) -> bool:
        """Whether the text was truncated."""
        ...

    @property
    def unknown(self) -> bool:
        """Whether it has words or subwords that the encoder does not know."""
        ...

    @property
    def blank(self) -> bool:
        """Whether it has no visible character."""
        ...

    def words(self, filtered: bool) -> Words | None:
        """The words that the rules keep, or all tokens; None if there are none."""
        ...


class WordReader(Protocol):
    """Reads distinct texts as words with vectors."""

    @property
    def encoder(self) -> Encoder: ...

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, WordText]]: ...


@dataclass(frozen=True)
class WordIdf:
    """Builds IDF tables of words."""

    rules: WordRules
    keys: Keys = "words"
    tokenizer: str | None = None

    def build(self, texts: Iterable[str]) -> IdfTable:
        return IdfTable.build(self.rules.words(text) for text in texts)


# ---------------------------------------------------------------------------------------------------------------------
# Static words


@dataclass(frozen=True)
class StaticReader:
    """Reads texts with a static encoder."""

    encoder: StaticEncoder
    rules: WordRules
    keep_unknown: bool = False  # keep words without a vector, at the origin

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, StaticText]]:
        entries, rows, unknown = lexicon_of(self.encoder, self.rules, self.keep_unknown).read(texts)
        for index, text in enumerate(texts):
            yield index, StaticText(self, text, rows[index], entries, unknown[index])


class StaticText(NamedTuple):
    """A text as rows of a lexicon."""

    reader: StaticReader
    text: str
    rows: list[int]
    entries: Entries
    unknown: bool
    cut: bool = False

    @property
    def blank(self) -> bool:
        return not is_visible(self.text)

    def words(self, filtered: bool) -> StaticWords | None:
        if filtered:
            return StaticWords(self.text, self.rows, self.entries, self.reader.rules.lang) if self.rows else None
        everything = replace(self.reader.rules, stopwords=frozenset(), keep_numbers=True, punctuation=False)
        ((_, text),) = replace(self.reader, rules=everything).read([self.text])
        return text.words(filtered=True)


class StaticWords(NamedTuple):
    """Occurrences of static words; sentences and offsets are computed on demand."""

    text: str
    rows: list[int]
    entries: Entries
    lang: str

    @property
    def words(self) -> Sequence[str]:
        return self.entries.words

    @property
    def vectors(self) -> Vectors:
        return self.entries.vectors

    @property
    def squares(self) -> Floats:
        return self.entries.squares

    def unknown_rows(self) -> AbstractSet[int]:
        return self.entries.unknown

    def spans(self) -> list[tuple[int, int]]:
        return sentence_spans(self.text, self.lang)

    def starts(self) -> list[int]:
        pieces, codes = split_pieces(self.text), self.entries.codes
        ends = accumulate(map(len, pieces))
        return [end - len(piece) for end, piece in zip(ends, pieces, strict=True) if codes.get(piece, INVISIBLE) >= 0]


# ---------------------------------------------------------------------------------------------------------------------
# Contextual words


@dataclass(frozen=True)
class ContextualReader:
    """Reads texts with a transformer, one sentence or one text at a time (`context`)."""

    encoder: ContextualEncoder
    rules: WordRules
    aggregation: Aggregation
    context: str
    batch_tokens: int | None
    truncation: Truncation
    window: int | None

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, ContextualText]]:
        sentences = [sentence_spans(text, self.rules.lang) for text in texts]
        # The encoder reads each distinct sentence, or each distinct text, once.
        spans = sentences
        if self.context == "text":
            spans = [[(0, len(text))] if found else [] for text, found in zip(texts, sentences, strict=True)]
        passages = [[text[begin:end] for begin, end in own] for text, own in zip(texts, spans, strict=True)]
        for index, encoded in group_when_complete(passages, self._encode):
            yield index, self._finish(texts[index], sentences[index], spans[index], encoded)

    def _encode(self, passages: list[str]) -> Iterator[tuple[int, EncodedText]]:
        found = self.encoder.encode(
            passages,
            self.aggregation,
            batch_tokens=self.batch_tokens,
            truncation=self.truncation,
            window=self.window,
        )
        return checked_texts(self.encoder, passages, found)

    def _finish(
        self, text: str, sentences: list[tuple[int, int]], spans: list[tuple[int, int]], encoded: list[EncodedText]
    ) -> ContextualText:
        tokens = self.rules.spans(text)
        begins = [begin for begin, _ in spans]
        found: list[Span] = []
        vectors: list[Vectors] = []
        for token in tokens:
            place = max(bisect_right(begins, token.start) - 1, 0)
            vector = _word_vector(encoded[place], token.start - begins[place], token.end - begins[place])
            if vector is not None:
                found.append(token)
                vectors.append(vector)
        cut = any(passage.cut for passage in encoded)
        unknown = any(passage.tokens.unknown.any() for passage in encoded)
        return ContextualText(text, sentences, found, vectors, not tokens, cut, unknown)


def _word_vector(passage: EncodedText, start: int, end: int) -> Vectors | None:
    """Mean vector of the subwords that overlap the characters from start to end; None if there is none."""
    tokens = passage.tokens
    overlap = np.flatnonzero((tokens.starts < end) & (tokens.ends > start) & ~tokens.special)
    return passage.vectors[overlap].mean(axis=0) if len(overlap) else None


@dataclass(frozen=True)
class ContextualText:
    """The tokens of a text that have a vector; each is its own type."""

    text: str
    sentences: list[tuple[int, int]]
    tokens: list[Span]
    vectors: list[Vectors]
    blank: bool
    cut: bool
    unknown: bool

    def words(self, filtered: bool) -> ContextualWords | None:
        rows = [row for row, token in enumerate(self.tokens) if token.kept or not filtered]
        if not rows:
            return None
        words = [token.text for token in self.tokens]
        return ContextualWords(self.text, rows, words, np.stack(self.vectors), self.sentences, self.tokens)


@dataclass(frozen=True)
class ContextualWords:
    """Occurrences of contextual words."""

    text: str
    rows: list[int]
    words: Sequence[str]
    vectors: Vectors
    sentences: list[tuple[int, int]]
    tokens: list[Span]
    squares: None = None

    def unknown_rows(self) -> AbstractSet[int]:
        return frozenset()

    def spans(self) -> list[tuple[int, int]]:
        return self.sentences

    def starts(self) -> list[int]:
        return [self.tokens[row].start for row in self.rows]

"""Fast path for static words: every distinct piece of text is filtered and looked up once.

A text is split at Unicode word boundaries into pieces; a lexicon caches for each piece whether the rules keep it, and
its vector. White space always ends a piece, so the result for each whitespace-separated token is cached as well, and
reading a text costs little more than one dictionary lookup per token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.static import StaticEncoder, known_vectors
from movers.texts import WordRules, cut_alike_alone, is_visible, split_pieces
from movers.threads import SafeLock

__all__ = ["DROPPED", "INVISIBLE", "UNKNOWN", "Entries", "Lexicon", "ReadRows", "lexicon_of"]

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
INVISIBLE, DROPPED, UNKNOWN = -1, -2, -3
_WORDS_KEPT = 1 << 15  # 32 MiB at 256 dimensions
_LONGEST_TOKEN = 40  # characters; without spaces between words, tokens are whole sentences that hardly ever recur
_LEXICONS_KEPT = 4


class Entries(NamedTuple):
    """Codes of pieces (a row, INVISIBLE, DROPPED by the rules, UNKNOWN to the encoder); words and vectors of rows."""

    codes: dict[str, int]
    words: list[str]
    vectors: Vectors
    squares: Floats  # squared lengths of the vectors
    unknown: set[int]  # rows of unknown words, which are at the origin


class ReadRows(NamedTuple):
    """n texts: the rows of their kept words in text order, and whether they have unknown words."""

    entries: Entries
    rows: list[list[int]]
    unknown: list[bool]


class Lexicon:
    """All words seen so far, for one encoder and one set of rules."""

    def __init__(self, encoder: StaticEncoder, rules: WordRules, keep_unknown: bool = False) -> None:
        self.encoder = encoder
        self.rules = rules
        self.keep_unknown = keep_unknown
        self._lock = SafeLock()
        self._forget()

    def _forget(self) -> None:
        self._codes: dict[str, int] = {}
        self._tokens: dict[str, tuple[int, ...]] = {}  # whitespace-separated token → rows of its kept words
        self._unknown_tokens: set[str] = set()
        self._row_of: dict[str, int] = {}
        self._words: list[str] = []
        self._unknown: set[int] = set()
        # Allocated lazily by the system; growing a smaller array would need memory for both during the copy.
        self._vectors: Vectors = np.zeros((2 * _WORDS_KEPT, self.encoder.dimension), np.float32)
        self._squares: Floats = np.zeros(2 * _WORDS_KEPT)

    def read(self, texts: Sequence[str]) -> ReadRows:
        """The kept words of texts."""
        written = [text.split() for text in texts]
        with self._lock:
            self._make_room()
            rows, missing = self._look_up(written, range(len(texts)))
            cut = self._learn_tokens(texts, written, missing) if missing else {}
            found, _ = self._look_up(written, [n for n in missing if n not in cut])
            rows |= found
            unknown = [False] * len(texts)
            if self._unknown_tokens:
                unknown = [not self._unknown_tokens.isdisjoint(own) for own in written]
            for n, pieces in cut.items():
                codes = [self._codes[piece] for piece in pieces]
                rows[n] = [code for code in codes if code >= 0]
                unknown[n] = self._has_unknown(codes)
            return ReadRows(self._entries(), [rows[n] for n in range(len(texts))], unknown)

    def _look_up(self, written: list[list[str]], numbers: Iterable[int]) -> tuple[dict[int, list[int]], list[int]]:
        """Rows of the texts whose tokens are all cached, and the indices of the other texts."""
        rows_of, rows, missing = self._tokens.__getitem__, {}, []
        for n in numbers:
            try:
                rows[n] = [*chain.from_iterable(map(rows_of, written[n]))]
            except KeyError:
                missing.append(n)
        return rows, missing

    def _learn_tokens(self, texts: Sequence[str], written: list[list[str]], numbers: list[int]) -> dict[int, list[str]]:
        """Add the tokens of texts; returns the pieces of texts that must be split as a whole."""
        new = set(chain.from_iterable(written[n] for n in numbers)).difference(self._tokens)
        odd = {token for token in new if len(token) > _LONGEST_TOKEN or not cut_alike_alone(token)}
        pieces = {token: split_pieces(token) for token in new - odd}
        cut = {n: split_pieces(texts[n]) for n in numbers if not odd.isdisjoint(written[n])} if odd else {}
        self._learn(chain(*pieces.values(), *cut.values()))
        for token, parts in pieces.items():
            codes = [self._codes[piece] for piece in parts]
            self._tokens[token] = tuple(code for code in codes if code >= 0)
            if self._has_unknown(codes):
                self._unknown_tokens.add(token)
        return cut

    def learn(self, pieces: Iterable[str]) -> Entries:
        """Entries that cover all these pieces."""
        with self._lock:
            self._make_room()
            self._learn(pieces)
            return self._entries()

    def _make_room(self) -> None:
        if max(len(self._words), len(self._codes) // 2, len(self._tokens) // 2) > _WORDS_KEPT:
            self._forget()  # readers of the old lists keep them

    def _has_unknown(self, codes: list[int]) -> bool:
        return UNKNOWN in codes or not self._unknown.isdisjoint(codes)

    def _entries(self) -> Entries:
        return Entries(self._codes, self._words, self._vectors, self._squares, self._unknown)

    def _learn(self, pieces: Iterable[str]) -> None:
        new = sorted(set(pieces).difference(self._codes))
        judged = [(piece, *self.rules.judge(piece)) for piece in new if is_visible(piece)]
        words = list(dict.fromkeys(word for _, word, kept in judged if kept and word not in self._row_of))
        vectors, known = known_vectors(self.encoder, words)
        self._append([word for word, found in zip(words, known.tolist(), strict=True) if found], vectors[known])
        if self.keep_unknown:
            missing = [word for word, found in zip(words, known.tolist(), strict=True) if not found]
            self._unknown.update(range(len(self._words), len(self._words) + len(missing)))
            self._append(missing, np.zeros((len(missing), self.encoder.dimension), np.float32))
        self._codes.update(dict.fromkeys(new, INVISIBLE))
        for piece, word, kept in judged:
            self._codes[piece] = self._row_of.get(word, UNKNOWN) if kept else DROPPED

    def _append(self, words: list[str], vectors: Vectors) -> None:
        begin, end = len(self._words), len(self._words) + len(words)
        if end > len(self._vectors):  # double the capacity; readers of the old arrays keep them
            self._vectors, self._squares = (_wider(old, begin, 2 * end) for old in (self._vectors, self._squares))
        self._vectors[begin:end] = vectors
        self._squares[begin:end] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        self._row_of.update(zip(words, range(begin, end), strict=True))
        self._words += words


def _wider(old: Any, filled: int, size: int) -> Any:
    new = np.zeros((size, *old.shape[1:]), old.dtype)
    new[:filled] = old[:filled]
    return new


_lexicons: dict[tuple[int, WordRules, bool], Lexicon] = {}
_finding = SafeLock()


def lexicon_of(encoder: StaticEncoder, rules: WordRules, keep_unknown: bool = False) -> Lexicon:
    """The lexicon of an encoder and rules; the most recent ones are cached, for training loops."""
    key = (id(encoder), rules, keep_unknown)  # a cached lexicon keeps its encoder alive, so its id is not reused
    with _finding:
        found = _lexicons.pop(key, None) or Lexicon(encoder, rules, keep_unknown)
        _lexicons[key] = found
        while len(_lexicons) > _LEXICONS_KEPT:
            del _lexicons[next(iter(_lexicons))]
    return found

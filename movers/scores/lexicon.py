"""The fast path of static words: what each written piece of text means to a metric is found out once.

Texts are read as pieces between word boundaries; judging a piece and finding its vector is done once, so that a text
costs little more than the lookups of its pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.encoders.static import StaticEncoder, known_vectors
from movers.texts import WordRules, is_visible
from movers.threads import SafeLock

__all__ = ["DROPPED", "INVISIBLE", "UNKNOWN", "Entries", "Lexicon", "lexicon_of"]

Vectors = NDArray[np.float32]
INVISIBLE, DROPPED, UNKNOWN = -1, -2, -3
_WORDS_KEPT = 1 << 16  # 64 MiB at 256 dimensions
_LEXICONS_KEPT = 4


class Entries(NamedTuple):
    """Codes of pieces: a row, INVISIBLE, DROPPED by the rules or UNKNOWN to the encoder; words and vectors of rows."""

    codes: dict[str, int]
    words: list[str]
    vectors: Vectors
    unknown: set[int]  # rows at the origin, of words that the encoder does not know
    all_known: bool  # no word so far was unknown: texts need not be searched for any


class Lexicon:
    """The words of an encoder under some rules, as far as they have occurred."""

    def __init__(self, encoder: StaticEncoder, rules: WordRules, keep_unknown: bool = False) -> None:
        self.encoder = encoder
        self.rules = rules
        self.keep_unknown = keep_unknown
        self._lock = SafeLock()
        self._forget()

    def _forget(self) -> None:
        self._codes: dict[str, int] = {}
        self._row_of: dict[str, int] = {}
        self._words: list[str] = []
        self._unknown: set[int] = set()
        self._all_known = True
        self._vectors: Vectors = np.zeros((1024, self.encoder.dimension), np.float32)

    def learn(self, pieces: Iterable[str]) -> Entries:
        """Entries for all these pieces, and maybe more."""
        with self._lock:
            distinct = set(pieces)
            if len(self._words) > _WORDS_KEPT:
                self._forget()  # those who hold the old lists keep them
            new = sorted(distinct.difference(self._codes))
            judged = [(piece, *self.rules.judge(piece)) for piece in new if is_visible(piece)]
            words = list(dict.fromkeys(word for _, word, kept in judged if kept and word not in self._row_of))
            vectors, known = known_vectors(self.encoder, words)
            self._append([word for word, found in zip(words, known.tolist(), strict=True) if found], vectors[known])
            self._all_known &= bool(known.all())
            if self.keep_unknown:
                missing = [word for word, found in zip(words, known.tolist(), strict=True) if not found]
                self._unknown.update(range(len(self._words), len(self._words) + len(missing)))
                self._append(missing, np.zeros((len(missing), self.encoder.dimension), np.float32))
            self._codes.update(dict.fromkeys(new, INVISIBLE))
            for piece, word, kept in judged:
                self._codes[piece] = self._row_of.get(word, UNKNOWN) if kept else DROPPED
            return Entries(self._codes, self._words, self._vectors, self._unknown, self._all_known)

    def _append(self, words: list[str], vectors: Vectors) -> None:
        begin, end = len(self._words), len(self._words) + len(words)
        if end > len(self._vectors):  # room for twice as many; those who hold the old array keep it
            wider = np.zeros((2 * end, self._vectors.shape[1]), np.float32)
            wider[:begin] = self._vectors[:begin]
            self._vectors = wider
        self._vectors[begin:end] = vectors
        self._row_of.update(zip(words, range(begin, end), strict=True))
        self._words += words


_lexicons: dict[tuple[int, WordRules, bool], Lexicon] = {}
_finding = SafeLock()


def lexicon_of(encoder: StaticEncoder, rules: WordRules, keep_unknown: bool = False) -> Lexicon:
    """The lexicon of an encoder and rules; the last few are kept, because a training loop asks again and again."""
    key = (id(encoder), rules, keep_unknown)  # a kept lexicon holds its encoder, so that no other object gets this id
    with _finding:
        found = _lexicons.pop(key, None) or Lexicon(encoder, rules, keep_unknown)
        _lexicons[key] = found
        while len(_lexicons) > _LEXICONS_KEPT:
            del _lexicons[next(iter(_lexicons))]
    return found

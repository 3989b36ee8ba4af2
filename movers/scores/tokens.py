"""Token units of a text, as `moverscore` and `bertscore_*` see them: vectors, keys for IDF tables, and what to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder
from movers.texts import token_spans
from movers.weights import IdfTable

__all__ = ["Filters", "Punctuation", "TokenText", "Units", "build_idf", "encode_texts", "tokenizer_digest"]

Punctuation = Literal[True, False, "ascii"]
Vectors = NDArray[np.float32]

_MARKS = regex.compile(r"[\p{P}\p{S}]+")
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True)
class Filters:
    """Which tokens are units.

    Parameters
    ----------
    stopwords : frozenset of str
        Lower-cased words to drop; a token is dropped with the whole word it belongs to.
    punctuation : True, False or "ascii"
        Drop tokens wholly of Unicode classes P and S; "ascii" drops single ASCII marks only.
    drop_subwords : bool
        Keep only the first piece of a word.
    special_tokens : bool
        Keep the tokenizer's special tokens.
    """

    stopwords: frozenset[str] = frozenset()
    punctuation: Punctuation = False
    drop_subwords: bool = False
    special_tokens: bool = True


class Units(NamedTuple):
    """Kept tokens: their places in the text's token list, vectors (n, d) and keys of the IDF table."""

    places: NDArray[np.intp]
    vectors: Vectors
    keys: list[Any]


class TokenText:
    """A text as tokens with vectors.

    Parameters
    ----------
    text : str
    starts, ends : (n,) character offsets
    words : (n,) number of the word each token belongs to, −1 for special tokens
    special : (n,)
    vectors : (n, d)
    keys : n keys for IDF tables (token ids, or words)
    cut : bool
        Tokens were left out on request.
    unknown : bool
        The text has words that the encoder does not know.
    """

    def __init__(
        self,
        text: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        words: NDArray[np.int64],
        special: NDArray[np.bool_],
        vectors: Vectors,
        keys: Sequence[Any],
        cut: bool,
        unknown: bool = False,
    ) -> None:
        self.text = text
        self.starts, self.ends, self.words, self.special = starts, ends, words, special
        self.vectors = vectors
        self.keys = keys
        self.cut = cut
        self.unknown = unknown
        self._bags: dict[Any, Any] = {}

    @property
    def empty(self) -> bool:
        """No token but special ones: nothing to compare."""
        return bool(self.special.all())

    @property
    def blank(self) -> bool:
        """Empty, and not for want of vectors: two such texts are alike."""
        return self.empty and not self.unknown

    @cached_property
    def sentences(self) -> NDArray[np.intp]:
        """(n,) number of the sentence each token begins in."""
        from movers.texts import sentence_spans

        begins = [begin for begin, _ in sentence_spans(self.text)]
        return np.maximum(np.searchsorted(begins, self.starts, side="right") - 1, 0)

    def surface(self, place: int) -> str:
        """What the token covers in the text; special tokens by their role."""
        if self.special[place]:
            return "[start]" if place == 0 else "[end]"
        return self.text[self.starts[place] : self.ends[place]].strip()

    def units(self, filters: Filters) -> Units | None:
        """The tokens that the filters keep; None if they leave nothing but special tokens."""
        keep = ~self.special
        if filters.drop_subwords:
            first = np.ones(len(keep), dtype=bool)
            first[1:] = self.words[1:] != self.words[:-1]
            keep &= first
        if filters.punctuation is not False or filters.stopwords:
            for place in np.flatnonzero(keep).tolist():
                if self._is_dropped(place, filters):
                    keep[place] = False
        if not keep.any():
            return None
        if filters.special_tokens:
            keep |= self.special
        places = np.flatnonzero(keep)
        return Units(places, self.vectors[places], [self.keys[place] for place in places.tolist()])

    def _is_dropped(self, place: int, filters: Filters) -> bool:
        token = self.text[self.starts[place] : self.ends[place]].strip()
        if filters.punctuation == "ascii":
            if token in _ASCII_MARKS:
                return True
        elif filters.punctuation and _MARKS.fullmatch(token):
            return True
        return bool(filters.stopwords) and self._word(place).lower() in filters.stopwords

    def _word(self, place: int) -> str:
        """The whole word a token belongs to: `there` of `thereof` is no stop word."""
        members = np.flatnonzero(self.words == self.words[place])
        return self.text[self.starts[members[0]] : self.ends[members[-1]]].strip()

    def remember(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made of this text under `key`; a text with many references is prepared once."""
        if key not in self._bags:
            self._bags[key] = make()
        return self._bags[key]

    def describe(self, places: NDArray[np.intp], masses: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Units of an alignment."""
        return [
            {
                "text": self.surface(place),
                "kind": "special" if self.special[place] else "token",
                "sentence": int(self.sentences[place]),
                "weight": mass,
            }
            for place, mass in zip(places.tolist(), masses.tolist(), strict=True)
        ]


def encode_texts(
    encoder: Any,
    texts: Sequence[str],
    aggregation: Aggregation,
    *,
    lowercase: bool = True,
    also: Sequence[Aggregation] = (),
    **settings: Any,
) -> Iterator[tuple[int, TokenText]]:
    """Token texts by a contextual encoder, or by a static one on lower-cased words; in any order, as they get ready."""
    if isinstance(encoder, StaticEncoder):
        yield from _static_texts(encoder, texts, lowercase)
        return
    for index, encoded in encoder.encode(texts, aggregation, also=also, **settings):
        ids, starts, ends, words, special = encoded.tokens
        yield index, TokenText(texts[index], starts, ends, words, special, encoded.vectors, ids.tolist(), encoded.cut)


def _static_texts(encoder: StaticEncoder, texts: Sequence[str], lowercase: bool) -> Iterator[tuple[int, TokenText]]:
    documents = [token_spans(text) for text in texts]
    written = [[word.lower() if lowercase else word for word, _, _ in spans] for spans in documents]
    vocabulary = list(dict.fromkeys(word for words in written for word in words))
    table, known = encoder.vectors(vocabulary)
    rows = {word: row for row, word in enumerate(vocabulary) if known[row]}
    for index, (spans, words) in enumerate(zip(documents, written, strict=True)):
        found = [
            (rows[word], word, start, end) for word, (_, start, end) in zip(words, spans, strict=True) if word in rows
        ]
        count = len(found)
        yield (
            index,
            TokenText(
                texts[index],
                np.array([start for _, _, start, _ in found], dtype=np.int64),
                np.array([end for _, _, _, end in found], dtype=np.int64),
                np.arange(count),
                np.zeros(count, dtype=bool),
                table[[row for row, _, _, _ in found]],
                [word for _, word, _, _ in found],
                cut=False,
                unknown=count < len(spans),
            ),
        )


def tokenizer_digest(encoder: Any) -> str | None:
    """What an IDF table's keys depend on: the tokenizer of a contextual encoder; None for words."""
    return getattr(encoder, "tokenizer_digest", None)


def build_idf(encoder: Any, texts: Iterable[str], lowercase: bool = True, block: int = 1024) -> IdfTable:
    """Document frequencies of an encoder's keys: token ids, special ones included (their IDF is 0), or words."""
    digest = tokenizer_digest(encoder)
    if digest is None:
        return IdfTable.build(
            [word.lower() if lowercase else word for word, _, _ in token_spans(text)] for text in texts
        )

    def documents() -> Iterator[list[int]]:
        part: list[str] = []
        for text in texts:
            part.append(text)
            if len(part) == block:
                yield from (tokens.ids.tolist() for tokens in encoder.tokenize(part))
                part = []
        yield from (tokens.ids.tolist() for tokens in encoder.tokenize(part))

    return IdfTable.build(documents(), keys="tokens", tokenizer=digest)

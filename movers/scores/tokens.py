"""Token units of a text, as `moverscore` and `bertscore_*` see them: vectors, keys for IDF tables, and what to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from movers.encoders import load_encoder
from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder
from movers.scores.weighing import Corpus, Tables, resolve_tables
from movers.texts import token_spans
from movers.weights import IdfTable

__all__ = ["Filters", "Punctuation", "TokenSource", "TokenText", "Units", "build_idf", "source_fields", "token_source"]

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


class TokenSource(NamedTuple):
    """What the token metrics read texts with: encoder, what becomes of its layers, IDF tables of both sides."""

    encoder: Any
    aggregation: Aggregation
    tables: Tables | None
    represent: Callable[[Sequence[str]], Iterator[tuple[int, TokenText]]]

    @property
    def static(self) -> bool:
        return isinstance(self.encoder, StaticEncoder)

    def table(self, side: int) -> IdfTable | None:
        return None if self.tables is None else self.tables[side]


def token_source(
    metric: str, options: Any, aggregation: Aggregation, corpus: Corpus | None, both_sides: bool = False
) -> TokenSource:
    """Load the encoder that the options name and settle where IDF tables come from.

    both_sides : with `idf="corpus"`, give the predictions a table of their own.
    """
    encoder = load_encoder(options.model, device=options.device, dtype=options.dtype, progress=options.progress)
    digest = getattr(encoder, "tokenizer_digest", None)  # None: keys are words
    tables = resolve_tables(
        metric,
        options.idf,
        corpus,
        lambda texts: build_idf(encoder, texts, options.lowercase),
        "words" if digest is None else "tokens",
        digest,
        both_sides,
    )
    static = isinstance(encoder, StaticEncoder)
    if not static:
        aggregation.needed(encoder.states)  # a layer that the model does not have is an error now
        encoder.want(aggregation)

    def represent(texts: Sequence[str]) -> Iterator[tuple[int, TokenText]]:
        if static:
            return _static_texts(encoder, texts, options.lowercase)
        return _contextual_texts(encoder, texts, aggregation, options)

    return TokenSource(encoder, aggregation, tables, represent)


def source_fields(source: TokenSource, options: Any) -> dict[str, object]:
    """What a signature says of the encoder."""
    fields: dict[str, object] = {"emb": source.encoder.identity}
    if source.static:
        return {**fields, "case": "lower" if options.lowercase else "keep"}
    window = f"{source.encoder.window_for(options.window)}-{options.truncation}"
    return {**fields, "layer": source.aggregation, "dtype": options.dtype, "window": window}


def _contextual_texts(
    encoder: Any, texts: Sequence[str], aggregation: Aggregation, options: Any
) -> Iterator[tuple[int, TokenText]]:
    settings = {"batch_tokens": options.batch_tokens, "truncation": options.truncation, "window": options.window}
    for index, encoded in encoder.encode(texts, aggregation, also=encoder.wanted, **settings):
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


def build_idf(encoder: Any, texts: Iterable[str], lowercase: bool = True, block: int = 1024) -> IdfTable:
    """Document frequencies of an encoder's keys: token ids, special ones included (their IDF is 0), or words."""
    digest = getattr(encoder, "tokenizer_digest", None)
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

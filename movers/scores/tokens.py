"""Texts → tokens with vectors, for `moverscore` and `bertscore_*`; token filters and IDF tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import regex
from numpy.typing import NDArray

from movers.encoders import Encoder, load_encoder
from movers.encoders.checks import checked_texts
from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder, known_vectors
from movers.scores.bags import Bag
from movers.scores.languages import language_warning
from movers.scores.metric import PairMetric
from movers.scores.options import MultiRef, PairOptions, option
from movers.texts import sentence_spans, token_spans
from movers.threads import chunks
from movers.weights import Corpus, IdfTable, Keys, Tables, resolve_tables

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder

__all__ = ["Filters", "TokenIdf", "TokenMetric", "TokenOptions", "TokenReader", "TokenText", "TokenUnits", "build_idf"]

Vectors = NDArray[np.float32]
Side = Literal[0, 1]  # predictions, references

_MARKS = regex.compile(r"[\p{P}\p{S}]+")
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True, kw_only=True)
class TokenOptions(PairOptions):
    """Options shared by `moverscore` and `bertscore_*`."""

    model: object = option(
        "all-MiniLM-L6-v2",
        "encoder: a known name, a transformers model by Hub id or folder, a word-vector file or a spaCy pipeline",
        values="str, path, (model, tokenizer) or encoder",
    )
    lowercase: bool = option(True, "lowercase words, with a static encoder")


@dataclass(frozen=True)
class Filters:
    """Which tokens are kept.

    Parameters
    ----------
    stopwords : frozenset of str
        Lowercased words to drop; decided by the whole word, for all of its subwords.
    punctuation : True, False or "ascii"
        Drop tokens that consist of Unicode categories P and S only; "ascii" drops only single ASCII marks.
    drop_subwords : bool
        Keep only the first subword of a word.
    special_tokens : bool
        Keep the tokenizer's special tokens.
    """

    stopwords: frozenset[str] = frozenset()
    punctuation: bool | Literal["ascii"] = False
    drop_subwords: bool = False
    special_tokens: bool = True


@dataclass(frozen=True)
class TokenText:
    """A text as tokens with vectors.

    Attributes
    ----------
    text : str
    starts, ends : (n,) character offsets
    words : (n,) index of the word each token belongs to, −1 for special tokens
    special : (n,)
    unknown : (n,) tokens missing from the vocabulary
    matrix : (n, d) vectors
    ids : n keys for IDF tables (token ids, or words)
    cut : bool
        Whether the text was truncated.
    words_missing : bool
        The text has words without a vector.
    bags : dict
        Cache of the bags made from the text, by side and filter.
    """

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    words: NDArray[np.int64]
    special: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    matrix: Vectors
    ids: Sequence[Hashable]
    cut: bool
    words_missing: bool = False
    bags: dict[tuple[Side, bool], Bag | None] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is no token but special ones."""
        return bool(self.special.all())

    def same_as(self, other: TokenText) -> bool:
        """Whether two texts without tokens are equal: both blank, or the same words, all unknown."""
        blank = self.empty and other.empty and not (self.words_missing or other.words_missing)
        return self.text.split() == other.text.split() or blank

    @property
    def has_unknown(self) -> bool:
        """Whether it has words or subwords that the encoder does not know."""
        return self.words_missing or bool(self.unknown.any())

    @cached_property
    def sentences(self) -> NDArray[np.intp]:
        """(n,) index of the sentence in which each token begins."""
        begins = [begin for begin, _ in sentence_spans(self.text)]
        return np.maximum(np.searchsorted(begins, self.starts, side="right") - 1, 0)

    def surface(self, place: int) -> str:
        """The text of a token; special tokens by their role."""
        if self.special[place]:
            return "[start]" if place == 0 else "[end]"
        return self.text[self.starts[place] : self.ends[place]].strip()

    def units(self, filters: Filters) -> TokenUnits | None:
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
        return TokenUnits(self, np.flatnonzero(keep))

    def _is_dropped(self, place: int, filters: Filters) -> bool:
        token = self.text[self.starts[place] : self.ends[place]].strip()
        if filters.punctuation == "ascii":
            if token in _ASCII_MARKS:
                return True
        elif filters.punctuation and not self.unknown[place] and _MARKS.fullmatch(token):
            return True  # but not unknown symbols, such as emoji
        return bool(filters.stopwords) and self._word(place).lower() in filters.stopwords

    def _word(self, place: int) -> str:
        """The whole word of a token: `there` in `thereof` is no stop word."""
        members = np.flatnonzero(self.words == self.words[place])
        return self.text[self.starts[members[0]] : self.ends[members[-1]]].strip()


@dataclass(frozen=True)
class TokenUnits:
    """Kept tokens, by their positions among the tokens of the text."""

    text: TokenText
    places: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.places)

    def vectors(self) -> Vectors:
        return self.text.matrix[self.places]

    def keys(self) -> list[Hashable]:
        return [self.text.ids[place] for place in self.places.tolist()]

    def unknown(self) -> NDArray[np.bool_]:
        return self.text.unknown[self.places]

    def special(self) -> NDArray[np.bool_]:
        """(n,) True for special tokens."""
        return self.text.special[self.places]

    def describe(self) -> list[dict[str, object]]:
        return [
            {
                "text": self.text.surface(place),
                "kind": "special" if self.text.special[place] else "token",
                "sentence": int(self.text.sentences[place]),
            }
            for place in self.places.tolist()
        ]


@dataclass(frozen=True)
class TokenReader:
    """An encoder with its layer aggregation and the IDF tables of both sides."""

    metric: str
    encoder: Encoder
    aggregation: Aggregation
    tables: Tables | None
    options: TokenOptions

    @classmethod
    def load(
        cls,
        metric: str,
        options: TokenOptions,
        aggregation: Aggregation,
        corpus: Corpus | None,
        both_sides: bool = False,
    ) -> TokenReader:
        """Load the encoder and the IDF tables that the options name.

        both_sides : with `idf="corpus"`, build a separate table from the predictions.
        """
        encoder = load_encoder(options.model, device=options.device, dtype=options.dtype, progress=options.progress)
        tables = resolve_tables(metric, options.idf, corpus, TokenIdf(encoder, options.lowercase), both_sides)
        if not isinstance(encoder, StaticEncoder):
            aggregation.needed(encoder.states)  # fail early if the model lacks a layer
            if options.shared_pass is not None:
                options.shared_pass.add(encoder.identity, aggregation)
        return cls(metric, encoder, aggregation, tables, options)

    def reading_whole(self) -> TokenReader:
        """The reader with `truncation="window"`."""
        return replace(self, options=replace(self.options, truncation="window"))

    @property
    def static(self) -> bool:
        return isinstance(self.encoder, StaticEncoder)

    def table(self, side: Side) -> IdfTable | None:
        return None if self.tables is None else self.tables[side]

    def fields(self) -> dict[str, object]:
        """Signature fields of the encoder."""
        fields: dict[str, object] = {"emb": self.encoder.identity}
        if isinstance(self.encoder, StaticEncoder):
            return {**fields, "case": "lower" if self.options.lowercase else "keep"}
        window = f"{self.encoder.window_for(self.options.window)}-{self.options.truncation}"
        return {**fields, "layer": self.aggregation, "dtype": self.encoder.dtype, "window": window}

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenText]]:
        """Yield each text as soon as it is ready, in any order."""
        language_warning(self.metric, self.encoder, texts, getattr(self.options, "lang", None) or "en")
        if isinstance(self.encoder, StaticEncoder):
            return _static_texts(self.encoder, texts, self.options.lowercase)
        return self._contextual_texts(self.encoder, texts)

    def _contextual_texts(self, encoder: ContextualEncoder, texts: Sequence[str]) -> Iterator[tuple[int, TokenText]]:
        shared = self.options.shared_pass
        encoding = encoder.encode(
            texts,
            self.aggregation,
            extra=() if shared is None else shared.wanted(encoder.identity),
            batch_tokens=self.options.batch_tokens,
            truncation=self.options.truncation,
            window=self.options.window,
        )
        for index, encoded in checked_texts(encoder, texts, encoding):
            ids, starts, ends, words, special, unknown = encoded.tokens
            rows = encoded.vectors
            yield (
                index,
                TokenText(texts[index], starts, ends, words, special, unknown, rows, ids.tolist(), encoded.cut),
            )


@dataclass(frozen=True, kw_only=True)
class TokenMetric(PairMetric[TokenText]):
    """What `moverscore` and `bertscore_*` share: a reader of tokens; each says how two texts of tokens compare."""

    options: TokenOptions
    reader: TokenReader

    @property
    def multi_ref(self) -> MultiRef:
        return self.options.multi_ref

    @property
    def runs_in_processes(self) -> bool:
        return self.reader.static

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenText]]:
        return self.reader.read(texts)

    def was_cut(self, text: TokenText) -> bool:
        return text.cut

    def has_unknown(self, text: TokenText) -> bool:
        return text.has_unknown

    def idf_tables(self) -> Tables | None:
        return self.reader.tables

    def reading_whole(self) -> Self:
        return replace(self, reader=self.reader.reading_whole())


def _written(text: str, lowercase: bool) -> list[tuple[str, int, int]]:
    return [(word.lower() if lowercase else word, start, end) for word, start, end in token_spans(text)]


def _static_texts(encoder: StaticEncoder, texts: Sequence[str], lowercase: bool) -> Iterator[tuple[int, TokenText]]:
    documents = [_written(text, lowercase) for text in texts]
    vocabulary = list(dict.fromkeys(word for spans in documents for word, _, _ in spans))
    table, known = known_vectors(encoder, vocabulary)
    rows = {word: row for row, word in enumerate(vocabulary) if known[row]}
    for index, spans in enumerate(documents):
        found = [span for span in spans if span[0] in rows]
        count = len(found)
        text = TokenText(
            text=texts[index],
            starts=np.array([start for _, start, _ in found], dtype=np.int64),
            ends=np.array([end for _, _, end in found], dtype=np.int64),
            words=np.arange(count),
            special=np.zeros(count, dtype=bool),
            unknown=np.zeros(count, dtype=bool),
            matrix=table[[rows[word] for word, _, _ in found]],
            ids=[word for word, _, _ in found],
            cut=False,
            words_missing=count < len(spans),
        )
        yield index, text


@dataclass(frozen=True)
class TokenIdf:
    """Builds IDF tables of an encoder's keys: token ids, special ones included (their IDF is 0), or words."""

    encoder: Encoder
    lowercase: bool = True

    @property
    def keys(self) -> Keys:
        return "words" if isinstance(self.encoder, StaticEncoder) else "tokens"

    @property
    def tokenizer(self) -> str | None:
        return None if isinstance(self.encoder, StaticEncoder) else self.encoder.tokenizer_digest

    def build(self, texts: Iterable[str]) -> IdfTable:
        return IdfTable.build(self._documents(texts), self.keys, self.tokenizer)

    def _documents(self, texts: Iterable[str]) -> Iterator[list[str] | list[int]]:
        for part in chunks(texts, 1024):
            if isinstance(self.encoder, StaticEncoder):
                yield from ([word for word, _, _ in _written(text, self.lowercase)] for text in part)
            else:
                yield from (tokens.ids.tolist() for tokens in self.encoder.tokenize(part))


def build_idf(encoder: Encoder, texts: Iterable[str], lowercase: bool = True) -> IdfTable:
    """An IDF table for `moverscore` and `bertscore_*` with this encoder."""
    return TokenIdf(encoder, lowercase).build(texts)

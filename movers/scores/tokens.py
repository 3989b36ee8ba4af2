"""Texts → tokens with vectors, for `moverscore` and `bertscore_*`; which tokens are kept; IDF tables of tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.bag import Bag, Label
from movers.encoders import Encoder, load_encoder
from movers.encoders.contextual import Tokens
from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder, known_vectors
from movers.scores.metric import Encoding, TransportMetric
from movers.scores.options import PairOptions, option
from movers.texts import is_punctuation, sentence_spans, token_spans
from movers.threads import chunks
from movers.weights import Corpus, IdfTable, idf_tables

_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True, kw_only=True)
class TokenOptions(PairOptions):
    """Options shared by `moverscore` and `bertscore_*`."""

    model: object = option(
        "all-MiniLM-L6-v2",
        "encoder: a known name, a transformers model by Hub id or folder, a word-vector file or a spaCy pipeline",
        values="str, path, (model, tokenizer) or encoder",
    )


class TokenText(NamedTuple):
    """A text as n tokens with (n, d) vectors and n keys for IDF tables (token ids, or words).

    `missing` are words without a vector, and their offsets.
    """

    text: str
    tokens: Tokens
    vectors: NDArray[np.float32]
    keys: Sequence[Hashable]
    cut: bool = False
    missing: Sequence[tuple[str, int, int]] = ()

    def bag(self, text: str, dropped: tuple[Label, ...]) -> Bag:
        """A bag of the text, still without units."""
        unknown = bool(self.missing) or bool(self.tokens.unknown.any())
        blank = bool(self.tokens.special.all()) and not self.missing  # no token but special ones
        return Bag(text, dropped=dropped, unknown=unknown, cut=self.cut, blank=blank)

    def reasons(
        self, drop_subwords: bool, punctuation: bool | Literal["ascii"], stopwords: frozenset[str]
    ) -> dict[int, str]:
        """Place → why that token is dropped: all subwords of a word but the first, punctuation, lowercased stop words.

        "ascii" stands for single ASCII marks only.
        """
        tokens = self.tokens
        reasons: dict[int, str] = {}
        if drop_subwords:
            before = np.concatenate([[-1], np.maximum.accumulate(tokens.words)[:-1]])
            follows = (tokens.words <= before) & ~tokens.special
            reasons = dict.fromkeys(np.flatnonzero(follows).tolist(), "subword")
        for place in np.flatnonzero(~tokens.special).tolist() if punctuation or stopwords else ():
            if place in reasons:
                continue
            token = self.text[tokens.starts[place] : tokens.ends[place]].strip()
            if punctuation == "ascii":
                is_mark = token in _ASCII_MARKS
            else:
                is_mark = punctuation and not tokens.unknown[place] and is_punctuation(token)
            if is_mark:
                reasons[place] = "punctuation"
            elif stopwords and self._word(place).lower() in stopwords:
                reasons[place] = "stop word"
        return reasons

    def _word(self, place: int) -> str:
        """The whole word of a token: `there` in `thereof` is no stop word."""
        members = np.flatnonzero(self.tokens.words == self.tokens.words[place])
        return self.text[self.tokens.starts[members[0]] : self.tokens.ends[members[-1]]].strip()

    def places(self, reasons: dict[int, str], special_tokens: bool) -> NDArray[np.intp]:
        """(k,) places of the kept tokens; none if nothing but special tokens would be left."""
        keep = ~self.tokens.special
        keep[list(reasons)] = False
        if not keep.any():
            return np.zeros(0, np.intp)
        return np.flatnonzero(keep | self.tokens.special if special_tokens else keep)

    def labels(self, places: Sequence[int], reasons: dict[int, str]) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
        """Labels of the tokens at `places`, and of all others."""
        begins = [begin for begin, _ in sentence_spans(self.text)]
        leading = [*self.tokens.special, False].index(False) or 1  # special tokens at the beginning

        def label(start: int, end: int, kind: str = "token", reason: str = "") -> Label:
            sentence = max(bisect_right(begins, start) - 1, 0)
            written = self.text[start:end]
            start += len(written) - len(written.lstrip())  # some tokenizers count the space before a word
            return Label(written.strip(), kind, sentence, start, start + len(written.strip()), reason)

        def label_at(place: int, reason: str = "") -> Label:
            if not self.tokens.special[place]:
                return label(int(self.tokens.starts[place]), int(self.tokens.ends[place]), "token", reason)
            text, where = ("[start]", 0) if place < leading else ("[end]", len(self.text))
            return label(where, where, "special", reason)._replace(text=text)

        others = sorted({*range(len(self.tokens.ids))}.difference(places))
        dropped = [label_at(place, reasons.get(place, "special token")) for place in others]
        dropped += [label(start, end, reason="no vector") for _, start, end in self.missing]
        if self.cut:
            last = int(self.tokens.ends.max())
            dropped += [label(last + a, last + b, "word", "truncated") for _, a, b in token_spans(self.text[last:])]
        return tuple(map(label_at, places)), tuple(sorted(dropped, key=lambda each: each.start))


@dataclass(frozen=True, kw_only=True)
class TokenMetric(TransportMetric):
    """What `moverscore` and `bertscore_*` share: tokens with vectors, and IDF tables."""

    options: TokenOptions
    encoder: Encoder

    def read_tokens(self, texts: Sequence[str]) -> Iterator[tuple[int, TokenText]]:
        """Yield each text as soon as it is ready, in any order."""
        if isinstance(self.encoder, StaticEncoder):
            yield from enumerate(_static_tokens(self.encoder, texts))
            return
        assert self.encoding is not None
        for index, (tokens, vectors, cut) in self.encoding(texts):
            yield index, TokenText(texts[index], tokens, vectors, tokens.ids.tolist(), cut)


def load_tokens(
    name: str, options: TokenOptions, aggregation: Aggregation, corpus: Corpus | None, two_sides: bool = False
) -> tuple[Encoder, Encoding | None, tuple[IdfTable, ...], dict[str, object]]:
    """Encoder, encoding and IDF tables of a metric, and their signature fields."""
    run = options.run
    encoder = load_encoder(options.model, device=run.device, dtype=run.dtype)
    fields: dict[str, object] = {"emb": encoder.identity}
    encoding = tokenizer = None
    if not isinstance(encoder, StaticEncoder):
        aggregation.needed(encoder.states)  # fail early if the model lacks a layer
        encoding, tokenizer = Encoding(encoder, aggregation, options), encoder.tokenizer_digest
        fields |= encoding.fields()
    tables = idf_tables(
        name, options.idf, corpus, lambda texts: build_idf(encoder, texts), tokenizer, two_sides=two_sides
    )
    return encoder, encoding, tables, fields


def _lower(text: str) -> list[tuple[str, int, int]]:
    return [(word.lower(), start, end) for word, start, end in token_spans(text)]


def _static_tokens(encoder: StaticEncoder, texts: Sequence[str]) -> Iterator[TokenText]:
    documents = [_lower(text) for text in texts]
    vocabulary = list(dict.fromkeys(word for spans in documents for word, _, _ in spans))
    table, known = known_vectors(encoder, vocabulary)
    rows = {word: row for row, word in enumerate(vocabulary) if known[row]}
    for text, spans in zip(texts, documents, strict=True):
        keys = [word for word, _, _ in spans if word in rows]
        starts, ends = np.array([span[1:] for span in spans if span[0] in rows], dtype=np.int64).reshape(-1, 2).T
        numbers, none = np.arange(len(keys)), np.zeros(len(keys), dtype=bool)
        tokens = Tokens(numbers, starts, ends, numbers, none, none)
        missing = [span for span in spans if span[0] not in rows]
        yield TokenText(text, tokens, table[[rows[word] for word in keys]], keys, missing=missing)


def build_idf(encoder: Encoder, texts: Iterable[str]) -> IdfTable:
    """An IDF table for `moverscore` and `bertscore_*`, of token ids (special ones have IDF 0) or words."""
    if isinstance(encoder, StaticEncoder):
        return IdfTable.build([word for word, _, _ in _lower(text)] for text in texts)
    documents = (tokens.ids.tolist() for part in chunks(texts, 1024) for tokens in encoder.tokenize(part))
    return IdfTable.build(documents, "tokens", encoder.tokenizer_digest)

"""Texts → units (sentences or words) → vectors; each distinct unit is encoded once.

Bao et al. 2020, sections 2.1 and 3.2, turn texts into vectors in three ways: static vectors of *words*, vectors of
*sentences*, and a *cross* encoder that reads document and summary together (see `movers.quality.cross`). The aspects
(`movers.quality.aspects`) also read the tokens inside the sentences; they come from the same forward pass.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from movers.encoders import Encoder
from movers.encoders.layers import Aggregation
from movers.encoders.static import StaticEncoder, known_vectors
from movers.encoders.windows import group_when_complete
from movers.quality.facts import WordTable
from movers.texts import WordRules, is_visible, split_sentences
from movers.transport import unit_rows

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SentenceAndTokens", "TextVectors", "Unit", "UnitVectors", "assemble",
           "encode_texts", "encode_units", "reading_window", "split_units"]  # fmt: skip

Unit = Literal["words", "sentences", "cross"]
Array = NDArray[np.floating]  # float32, or float16 from a store
_SPACED_STOP = re.compile(r"(?<=\s[.!?])\s+(?=\S)")


@dataclass(frozen=True)
class SentenceAndTokens(Aggregation):
    """The last layer of hidden states and a middle one, side by side.

    The mean of the last layer is the sentence's vector. Tokens are taken at two thirds of the depth: the last layer of
    a sentence encoder pulls all tokens towards the sentence's meaning, and a wrong word shows less.
    """

    kind: Literal["sentence_and_tokens"] = "sentence_and_tokens"  # type: ignore[assignment]

    def needed(self, states: int) -> list[int]:
        """Numbers of the hidden states it reads, of L + 1 there are.

        >>> SentenceAndTokens().needed(7)
        [6, 4]
        """
        return [states - 1, round((states - 1) * 2 / 3)]

    def combine(self, layers: Sequence[Tensor]) -> Tensor:
        """(n, 2d) from two layers (n, d)."""
        import torch

        return torch.cat(list(layers), dim=1)


@dataclass(frozen=True)
class UnitVectors:
    """A sentence (or word) as a (d,) vector of length 1, its (t, d) token vectors of length 1 and their (t,) ids.

    Words have t = 0. Special tokens count in the vector and are left out of the tokens.
    """

    vector: Array
    tokens: Array
    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    unknown: bool = False


@dataclass(frozen=True)
class TextVectors:
    """A text as (n, d) vectors of its units, (t, d) token vectors, their (t,) ids and the number of their unit.

    `unknown` tells that the encoder does not know all words or pieces of the text.
    """

    units: tuple[str, ...]
    vectors: Array
    tokens: Array
    owners: NDArray[np.int64]
    ids: NDArray[np.int64]
    unknown: bool = False
    cut: bool = False

    @property
    def blank(self) -> bool:
        return not self.units

    @cached_property
    def words(self) -> WordTable:
        """The words of its sentences."""
        return WordTable.of(self.units)

    @cached_property
    def joins(self) -> NDArray[np.int64]:
        """Each token and the next as one number; every sentence also has a join at its beginning and at its end."""
        found = []
        for unit in range(len(self.units)):
            ids = self.ids[self.owners == unit] + 1  # 0 stands for the edge of a sentence
            found.append((np.r_[0, ids] << 32) | np.r_[ids, 0])
        return np.concatenate(found)


def split_units(text: str, unit: Unit, lang: str = "en") -> list[str]:
    """Sentences with visible characters, or lower-cased words.

    >>> split_units("Rain fell. It stopped!", "sentences"), split_units("Rain fell.", "words")
    (['Rain fell.', 'It stopped!'], ['rain', 'fell'])
    >>> split_units("` it rains . we stay , ' he said .", "sentences")
    ['` it rains .', "we stay , ' he said ."]
    """
    if unit == "words":
        return [span.text for span in WordRules(lang=lang).spans(text) if not span.reason]
    sentences: list[str] = []
    # summarisation corpora are often tokenized: a full stop between spaces ends a sentence, also inside a quotation
    for sentence in (part for whole in split_sentences(text, lang) for part in _SPACED_STOP.split(whole)):
        if not is_visible(sentence):
            continue
        # a lone quotation mark or bullet belongs to the sentence before it
        if sentences and not any(character.isalnum() for character in sentence):
            sentences[-1] += " " + sentence
        else:
            sentences.append(sentence)
    return sentences


def reading_window(encoder: Encoder) -> int | None:
    """Tokens that the encoder reads at once; None for static vectors."""
    return None if isinstance(encoder, StaticEncoder) else encoder.sentence_window


def encode_units(
    units: Sequence[str], encoder: Encoder, unit: Unit, batch_size: int | None = None
) -> Iterator[tuple[int, UnitVectors]]:
    """`(index, vectors)` of distinct units as they become ready, in any order.

    With a static encoder the vector of a sentence is the mean of its words' (as in a deep averaging network).
    """
    if isinstance(encoder, StaticEncoder):
        if units:
            words = [split_units(text, "words") if unit == "sentences" else [text] for text in units]
            flat, has = known_vectors(encoder, [word for own in words for word in own])  # unknown: the zero vector
            owners = np.repeat(np.arange(len(units)), [len(own) for own in words])
            vectors = np.zeros((len(units), flat.shape[1]), np.float32)
            np.add.at(vectors, owners, flat)
            known = np.bincount(owners, ~has, minlength=len(units)) == 0
            no_tokens = np.zeros((0, vectors.shape[1]), np.float32)
            for index, vector in enumerate(unit_rows(vectors)):
                yield index, UnitVectors(vector, no_tokens, unknown=not known[index])
        return
    found = encoder.encode(units, SentenceAndTokens(), batch_size=batch_size, window=encoder.sentence_window)
    for index, encoded in found:
        half = encoded.vectors.shape[1] // 2
        mean = encoded.vectors[:, :half].mean(axis=0, keepdims=True, dtype=np.float64)
        kept = ~encoded.tokens.special
        tokens, ids = unit_rows(encoded.vectors[kept, half:]), encoded.tokens.ids[kept]
        unknown = bool(encoded.tokens.unknown.any())
        for place in np.flatnonzero(
            encoded.tokens.unknown[kept]
        ):  # unknown pieces share an id: tell them by their text
            begin, end = encoded.tokens.starts[kept][place], encoded.tokens.ends[kept][place]
            ids[place] = 2**30 | zlib.crc32(units[index][begin:end].encode()) >> 2
        yield index, UnitVectors(unit_rows(mean)[0].astype(np.float32), tokens, ids, unknown)


def assemble(units: Sequence[str], parts: Sequence[UnitVectors], dimension: int = 0) -> TextVectors:
    """Put the vectors of a text's units together."""
    if not parts:
        empty = np.zeros((0, dimension), np.float32)
        return TextVectors((), empty, empty, np.zeros(0, np.int64), np.zeros(0, np.int64))
    owners = np.repeat(np.arange(len(parts)), [len(part.tokens) for part in parts])
    vectors = np.stack([part.vector for part in parts]).astype(np.float32)
    tokens, ids = np.concatenate([part.tokens for part in parts]), np.concatenate([part.ids for part in parts])
    return TextVectors(tuple(units), vectors, tokens, owners, ids, any(part.unknown for part in parts))


def encode_texts(
    texts: Sequence[str], encoder: Encoder, unit: Unit, *, lang: str = "en", batch_size: int | None = None
) -> Iterator[tuple[int, TextVectors]]:
    """`(index, text vectors)` for every text as soon as its last unit is ready; every distinct unit is encoded once."""
    units = [split_units(text, unit, lang) for text in texts]
    for index, parts in group_when_complete(units, lambda distinct: encode_units(distinct, encoder, unit, batch_size)):
        yield index, assemble(units[index], parts)

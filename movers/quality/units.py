"""Texts → units (sentences or words) → vectors; each distinct unit is encoded once.

Static vectors of words, or vectors of sentences (Bao et al. 2020, sections 2.1 and 3.2). The aspects also read the
tokens inside the sentences; they come from the same forward pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

Unit = Literal["words", "sentences", "cross"]
Array = NDArray[np.floating]
_SPACED_STOP = re.compile(r"(?<=\s[.!?])\s+(?=\S)")


@dataclass(frozen=True)
class SentenceAndTokens(Aggregation):
    """The last layer of hidden states, whose mean is the sentence's vector, and the one at two thirds of the depth.

    Tokens come from the latter: the last layer pulls them towards the sentence's meaning, and a wrong word shows less.
    """

    kind: Literal["sentence_and_tokens"] = "sentence_and_tokens"  # type: ignore[assignment]

    def needed(self, states: int) -> list[int]:
        return [states - 1, round((states - 1) * 2 / 3)]

    def combine(self, layers: Sequence[Tensor]) -> Tensor:
        """(n, 2d) from two layers (n, d)."""
        import torch

        return torch.cat(list(layers), dim=1)


# A sentence (or word) as a (d,) vector of length 1, its (t, d) token vectors (words have none), and whether a piece of
# it is unknown to the encoder.
UnitVectors = tuple[Array, Array, bool]


@dataclass(frozen=True)
class TextVectors:
    """A text as (n, d) vectors of its units, (t, d) token vectors and the (t,) numbers of their units."""

    units: tuple[str, ...]
    vectors: Array
    tokens: Array
    owners: NDArray[np.int64]
    unknown: bool = False
    cut: bool = False

    @property
    def blank(self) -> bool:
        return not self.units

    @cached_property
    def words(self) -> WordTable:
        return WordTable.of(self.units)


def split_units(text: str, unit: Unit, lang: str = "en") -> list[str]:
    """Sentences with visible characters, or lower-cased words."""
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


def encode_units(
    units: Sequence[str], encoder: Encoder, unit: Unit, batch_size: int | None = None
) -> Iterator[tuple[int, UnitVectors]]:
    """`(index, vectors)` of distinct units as they become ready, in any order.

    With a static encoder the vector of a sentence is the mean of its words' (as in a deep averaging network).
    """
    if isinstance(encoder, StaticEncoder):
        for index, text in enumerate(units):
            words = split_units(text, "words") if unit == "sentences" else [text]
            vectors, known = known_vectors(encoder, words)  # unknown: the zero vector
            vector = unit_rows(vectors.sum(axis=0, keepdims=True))[0]
            yield index, (vector, np.zeros((0, len(vector)), np.float32), not known.all())
        return
    for index, encoded in encoder.encode(
        units, SentenceAndTokens(), batch_size=batch_size, window=encoder.sentence_window
    ):
        half = encoded.vectors.shape[1] // 2
        mean = encoded.vectors[:, :half].mean(axis=0, keepdims=True, dtype=np.float64)
        tokens = unit_rows(encoded.vectors[~encoded.tokens.special, half:])
        yield index, (unit_rows(mean)[0].astype(np.float32), tokens, bool(encoded.tokens.unknown.any()))


def encode_texts(
    texts: Sequence[str], encoder: Encoder, unit: Unit, *, lang: str = "en", batch_size: int | None = None
) -> Iterator[tuple[int, TextVectors]]:
    """`(index, text vectors)` for every text as soon as its last unit is ready; every distinct unit is encoded once."""
    units = [split_units(text, unit, lang) for text in texts]
    none = np.zeros((0, 0), np.float32)
    for index, parts in group_when_complete(units, lambda distinct: encode_units(distinct, encoder, unit, batch_size)):
        if not parts:
            yield index, TextVectors((), none, none, np.zeros(0, np.int64))
            continue
        vectors, tokens, unknown = zip(*parts, strict=True)
        owners = np.repeat(np.arange(len(parts)), list(map(len, tokens)))
        yield index, TextVectors(tuple(units[index]), np.stack(vectors), np.concatenate(tokens), owners, any(unknown))

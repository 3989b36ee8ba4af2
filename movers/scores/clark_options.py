"""Options of `wms`, `sms` and `swms`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from movers.encoders import Encoder, load_encoder
from movers.encoders.layers import parse_aggregation
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.scores.options import PairOptions, option
from movers.texts import WordRules, check_language, name_stop_words, stop_words
from movers.weights import Weights, choose_weights

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder

__all__ = [
    "BagDistance",
    "ClarkOptions",
    "SentenceOptions",
    "SmsOptions",
    "SwmsOptions",
    "WmsOptions",
    "sentence_encoder",
]

BagDistance = Literal["euclidean", "cosine"]


@dataclass(frozen=True, kw_only=True)
class ClarkOptions(PairOptions):
    """Options shared by `wms`, `sms` and `swms`."""

    stopwords: object = option(
        "auto",
        "words to drop; `auto` uses the list for `lang`",
        values="'auto', 'english', list of words or None",
    )
    punctuation: bool = option(True, "drop tokens without a letter or digit")
    lowercase: bool = option(True, "lowercase words (a contextual model still reads the original case)")
    keep_numbers: bool = option(True, "keep tokens that consist of digits only")
    temperature: object = option(
        "auto",
        "score = exp(−distance / temperature): 1 is the paper's Eq. 3; `auto` is the mean distance between unrelated "
        "texts under these options",
        values="'auto' or a number above zero",
    )
    oov: Literal["drop", "zero", "match"] = option(
        "drop",
        "words without a vector: dropped, placed at the origin (the authors' script), or at distance 0 from "
        "identical words and `temperature` from all others",
    )
    average: Literal["scores", "distances"] = option(
        "scores", "`score` is the mean of the scores, or the similarity of the mean distance"
    )
    lang: str = option("en", "language code, for sentence splitting and stop words")
    distance: BagDistance = option("euclidean", "distance between two vectors; `euclidean` in the paper")
    normalize: bool = option(False, "scale every vector to length 1 first")
    layer: object = option(
        "mean",
        "how the layers of a contextual model are aggregated into a word vector",
        values="'mean', 'last', 'pmeans', 'routing', a layer number or several ('4+6')",
    )
    context: Literal["sentence", "text"] = option("sentence", "what a contextual model encodes at a time")

    presets = {"paper": {"temperature": 1.0, "keep_numbers": False, "oov": "zero"}}

    def settle(self, metric: str) -> Self:
        parse_aggregation(metric, self.layer)
        number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        auto = (
            isinstance(self.temperature, str) and self.temperature == "auto"
        )  # comparing an array would give an array
        if not auto and not (number and 0 < float(str(self.temperature)) < math.inf):
            raise InputError(
                f"{metric}: temperature: expected 'auto' or a number above zero, but got {self.temperature!r}"
            )
        check_language(metric, self.lang)
        stop_words(self.stopwords, metric, self.lang)
        if isinstance(self.idf, tuple | list):
            raise InputError(f"{metric}: idf: expected one table for both sides, but got {len(self.idf)}")
        return self

    def reading_fields(self) -> dict[str, object]:
        """Signature fields: how texts are read and compared."""
        fields: dict[str, object] = {
            "stop": name_stop_words(self.stopwords, self.lang),
            "punct": "drop" if self.punctuation else "keep",
            "case": "lower" if self.lowercase else "keep",
            "numbers": "keep" if self.keep_numbers else "drop",
            "lang": self.lang,
            "dist": self.distance,
            "norm": self.normalize,
        }
        return fields | {"html": "decoded"} if self.unescape else fields

    def unit_fields(self, encoder: str | None) -> dict[str, object]:
        """Signature fields: units of the bag; `encoder` identifies the sentence encoder, if any."""
        raise NotImplementedError

    def rules(self) -> WordRules:
        return WordRules(
            stopwords=stop_words(self.stopwords, lang=self.lang),
            lowercase=self.lowercase,
            keep_numbers=self.keep_numbers,
            punctuation=self.punctuation,
            lang=self.lang,
        )


@dataclass(frozen=True, kw_only=True)
class WmsOptions(ClarkOptions):
    """Options of `wms`."""

    weights: Weights | None = option(
        None, "mass of a word: its count (Eq. 1, the default), uniform, IDF or vector norm"
    )

    def settle(self, metric: str) -> Self:
        return replace(super().settle(metric), weights=choose_weights(metric, self.weights, self.idf, "count"))

    def unit_fields(self, encoder: str | None) -> dict[str, object]:
        return {"weights": self.weights}


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(ClarkOptions):
    """Options shared by `sms` and `swms`."""

    sentence_weights: Literal["count", "uniform", "idf"] = option(
        "count", "mass of a sentence: its number of kept words (Eq. 4), uniform, or the sum of its words' IDF"
    )
    sentence_encoder: object = option(
        None,
        "contextual encoder for sentence vectors, instead of pooling word vectors",
        values="str, path, (model, tokenizer), encoder or None",
    )
    pooling: Literal["mean", "max"] = option("mean", "how the word vectors of a sentence are pooled")

    def unit_fields(self, encoder: str | None) -> dict[str, object]:
        return {"sentences": self.sentence_weights, "sentvec": encoder or self.pooling}


@dataclass(frozen=True, kw_only=True)
class SmsOptions(SentenceOptions):
    """Options of `sms`."""

    def settle(self, metric: str) -> Self:
        given = None if self.sentence_weights == "count" else self.sentence_weights
        weights = choose_weights(metric, given, self.idf, "count", option="sentence_weights")
        return replace(super().settle(metric), sentence_weights=weights)


@dataclass(frozen=True, kw_only=True)
class SwmsOptions(SentenceOptions):
    """Options of `swms`."""

    weights: Weights | None = option(
        None, "mass of a word: its count (Eq. 1, the default), uniform, IDF or vector norm"
    )

    def settle(self, metric: str) -> Self:
        # The sentences may use the table without the words doing so.
        given = self.weights or ("idf" if self.idf is not None else None)
        uses = given == "idf" or self.sentence_weights == "idf"
        choose_weights(metric, "idf" if uses else given, self.idf, "count")
        return replace(super().settle(metric), weights=given or "count")

    def unit_fields(self, encoder: str | None) -> dict[str, object]:
        return {"weights": self.weights, **super().unit_fields(encoder)}


def sentence_encoder(metric: str, options: SentenceOptions, words: Encoder) -> ContextualEncoder | None:
    """The sentence encoder, if the options name one."""
    if options.sentence_encoder is None:
        return None
    encoder = load_encoder(options.sentence_encoder, device=options.device, dtype=options.dtype)
    if isinstance(encoder, StaticEncoder):
        raise InputError(f"{metric}: sentence_encoder: expected a contextual encoder, but {encoder.identity} is static")
    if isinstance(options, SwmsOptions) and encoder is not words:
        raise InputError(
            f"{metric}: sentence_encoder: words and sentences are in one bag, so they need one space: "
            f"expected the same encoder as model ({words.identity}), but got {encoder.identity}"
        )
    return encoder

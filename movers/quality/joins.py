"""Which joins of a sentence, from one token to the next, look broken: a small network, learned from made-up faults.

Sentences of documents and summaries are sound; a spoiled one has words that were moved, deleted, inserted, replaced or
repeated, has lost its beginning or its end, or continues as another sentence. Where the words on both sides of a join
did not stand side by side before, the join is broken.

This module imports torch; import it late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from movers import io
from movers.encoders import load_encoder
from movers.encoders.static import StaticEncoder
from movers.errors import InputError
from movers.quality.data import SPLITS, Pair
from movers.quality.units import Array, SentenceAndTokens, TextVectors
from movers.transport import unit_rows

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder
    from movers.quality.model import ModelConfig
    from movers.quality.training import TrainingOptions

__all__ = ["SPOILERS", "JoinLearner", "JoinNetwork", "spoil"]

Rng = np.random.Generator
Floats = NDArray[np.float32]
_FOREIGN = -1  # a word that comes from elsewhere


class JoinNetwork(nn.Module):
    """The vectors of two neighbouring tokens → the logit of a broken join; zeros stand for the edge of a sentence."""

    def __init__(self, dimension: int, hidden: int = 96) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(2 * dimension),
            nn.Linear(2 * dimension, hidden),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, joins: Tensor) -> Tensor:
        """(n,) logits of (n, 2d) joins."""
        return self.layers(joins).squeeze(-1)

    def broken(self, texts: Sequence[TextVectors]) -> list[Floats]:
        """For each text the (t + m,) probabilities that its joins are broken, sentence by sentence."""
        rows = [sentence_joins(text.tokens[text.owners == unit]) for text in texts for unit in range(len(text.units))]
        with torch.inference_mode():
            found = self(torch.from_numpy(np.concatenate(rows))).sigmoid().numpy()
        ends = np.cumsum([len(text.tokens) + len(text.units) for text in texts])
        return np.split(found, ends[:-1])


def sentence_joins(tokens: Array) -> Floats:
    """(t + 1, 2d) joins of (t, d) tokens of a sentence."""
    edge = np.zeros((1, tokens.shape[1]), np.float32)
    padded = np.concatenate([edge, tokens, edge], dtype=np.float32)
    return np.concatenate([padded[:-1], padded[1:]], axis=1)


# ---------------------------------------------------------------------------------------------------------------------
# Spoilers: each takes the number of words and returns which word of the sentence stands at each place.


def _move(count: int, rng: Rng) -> list[int]:
    size = int(rng.integers(3, count + 1))
    begin = int(rng.integers(0, count - size + 1))
    return [*range(begin), *(rng.permutation(size) + begin).tolist(), *range(begin + size, count)]


def _some(count: int, rng: Rng) -> list[int]:
    return rng.choice(count, max(1, round(rng.uniform(0.03, 0.4) * count)), replace=False).tolist()


def _delete(count: int, rng: Rng) -> list[int]:
    gone = _some(count, rng)
    return [place for place in range(count) if place not in gone]


def _insert(count: int, rng: Rng) -> list[int]:
    after = _some(count, rng)
    return [one for place in range(count) for one in ((place, _FOREIGN) if place in after else (place,))]


def _replace(count: int, rng: Rng) -> list[int]:
    changed = _some(count, rng)
    return [_FOREIGN if place in changed else place for place in range(count)]


def _repeat(count: int, rng: Rng) -> list[int]:
    size = int(rng.integers(1, min(7, count - 1)))
    begin = int(rng.integers(0, count - size))
    return [*range(begin + size), *range(begin, count)]


def _cut_end(count: int, rng: Rng) -> list[int]:
    return list(range(int(rng.integers(2, count))))


def _cut_beginning(count: int, rng: Rng) -> list[int]:
    return list(range(int(rng.integers(1, count - 2)), count))


SPOILERS: dict[str, Callable[[int, Rng], list[int]]] = {
    "move": _move, "delete": _delete, "insert": _insert, "replace": _replace, "repeat": _repeat,
    "cut_end": _cut_end, "cut_beginning": _cut_beginning,
}  # fmt: skip


def spoil(words: Sequence[str], kind: str, other: Sequence[str], rng: Rng) -> tuple[list[str], list[bool]]:
    """Spoil a sentence of five words or more; return its words and which of their n + 1 joins are broken.

    `kind` is one of SPOILERS, or `glue`: the sentence goes on as the end of the other one. Words from elsewhere are
    taken from the other sentence.

    >>> spoil("a b c d e .".split(), "cut_end", [], np.random.default_rng(0))
    (['a', 'b', 'c', 'd', 'e'], [False, False, False, False, False, True])
    """
    count = len(words)
    if kind == "glue":
        kept, begin = int(rng.integers(2, count - 1)), int(rng.integers(1, len(other) - 1))
        spoiled = [*words[:kept], *other[begin:]]
        return spoiled, [place == kept for place in range(len(spoiled) + 1)]
    order = SPOILERS[kind](count, rng)
    spoiled = [other[int(rng.integers(len(other)))] if place == _FOREIGN else words[place] for place in order]
    around = [-1, *order, count]
    return spoiled, [
        first == _FOREIGN and index > 0 or second != first + 1
        for index, (first, second) in enumerate(zip(around, around[1:], strict=False))
    ]


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpoiledSentence:
    """A sentence, sound or spoiled: its (t, d) tokens and which of the t + 1 joins are broken."""

    tokens: Array
    broken: NDArray[np.bool_]
    kind: str


class JoinLearner:
    """A `movers.quality.loop.Learner` of the network: two sentences of every text, each sound or spoiled in turn."""

    default_rate = 1e-3
    #: Every third sentence is left sound.
    kinds = ("sound", "move", "delete", "sound", "cut_end", "glue", "repeat", "sound", "insert", "replace",
             "cut_beginning")  # fmt: skip

    def __init__(
        self,
        options: TrainingOptions,
        pairs: Sequence[Pair],
        sides: Mapping[str, list[int]],
        progress: bool | None = None,
    ) -> None:
        encoder = load_encoder(options.encoder)
        if isinstance(encoder, StaticEncoder):
            raise InputError(
                "train quality: unit: 'sentences' needs a transformer, as 'all-MiniLM-L6-v2', but got the encoder "
                f"{options.encoder!r}"
            )
        self._options = options
        dimension = int(encoder.model.config.hidden_size)
        self.module = JoinNetwork(dimension)
        self.config: ModelConfig = {
            "unit": "sentences",
            "encoder": options.encoder,
            "encoder_identity": encoder.identity,
            "head": "aspects",
            "dimension": dimension,
            "lang": options.lang,
        }
        self.samples: dict[str, list[SpoiledSentence]] = {}
        for number, side in enumerate(SPLITS):
            rng = np.random.default_rng([options.seed, number])
            self.samples[side] = self._read(self._draw([pairs[row] for row in sides[side]], rng), encoder, progress)
        if not self.samples["train"] or not self.samples["validation"]:
            raise InputError("train quality: data: expected sentences of 5 words or more, but got too few of them")

    def _draw(self, pairs: Sequence[Pair], rng: Rng) -> list[tuple[str, list[str], list[bool]]]:
        sentences = []
        for pair in pairs:
            for text in (pair.document_sentences, pair.summary_sentences):
                usable = [one for one in text if 5 <= len(one.split()) <= 60 and one.rstrip("\"'”’)` ")[-1:] in ".!?"]
                sentences += [usable[place] for place in rng.permutation(len(usable))[:2]]
        drawn = []
        for number, sentence in enumerate(dict.fromkeys(sentences)):
            words, kind = sentence.split(), self.kinds[number % len(self.kinds)]
            broken = [False] * (len(words) + 1)
            if kind != "sound":
                other = sentences[int(rng.integers(len(sentences)))].split()
                words, broken = spoil(words, kind, other, rng)
            drawn.append((kind, words, broken))
        return drawn

    @staticmethod
    def _read(
        drawn: Sequence[tuple[str, list[str], list[bool]]], encoder: ContextualEncoder, progress: bool | None
    ) -> list[SpoiledSentence]:
        texts = [" ".join(words) for _, words, _ in drawn]
        found: list[SpoiledSentence | None] = [None] * len(drawn)
        with io.progress_bar(len(drawn), desc="encode", unit=" sentences", progress=progress) as bar:
            encoded = encoder.encode(texts, SentenceAndTokens(), window=encoder.sentence_window)
            for index, text in encoded:
                kind, words, broken = drawn[index]
                kept = ~text.tokens.special
                # a token that begins a word has that word's join; the joins inside a word are sound
                begins = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
                places = np.searchsorted(begins, text.tokens.starts[kept])
                starts = (places < len(begins)) & (
                    begins[np.minimum(places, len(begins) - 1)] == text.tokens.starts[kept]
                )
                labels = np.r_[starts & np.asarray(broken)[np.minimum(places, len(words))], broken[-1]]
                vectors = text.vectors[kept, text.vectors.shape[1] // 2 :]
                found[index] = SpoiledSentence(unit_rows(vectors).astype(np.float16), labels, kind)
                bar.update(1)
        return [one for one in found if one is not None and len(one.tokens)]

    def batches(self, epoch: int) -> list[list[SpoiledSentence]]:
        samples, size = self.samples["train"], self._options.batch
        order = np.random.default_rng([self._options.seed, epoch, 1]).permutation(len(samples))
        return [[samples[place] for place in order[begin : begin + size]] for begin in range(0, len(order), size)]

    def _logits(self, batch: Sequence[SpoiledSentence]) -> tuple[Tensor, Tensor]:
        joins = np.concatenate([sentence_joins(one.tokens) for one in batch])
        labels = np.concatenate([one.broken for one in batch]).astype(np.float32)
        return self.module(torch.from_numpy(joins)), torch.from_numpy(labels)

    def loss(self, batch: Sequence[SpoiledSentence]) -> Tensor:
        return functional.binary_cross_entropy_with_logits(*self._logits(batch))

    def _measure(self, side: str) -> dict[str, float]:
        """Loss, and the share of (broken, sound) joins in which the broken one has the higher probability."""
        from scipy.stats import rankdata

        self.module.eval()
        with torch.inference_mode():
            parts = [self._logits(self.samples[side][i : i + 256]) for i in range(0, len(self.samples[side]), 256)]
        logits, labels = (torch.cat(part) for part in zip(*parts, strict=True))
        broken = labels.numpy() > 0.5
        count, others = int(broken.sum()), int((~broken).sum())
        area = (rankdata(logits.numpy())[broken].sum() - count * (count + 1) / 2) / max(1, count * others)
        return {"loss": float(functional.binary_cross_entropy_with_logits(logits, labels)), "joins_auc": float(area)}

    def validate(self) -> dict[str, float]:
        return {f"validation_{name}": value for name, value in self._measure("validation").items()}

    def test(self) -> dict[str, float]:
        return self._measure("test")

"""Negative samples: good summaries made worse by a known share (Bao et al. 2020, section 2.2).

* *cross pairing* puts another document's summary beside a document: label 0, the own summary has label 1;
* *mutation* adds random words of the vocabulary at random places, deletes random tokens, or replaces random tokens
  by random words: label `1 - share` with `share = changed tokens / original tokens`, drawn uniformly from [0, 1];
* `mix` is equal parts of these four.

Every draw depends only on the seed, the epoch, the row and the number of the sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from movers.errors import InputError
from movers.quality.data import Pair

Rng = np.random.Generator
Negatives = Literal["cross", "add", "delete", "replace", "mix"]
#: The kinds that `mix` takes in turn.
KINDS = ("cross", "add", "delete", "replace")
# A token includes the white space before it, so that joined tokens give back the text.
_TOKEN = re.compile(r"\s*(?:\w+(?:['’.\-]\w+)*|[^\w\s])")


class Sample(NamedTuple):
    """One training example: the row of the document, a summary, its label in [0, 1] and how it was made."""

    row: int
    summary: str
    label: float
    kind: str


def split_tokens(text: str) -> list[str]:
    """Words and punctuation marks, each with the white space before it."""
    return _TOKEN.findall(text)


def _join(tokens: Sequence[str]) -> str:
    """The text of the tokens, with a space wherever two of them would otherwise become one word."""
    out, run = "", list[str]()  # the tokens since the last white space
    for token in tokens:
        if run and not token[:1].isspace() and split_tokens("".join([*run, token])) != [*run, token]:
            token = " " + token
        run = [token] if token[:1].isspace() else [*run, token]
        out += token
    return out.strip()


def build_vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Distinct words of the texts, sorted; without punctuation."""
    words = {token.strip() for text in texts for token in split_tokens(text)}
    return tuple(sorted(word for word in words if re.search(r"\w", word)))


def _add(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    places = np.bincount(rng.integers(0, len(tokens) + 1, size=count), minlength=len(tokens) + 1)
    words = iter(rng.integers(0, len(vocabulary), size=count).tolist())
    out: list[str] = []
    for added, token in zip(places.tolist(), [*tokens, ""], strict=True):
        out += [*(" " + vocabulary[next(words)] for _ in range(added)), token]
    return out[:-1]


def _delete(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    deleted = set(rng.choice(len(tokens), size=count, replace=False).tolist())
    return [token for position, token in enumerate(tokens) if position not in deleted]


def _replace(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    out = list(tokens)
    for position in rng.choice(len(tokens), size=count, replace=False).tolist():
        token = out[position]
        word = vocabulary[int(rng.integers(len(vocabulary)))]
        if word == token.strip() and len(vocabulary) > 1:  # no word replaces itself
            word = vocabulary[(vocabulary.index(word) + 1) % len(vocabulary)]
        out[position] = token[: len(token) - len(token.lstrip())] + word
    return out


_MUTATIONS = {"add": _add, "delete": _delete, "replace": _replace}


def mutate(summary: str, kind: str, share: float, vocabulary: Sequence[str], rng: Rng) -> tuple[str, float]:
    """Mutate `round(share * n)` of a summary's n tokens by `kind`; return it with the label `1 - changed / n`."""
    tokens = split_tokens(summary)
    if not tokens:
        return summary, 1.0
    count = round(share * len(tokens))
    return _join(_MUTATIONS[kind](tokens, count, vocabulary, rng)), 1.0 - count / len(tokens)


class SampleMaker:
    """Makes the samples of one side of the data: the own pair of every row (label 1) and `fakes` negative ones.

    Cross pairs borrow from the side's `pairs` alone, so that nothing of another side leaks in. Every second cross pair
    is the one of `candidates` random rows whose summary shares most words with the document; 1 is the paper's draw.
    """

    def __init__(
        self, pairs: Sequence[Pair], negatives: Negatives, vocabulary: Sequence[str], *, fakes: int = 1,
        candidates: int = 1, seed: int = 0,
    ) -> None:  # fmt: skip
        if len(pairs) < 2:
            raise InputError(f"train quality: data: cross pairing needs at least two documents, but got {len(pairs)}")
        self.pairs, self.vocabulary, self.fakes, self.seed = pairs, vocabulary, fakes, seed
        self._kinds, self._candidates = KINDS if negatives == "mix" else (negatives,), candidates
        self._words = cache(lambda text: frozenset(text.lower().split()))

    def __len__(self) -> int:
        return len(self.pairs) * (1 + self.fakes)

    def sample(self, place: int, epoch: int = 0) -> Sample:
        """Sample number `place` of an epoch; every epoch draws its negative samples afresh."""
        row, number = divmod(place, 1 + self.fakes)
        summary = self.pairs[row].summary
        if number == 0:
            return Sample(row, summary, 1.0, "original")
        rng = np.random.default_rng([self.seed, epoch, row, number])
        kind = self._kinds[(row * self.fakes + number + epoch) % len(self._kinds)]
        if kind == "cross":
            return Sample(row, self.pairs[self._other_row(row, rng)].summary, 0.0, kind)
        return Sample(row, *mutate(summary, kind, float(rng.random()), self.vocabulary, rng), kind)

    def __iter__(self) -> Iterator[Sample]:
        return (self.sample(place) for place in range(len(self)))  # of the first epoch

    def _other_row(self, row: int, rng: Rng) -> int:
        count = self._candidates if rng.random() < 0.5 else 1
        drawn = rng.integers(len(self.pairs) - 1, size=count)
        others = (drawn + (drawn >= row)).tolist()
        document = self._words(self.pairs[row].document)
        summaries = [self._words(self.pairs[other].summary) for other in others] if count > 1 else [document]
        return int(others[int(np.argmax([len(words & document) / max(1, len(words)) for words in summaries]))])

"""Weights of units as the metrics' options say them, and where their IDF tables come from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.inputs import check_choice
from movers.signature import short_digest
from movers.texts import stop_words
from movers.weights import IdfTable, Keys

__all__ = [
    "Corpus",
    "Tables",
    "check_stop_words",
    "check_weights",
    "name_stop_words",
    "normalised",
    "resolve_tables",
    "weigh",
]

Masses = NDArray[np.float64]


class Corpus(NamedTuple):
    """All texts of a call, to be read as often as needed: what `idf="corpus"` counts."""

    predictions: Callable[[], Iterable[str]]
    references: Callable[[], Iterable[str]]

    @classmethod
    def of(cls, predictions: Sequence[str], groups: Sequence[Sequence[str]]) -> Corpus:
        return cls(lambda: predictions, lambda: (text for group in groups for text in group))


class Tables(NamedTuple):
    """IDF tables of the predictions' and of the references' side."""

    predictions: IdfTable
    references: IdfTable

    @property
    def digest(self) -> str:
        return "+".join(dict.fromkeys(table.digest for table in self))


def check_weights(metric: str, weights: Any, idf: Any, default: str, allowed: Collection[str]) -> str:
    """The weights that both options mean together; a contradiction is an error."""
    chosen = weights if weights is not None else ("idf" if idf is not None else default)
    check_choice(metric, "weights", chosen, allowed)
    if chosen == "idf" and idf is None:
        raise ValueError(f"{metric}: weights: 'idf' needs a table: idf='corpus', a saved table's path or an IdfTable")
    if chosen != "idf" and idf is not None:
        raise ValueError(f"{metric}: idf: a table is given, but weights={chosen!r} does not use it")
    return str(chosen)


def resolve_tables(
    metric: str,
    idf: Any,
    corpus: Corpus | None,
    build: Callable[[Iterable[str]], IdfTable],
    keys: Keys,
    tokenizer: str | None = None,
    both_sides: bool = False,
) -> Tables | None:
    """The two sides' tables: built from the call's texts for "corpus", read from files, or the caller's own.

    both_sides : build a table of its own from the predictions; otherwise the references' serves both sides.
    """
    if idf is None:
        return None
    if isinstance(idf, str) and idf == "corpus":
        if corpus is None:
            raise ValueError(f"{metric}: idf: 'corpus' needs the texts of the whole call; pass an IdfTable here")
        references = build(corpus.references())
        return Tables(build(corpus.predictions()) if both_sides else references, references)
    pair = list(idf) if isinstance(idf, tuple | list) else [idf, idf]
    if len(pair) != 2:
        raise ValueError(
            f"{metric}: idf: expected a table or a pair (predictions', references'), but got {len(pair)} items"
        )
    return Tables(*(_table(metric, item, keys, tokenizer) for item in pair))


def _table(metric: str, item: Any, keys: Keys, tokenizer: str | None) -> IdfTable:
    table = IdfTable.load(item) if isinstance(item, str | Path) else item
    if not isinstance(table, IdfTable):
        raise TypeError(f"{metric}: idf: expected 'corpus', a saved table's path or an IdfTable, but got {item!r:.60}")
    table.check(metric, keys, tokenizer)
    return table


def weigh(
    kind: str,
    counts: Masses,
    vectors: Callable[[], NDArray[Any]],
    keys: Callable[[], Sequence[Any]],
    table: IdfTable | None,
) -> Masses:
    """Masses (n,), not yet normalised, of n units that occur `counts` times, with vectors (n, d) and keys if needed."""
    if kind == "uniform":
        return np.ones(len(counts))
    if kind == "idf":
        assert table is not None
        return counts * table(keys())
    if kind == "norm":
        return counts * np.linalg.norm(vectors(), axis=1)
    return counts


def normalised(metric: str, masses: Masses) -> Masses:
    """Masses that sum to 1; equal ones, with a warning, if the weights give the text none."""
    total = masses.sum()
    if total > 0:
        return masses / total
    warnings.warn(f"{metric}: a text has no mass under these weights; its units weigh the same", stacklevel=2)
    return np.full(len(masses), 1.0 / len(masses))


def check_stop_words(metric: str, stopwords: Any) -> None:
    """`stopwords` must be a known name, a list of words or None."""
    try:
        stop_words(stopwords)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{metric}: {error}") from None


def name_stop_words(stopwords: Any) -> str | None:
    """How a signature names them: by name, or a list by its digest."""
    if stopwords is None or isinstance(stopwords, str):
        return stopwords
    return f"list-{short_digest(' '.join(sorted(stop_words(stopwords))))}"

"""Masses of units, and IDF tables."""

from __future__ import annotations

import json
import math
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from movers.errors import InputError
from movers.io import read_text, write_file
from movers.signature import short_digest

Masses = NDArray[np.float64]
#: Values of the option `idf` for tables of the call's own texts: its references, all texts, or one table per side.
CORPUS_TABLES = ("corpus", "all", "per-side")

Weights = Literal["count", "uniform", "idf", "norm"]
Keys = Literal["words", "tokens"]


@dataclass(frozen=True)
class IdfTable:
    r"""Inverse document frequencies, :math:`idf(k) = \log \frac{N + 1}{df(k) + 1}`; an unseen key has df = 0.

    `frequencies` maps a key (a word, or a token id of the tokenizer with that digest) to the number of documents, out
    of `documents`, that contain it.

    >>> table = IdfTable.build([["a", "rare", "word"], ["a", "plain", "word"]])
    >>> round(table["a"], 4), round(table["rare"], 4), round(table["unseen"], 4)
    (0.0, 0.4055, 1.0986)
    """

    frequencies: dict[str | int, int]
    documents: int
    keys: Keys = "words"
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        if type(self.documents) is not int or self.documents < 1:
            raise InputError(f"IdfTable: expected a number of documents above zero, but got {self.documents!r}")
        if not all(0 <= count <= self.documents for count in self.frequencies.values()):
            raise InputError(f"IdfTable: expected each key in 0 to {self.documents} documents")

    @classmethod
    def build(
        cls, documents: Iterable[Iterable[str | int]], keys: Keys = "words", tokenizer: str | None = None
    ) -> IdfTable:
        """Count the documents that contain each key; repeated documents count repeatedly."""
        frequencies: Counter[str | int] = Counter()
        count = 0
        for count, document in enumerate(documents, start=1):  # noqa: B007 (used below)
            frequencies.update(set(document))
        if not count:
            raise InputError("IdfTable: expected at least one document, but got none")
        return cls(dict(frequencies), count, keys, tokenizer)

    def __getitem__(self, key: Hashable) -> float:
        return math.log((self.documents + 1) / (self.frequencies.get(key, 0) + 1))  # type: ignore[call-overload]

    def __call__(self, keys: Sequence[Hashable]) -> NDArray[np.float64]:
        """(n,) inverse document frequencies of n keys."""
        return np.array([self[key] for key in keys], dtype=np.float64)

    @cached_property
    def digest(self) -> str:
        """Identifies the table in signatures."""
        return short_digest(json.dumps(self._plain(), ensure_ascii=True, sort_keys=True))

    def _plain(self) -> dict[str, object]:
        ordered = sorted(self.frequencies.items(), key=lambda item: (str(type(item[0])), item[0]))
        plain: dict[str, object] = {"format": "movers-idf-1", "keys": self.keys, "tokenizer": self.tokenizer}
        return plain | {"documents": self.documents, "frequencies": ordered}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON (gzipped if the name ends in .gz)."""
        write_file(os.fspath(path), json.dumps(self._plain(), ensure_ascii=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdfTable:
        """Read a table written by `save`."""
        file = Path(path)
        if not os.path.isfile(file):
            raise InputError(f"idf: expected 'corpus', None, an IdfTable or a saved table, but there is no file {file}")
        try:
            plain = json.loads(read_text(file))
            if plain["format"] != "movers-idf-1":
                raise KeyError(plain["format"])
            return cls(dict(map(tuple, plain["frequencies"])), plain["documents"], plain["keys"], plain["tokenizer"])
        except (LookupError, TypeError, ValueError, RecursionError, OSError, EOFError, zlib.error) as error:
            raise InputError(f"idf: {file} is not a table written by IdfTable.save ({error!r})") from None


class Corpus(NamedTuple):
    """All texts of a call, for `idf="corpus"`; they are iterated once."""

    predictions: Iterable[str]
    references: Iterable[Sequence[str]]


def choose_weights(metric: str, weights: str | None, idf: object, default: str, option: str = "weights") -> Any:
    """Resolve the options `weights` and `idf`; a contradiction is an error."""
    chosen = weights if weights is not None else ("idf" if idf is not None else default)
    if chosen == "idf" and idf is None:
        raise InputError(f"{metric}: {option}: 'idf' needs a table: idf='corpus', a saved table's path or an IdfTable")
    if chosen != "idf" and idf is not None:
        raise InputError(f"{metric}: idf: a table is given, but {option}={chosen!r} does not use it")
    return chosen


def idf_tables(
    metric: str, idf: object, corpus: Corpus | None, build: Callable[[Iterable[str]], IdfTable],
    tokenizer: str | None = None, two_sides: bool = False,
) -> tuple[IdfTable, ...]:  # fmt: skip
    """The IDF tables that the option `idf` stands for: none, one, or with `two_sides` one for each side.

    `build` makes a table of texts; its keys are token ids of `tokenizer` (a digest) or, if None, words.
    """
    if idf is None:
        return ()
    count = len(idf) if isinstance(idf, tuple | list) else 2 if idf == "per-side" else 1
    if not 1 <= count <= 1 + two_sides:
        expected = "a table or a pair of tables" if two_sides else "one table for both sides"
        raise InputError(f"{metric}: idf: expected {expected}, but got {idf if isinstance(idf, str) else count}")
    if isinstance(idf, str) and idf in CORPUS_TABLES:
        if corpus is None:
            raise InputError(f"{metric}: idf: {idf!r} needs the texts of the whole call; pass an IdfTable here")
        references = chain.from_iterable(corpus.references)
        if idf == "all":
            return (build(chain(references, corpus.predictions)),)
        return (build(corpus.predictions), build(references)) if idf == "per-side" else (build(references),)
    items = list(idf) if isinstance(idf, tuple | list) else [idf]
    tables: list[Any] = [IdfTable.load(item) if isinstance(item, str | Path) else item for item in items]
    keys = "words" if tokenizer is None else "tokens"
    for table in tables:
        if not isinstance(table, IdfTable):
            expected = "'corpus', a saved table's path or an IdfTable"
            raise InputError(f"{metric}: idf: expected {expected}, but got {table!r:.60}")
        if table.keys != keys:
            raise InputError(f"{metric}: idf: expected a table of {keys}, but got one of {table.keys}")
        if table.tokenizer != tokenizer:
            digests = f"its digest {table.tokenizer}, this encoder's {tokenizer}"
            raise InputError(f"{metric}: idf: the table was built with another tokenizer ({digests})")
    return tuple(tables)


def weigh(
    kind: str, counts: Masses, vectors: NDArray[np.floating], keys: Sequence[Hashable], table: IdfTable | None
) -> Masses:
    """Masses (n,), not normalised, of n units that occur `counts` times."""
    if kind == "uniform":
        return np.ones(len(counts))
    if kind == "idf":
        assert table is not None
        return counts * table(keys)
    if kind == "norm":
        return counts * np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return counts


def normalised(metric: str, masses: Masses) -> Masses:
    """Masses scaled to sum to 1; uniform, with a warning, if they are all zero."""
    total = masses.sum()
    if total > 0:
        return masses / total
    warn_no_mass(metric)
    return np.full(len(masses), 1.0 / len(masses))


def warn_no_mass(metric: str) -> None:
    warnings.warn(f"{metric}: a text has no mass under these weights; its units weigh the same", stacklevel=2)

r"""Units → masses, and the table of inverse document frequencies."""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from movers.signature import short_digest

__all__ = ["IdfTable", "Weights"]

Weights = Literal["count", "uniform", "idf", "norm"]
Keys = Literal["words", "tokens"]


@dataclass(frozen=True)
class IdfTable:
    r"""Inverse document frequencies, :math:`idf(k) = \log \frac{N + 1}{df(k) + 1}`; an unseen key has df = 0.

    Parameters
    ----------
    frequencies : dict
        For each key (a word, or the id of a token) in how many documents it occurs.
    documents : int
        N.
    keys : {"words", "tokens"}
        What the keys are.
    tokenizer : str or None
        Digest of the tokenizer the token ids come from: ids of another tokenizer mean other tokens.

    Examples
    --------
    >>> table = IdfTable.build([["a", "rare", "word"], ["a", "plain", "word"]])
    >>> round(table["a"], 4), round(table["rare"], 4), round(table["unseen"], 4)
    (0.0, 0.4055, 1.0986)
    """

    frequencies: dict[str | int, int]
    documents: int
    keys: Keys = "words"
    tokenizer: str | None = None

    @classmethod
    def build(
        cls, documents: Iterable[Iterable[str | int]], keys: Keys = "words", tokenizer: str | None = None
    ) -> IdfTable:
        """Count in how many documents each key occurs; a document counts as often as it is given."""
        frequencies: Counter[str | int] = Counter()
        count = 0
        for document in documents:
            frequencies.update(set(document))
            count += 1
        if not count:
            raise ValueError("IdfTable: expected at least one document, but got none")
        return cls(dict(frequencies), count, keys, tokenizer)

    def __getitem__(self, key: Hashable) -> float:
        return math.log((self.documents + 1) / (self.frequencies.get(key, 0) + 1))  # type: ignore[call-overload]

    def __call__(self, keys: Sequence[Hashable]) -> NDArray[np.float64]:
        """(n,) inverse document frequencies of n keys."""
        return np.array([self[key] for key in keys], dtype=np.float64)

    @cached_property
    def digest(self) -> str:
        """Names the table in signatures."""
        return short_digest(json.dumps(self._plain(), ensure_ascii=True, sort_keys=True))

    def _plain(self) -> dict[str, object]:
        ordered = sorted(self.frequencies.items(), key=lambda item: (str(type(item[0])), item[0]))
        return {
            "format": "movers-idf-1",
            "keys": self.keys,
            "tokenizer": self.tokenizer,
            "documents": self.documents,
            "frequencies": [[key, count] for key, count in ordered],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON (gzip'd if the name ends in .gz)."""
        data = json.dumps(self._plain(), ensure_ascii=False).encode("utf-8")
        file = Path(path)
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdfTable:
        """Read a table that `save` wrote."""
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"idf: expected 'corpus', None, an IdfTable or a saved table, but no file {file}")
        try:
            data = file.read_bytes()
            plain = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
            if plain["format"] != "movers-idf-1":
                raise KeyError(plain["format"])
            return cls(dict(map(tuple, plain["frequencies"])), plain["documents"], plain["keys"], plain["tokenizer"])
        except (KeyError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
            raise ValueError(f"idf: {file} is not a table written by IdfTable.save ({error!r})") from None

    def check(self, metric: str, keys: Keys, tokenizer: str | None = None) -> None:
        """Refuse a table of other keys than the metric's."""
        if self.keys != keys:
            raise ValueError(f"{metric}: idf: expected a table of {keys}, but got one of {self.keys}")
        if self.tokenizer != tokenizer:
            raise ValueError(
                f"{metric}: idf: the table was built with another tokenizer "
                f"(its digest {self.tokenizer}, this encoder's {tokenizer})"
            )

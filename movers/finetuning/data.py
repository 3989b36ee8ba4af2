"""Pairs of texts with a label or a score, out of files; every row is checked."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from movers import io
from movers.errors import InputError
from movers.inputs import check_text

__all__ = ["COMMAND", "PairData", "Task", "TextPair", "read_pairs", "split_off"]

COMMAND = "train encoder"
Task = Literal["nli", "similarity"]

_FIRST = ("premise", "sentence1", "sentence_1", "text1", "question1", "question")
_SECOND = ("hypothesis", "sentence2", "sentence_2", "text2", "question2", "sentence")
_TARGET = {
    "nli": ("label", "gold_label", "labels"),
    "similarity": ("score", "similarity", "similarity_score", "relatedness_score", "label"),
}
# The labels of the usual corpora, by name and as their copies on the Hub number them.
_LABELS = (("entailment", "neutral", "contradiction"), ("entailment", "not_entailment"), ("0", "1", "2"))
_NO_MAJORITY = ("-", "-1")  # how SNLI and MultiNLI mark pairs on which annotators did not agree


class TextPair(NamedTuple):
    """Two texts; `target` is the number of their class, or their similarity from 0 to 1."""

    first: str
    second: str
    target: float


@dataclass(frozen=True)
class PairData:
    """Pairs of one task.

    Attributes
    ----------
    labels : names of the classes, in the order of their numbers; empty for `similarity`
    bounds : the scores that became 0 and 1; None for `nli`
    unlabelled : rows left out because annotators did not agree
    """

    pairs: tuple[TextPair, ...]
    labels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    unlabelled: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 over the pairs, in order."""
        total = hashlib.sha256()
        for pair in self.pairs:
            total.update(json.dumps(pair).encode())
        return total.hexdigest()


def read_pairs(
    files: Sequence[str],
    task: Task,
    *,
    columns: Mapping[str, str | None] | None = None,
    labels: Sequence[str] | None = None,
    bounds: tuple[float | None, float | None] = (None, None),
    limit: int | None = None,
) -> PairData:
    """Read files of pairs; a row that is not as expected is an error that names file and row.

    Parameters
    ----------
    files : JSON Lines, JSON, CSV, TSV or Parquet files; `.gz` may follow
    columns : names of the columns `first`, `second` and `target`; found by their usual names where None
    labels : the classes of `nli`; by default those of the usual corpora
    bounds : lowest and highest score of `similarity`; by default those of the data
    limit : rows to take from the beginning of each file
    """
    classes: tuple[tuple[str, ...], ...] = _LABELS if labels is None else (tuple(labels),)
    pairs: list[TextPair] = []
    found: list[str] = []
    unlabelled = 0
    for where, first, second, value in _rows(files, task, columns or {}, limit):
        if task == "similarity":
            pairs.append(TextPair(first, second, _score(where, value, bounds)))
        elif (label := _label(value)) in _NO_MAJORITY:
            unlabelled += 1
        else:
            remaining = tuple(names for names in classes if label in names)
            if not remaining:
                expected = dict.fromkeys(name for names in classes for name in names)
                raise InputError(f"{where}: expected a label among {', '.join(expected)}, but got {value!r}")
            classes = remaining
            found.append(label)
            pairs.append(TextPair(first, second, 0.0))
    if len(pairs) < 10:
        raise InputError(f"{COMMAND}: data: expected at least 10 pairs, but got {len(pairs)}")
    if task == "similarity":
        return _scaled(pairs, bounds)
    # in the corpus's own order; classes that were named count even if no pair has them
    names = classes[0] if labels is not None else tuple(name for name in classes[0] if name in found)
    if len(names) < 2:
        raise InputError(f"{COMMAND}: data: expected at least two labels, but every pair has {found[0]!r}")
    numbered = tuple(pair._replace(target=names.index(label)) for pair, label in zip(pairs, found, strict=True))
    return PairData(numbered, names, unlabelled=unlabelled)


def _rows(
    files: Sequence[str], task: Task, columns: Mapping[str, str | None], limit: int | None
) -> Iterator[tuple[str, str, str, object]]:
    """Where each row is, its two texts and its label or score."""
    usual = {"first": _FIRST, "second": _SECOND, "target": _TARGET[task]}
    for file in files:
        names: dict[str, str] = {}
        table = io.Table(file, columns.get("first"))
        for count, (number, record) in enumerate(table):
            if count == limit:
                break
            where = f"{COMMAND}: data: {table.where(number)}"
            if isinstance(record, str):
                raise InputError(f"{where}: expected columns, but got a text")
            if not names:
                names = {
                    part: io.find_column(where, record, columns.get(part), known, f"--{part}-column")
                    for part, known in usual.items()
                }
            values = [record.get(name) for name in names.values()]
            first, second = (check_text(COMMAND, "data", table.where(number), value) for value in values[:2])
            if not first.strip() or not second.strip():
                raise InputError(f"{where}: expected two texts, but one is blank")
            yield where, first, second, values[2]


def _label(value: object) -> str:
    """A label as text; files of cells have whole numbers as text, too."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _score(where: str, value: object, bounds: tuple[float | None, float | None]) -> float:
    try:
        score = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{where}: expected a number as score, but got {value!r}")
    low, high = bounds
    if (low is not None and score < low) or (high is not None and score > high):
        raise InputError(f"{where}: expected a score from {low} to {high}, but got {value!r}")
    return score


def _scaled(pairs: list[TextPair], bounds: tuple[float | None, float | None]) -> PairData:
    scores = [pair.target for pair in pairs]
    low = min(scores) if bounds[0] is None else bounds[0]
    high = max(scores) if bounds[1] is None else bounds[1]
    if not low < high:
        raise InputError(f"{COMMAND}: data: expected scores that differ, but every pair has {low}")
    return PairData(
        tuple(pair._replace(target=(pair.target - low) / (high - low)) for pair in pairs), bounds=(low, high)
    )


def split_off(pairs: Sequence[TextPair], share: float, seed: int) -> tuple[list[TextPair], list[TextPair]]:
    """The pairs for training and a share of them for validation; pairs with the same first text stay together.

    >>> train, validation = split_off([TextPair(f"t{n // 3}", "u", 0.0) for n in range(30)], 0.1, seed=0)
    >>> len(train), len(validation)
    (27, 3)
    """
    groups: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        groups.setdefault(pair.first.strip(), []).append(place)
    listed, held = list(groups.values()), set[int]()
    for number in np.random.default_rng([seed, 81]).permutation(len(listed))[: len(listed) - 1]:
        if len(held) >= share * len(pairs):
            break
        held.update(listed[number])
    if not held:
        raise InputError(f"{COMMAND}: data: expected different first texts, but every pair begins with the same")
    return [pair for place, pair in enumerate(pairs) if place not in held], [pairs[place] for place in sorted(held)]

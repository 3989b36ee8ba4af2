"""Human-judged texts, and filters on them.

All datasets use one format. Every text is a row with

``id``
    any label;
``candidate``
    the judged text;
``references``
    a list of reference texts, empty if the text was judged against ``source``;
``scores``
    name → number, or null if there is none (a name whose values are all texts, such as corrections, is not a score; it
    is kept as the field ``scores.<name>``);

and optionally ``system`` (which system wrote it), ``source`` (its source text), ``doc`` (groups texts at summary
level), ``lp`` (language pair), ``split``, or anything else. :mod:`movers.agreement.readers` reads datasets from files,
:mod:`movers.agreement.hub` from the Hub.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from movers.errors import InputError

__all__ = ["JudgedSet", "JudgedText"]


@dataclass(frozen=True)
class JudgedText:
    """One judged text; ``fields`` holds everything beyond the four required fields of a row."""

    id: str
    candidate: str
    references: tuple[str, ...]
    scores: Mapping[str, float | None]
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedSet:
    """Judged texts in the order of their file."""

    name: str
    texts: tuple[JudgedText, ...]

    @classmethod
    def from_rows(cls, name: str, rows: Iterable[tuple[str, Mapping[str, object]]]) -> JudgedSet:
        """Validate rows, each given with its location for error messages."""
        placed = list(rows)
        if not placed:
            raise InputError(f"{name}: expected at least one judged text, but got none")
        scores = [_scores_of(row, where) for where, row in placed]
        wordy = {key for own in scores for key, value in own.items() if isinstance(value, str)}
        wordy -= {key for own in scores for key in wordy if not isinstance(own.get(key), str | None)}
        return cls(
            name,
            tuple(
                _judged_text(row, own, where, number, wordy)
                for number, ((where, row), own) in enumerate(zip(placed, scores, strict=True))
            ),
        )

    def __len__(self) -> int:
        return len(self.texts)

    def shown(self, text: JudgedText) -> str:
        """A text as messages name it, so that it is found in the file that it comes from."""
        return f"{self.name}: text {text.id!r} ({text.candidate[:40]!r})"

    def human_names(self) -> list[str]:
        """The names of the human scores, in order of first appearance."""
        return list(dict.fromkeys(name for text in self.texts for name in text.scores))

    def human(self, name: str) -> list[float | None]:
        """Human scores of one kind; None if a text has none. A name that no text has is an error."""
        if name not in self.human_names():
            known = ", ".join(self.human_names())
            raise InputError(f"{self.name}: expected one of the human scores {known}, but got {name!r}")
        return [text.scores.get(name) for text in self.texts]

    def field_names(self) -> list[str]:
        """The names of all fields, in order of first appearance."""
        return list(dict.fromkeys(name for text in self.texts for name in text.fields))

    def labels(self, name: str) -> list[str]:
        """One field of every text (``system``, ``doc``, ``lp`` …) as text; a row without it is an error."""
        for text in self.texts:
            if text.fields.get(name) is None:
                known = ", ".join(text.fields) or "none"
                raise InputError(f"{self.shown(text)}: expected a field {name!r}, but got the fields {known}")
        return [_as_label(text.fields[name]) for text in self.texts]

    def where(self, *conditions: str) -> JudgedSet:
        """The texts that meet every condition, each written ``field=value``; also ``!=``, ``>=`` and ``<=``.

        Values are compared as text: ``true``, ``false`` and ``null`` as in JSON, whole numbers without a point.
        ``>=`` and ``<=`` compare numbers; texts whose field is not a number do not match.
        """
        kept = self.texts
        for condition in conditions:
            found = re.fullmatch(r"\s*(.+?)\s*(!=|>=|<=|=)\s*(.*?)\s*", condition, re.DOTALL)
            if found is None:
                raise InputError(f"where: expected field=value (or !=, >=, <=), but got {condition!r}")
            name, sign, wanted = found.groups()
            if name not in self.field_names():
                known = ", ".join(self.field_names()) or "(none)"
                raise InputError(f"{self.name}: expected one of the fields {known}, but got {name!r}")
            kept = tuple(text for text in kept if _meets(text.fields.get(name), sign, wanted, condition))
        if not kept:
            raise InputError(f"{self.name}: expected texts with {' and '.join(conditions)}, but got none")
        return JudgedSet(self.name, kept)


def _meets(value: object, sign: str, wanted: str, condition: str) -> bool:
    if sign in ("=", "!="):
        return (_as_label(value) == wanted) == (sign == "=")
    try:
        bound = float(wanted)
    except ValueError:
        raise InputError(f"where: expected a number after {sign}, but got {condition!r}") from None
    try:
        number = float(str(value))
    except ValueError:
        return False
    return number >= bound if sign == ">=" else number <= bound


def _as_label(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _scores_of(row: Mapping[str, object], where: str) -> Mapping[str, object]:
    scores = row.get("scores")
    if not isinstance(scores, Mapping):
        raise InputError(f"{where}: scores: expected an object of names and numbers, but got {scores!r:.60}")
    return scores


def _judged_text(
    row: Mapping[str, object], scores: Mapping[str, object], where: str, number: int, wordy: set[str]
) -> JudgedText:
    candidate, references = row.get("candidate"), row.get("references") or []
    if not _is_text(candidate):
        raise InputError(f"{where}: candidate: expected a text, but got {candidate!r:.60}")
    if not isinstance(references, list | tuple) or not all(map(_is_text, references)):
        raise InputError(f"{where}: references: expected a list of texts, but got {references!r:.60}")
    return JudgedText(
        id=str(number if row.get("id") is None else row["id"]),
        candidate=candidate,
        references=tuple(references),
        scores={
            name: _score(value, f"{where}: scores[{name!r}]") for name, value in scores.items() if name not in wordy
        },
        fields={key: value for key, value in row.items() if key not in ("id", "candidate", "references", "scores")}
        | {f"scores.{name}": value for name, value in scores.items() if name in wordy},
    )


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a string of valid Unicode."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _score(value: object, where: str) -> float | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
        raise InputError(f"{where}: expected a finite number or null, but got {value!r:.60}")
    return float(value)

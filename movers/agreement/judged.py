"""Human-judged texts: one row per text, read from files, filtered by conditions.

A row has ``candidate`` (the judged text), ``references`` (a list of texts, empty if it was judged against ``source``),
``scores`` (name → number, or null if there is none; a name whose values are all texts, such as corrections, is
ignored), and optionally ``id``, ``system`` (which system wrote it), ``source`` (its source text), ``doc`` (groups texts
at summary level), ``lp`` (language pair), ``split``, or anything else. Files are JSON Lines, JSON, Parquet, or CSV and
TSV with columns ``scores.<name>``, a column ``references`` with a JSON list or a plain text, and empty cells for null.
``benchmarks/agreement/convert.py`` converts published datasets into this format.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard

from movers.errors import InputError
from movers.io import Table

Record = Mapping[str, object]
LocatedRecord = tuple[str, Record]  # a row, and its location for error messages


@dataclass(frozen=True)
class JudgedText:
    """One judged text; ``fields`` holds all other fields of its row."""

    id: str
    candidate: str
    references: tuple[str, ...]
    scores: Mapping[str, float | None]
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The source text, or several."""
        source = self.fields.get("source")
        return tuple(part for part in (source if isinstance(source, list) else [source]) if isinstance(part, str))


@dataclass(frozen=True)
class JudgedSet:
    """Judged texts in the order of their file."""

    name: str
    texts: tuple[JudgedText, ...]

    @classmethod
    def from_rows(cls, name: str, rows: Iterable[LocatedRecord]) -> JudgedSet:
        """Validate rows, each with its location for error messages."""
        located = list(rows)
        if not located:
            raise InputError(f"{name}: expected at least one judged text, but got none")
        kinds: dict[str, set[type]] = {}
        for where, row in located:
            scores = row.get("scores")
            if not isinstance(scores, Mapping):
                raise InputError(f"{where}: scores: expected an object of names and numbers, but got {scores!r:.60}")
            for key, value in scores.items():
                kinds.setdefault(key, set()).add(type(value))
        texts = {key for key, types in kinds.items() if str in types <= {str, type(None)}}
        return cls(name, tuple(_judged_text(number, where, row, texts) for number, (where, row) in enumerate(located)))

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
        texts = self.texts
        fields = dict.fromkeys(name for text in texts for name in text.fields)
        for condition in conditions:
            match = re.fullmatch(r"\s*(.+?)\s*(!=|>=|<=|=)\s*(.*?)\s*", condition, re.DOTALL)
            if match is None:
                raise InputError(f"where: expected field=value (or !=, >=, <=), but got {condition!r}")
            name, operator, bound = match.groups()
            if name not in fields:
                raise InputError(f"{self.name}: expected one of the fields {', '.join(fields)}, but got {name!r}")
            texts = tuple(text for text in texts if _meets(text.fields.get(name), operator, bound))
        if not texts:
            raise InputError(f"{self.name}: expected texts with {' and '.join(conditions)}, but got none")
        return JudgedSet(self.name, texts)


def _meets(value: object, operator: str, bound: str) -> bool:
    if operator in ("=", "!="):
        return (_as_label(value) == bound) == (operator == "=")
    number, limit = _number(str(value)), _number(bound)
    return number is not None and limit is not None and (number >= limit if operator == ">=" else number <= limit)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_label(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _judged_text(number: int, where: str, row: Record, ignored: set[str]) -> JudgedText:
    """A validated row, without the scores that are ``ignored``."""
    candidate, references, scores = row.get("candidate"), row.get("references") or [], row["scores"]
    assert isinstance(scores, Mapping)
    if not _is_text(candidate):
        raise InputError(f"{where}: candidate: expected a text, but got {candidate!r:.60}")
    if not isinstance(references, list | tuple) or not all(map(_is_text, references)):
        raise InputError(f"{where}: references: expected a list of texts, but got {references!r:.60}")
    return JudgedText(
        id=str(number if row.get("id") is None else row["id"]),
        candidate=candidate,
        references=tuple(references),
        scores={name: _score(scores[name], f"{where}: scores[{name!r}]") for name in scores if name not in ignored},
        fields={key: value for key, value in row.items() if key not in ("id", "candidate", "references", "scores")},
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


# --- files -----------------------------------------------------------------------------------------------------------


def read_judged(
    source: str | Path, *, split: str | None = None, where: Sequence[str] = (), references: Sequence[str] = ()
) -> JudgedSet:
    """Read those judged texts from a file (``-``: standard input) that meet ``where`` and whose ``split`` is this one.

    ``references`` are further references for every text, such as a model essay.
    """
    judged = JudgedSet.from_rows(Path(source).name.split(".")[0], _read_records(str(source)))
    conditions = [*where, *([f"split={split}"] if split else [])]
    judged = judged.where(*conditions) if conditions else judged
    texts = (replace(text, references=(*text.references, *references)) for text in judged.texts)
    return JudgedSet(judged.name, tuple(texts))


def _read_records(path: str) -> Iterator[LocatedRecord]:
    table = Table(path, "candidate")
    for number, row in table:
        where = table.where(number)
        if isinstance(row, str) or "candidate" not in row:
            got = "a text" if isinstance(row, str) else f"the fields {', '.join(row)}"
            raise InputError(f"{where}: expected a row with candidate, references and scores, but got {got}")
        yield where, _from_cells(row, where) if table.kind in ("csv", "tsv") else row


def _from_cells(cells: Record, where: str) -> Record:
    """Convert a CSV row."""
    scores: dict[str, float | None] = {}
    row: dict[str, object] = {"scores": scores}
    for name, cell in ((name, str(cell)) for name, cell in cells.items()):
        if name.startswith("scores."):
            number = scores[name.removeprefix("scores.")] = _number(cell)
            if number is None and cell:
                raise InputError(f"{where}: {name}: expected a number or an empty cell, but got {cell!r:.60}")
        elif name == "references":
            row[name] = _reference_cell(cell)
        else:
            row[name] = cell if cell or name == "candidate" else None
    if not scores:
        raise InputError(f"{where}: expected at least one column scores.<name>, but got {', '.join(cells)}")
    return row


def _reference_cell(cell: str) -> list[object]:
    if cell.startswith("["):
        with suppress(ValueError):  # a text that begins with a bracket
            return json.loads(cell)
    return [cell] if cell else []

"""Human-judged texts: one row per text, read from files, filtered by conditions.

A row has a ``prediction``, ``references`` (one text or a list; none if it was judged against its ``source``), and human
scores: numbers in the column ``human`` or ``score`` or in columns that the caller names, or an object ``scores`` of
names and numbers (columns ``scores.<name>`` in CSV). Texts go by other common names too, such as ``candidate`` or
``document``. A missing score is null or an empty cell; a score whose values are all texts, such as corrections, is
ignored. Further fields, such as ``id``, ``system`` (which system wrote it), ``doc`` (groups texts at summary level),
``lp`` (language pair) and ``split``, are kept. Files are JSON Lines, JSON, Parquet, or CSV and TSV, where several
references are a JSON list. ``benchmarks/agreement/convert.py`` converts published datasets into this format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from movers.errors import InputError
from movers.io import Table, common_columns, problem_with

Record = Mapping[str, object]
LocatedRecord = tuple[str, Record]  # a row, and its location for error messages


def unusable(problem: str) -> InputError:
    """An error that shows what judged texts look like, and then what is wrong with these."""
    return InputError(
        "expected a file of judged texts like this one (CSV, or the same fields as JSON lines):\n"
        "prediction,reference,human\n"
        "A cat sat.,The cat sat.,4\n"
        f"but {problem}"
    )


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
        names = common_columns("sources", self.fields)
        source = self.fields[names[0]] if names else None
        return tuple(part for part in (source if isinstance(source, list) else [source]) if isinstance(part, str))


@dataclass(frozen=True)
class JudgedSet:
    """Judged texts in the order of their file."""

    name: str
    texts: tuple[JudgedText, ...]

    @classmethod
    def from_rows(cls, name: str, rows: Iterable[LocatedRecord], human: Sequence[str] = ()) -> JudgedSet:
        """Validate rows, each with its location for error messages; ``human`` names columns of scores."""
        located = list(rows)
        if not located:
            raise unusable(f"{name} has no rows")
        scores = [_scores(row, human or ("human", "score")) for _, row in located]
        numeric = {key for cells in scores for key, cell in cells.items() if _number(cell) is not None}
        if not numeric:
            where, row = located[0]
            hint = f"none with numbers is {' or '.join(human)}" if human else "--human names the column of human scores"
            raise unusable(f"{where} has the fields {', '.join(row)}; {hint}")
        texts = []
        for number, ((where, row), cells) in enumerate(zip(located, scores, strict=True)):
            judged = {key: _score(cell, f"{where}: {key}") for key, cell in cells.items() if key in numeric}
            texts.append(_judged_text(number, where, row, judged))
        return cls(name, tuple(texts))

    def __len__(self) -> int:
        return len(self.texts)

    def shown(self, text: JudgedText) -> str:
        """How messages name a text, so that it can be found in its file."""
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
    number, limit = _number(value), _number(bound)
    return number is not None and limit is not None and (number >= limit if operator == ">=" else number <= limit)


def _number(value: object) -> float | None:
    """A finite number, which may be written as text; None for anything else."""
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)  # type: ignore[arg-type]
        return number if math.isfinite(number) else None
    return None


def _as_label(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def _scores(row: Record, names: Sequence[str]) -> dict[str, object]:
    """The human scores of a row, not validated."""
    scores = row.get("scores")
    cells = dict(scores) if isinstance(scores, Mapping) else {}
    cells |= {name.removeprefix("scores."): row[name] for name in row if name.startswith("scores.")}
    return cells or {name: row[name] for name in names if name in row}


def _score(cell: object, where: str) -> float | None:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if (number := _number(cell)) is None:
        raise InputError(f"{where}: expected a finite number or nothing, but got {cell!r:.60}")
    return number


def _judged_text(number: int, where: str, row: Record, scores: Mapping[str, float | None]) -> JudgedText:
    candidates, references = (common_columns(argument, row) for argument in ("predictions", "references"))
    if len(candidates) != 1 or len(references) > 1:
        raise unusable(f"{where} has the fields {', '.join(row)}")
    candidate, texts = row[candidates[0]], row[references[0]] if references else None
    if isinstance(texts, str) and texts.startswith("["):
        with suppress(ValueError):  # a list in a cell, or a text that begins with a bracket
            texts = json.loads(texts)
    texts = texts if isinstance(texts, list) else [texts] if texts else []
    for name, values in zip([*candidates, *references], ([candidate], texts), strict=False):
        if problem := problem_with(values):
            raise InputError(f"{where}: {name}: {problem}")
    used = {"id", "scores", *candidates, *references, *(name for name in row if name.startswith("scores."))}
    return JudgedText(
        id=str(number if row.get("id") is None else row["id"]),
        candidate=str(candidate),
        references=tuple(map(str, texts)),
        scores=scores,
        fields={key: None if value == "" else value for key, value in row.items() if key not in used},
    )


def read_judged(
    source: str | Path, *, where: Sequence[str] = (), references: Sequence[str] = (), human: Sequence[str] = ()
) -> JudgedSet:
    """Read those judged texts from a file (``-``: standard input) that meet the conditions ``where``.

    ``references`` are further references for every text, such as a model essay; ``human`` names columns of scores.
    """
    judged = JudgedSet.from_rows(Path(source).name.split(".")[0], _read_records(str(source)), human)
    judged = judged.where(*where) if where else judged
    texts = (replace(text, references=(*text.references, *references)) for text in judged.texts)
    return JudgedSet(judged.name, tuple(texts))


def _read_records(path: str) -> Iterator[LocatedRecord]:
    table = Table(path, "prediction")
    for number, row in table:
        if isinstance(row, str):
            raise unusable(f"{table.where(number)} is a text without columns")
        yield table.where(number), row

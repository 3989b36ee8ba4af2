"""Columns of texts, checked as they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from movers.errors import InputError
from movers.io.reader import Table, kind_of

__all__ = ["Survey", "TextGroups", "Texts", "find_column"]

#: How columns are usually called; `text` is taken if none of these is there.
_USUAL_COLUMNS = {
    "predictions": ("prediction", "predictions", "candidate", "candidates", "hypothesis", "output", "generated"),
    "references": ("reference", "references", "ref", "refs", "target", "gold"),
    "sources": ("source", "sources", "src", "document", "article"),
}


def find_column(where: str, columns: Iterable[str], wanted: str | None, usual: Sequence[str], option: str) -> str:
    """The column that is wanted, or the only one with a usual name; `option` is what a user names it with.

    >>> find_column("t.csv", ["id", "candidate"], None, ["candidate", "prediction"], "--prediction-column")
    'candidate'
    """
    columns = list(columns)
    shown = ", ".join(name if name and name == name.strip() else repr(name) for name in columns) or "(none)"
    if len(columns) == 1 and any(sign in columns[0] for sign in ";\t|"):
        shown = f"{columns[0]!r} alone: .csv has commas between cells, .tsv has tabs"
    found = [wanted] if wanted is not None else [name for name in usual if name in columns] or ["text"]
    if len(found) > 1:
        raise InputError(f"{where}: expected {option} to choose one of the columns {shown}")
    if found[0] not in columns:
        what = f"a column {wanted!r}" if wanted is not None else f"{option} to name a column"
        raise InputError(f"{where}: expected {what}, but got the columns {shown}")
    return found[0]


class Survey(NamedTuple):
    """How many rows there are, and a digest of their texts, whatever the format of the file."""

    rows: int
    digest: str


class Texts:
    """The texts of a file, or of a column of it; iterating again reads the file again.

    Parameters
    ----------
    path : str or Table
    argument : str
        What the texts are: `predictions`, `references`, `sources`, …; errors begin with it.
    column : str, optional
        The column to take; by default the only one that has a usual name.
    """

    def __init__(self, path: str | Table, argument: str, column: str | None = None) -> None:
        self.table = path if isinstance(path, Table) else Table(path, column)
        self.argument = argument
        self.column = column
        self.found = column  # or the one that was read, once one was
        if column is not None and self.table.kind == "text":
            raise InputError(f"{argument}: {self.table.path}: expected no {self._option}: it holds one text per line")

    @property
    def _option(self) -> str:
        singular = self.argument.removesuffix("s") if self.argument in _USUAL_COLUMNS else self.argument
        return f"--{singular}-column"

    def values(self) -> Iterator[tuple[int, object]]:
        """Every value of the column, with the number of its row."""
        column = self.column
        for number, value in self.table:
            if isinstance(value, str):
                yield number, value
                continue
            if column is None or column not in value:
                usual = _USUAL_COLUMNS.get(self.argument, ())
                column = find_column(self.where(number), value, column, usual, self._option)
                self.found = column
            yield number, value[column]

    def where(self, number: int) -> str:
        """A row as messages name it."""
        return f"{self.argument}: {self.table.where(number)}"

    def where_row(self, row: int) -> str:
        """The row of an index, from 0, as messages name it; the file is read again up to there."""
        number, _ = next(islice(self.values(), row, None))
        return self.where(number)

    def groups(self) -> Iterator[list[str]]:
        """The texts of each row, where a row may be a list of texts."""
        for number, value in self.values():
            if not isinstance(value, list):
                yield [self._text(number, value)]
            elif value:
                yield [self._text(number, text) for text in value]
            else:
                raise InputError(f"{self.where(number)}: expected at least one text, but got an empty list")

    def __iter__(self) -> Iterator[str]:
        for number, value in self.values():
            yield self._text(number, value)

    def _text(self, number: int, value: object) -> str:
        if not isinstance(value, str):
            raise InputError(f"{self.where(number)}: expected a text, but got {kind_of(value)}")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"{self.where(number)}: expected valid Unicode, but got a lone surrogate {value[error.start]!a}"
            ) from None
        return value

    def count(self) -> int:
        """Number of rows, in one pass that checks every row and keeps nothing."""
        return sum(1 for _ in self)

    def survey(self, lists: bool = False) -> Survey:
        """Number and digest of the rows in one such pass; rows may be lists of texts, if that is said."""
        rows, digest = 0, hashlib.sha256()
        for group in self.groups() if lists else ([text] for text in self):
            rows += 1
            for text in group:
                data = text.encode("utf-8")
                digest.update(b"%d:%b" % (len(data), data))
            digest.update(b"\n")
        return Survey(rows, digest.hexdigest())


class TextGroups:
    """Row by row, the texts of several files together; a column may itself hold lists of texts."""

    def __init__(self, files: Sequence[Texts]) -> None:
        self.files = files

    def __iter__(self) -> Iterator[list[str]]:
        for groups in zip_longest(*(file.groups() for file in self.files), fillvalue=[]):
            yield [text for group in groups for text in group]

    def where_row(self, row: int, place: int) -> str:
        """A text by the index of its row and its own in the row, as messages name it; the files are read again."""
        for file in self.files:
            texts = next(islice(file.groups(), row, None))
            if place < len(texts):
                return file.where_row(row)
            place -= len(texts)
        raise IndexError(place)

    def counts(self) -> list[int]:
        """Number of rows of each file, in one pass that checks every row and keeps nothing."""
        return [sum(1 for _ in file.groups()) for file in self.files]

"""Texts in files: one a line, or a column of JSON Lines, CSV or TSV; each may be gzip'd. Read as a stream."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

__all__ = ["TextFile", "read_groups"]


class TextFile:
    """A file of texts.

    Parameters
    ----------
    path : str
        `.jsonl`, `.ndjson`, `.csv` and `.tsv` hold columns, anything else one text a line; `.gz` may follow.
    column : str, optional
        The column to take; required for files with columns.
    argument : str
        Which argument of the caller the file is, for messages.
    """

    def __init__(self, path: str, column: str | None, argument: str) -> None:
        self.path = Path(path)
        self.argument = argument
        self.column = column
        if not self.path.exists():
            raise FileNotFoundError(f"{argument}: no such file: {path}")
        if not self.path.is_file():
            raise FileNotFoundError(f"{argument}: expected a file, but {path} is a folder")
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        self.gzipped = bool(suffixes) and suffixes[-1] == ".gz"
        kind = suffixes[-2] if self.gzipped and len(suffixes) > 1 else (suffixes[-1] if suffixes else "")
        self.kind = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv"}.get(kind, "text")
        if self.kind != "text" and column is None:
            raise ValueError(
                f"{argument}: {path} has columns: say which one with --{argument.split()[0].rstrip('s')}-column"
            )

    @contextmanager
    def _open(self) -> Iterator[io.TextIOBase]:
        opener: Any = gzip.open if self.gzipped else open
        # Quoted line breaks of a table stay as they are, and a lone carriage return does not end a line of text.
        newline = "" if self.kind in ("csv", "tsv") else "\n"
        with opener(self.path, "rt", encoding="utf-8-sig", newline=newline) as file:
            yield file

    def __iter__(self) -> Iterator[Any]:
        row = 0
        try:
            with self._open() as file:
                for value in self._values(file):
                    yield value
                    row += 1
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.argument}: {self.path}: expected UTF-8 after row {row}, but got {error.reason}"
            ) from None
        except (gzip.BadGzipFile, EOFError) as error:
            raise ValueError(f"{self.argument}: {self.path}: expected a whole gzip file, but got: {error}") from None

    def _values(self, file: io.TextIOBase) -> Iterator[Any]:
        if self.kind == "text":
            yield from (line.rstrip("\n").removesuffix("\r") for line in file)
        elif self.kind == "jsonl":
            yield from self._json_values(file)
        else:
            yield from self._csv_values(file)

    def _json_values(self, file: io.TextIOBase) -> Iterator[Any]:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(
                    f"{self.argument}: {self.path}: line {number}: expected JSON, but got: {error}"
                ) from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{self.argument}: {self.path}: line {number}: expected an object, but got {line[:40]!r}"
                )
            if self.column not in record:
                raise ValueError(self._no_column(f"line {number}", record))
            yield record[self.column]

    def _csv_values(self, file: io.TextIOBase) -> Iterator[Any]:
        csv.field_size_limit(1 << 30)
        reader = csv.DictReader(file, delimiter="\t" if self.kind == "tsv" else ",")
        if self.column not in (reader.fieldnames or []):
            raise ValueError(self._no_column("header", reader.fieldnames or []))
        for record in reader:
            yield record[self.column]

    def _no_column(self, where: str, columns: Any) -> str:
        there = ", ".join(map(str, columns))
        return f"{self.argument}: {self.path}: {where}: no column {self.column!r}; there are: {there}"

    def count(self) -> int:
        """Number of rows, in one pass that keeps nothing."""
        return sum(1 for _ in self)


def read_groups(files: list[TextFile]) -> Iterator[list[Any]]:
    """Row by row, the texts of all files; a column may itself hold a list of texts."""
    for values in zip_longest(*files):
        group: list[Any] = []
        for value in values:
            group.extend(value if isinstance(value, list) else [value])
        yield group

"""One reader for every file of texts or records: JSON Lines, JSON, CSV, TSV, text, Parquet, Arrow; each may be gzip'd.

A `Table` is read again each time it is iterated over, so that memory does not grow with the file (but for JSON, of
which the text is in memory). Standard input and pipes are copied to a temporary file first.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from movers.errors import InputError
from movers.io.packed import bounded_lines, longest_line, open_packed
from movers.io.writer import is_open_file

__all__ = ["JSON", "RepeatedKey", "Row", "Table", "kind_of", "read_records", "read_rows"]

Record = dict[str, object]

_KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_NAMELESS = os.path.isdir("/proc/self/fd")
_BLANK = re.compile(r"[ \t\r\n]*")


class RepeatedKey(ValueError):
    """A key stands twice in an object of JSON: Python would keep the last value, other readers the first."""


def _unique(pairs: list[tuple[str, object]]) -> Record:
    record: Record = {}
    for key, value in pairs:
        if key in record:
            raise RepeatedKey(f"{key!r:.60} twice")
        record[key] = value
    return record


#: What every file of JSON is read with.
JSON = json.JSONDecoder(object_pairs_hook=_unique)


class Row(NamedTuple):
    """A row: its number as `Table.where` takes it, and a record (column → value) or, in a file of texts, its text."""

    number: int
    value: Record | str


class Table:
    """The rows of a file; iterating again reads the file again.

    Parameters
    ----------
    path : str or Path
        `.jsonl`, `.ndjson`, `.json` (a list of objects or of texts), `.csv`, `.tsv`, `.parquet`, `.arrow` and
        `.feather` by their names, anything else holds one text per line; `.gz` may follow. `-` is standard input. What
        comes from a pipe has no such name: its format is found by its first bytes.
    column : str, optional
        A column that the caller is going to take, which helps to recognize the format of a pipe.
    """

    def __init__(self, path: str | Path, column: str | None = None) -> None:
        self.path = str(path)
        self._file = self.path
        if not self.path:
            raise InputError("expected the name of a file, but got an empty one")
        try:
            piped = self.path == "-" or is_open_file(self.path) or not stat.S_ISREG(os.stat(self.path).st_mode)
            if self.path != "-" and os.path.isdir(self.path):
                raise InputError(f"{self.path}: expected a file, but it is a folder")
            if piped:
                self._spool = _spooled(self.path)
                self._file = f"/proc/self/fd/{self._spool.fileno()}" if _NAMELESS else str(self._spool.name)
            with open(self._file, "rb") as file:
                head = file.read(4)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file") from None
        except (OSError, ValueError) as error:
            raise error if isinstance(error, InputError) else self._cannot_read(error) from None
        self.piped = piped
        name = Path(self.path)
        self._gzipped = name.suffix.lower() == ".gz" or (piped and head.startswith(b"\x1f\x8b"))
        if self._gzipped:
            name = name.with_suffix("")
        self.kind = _KINDS.get(name.suffix.lower(), "text")
        if piped and self.kind == "text":
            self.kind = self._recognized(column)

    def where(self, number: int) -> str:
        """A row as messages name it: `FILE: line 3`, or `FILE: row 3` where there are no lines (both from 1)."""
        return f"{self.path}: {'row' if self.kind in ('json', 'parquet', 'arrow') else 'line'} {number}"

    def __iter__(self) -> Iterator[Row]:
        try:
            if self.kind in ("parquet", "arrow"):
                yield from self._arrow_rows()
            elif self.kind == "json":
                yield from self._json_rows()
            elif self.kind == "jsonl":
                blank = 0
                for number, line in self._lines():
                    if not line.strip():
                        blank = blank or number
                        continue
                    self._check_no_gap(blank)
                    yield Row(number, self._record(number, self._json(line, 0, number)[0]))
            elif self.kind == "text":
                for number, line in self._lines():
                    yield Row(number, line.removesuffix("\n").removesuffix("\r"))
            else:
                yield from self._cells()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{self.path}: expected a complete gzip file, but got: {error}") from None
        except OSError as error:
            raise self._cannot_read(error) from None

    # --- formats -----------------------------------------------------------------------------------------------------

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1, line breaks included. Only a line feed ends a line."""
        with self._open() as file:
            # JSON is in memory whole, and often one line
            lines = iter(file) if self.kind == "json" else bounded_lines(file, self.path)
            for number, line in enumerate(lines, start=1):
                if number == 1:
                    line = self._without_mark(line)
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{self.where(number)}: expected UTF-8, but got the byte {line[error.start]:#04x}; "
                        f"if the file is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 {self.path}"
                    ) from None

    def _without_mark(self, line: bytes) -> bytes:
        """The first line without a byte order mark; that of another encoding is an error."""
        if line.startswith(b"\x1f\x8b"):
            raise InputError(f"{self.path}: expected UTF-8, but it is compressed: expected a name that ends in .gz")
        encoding = None
        if line.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
            encoding = "UTF-32"
        elif line.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding = "UTF-16"
        elif b"\0" in line[:4]:
            encoding = "UTF-16LE" if line[1:2] == b"\0" else "UTF-16BE"
        if encoding is not None:
            raise InputError(
                f"{self.path}: expected UTF-8, but got what looks like {encoding}; "
                f"convert it: iconv -f {encoding} -t UTF-8 {self.path}"
            )
        return line.removeprefix(b"\xef\xbb\xbf")

    def _json(self, text: str, start: int, number: int) -> tuple[object, int]:
        """The JSON value at a place of a text, and where it ends; on a line of its own it must end with the line."""
        try:
            if self.kind == "jsonl":
                return JSON.decode(text), len(text)
            return JSON.raw_decode(text, start)
        except RecursionError:
            raise InputError(f"{self.where(number)}: expected JSON, but it is nested too deeply") from None
        except RepeatedKey as error:
            raise InputError(f"{self.where(number)}: expected different keys in an object, but got {error}") from None
        except ValueError as error:  # also whole numbers of more than 4,300 digits
            shown = getattr(error, "msg", str(error).partition(";")[0])  # without a line number of its own
            shown = shown.removesuffix(" starting at")
            raise InputError(f"{self.where(number)}: expected JSON, but got {text[start:][:40]!r}: {shown}") from None

    def _check_no_gap(self, blank: int) -> None:
        """Refuse an empty line (its number, or 0) before another row: was a text left out there, rows would shift."""
        if blank:
            raise InputError(
                f"{self.where(blank)}: expected a row, but got an empty line between rows; an empty text is written "
                f"{'as an object' if self.kind == 'jsonl' else chr(34) * 2}"
            )

    def _record(self, number: int, value: object) -> Record:
        if not isinstance(value, dict):
            raise InputError(f"{self.where(number)}: expected an object, but got {kind_of(value)}")
        return value

    def _json_rows(self) -> Iterator[Row]:
        text = "".join(line for _, line in self._lines())
        place, number, texts = _after_blank(text, 0), 0, False
        if text[place : place + 1] != "[":
            raise InputError(f"{self.path}: expected a list of objects or of texts, but got {text[:40]!r}")
        place = _after_blank(text, place + 1)
        while text[place : place + 1] != "]" or number:
            number += 1
            value, place = self._json(text, place, number)
            texts = isinstance(value, str) if number == 1 else texts
            if not texts:
                yield Row(number, self._record(number, value))
            elif isinstance(value, str):
                yield Row(number, value)
            else:
                raise InputError(f"{self.where(number)}: expected a text like row 1, but got {kind_of(value)}")
            place = _after_blank(text, place)
            if text[place : place + 1] == "]":
                break
            if text[place : place + 1] != ",":
                raise InputError(f"{self.where(number)}: expected a comma or the end of the list after it")
            place = _after_blank(text, place + 1)
        if text[place + 1 :].strip():
            raise InputError(
                f"{self.path}: expected one list, but got more after it: {text[place + 1 :].strip()[:40]!r}"
            )

    def _cells(self) -> Iterator[Row]:
        limit = longest_line()
        csv.field_size_limit(limit)  # documents may be longer than the 128 KiB that csv allows a cell
        names: list[str] = []
        blank = 0
        number = 1  # the line on which a row begins; its cells may hold line breaks
        held = 0  # characters of the row so far

        def lines() -> Iterator[str]:
            nonlocal held
            for _, line in self._lines():
                held += len(line)
                if held > limit:
                    raise InputError(
                        f"{self.where(number)}: expected a row of at most {limit:,} characters, but it is "
                        "longer; the environment variable MOVERS_MAX_LINE allows more"
                    )
                yield line

        reader = csv.reader(lines(), delimiter="\t" if self.kind == "tsv" else ",", strict=True)
        while True:
            held = 0
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                if "new-line character" in str(error):
                    raise InputError(
                        f"{self.where(number)}: expected lines that end in a line feed, but got a carriage return "
                        f"alone; convert them: tr '\\r' '\\n' < {self.path}"
                    ) from None
                raise InputError(
                    f"{self.where(number)}: expected {self.kind.upper()} (quotes inside quoted cells are doubled), "
                    f"but got: {error}"
                ) from None
            if cells and not names:
                names = cells
                if len(set(names)) < len(names):
                    raise InputError(f"{self.path}: expected different names of columns, but got {', '.join(names)}")
            elif not cells:
                blank = blank or (number if names else 0)
            else:
                self._check_no_gap(blank)
                if len(cells) != len(names):
                    raise InputError(
                        f"{self.where(number)}: expected {len(names)} cells as in the header, but got {len(cells)}"
                    )
                yield Row(number, dict(zip(names, cells, strict=True)))
            number = reader.line_num + 1

    def _arrow_rows(self) -> Iterator[Row]:
        from movers.io.arrow import read_batches

        with tempfile.TemporaryFile() as plain, self._open() as file:
            if self._gzipped:  # the end of these files is read first, which a compressed file is slow at
                shutil.copyfileobj(file, plain)
                plain.seek(0)
            number = 0
            for batch in read_batches(self.path, self.kind, plain if self._gzipped else file):
                for record in batch:
                    number += 1
                    yield Row(number, record)

    # --- the file ----------------------------------------------------------------------------------------------------

    def _open(self) -> BinaryIO:
        return open_packed(self._file, self._gzipped, whole=self.kind in ("json", "parquet", "arrow"), shown=self.path)

    def _recognized(self, column: str | None) -> str:
        """The format of what came from a pipe: JSON Lines if its first line is an object, else one text per line.

        A column that is asked for must come from somewhere: then a list is JSON, and a header with it CSV or TSV.
        """
        try:
            with self._open() as file:
                line = file.readline(longest_line())
        except (OSError, EOFError, zlib.error):
            return "text"  # told when it is read
        if line.startswith(b"PAR1"):
            return "parquet"
        if line.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file or a stream
            return "arrow"
        start = line.removeprefix(b"\xef\xbb\xbf").strip()
        if start.startswith(b"{") and start.endswith(b"}"):
            return "jsonl"
        if column is not None:
            if start.startswith(b"["):
                return "json"
            header = start.decode("utf-8", "replace")
            for kind, mark in (("tsv", "\t"), ("csv", ",")):
                if column in (cell.strip('"') for cell in header.split(mark)):
                    return kind
        return "text"

    def _cannot_read(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: cannot read it: {getattr(error, 'strerror', None) or error}")


def _spooled(path: str) -> IO[bytes]:
    """Standard input or a pipe, copied to a temporary file; on Linux it has no name, and ends with the process."""
    spool: IO[bytes] = tempfile.TemporaryFile() if _NAMELESS else tempfile.NamedTemporaryFile(prefix="movers-")
    source: IO[bytes] = sys.stdin.buffer if path == "-" else open(path, "rb")
    try:
        shutil.copyfileobj(source, spool)
    finally:
        if path != "-":
            source.close()
    spool.flush()
    return spool


def _after_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def kind_of(value: object) -> str:
    """What a value is, as a reader of the file would call it.

    >>> [kind_of(value) for value in (None, True, 5, ["a"], {})]
    ['null', 'true', 'the number 5', 'a list', 'an object']
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value}"
    names = {"str": "a text", "list": "a list", "dict": "an object"}
    return names.get(type(value).__name__, type(value).__name__)


def read_rows(path: str | Path) -> Iterator[Row]:
    """The rows of a file, once."""
    return iter(Table(path))


def read_records(path: str | Path) -> Iterator[Record]:
    """The records of a file with columns, once; a file of mere texts is an error."""
    table = Table(path)
    for row in table:
        if isinstance(row.value, str):
            raise InputError(f"{table.where(row.number)}: expected an object, but got a text")
        yield row.value

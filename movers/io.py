"""Reading texts and tables, writing whole files, resuming long runs; tables and progress bars for people.

No type is ever inferred: a cell is the text in the file. What is read can be iterated over again and again, and memory
does not grow with the file (except for .json). What is written appears at its place when it is complete.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from movers.errors import InputError

if TYPE_CHECKING:
    from tqdm import tqdm

Record = dict[str, object]

# --- tables: the rows of a file --------------------------------------------------------------------------------------

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
_GZIP = b"\x1f\x8b"
_NAMELESS = os.path.isdir("/proc/self/fd")  # there a temporary file without a name can be opened again
_BATCH = 1024  # rows of a Parquet or Arrow file that become Python objects at a time


class Row(NamedTuple):
    """The number of a row, as `Table.where` takes it, and its record or, in a file of plain texts, its text."""

    number: int
    value: Record | str


class Table:
    """The rows of a file; iterating again reads the file again.

    The name chooses the format: `.jsonl`, `.ndjson`, `.json` (a list of objects or of texts), `.csv`, `.tsv`,
    `.parquet`, `.arrow`, `.feather`; any other file holds one text per line. All may be compressed (`.gz`). `-` is
    standard input; the format of a pipe is detected from its first line and the `column` that will be read.
    """

    def __init__(self, path: str | Path, column: str | None = None) -> None:
        self.path = str(path)
        if not self.path:
            raise InputError("expected the name of a file, but got an empty one")
        self._file = self.path
        try:
            self.piped = is_stream(self.path)
            if self.piped:
                self._spool = _spool(self.path)
                self._file = f"/proc/self/fd/{self._spool.fileno()}" if _NAMELESS else self._spool.name
            elif os.path.isdir(self.path):
                raise InputError(f"{self.path}: expected a file, but it is a folder")
            with open(self._file, "rb") as file:
                packed = file.read(2) == _GZIP
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file") from None
        except (OSError, ValueError) as error:
            raise error if isinstance(error, InputError) else _cannot_read(self.path, error) from None
        name = Path(self.path.lower())
        self._packed = packed or name.suffix == ".gz"
        self.kind = _KINDS.get(name.with_suffix("").suffix if name.suffix == ".gz" else name.suffix, "text")
        if self.piped and self.kind == "text":
            self.kind = self._detect(column)

    def where(self, number: int) -> str:
        """A row as messages name it: `FILE: line 3`, or `FILE: row 3` where rows are not lines (both from 1)."""
        return f"{self.path}: {'row' if self.kind in ('json', 'parquet', 'arrow') else 'line'} {number}"

    def __iter__(self) -> Iterator[Row]:
        readers: dict[str, Callable[[], Iterator[Row]]] = {
            "json": self._json_rows,
            "jsonl": self._json_lines,
            "csv": self._cells,
            "tsv": self._cells,
            "parquet": self._arrow_rows,
            "arrow": self._arrow_rows,
            "text": lambda: (Row(number, line.rstrip("\n").removesuffix("\r")) for number, line in self._lines()),
        }
        try:
            yield from readers[self.kind]()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{self.path}: expected a complete gzip file, but got: {error}") from None
        except OSError as error:
            raise _cannot_read(self.path, error) from None

    def _open(self) -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(self._file, "rb") if self._packed else open(self._file, "rb"))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1; only a line feed ends a line."""
        with self._open() as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line[:4]:
                        raise InputError(
                            f"{self.path}: expected UTF-8, but got what looks like UTF-16; "
                            f"convert it: iconv -f UTF-16 -t UTF-8 {self.path}"
                        )
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{self.where(number)}: expected UTF-8, but got the byte {line[error.start]:#04x}; "
                        f"if the file is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 {self.path}"
                    ) from None

    def _json_lines(self) -> Iterator[Row]:
        blank = 0
        for number, line in self._lines():
            if not line.strip():
                blank = blank or number
                continue
            self._check_no_gap(blank)
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                shown = str(error).partition(": line ")[0]  # without a line number of its own
                raise InputError(f"{self.where(number)}: expected JSON, but got {line[:40]!r}: {shown}") from None
            if not isinstance(value, dict):
                raise InputError(f"{self.where(number)}: expected an object, but got {_kind_of(value)}")
            yield Row(number, value)

    def _json_rows(self) -> Iterator[Row]:
        try:
            rows = json.loads("".join(line for _, line in self._lines()))
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: expected JSON, but got: {error}") from None
        if not isinstance(rows, list):
            raise InputError(f"{self.path}: expected a list of objects or of texts, but got {_kind_of(rows)}")
        for number, value in enumerate(rows, start=1):
            if not isinstance(value, dict | str) or type(value) is not type(rows[0]):
                expected = "an object or a text" if number == 1 else f"{_kind_of(rows[0])} like row 1"
                raise InputError(f"{self.where(number)}: expected {expected}, but got {_kind_of(value)}")
            yield Row(number, value)

    def _cells(self) -> Iterator[Row]:
        csv.field_size_limit(1 << 30)  # documents may be longer than the 128 KiB that csv allows by default
        lines = (line for _, line in self._lines())
        reader = csv.reader(lines, delimiter="\t" if self.kind == "tsv" else ",", strict=True)
        names: list[str] = []
        number, blank = 1, 0  # the line on which a row begins (cells may hold line breaks); the first empty line
        try:
            for cells in reader:
                if not cells:
                    blank = blank or number
                elif not names:
                    names, blank = cells, 0
                    if len(set(names)) < len(names):
                        raise InputError(f"{self.path}: expected different columns, but got {', '.join(names)}")
                else:
                    self._check_no_gap(blank)
                    if len(cells) != len(names):
                        expected = f"{len(names)} cells as in the header"
                        raise InputError(f"{self.where(number)}: expected {expected}, but got {len(cells)}")
                    yield Row(number, dict(zip(names, cells, strict=True)))
                number = reader.line_num + 1
        except csv.Error as error:
            expected = f"{self.kind.upper()} (quotes inside quoted cells are doubled)"
            raise InputError(f"{self.where(number)}: expected {expected}, but got: {error}") from None

    def _check_no_gap(self, blank: int) -> None:
        """Refuse an empty line before another row: if a text is missing there, all later rows would shift."""
        if blank:
            quoted = "as an object" if self.kind == "jsonl" else 'as ""'
            raise InputError(
                f"{self.where(blank)}: expected a row, but got an empty line; write an empty text {quoted}"
            )

    def _arrow_rows(self) -> Iterator[Row]:
        pyarrow = find_pyarrow(self.path)
        with self._open() as file:
            try:
                if self.kind == "parquet":
                    batches = pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=_BATCH)
                elif file.read(6) == b"ARROW1":
                    reader = pyarrow.ipc.open_file(file)
                    batches = map(reader.get_batch, range(reader.num_record_batches))
                else:
                    file.seek(0)
                    batches = pyarrow.ipc.open_stream(file)
                number = 0
                for batch in batches:
                    for begin in range(0, batch.num_rows, _BATCH):
                        for record in batch.slice(begin, _BATCH).to_pylist():
                            number += 1
                            yield Row(number, record)
            except (pyarrow.ArrowException, ValueError, OverflowError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{self.path}: expected a valid {self.kind} file, but got: {error}") from None

    def _detect(self, column: str | None) -> str:
        """The format of a pipe, from its first line: CSV, TSV and a JSON list only if a column of it is wanted."""
        try:
            with self._open() as file:
                line = file.readline(1 << 20)
        except (OSError, EOFError, zlib.error):
            return "text"  # reported when it is read
        if line.startswith(b"PAR1"):
            return "parquet"
        if line.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file or a stream
            return "arrow"
        start = line.removeprefix(b"\xef\xbb\xbf").strip().decode("utf-8", "replace")
        if start.startswith("{") and start.endswith("}"):
            return "jsonl"
        if column is not None:
            if start.startswith("["):
                return "json"
            for kind, mark in (("tsv", "\t"), ("csv", ",")):
                if column in (cell.strip('"') for cell in start.split(mark)):
                    return kind
        return "text"


def _spool(path: str) -> Any:
    """A temporary file with what comes from standard input or a pipe."""
    spool: Any = tempfile.TemporaryFile() if _NAMELESS else tempfile.NamedTemporaryFile(prefix="movers-")
    if path == "-":
        shutil.copyfileobj(sys.stdin.buffer, spool)
    else:
        with open(path, "rb") as source:
            shutil.copyfileobj(source, spool)
    spool.flush()
    return spool


def _kind_of(value: object) -> str:
    """What a JSON value is, in words.

    >>> [_kind_of(value) for value in (None, True, 5, ["a"], {}, "a")]
    ['null', 'true', 'the number 5', 'a list', 'an object', 'a text']
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value!r:.40}"
    names = {"str": "a text", "list": "a list", "dict": "an object"}
    return names.get(type(value).__name__, type(value).__name__)


def _cannot_read(path: str, error: Exception) -> InputError:
    return InputError(f"{path}: cannot read it: {getattr(error, 'strerror', None) or error}")


def find_pyarrow(path: str) -> ModuleType:
    """The package that reads and writes Parquet and Arrow files."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: this format requires the package pyarrow: pip install pyarrow") from None
    return pyarrow


def read_records(path: str | Path) -> Iterator[Record]:
    """The records of a file with columns; a file of plain texts is an error."""
    table = Table(path)
    for row in table:
        if isinstance(row.value, str):
            raise InputError(f"{table.where(row.number)}: expected an object, but got a text")
        yield row.value


def read_text(path: str | Path) -> str:
    """The text of a file, which may be compressed (`.gz`)."""
    with gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb") as file:
        return file.read().decode("utf-8")


# --- texts: a column of a table --------------------------------------------------------------------------------------

#: Common names of columns; `text` is read if none of these exists.
_COMMON_COLUMNS = {
    "predictions": ("prediction", "predictions", "candidate", "candidates", "hypothesis", "output", "generated"),
    "references": ("reference", "references", "ref", "refs", "target", "gold"),
    "sources": ("source", "sources", "src", "document", "article"),
}


def find_column(where: str, columns: Iterable[str], wanted: str | None, common: Sequence[str], option: str) -> str:
    """The wanted column, or the only one with a common name; `option` is what a user names it with.

    >>> find_column("t.csv", ["id", "candidate"], None, ["candidate", "prediction"], "--prediction-column")
    'candidate'
    """
    columns = list(columns)
    shown = ", ".join(name if name and name == name.strip() else repr(name) for name in columns) or "(none)"
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        shown = f"{columns[0]!r} alone: .csv has commas between cells, .tsv has tabs"
    matches = [wanted] if wanted is not None else [name for name in common if name in columns] or ["text"]
    if len(matches) > 1:
        raise InputError(f"{where}: expected {option} to choose one of the columns {shown}")
    if matches[0] not in columns:
        expected = f"a column {wanted!r}" if wanted is not None else f"{option} to name a column"
        raise InputError(f"{where}: expected {expected}, but got the columns {shown}")
    return matches[0]


class Texts:
    """The texts of a file, or of a column of it; iterating again reads the file again.

    `argument` is what the texts are (`predictions`, `references`, `sources`, …); errors begin with it. Without
    `column`, the only column with a common name is read.
    """

    def __init__(self, path: str | Table, argument: str, column: str | None = None) -> None:
        self.table = path if isinstance(path, Table) else Table(path, column)
        self.argument = argument
        self.column = column  # once a row has been read, the one that was found
        if column is not None and self.table.kind == "text":
            raise InputError(f"{argument}: {self.table.path}: it holds one text per line, so {self._option} is useless")

    @property
    def _option(self) -> str:
        singular = self.argument.removesuffix("s") if self.argument in _COMMON_COLUMNS else self.argument
        return f"--{singular}-column"

    def _values(self) -> Iterator[tuple[int, object]]:
        for number, value in self.table:
            if isinstance(value, str):
                yield number, value
                continue
            if self.column is None or self.column not in value:
                common = _COMMON_COLUMNS.get(self.argument, ())
                self.column = find_column(self.where(number), value, self.column, common, self._option)
            yield number, value[self.column]

    def where(self, number: int) -> str:
        """A row as messages name it."""
        return f"{self.argument}: {self.table.where(number)}"

    def where_row(self, row: int) -> str:
        """The row with an index, from 0, as messages name it; the file is read again up to there."""
        number, _ = next(islice(self._values(), row, None))
        return self.where(number)

    def groups(self) -> Iterator[list[str]]:
        """The texts of each row, which may be one text or a list of texts."""
        for number, value in self._values():
            if value == []:
                raise InputError(f"{self._cell(number)}: expected at least one text, but got an empty list")
            yield [self._check(number, text) for text in (value if isinstance(value, list) else [value])]

    def __iter__(self) -> Iterator[str]:
        for number, value in self._values():
            yield self._check(number, value)

    def _cell(self, number: int) -> str:
        column = "" if self.column is None else f": column {self.column!r}"
        return f"{self.where(number)}{column}"

    def _check(self, number: int, value: object) -> str:
        if not isinstance(value, str):
            raise InputError(f"{self._cell(number)}: expected a text, but got {_kind_of(value)}")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            surrogate = f"a lone surrogate {value[error.start]!a}"
            raise InputError(f"{self._cell(number)}: expected valid Unicode, but got {surrogate}") from None
        return value

    def survey(self, lists: bool = False) -> tuple[int, str]:
        """Number of rows and a digest of their texts, in one pass that checks every row; `lists` allows lists of texts.

        The digest does not depend on the format of the file.
        """
        rows, digest = 0, hashlib.sha256()
        for group in self.groups() if lists else ([text] for text in self):
            rows += 1
            for text in group:
                data = text.encode("utf-8")
                digest.update(b"%d:%b" % (len(data), data))
            digest.update(b"\n")
        return rows, digest.hexdigest()


class TextGroups:
    """Row by row, the texts of several files together; a column may itself hold lists of texts."""

    def __init__(self, files: Sequence[Texts]) -> None:
        self.files = files

    def __iter__(self) -> Iterator[list[str]]:
        for groups in zip_longest(*(file.groups() for file in self.files), fillvalue=[]):
            yield [text for group in groups for text in group]

    def where_row(self, row: int, place: int) -> str:
        """The text at a place of a row (both from 0), as messages name it; the files are read again."""
        for file in self.files:
            texts = next(islice(file.groups(), row, None))
            if place < len(texts):
                return file.where_row(row)
            place -= len(texts)
        raise IndexError(place)


# --- writing ---------------------------------------------------------------------------------------------------------

_OPEN_FILES = {"-": 1, "/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def is_stream(path: str | Path) -> bool:
    """Whether it is standard input or output, a pipe or a device, which are read once and written directly."""
    if str(path) in _OPEN_FILES:
        return True
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, ValueError):  # ValueError: a null byte
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """Errors of the system that name the file."""
    try:
        yield
    except BrokenPipeError:  # the reader wants no more
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot write it: {error.strerror or error}") from None


def check_output(path: str | Path, suffixes: Sequence[str] = ()) -> Path:
    """The file to write (`-` is standard output), with symbolic links resolved; an error if it cannot be written.

    If there are `suffixes`, the name must end in one of them, also followed by `.gz`, or have none.
    """
    suffix = Path(Path(path).name.removesuffix(".gz")).suffix.lower()
    if suffixes and suffix and suffix not in suffixes:
        raise InputError(f"{path}: cannot write it: expected a name that ends in {' or '.join(suffixes)}")
    if not str(path) or "\0" in str(path):
        raise InputError(f"expected the name of a file to write, but got {str(path)!r}")
    with _writing(path):
        if is_stream(path):
            return Path(path)
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise InputError(f"{path}: cannot write it: expected a file, but it is a folder")
        if not target.parent.is_dir():
            raise InputError(f"{path}: cannot write it: there is no folder {target.parent}")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise InputError(f"{path}: cannot write it: Permission denied")
    return target


@contextmanager
def open_output(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to; its content appears at `path` when the block ends without an error, and only then.

    Streams are written directly. Nothing is compressed here.
    """
    target = check_output(path)
    with _writing(path):
        if is_stream(path):
            with _open_stream(path) as file:
                yield file
            return
        part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
        try:
            with open(part, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _move(part, target)
        finally:
            part.unlink(missing_ok=True)


def _open_stream(path: str | Path) -> IO[bytes]:
    print(end="", flush=True)
    number = _OPEN_FILES.get(str(path))
    # An open file is duplicated: opening it by name would start at its beginning.
    return open(path if number is None else os.dup(number), "wb", buffering=0)


def _move(part: Path, target: Path) -> None:
    if target.exists():
        shutil.copymode(target, part)
    os.replace(part, target)


def compress(data: bytes) -> bytes:
    """A gzip member; equal contents give equal bytes, and concatenated members are a gzip file."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def write_file(path: str | Path, content: bytes | str) -> None:
    """Write a file as a whole; compressed if its name ends in `.gz`."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with open_output(path) as file:
        file.write(compress(data) if str(path).endswith(".gz") else data)


class ResumableFile:
    """A file written section by section to `FILE.partial`; a run that was killed continues after its last section.

    `FILE.partial.json`, replaced after every section, says what the run is, how many bytes are complete and the state
    after them. Bytes that follow are cut off when the run continues. A stream is written directly.
    """

    def __init__(self, path: str | Path, resume: bool) -> None:
        self.target = check_output(path)
        self.partial = self.target.with_name(f"{self.target.name}.partial")
        self._sidecar = self.target.with_name(f"{self.target.name}.partial.json")
        self._streamed = is_stream(path)
        self._file: IO[bytes] | None = None
        self.unfinished = not self._streamed and self.partial.exists() and self._sidecar.exists()
        if self._streamed and resume:
            raise InputError(f"{path}: cannot resume: expected the name of a file")
        if self.unfinished and not resume:
            raise InputError(f"{self.partial} is an unfinished run: continue it with --resume, or delete it")

    def begin(self, run: Mapping[str, str]) -> Any:
        """Open the file for this run; returns the state after the last complete section, None at the beginning."""
        self._run = dict(run)
        if self._streamed:
            self._file = _open_stream(self.target)
            return None
        with _writing(self.partial):
            if not self.unfinished:
                self._sidecar.unlink(missing_ok=True)
                self.partial.unlink(missing_ok=True)  # of a run without a complete section
                self._file = open(self.partial, "xb", buffering=0)
                return None
            saved = json.loads(self._sidecar.read_text(encoding="utf-8"))
            for name, before in saved["run"].items():
                if self._run.get(name) != before:
                    raise InputError(
                        f"{self.partial}: cannot resume: expected the same {name} ({before}), but got "
                        f"{self._run.get(name)}; repeat the command that was stopped, or delete the file to start over"
                    )
            self._file = open(self.partial, "r+b", buffering=0)
            self._file.truncate(saved["bytes"])
            self._file.seek(saved["bytes"])
        return saved["state"]

    def append(self, data: bytes, state: object) -> None:
        """Add a section, with the state after it; both are on disk when this returns."""
        assert self._file is not None
        with _writing(self.target if self._streamed else self.partial):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            if not self._streamed:
                os.fsync(self._file.fileno())
                self._save({"run": self._run, "bytes": self._file.tell(), "state": state})
                self.unfinished = True

    def _save(self, saved: Record) -> None:
        part = self._sidecar.with_suffix(".tmp")  # always the same, so that a killed run leaves no other
        with open(part, "w", encoding="utf-8") as file:
            json.dump(saved, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self._sidecar)

    def finish(self) -> None:
        """All sections are complete: move the file to its place."""
        if not self._streamed:
            with _writing(self.target):
                _move(self.partial, self.target)
                self._sidecar.unlink()
            self.unfinished = False

    def close(self) -> None:
        """Close the file; a run without a complete section leaves nothing behind."""
        if self._file is not None:
            self._file.close()
            if not self.unfinished and not self._streamed:
                self.partial.unlink(missing_ok=True)


# --- for people ------------------------------------------------------------------------------------------------------

# Control characters of ASCII and Latin-1, line separators, and marks that change the direction of what follows.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str, keep: str = "\n\t") -> str:
    r"""A text for a terminal: control characters, which could move its cursor or hide text, become escapes.

    JSON stays the same JSON.

    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \u001b[31m
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}", text)


def align_table(
    heading: Sequence[str],
    body: Sequence[Sequence[str]],
    right: Collection[int] = (),
    *,
    markdown: bool = False,
) -> list[str]:
    """Lines of a table with aligned columns, to the right for the column numbers in `right`.

    >>> align_table(["metric", "n"], [["wms", "7"]], {1})
    ['metric  n', '------  -', 'wms     7']
    """
    heading, body = [printable(cell, "") for cell in heading], [[printable(cell, "") for cell in line] for line in body]
    if markdown:
        rule = ["--:" if column in right else "---" for column in range(len(heading))]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in [heading, rule, *body]]
        return ["| " + " | ".join(line) + " |" for line in escaped]
    lines = [heading, *body] if heading else list(body)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if heading:
        lines.insert(1, ["-" * width for width in widths])
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def csv_cell(value: object) -> object:
    """A value for a CSV file that a spreadsheet may open: a text that begins a formula gets an apostrophe.

    >>> [csv_cell(value) for value in ("=1+1", "-0.5", -0.5, "a = b")]
    ["'=1+1", '-0.5', -0.5, 'a = b']
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_row(values: Iterable[object]) -> str:
    r"""A line of a CSV file.

    >>> csv_row(["a", -0.5, None, "b,c"])
    'a,-0.5,,"b,c"\n'
    """
    line = io.StringIO(newline="")
    csv.writer(line).writerow(map(csv_cell, values))
    return line.getvalue().removesuffix("\r\n") + "\n"


def progress_bar(
    total: int | None = None, *, desc: str, unit: str, progress: bool | None = None, **tqdm_options: object
) -> tqdm:
    """A progress bar on standard error that disappears when it is closed.

    It is shown if `progress` is true; by default (None) on terminals only, after two seconds.
    """
    from tqdm import tqdm

    options = {"leave": False, "delay": 0 if progress else 2, **tqdm_options}
    hidden = None if progress is None else not progress
    return tqdm(total=total, desc=printable(desc), unit=unit, disable=hidden, **options)

"""Reading texts and tables, writing whole files, resuming long runs; tables and progress bars for people.

No type is ever inferred: a cell is the text in the file. What is read can be iterated over again and again, and memory
does not grow with the file (except for .json). What is written appears at its place when it is complete.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from movers.errors import InputError

Record = dict[str, object]


@contextmanager
def _file_errors(path: str | Path, verb: str) -> Iterator[None]:
    """Turn system errors into messages that name the file."""
    try:
        yield
    except BrokenPipeError:  # the reader wants no more
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: expected a complete gzip file, but got: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot {verb} it: {error.strerror or error}") from None


_KINDS = {".ndjson": "jsonl", ".feather": "arrow"}
_KINDS |= {f".{kind}": kind for kind in ("jsonl", "json", "csv", "tsv", "parquet", "arrow")}


class Table:
    """The rows of a file, each with its number: a record or, in a file of plain texts, a text.

    The name chooses the format; a file without a known suffix holds one text per line. All may be compressed (`.gz`).
    `-` is standard input; a pipe is read as JSON lines if it looks so, as CSV if a `column` is named, else as texts.
    """

    def __init__(self, path: str | Path, column: str | None = None) -> None:
        self.path = self._file = str(path)
        self.piped = is_stream(self.path)
        self.kind = _KINDS.get(suffix_of(path), "text")
        with _file_errors(self.path, "read"):
            if self.piped:
                self._spool = _spool(self.path)
                self._file = self._spool.name
            with open(self._file, "rb") as file:
                self._packed = file.read(2) == b"\x1f\x8b"
            if self.piped and self.kind == "text":
                with self._open() as file:
                    line = file.readline().strip()
                looks_like_json = line.startswith(b"{") and line.endswith(b"}")
                self.kind = "jsonl" if looks_like_json else "text" if column is None else "csv"

    def where(self, number: int) -> str:
        """A row as messages name it: `FILE: line 3`, or `FILE: row 3` where rows are not lines (both from 1)."""
        return f"{self.path}: {'row' if self.kind in ('json', 'parquet', 'arrow') else 'line'} {number}"

    def __iter__(self) -> Iterator[tuple[int, Record | str]]:
        blank = 0
        with _file_errors(self.path, "read"):
            for number, row in getattr(self, f"_read_{self.kind}")():
                if row is None:
                    blank = blank or number
                elif blank:  # if a text is missing there, all later rows would shift
                    raise InputError(f"{self.where(blank)}: expected a row, but got an empty line")
                else:
                    yield number, row

    def _open(self) -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(self._file, "rb") if self._packed else open(self._file, "rb"))

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1; only a line feed ends a line."""
        with self._open() as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                    if b"\0" in line[:4]:
                        raise InputError(f"{self.path}: expected UTF-8, but got what looks like UTF-16")
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError as error:
                    byte = f"the byte {line[error.start]:#04x}"
                    raise InputError(f"{self.where(number)}: expected UTF-8, but got {byte}") from None

    def _read_text(self) -> Iterator[tuple[int, str]]:
        return ((number, line.rstrip("\n").removesuffix("\r")) for number, line in self._lines())

    def _read_jsonl(self) -> Iterator[tuple[int, Record | None]]:
        for number, line in self._lines():
            try:
                value = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:
                reason = str(error).partition(": line ")[0]  # without a line number of its own
                raise InputError(f"{self.where(number)}: expected JSON, but got {line[:40]!r}: {reason}") from None
            if line.strip() and not isinstance(value, dict):
                raise InputError(f"{self.where(number)}: expected an object, but got {_shown(value)}")
            yield number, value

    def _read_json(self) -> Iterator[tuple[int, Record | str]]:
        text = "".join(line for _, line in self._lines())
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: expected JSON, but got: {error}") from None
        if not isinstance(rows, list):
            raise InputError(f"{self.path}: expected a list of objects or of texts, but got {_shown(rows)}")
        for number, value in enumerate(rows, start=1):
            if not isinstance(value, dict | str):
                raise InputError(f"{self.where(number)}: expected an object or a text, but got {_shown(value)}")
            yield number, value

    def _read_csv(self) -> Iterator[tuple[int, Record | None]]:
        csv.field_size_limit(1 << 30)  # documents may be longer than the 128 KiB that csv allows by default
        lines = (line for _, line in self._lines())
        reader = csv.reader(lines, delimiter="\t" if self.kind == "tsv" else ",", strict=True)
        number = 1  # the line on which a row begins: cells may hold line breaks
        try:
            names = next(reader, [])
            if len(set(names)) < len(names):
                raise InputError(f"{self.path}: expected different columns, but got {', '.join(names)}")
            number = reader.line_num + 1
            for cells in reader:
                if cells and len(cells) != len(names):
                    raise InputError(f"{self.where(number)}: expected {len(names)} cells, but got {len(cells)}")
                yield number, dict(zip(names, cells, strict=True)) if cells else None
                number = reader.line_num + 1
        except csv.Error as error:
            expected = f"{self.kind.upper()} (quotes inside quoted cells are doubled)"
            raise InputError(f"{self.where(number)}: expected {expected}, but got: {error}") from None

    _read_tsv = _read_csv

    def _read_arrow(self) -> Iterator[tuple[int, Record]]:
        import pyarrow
        import pyarrow.parquet

        with self._open() as file:
            try:
                if self.kind == "parquet":
                    batches = pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=1024)
                elif file.read(6) == b"ARROW1":
                    reader = pyarrow.ipc.open_file(file)
                    batches = map(reader.get_batch, range(reader.num_record_batches))
                else:
                    file.seek(0)
                    batches = pyarrow.ipc.open_stream(file)
                yield from enumerate((record for batch in batches for record in batch.to_pylist()), start=1)
            except (pyarrow.ArrowException, OverflowError) as error:
                raise InputError(f"{self.path}: expected a valid {self.kind} file, but got: {error}") from None

    _read_parquet = _read_arrow


def _spool(path: str) -> Any:
    """A temporary file with what comes from standard input or a pipe."""
    import shutil
    import tempfile

    spool = tempfile.NamedTemporaryFile(prefix="movers-")  # noqa: SIM115 (deleted with the table)
    with open(0 if path == "-" else path, "rb", closefd=path != "-") as source:
        shutil.copyfileobj(source, spool)
    spool.flush()
    return spool


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:40]


def read_records(path: str | Path) -> Iterator[Record]:
    """The records of a file with columns; a file of plain texts is an error."""
    table = Table(path)
    for number, row in table:
        if isinstance(row, str):
            raise InputError(f"{table.where(number)}: expected an object, but got a text")
        yield row


def read_text(path: str | Path) -> str:
    """The text of a file, which may be compressed (`.gz`)."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if str(path).endswith(".gz") else data).decode("utf-8")


#: Common names of columns; those after the bar are read if there is none of those before.
_COMMON_COLUMNS = {
    "predictions": "prediction predictions candidate candidates hypothesis output generated | summary summaries",
    "references": "reference references ref refs target gold",
    "sources": "source sources src document documents article articles",
}


def common_columns(argument: str, row: Collection[str]) -> list[str]:
    """The columns of a row that have a common name of `predictions`, `references` or `sources`.

    >>> common_columns("predictions", ["document", "summary"]), common_columns("predictions", ["summary", "output"])
    (['summary'], ['output'])
    """
    for names in _COMMON_COLUMNS.get(argument, "").split("|"):
        if columns := [name for name in names.split() if name in row]:
            return columns
    return []


def problem_with(texts: Iterable[object]) -> str:
    """Why one of the values is not a valid text; empty if all are."""
    for text in texts:
        if not isinstance(text, str):
            return f"expected a text, but got {_shown(text)}"
        if not text.isascii() and re.search("[\ud800-\udfff]", text):
            return "expected valid Unicode, but got a lone surrogate"
    return ""


class Texts:
    """The texts of a file, or of a column of it: `predictions`, `references`, `sources` or another `argument`.

    Without `column`, the only column with a common name is read.
    """

    def __init__(self, path: str | Table, argument: str, column: str | None = None) -> None:
        self.table = path if isinstance(path, Table) else Table(path, column)
        self.argument = argument
        self.column = column  # once a row has been read, the one that was found
        self.option = f"--{argument.removesuffix('s') if argument in _COMMON_COLUMNS else argument}-column"
        if column is not None and self.table.kind == "text":
            raise InputError(f"{argument}: {self.table.path}: it holds one text per line, so {self.option} is useless")

    def groups(self, lists: bool = True) -> Iterator[list[str]]:
        """The texts of each row, which may be one text or, if `lists` are allowed, a list of texts."""
        for number, row in self.table:
            if isinstance(row, dict) and self.column not in row:
                self.column = self._find_column(number, row)
            value = row[cast("str", self.column)] if isinstance(row, dict) else row
            texts = value if lists and isinstance(value, list) else [value]
            if problem := problem_with(texts) if texts else "expected at least one text, but got an empty list":
                column = "" if self.column is None else f": column {self.column!r}"
                raise InputError(f"{self._where(number)}{column}: {problem}")
            yield cast("list[str]", texts)

    def __iter__(self) -> Iterator[str]:
        return (text for (text,) in self.groups(lists=False))

    def _find_column(self, number: int, row: Record) -> str:
        common = common_columns(self.argument, row) or ["text"] * ("text" in row)
        if self.column is None and len(common) == 1:
            return common[0]
        expected = f"{self.option} to choose a column" if self.column is None else f"a column {self.column!r}"
        columns = ", ".join(map(repr, row)) or "(none)"
        raise InputError(f"{self._where(number)}: expected {expected}, but got the columns {columns}")

    def _where(self, number: int) -> str:
        return f"{self.argument}: {self.table.where(number)}"

    def where_row(self, row: int) -> str:
        """The row with an index, from 0, as messages name it; the file is read again up to there."""
        return self._where(next(islice(self.table, row, None))[0])

    def survey(self) -> tuple[int, str]:
        """Number of rows and a digest of their texts, whatever the format of the file; every row is checked."""
        import hashlib

        rows, digest = 0, hashlib.sha256()
        for rows, group in enumerate(self.groups(lists=self.argument != "predictions"), start=1):  # noqa: B007
            for text in group:
                data = text.encode("utf-8")
                digest.update(b"%d:%b" % (len(data), data))
            digest.update(b"\n")
        return rows, digest.hexdigest()


def is_stream(path: str | Path) -> bool:
    """Whether it is standard input or output, a pipe or a device, which are read once and written directly."""
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return special or str(path) in ("-", "/dev/stdout")


def _open_stream(path: str | Path) -> IO[bytes]:
    print(end="", flush=True)
    # Standard output is duplicated: if it is a file, opening it by name would start at its beginning.
    return open(os.dup(1) if str(path) in ("-", "/dev/stdout") else path, "wb", buffering=0)


def _write_all(file: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:  # an unbuffered file may take a part only
        rest = rest[file.write(rest) :]


def check_output(path: str | Path, suffixes: Sequence[str] = ()) -> Path:
    """The file to write (`-` is standard output), with symbolic links resolved; an error if it cannot be written.

    If there are `suffixes`, the name must end in one of them, also followed by `.gz`, or have none.
    """
    suffix = suffix_of(path)
    if suffixes and suffix and suffix not in suffixes:
        raise InputError(f"{path}: cannot write it: expected a name that ends in {' or '.join(suffixes)}")
    if is_stream(path):
        return Path(path)
    target = Path(os.path.realpath(path))
    if os.path.isdir(target):
        raise InputError(f"{path}: cannot write it: expected a file, but it is a folder")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{path}: cannot write it: there is no folder {target.parent} to write to")
    return target


def suffix_of(path: str | Path) -> str:
    """The suffix that names the format, in lower case: `.csv` of `a.CSV.gz`."""
    return Path(str(path).lower().removesuffix(".gz")).suffix


def write_file(path: str | Path, content: bytes | str) -> None:
    """Write a file as a whole, compressed if its name ends in `.gz`; streams are written directly."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    data = gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data  # equal contents give equal bytes
    target = check_output(path)
    with _file_errors(path, "write"):
        if is_stream(path):
            with _open_stream(path) as file:
                _write_all(file, data)
            return
        part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
        try:
            with open(part, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _move(part, target)
        finally:
            part.unlink(missing_ok=True)


def make_folder(path: str | Path) -> None:
    """Make a folder, and those it is in."""
    with _file_errors(path, "write"):
        Path(path).mkdir(parents=True, exist_ok=True)


def _move(part: Path, target: Path) -> None:
    if target.exists():
        os.chmod(part, stat.S_IMODE(target.stat().st_mode))
    os.replace(part, target)


class ResumableFile(AbstractContextManager[Any]):
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
        self._unfinished = not self._streamed and self.partial.exists() and self._sidecar.exists()
        if self._unfinished and not resume:
            raise InputError(f"{self.partial} is an unfinished run: continue it with --resume, or delete it")

    def begin(self, run: Mapping[str, str]) -> Any:
        """Open the file for this run; returns the state after the last complete section, None at the beginning."""
        self._run = dict(run)
        saved: Any = {"run": {}, "bytes": 0, "state": None}
        with _file_errors(self.partial, "write"):
            if self._unfinished:
                saved = json.loads(self._sidecar.read_text(encoding="utf-8"))
            for name, before in saved["run"].items():
                if run.get(name) != before:
                    difference = f"expected the same {name} ({before}), but got {run.get(name)}"
                    raise InputError(f"{self.partial}: cannot resume: {difference}; delete the file to start over")
            if self._streamed:
                self._file = _open_stream(self.target)
            else:
                if not self._unfinished:
                    self._sidecar.unlink(missing_ok=True)  # of a run that was killed while it finished
                self._file = open(self.partial, "ab", buffering=0)
                self._file.truncate(saved["bytes"])
        return saved["state"]

    def append(self, text: str, state: object) -> None:
        """Add a section, with the state after it; both are on disk when this returns."""
        assert self._file is not None
        data = text.encode("utf-8")
        with _file_errors(self.target if self._streamed else self.partial, "write"):
            # Concatenated gzip members are a gzip file.
            _write_all(self._file, gzip.compress(data, mtime=0) if self.target.suffix == ".gz" else data)
            if not self._streamed:
                os.fsync(self._file.fileno())
                saved = {"run": self._run, "bytes": self._file.tell(), "state": state}
                part = self._sidecar.with_suffix(".tmp")  # always the same, so that a killed run leaves no other
                part.write_text(json.dumps(saved, indent=1), encoding="utf-8")
                os.replace(part, self._sidecar)
                self._unfinished = True

    def finish(self) -> None:
        """All sections are complete: move the file to its place."""
        if not self._streamed:
            with _file_errors(self.target, "write"):
                _move(self.partial, self.target)
                self._sidecar.unlink()
            self._unfinished = False

    def __exit__(self, *details: object) -> None:
        """Close the file; a run without a complete section leaves nothing behind."""
        if self._file is not None:
            self._file.close()
            if self._unfinished:
                newline = "\n" if sys.stderr.isatty() else ""  # below a progress bar
                print(f"{newline}movers: continue with --resume: {self.partial} has the finished rows", file=sys.stderr)
            elif not self._streamed:
                self.partial.unlink(missing_ok=True)


# Also line separators, and marks that change the direction of what follows.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str, keep: str = "\n\t") -> str:
    r"""A text for a terminal: control characters, which could move its cursor or hide text, become escapes of JSON.

    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \u001b[31m
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}", text)


def align_table(
    heading: Sequence[str], body: Sequence[Sequence[str]], right: Collection[int] = (), *, markdown: bool = False
) -> list[str]:
    """Lines of a table with aligned columns, to the right for the column numbers in `right`.

    >>> align_table(["metric", "n"], [["wms", "7"]], {1})
    ['metric  n', '------  -', 'wms     7']
    """
    lines = [[printable(cell, "") for cell in line] for line in ([heading, *body] if heading else body)]
    if markdown:
        lines.insert(1, ["--:" if column in right else "---" for column in range(len(heading))])
        return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if heading:
        lines.insert(1, ["-" * width for width in widths])
    marks = [">" if column in right else "<" for column in range(len(widths))]
    cells = "  ".join(f"{{:{mark}{width}}}" for mark, width in zip(marks, widths, strict=True))
    return [cells.format(*line).rstrip() for line in lines]


def csv_row(values: Iterable[object]) -> str:
    r"""A line of a CSV file that a spreadsheet may open: a text that begins a formula gets an apostrophe.

    >>> csv_row(["=1+1", "-0.5", -0.5, None, "b,c"])
    '\'=1+1,-0.5,-0.5,,"b,c"\n'
    """
    line = io.StringIO(newline="")
    csv.writer(line).writerow(map(_harmless, values))  # a terminator with \r, so that cells with one are quoted
    return line.getvalue().removesuffix("\r\n") + "\n"


def _harmless(value: object) -> object:
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if formula and not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", str(value)) else value


def progress_bar(
    total: int | None = None, *, desc: str, unit: str, progress: bool | None = None, **tqdm_options: object
) -> Any:
    """A progress bar on standard error; by default (`progress` is None) on terminals only, after two seconds."""
    from tqdm import tqdm

    options = {"leave": False, "delay": 0 if progress else 2, "disable": None if progress is None else not progress}
    return tqdm(total=total, desc=printable(desc), unit=unit, **{**options, **tqdm_options})

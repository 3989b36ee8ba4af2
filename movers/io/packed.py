"""Files that unpack to far more than they are: how much memory one may claim is bounded.

A compressed file is read as a stream where its rows can be; then only the length of a line is bounded. What must be
read whole (JSON, word vectors, tables of frequencies) may unpack to `RATIO` times what was read of it and no more, as
no text does; up to `FLOOR` bytes it always may.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from movers.errors import InputError

__all__ = ["bounded_lines", "longest_line", "open_packed", "read_packed"]

RATIO = 100
FLOOR = 64 << 20
_LONGEST_LINE = 64 << 20


def longest_line() -> int:
    """How many bytes a line or a cell may have: `MOVERS_MAX_LINE`, else 64 MiB."""
    chosen = os.environ.get("MOVERS_MAX_LINE", "")
    if chosen and not chosen.isdecimal():
        raise InputError(f"MOVERS_MAX_LINE: expected a number of bytes, but got {chosen!r}")
    return min(int(chosen), sys.maxsize - 1) if chosen else _LONGEST_LINE


def bounded_lines(file: BinaryIO, where: str) -> Iterator[bytes]:
    """The lines of a file, line feeds included; one that is too long is an error that names `where` and its number."""
    limit, number = longest_line(), 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            raise InputError(
                f"{where}: line {number}: expected at most {limit:,} bytes, but it is longer; the environment variable "
                "MOVERS_MAX_LINE allows more"
            )
        yield line


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, unless it grows as no text does."""

    def __init__(self, path: str | Path, shown: str | Path) -> None:
        self._shown = shown
        self._packed = open(path, "rb")
        self._file = gzip.GzipFile(fileobj=self._packed)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        self._read += len(data)
        if self._read > max(FLOOR, RATIO * self._packed.tell()):
            raise InputError(
                f"{self._shown}: expected a file that unpacks to at most {RATIO} times its size, but there is more; "
                "if it is meant, unpack it first: gunzip"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        self._packed.close()
        super().close()


def open_packed(path: str | Path, gzipped: bool, *, whole: bool = False, shown: str | Path | None = None) -> BinaryIO:
    """A file to read, unpacked if it is compressed.

    Parameters
    ----------
    whole : whether it is going to be held in memory, so that what it unpacks to is bounded
    shown : how errors name it, if not by its path
    """
    if not gzipped:
        return open(path, "rb")
    if whole:
        return io.BufferedReader(_Unpacked(path, shown or path), 1 << 20)
    return cast(BinaryIO, gzip.open(path, "rb"))


def read_packed(path: str | Path) -> bytes:
    """The content of a file, unpacked if its first bytes say that it is compressed."""
    with open(path, "rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    with open_packed(path, gzipped, whole=True) as file:
        return file.read()

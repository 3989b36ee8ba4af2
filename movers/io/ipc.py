"""What the compressed batches of an Arrow file unpack to, as the file itself says, before anything is unpacked.

The format is that of https://arrow.apache.org/docs/format/Columnar.html (serialization and interprocess communication):
messages whose metadata are FlatBuffers, each followed by the buffers of a batch. A compressed buffer begins with the
number of bytes that it unpacks to, and Arrow's reader takes that much memory for it and no more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

__all__ = ["IPC_FILE", "Claim", "Damaged", "claims"]

IPC_FILE = b"ARROW1"
_CONTINUED = 0xFFFFFFFF  # before the size of a message's metadata, since version 0.15 of the format
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages


class Damaged(Exception):
    """The metadata are not those of an Arrow file."""


class Claim(NamedTuple):
    """A batch: the bytes of its buffers in the file, and unpacked."""

    packed: int
    unpacked: int


def claims(source: IO[bytes]) -> Iterator[Claim]:
    """For each batch that Arrow's reader would read, dictionaries included, what it claims; the position is changed."""
    try:
        source.seek(0)
        is_file = source.read(len(IPC_FILE)) == IPC_FILE
        for message in _listed(source) if is_file else _in_order(source):
            yield from _claim(source, message)
    except (struct.error, ValueError) as error:
        raise Damaged(f"damaged metadata ({error})") from None


class _Message(NamedTuple):
    metadata: _Table
    body: int  # where the buffers begin


def _listed(source: IO[bytes]) -> Iterator[_Message]:
    """The messages of a file that its footer lists; no others are read."""
    trailer = struct.calcsize("<i6s")
    end = source.seek(0, os.SEEK_END) - trailer
    source.seek(max(end, 0))
    size, mark = struct.unpack("<i6s", source.read(trailer))
    if mark != IPC_FILE or not 0 < size <= end:
        raise ValueError("no footer")
    source.seek(end - size)
    footer = _Table.root(source.read(size))
    for field in (2, 3):  # dictionaries and batches
        for offset, size, _ in footer.structs(field, "<qi4xq"):
            message = _message(source, offset)
            if message is None or message.body != offset + size:
                raise ValueError("a message of another size")
            yield message


def _in_order(source: IO[bytes]) -> Iterator[_Message]:
    """The messages of a stream."""
    position = 0
    while (message := _message(source, position)) is not None:
        yield message
        size = message.metadata.number(3, "<q")
        if size < 0:  # back to where it has been
            raise ValueError("a body of negative size")
        position = message.body + size


def _message(source: IO[bytes], position: int) -> _Message | None:
    """The message at a position; None at the end of a stream."""
    source.seek(position)
    start = source.read(4)
    if start == struct.pack("<I", _CONTINUED):
        position += 4
        start = source.read(4)
    if not start:
        return None
    (size,) = struct.unpack("<i", start)
    if not size:
        return None
    metadata = source.read(max(size, 0))
    if len(metadata) < size:
        raise ValueError("cut off")
    return _Message(_Table.root(metadata), position + 4 + size)


def _claim(source: IO[bytes], message: _Message) -> Iterator[Claim]:
    kind = message.metadata.number(1, "<B")
    if kind not in (_DICTIONARY, _RECORDS):
        return
    batch = message.metadata.table(2)
    if kind == _DICTIONARY:
        batch = batch.table(1)
    buffers = batch.structs(2, "<qq")
    packed = sum(length for _, length in buffers)
    if not batch.place(3):  # not compressed
        yield Claim(packed, packed)
        return
    unpacked = 0
    for offset, length in buffers:
        if length:
            source.seek(message.body + offset)
            (claimed,) = struct.unpack("<q", source.read(8))
            if claimed < -1:
                raise ValueError("a buffer of negative size")
            unpacked += length if claimed == -1 else claimed  # what would not shrink is left as it is
    body = message.metadata.number(3, "<q")
    yield Claim(min(packed, body), unpacked)  # buffers may overlap


class _Table(NamedTuple):
    """A table of FlatBuffers, whose fields are found by their numbers."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, *struct.unpack_from("<I", data, 0))

    def place(self, field: int) -> int:
        """Where a field is, or 0 if it has its default."""
        (back,) = struct.unpack_from("<i", self.data, self.at)
        known = self.at - back
        (size,) = struct.unpack_from("<H", self.data, known)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, known + 4 + 2 * field)
        return self.at + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        place = self.place(field)
        return struct.unpack_from(form, self.data, place)[0] if place else 0

    def table(self, field: int) -> _Table:
        return _Table(self.data, self._behind(field))

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """A list of structs."""
        if not self.place(field):
            return []
        start = self._behind(field)
        (count,) = struct.unpack_from("<I", self.data, start)
        size = struct.calcsize(form)
        content = self.data[start + 4 : start + 4 + count * size]
        if len(content) < count * size:
            raise ValueError("cut off")
        return list(struct.iter_unpack(form, content))

    def _behind(self, field: int) -> int:
        place = self.place(field)
        if not place:
            raise ValueError(f"no field {field}")
        return place + struct.unpack_from("<I", self.data, place)[0]

"""Files that take hours: written block by block to `<target>.partial`, so that a run that was killed can go on.

A partial file is a line of JSON that says what the run is (its head), then blocks: a line of JSON with size, checksum
and the run's state after the block, and the block's bytes. It is locked while a process writes it. What a process that
was killed left incomplete is cut off when the run goes on.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from movers.errors import InputError
from movers.io.writer import check_output, is_direct, open_output

__all__ = ["BlockFile", "compress_block", "open_blocks"]

State = list[dict[str, object]]  # anything that JSON holds
_HEAD = b'{"format": "movers-partial-1", '


class _Block(NamedTuple):
    """The bytes of a complete block, where it ends, and the state after it."""

    data: bytes
    end: int
    state: State


def compress_block(data: bytes) -> bytes:
    """One gzip member; equal contents give equal bytes. Members one after the other are a gzip file."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


class BlockFile:
    """A file that is written in blocks; iterating gives the bytes of all blocks so far.

    Parameters
    ----------
    path : str or Path
        The target, as the user wrote it.
    partial : Path or None
        The partial file; if there is none, blocks are written through to the target at once.
    descriptor : int
        What blocks are written to.
    """

    def __init__(self, path: str | Path, partial: Path | None, descriptor: int) -> None:
        self.path = path
        self.partial = partial
        self.state: State | None = None  # after the last complete block, unless the file is finished
        self._descriptor = descriptor
        self._end = 0
        for block in self._blocks():
            self._end, self.state = block.end, block.state

    def _blocks(self) -> Iterator[_Block]:
        """The complete blocks of the partial file."""
        if self.partial is None:
            return
        with self.partial.open("rb") as file:
            head = file.readline()
            if head[: len(_HEAD)] != _HEAD[: len(head)]:
                raise InputError(f"{self.partial}: expected an unfinished run of movers, but it is something else")
            while line := file.readline():
                try:
                    found = json.loads(line)
                    data = file.read(found["bytes"])
                    if len(data) < found["bytes"] or zlib.crc32(data) != found["crc32"]:
                        return
                    state = found["state"]
                except (ValueError, TypeError, KeyError):
                    return
                yield _Block(data, file.tell(), state)

    def __iter__(self) -> Iterator[bytes]:
        return (block.data for block in self._blocks())

    def begin(self, head: Mapping[str, str]) -> State | None:
        """Say what run this is. Returns the state after the last complete block, if the run goes on."""
        if self.partial is None:
            return None
        if self.state is None:
            os.ftruncate(self._descriptor, 0)
            self._end = 0
            self._append(_HEAD + json.dumps(head).removeprefix("{").encode() + b"\n")
            return None
        with self.partial.open("rb") as file:
            earlier: dict[str, str] = json.loads(file.readline())
        differ = [name for name in {**earlier, **head} if name != "format" and earlier.get(name) != head.get(name)]
        if differ:
            if "metrics" in differ:  # then signatures and options differ anyway
                differ = ["metrics"]
            told = (f"expected {name}: {earlier.get(name)}, but got {head.get(name)}" for name in differ)
            raise InputError(
                f"{self.partial}: cannot resume this run: {'; '.join(told)}; "
                "repeat the command that was stopped, or delete the file to begin again"
            )
        os.ftruncate(self._descriptor, self._end)
        return self.state

    def append(self, data: bytes, state: State) -> None:
        """Add a block, with the state after it; when this returns, both are on disk."""
        if self.partial is None:
            self._append(data)
        else:
            line = json.dumps({"bytes": len(data), "crc32": zlib.crc32(data), "state": state}).encode()
            self._append(line + b"\n" + data)
            self.state = state

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            if self.partial is not None:
                os.lseek(self._descriptor, self._end, os.SEEK_SET)
            while left:
                left = left[os.write(self._descriptor, left) :]
            if self.partial is not None:
                os.fsync(self._descriptor)
        except BrokenPipeError:  # the reader wants no more
            raise
        except OSError as error:
            raise InputError(f"{self.partial or self.path}: cannot write it: {error.strerror or error}") from None
        self._end += len(data)

    @contextmanager
    def finish(self) -> Iterator[IO[bytes]]:
        """The file to write the whole content to, which then takes the target's place."""
        assert self.partial is not None
        with open_output(self.path, "raw", beside=self.partial.with_name(f"{self.partial.name}.whole")) as file:
            yield file
        self.state = None


@contextmanager
def open_blocks(path: str | Path, resume: bool = False) -> Iterator[BlockFile]:
    """A file to be written in blocks, by one process at a time.

    Parameters
    ----------
    path : str or Path
    resume : bool
        Go on from the complete blocks of a run that was stopped. Otherwise, if there are any, it is an error.
    """
    if is_direct(path):
        if resume:
            raise InputError(f"{path}: cannot resume: expected the name of a file")
        with open_output(path, "raw") as file:
            yield BlockFile(path, None, file.fileno())
        return
    target = check_output(path)
    partial = target.with_name(f"{target.name}.partial")
    with _locked(partial) as descriptor:
        blocks = BlockFile(path, partial, descriptor)
        if blocks.state is not None and not resume:
            raise InputError(
                f"{partial}: an unfinished run is there: go on with --resume, or delete the file to begin again"
            )
        try:
            yield blocks
        finally:
            if blocks.state is None:
                partial.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A file, made if it is not there, that this process alone writes; the lock ends with the process."""
    import fcntl

    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise InputError(f"{path}: cannot write it: {error.strerror or error}") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{path}: another run is writing it; wait for it, or stop it first") from None
            except OSError as error:  # a file system without locks
                raise InputError(f"{path}: cannot lock it: {error.strerror or error}") from None
            if _is_at(descriptor, path):  # else whoever had it before removed it between the two calls
                _HELD.add(descriptor)
                yield descriptor
                return
        finally:
            _HELD.discard(descriptor)
            os.close(descriptor)


_HELD: set[int] = set()


def _after_fork() -> None:
    """In a forked child: let go of the files, which would stay locked until the last child of a killed run ends."""
    while _HELD:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, _HELD.pop(), inheritable=False)  # the number stays taken, should somebody close it here
        os.close(nothing)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

"""Files are written whole or not at all.

The content goes to a temporary file in the target's folder, which takes the target's place when everything is on disk.
What is at the target stays there until then, whatever happens. Where the system can (Linux), the temporary file has no
name until then, so that a process that is killed leaves nothing behind. Devices and pipes are written directly.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, cast, overload

from movers.errors import InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["check_output", "is_direct", "open_output", "write_file"]

Mode = Literal["text", "binary", "raw"]


def check_output(path: str | Path, suffixes: Sequence[str] = ()) -> Path:
    """The file that `path` means, with symbolic links resolved; an error if it cannot be written.

    Parameters
    ----------
    path : str or Path
        `-` is standard output.
    suffixes : sequence of str
        How a file's name may end, if its suffix chooses the format; `.gz` may follow. A name without suffix is fine.
    """
    given = Path(path)
    if not str(path):
        raise InputError("expected the name of a file to write, but got an empty one")
    if "\0" in str(path):
        raise InputError(f"{path}: cannot write it: expected a name without null bytes")
    suffix = Path(given.name.removesuffix(".gz")).suffix.lower()
    if suffixes and suffix and suffix not in suffixes:
        raise InputError(f"{path}: cannot write it: expected a name that ends in {' or '.join(suffixes)}")
    try:
        if is_direct(given):
            return given
        target = Path(os.path.realpath(given))
        if target.is_dir():
            raise InputError(f"{path}: cannot write it: expected a file, but it is a folder")
        if not target.parent.is_dir():
            raise InputError(f"{path}: cannot write it: there is no folder {target.parent}")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise InputError(f"{path}: cannot write it: Permission denied")
    except OSError as error:
        raise _cannot_write(path, error) from None
    return target


def is_direct(path: str | Path) -> bool:
    """Whether it is a pipe, a device or an open file, which are written directly."""
    return is_open_file(path) or _is_special(Path(path))


def is_open_file(path: str | Path) -> bool:
    """Whether it stands for an open file, such as `-` or `/dev/stdin`, whatever that is."""
    return str(path) == "/dev/stdin" or _descriptor(Path(path)) is not None


@overload
def open_output(
    path: str | Path, mode: Literal["text"] = "text", suffixes: Sequence[str] = ()
) -> AbstractContextManager[IO[str]]: ...


@overload
def open_output(
    path: str | Path, mode: Literal["binary", "raw"], suffixes: Sequence[str] = (), beside: Path | None = None
) -> AbstractContextManager[IO[bytes]]: ...


@contextmanager  # type: ignore[misc]
def open_output(
    path: str | Path, mode: Mode = "text", suffixes: Sequence[str] = (), beside: Path | None = None
) -> Iterator[IO[str] | IO[bytes]]:
    """A file to write to; its content appears at `path` when the block ends without an error, and only then.

    Text is UTF-8. If the name ends in `.gz`, the content is compressed (equal contents give equal bytes), unless the
    mode is `raw`. The temporary file has a name of its own, or is `beside`, of which the caller is the only writer.
    """
    target = check_output(path, suffixes)
    descriptor = _descriptor(target)
    if descriptor is not None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        try:
            same = _File(os.dup(descriptor), path)
        except OSError as error:
            raise _cannot_write(path, error) from None
        with _layers(same, target, mode) as file:
            yield file
    elif _is_special(target):
        with _layers(_open(target, os.O_WRONLY, path), target, mode) as file:
            yield file
    else:
        part = beside or target.with_name(f".movers-{secrets.token_hex(8)}.tmp")
        try:
            raw = None if beside else _open_nameless(target.parent, path)
            if raw is None:
                try:
                    part.unlink(missing_ok=True)  # what a killed run left, or a link to somebody's file
                except OSError as error:  # a folder
                    raise _cannot_write(part, error) from None
                raw = _open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path)
            if target.exists():
                os.fchmod(raw.fileno(), stat.S_IMODE(target.stat().st_mode))
            with ExitStack() as kept:
                held = os.dup(raw.fileno())  # the layers close theirs
                kept.callback(os.close, held)
                with _layers(raw, target, mode) as file:
                    yield file
                try:
                    if not part.exists():
                        os.link(f"/proc/self/fd/{held}", part, src_dir_fd=0, follow_symlinks=True)
                    os.replace(part, target)
                except OSError as error:
                    raise _cannot_write(path, error) from None
        finally:
            if not part.is_dir():
                part.unlink(missing_ok=True)


def write_file(path: str | Path, data: bytes | str) -> None:
    """Write a file whole or not at all, as `open_output` does."""
    if isinstance(data, str):
        with open_output(path) as text:
            text.write(data)
    else:
        with open_output(path, "binary") as file:
            file.write(data)


# ---------------------------------------------------------------------------------------------------------------------


class _File(io.FileIO):
    """A file whose errors name it, as the user wrote it; when it is closed, everything is on disk."""

    def __init__(self, descriptor: int, shown: str | Path) -> None:
        super().__init__(descriptor, "w")
        self.shown = shown

    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader wants no more
            raise
        except OSError as error:
            raise _cannot_write(self.shown, error) from None

    def close(self) -> None:
        try:
            if not self.closed and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                os.fsync(self.fileno())
        except OSError as error:
            raise _cannot_write(self.shown, error) from None
        finally:
            super().close()


def _open(path: Path, flags: int, shown: str | Path) -> _File:
    try:
        return _File(os.open(path, flags, 0o666), shown)
    except OSError as error:
        raise _cannot_write(shown, error) from None


def _open_nameless(folder: Path, shown: str | Path) -> _File | None:
    """A file without a name, which ends with the process unless it is given one; None where there are no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return _File(os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666), shown)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):  # this file system has none
            return None
        raise _cannot_write(shown, error) from None


@contextmanager
def _layers(raw: _File, target: Path, mode: Mode) -> Iterator[IO[str] | IO[bytes]]:
    """The file as one writes to it: text over compression over a buffer, as far as they are asked for."""
    with ExitStack() as stack:
        binary: IO[bytes] = stack.enter_context(io.BufferedWriter(raw))
        if target.suffix == ".gz" and mode != "raw":
            compressed = gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0)
            binary = stack.enter_context(cast("IO[bytes]", compressed))
        if mode == "text":
            yield stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline="\n"))
        else:
            yield binary


def _descriptor(path: Path) -> int | None:
    """The number of an open file that a path stands for, such as `/dev/stdout`: reopening it would overwrite it."""
    named = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
    number = re.fullmatch(r"(?:/dev|/proc/self)/fd/([0-9]+)", str(path))
    return int(number[1]) if number else named.get(str(path))


def _is_special(path: Path) -> bool:
    """Whether it is a device, a pipe or a socket."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _cannot_write(path: str | Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot write it: {error.strerror or error}")

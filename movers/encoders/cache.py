"""Caches: digests of files on disk, vectors of texts in memory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

from movers.errors import InputError
from movers.io import write_file
from movers.threads import SafeLock

__all__ = [
    "VECTORS",
    "VectorCache",
    "cache_folder",
    "file_digest",
    "file_state",
    "folder_digest",
    "folder_state",
    "locked_cache",
    "sha256_of",
]

_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


def cache_folder() -> Path:
    """Folder of derived files: `MOVERS_CACHE`, or `movers` in the user's cache folder."""
    chosen = os.environ.get("MOVERS_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "movers"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked_cache(name: str) -> Iterator[Path]:
    """A cache folder, locked so that one process at a time fills it.

    If it cannot be created or written, the error names `MOVERS_CACHE`.
    """
    from filelock import FileLock

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{name}.lock")
        lock.acquire()
    except OSError as error:
        raise _cannot_write(folder, error) from None
    try:
        yield folder
    except OSError as error:
        if error.errno in _CANNOT_WRITE:
            raise _cannot_write(folder, error) from None
        raise
    finally:
        lock.release()


def _cannot_write(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"cache: cannot write to {folder} ({error.strerror or error}): set MOVERS_CACHE to a folder that can be written"
    )


def file_state(path: Path) -> tuple[int, ...]:
    """Values that differ after a file is changed or replaced, even by one of equal size and time."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def folder_state(folder: Path, patterns: tuple[str, ...]) -> tuple[object, ...]:
    """`file_state` of all matching files in a folder; empty if there is no such folder."""
    return tuple((path.relative_to(folder).as_posix(), file_state(path)) for path in _matching(folder, patterns))


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    if not os.path.isdir(folder):
        return []
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def file_digest(path: Path) -> str:
    """SHA-256 of a file, cached by name, size and modification time, because vector files can be large."""
    path = path.resolve()
    state = "-".join(map(str, file_state(path)))
    memory = cache_folder() / "digests" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    try:
        known = json.loads(memory.read_text())
        if known["path"] == str(path) and known["state"] == state:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    digest = sha256_of(path)
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_file(memory, json.dumps({"path": str(path), "state": state, "sha256": digest}))
    except (OSError, InputError):  # without a writable cache it only takes longer
        pass
    return digest


def folder_digest(folder: Path, patterns: tuple[str, ...]) -> str:
    """SHA-256 over the names and contents of the files in `folder` that match."""
    total = hashlib.sha256()
    for path in _matching(folder, patterns):
        total.update(f"{path.relative_to(folder).as_posix()}:{file_digest(path)}\n".encode())
    return total.hexdigest()


def _default_capacity() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 8 << 30
    return min(1 << 30, memory // 8)


class VectorCache:
    """Thread-safe LRU cache, bounded in bytes.

    Parameters
    ----------
    capacity : int, optional
        Maximum number of bytes; by default an eighth of the machine's memory, at most 1 GiB.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = _default_capacity() if capacity is None else capacity
        self.size = 0
        self._values: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = SafeLock()

    def get(self, key: Hashable) -> object | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: object, size: int) -> None:
        if size > self.capacity:
            return
        with self._lock:
            old = self._values.pop(key, None)
            if old is not None:
                self.size -= old[1]
            self._values[key] = (value, size)
            self.size += size
            while self.size > self.capacity:
                _, (_, freed) = self._values.popitem(last=False)
                self.size -= freed

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self.size = 0

    def __len__(self) -> int:
        return len(self._values)


#: Shared by all encoders and metrics of the process.
VECTORS = VectorCache()

"""The cache folder on disk, and the cache of text vectors in memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path

from movers.errors import InputError


def cache_folder() -> Path:
    """Folder of derived files: `MOVERS_CACHE`, or `movers` in the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("MOVERS_CACHE") or user / "movers")


def build_once(name: str, build: Callable[[Path], Path], is_complete: Callable[[Path], bool] = Path.is_dir) -> Path:
    """A folder in the cache, built on first use by one process at a time.

    `build` works in a temporary folder and returns what is to be moved into place.
    """
    from filelock import FileLock

    folder = cache_folder() / name
    if is_complete(folder):  # then the cache may be read-only
        return folder
    building = folder.with_name(f"{folder.name}.building")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(cache_folder() / "cache.lock"):
            if not is_complete(folder):  # nor built by another process in the meantime
                for rest in (folder, building):  # damaged, or of a killed process
                    shutil.rmtree(rest, ignore_errors=True)
                building.mkdir()
                try:
                    build(building).rename(folder)
                finally:
                    shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        if error.errno is None:  # raised by a library, not by the disk
            raise
        problem = f"cannot write to {cache_folder()} ({error.strerror})"
        raise InputError(f"cache: {problem}: set MOVERS_CACHE to a writable folder") from None
    return folder


@lru_cache(maxsize=1024)
def _digest(path: Path, state: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_state(path: Path) -> tuple[int, ...]:
    """Values that differ after a file is changed or replaced, even by one of equal size and time."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def file_digest(path: Path) -> str:
    """SHA-256 of a file, computed again only after the file has changed."""
    return _digest(path.resolve(), file_state(path))


def folder_digest(folder: Path, patterns: tuple[str, ...]) -> str:
    """SHA-256 over the names and contents of the files in `folder` that match."""
    # os.path, because pathlib would raise for impossible names
    paths = {path for pattern in patterns for path in folder.glob(pattern)} if os.path.isdir(folder) else ()
    files = sorted(path for path in paths if path.is_file())
    lines = [f"{path.relative_to(folder).as_posix()}:{file_digest(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class VectorCache:
    """Thread-safe LRU cache of at most `capacity` bytes."""

    def __init__(self, capacity: int = 1 << 30) -> None:
        self.capacity = capacity
        self.size = 0
        self._values: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> object | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: object, size: int) -> None:
        if size > self.capacity:
            return
        with self._lock:
            self.size += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = (value, size)
            while self.size > self.capacity:
                _, (_, freed) = self._values.popitem(last=False)
                self.size -= freed

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self.size = 0


#: Shared by all encoders and metrics of the process.
VECTORS = VectorCache()

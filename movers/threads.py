"""Threads that solve transport problems, and threads of NumPy's matrix products."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")
_lock = threading.Lock()
_limits: list[Any] = []  # one for each caller inside `one_blas_thread`; only the first limits anything


def _after_fork() -> None:
    """In a forked child torch's threads do not exist; a forward pass that uses them would wait for them forever."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


@lru_cache(maxsize=1)
def _openblas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(internal_api="openblas")  # NumPy's, not the library of an encoder


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run NumPy's matrix products on the calling thread; do not hold across a `yield` to a caller.

    For matrices of sentence size, waking BLAS threads takes several times as long as the product, and pairs are
    distributed over threads anyway. Overlapping calls limit once and restore once.
    """
    with _lock:
        _limits.append(None if _limits else _openblas().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _limits[0]
            _limits.pop()
            if not _limits:
                limit.restore_original_limits()


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split items into lists of `size`; the last may be shorter."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


@contextmanager
def solver_pool(threads: int | None) -> Iterator[ThreadPoolExecutor]:
    """A pool of solver threads, also if `threads` is 1, so that the calling thread can be interrupted."""
    # By default one for each processor available to this process.
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads or available, thread_name_prefix="movers")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)

"""The thread pool that compares texts, with BLAS limited to one thread."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import LibController, ThreadpoolController

__all__ = ["CELLS", "CellBudget", "SafeLock", "chunks", "default_threads", "one_blas_thread", "solver_pool",
           "solvers_at_work", "threaded_map"]  # fmt: skip

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_threads() -> int:
    """Number of processors available to this process."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on Linux
        return max(1, os.cpu_count() or 1)


class SafeLock:
    """A lock that is released in a forked child, where the thread that held it does not exist."""

    _all: ClassVar[weakref.WeakSet[SafeLock]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        SafeLock._all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    @classmethod
    def renew_all(cls) -> None:
        for lock in list(cls._all):
            lock._lock = threading.Lock()


_COUNTED_CELLS = 1 << 16
_NOTHING = nullcontext()


class CellBudget:
    """Bounds the total size of the cost matrices of all threads."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._changed = threading.Condition()
        self._held = 0

    def hold(self, cells: int, limit: int) -> AbstractContextManager[None]:
        """Wait until at most `limit` cells are in use, including these; a single larger matrix is admitted alone.

        Small matrices are not counted.

        >>> with CellBudget().hold(10**9, 50):
        ...     pass
        """
        return _NOTHING if cells < _COUNTED_CELLS else self._hold(cells, limit)

    @contextmanager
    def _hold(self, cells: int, limit: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + cells <= limit)
            self._held += cells
        try:
            yield
        finally:
            with self._changed:
                self._held -= cells
                self._changed.notify_all()


CELLS = CellBudget()


def _after_fork() -> None:
    """In a forked child, reset locks and limit torch to one thread.

    The threads of torch's pool do not exist in the child, so work submitted to them would never finish.
    """
    SafeLock.renew_all()
    CELLS.renew()
    _HOLD.forget()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


class _BlasHold:
    """Limits OpenBLAS to one thread while at least one caller holds it, then restores the previous limit.

    threadpoolctl's own context manager saves and restores per caller: overlapping calls would leave the limit in place
    permanently.
    """

    def __init__(self) -> None:
        self._lock = SafeLock()
        self._holders = 0
        self._controller: ThreadpoolController | None = None
        self._before: list[tuple[LibController, int]] = []

    def acquire(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders > 1:
                return
            if self._controller is None:
                from threadpoolctl import ThreadpoolController

                # Only NumPy's OpenBLAS, not the library of an encoder.
                self._controller = ThreadpoolController().select(internal_api="openblas")
            self._before = [(library, library.num_threads) for library in self._controller.lib_controllers]
            for library, _ in self._before:
                library.set_num_threads(1)

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                for library, count in self._before:
                    library.set_num_threads(count)

    def forget(self) -> None:
        """In a forked child, where the holders do not exist."""
        self._holders = 0


_HOLD = _BlasHold()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run NumPy's matrix products on the calling thread; do not hold across a `yield` to a caller.

    For matrices of sentence size, waking BLAS threads takes several times as long as the product, and pairs are
    distributed over threads anyway.
    """
    _HOLD.acquire()
    try:
        yield
    finally:
        _HOLD.release()


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split items into lists of `size`; the last may be shorter.

    >>> list(chunks(range(5), 2))
    [[0, 1], [2, 3], [4]]
    """
    part: list[Item] = []
    for item in items:
        part.append(item)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


class _Solvers(ThreadPoolExecutor):
    """A thread pool that records its unfinished tasks."""

    submitted: ClassVar[weakref.WeakSet[Future[Any]]] = weakref.WeakSet()

    def submit(self, *task: Any, **options: Any) -> Future[Any]:
        future = super().submit(*task, **options)
        self.submitted.add(future)
        return future


@contextmanager
def solver_pool(threads: int | None) -> Iterator[ThreadPoolExecutor]:
    """A pool of solver threads, also if `threads` is 1, so that the calling thread can be interrupted.

    After an interrupt, running tasks are not waited for.
    """
    pool = _Solvers(default_threads() if threads is None else threads, thread_name_prefix="movers")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def solvers_at_work() -> bool:
    """Whether solver threads are still running; the interpreter would wait for them at exit."""
    return any(future.running() for future in list(_Solvers.submitted))


def threaded_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None, chunk: int = 32
) -> Iterator[Result]:
    """`map(function, items)` in a thread pool, in order, with a bounded number of tasks in flight.

    Items are submitted in chunks, because submitting a single sentence pair costs as much as solving it.

    >>> list(threaded_map(lambda n: n * n, range(5), threads=2))
    [0, 1, 4, 9, 16]
    """
    threads = default_threads() if threads is None else threads
    in_flight: deque[Future[list[Result]]] = deque()
    with solver_pool(threads) as pool:
        for part in chunks(items, chunk):
            in_flight.append(pool.submit(_run_chunk, function, part))
            if len(in_flight) > 4 * threads:
                yield from in_flight.popleft().result()
        while in_flight:
            yield from in_flight.popleft().result()


def _run_chunk(function: Callable[[Item], Result], part: list[Item]) -> list[Result]:
    with one_blas_thread():
        return [function(item) for item in part]

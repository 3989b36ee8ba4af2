"""Who scores for a page: two processes, one for short requests and one for long ones.

A request waits for its process or, if too many wait already, is refused. One that takes too long is stopped together
with its process, and the next request starts another.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from movers.errors import InputError
from movers.serve.limits import LIMITS

__all__ = ["LONG", "SHORT", "Lane", "lane_for"]

_HOME = str(Path(__file__).resolve().parents[2])  # so that the process imports this very package
_LOADING = 180.0  # seconds that an encoder may take to load
Progress = Callable[[int, int], object]


class Lane:
    """A process that answers one request after the other, and those who wait for it.

    Attributes
    ----------
    deadline : float
        Seconds after which a request is stopped.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self._estimates: list[tuple[str, float]] = []  # of the requests that run or wait: visitor and seconds
        self._worker: _Worker | None = None

    def ask(
        self, request: Mapping[str, object], seconds: float, progress: Progress | None = None, visitor: str = ""
    ) -> Any:
        """The worker's answer; `seconds` is what the request is expected to take, `visitor` the address it is from."""
        with self._admitted(visitor, seconds), self._turn:
            if self._worker is None:
                self._worker = _Worker()
            try:
                return self._worker.ask(request, self.deadline, progress)
            except _Ended as ended:
                self._worker = None
                raise InputError(str(ended)) from None

    @contextmanager
    def _admitted(self, visitor: str, seconds: float) -> Iterator[None]:
        own = visitor, seconds
        with self._count:
            everybody = [work for _, work in self._estimates]
            theirs = [work for who, work in self._estimates if who == visitor]
            for found, whose, most, longest in (
                (theirs, " from your address", LIMITS.own_waiting, LIMITS.own_waiting_seconds),
                (everybody, "", LIMITS.waiting, LIMITS.waiting_seconds),
            ):
                if len(found) > most or sum(found) > longest:
                    raise InputError(
                        f"busy: {len(found)} requests{whose} with about {max(sum(found), 1):.0f} seconds of work wait "
                        "already; try later"
                    )
            self._estimates.append(own)
        try:
            yield
        finally:
            with self._count:
                self._estimates.remove(own)

    def stop(self) -> None:
        """End the process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()


SHORT, LONG = Lane(LIMITS.short_deadline), Lane(LIMITS.deadline)
for _lane in (SHORT, LONG):
    atexit.register(_lane.stop)


def lane_for(seconds: float) -> Lane:
    """Where a request of that many seconds goes."""
    return SHORT if seconds <= LIMITS.short_seconds else LONG


class _Ended(Exception):
    """The process is gone."""


class _Worker:
    """A process of `movers.serve.worker`, and the thread that reads what it writes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "movers.serve.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={
                **os.environ,
                "MOVERS_MAX_LINE": str(LIMITS.file_bytes),
                "PYTHONPATH": os.pathsep.join(filter(None, [_HOME, os.environ.get("PYTHONPATH")])),
            },
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def ask(self, request: Mapping[str, object], deadline: float, progress: Progress | None) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._end("the process that scores has ended; try again") from None
        end = time.monotonic() + _LOADING
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise self._end(
                    f"stopped: it took longer than {deadline:.0f} seconds; shorten the texts, or use the package"
                ) from None
            if not line:
                raise self._end("stopped: it took more memory than a page may use; shorten the texts, or try again")
            message = json.loads(line)
            if "answer" in message:
                return message["answer"]
            if "refused" in message:
                raise InputError(message["refused"])
            if "bug" in message:
                raise RuntimeError(message["bug"])
            if "loaded" in message:
                end = time.monotonic() + deadline
            elif progress is not None:
                progress(message["done"], message["of"])

    def _end(self, reason: str) -> _Ended:
        self.stop()
        return _Ended(reason)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written last has not been read
                    pipe.close()

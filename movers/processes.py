"""An ordered map over worker processes, with a bounded number of tasks in flight; dead workers are replaced."""

from __future__ import annotations

import multiprocessing
import os
import pickle  # between a process and its own workers only, as multiprocessing does
import queue
import signal
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from movers.errors import InputError

__all__ = ["WorkerDied", "process_map"]

State = TypeVar("State")
Task = TypeVar("Task")
Result = TypeVar("Result")
_ATTEMPTS = 2  # of a task whose worker dies
_AHEAD = 2  # tasks per worker: the current and the next
_WATCH = 5.0  # seconds between a worker's checks that its parent is alive


class WorkerDied(Exception):
    """Workers died on a task as often as it may be retried."""

    def __init__(self, task: object, code: int | None) -> None:
        super().__init__(task, code)
        self.task, self.code = task, code


@dataclass
class _Place(Generic[Task, Result]):
    """A task and its outcome."""

    task: Task
    deaths: int = 0
    done: bool = False
    result: Result | None = None
    failure: BaseException | None = None


@dataclass
class _Worker(Generic[Task, Result]):
    process: multiprocessing.process.BaseProcess
    connection: Connection
    given: deque[_Place[Task, Result]] = field(default_factory=deque)  # the first is running


@dataclass
class _Crew(Generic[State, Task, Result]):
    function: Callable[[State, Task], Result]
    state: State
    members: list[_Worker[Task, Result]] = field(default_factory=list)

    def hire(self) -> None:
        """Start a worker with the default start method; if forked, it shares the memory of the state."""
        context: Any = multiprocessing.get_context()
        ours, theirs = context.Pipe()
        arguments = theirs, self.function, self.state
        process = context.Process(target=_work, args=arguments, daemon=True, name="movers-worker")
        try:
            process.start()
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InputError(f"workers: expected a model that can be sent to another process, but {error}") from None
        theirs.close()  # so that only the worker holds its end, and its death closes the pipe
        self.members.append(_Worker(process, ours))

    def assign(self, worker: _Worker[Task, Result], place: _Place[Task, Result]) -> None:
        worker.given.append(place)
        try:
            worker.connection.send(place.task)
        except OSError:  # the worker is dead; `hear` notices
            pass

    def hear(self) -> list[_Place[Task, Result]]:
        """Wait for results and store them; returns the tasks of workers that died."""
        lost: list[_Place[Task, Result]] = []
        busy = {worker.connection: worker for worker in self.members if worker.given}
        for connection in wait(list(busy)):
            worker = busy[connection]  # type: ignore[index]
            try:
                failure, result, caught = worker.connection.recv()
            except (EOFError, OSError):
                lost += self._replace(worker)
                continue
            for category, message in caught:
                warnings.warn(message, category, stacklevel=2)
            place = worker.given.popleft()
            place.result, place.failure, place.done = result, failure, True
        return lost

    def _replace(self, worker: _Worker[Task, Result]) -> deque[_Place[Task, Result]]:
        self.members.remove(worker)
        worker.process.join()
        worker.given[0].deaths += 1
        if worker.given[0].deaths >= _ATTEMPTS:
            raise WorkerDied(worker.given[0].task, worker.process.exitcode)
        self.hire()
        return worker.given

    def dismiss(self) -> None:
        for worker in self.members:
            worker.connection.close()
            worker.process.kill()  # it has no state to clean up
        for worker in self.members:
            worker.process.join()


def process_map(
    function: Callable[[State, Task], Result], state: State, tasks: Iterable[Task], workers: int
) -> Generator[Result]:
    """Compute `function(state, task)` for every task in worker processes; results in the order of the tasks.

    Parameters
    ----------
    function : a module-level function, so that it can be pickled
    state : shared by all tasks; inherited by forked workers, otherwise pickled once per worker
    tasks : consumed lazily: at most two per worker in flight, and as many finished ones waiting for an earlier result
    workers : number of processes

    An exception in a worker is raised here, after the results of earlier tasks; warnings are issued here. A worker that
    dies is replaced and its task retried once. All processes have ended when the generator ends, also after an
    exception or an interrupt; if this process is killed, they exit by themselves.

    >>> list(process_map(divmod, 7, [2, 3], workers=1))
    [(3, 1), (2, 1)]
    """
    crew: _Crew[State, Task, Result] = _Crew(function, state)
    source: Iterator[_Place[Task, Result]] = map(_Place, tasks)
    order: deque[_Place[Task, Result]] = deque()  # started, and not yet yielded
    again: deque[_Place[Task, Result]] = deque()  # lost with a worker
    try:
        for _ in range(workers):
            crew.hire()
        while True:
            for place, worker in [(place, worker) for place in range(_AHEAD) for worker in crew.members]:
                if len(worker.given) > place:
                    continue
                if again:
                    crew.assign(worker, again.popleft())
                elif len(order) < 2 * _AHEAD * workers and (task := next(source, None)) is not None:
                    order.append(task)
                    crew.assign(worker, task)
            if not order:
                return
            again.extend(crew.hear())
            while order and order[0].done:
                first = order.popleft()
                if first.failure is not None:
                    raise first.failure
                yield first.result  # type: ignore[misc]
    finally:
        crew.dismiss()


def _work(connection: Connection, function: Callable[[Any, Any], Any], state: object) -> None:
    """Main loop of a worker, until its connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # avoids a warning of tokenizers about forking
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    while True:
        task = tasks.get()
        failure: BaseException | None = None
        result = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function(state, task)
            except Exception as error:
                failure = _portable(error)
        try:
            connection.send((failure, result, [(entry.category, str(entry.message)) for entry in caught]))
        except OSError:
            return


def _receive(connection: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    """Receive tasks while another one is running; exit when the parent process has ended."""
    parent = os.getppid()
    try:
        while True:
            while not connection.poll(_WATCH):
                if os.getppid() != parent:
                    os._exit(1)
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """An exception that can be pickled; bugs carry the worker's traceback as a note."""
    if isinstance(error, InputError):
        return error
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In a worker process:\n{text}")
    return error

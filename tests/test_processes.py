"""Worker processes: the order of results, and what becomes of errors, warnings, interrupts and dead workers."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import movers
from movers.errors import InputError
from movers.processes import WorkerDied, process_map

SENTENCES = [
    "A man sells snow online.",
    "Boston suffered heavy snow.",
    "Police arrested suspects.",
    "Birds walked here.",
]
PREDICTIONS = [f"{SENTENCES[n % 4]} {SENTENCES[n % 3]} Number {n} fell." for n in range(300)]
REFERENCES = [[f"{SENTENCES[(n + 1) % 4]} It fell {n} times.", SENTENCES[n % 4]] for n in range(300)]


def slow_square(offset: int, number: int) -> tuple[int, int]:
    time.sleep(0.05 if number == 0 else 0)
    return offset + number * number, os.getpid()


def fail_at_three(_: object, number: int) -> int:
    if number == 3:
        raise InputError("row 3: wrong")
    if number == 5:
        raise ZeroDivisionError("five")
    warnings.warn(f"number {number}", UserWarning, stacklevel=1)
    return number


def die_over(marker: Path, number: int) -> int:
    """Killed by the first attempt at 2, and by every attempt at 7."""
    if number == 7 or (number == 2 and not marker.exists()):
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_order_from_several_processes() -> None:
    found = list(process_map(slow_square, 5, range(20), workers=2))
    assert [value for value, _ in found] == [5 + number * number for number in range(20)]
    processes = {process for _, process in found}
    assert len(processes) == 2 and os.getpid() not in processes
    assert not multiprocessing.active_children()


def test_tasks_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = process_map(slow_square, 0, tasks(), workers=2)
    next(results)
    assert len(taken) <= 8
    results.close()
    assert not multiprocessing.active_children()


def test_an_error_comes_after_the_results_before_it_and_warnings_are_passed_on() -> None:
    results = process_map(fail_at_three, None, [0, 1, 3, 4], workers=2)
    with pytest.warns(UserWarning, match="number 1"):
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(InputError, match="^row 3: wrong$"):
            next(results)
    assert not multiprocessing.active_children()


def test_a_bug_in_a_worker_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError, match="five") as caught:
        list(process_map(fail_at_three, None, [5], workers=1))
    assert "in fail_at_three" in caught.value.__notes__[0]


def test_a_worker_that_is_killed_is_replaced_once_per_task(tmp_path: Path) -> None:
    assert list(process_map(die_over, tmp_path / "marker", range(6), workers=2)) == list(range(6))
    with pytest.raises(WorkerDied) as caught:
        list(process_map(die_over, tmp_path / "marker", range(9), workers=2))
    assert (caught.value.task, caught.value.code) == (7, -signal.SIGKILL)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("metric", [movers.wms, movers.sms, movers.swms])
def test_workers_give_the_scores_of_one_process_row_for_row(metric: Callable[..., object]) -> None:
    options = {"return_alignment": True, "idf": "corpus"} if metric is movers.swms else {}
    assert metric(PREDICTIONS, REFERENCES, workers=2, **options) == metric(PREDICTIONS, REFERENCES, **options)


def test_an_error_in_a_worker_names_the_row() -> None:
    long = [*PREDICTIONS[:250], " ".join(f"word{n}" for n in range(80)), *PREDICTIONS[251:]]
    with pytest.raises(InputError, match=r"^wms: predictions\[250\]: comparing 80 with"):
        movers.wms(long, REFERENCES, workers=2, max_cells=200)


def test_contextual_metrics_run_in_one_process(tiny_bert: object) -> None:
    options = {"model": tiny_bert, "progress": False}
    before = movers.bertscore_emd(PREDICTIONS[:130], REFERENCES[:130], **options)
    assert movers.bertscore_emd(PREDICTIONS[:130], REFERENCES[:130], workers=2, **options) == before


SCRIPT = """
import multiprocessing
import movers

PREDICTIONS = [f"Snow fell {{n}} times on Boston." for n in range(200)]
REFERENCES = [f"Boston suffered {{n + 1}} snow falls." for n in range(200)]
{guard}
    multiprocessing.set_start_method({method!r}, force=True)
    assert movers.wms(PREDICTIONS, REFERENCES, workers=2) == movers.wms(PREDICTIONS, REFERENCES)
    print("equal")
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_need_not_be_forked(method: str, tmp_path: Path) -> None:
    found = run(tmp_path, SCRIPT.format(method=method, guard="if __name__ == '__main__':"))
    assert found.stdout.strip() == "equal", found.stderr


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    found = run(tmp_path, SCRIPT.format(method="spawn", guard="if True:"))
    assert found.returncode == 1
    assert re.search(
        r"InputError: wms: workers: predictions\[\d+\] to \[\d+\]: expected .* __name__ == '__main__'",
        found.stderr,
    )


WAITING = """
import os, sys, time
from movers.processes import process_map

def wait(_, number):
    os.write(1, f"{os.getpid()}\\n".encode())  # in one piece
    time.sleep(60)

list(process_map(wait, None, range(4), workers=2))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WAITING)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(number)
    parent.wait()
    deadline = time.monotonic() + 30
    while any(is_alive(worker) for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(code)
    paths = {**os.environ, "PYTHONPATH": str(Path(movers.__file__).parents[1])}
    return subprocess.run([sys.executable, folder / "script.py"], capture_output=True, text=True, env=paths)

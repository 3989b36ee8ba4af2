"""Threads that solve: bounded memory, interrupts, and processes that are forked after use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import ROOT

import movers
from movers.errors import InputError
from movers.threads import CellBudget, SafeLock, solver_pool, solvers_at_work

MANY = 1 << 16  # smaller matrices are not counted


def test_cells_in_flight_stay_within_the_limit_and_a_large_matrix_goes_alone() -> None:
    budget, lock, held, most = CellBudget(), threading.Lock(), 0, 0

    def work(cells: int) -> None:
        nonlocal held, most
        with budget.hold(cells * MANY, 100 * MANY):
            with lock:
                held += cells
                most = max(most, held)
            time.sleep(0.001)
            with lock:
                held -= cells

    threads = [threading.Thread(target=work, args=(cells,)) for cells in [30, 60, 90, 100] * 10]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert held == 0 and 60 < most <= 100
    with budget.hold(1000 * MANY, 100 * MANY):  # waits for nobody but others
        pass


def test_a_pool_that_is_left_early_is_not_waited_for() -> None:
    stop = threading.Event()
    with pytest.raises(KeyboardInterrupt), solver_pool(1) as pool:
        pool.submit(stop.wait, 30)
        waiting = pool.submit(print)
        raise KeyboardInterrupt
    assert waiting.cancelled() and solvers_at_work()
    stop.set()
    deadline = time.monotonic() + 10
    while solvers_at_work() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not solvers_at_work()


@pytest.mark.parametrize("metric", ["wms", "sms", "moverscore", "bertscore_hungarian", "bertscore_emd"])
def test_a_pair_above_max_cells_is_refused_with_its_row_and_size(metric: str) -> None:
    long = " ".join(f"word{number}." if metric == "sms" else f"word{number}" for number in range(30))
    short = ["snow melts"] * 1500  # more than a block
    texts = [*short, long, *short]
    pattern = rf"{metric}: predictions\[1500\]: comparing 3\d with 3\d units takes [\d,]+ cells .* than max_cells=500;"
    with pytest.raises(InputError, match=pattern):
        getattr(movers, metric)(texts, texts, model="wordllama", max_cells=500)


def test_the_default_refuses_what_would_take_gigabytes_before_taking_them() -> None:
    words = " ".join(f"w{number}" for number in range(7000))
    with pytest.raises(
        InputError, match=r"wms: predictions\[0\]: comparing 7,000 with 7,001 .* 49,007,000 cells .about 2"
    ):
        movers.wms([words], [words + " more"], stopwords=None)


# ---------------------------------------------------------------------------------------------------------------------
# Interrupts: a pair that takes the solver more than ten seconds

SLOW = """
import sys
import numpy as np
rows = np.random.default_rng(0).normal(size=(2, 4900, 32)).astype(np.float32)
with open(sys.argv[1], "w") as file:
    for side, matrix in enumerate(rows):
        for number, row in enumerate(matrix):
            print(f"{'ab'[side]}{number}", *row.tolist(), file=file)
for side in "ab":
    with open(f"{sys.argv[1]}.{side}", "w") as file:
        print(*(f"{side}{number}" for number in range(4900)), file=file)
"""


@pytest.fixture(scope="module")
def slow_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Word vectors and two texts of 4,900 words without any in common."""
    path = tmp_path_factory.mktemp("slow") / "vectors.txt"
    subprocess.run([sys.executable, "-c", SLOW, str(path)], check=True, timeout=60)
    movers.load_encoder(str(path))  # into the cache, which the commands share
    return path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_line_answers_an_interrupt_while_a_pair_is_being_solved(
    slow_pair: Path, tmp_path: Path, number: int, code: int
) -> None:
    output = tmp_path / "scores.csv"
    command = [sys.executable, "-m", "movers", "score", f"wms[model={slow_pair},temperature=1]"]
    texts = ["-p", f"{slow_pair}.a", "-r", f"{slow_pair}.b", "-o", str(output), "--threads", "1"]
    process = subprocess.Popen([*command, *texts], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*.partial")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2.0)  # until the solver is at work
    assert process.poll() is None, process.stderr and process.stderr.read()
    process.send_signal(number)
    begun = time.monotonic()
    _, told = process.communicate(timeout=30)
    assert time.monotonic() - begun < 8.0 and process.returncode == code  # the solver would still be at work
    assert "Traceback" not in told and (number != signal.SIGINT or "movers: interrupted" in told)
    assert list(tmp_path.iterdir()) == [], "nothing half-written is left"


# ---------------------------------------------------------------------------------------------------------------------
# Fork after use


def test_a_lock_that_was_held_is_open_in_a_forked_child() -> None:
    lock, inside, leave = SafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(5)  # ends the child if the lock is shut
        with lock:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7


FORKED = {
    "wms": "movers.wms(texts, texts[::-1])",
    "moverscore": "movers.moverscore(texts, texts[::-1], device='cpu')",
    "reference_free": "movers.reference_free_summary_quality(texts, texts[::-1], device='cpu')",
}
# Texts long enough for torch to use its threads; the child encodes others than its parent, which are not in the cache.
TEXTS = """
words = "the of and man sells snow online river town rain bank rate people house water night".split()
def make(seed):
    rng = random.Random(seed)
    return [" ".join(rng.choices(words, k=40)) for _ in range(8)]
def close(one, other):
    return max(abs(x - y) for x, y in zip(one, other, strict=True)) < 1e-6
"""


@pytest.mark.parametrize("call", FORKED.values(), ids=FORKED)
def test_a_child_forked_after_use_gives_the_same_scores(call: str, run_python: Callable[..., str]) -> None:
    code = f"""
import multiprocessing, random, movers
{TEXTS}
def score(seed):
    texts = make(seed)
    return {call}["scores"]
score(1)
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=lambda: queue.put(score(2)), daemon=True)
child.start()
there = queue.get(timeout=60)
child.join(10)
print(close(score(2), there), child.exitcode)
"""
    assert run_python(code, OMP_NUM_THREADS="2") == "True 0"


def test_datasets_and_data_loaders_fork_after_use(run_python: Callable[..., str]) -> None:
    code = f"""
import random, datasets, movers, torch
from torch.utils.data import DataLoader
{TEXTS}
datasets.disable_progress_bars()
def score(batch):
    return {{"score": movers.moverscore(batch["text"], batch["text"][::-1], device="cpu")["scores"]}}
score({{"text": make(1)}})
table = datasets.Dataset.from_dict({{"text": make(2) + make(3)}})
mapped = table.map(score, batched=True, batch_size=8, num_proc=2)["score"]
class Scored(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.tensor(score({{"text": make(4 + index)}})["score"], dtype=torch.float64)
loaded = list(DataLoader(Scored(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60))
print(close(list(mapped)[:8], score({{"text": make(2)}})["score"]))
print(close(loaded[1].tolist(), score({{"text": make(5)}})["score"]))
"""
    assert run_python(code, OMP_NUM_THREADS="2").split()[-2:] == ["True", "True"]

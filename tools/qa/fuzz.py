"""Unusual texts through every public entry: a finite score within its range, or an `InputError`.

    python tools/qa/fuzz.py [--minutes 10] [--seed 0]

Texts and entries are those of `strange.py`, with fixed seeds. Contextual metrics use a transformer of 16
dimensions, the others their defaults. A call that takes more than a minute of processor time counts as a hang. Prints
a table; the exit status is 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from movers.errors import InputError
from movers.registry import METRICS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import strange  # type: ignore[import-not-found]  # noqa: E402

STATIC, CONTEXTUAL = ("wms", "sms", "swms"), ("moverscore", "bertscore_hungarian", "bertscore_emd")
OUTCOMES = ("scored", "refused", "wrong")
LONG = ("words", "punctuation only", "repetition", "right to left", "every script", "long word")


class Target(NamedTuple):
    """An entry with a metric, the rows of a call, and what kind of texts it gets."""

    entry: str
    metric: str
    rows: int
    texts: str = "any"


TARGETS = [
    *(Target("function", name, 500) for name in STATIC),
    *(Target("function", name, 50_000, "tiny") for name in STATIC),
    *(Target("function", name, 100) for name in CONTEXTUAL),
    Target("function", "reference_free_summary_quality", 20),
    *(Target("module", name, 300) for name in STATIC),
    *(Target("module", name, 100) for name in CONTEXTUAL),
    *(Target(entry, name, 200) for entry in ("reward", "hook") for name in (*STATIC, "moverscore")),
    *(Target("command", name, 100) for name in STATIC),
    *(Target("page", name, 1) for name in STATIC),
    *(Target("options", name, 1) for name in METRICS),
]
ONCE = [Target("function", name, 2, "of a megabyte") for name in STATIC]


class Hang(BaseException):
    """A call took a minute of processor time."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Hang


def make_rows(target: Target, draw: random.Random) -> list[tuple[str, str]]:
    """The texts of one call; some calls have a lone surrogate in one row and must be refused whole."""

    def text() -> str:
        if target.texts == "tiny":
            return strange.KINDS["tiny"](draw)
        if target.texts == "of a megabyte":
            part = strange.KINDS[draw.choice(LONG)](draw) + " "
            return part * (1_000_000 // len(part))
        return strange.text(draw)[1]

    rows = [(text(), text()) for _ in range(target.rows)]
    if draw.random() < 0.05 and target.entry != "hook":  # a tokenizer refuses them before the hook
        rows[draw.randrange(len(rows))] = strange.KINDS["lone surrogates"](draw), ""
    return rows


def call(target: Target, seed: str, folder: Path) -> str:
    """`scored`, `refused` or `wrong`."""
    draw = random.Random(seed)
    rows = make_rows(target, draw)
    signal.setitimer(signal.ITIMER_PROF, 60)
    try:
        if target.entry == "options":
            strange.call_options(target.metric, draw)
        elif target.entry == "command":
            strange.call_command(target.metric, rows, draw, folder)
        else:
            getattr(strange, f"call_{target.entry}")(target.metric, rows, draw)
        return "scored"
    except InputError:
        return "refused"
    except (Exception, Hang) as error:
        print(f"{target}, seed {seed}: {error!r:.300}", flush=True)
        traceback.print_exc(limit=-3)
        return "wrong"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    outcomes: dict[Target, Counter[str]] = {}
    slowest: dict[Target, float] = {}
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        for turn in itertools.count():
            for target in [*TARGETS, *(ONCE if turn == 0 else [])]:
                if turn and time.monotonic() > end:
                    break
                begin = time.process_time()
                outcome = call(target, f"{arguments.seed}/{turn}/{target.entry}/{target.metric}", Path(folder))
                inputs = 1 if target.entry == "options" else 2 * target.rows
                outcomes.setdefault(target, Counter())[outcome] += inputs
                slowest[target] = max(slowest.get(target, 0.0), time.process_time() - begin)
            if time.monotonic() > end:
                break
    print("| entry | metric | texts | inputs | scored | refused | wrong | slowest call |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for target, counts in outcomes.items():
        cells = " | ".join(f"{count:,}" for count in (counts.total(), *(counts[name] for name in OUTCOMES)))
        print(f"| {target.entry} | {target.metric} | {target.texts} | {cells} | {slowest[target]:.2f} s |")
    total = sum(outcomes.values(), Counter())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{total.total():,} inputs: {dict(total)}; at most {memory:,.0f} MiB")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())

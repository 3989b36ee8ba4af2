"""A million strange texts through every public entry: a finite score within its range, or a refusal.

    python benchmarks/fuzz.py                 # --share 0.01 for a short run

Texts come from `tests/strange.py` with fixed seeds, most of them short; each text, and each option that is parsed, is
one input. Contextual metrics read them with a transformer of 16 dimensions, `reference_free_summary_quality` and the
static metrics with what they have by default. A call that needs more than a minute of processor time counts as a hang.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from common import machine, write

from movers.errors import InputError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import strange  # type: ignore[import-not-found]

_SURROGATES = 0.05  # of the batches have a lone surrogate in one row, and must be refused whole
STATIC, CONTEXTUAL = ("wms", "sms", "swms"), ("moverscore", "bertscore_hungarian", "bertscore_emd")
QUALITY = "reference_free_summary_quality"


class Block(NamedTuple):
    """An entry with a metric: how many inputs in all, and how many rows in a call."""

    entry: str
    metric: str
    inputs: int
    rows: int


PLAN = [
    *(Block("function", name, count, 500) for name, count in zip(STATIC, (150_000, 110_000, 80_000), strict=True)),
    *(Block("function", name, 16_000, 100) for name in CONTEXTUAL),
    Block("function", QUALITY, 1_000, 50),
    *(Block("module", name, 24_000, 300) for name in STATIC),
    *(Block("module", name, 2_000, 100) for name in CONTEXTUAL),
    *(Block("reward", name, 30_000, 300) for name in STATIC),
    Block("reward", "moverscore", 4_000, 100),
    *(Block("hook", name, 14_000, 200) for name in STATIC),
    Block("hook", "moverscore", 2_000, 100),
    *(Block("command", name, 24_000, 100) for name in STATIC),
    *(Block("page", name, 2_000, 1) for name in STATIC),
    *(Block("options", name, 2_000, 1) for name in (*STATIC, *CONTEXTUAL, QUALITY)),
    *(Block("tiny", name, 100_000, 50_000) for name in STATIC),
    Block("tiny", "moverscore", 4_000, 2_000),
    *(Block("megabyte", name, 8, 2) for name in STATIC),
]


class Hang(BaseException):
    """A call took a minute of processor time."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Hang


def rows_of(block: Block, draw: random.Random, kinds: Counter[str]) -> list[tuple[str, str]]:
    """The texts of one call."""
    if block.entry == "options":
        kinds["options"] += 1
        return []
    if block.entry == "megabyte":
        names = ["words", "punctuation only", "repetition", "right to left", "every script", "long word"]
        own = [draw.choice(names) for _ in range(2 * block.rows)]
        long = [_megabyte(strange.KINDS[name](draw) or "a") for name in own]
        kinds["lines of 1 MB"] += len(long)
        return list(zip(long[::2], long[1::2], strict=True))
    rows = []
    for _ in range(block.rows):
        pair = [
            ("tiny", strange.KINDS["tiny"](draw)) if block.entry == "tiny" else strange.text(draw) for _ in range(2)
        ]
        kinds.update(name for name, _ in pair)
        rows.append((pair[0][1], pair[1][1]))
    if draw.random() < _SURROGATES and block.entry not in ("hook", "tiny"):  # a tokenizer refuses them before the hook
        place = draw.randrange(len(rows))
        rows[place] = (strange.KINDS["lone surrogates"](draw), rows[place][1])
        kinds["lone surrogates"] += 1
    return rows


def _megabyte(text: str) -> str:
    return (text + " ") * (1_000_000 // (len(text) + 1))


def call(block: Block, rows: list[tuple[str, str]], draw: random.Random, folder: Path) -> None:
    entries: dict[str, Callable[[], None]] = {
        "options": lambda: strange.call_options(block.metric, draw),
        "command": lambda: strange.call_command(block.metric, rows, draw, folder),
        "tiny": lambda: strange.call_function(block.metric, rows, draw),
        "megabyte": lambda: strange.call_function(block.metric, rows, draw),
    }
    if block.entry in entries:
        entries[block.entry]()
    else:
        getattr(strange, f"call_{block.entry}")(block.metric, rows, draw)


def run(block: Block, number: int, share: float, kinds: Counter[str], folder: Path) -> tuple[Counter[str], float]:
    """How many inputs were scored, refused, wrong; the processor time of the slowest call."""
    found: Counter[str] = Counter()
    slowest = 0.0
    size = max(1, 2 * block.rows if block.entry != "options" else 1)
    for place in range(max(1, round(block.inputs * share / size))):
        draw = random.Random(f"{number}/{place}")
        rows = rows_of(block, draw, kinds)
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 60)
        try:
            call(block, rows, draw, folder)
            found["scored"] += size
        except InputError:
            found["refused"] += size
        except (Exception, Hang) as error:
            found["wrong"] += size
            print(f"{block}, call {place}: {error!r:.300}", flush=True)
            traceback.print_exc(limit=-3)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - begin)
    return found, slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs; the result is kept if it is all")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    kinds: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    lines = []
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(PLAN):
            found, slowest = run(block, number, options.share, kinds, Path(folder))
            totals += found
            lines.append(
                f"| {block.entry} | {block.metric} | {sum(found.values()):,} | {found['scored']:,} "
                f"| {found['refused']:,} | {found['wrong']:,} | {slowest:.2f} s |"
            )
            print(lines[-1], flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = [
        "# Strange texts through every public entry",
        "",
        "Written by `python benchmarks/fuzz.py`, which says what the entries are and where the texts come from.",
        "",
        machine(("numpy", "torch", "transformers", "evaluate", "gradio")),
        "",
        f"{sum(totals.values()):,} inputs in {(time.process_time() - begin) / 60:.0f} minutes of processor time with "
        f"at most {memory:,.0f} MiB of memory: {totals['scored']:,} scored with finite numbers within the documented "
        f"range, {totals['refused']:,} refused with an `InputError` (a call is refused whole), **{totals['wrong']:,} "
        "wrong** (unexpected exceptions and hangs included).",
        "",
        "| entry | metric | inputs | scored | refused | wrong | slowest call |",
        "|---|---|---|---|---|---|---|",
        *lines,
        "",
        "| kind of input | count |",
        "|---|---|",
        *(f"| {kind} | {count:,} |" for kind, count in sorted(kinds.items())),
    ]
    if options.share >= 1:
        write("fuzz", text)
    else:
        print("\n".join(text))
    if totals["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

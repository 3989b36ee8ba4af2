"""How long the command line takes to begin, and what the time goes to.

    python benchmarks/startup.py [RUNS]

Each command runs RUNS times (5), one after the other in turns; medians of wall-clock and of processor time (user +
system, all threads), which a busy machine changes less. Then one run each with `-X importtime`: processor time goes to
packages in proportion to their own import times. The rest is no module's: the search for modules (transformers looks
through all its models), reading weights, scoring two lines, the end of the process.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from common import machine, write

LIMITS = {"--help": 0.3, "score wms": 1.5, "score moverscore": 6.0}
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)")
_SHOWN = 8


def run(arguments: list[str], *flags: str) -> tuple[float, float, str]:
    """Wall-clock seconds, processor seconds, standard error."""
    with tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        command = [sys.executable, *flags, "-m", "movers", *arguments]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        took = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    assert child.returncode == 0, said
    return took, usage.ru_utime + usage.ru_stime, said


def import_times(said: str) -> Counter[str]:
    """Microseconds of each package's own modules; the standard library together."""
    found: Counter[str] = Counter()
    for own, module in _IMPORT.findall(said):
        package = module.partition(".")[0]
        name = "standard library and start of Python" if package.lstrip("_") in _STANDARD else package
        found[name] += int(own)
    return found


_STANDARD = {name.lstrip("_") for name in sys.stdlib_module_names} | {"site", "sitecustomize"}


def main(runs: int = 5) -> None:
    with tempfile.TemporaryDirectory() as name:
        predictions, references = Path(name) / "p.txt", Path(name) / "r.txt"
        predictions.write_text("A man sells snow online.\nRain stopped play.\n")
        references.write_text("Snow is sold on the internet.\nThe match was rained off.\n")
        texts = ["-p", str(predictions), "-r", str(references)]
        commands = {label: [*label.split(), *(texts if "score" in label else [])] for label in LIMITS}
        measured: dict[str, list[tuple[float, float, str]]] = {label: [] for label in commands}
        for _ in range(runs + 1):  # the first fills the caches of the disk
            for label, arguments in commands.items():
                measured[label].append(run(arguments))
        table, parts = [], []
        for label, found in measured.items():
            wall = statistics.median(each[0] for each in found[1:])
            busy = statistics.median(each[1] for each in found[1:])
            least = min(each[0] for each in found[1:])
            table.append(f"| `movers {label}` | {wall:.2f} s | {least:.2f} s | {busy:.2f} s | {LIMITS[label]} s |")
            took, _, said = run(commands[label], "-X", "importtime")
            imports = import_times(said)
            shares = [(part, own / 1e6 / took) for part, own in imports.most_common()]
            others = ("other packages", sum(share for _, share in shares[_SHOWN:]))
            rest = ("no module: search for modules, weights, scoring, end", 1 - sum(share for _, share in shares))
            parts += ["", f"## `movers {label}`", "", "| part | share | processor time |", "|---|--:|--:|"]
            for part, share in [*shares[:_SHOWN], others, rest]:
                if share >= 0.005:
                    parts.append(f"| {part} | {100 * share:.0f} % | {busy * share:.2f} s |")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    write(
        "startup",
        [
            "# Start of the command line",
            "",
            machine(("numpy", "torch", "transformers", "scipy")),
            "",
            f"Medians of {runs} runs on two lines of text; load of the machine (1, 5, 15 min) at the end: {load}; "
            f"niceness {os.nice(0)}.",
            "",
            "| command | wall, median | wall, least | user + system | wanted |",
            "|---|--:|--:|--:|--:|",
            *table,
            *parts,
        ],
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

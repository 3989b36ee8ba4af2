"""How long the command line takes to begin, and what the time goes to: the part `startup` of bench.py.

Each command runs five times, in turns; medians of wall-clock and of processor time (user + system, all threads). Then
one run each with `-X importtime`: processor time goes to packages in proportion to their own import times. The rest is
no module's: the search for modules, reading weights, scoring two lines, the end of the process.
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

RUNS = 5
LIMITS = {"--help": 0.3, "score wms": 1.5, "score moverscore": 6.0}
SHOWN = 8  # packages
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)")
STANDARD = {name.lstrip("_") for name in sys.stdlib_module_names} | {"site", "sitecustomize"}


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
        log = errors.read()
    assert child.returncode == 0, log
    return took, usage.ru_utime + usage.ru_stime, log


def import_times(log: str) -> Counter[str]:
    """Microseconds of each package's own modules; the standard library together."""
    packages: Counter[str] = Counter()
    for microseconds, module in IMPORT.findall(log):
        package = module.partition(".")[0]
        name = "standard library and start of Python" if package.lstrip("_") in STANDARD else package
        packages[name] += int(microseconds)
    return packages


def measure(quick: bool) -> dict[str, dict[str, dict[str, object]]]:
    tables: dict[str, dict[str, dict[str, object]]] = {"start-up": {}}
    with tempfile.TemporaryDirectory() as name:
        predictions, references = Path(name) / "p.txt", Path(name) / "r.txt"
        predictions.write_text("A man sells snow online.\nRain stopped play.\n")
        references.write_text("Snow is sold on the internet.\nThe match was rained off.\n")
        texts = ["-p", str(predictions), "-r", str(references)]
        commands = {label: [*label.split(), *(texts if "score" in label else [])] for label in LIMITS}
        measured: dict[str, list[tuple[float, float, str]]] = {label: [] for label in commands}
        for _ in range(1 + (1 if quick else RUNS)):  # the first fills the caches of the disk
            for label, arguments in commands.items():
                measured[label].append(run(arguments))
        for label, runs in measured.items():
            walls, busy = [one[0] for one in runs[1:]], statistics.median(one[1] for one in runs[1:])
            tables["start-up"][f"`movers {label}`"] = {
                "wall clock s": f"{statistics.median(walls):.2f}",
                "least": f"{min(walls):.2f}",
                "CPU s": f"{busy:.2f}",
                "wanted": f"≤ {LIMITS[label]}",
            }
            took, _, log = run(commands[label], "-X", "importtime")
            shares = [(part, microseconds / 1e6 / took) for part, microseconds in import_times(log).most_common()]
            shares = [
                *shares[:SHOWN],
                ("other packages", sum(share for _, share in shares[SHOWN:])),
                ("no module: search for modules, weights, scoring, end", 1 - sum(share for _, share in shares)),
            ]
            tables[f"start-up of movers {label}"] = {
                part: {"share": f"{100 * share:.0f} %", "CPU s": f"{busy * share:.2f}"}
                for part, share in shares
                if share >= 0.005
            }
    return tables

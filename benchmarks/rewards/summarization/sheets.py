"""Judging sheets for Table 6 of Clark et al. 2019, and their analysis. Nobody has judged them yet.

    python benchmarks/rewards/summarization/sheets.py make RUN_FOLDER FOLDER [--seed 0] [--samples 100]
    python benchmarks/rewards/summarization/sheets.py analyse FOLDER/key.json ANSWERS.csv …

`make` writes a sheet per comparison (ROUGE-L against WMS, SMS, S+WMS) from the outputs of a seed: two summaries side by
side in random order, with neither document nor reference. A judge copies the sheet and writes A, B or = into the four
columns. `key.json` tells which summary came from which model; judges do not get it. `analyse` counts the answers of any
number of judges, and tests by sign whether one side is preferred, ties left out.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from scipy.stats import binomtest

from movers.errors import InputError
from movers.io import align_table, read_records, write_file

CRITERIA = {
    "non-redundancy": "fewer repeated ideas",
    "coherence": "clearly expressed ideas",
    "focus": "ideas free of superfluous details",
    "overall": "effectively communicates the article's content",
}
BASELINE, RIVALS = "rouge", ("wms", "sms", "swms")
TITLES = {"rouge": "ROUGE-L", "wms": "WMS", "sms": "SMS", "swms": "S+WMS"}


class Entry(TypedDict):
    """An item of the key: who is compared, which side is the baseline, and the article."""

    rival: str
    baseline: str
    article: int


@dataclass(frozen=True)
class Count:
    """Answers of all judges to one question about one comparison."""

    rival: str
    criterion: str
    baseline: int
    other: int
    ties: int

    @property
    def share(self) -> float:
        """Share of the rival among the answers that are no ties; 0.5 if there are none."""
        decided = self.baseline + self.other
        return self.other / decided if decided else 0.5

    @property
    def p(self) -> float:
        """Two-sided sign test."""
        decided = self.baseline + self.other
        return float(binomtest(self.other, decided).pvalue) if decided else 1.0


def make(outputs: Mapping[str, Sequence[str]], samples: int, seed: int) -> tuple[dict[str, str], dict[str, Entry]]:
    """Sheets as CSV by rival, and the key: which of A and B is the baseline.

    Only pairs that differ are taken; the same articles for every rival as far as possible.
    """
    draw = random.Random(seed)
    order = draw.sample(range(len(outputs[BASELINE])), len(outputs[BASELINE]))
    sheets: dict[str, str] = {}
    key: dict[str, Entry] = {}
    for rival in RIVALS:
        chosen = [number for number in order if outputs[BASELINE][number] != outputs[rival][number]][:samples]
        file = io.StringIO()
        writer = csv.writer(file)
        writer.writerow(["item", "summary A", "summary B", *CRITERIA])
        for place, number in enumerate(draw.sample(chosen, len(chosen)), 1):
            item = f"{len(sheets) + 1}-{place:03d}"
            pair = [outputs[BASELINE][number], outputs[rival][number]]
            first = draw.random() < 0.5
            writer.writerow([item, *(pair if first else pair[::-1]), *[""] * len(CRITERIA)])
            key[item] = {"rival": rival, "baseline": "A" if first else "B", "article": number}
        sheets[rival] = file.getvalue()
    return sheets, key


def analyse(key: Mapping[str, Entry], answers: Iterable[Mapping[str, object]]) -> list[Count]:
    """Counts for every rival and criterion; an empty cell is no answer."""
    counts = {(rival, criterion): [0, 0, 0] for rival in RIVALS for criterion in CRITERIA}
    for row in answers:
        item = str(row.get("item"))
        if item not in key:
            raise InputError(f"sheets: item: expected an item of the key, but got {item!r}")
        for criterion in CRITERIA:
            answer = str(row.get(criterion) or "").strip().upper()
            if answer not in ("", "A", "B", "="):
                raise InputError(f"sheets: {criterion}[{item}]: expected A, B or =, but got {answer!r}")
            if answer:
                place = 2 if answer == "=" else 0 if answer == key[item]["baseline"] else 1
                counts[key[item]["rival"], criterion][place] += 1
    return [Count(rival, criterion, *found) for (rival, criterion), found in counts.items()]


def table(counts: Sequence[Count]) -> list[str]:
    """Table 6 as Markdown."""
    body = [
        [
            f"{TITLES[BASELINE]} against {TITLES[count.rival]}",
            count.criterion,
            *map(str, (count.baseline, count.other, count.ties)),
            f"{100 * count.share:.0f} %",
            f"{count.p:.3f}",
        ]
        for count in counts
    ]
    heading = ["comparison", "criterion", "ROUGE-L", "other", "=", "other preferred", "p (sign test)"]
    return align_table(heading, body, right=range(2, 7), markdown=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    making = commands.add_parser("make")
    making.add_argument("run", type=Path, help="folder of a run of run.py")
    making.add_argument("folder", type=Path)
    making.add_argument("--seed", type=int, default=0)
    making.add_argument("--samples", type=int, default=100)
    reading = commands.add_parser("analyse")
    reading.add_argument("key", type=Path)
    reading.add_argument("answers", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.command == "analyse":
        rows = [row for path in given.answers for row in read_records(path)]
        print("\n".join(table(analyse(json.loads(given.key.read_text()), rows))))
        return
    outputs = {}
    for row in (BASELINE, *RIVALS):
        path = given.run / f"outputs-{row}-{given.seed}.json"
        if not path.is_file():
            sys.exit(f"{path} is missing: run.py has not finished this seed")
        outputs[row] = json.loads(path.read_text(encoding="utf-8"))
    sheets, key = make(outputs, given.samples, given.seed)
    given.folder.mkdir(parents=True, exist_ok=True)
    for number, sheet in enumerate(sheets.values(), 1):
        write_file(given.folder / f"sheet-{number}.csv", sheet)
    write_file(given.folder / "key.json", json.dumps(key, indent=1) + "\n")


if __name__ == "__main__":
    main()

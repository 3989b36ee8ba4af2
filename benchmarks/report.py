"""`make benchmarks-report`: write every RESULTS.md, list figures of other versions, trace every figure to its row.

A figure is a number with a decimal point, an exponent or commas, or a whole number before "%", "×", "times", "of" or a
unit (UNITS), or after "3 of", or "two thirds", "eight times", "twice as", in the text of README.md, docs/*.md, cards,
and every README.md and RESULTS.md here. Not looked at: front matter, code, addresses of links, comments, what a script
writes between `<!-- table: … -->` (or `options`) and `<!-- end -->`, tables and lists of the pages of agreement and
rewards, which scripts write as a whole, versions ("0.3.0", "Python 3.11"), numbers of layers and "95 %" before an
interval.

`figures.csv` says for each of them, every time and in the order of the document, which suite, table, row and column it
is (the mean over seeds; "COLUMN, n" is the column's number of texts), or its `source` if it is no measurement of ours:
a publication, an option, a definition, a protocol. The row's value, written with as many digits, must be the figure
(before "%" also a hundredth of it).

The command fails if a figure has no row or another value, or if rows are not of this version (see OTHER_VERSIONS in
common.py). `--figures` checks figures only.
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from common import other_version, read_rows, report

from movers.version import VERSION

HERE = Path(__file__).parent
DOCUMENTS = (
    *("README.md", "docs/*.md", "metrics/*/README.md"),
    *("benchmarks/README.md", "benchmarks/*/README.md", "benchmarks/*/RESULTS.md"),
)
SUITES = ("agreement", "mbr", "quality", "rewards", "settings", "speed")
WRITTEN = ("agreement", "rewards")  # their scripts write the whole page
SKIPPED = re.compile(
    r"\A---\n.*?\n---\n|^```.*?^```|<!-- (?:table|options)\b.*?<!-- end[^>]*-->|<!--.*?-->|`[^`\n]+`"
    r"|\]\([^)]*\)|https?://[^\s)]+|Python \d+(?:\.\d+)+|\d+(?:\.\d+){2,}|\blayers? \d+"
    r"|\b95 % (?:confidence )?interval",
    re.DOTALL | re.MULTILINE,
)
UNITS = (
    "times of µs ms s seconds? minutes? hours? kB MB MiB GB GiB texts pairs documents articles summaries utterances "
    "translations sentences words tokens rows graphs prompts seeds steps epochs points columns cases "
    "languages dimensions"
)
FIGURE = re.compile(
    r"(?<![\w.,/@+−-])(?:[+−-]?(?:\d[\d,]*)?\.\d+|\d+e-\d+|[+−-]?\d{1,3}(?:,\d{3})+|(?<=\d of )\d+"
    rf"|[+−-]?\d+(?= ?(?:[%×]|(?:{'|'.join(UNITS.split())})\b)))"
    r"|\b(?:a|one|two|three|four|five|six|seven|eight|nine|ten) (?:times|thirds?|quarters?|fifths?|tenths?)\b"
    r"|\btwice as\b"
)
#: What measures the figures of a table again: suite/table → command; {} is the table.
COMMANDS = {
    r"agreement/clark-table-[137]$": "agreement/run.py --passage --tables qags",
    r"agreement/": "agreement/run.py --tables {}",
    r"mbr/": "mbr/mbr.py measure SAMPLES",
    r"quality/made-up": "quality/made_up.py 40",
    r"quality/model=": "quality/ship.py",
    r"quality/(cross pairs|mutations|other domains|training sizes|people, paper)": "quality/paper.py",
    r"quality/scoring time": "quality/scoring_time.py",
    r"quality/": "quality/people.py",
    r"rewards/amr_": "rewards/amr_to_text/run.py",
    r"rewards/summarization": "rewards/summarization/run.py",
    r"rewards/": "rewards/{}.py",
    r"settings/(stop words and|mass of|direction of)": "settings/static_metrics.py",
    r"settings/(paraphrase above|changed fact)": "settings/meaning.py",
    r"settings/unrelated": "settings/unrelated.py",
    r"speed/start": "speed/bench.py startup",
    r"speed/": "speed/bench.py {}",
}


def figures_of(text: str, written: bool = False) -> Iterator[tuple[str, str]]:
    """The figures of a document in its order, each with the text around it; `written`: without tables and lists.

    >>> [figure for figure, _ in figures_of("`x=.1` has .64 on 3 of 60 texts; 95 % intervals, Table 2, movers 0.3.0.")]
    ['.64', '3', '60']
    """
    text = SKIPPED.sub(lambda skipped: " ", text)
    if written:
        text = re.sub(r"^ *[|-].*$", "", text, flags=re.MULTILINE)
    for match in FIGURE.finditer(text):
        yield match[0], " ".join(text[max(0, match.start() - 30) : match.end() + 20].split())


def agrees(figure: str, value: str, percent: bool) -> bool:
    """Whether a value of a row is the figure, written with as many digits.

    >>> agrees(".64", "0.6443", False), agrees("2,085", "2085", False), agrees("−.003", "-0.0034", False)
    (True, True, True)
    >>> agrees(".65", "0.6443", False), agrees("64", "0.6443", True)
    (False, True)
    """
    number = re.match(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", value.replace("−", "-").replace(",", ""))
    if number is None:
        return False
    plain = figure.replace("−", "-").replace(",", "").replace("+", "")
    digits = len(plain.partition(".")[2])
    shown = {f"{scale * float(number[0]):.{digits}f}" for scale in (1, 100 if percent else 1)}
    return f"{float(plain):.{digits}f}" in shown


def check_figures(
    document: str, text: str, declared: Sequence[Mapping[str, str]], rows: Mapping[tuple[str, ...], list[str]]
) -> Iterator[tuple[str, bool]]:
    """One line per figure of a document, and whether it is right."""
    written = document in {f"benchmarks/{suite}/RESULTS.md" for suite in WRITTEN}
    left = list(declared)
    for figure, around in figures_of(text, written):
        at = next((index for index, entry in enumerate(left) if entry["figure"] == figure), None)
        if at is None:
            yield f"{document}: {figure}  is not in figures.csv, or not at this place: … {around} …", False
            continue
        for entry in left[:at]:
            yield f"{document}: {entry['figure']}  is in figures.csv, but not before {figure} in the document", False
        entry, left = left[at], left[at + 1 :]
        place = tuple(entry[field] for field in ("suite", "table", "row", "column"))
        values = rows.get(place, [])
        if not entry["suite"]:
            yield f"{document}: {figure}  {entry['source'] or 'no row and no source'}", bool(entry["source"])
        elif not values:
            yield f"{document}: {figure}  no such row: {' | '.join(place)}", False
        else:
            value = values[0] if len(values) == 1 else str(statistics.fmean(map(float, values)))
            right = agrees(figure, value, percent=f"{figure} %" in around)
            line = f"{document}: {figure}  {place[0]} {' | '.join(place[1:])}"
            yield line if right else f"{line} has {value}", right
    for entry in left:
        yield f"{document}: {entry['figure']}  is in figures.csv, but not at the end of the document", False


def all_figures(root: Path = HERE.parent) -> list[tuple[str, bool]]:
    """`check_figures` of every document."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for suite in SUITES:
        for row in read_rows(root / "benchmarks" / suite):
            rows.setdefault((suite, row["table"], row["row"], row["column"]), []).append(row["value"])
            if row.get("n"):
                rows.setdefault((suite, row["table"], row["row"], f"{row['column']}, n"), []).append(row["n"])
    with (root / "benchmarks" / "figures.csv").open(encoding="utf-8", newline="") as file:
        declared = list(csv.DictReader(file))
    lines: list[tuple[str, bool]] = []
    for path in (path for pattern in DOCUMENTS for path in sorted(root.glob(pattern))):
        document = path.relative_to(root).as_posix()
        figures = [entry for entry in declared if entry["document"] == document]
        lines += check_figures(document, path.read_text(encoding="utf-8"), figures, rows)
    return lines


def stale() -> Iterator[tuple[str, bool]]:
    """One line per table with figures of other versions: what measures them again, or why they are valid."""
    for suite in SUITES:
        counts: dict[tuple[str, str], int] = {}
        for row in read_rows(HERE / suite):
            if row["version"] != VERSION:
                key = row["row"] if row["table"] == "environment" else row["table"], row["version"]
                counts[key] = counts.get(key, 0) + 1
        for (table, version), count in counts.items():
            valid = other_version(suite, table, version)
            commands = (text for pattern, text in COMMANDS.items() if re.match(pattern, f"{suite}/{table}"))
            command = next((f"python benchmarks/{text.format(table.split(',')[0])}" for text in commands), "no script")
            yield f"{suite}, {table}: {count} of {version}; {valid or command}", bool(valid)


def write_pages() -> None:
    """Every RESULTS.md from its results.csv."""
    sys.path.append(str(HERE / "agreement"))
    import pages
    import rewards.report
    from tables import TABLES

    pages.write_page(HERE / "agreement", TABLES)
    rewards.report.main()
    for suite in SUITES:
        if suite not in WRITTEN:
            report(HERE / suite)


def main() -> int:
    only_figures = "--figures" in sys.argv[1:]
    if not only_figures:
        write_pages()
    old, figures = [] if only_figures else list(stale()), all_figures()
    for line, right in [*figures, *old]:
        print(line if right else f"! {line}")
    wrong = sum(not right for _, right in figures), sum(not right for _, right in old)
    print(f"{len(figures)} figures, {wrong[0]} without their row; {wrong[1]} tables of another version than {VERSION}")
    return int(any(wrong))


if __name__ == "__main__":
    raise SystemExit(main())

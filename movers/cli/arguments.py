"""Arguments shared by several commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TextIO, TypeAlias

from movers.errors import InputError, RowError
from movers.io import TextGroups, Texts, check_output, printable, write_file
from movers.io.writer import is_direct
from movers.registry import METRICS, parse_metric, parse_options, split_metrics

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
METRIC_HELP = "NAME or NAME[key=value,…]; separate several with commas"
TableFormat = Literal["text", "markdown", "csv", "json"]
_TABLE_FORMATS: dict[str, TableFormat] = {".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}


def add_compared_texts(parser: argparse.ArgumentParser) -> None:
    """Files of references or sources, and the columns to read."""
    for flags, what in (
        (["-r", "--references"], "reference texts; pass several files for several references per row"),
        (["--sources"], "source documents, for reference-free metrics"),
    ):
        parser.add_argument(*flags, nargs="+", action="extend", default=[], metavar="FILE", help=what)
    for name in ("prediction", "reference", "source"):
        parser.add_argument(
            f"--{name}-column",
            metavar="NAME",
            help=f"column of the {name}s (default: found by common names such as {name!r})",
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of a metric."""
    parser.add_argument("-m", "--model", help="encoder, short for --set model=…")
    parser.add_argument(
        "-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="option of the metric; repeatable"
    )


def options_of(arguments: argparse.Namespace) -> dict[str, object]:
    """The options that `add_options` declares, as keyword arguments of a metric."""
    options = parse_options(arguments.set)
    return options if arguments.model is None else {**options, "model": arguments.model}


class ChosenMetric(NamedTuple):
    """A metric as typed by the user (its label in tables), with its name and options."""

    label: str
    name: str
    options: dict[str, object]


def choose_metrics(
    text: str, more: Mapping[str, object] | None = None, others: Iterable[str] = ()
) -> list[ChosenMetric]:
    """Parse metrics from the command line; options are validated before any text is read.

    Parameters
    ----------
    text : str
        `wms,moverscore[n_gram=2]`
    more : mapping, optional
        Options for all metrics; they override those in brackets.
    others : iterable of str
        Further names that are valid here (`rouge`).

    >>> [(each.name, each.options) for each in choose_metrics("wms,rouge[variant=rouge1]", others=["rouge"])]
    [('wms', {}), ('rouge', {'variant': 'rouge1'})]
    """
    chosen: list[ChosenMetric] = []
    known = [*METRICS, *others]
    for label in split_metrics(text):
        name, _, options = (part.strip() for part in label.partition("["))
        if name in METRICS:
            metric, own = parse_metric(label)
            own.update(more or {})
            metric.parse(own)
        elif name in known:
            own = parse_options(split_metrics(options.removesuffix("]")))
        else:
            raise InputError(f"metric: expected one of {', '.join(known)}, but got {name!r}{_hint(name, known)}")
        chosen.append(ChosenMetric(label, name, own))
    if more and chosen and all(each.name not in METRICS for each in chosen):
        raise InputError(f"{chosen[0].name}: expected no --set and no --model, but its own options in brackets")
    labels = [each.label for each in chosen]
    if not labels:
        raise InputError(f"metric: expected at least one metric, but got {text!r}")
    if len(set(labels)) < len(labels):
        raise InputError(f"metric: expected different metrics, but got {', '.join(labels)}")
    return chosen


def _hint(name: str, known: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_rows(rows: Sequence[tuple[str, int]]) -> None:
    """Check that all files have the same number of rows, at least one."""
    (first, count), *others = rows
    if not count:
        raise InputError(f"{first}: expected at least one row, but got none")
    for path, own in others:
        if own != count:
            raise InputError(f"expected equally many rows, but {first} has {count} and {path} has {own}")


def check_compared(command: str, arguments: argparse.Namespace, needed: Mapping[str, str]) -> None:
    """What the metrics compare with must be there, and nothing else; `needed` is by metric what it compares with."""
    for metric, argument in needed.items():
        if not getattr(arguments, argument):
            raise InputError(f"{metric}: expected --{argument} FILE")
    for argument in ("references", "sources"):
        option = f"{argument[:-1]}_column"
        if getattr(arguments, argument) and argument not in needed.values():
            raise InputError(f"{command}: --{argument}: expected none, because {', '.join(needed)} would not read them")
        if getattr(arguments, option) is not None and not getattr(arguments, argument):
            raise InputError(f"{command}: --{option.replace('_', '-')}: expected --{argument} FILE beside it")


def check_other_file(command: str, output: str | None, inputs: Iterable[tuple[str, str]]) -> None:
    """What is written must be none of the files that are read; `inputs` are arguments with their files."""
    if output is None or is_direct(output) or not os.path.exists(output):
        return
    for argument, path in inputs:
        if os.path.exists(path) and os.path.samefile(output, path):
            raise InputError(f"{command}: --output: expected another file than the {argument}, but got {output}")


def row_in_file(error: RowError, predictions: Texts, compared: Mapping[str, TextGroups]) -> str:
    """Where the row that an error is about stands: argument, file, and line or row from 1."""
    if error.argument in compared:
        return compared[error.argument].where_row(error.row, error.place or 0)
    return predictions.where_row(error.row)


def check_picture(path: str, suffixes: Sequence[str] = (".html", ".svg", ".png")) -> None:
    """Check that the suffix of an image file is supported and that the file is writable."""
    if Path(path).suffix.lower() not in suffixes:
        raise InputError(f"{path}: cannot write it: expected a name that ends in {' or '.join(suffixes)}")
    check_output(path, suffixes)


# --- tables ----------------------------------------------------------------------------------------------------------


def add_resampling(parser: argparse.ArgumentParser) -> None:
    """Arguments of `correlate` and `compare`: resampling, and the format of the table."""
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (default: 1000)")
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--format", choices=list(_TABLE_FORMATS.values()), help="default: by the suffix of --output, otherwise text"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="same as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the table to FILE instead of printing it")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def table_format(arguments: argparse.Namespace) -> TableFormat:
    """Format of the table; checks that the output can be written."""
    output = arguments.output
    if output is None:
        return arguments.format or "text"
    check_output(output, [] if arguments.format else list(_TABLE_FORMATS))
    return arguments.format or _TABLE_FORMATS.get(Path(output.removesuffix(".gz")).suffix.lower(), "text")


def say(text: str, file: TextIO | None = None) -> None:
    """Print text that may contain control characters, with those escaped."""
    print(printable(text), file=file)


def print_table(table: str, arguments: argparse.Namespace) -> None:
    """Print a table, or write it to `--output`."""
    if arguments.output is None:
        print(printable(table) if sys.stdout.isatty() else table, end="")
    else:
        write_file(arguments.output, table)

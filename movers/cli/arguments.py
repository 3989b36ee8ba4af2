"""Arguments, files and tables that several commands share."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, TypeAlias

from movers.errors import InputError, RowError
from movers.io import Table, TextGroups, Texts, check_output, is_stream, printable, write_file
from movers.registry import METRICS, parse_metric, parse_options, split_metrics

if TYPE_CHECKING:
    from movers.scorer import Row

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
METRIC_HELP = "NAME or NAME[key=value,…]; separate several with commas"
TableFormat = Literal["text", "markdown", "csv", "json"]
_TABLE_FORMATS: dict[str, TableFormat] = {".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}

# --- metrics ---------------------------------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of a metric."""
    parser.add_argument("-m", "--model", help="encoder, short for --set model=…")
    description = "option of every metric; repeatable; options in brackets win"
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help=description)


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
    text: str, shared: Mapping[str, object] | None = None, others: Iterable[str] = ()
) -> list[ChosenMetric]:
    """Parse metrics from the command line, `wms,moverscore[n_gram=2]`, and validate their options.

    `shared` are options of all metrics (those in brackets win), `others` further names that are valid (`rouge`).

    >>> [(metric.name, metric.options) for metric in choose_metrics("wms,rouge[variant=rouge1]", others=["rouge"])]
    [('wms', {}), ('rouge', {'variant': 'rouge1'})]
    """
    metrics: list[ChosenMetric] = []
    known = [*METRICS, *others]
    for label in split_metrics(text):
        name, _, options = (part.strip() for part in label.partition("["))
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(f"metric: expected one of {', '.join(known)}, but got {name!r}{hint}")
        if name in METRICS:
            spec, own = parse_metric(label)
            own = {**(shared or {}), **own}
            spec.parse(own)
        else:
            own = parse_options(split_metrics(options.removesuffix("]")))
        metrics.append(ChosenMetric(label, name, own))
    if shared and metrics and all(metric.name not in METRICS for metric in metrics):
        raise InputError(f"{metrics[0].name}: --set and --model do not apply; pass its options in brackets")
    labels = [metric.label for metric in metrics]
    if not labels:
        raise InputError(f"metric: expected at least one metric, but got {text!r}")
    if len(set(labels)) < len(labels):
        raise InputError(f"metric: expected different metrics, but got {', '.join(labels)}")
    return metrics


# --- files of texts --------------------------------------------------------------------------------------------------


def add_compared_texts(parser: argparse.ArgumentParser) -> None:
    """Files of references or sources, and the columns to read."""
    for flags, description in (
        (["-r", "--references"], "reference texts; pass several files for several references per row"),
        (["--sources"], "source documents, for reference-free metrics"),
    ):
        parser.add_argument(*flags, nargs="+", action="extend", default=[], metavar="FILE", help=description)
    add_columns(parser)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Columns of files of texts."""
    for name in ("prediction", "reference", "source"):
        description = f"column of the {name}s (default: found by common names such as {name!r})"
        parser.add_argument(f"--{name}-column", metavar="NAME", help=description)


def check_compared(command: str, arguments: argparse.Namespace, compared_with: Mapping[str, str]) -> None:
    """References and sources must be passed if the metrics need them, and only then (metric → what it needs)."""
    for metric, argument in compared_with.items():
        if not getattr(arguments, argument):
            raise InputError(f"{metric}: expected --{argument} FILE")
    for argument in ("references", "sources"):
        column = f"{argument[:-1]}_column"
        if getattr(arguments, argument) and argument not in compared_with.values():
            raise InputError(f"{command}: --{argument}: {', '.join(compared_with)} would not read them")
        if getattr(arguments, column) is not None and not getattr(arguments, argument):
            raise InputError(f"{command}: --{column.replace('_', '-')} requires --{argument} FILE")


def check_other_file(command: str, output: str | None, inputs: Iterable[tuple[str, str]]) -> None:
    """The output must be none of the files that are read (argument, file)."""
    if output is None or is_stream(output) or not os.path.exists(output):
        return
    for argument, path in inputs:
        if os.path.exists(path) and os.path.samefile(output, path):
            raise InputError(f"{command}: --output: expected another file than the {argument}, but got {output}")


def check_rows(counts: Sequence[tuple[str, int]]) -> None:
    """All files must have the same number of rows, at least one (file, count)."""
    (first, rows), *others = counts
    if not rows:
        raise InputError(f"{first}: expected at least one row, but got none")
    for path, count in others:
        if count != rows:
            raise InputError(f"expected equally many rows, but {first} has {rows} and {path} has {count}")


@dataclass(frozen=True)
class InputFiles:
    """Predictions with their references or sources, checked and counted; each iteration reads the files again."""

    predictions: Texts
    compared: dict[str, TextGroups]  # "references" and "sources", as far as they are needed
    rows: int
    digests: dict[str, str]  # of each file

    @classmethod
    def read(cls, arguments: argparse.Namespace, files: Mapping[str, Sequence[str]]) -> InputFiles:
        """Read and check files by argument: predictions (one file), references, sources."""
        columns = {argument: getattr(arguments, f"{argument[:-1]}_column") for argument in files}
        tables: dict[str, Table] = {}  # several arguments may share standard input
        texts: dict[str, list[Texts]] = {argument: [] for argument in files}
        counts, digests = [], {}
        for argument, paths in files.items():
            for number, path in enumerate(paths, start=1):
                if path not in tables:
                    tables[path] = Table(path, columns[argument] or next(filter(None, columns.values()), None))
                file = Texts(tables[path], argument, columns[argument])
                rows, digest = file.survey(lists=argument != "predictions")
                counts.append((path, rows))
                digests[f"{argument} (file {number})" if len(paths) > 1 else argument] = f"sha256 {digest[:16]}"
                texts[argument].append(file)
        check_rows(counts)
        (predictions,) = texts.pop("predictions")
        for argument, others in texts.items():
            for file in others:
                if (
                    file.table is predictions.table
                    and file.column == predictions.column
                    and (file.column or file.table.piped)
                ):
                    same = f"the same column {file.column!r}" if file.column else "the same lines"
                    raise InputError(
                        f"{argument}: {file.table.path}: expected other texts than the predictions, but got {same}; "
                        f"--prediction-column and --{argument[:-1]}-column choose columns"
                    )
        return cls(predictions, {name: TextGroups(others) for name, others in texts.items()}, counts[0][1], digests)

    def __iter__(self) -> Iterator[Row]:
        from movers.scorer import Row

        for prediction, *groups in zip(self.predictions, *self.compared.values(), strict=True):
            yield Row(prediction, **dict(zip(self.compared, groups, strict=True)))

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Errors about a row that name its file and line."""
        try:
            yield
        except RowError as error:
            if error.argument in self.compared:
                raise error.at(self.compared[error.argument].where_row(error.row, error.place or 0)) from None
            raise error.at(self.predictions.where_row(error.row)) from None


# --- output ----------------------------------------------------------------------------------------------------------


def check_picture(path: str, suffixes: Sequence[str] = (".html", ".svg", ".png", ".json")) -> None:
    """Check that the suffix of an image file is supported and that the file is writable."""
    if Path(path).suffix.lower() not in suffixes:
        raise InputError(f"{path}: cannot write it: expected a name that ends in {' or '.join(suffixes)}")
    check_output(path, suffixes)


def add_resampling(parser: argparse.ArgumentParser) -> None:
    """Arguments of `correlate` and `compare`: resampling, and the format of the table."""
    add = parser.add_argument
    add("--resamples", type=int, default=1000, metavar="N", help="bootstrap resamples (default: 1000)")
    add("--confidence", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    add("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--format", choices=list(_TABLE_FORMATS.values()), help="default: by the suffix of --output, otherwise text")
    add("--json", action="store_const", const="json", dest="format", help="same as --format json")
    add("-o", "--output", metavar="FILE", help="write the table to FILE instead of printing it")
    add("-q", "--quiet", action="store_true", help="no progress bar")


def table_format(arguments: argparse.Namespace) -> TableFormat:
    """Format of the table; checks that the output can be written."""
    output = arguments.output
    if output is None:
        return arguments.format or "text"
    check_output(output, [] if arguments.format else list(_TABLE_FORMATS))
    return arguments.format or _TABLE_FORMATS.get(Path(output.removesuffix(".gz")).suffix.lower(), "text")


def print_table(table: str, arguments: argparse.Namespace) -> None:
    """Print a table, or write it to `--output`."""
    if arguments.output is None:
        print(printable(table) if sys.stdout.isatty() else table, end="")
    else:
        write_file(arguments.output, table)


def say(text: str, file: TextIO | None = None) -> None:
    """Print text that may contain control characters, with those escaped."""
    print(printable(text), file=file)

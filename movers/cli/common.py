"""Arguments, files and tables that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TextIO, TypeAlias

from movers.errors import InputError, RowError
from movers.inputs import did_you_mean
from movers.io import Table, Texts, is_stream, printable
from movers.registry import METRICS, parse_metric, parse_options, split_metrics

if TYPE_CHECKING:
    from movers.scorer import Row

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
LEXICAL = ("rouge", "bleu", "chrf")  # of other packages, for comparison
METRIC_HELP = f"one of {', '.join(METRICS)}; options follow in brackets, as in wms[stopwords=none]"
SEVERAL_HELP = f"{METRIC_HELP}; separate several with commas"
PICTURES = (".html", ".svg", ".png", ".json")


def say(text: str, file: TextIO | None = None) -> None:
    """Print text that may contain control characters, with those escaped."""
    print(printable(text), file=file)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of a metric."""
    add = parser.add_argument_group("options of the metrics (`movers options METRIC` lists all)").add_argument
    add("-m", "--model", help="encoder: a Hub id, a folder or a file of word vectors")
    add("--lang", metavar="CODE", help="language of the texts, such as de (default: en)")
    add("--device", help="where the encoder runs: cpu, cuda, mps (default: auto)")
    add("--batch-size", type=int, metavar="N", help="texts per forward pass of the encoder")
    any_option = "any option of the metrics; repeatable; options in brackets after a metric's name win"
    add("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help=any_option)


def options_of(arguments: argparse.Namespace) -> dict[str, object]:
    """The options that `add_options` declares, as keyword arguments of a metric."""
    flags = {name: getattr(arguments, name) for name in ("model", "lang", "device", "batch_size")}
    return parse_options(arguments.set) | {name: value for name, value in flags.items() if value is not None}


def choose_metrics(
    text: str, shared: Mapping[str, object], lexical: bool = False
) -> dict[str, tuple[str, dict[str, object]]]:
    """Parse metrics from the command line and validate their options: metric as typed → name, options.

    `shared` are options of all metrics but the `lexical` ones, if those are allowed; options in brackets win.

    >>> choose_metrics("wms,rouge[variant=rouge1]", {"stopwords": None}, lexical=True)
    {'wms': ('wms', {'stopwords': None}), 'rouge[variant=rouge1]': ('rouge', {'variant': 'rouge1'})}
    """
    metrics = {}
    labels = split_metrics(text)
    for label in labels:
        name, _, inner = label.partition("[")
        if name in LEXICAL:
            if not lexical:
                raise InputError(f"{name} is for comparison: use it in `movers correlate` or `movers compare`")
            metrics[label] = name, parse_options(split_metrics(inner.removesuffix("]")))
        else:
            if lexical and name not in METRICS:
                names = *METRICS, *LEXICAL
                hint = did_you_mean(name, names)
                raise InputError(f"metric: expected one of {', '.join(names)}, but got {name!r}{hint}")
            spec, options = parse_metric(label)
            metrics[label] = spec.name, {**shared, **options}
            spec.parse(metrics[label][1])
    if not labels or len(metrics) < len(labels):
        raise InputError(f"metric: expected different metrics, but got {text!r}")
    return metrics


def add_compared_texts(parser: argparse.ArgumentParser) -> None:
    """Files of references or sources, and the columns to read."""
    for flags, description in (
        (["-r", "--references"], "reference texts; several files give several references per row"),
        (["--sources"], "source documents, for reference_free_summary_quality"),
    ):
        parser.add_argument(*flags, nargs="+", action="extend", default=[], metavar="FILE", help=description)
    for name in ("prediction", "reference", "source"):
        description = f"column of the {name}s (default: the one with a common name, such as {name!r})"
        parser.add_argument(f"--{name}-column", metavar="NAME", help=description)


def check_other_file(output: str | None, inputs: Iterable[str]) -> None:
    """Check that the output is none of the input files."""
    if output is None or is_stream(output) or not os.path.exists(output):
        return
    for path in inputs:
        if os.path.exists(path) and os.path.samefile(output, path):
            raise InputError(f"--output: expected another file than the input {path}, but got {output}")


class InputFiles:
    """Predictions with their references or sources, checked and counted; each iteration reads the files again."""

    def __init__(self, arguments: argparse.Namespace, files: Mapping[str, Sequence[str]]) -> None:
        """Read and check files by argument: predictions, references, sources."""
        check_other_file(arguments.output, [path for paths in files.values() for path in paths])
        columns = {argument: getattr(arguments, f"{argument[:-1]}_column") for argument in files}
        tables: dict[str, Table] = {}  # several arguments may share standard input
        self.texts: dict[str, list[Texts]] = {argument: [] for argument in files}
        self.digests: dict[str, str] = {}
        counts: dict[str, int] = {}
        for argument, paths in files.items():
            if not paths:
                raise InputError(f"--{argument} FILE is required: the metric compares predictions with {argument}")
            for number, path in enumerate(paths, start=1):
                if path not in tables:
                    named = (columns[name] for name in files if path in files[name])
                    tables[path] = Table(path, next(filter(None, named), None))
                file = Texts(tables[path], argument, columns[argument])
                self.texts[argument].append(file)
                counts[path], digest = file.survey()
                self.digests[f"{argument} (file {number})"] = f"sha256 {digest[:16]}"
        (first, self.rows), *others = counts.items()
        if not self.rows:
            raise InputError(f"{first}: expected at least one row, but got none")
        for path, count in others:
            if count != self.rows:
                raise InputError(f"expected equally many rows, but {first} has {self.rows} and {path} has {count}")

    def joined(self, argument: str) -> Iterator[list[str]]:
        """For each row, its texts in all files of an argument."""
        for groups in zip(*(file.groups() for file in self.texts[argument]), strict=True):
            yield [text for group in groups for text in group]

    def __iter__(self) -> Iterator[Row]:
        from movers.scorer import Row

        compared = [argument for argument in self.texts if argument != "predictions"]
        for prediction, *groups in zip(self.texts["predictions"][0], *map(self.joined, compared), strict=True):
            yield Row(prediction, **dict(zip(compared, groups, strict=True)))

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Let errors about a row name its file and line."""
        try:
            yield
        except RowError as error:
            place = error.place or 0
            for file in self.texts[error.argument]:
                texts = next(islice(file.groups(), error.row, None))
                if place < len(texts):
                    raise error.at(file.where_row(error.row)) from None
                place -= len(texts)
            raise

"""`movers score`: score a file of predictions, row by row, with one metric or several."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from movers.cli.arguments import (
    METRIC_HELP,
    ChosenMetric,
    Subparsers,
    add_compared_texts,
    add_options,
    check_rows,
    choose_metrics,
    options_of,
)
from movers.errors import InputError
from movers.io import Table, TextGroups, Texts, check_output, open_output
from movers.registry import METRICS

if TYPE_CHECKING:
    from movers.scores.engine import Example, PairMetric

_SUFFIXES = (".txt", ".csv", ".jsonl")
_COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "score",
        usage="movers score METRIC -p FILE (-r FILE … | --sources FILE …) [options]",
        help="score a file of texts against files of references",
        description="Score predictions against references (or sources) row by row; print signature and mean score.",
        epilog="Files: one text per line, or .jsonl, .json, .csv, .tsv, .parquet with a column of texts; .gz may "
        "follow; - is standard input. `movers options NAME` lists the options of a metric.",
    )
    parser.add_argument("metric", metavar="METRIC", help=f"{METRIC_HELP}. Metrics: {', '.join(METRICS)}")
    parser.add_argument("-p", "--predictions", required=True, metavar="FILE", help="the texts to score")
    add_compared_texts(parser)
    add_options(parser)
    parser.add_argument("--threads", type=int, help="threads that compare texts (default: all processors)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write one score per row: .txt, .csv or .jsonl; .gz may follow"
    )
    parser.add_argument(
        "--alignment", action="store_true", help="add alignments to --json or a .jsonl output: what was matched"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the whole result as JSON; a list for several metrics"
    )
    parser.add_argument("--percent", action="store_true", help="print scores from 0 to 100 instead of 0 to 1")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score every row with every metric, and print or write what was asked for."""
    more = options_of(arguments)
    if arguments.threads is not None:
        more["threads"] = arguments.threads
    if arguments.quiet:
        more["progress"] = False
    if arguments.alignment:
        more["return_alignment"] = True
    chosen = choose_metrics(arguments.metric, more)
    labels = [metric.label for metric in chosen]
    with ExitStack() as stack:
        if arguments.output is not None:
            check_output(arguments.output, _SUFFIXES)
        inputs = _read(arguments, chosen)
        metrics = _build(chosen, inputs)
        output = None
        if arguments.output is not None:
            output = _ScoreFile(stack.enter_context(open_output(arguments.output)), arguments.output, labels)
        tallies = [_Tally(keep_examples=arguments.json) for _ in metrics]
        for index, examples in enumerate(zip(*(_examples(metric, inputs) for metric in metrics), strict=True)):
            for tally, example in zip(tallies, examples, strict=True):
                tally.add(example)
            if output is not None:
                output.write(index, examples)
    if arguments.json:
        from movers.scores.engine import collect

        results = [collect(metric, tally.examples) for metric, tally in zip(metrics, tallies, strict=True)]
        named = [{"metric": label, **result} for label, result in zip(labels, results, strict=True)]
        print(json.dumps(named if len(named) > 1 else results[0], ensure_ascii=False))
        return 0
    for label, metric, tally in zip(labels, metrics, tallies, strict=True):
        score = tally.corpus_score(metric)
        print(f"{metric.signature} = {f'{100 * score:.2f} %' if arguments.percent else f'{score:.4f}'}")
        for name, count in tally.counts.items():
            if count:
                who = f"{label}: " if len(labels) > 1 else ""
                print(f"  {who}{name}: {count} of {len(tally.scores)}", file=sys.stderr)
    return 0


# --- input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Inputs:
    """Predictions and what they are compared with, counted and checked; read again by every metric."""

    predictions: Texts
    compared: dict[str, TextGroups]  # "references" or "sources" → their texts
    rows: int


def _read(arguments: argparse.Namespace, metrics: Sequence[ChosenMetric]) -> _Inputs:
    tables: dict[str, Table] = {}  # so that standard input serves several arguments

    def texts(path: str, argument: str) -> Texts:
        column = getattr(arguments, f"{argument[:-1]}_column")
        if path not in tables:
            tables[path] = Table(path, column)
        return Texts(tables[path], argument, column)

    compared = {}
    for metric in metrics:
        argument = METRICS[metric.name].compared_with
        if not getattr(arguments, argument):
            raise InputError(f"{metric.name}: expected --{argument} FILE")
        compared[argument] = TextGroups([])
    predictions = texts(arguments.predictions, "predictions")
    for argument in compared:
        compared[argument] = TextGroups([texts(path, argument) for path in getattr(arguments, argument)])
    rows = predictions.count()
    others = [
        (file.table.path, count)
        for groups in compared.values()
        for file, count in zip(groups.files, groups.counts(), strict=True)
    ]
    check_rows([(predictions.table.path, rows), *others])
    return _Inputs(predictions, compared, rows)


def _build(metrics: Sequence[ChosenMetric], inputs: _Inputs) -> list[PairMetric[object]]:
    """The metrics, ready to score; those with the same encoder reuse one forward pass per text."""
    from movers.encoders import SharedPass
    from movers.scores.options import PairOptions
    from movers.weights import Corpus

    shared = SharedPass()
    built = []
    for metric in metrics:
        spec = METRICS[metric.name]
        options = spec.parse(metric.options)
        if metric is not metrics[0]:
            options = replace(options, progress=False)  # one bar is enough
        if isinstance(options, PairOptions):
            options = replace(options, shared_pass=shared)
        built.append(spec.build(options, Corpus(inputs.predictions, inputs.compared[spec.compared_with])))
    return built


def _examples(metric: PairMetric[object], inputs: _Inputs) -> Iterator[Example]:
    from movers.scores.engine import score_stream

    groups = inputs.compared[METRICS[metric.name].compared_with]
    return score_stream(metric, zip(inputs.predictions, groups, strict=True), total=inputs.rows)


# --- output ----------------------------------------------------------------------------------------------------------


@dataclass
class _Tally:
    """What is kept of the examples of a metric: scores and counts, the examples themselves only on request."""

    keep_examples: bool
    scores: array[float] = field(default_factory=lambda: array("d"))
    distances: array[float] = field(default_factory=lambda: array("d"))
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        self.scores.append(example.score)
        self.distances.append(math.nan if example.distance is None else example.distance)
        for name in self.counts:
            self.counts[name] += getattr(example, name.removeprefix("n_"))
        if self.keep_examples:
            self.examples.append(example)

    def corpus_score(self, metric: PairMetric[object]) -> float:
        from movers.scores.engine import corpus_score

        distances = [None if math.isnan(distance) else distance for distance in self.distances]
        return corpus_score(metric, self.scores, distances)


class _ScoreFile:
    """One row per prediction: text (the score alone), CSV, or JSON Lines with all that a metric says of a pair."""

    def __init__(self, file: IO[str], path: str, labels: Sequence[str]) -> None:
        self.file = file
        self.suffix = Path(path.removesuffix(".gz")).suffix.lower()
        self.labels = labels
        self.table = csv.writer(file, lineterminator="\n", delimiter="," if self.suffix == ".csv" else "\t")
        if self.suffix == ".csv":
            self.table.writerow(["index", *(labels if len(labels) > 1 else ["score"])])

    def write(self, index: int, examples: Sequence[Example]) -> None:
        if self.suffix == ".jsonl":
            found = [_as_record(example) for example in examples]
            own = found[0] if len(found) == 1 else dict(zip(self.labels, found, strict=True))
            self.file.write(json.dumps({"index": index, **own}, ensure_ascii=False) + "\n")
        else:
            scores = [example.score for example in examples]
            self.table.writerow([index, *scores] if self.suffix == ".csv" else scores)


def _as_record(example: Example) -> dict[str, object]:
    record: dict[str, object] = {"score": example.score, **example.parts}
    if example.distance is not None:
        record["distance"] = example.distance
    return record if example.alignments is None else {**record, "alignments": example.alignments}

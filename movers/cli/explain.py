"""`movers explain`: the alignment of a pair as a table or picture, or a report on a whole file."""

from __future__ import annotations

import argparse
from typing import Any

from movers.cli.arguments import PICTURES, InputFiles, Subparsers, add_columns, add_options, options_of, say
from movers.errors import InputError
from movers.io import check_output, write_file
from movers.registry import METRICS, MetricSpec, parse_metric


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        usage="movers explain METRIC (--prediction TEXT (--reference | --source) TEXT … | --file FILE) [options]",
        help="show the alignment of a pair, or write a report on a file",
        description="Score a prediction and show its alignment, or score a file and write a report.",
        epilog="Without -o the largest flows are printed. With --file (.jsonl, .json, .csv, .tsv or .parquet with "
        "columns of predictions and of references or sources), -o report.html receives the distribution of scores, the "
        "ten best and worst rows with their alignments, and the rows that were empty, truncated or unfiltered.",
    )
    add = parser.add_argument
    add("metric", metavar="METRIC", help=f"NAME or NAME[key=value,…]. Metrics: {', '.join(METRICS)}")
    add("--prediction", metavar="TEXT", help="text to score")
    add("--reference", metavar="TEXT", action="append", default=[], help="reference text; repeatable")
    add("--source", metavar="TEXT", action="append", default=[], help="source document; repeatable")
    add("--file", metavar="FILE", help="file to report on")
    add_columns(parser)
    add_options(parser)
    add("-o", "--output", metavar="FILE", help=".html, .svg, .png or .json; .html for a report")
    add("-q", "--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Explain a pair or a file."""
    spec, bracketed = parse_metric(arguments.metric)
    options: dict[str, Any] = {**options_of(arguments), **bracketed}
    spec.parse(options)
    argument = spec.compared_with.removesuffix("s")
    if arguments.file is not None:
        _report(spec, options, arguments)
        return
    texts = getattr(arguments, argument)
    if arguments.prediction is None or not texts:
        raise InputError(f"{spec.name}: expected --prediction TEXT and --{argument} TEXT, or --file FILE")
    if arguments.output is not None:
        check_output(arguments.output, PICTURES)
    from movers import explain

    explanation = explain(spec.name, arguments.prediction, **{argument: texts}, **options)
    if arguments.output is None:
        say(str(explanation))
    else:
        explanation.save(arguments.output)
        say(f"{explanation.signature} = {explanation.score:.4g}\nwrote {arguments.output}")


def _report(spec: MetricSpec, options: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.output is None:
        raise InputError("--file requires -o report.html")
    check_output(arguments.output, (".html",))
    inputs = InputFiles(arguments, {"predictions": [arguments.file], spec.compared_with: [arguments.file]})
    from movers.pictures import report

    options.setdefault("progress", False if arguments.quiet else None)
    with inputs.locate_errors():
        result = report(spec.name, inputs, total=inputs.rows, **options)
    write_file(arguments.output, result.html())
    say(f"{result.signature} = {sum(result.scores) / inputs.rows:.4g}")
    for flag, rows in result.flagged.items():
        if rows:
            say(f"  n_{flag}: {len(rows)} of {inputs.rows}")
    say(f"wrote {arguments.output}")

"""`movers explain`: the alignment of a pair as a table or picture, or a report on a whole file."""

from __future__ import annotations

import argparse
from typing import Any

from movers.cli.arguments import InputFiles, Subparsers, add_columns, add_options, check_picture, options_of, say
from movers.errors import InputError
from movers.io import write_file
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
    parser.add_argument("metric", metavar="METRIC", help=f"NAME or NAME[key=value,…]. Metrics: {', '.join(METRICS)}")
    parser.add_argument("--prediction", metavar="TEXT", help="text to score")
    parser.add_argument("--reference", metavar="TEXT", action="append", default=[], help="reference text; repeatable")
    parser.add_argument("--source", metavar="TEXT", action="append", default=[], help="source document; repeatable")
    parser.add_argument("--file", metavar="FILE", help="file to report on")
    add_columns(parser)
    add_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help=".html, .svg, .png or .json; .html for a report")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain a pair or a file."""
    spec, own = parse_metric(arguments.metric)
    options: dict[str, Any] = {**options_of(arguments), **own}
    spec.parse(options)
    texts = {"prediction": arguments.prediction, "reference": arguments.reference, "source": arguments.source}
    argument = spec.compared_with.removesuffix("s")
    unused = "source" if argument == "reference" else "reference"
    if arguments.file is not None:
        if any(texts.values()):
            raise InputError("explain: pass either --file or the texts themselves")
        if getattr(arguments, f"{unused}_column") is not None:
            raise InputError(f"explain: --{unused}-column: {spec.name} would not read it")
        return _report(spec, options, arguments)
    for name in texts:
        if getattr(arguments, f"{name}_column") is not None:
            raise InputError(f"explain: --{name}-column requires --file FILE")
    if arguments.prediction is None or not texts[argument]:
        raise InputError(f"{spec.name}: explain: expected --prediction TEXT and --{argument} TEXT, or --file FILE")
    if texts[unused]:
        raise InputError(f"{spec.name}: explain: expected --{argument}, but got --{unused}")
    if arguments.output is not None:
        check_picture(arguments.output)
    from movers.pictures import explain

    explanation = explain(spec.name, arguments.prediction, **{argument: texts[argument]}, **options)
    if arguments.output is None:
        say(str(explanation))
    else:
        explanation.save(arguments.output)
        say(f"{explanation.signature} = {explanation.score:.4g}\nwrote {arguments.output}")
    return 0


def _report(spec: MetricSpec, options: dict[str, Any], arguments: argparse.Namespace) -> int:
    if arguments.output is None:
        raise InputError("explain: --file requires -o report.html")
    check_picture(arguments.output, (".html",))
    inputs = InputFiles.read(arguments, {"predictions": [arguments.file], spec.compared_with: [arguments.file]})
    if inputs.predictions.column is None:
        raise InputError(f"{arguments.file}: expected a file with columns (.jsonl, .csv, …)")
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
    return 0

"""`movers explain`: the alignment of a pair as a table or picture, or a report on a whole file."""

from __future__ import annotations

import argparse
from typing import Any

from movers.cli import common
from movers.errors import InputError
from movers.io import check_output, write_file
from movers.registry import MetricSpec, parse_metric


def add_parser(commands: common.Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        usage="movers explain METRIC --prediction TEXT (--reference TEXT … | --source TEXT …) [-o FILE] [options]\n"
        "       movers explain METRIC --file FILE [-r FILE … | --sources FILE …] -o report.html [options]",
        help="show which words were matched: for one pair, or as a report on a file",
        description="Show the alignment of one prediction: which words were matched, and at what cost. Or score a\n"
        "file and write a report: the distribution of scores, the ten best and worst rows with\n"
        "their alignments, and the rows that were empty, truncated or unfiltered.",
        epilog="examples:\n"
        "  movers explain swms --prediction 'Snow is sold.' --reference 'A man sells snow.' -o why.html\n"
        "  movers explain swms --file predictions.txt -r references.txt -o report.html",
    )
    add = parser.add_argument
    add("metric", metavar="METRIC", help=common.METRIC_HELP)
    add("--prediction", metavar="TEXT", help="text to score")
    add("--reference", metavar="TEXT", action="append", default=[], help="reference text; repeatable")
    add("--source", metavar="TEXT", action="append", default=[], help="source document; repeatable")
    file = "predictions to report on; without -r or --sources, it must also have a column of references or sources"
    add("--file", metavar="FILE", help=file)
    common.add_compared_texts(parser)
    output = "picture of the pair: .html, .svg, .png or .json (default: print the largest flows); or report: .html"
    add("-o", "--output", metavar="FILE", help=output)
    add("-q", "--quiet", action="store_true", help="no progress bar")
    common.add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Explain a pair or a file."""
    spec, bracketed = parse_metric(arguments.metric)
    options: dict[str, Any] = {**common.options_of(arguments), **bracketed}
    spec.parse(options)
    argument = spec.compared_with.removesuffix("s")
    if arguments.file is not None:
        _report(spec, options, arguments)
        return
    texts = getattr(arguments, argument)
    if arguments.prediction is None or not texts:
        raise InputError(f"{spec.name}: expected --prediction TEXT and --{argument} TEXT, or --file FILE")
    if arguments.output is not None:
        check_output(arguments.output, common.PICTURES)
    from movers import explain

    explanation = explain(spec.name, arguments.prediction, **{argument: texts}, **options)
    if arguments.output is not None:
        explanation.save(arguments.output)
    outcome = explanation if arguments.output is None else f"wrote {arguments.output}"
    common.say(f"{explanation.signature} = {explanation.score:.4g}\n{outcome}")


def _report(spec: MetricSpec, options: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.output is None:
        raise InputError("--file requires -o report.html")
    check_output(arguments.output, (".html",))
    others = getattr(arguments, spec.compared_with) or [arguments.file]
    inputs = common.InputFiles(arguments, {"predictions": [arguments.file], spec.compared_with: others})
    prediction, other = (files[0].column for files in inputs.texts.values())
    if prediction == other and not getattr(arguments, spec.compared_with):
        raise InputError(f"{arguments.file} has no column of {spec.compared_with}: pass --{spec.compared_with} FILE")
    from movers.pictures import report

    options.setdefault("progress", False if arguments.quiet else None)
    with inputs.locate_errors():
        result = report(spec.name, inputs, total=inputs.rows, **options)
    write_file(arguments.output, result.html())
    common.say(f"{result.signature} = {sum(result.scores) / inputs.rows:.4g}")
    for flag, rows in result.flagged.items():
        if rows:
            common.say(f"  n_{flag}: {len(rows)} of {inputs.rows}")
    common.say(f"wrote {arguments.output}")

"""`movers compare`: significance tests between systems."""

from __future__ import annotations

import argparse

from movers.cli.arguments import (
    METRIC_HELP,
    InputFiles,
    Subparsers,
    add_compared_texts,
    add_options,
    add_resampling,
    check_other_file,
    choose_metrics,
    options_of,
    print_table,
    table_format,
)
from movers.errors import InputError, RowError


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        usage="movers compare SYSTEM SYSTEM … (-r FILE … | --sources FILE …) [options]",
        help="test whether the scores of two systems differ significantly",
        description="Score the outputs of two or more systems and compare the first with each of the others: paired "
        "bootstrap and approximate randomization.",
        epilog="example: movers compare baseline.txt ours.txt --references references.txt --metric wms",
    )
    add = parser.add_argument
    add("systems", nargs="+", metavar="SYSTEM", help="outputs of a system, one file each; at least two")
    add_compared_texts(parser)
    metrics = f"{METRIC_HELP} (default: wms)"
    add("--metric", "--metrics", dest="metrics", default="wms", metavar="METRIC,…", help=metrics)
    add_options(parser)
    add("--exchanges", type=int, default=10_000, metavar="N", help="exchanges of the randomization test")
    add_resampling(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Score the systems' texts with every metric and print the comparisons of the first with the others."""
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.scoring import MetricCall, compare_texts, compared_with
    from movers.agreement.table import render_comparison

    form = table_format(arguments)
    metrics = choose_metrics(arguments.metrics, options_of(arguments), others=LEXICAL_METRICS)
    systems = arguments.systems
    if len(set(systems)) < max(2, len(systems)):
        raise InputError(f"compare: expected at least two different files of systems' texts, but got {len(systems)}")
    files = {"predictions": systems}
    files |= {needed: getattr(arguments, needed) for needed in (compared_with(name) for name, _ in metrics.values())}
    check_other_file(arguments.output, [path for paths in files.values() for path in paths])
    inputs = InputFiles(arguments, files)
    predictions = dict(zip(systems, inputs.texts["predictions"], strict=True))
    try:
        tests = compare_texts(
            {path: list(texts) for path, texts in predictions.items()},
            [MetricCall(label, name, options) for label, (name, options) in metrics.items()],
            **{argument: list(inputs.joined(argument)) for argument in files if argument != "predictions"},
            n_resamples=arguments.resamples,
            n_exchanges=arguments.exchanges,
            confidence=arguments.confidence,
            alpha=arguments.alpha,
            seed=arguments.seed,
            progress=False if arguments.quiet else None,
        )
    except RowError as error:
        raise error.at(predictions[error.argument].where_row(error.row)) from None
    print_table(render_comparison(tests, form), arguments)

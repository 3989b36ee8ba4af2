"""`movers compare`: significance tests between systems."""

from __future__ import annotations

import argparse

from movers.cli.arguments import (
    METRIC_HELP,
    Subparsers,
    add_compared_texts,
    add_options,
    add_resampling,
    check_compared,
    check_other_file,
    check_rows,
    choose_metrics,
    options_of,
    print_table,
    table_format,
)
from movers.errors import InputError, RowError
from movers.io import TextGroups, Texts


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        usage="movers compare SYSTEM SYSTEM … (-r FILE … | --sources FILE) [options]",
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


def run(arguments: argparse.Namespace) -> int:
    """Score the systems' texts with every metric and print the comparisons of the first with the others."""
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.scoring import MetricCall, compare_texts, compared_with
    from movers.agreement.table import render_comparison

    form = table_format(arguments)
    metrics = choose_metrics(arguments.metrics, options_of(arguments), others=LEXICAL_METRICS)
    if len(arguments.systems) < 2:
        raise InputError(f"compare: expected at least two files of systems' texts, but got {len(arguments.systems)}")
    if len(set(arguments.systems)) < len(arguments.systems):
        raise InputError("compare: expected different files, but got the same one twice")
    if len(arguments.sources) > 1:
        raise InputError(f"compare: expected one file of sources, but got {len(arguments.sources)}")
    check_compared("compare", arguments, {metric.name: compared_with(metric.name) for metric in metrics})
    inputs = [(name, path) for name in ("systems", "references", "sources") for path in getattr(arguments, name)]
    if [path for _, path in inputs].count("-") > 1:
        raise InputError("compare: standard input (-) can be only one of the files")
    check_other_file("compare", arguments.output, inputs)
    files = {path: Texts(path, "predictions", arguments.prediction_column) for path in arguments.systems}
    systems = {path: list(file) for path, file in files.items()}
    references = [Texts(path, "references", arguments.reference_column) for path in arguments.references]
    sources = [Texts(path, "sources", arguments.source_column) for path in arguments.sources]
    counts = [(path, len(texts)) for path, texts in systems.items()]
    counts += [(file.table.path, file.survey(lists=True)[0]) for file in references]
    check_rows(counts + [(file.table.path, file.survey()[0]) for file in sources])
    try:
        tests = compare_texts(
            systems,
            [MetricCall(*metric) for metric in metrics],
            references=list(TextGroups(references)) if references else None,
            sources=list(sources[0]) if sources else None,
            n_resamples=arguments.resamples,
            n_exchanges=arguments.exchanges,
            confidence=arguments.confidence,
            alpha=arguments.alpha,
            seed=arguments.seed,
            progress=False if arguments.quiet else None,
        )
    except RowError as error:
        raise error.at(files[error.argument].where_row(error.row)) from None
    print_table(render_comparison(tests, form), arguments)
    return 0

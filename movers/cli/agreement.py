"""`movers compare` and `movers correlate`: significance tests between systems, correlation with human judgements."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Literal

from movers.cli.arguments import (
    METRIC_HELP,
    InputFiles,
    Subparsers,
    add_compared_texts,
    add_options,
    check_other_file,
    choose_metrics,
    options_of,
    say,
)
from movers.errors import InputError, RowError
from movers.io import Texts, check_output, printable, write_file
from movers.registry import split_metrics

TableFormat = Literal["text", "markdown", "csv", "json"]
_TABLE_FORMATS: dict[str, TableFormat] = {".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}


def add_parser(commands: Subparsers) -> None:
    """Declare the commands."""
    parser = commands.add_parser(
        "compare",
        usage="movers compare SYSTEM SYSTEM … (-r FILE … | --sources FILE …) [options]",
        help="test which systems' scores differ significantly",
        description="Score the outputs of two or more systems: a table of systems by metric with intervals, and paired "
        "tests of every pair (bootstrap and approximate randomization) with Holm's correction.",
        epilog="example: movers compare a.txt b.txt c.txt --references references.txt --metric moverscore,chrf",
    )
    add = parser.add_argument
    add("systems", nargs="+", metavar="SYSTEM", help="outputs of a system, one file each; at least two")
    add_compared_texts(parser)
    metrics = f"{METRIC_HELP}; also rouge, bleu, chrf (default: wms)"
    add("--metric", "--metrics", dest="metrics", default="wms", metavar="METRIC,…", help=metrics)
    add_options(parser)
    trials = "(default: {}, or 100 per pair of systems)"
    add("--exchanges", type=int, metavar="N", help=f"trials of the randomization test {trials.format(10_000)}")
    add("--plot", metavar="FILE", help="draw means, intervals and groups: .png, .svg or .pdf")
    _add_resampling(parser, None, trials.format(1000))
    parser.set_defaults(run=compare)

    parser = commands.add_parser(
        "correlate",
        help="correlate metrics with human judgements",
        description="Correlate metrics with human judgements: Pearson, Spearman and Kendall with bootstrap intervals, "
        "and pairwise significance tests.",
        epilog="example: movers correlate --data judged.jsonl.gz --metrics wms,sms,rouge --human overall --plots out",
    )
    add = parser.add_argument
    data = (
        'judged texts: .jsonl with rows {"candidate": "…", "references": ["…"], "scores": {"overall": 4}}, or .csv '
        "with columns candidate, references, scores.overall (also .gz)"
    )
    add("--data", required=True, metavar="FILE", help=data)
    add("--metrics", required=True, metavar="METRIC,…", help=f"{METRIC_HELP}; also rouge, bleu, chrf")
    reference = "file with a reference for all judged texts, such as a model essay; repeatable"
    add("--reference", action="append", default=[], metavar="FILE", help=reference)
    add("--human", metavar="NAME,…", help="human scores to correlate with (default: all)")
    add("--level", choices=("segment", "summary", "system"), default="segment", help="default: segment")
    add("--group", metavar="FIELD", help="correlate within groups, such as lp, and average")
    where = "keep only matching texts; also != >= <=; repeatable"
    add("--where", action="append", default=[], metavar="FIELD=VALUE", help=where)
    add("--split", help="value of the field split")
    for level, name, default in (("summary", "document", "doc"), ("system", "system", "system")):
        description = f"field with the {name}, for --level {level} (default: {default})"
        add(f"--{name}-field", default=default, metavar="FIELD", help=description)
    add("--lower-is-better", metavar="NAME,…", help="human scores where lower is better")
    tested = "coefficient of the significance tests (default: pearson)"
    add("--coefficient", choices=("pearson", "spearman", "kendall"), default="pearson", help=tested)
    add("--plots", metavar="DIR", help="write plots to DIR")
    _add_resampling(parser)
    parser.set_defaults(run=correlate)


def _add_resampling(
    parser: argparse.ArgumentParser, resamples: int | None = 1000, default: str = "(default: 1000)"
) -> None:
    """Arguments of `correlate` and `compare`: resampling, and the format of the table."""
    add = parser.add_argument
    add("--resamples", type=int, default=resamples, metavar="N", help=f"bootstrap resamples {default}")
    add("--confidence", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    add("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--format", choices=list(_TABLE_FORMATS.values()), help="default: by the suffix of --output, otherwise text")
    add("--json", action="store_const", const="json", dest="format", help="same as --format json")
    add("-o", "--output", metavar="FILE", help="write the table to FILE instead of printing it")
    add("-q", "--quiet", action="store_true", help="no progress bar")


def _resampling(arguments: argparse.Namespace) -> dict[str, Any]:
    names = {"n_resamples": "resamples", "confidence": "confidence", "alpha": "alpha", "seed": "seed"}
    return {name: getattr(arguments, option) for name, option in names.items()}


def _table_format(arguments: argparse.Namespace) -> TableFormat:
    """Format of the table; checks that the output can be written."""
    output = arguments.output
    if output is None:
        return arguments.format or "text"
    check_output(output, [] if arguments.format else list(_TABLE_FORMATS))
    return arguments.format or _TABLE_FORMATS.get(Path(output.removesuffix(".gz")).suffix.lower(), "text")


def _print_table(table: str, arguments: argparse.Namespace) -> None:
    """Print a table, or write it to `--output`."""
    if arguments.output is None:
        print(printable(table) if sys.stdout.isatty() else table, end="")
    else:
        write_file(arguments.output, table)


def compare(arguments: argparse.Namespace) -> None:
    """Score the systems' texts with every metric and print the comparisons of all pairs."""
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.scoring import MetricCall, compare_texts, compared_with
    from movers.agreement.table import render_comparison

    form = _table_format(arguments)
    if arguments.plot is not None:
        check_output(arguments.plot, (".png", ".svg", ".pdf"))
    metrics = choose_metrics(arguments.metrics, options_of(arguments), others=LEXICAL_METRICS)
    systems = arguments.systems
    if len(set(systems)) < max(2, len(systems)):
        raise InputError(f"compare: expected at least two different files of systems' texts, but got {len(systems)}")
    files = {"predictions": systems}
    files |= {needed: getattr(arguments, needed) for needed in (compared_with(name) for name, _ in metrics.values())}
    inputs = InputFiles(arguments, files)
    compared: dict[str, Any] = {name: list(inputs.joined(name)) for name in files if name != "predictions"}
    predictions = dict(zip(systems, inputs.texts["predictions"], strict=True))
    try:
        tests = compare_texts(
            {path: list(texts) for path, texts in predictions.items()},
            [MetricCall(label, name, options) for label, (name, options) in metrics.items()],
            **compared,
            n_exchanges=arguments.exchanges,
            **_resampling(arguments),
            progress=False if arguments.quiet else None,
        )
    except RowError as error:
        raise error.at(predictions[error.argument].where_row(error.row)) from None
    _print_table(render_comparison(tests, form), arguments)
    if arguments.plot is not None:
        from movers.agreement.plots import plot_systems, write_figure

        say(str(write_figure(plot_systems(tests), Path(arguments.plot))), sys.stderr)


def correlate(arguments: argparse.Namespace) -> None:
    """Score a judged set with every metric and print the table."""
    from movers.agreement.coefficients import agreement_table, check_resampling
    from movers.agreement.judged import read_judged
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.scoring import MetricCall, score_judged
    from movers.agreement.table import render

    form = _table_format(arguments)
    check_other_file(arguments.output, [arguments.data, *arguments.reference])
    metrics = choose_metrics(arguments.metrics, others=LEXICAL_METRICS)
    references = [" ".join(text.strip() for text in Texts(path, "references")) for path in arguments.reference]
    check_resampling(**_resampling(arguments))
    judged = read_judged(arguments.data, split=arguments.split, where=arguments.where, references=references)
    # A reference that was judged among the candidates would be compared with itself.
    judged_references = sum(text.fields.get("is_reference") is True for text in judged.texts)
    if 0 < judged_references < len(judged):
        judged = judged.where("is_reference!=true")
    humans = {name: judged.human(name) for name in split_metrics(arguments.human or "") or judged.human_names()}
    if not humans:
        raise InputError(f"{arguments.data}: expected human scores, but no text has any")
    if arguments.plots:
        from movers.agreement.plots import make_folder, save_plots

        make_folder(arguments.plots)
    groups = judged.labels(arguments.group) if arguments.group else None
    calls = [MetricCall(label, name, options) for label, (name, options) in metrics.items()]
    try:
        scored = score_judged(judged, calls, groups=groups, progress=False if arguments.quiet else None)
    except RowError as error:
        raise error.at(judged.shown(judged.texts[error.row])) from None
    scores = {label: result.scores for label, result in scored.items()}
    lower_is_better = split_metrics(arguments.lower_is_better or "")
    rows = agreement_table(
        scores,
        humans,
        level=arguments.level,
        documents=judged.labels(arguments.document_field) if arguments.level == "summary" else None,
        systems=judged.labels(arguments.system_field) if arguments.level == "system" else None,
        groups=groups,
        lower_is_better=lower_is_better,
        tested=arguments.coefficient,
        **_resampling(arguments),
    )
    for row in rows:
        row |= {"signature": scored[row["metric"]].signature, "skipped_reference_texts": judged_references}
    _print_table(render(rows, form), arguments)
    if arguments.plots:
        shown = {"coefficient": arguments.coefficient, "title": judged.name, "lower_is_better": lower_is_better}
        for path in save_plots(arguments.plots, scores, humans, **shown):
            say(str(path), sys.stderr)

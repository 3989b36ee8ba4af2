"""`movers compare` and `movers correlate`: significance tests between systems, correlation with human judgements."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.cli import common
from movers.errors import InputError, RowError
from movers.io import Texts, check_output, make_folder, printable, suffix_of, write_file
from movers.registry import split_metrics

if TYPE_CHECKING:
    from movers.agreement.table import Format

_TABLE_FORMATS: dict[str, Format] = {".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json"}
_METRICS_HELP = f"{common.SEVERAL_HELP}; for comparison also {', '.join(common.LEXICAL)}"


def add_parser(commands: common.Subparsers) -> None:
    """Declare the commands."""
    parser = commands.add_parser(
        "compare",
        usage="movers compare SYSTEM SYSTEM … (-r FILE … | --sources FILE …) [options]",
        help="find out which systems' scores differ significantly",
        description="Score the outputs of two or more systems for the same inputs. Prints the mean scores with\n"
        "their intervals, and tests every pair of systems (bootstrap and approximate\n"
        "randomization, with Holm's correction).",
        epilog="example:\n  movers compare a.txt b.txt c.txt -r references.txt --metric moverscore,chrf",
    )
    add = parser.add_argument
    add("systems", nargs="+", metavar="SYSTEM", help="file with the outputs of a system, as for `movers score`")
    common.add_compared_texts(parser)
    metrics = f"{_METRICS_HELP} (default: wms)"
    add("--metric", "--metrics", dest="metrics", default="wms", metavar="METRIC,…", help=metrics)
    trials = "(default: {}, or 100 per pair of systems)"
    add("--exchanges", type=int, metavar="N", help=f"trials of the randomization test {trials.format(10_000)}")
    add("--plot", metavar="FILE", help="draw means, intervals and groups: .png, .svg or .pdf")
    _add_resampling(parser, None, trials.format(1000))
    common.add_options(parser)
    parser.set_defaults(run=compare)

    parser = commands.add_parser(
        "correlate",
        usage="movers correlate --data FILE --metrics METRIC,… [options]",
        help="find out which metric agrees best with your human scores",
        description="Correlate metrics with human scores of texts: Pearson, Spearman and Kendall with bootstrap\n"
        "intervals, and tests of which metric correlates better than which.",
        epilog="example:\n  movers correlate --data judged.csv --metrics wms,moverscore,rouge\n"
        "where judged.csv begins with\n  prediction,reference,human\n  A cat sat.,The cat sat.,4",
    )
    add = parser.add_argument
    data = (
        "judged texts, .csv or .jsonl (also .gz): columns prediction, reference (or source), and human or score; for "
        "several human scores an object scores, or columns scores.NAME"
    )
    add("--data", required=True, metavar="FILE", help=data)
    add("--metrics", required=True, metavar="METRIC,…", help=_METRICS_HELP)
    add("--human", metavar="NAME,…", help="human scores, by name or column (default: human or score, or all in scores)")
    add("--lower-is-better", metavar="NAME,…", help="human scores where lower is better")
    reference = "file with a reference for all judged texts, such as a model essay; repeatable"
    add("--reference", action="append", default=[], metavar="FILE", help=reference)
    level = "correlate all texts (segment, the default), within documents (summary), or the systems' means (system)"
    add("--level", choices=("segment", "summary", "system"), default="segment", help=level)
    for level, name, default in (("summary", "document", "doc"), ("system", "system", "system")):
        description = f"field that names the {name}, for --level {level} (default: {default})"
        add(f"--{name}-field", default=default, metavar="FIELD", help=description)
    add("--group", metavar="FIELD", help="correlate within groups, such as lp, and average")
    where = "keep only matching texts; also != >= <=; repeatable"
    add("--where", action="append", default=[], metavar="FIELD=VALUE", help=where)
    add("--split", metavar="VALUE", help="same as --where split=VALUE")
    tested = "coefficient of the significance tests (default: pearson)"
    add("--coefficient", choices=("pearson", "spearman", "kendall"), default="pearson", help=tested)
    add("--plots", metavar="DIR", help="draw distributions of scores and correlations between metrics into DIR")
    _add_resampling(parser)
    common.add_options(parser)
    parser.set_defaults(run=correlate)


def _add_resampling(
    parser: argparse.ArgumentParser, resamples: int | None = 1000, default: str = "(default: 1000)"
) -> None:
    """Arguments of `correlate` and `compare`: resampling, and the format of the table."""
    add = parser.add_argument
    add("--resamples", type=int, default=resamples, metavar="N", help=f"bootstrap resamples {default}")
    add("--confidence", type=float, default=0.95, metavar="P", help="level of the intervals (default: 0.95)")
    add("--alpha", type=float, default=0.05, metavar="P", help="significance level (default: 0.05)")
    add("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    add("--format", choices=list(_TABLE_FORMATS.values()), help="default: by the suffix of --output, otherwise text")
    add("--json", action="store_const", const="json", dest="format", help="same as --format json")
    add("-o", "--output", metavar="FILE", help="write the table to FILE instead of printing it")
    add("-q", "--quiet", action="store_true", help="no progress bar")


def _resampling(arguments: argparse.Namespace) -> dict[str, Any]:
    names = {"n_resamples": "resamples", "confidence": "confidence", "alpha": "alpha", "seed": "seed"}
    return {name: getattr(arguments, option) for name, option in names.items()}


def _table_format(arguments: argparse.Namespace) -> Format:
    """Format of the table; checks that the output can be written."""
    output = arguments.output
    if output is None:
        return arguments.format or "text"
    check_output(output, [] if arguments.format else list(_TABLE_FORMATS))
    return arguments.format or _TABLE_FORMATS.get(suffix_of(output), "text")


def _print_table(table: str, arguments: argparse.Namespace) -> None:
    """Print a table, or write it to `--output`."""
    if arguments.output is None:
        print(printable(table) if sys.stdout.isatty() else table, end="")
    else:
        write_file(arguments.output, table)


def compare(arguments: argparse.Namespace) -> None:
    """Score the systems' texts with every metric and print the comparisons of all pairs."""
    from movers.agreement.scoring import MetricCall, compare_texts, compared_with
    from movers.agreement.table import render_comparison

    form = _table_format(arguments)
    if arguments.plot is not None:
        check_output(arguments.plot, (".png", ".svg", ".pdf"))
    metrics = common.choose_metrics(arguments.metrics, common.options_of(arguments), lexical=True)
    systems = arguments.systems
    if len(systems) < 2 or len(set(map(os.path.realpath, systems))) < len(systems):
        got = " ".join(systems)
        raise InputError(f"compare: expected at least two files of systems' texts, all different, but got {got}")
    files = {"predictions": systems}
    files |= {needed: getattr(arguments, needed) for needed in (compared_with(name) for name, _ in metrics.values())}
    inputs = common.InputFiles(arguments, files)
    compared = {name: list(inputs.joined(name)) for name in files if name != "predictions"}
    predictions = dict(zip(systems, inputs.texts["predictions"], strict=True))
    try:
        tests = compare_texts(
            {path: list(texts) for path, texts in predictions.items()},
            [MetricCall(label, name, options) for label, (name, options) in metrics.items()],
            compared,
            n_exchanges=arguments.exchanges,
            **_resampling(arguments),
            progress=False if arguments.quiet else None,
        )
    except RowError as error:
        raise error.at(predictions[error.argument].where_row(error.row)) from None
    _print_table(render_comparison(tests, form), arguments)
    if arguments.plot is not None:
        from movers.agreement.plots import plot_systems, write_figure

        common.say(str(write_figure(plot_systems(tests), Path(arguments.plot))), sys.stderr)


def correlate(arguments: argparse.Namespace) -> None:
    """Score a judged set with every metric and print the table."""
    from movers.agreement.coefficients import agreement_table, check_resampling
    from movers.agreement.judged import read_judged, unusable
    from movers.agreement.scoring import MetricCall, compared_with, score_judged
    from movers.agreement.table import render

    form = _table_format(arguments)
    common.check_other_file(arguments.output, [arguments.data, *arguments.reference])
    metrics = common.choose_metrics(arguments.metrics, common.options_of(arguments), lexical=True)
    check_resampling(**_resampling(arguments))
    references = [" ".join(text.strip() for text in Texts(path, "references")) for path in arguments.reference]
    where = [*arguments.where, *([f"split={arguments.split}"] if arguments.split else [])]
    names = split_metrics(arguments.human or "")
    judged = read_judged(arguments.data, where=where, references=references, human=names)
    humans = {name: judged.human(name) for name in names or judged.human_names()}
    for label, (name, _) in metrics.items():
        if not any(getattr(text, compared_with(name)) for text in judged.texts):
            raise unusable(f"{label} compares with {compared_with(name)}, and no row of {arguments.data} has any")
    if arguments.plots:
        make_folder(arguments.plots)
    groups = judged.labels(arguments.group) if arguments.group else None
    fields = {"segment": None, "summary": arguments.document_field, "system": arguments.system_field}
    labels = judged.labels(field) if (field := fields[arguments.level]) else None
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
        labels=labels,
        groups=groups,
        lower_is_better=lower_is_better,
        tested=arguments.coefficient,
        **_resampling(arguments),
    )
    for row in rows:
        row["signature"] = scored[row["metric"]].signature
    _print_table(render(rows, form), arguments)
    if arguments.plots:
        from movers.agreement.plots import save_plots

        shown = {"coefficient": arguments.coefficient, "title": judged.name, "lower_is_better": lower_is_better}
        for path in save_plots(arguments.plots, scores, humans, **shown):
            common.say(str(path), sys.stderr)

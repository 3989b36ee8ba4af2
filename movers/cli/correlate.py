"""`movers correlate`: correlation of metrics with human judgements."""

from __future__ import annotations

import argparse
import sys

from movers.cli.arguments import (
    METRIC_HELP,
    Subparsers,
    add_resampling,
    check_other_file,
    choose_metrics,
    print_table,
    say,
    table_format,
)
from movers.errors import InputError, RowError
from movers.io import Texts
from movers.registry import split_metrics


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
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
    coefficients = ("pearson", "spearman", "kendall")
    tested = "coefficient of the significance tests (default: pearson)"
    add("--coefficient", choices=coefficients, default="pearson", help=tested)
    add("--plots", metavar="DIR", help="write plots to DIR")
    add_resampling(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Score a judged set with every metric and print the table."""
    from movers.agreement.coefficients import check_resampling
    from movers.agreement.judged import read_judged
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.scoring import MetricCall, score_judged
    from movers.agreement.table import agreement_table, render

    form = table_format(arguments)
    check_other_file(arguments.output, [arguments.data, *arguments.reference])
    metrics = choose_metrics(arguments.metrics, others=LEXICAL_METRICS)
    references = [" ".join(text.strip() for text in Texts(path, "references")) for path in arguments.reference]
    check_resampling(arguments.resamples, arguments.seed, confidence=arguments.confidence, alpha=arguments.alpha)
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
        alpha=arguments.alpha,
        n_resamples=arguments.resamples,
        confidence=arguments.confidence,
        seed=arguments.seed,
    )
    for row in rows:
        row |= {"signature": scored[row["metric"]].signature, "skipped_reference_texts": judged_references}
    print_table(render(rows, form), arguments)
    if arguments.plots:
        shown = {"coefficient": arguments.coefficient, "title": judged.name, "lower_is_better": lower_is_better}
        for path in save_plots(arguments.plots, scores, humans, **shown):
            say(str(path), sys.stderr)

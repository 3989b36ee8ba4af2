"""`movers explain`: the alignment of a pair as a table or picture, or a report on a whole file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from movers.cli.arguments import Subparsers, add_options, check_picture, check_rows, options_of, row_in_file, say
from movers.errors import InputError, RowError
from movers.io import Table, TextGroups, Texts, align_table, write_file
from movers.registry import METRICS, MetricSpec, parse_metric

if TYPE_CHECKING:
    from movers.pictures import Explanation

_SHOWN = 12


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
    for name in ("prediction", "reference", "source"):
        parser.add_argument(f"--{name}-column", metavar="NAME", help=f"column of the {name}s in --file")
    add_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help=".html, .svg or .png; .html for a report")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain a pair or a file."""
    spec, options = parse_metric(arguments.metric)
    options |= options_of(arguments)
    spec.parse(options)
    given = {"prediction": arguments.prediction, "reference": arguments.reference, "source": arguments.source}
    if arguments.file is not None:
        if any(given.values()):
            raise InputError("explain: expected --file or the texts themselves, but got both")
        return _report(spec, options, arguments)
    for name in given:
        if getattr(arguments, f"{name}_column") is not None:
            raise InputError(f"explain: --{name}-column: expected --file FILE beside it")
    argument = spec.compared_with.removesuffix("s")
    others = given[argument]
    if arguments.prediction is None or not others:
        raise InputError(f"{spec.name}: explain: expected --prediction TEXT and --{argument} TEXT, or --file FILE")
    unused = "source" if argument == "reference" else "reference"
    if given[unused]:
        raise InputError(f"{spec.name}: explain: expected --{argument}, but got --{unused}")
    if arguments.output is not None:
        check_picture(arguments.output)
    from movers.pictures import explain

    compared = {"reference": arguments.reference or None, "source": arguments.source or None}
    explanation = explain(spec.name, arguments.prediction, compared["reference"], source=compared["source"], **options)
    if arguments.output is None:
        say("\n".join(lines_of(explanation)))
    else:
        explanation.save(arguments.output)
        say(f"{explanation.signature} = {explanation.score:.4g}\nwrote {arguments.output}")
    return 0


def lines_of(explanation: Explanation) -> list[str]:
    """Score and largest flows as text."""
    lines = [f"{explanation.signature} = {explanation.score:.4g}"]
    lines += [f"  {name}: {value:.4g}" for name, value in explanation.numbers.items()]
    lines += [f"  {flag}" for flag in explanation.flags]
    for picture in explanation.pictures:
        for panel in picture.panels:
            lines += ["", " ".join(part for part in (picture.title, panel.title) if part)] if panel.title else [""]
            flows = panel.flows[:_SHOWN]
            rows = [
                [_cut(panel.left[flow.i].text), _cut(panel.right[flow.j].text), f"{flow.share:.1%}", f"{flow.cost:.3g}"]
                for flow in flows
            ]
            lines += align_table([*panel.names, panel.measure, "distance"], rows, {2, 3})
            if len(panel.flows) > len(flows):
                lines.append(f"… and {len(panel.flows) - len(flows)} more; -o FILE.html shows all")
        lines += [f"  {bar.name}: {bar.value:.3f}" for bar in picture.bars]
    return lines


def _cut(text: str, width: int = 44) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass(frozen=True)
class Rows:
    """Predictions with their references or sources, read anew on every iteration."""

    predictions: Texts
    others: TextGroups

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        return zip(self.predictions, self.others, strict=True)


def _report(spec: MetricSpec, options: dict[str, object], arguments: argparse.Namespace) -> int:
    if arguments.output is None:
        raise InputError("explain: expected -o report.html with --file")
    check_picture(arguments.output, (".html",))
    from movers.pictures.explain import Explainer
    from movers.pictures.report import report_of
    from movers.weights import Corpus

    table = Table(arguments.file, arguments.prediction_column)
    if table.kind == "text":
        raise InputError(
            f"{table.path}: expected a file with columns (.jsonl, .csv, …), but it holds one text per line"
        )
    argument = spec.compared_with
    unused = "source" if argument == "references" else "reference"
    if getattr(arguments, f"{unused}_column") is not None:
        raise InputError(f"explain: --{unused}-column: expected none, because {spec.name} would not read it")
    predictions = Texts(table, "predictions", arguments.prediction_column)
    others = TextGroups([Texts(table, argument, getattr(arguments, f"{argument[:-1]}_column"))])
    total = predictions.count()
    check_rows([(table.path, total)])
    options.setdefault("progress", False if arguments.quiet else None)
    explainer = Explainer.build(spec, options, Corpus(predictions, others))
    try:
        report = report_of(explainer, Rows(predictions, others), total)
    except RowError as error:
        raise error.at(row_in_file(error, predictions, {argument: others})) from None
    write_file(arguments.output, report.html())
    say(f"{report.signature} = {sum(report.scores) / total:.4g}")
    for kind, rows in report.flagged.items():
        if rows:
            say(f"  n_{kind}: {len(rows)} of {total}")
    say(f"wrote {arguments.output}")
    return 0

"""`movers metrics` and `movers options NAME`."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence

from movers.cli.arguments import Subparsers
from movers.io import align_table
from movers.registry import METRICS, find_metric


def add_parser(commands: Subparsers) -> None:
    """Declare both commands."""
    text = "list the metrics"
    commands.add_parser("metrics", help=text, description=f"{text.capitalize()}.").set_defaults(run=run_metrics)
    text = "list the options of a metric with their defaults"
    options = commands.add_parser("options", help=text, description=f"{text.capitalize()}.")
    options.add_argument("metric", metavar="METRIC", help="a name listed by `movers metrics`")
    options.set_defaults(run=run_options)


def run_metrics(arguments: argparse.Namespace) -> int:
    """Print one line per metric."""
    _show([(metric.name, f"{metric.title}: {metric.summary}") for metric in METRICS.values()])
    return 0


def run_options(arguments: argparse.Namespace) -> int:
    """Print one line per option."""
    from movers.scores.options import option_rows

    rows = option_rows(find_metric(arguments.metric).options_class)
    _show([(f"{row.name}={row.default!r}", f"{row.help} ({row.values})") for row in rows])
    return 0


def _show(rows: Sequence[tuple[str, str]]) -> None:
    """Print one line per row; on a terminal, wrapped to its width."""
    indent = max(len(name) for name, _ in rows) + 2
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in align_table([], [list(row) for row in rows]):
        wrapped = [line]
        if width >= indent + 20:
            wrapped = textwrap.wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False)
        print("\n".join(wrapped))

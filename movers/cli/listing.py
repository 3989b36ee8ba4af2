"""`movers metrics` and `movers options NAME`."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence

from movers.cli.arguments import Subparsers
from movers.io import printable
from movers.registry import METRICS, find_metric

_RUN_SETTINGS = ("device", "dtype", "batch_size", "threads", "workers", "progress")


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
    """Print one line per option: what concerns the score, then what concerns the machine."""
    from movers.scores.options import option_rows

    rows = option_rows(find_metric(arguments.metric).options_class)
    shown = [(f"{row.name}={row.default!r}", f"{row.help} ({row.values})") for row in rows]
    indent = max(len(name) for name, _ in shown) + 2
    settings = [row.name in _RUN_SETTINGS for row in rows]
    _show([line for line, setting in zip(shown, settings, strict=True) if not setting], indent)
    print("\nrun settings: the machine, not the metric")
    _show([line for line, setting in zip(shown, settings, strict=True) if setting], indent)
    return 0


def _show(rows: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print one line per row; on a terminal, wrapped to its width."""
    indent = indent or max(len(name) for name, _ in rows) + 2
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for name, text in rows:
        line = printable(f"{name:<{indent}}{text}")
        if width >= indent + 20:
            line = textwrap.fill(line, width, subsequent_indent=" " * indent, break_on_hyphens=False)
        print(line)

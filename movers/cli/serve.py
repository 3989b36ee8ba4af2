"""`movers serve`: a web page to try the metrics."""

from __future__ import annotations

import argparse

from movers.cli.arguments import Subparsers
from movers.errors import InputError
from movers.registry import METRICS, find_metric, split_metrics


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "serve",
        help="serve a web page and API for the metrics",
        description="Serve a web page to try the metrics, with an API endpoint per metric. Requires gradio.",
    )
    parser.add_argument("--metrics", metavar="NAME,…", help=f"default: all of {', '.join(METRICS)}")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine)")
    parser.add_argument("--port", type=int, default=7860, help="default: 7860")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    names = [find_metric(name).name for name in split_metrics(arguments.metrics or "")]
    if not 0 < arguments.port < 1 << 16:
        raise InputError(f"serve: port: expected a number from 1 to 65535, but got {arguments.port}")
    try:
        from movers.serve import all_metrics_page, launch
    except ImportError:
        raise InputError("serve: the page requires the package gradio: pip install 'gradio>=6'") from None
    try:
        launch(all_metrics_page(names or None), server_name=arguments.host, server_port=arguments.port)
    except (OSError, UnicodeError) as error:  # in use, or not an address of this machine
        raise InputError(f"serve: cannot listen on {arguments.host}:{arguments.port}: {error}") from None
    return 0

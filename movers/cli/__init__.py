"""`movers …`: the command line, one module per command. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence

from movers.cli import baseline, compare, correlate, demo, explain, listing, score, serve, train
from movers.errors import InputError
from movers.io import printable
from movers.version import VERSION

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="movers",
        description="Text-generation metrics based on embeddings and optimal transport.",
        epilog="`movers COMMAND --help` describes a command; `movers metrics` lists the metrics.",
    )
    parser.add_argument("--version", action="version", version=f"movers {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (score, explain, compare, correlate, listing, baseline, train, demo, serve):
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    A user error (`InputError`) is printed as one line on standard error, with exit code 2; if MOVERS_DEBUG is set, it
    is raised with its traceback. Any other exception is a bug and is not caught.
    """
    # If POT is imported as a whole, it imports every tensor library it finds; this process needs none of them.
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    alone = argv is None
    if alone:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # removes half-written files
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # what the encoding of a terminal lacks
    try:
        arguments = _parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = int(arguments.run(arguments))
            print(end="", flush=True)
            return code
    except InputError as error:
        if os.environ.get("MOVERS_DEBUG"):
            raise
        print(f"movers: error: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr)
        return _stop(alone, 130)
    except SystemExit as error:
        if error.code == 128 + signal.SIGTERM:
            _stop(alone, error.code)
        raise
    except BrokenPipeError:  # the reader closed the pipe: `movers … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter ends quietly
        return 141


def _stop(alone: bool, code: int) -> int:
    """End the process at once: the interpreter would wait for threads that are still solving."""
    if alone:
        sys.stderr.flush()
        os._exit(code)
    return code


def _show_warning(message: Warning | str, *details: object) -> None:
    print(f"movers: warning: {printable(str(message))}", file=sys.stderr)

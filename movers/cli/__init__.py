"""`movers …`: the command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from movers.cli import agreement, basics, explain, pairwise, score
from movers.errors import InputError
from movers.io import printable
from movers.version import VERSION

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    A user error (`InputError`) is printed on standard error, with exit code 2. Any other exception is a bug.
    """
    parser = argparse.ArgumentParser(
        prog="movers",
        description="Text-generation metrics based on embeddings and optimal transport.",
        epilog="Start with `movers demo`; `movers COMMAND --help` describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"movers {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (score, pairwise, explain, agreement, basics):
        module.add_parser(commands)
    for command in commands.choices.values():
        command.formatter_class = argparse.RawDescriptionHelpFormatter  # examples on lines of their own
    # If POT is imported as a whole, it imports every tensor library it finds; this process needs none of them.
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    try:
        arguments = parser.parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            arguments.run(arguments)
            print(end="", flush=True)
            return 0
    except InputError as error:
        print(f"movers: error: {printable(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pipe: `movers … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter ends quietly
        return 141


def _show_warning(message: Warning | str, *details: object) -> None:
    print(f"movers: warning: {printable(str(message))}", file=sys.stderr)

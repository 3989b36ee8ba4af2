"""`movers …`: the command line, one module per command. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from movers.cli import baseline, compare, correlate, demo, explain, listing, score, serve, train
from movers.errors import InputError
from movers.io import printable
from movers.version import VERSION

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="movers",
        description="Text-generation metrics that compare meanings: embeddings and optimal transport.",
        epilog="movers COMMAND --help describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"movers {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (score, explain, compare, correlate, listing, baseline, train, demo, serve):
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    What a user can mend (`InputError`) ends in one line on standard error and exit code 2, with its traceback if
    MOVERS_DEBUG is set. Any other exception is a bug and is not caught.
    """
    # POT imports every tensor library it finds, should it ever be imported whole; this process has no use for them.
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    arguments = _parser().parse_args(argv)
    try:
        with _exit_when_terminated(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = int(arguments.run(arguments))
            sys.stdout.flush()
            return code
    except InputError as error:
        if os.environ.get("MOVERS_DEBUG"):
            raise
        print(f"movers: error: {printable(str(error))}", file=sys.stderr)
        return _end(argv is None, 2)
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr)
        return _end(argv is None, 130)
    except SystemExit as exit:  # terminated
        raise SystemExit(_end(argv is None, int(str(exit.code)))) from None
    except BrokenPipeError:  # the reader of our output wants no more: `movers … | head`
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in the buffer
        return 141


def _end(alone: bool, code: int) -> int:
    """The exit code of a run that ends early; what it was writing is removed by now.

    The interpreter would wait for threads that are still solving, which may take minutes: then the process ends here,
    if it is `alone`, run for the command line and nothing else.
    """
    from movers.threads import solvers_at_work

    if alone and solvers_at_work():
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


@contextmanager
def _exit_when_terminated() -> Iterator[None]:
    """Let a termination signal raise SystemExit, so that half-written files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"movers: warning: {printable(str(message))}", file=sys.stderr)

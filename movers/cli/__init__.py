"""`movers …`: the command line, one module per command. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

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
        _prepare_streams()
    debug = bool(os.environ.get("MOVERS_DEBUG"))
    try:
        return _run(argv)
    except InputError as error:
        if debug:
            raise
        print(f"movers: error: {printable(str(error))}", file=sys.stderr)
        return _end(alone, 2)
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr)
        return _end(alone, 130)
    except SystemExit as exit:  # terminated; or --help (0) or wrong usage (2), with nothing to wait for
        code = int(str(exit.code))
        raise SystemExit(_end(alone, code) if code > 2 else code) from None
    except BrokenPipeError:  # the reader closed the pipe: `movers … | head`
        _discard_output()
        return 141
    except OSError as error:  # errors of files name them
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO) or debug:
            raise
        _discard_output()
        print(f"movers: error: standard output: cannot write it: {error.strerror}", file=sys.stderr)
        return _end(alone, 2)


def _run(argv: Sequence[str] | None) -> int:
    """Parse the arguments, run the command, and flush what it printed."""
    try:
        arguments = _parser().parse_args(argv)
        with _exit_when_terminated(), warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return int(arguments.run(arguments))
    finally:
        if not isinstance(sys.exception(), OSError):
            sys.stdout.flush()


def _end(alone: bool, code: int) -> int:
    """Exit code of a run that ends early; its unfinished output has been removed already.

    The interpreter would wait for threads that are still solving, which may take minutes. So the process exits here
    if it was started for this command only (`alone`).
    """
    if alone and any(not thread.daemon for thread in threading.enumerate()[1:]):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


@contextmanager
def _exit_when_terminated() -> Iterator[None]:
    """Let SIGTERM raise SystemExit, so that half-written files are removed."""
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


def _show_warning(message: Warning | str, *details: object) -> None:
    print(f"movers: warning: {printable(str(message))}", file=sys.stderr)


def _prepare_streams() -> None:
    """Let all three standard streams exist, and print what their encoding lacks as escapes.

    A stream that the shell closed (`<&-`, `>&-`) leaves its number to the next file that is opened, which would get
    what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # It takes the lowest free number. Writing to standard output fails: no result vanishes unseen.
            os.open(os.devnull, os.O_RDWR if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let what is still in the buffer go nowhere, so that the interpreter ends quietly."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""`movers` and `python -m movers`: the command line."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command line; an interrupt ends it quietly."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from movers.cli import main as run

        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # what a terminal cannot show
        return run()
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr, flush=True)
        os._exit(130)  # the interpreter would wait for threads that are still solving


if __name__ == "__main__":
    sys.exit(main())

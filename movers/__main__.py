"""`movers` and `python -m movers`: the command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; an interrupt before it is imported ends it quietly too."""
    try:
        from movers.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

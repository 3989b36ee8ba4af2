"""`python -m movers`: the command line."""

from __future__ import annotations

import sys

from movers.cli import main

if __name__ == "__main__":
    sys.exit(main())

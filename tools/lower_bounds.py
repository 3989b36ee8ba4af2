"""Print the lower bounds of setup.py as exact versions, for pip's ``--constraint``."""

from __future__ import annotations

import re
from pathlib import Path

SETUP = Path(__file__).resolve().parents[1] / "setup.py"


def lower_bounds() -> dict[str, str]:
    """Package → its lowest version."""
    return dict(re.findall(r'"([\w-]+)>=([\w.]+)"', SETUP.read_text(encoding="utf-8")))


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lower_bounds().items()))

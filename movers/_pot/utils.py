"""POT's compiled kernel does `from ..utils import dist`; this answers without importing all of POT."""

from __future__ import annotations

from typing import Any

__all__ = ["dist"]


def dist(*args: Any, **kwargs: Any) -> Any:
    """`ot.utils.dist`, imported when it is called (only POT's one-dimensional solvers do)."""
    from ot.utils import dist as pot_dist

    return pot_dist(*args, **kwargs)

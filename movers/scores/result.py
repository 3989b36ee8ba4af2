"""Results that print well: a dict for code, a few lines for people."""

from __future__ import annotations

import html
from collections.abc import Sized
from typing import Any

__all__ = ["Result"]


class Result(dict[str, Any]):
    """A metric's result. Equal to the plain dict of its entries; printed as score, number of texts and signature.

    >>> Result(score=0.51234, scores=[0.5, 0.52], signature="wms|v:1", n_empty=0)
    0.5123 (n=2) wms|v:1
    """

    def _shown(self) -> tuple[str, str, str]:
        scores = self.get("scores", ())
        count = len(scores) if isinstance(scores, Sized) else 0
        warnings = "".join(f", {name[2:]} {self[name]}" for name in self if name.startswith("n_") and self[name])
        return f"{self.get('score', float('nan')):.4g}", f"n={count}{warnings}", str(self.get("signature", ""))

    def __repr__(self) -> str:
        score, count, signature = self._shown()
        return f"{score} ({count}) {signature}"

    def _repr_html_(self) -> str:
        score, count, signature = map(html.escape, self._shown())
        return f"<b>{score}</b> ({count})<br><code>{signature}</code>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

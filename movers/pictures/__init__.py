"""Plots of alignments as HTML, SVG and PNG.

`explain` scores one prediction and returns an `Explanation`, which displays itself in notebooks.
"""

from __future__ import annotations

from movers.pictures.explain import Explainer, explain
from movers.pictures.model import Explanation

__all__ = ["Explainer", "Explanation", "explain"]

"""Pictures of alignments: what was matched with what, as HTML, SVG and PNG.

`explain` scores one prediction and returns an `Explanation`, which draws itself.
"""

from __future__ import annotations

from movers.pictures.explain import Explainer, explain
from movers.pictures.model import Explanation

__all__ = ["Explainer", "Explanation", "explain"]

"""Pictures of alignments: which words, tokens or sentences were matched, and at what cost."""

from __future__ import annotations

from movers.pictures.explain import Explainer, Report, explain, report
from movers.pictures.model import Explanation

__all__ = ["Explainer", "Explanation", "Report", "explain", "report"]

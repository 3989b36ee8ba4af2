"""Pictures of alignments: which words, tokens or sentences were matched, and at what cost."""

from __future__ import annotations

from movers.pictures.explain import Explainer, Explanation, Report, document, explain, report

__all__ = ["Explainer", "Explanation", "Report", "document", "explain", "report"]

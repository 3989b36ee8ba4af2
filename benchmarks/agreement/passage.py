"""Clark et al. 2019, Table 1, with a passage of our own: what word order and repetition change.

The paper's passage is a news article's, so another one of the same kind stands here, altered in the same two ways: the
clauses of the summary rearranged, and some of them repeated.
"""

from __future__ import annotations

import json
from pathlib import Path

import movers
from movers.agreement.lexical import rouge
from movers.io import align_table, write_file
from movers.version import VERSION

REFERENCE = (
    "A retired ferry captain has found an unusual use for the fog that covers his harbour town most of the year . "
    "For $ 12 , he will mail you a sealed jar of it , collected at dawn from the end of the pier . So far he has sold "
    "over 300 jars , mostly to people who grew up on the coast and moved away ."
)
SUMMARIES = {
    "summary": "a former captain in a coastal town is selling fog online to people who moved away . for $ 12 , he "
    "will mail a sealed jar of fog from the pier .",
    "word order": "in a coastal town , a former captain is selling fog online to people who moved away . he will mail "
    "a sealed jar of fog from the pier for $ 12 .",
    "repetition": "a former captain in a coastal town is selling fog is selling fog online to people who moved away "
    "who moved away . for $ 12 , he will mail he will mail a sealed jar a sealed jar of fog from the pier from the "
    "pier .",
}
# The paper's changes in per cent, by word order and by repetition.
PAPER = {"ROUGE-L": (-20, -11), "WMS": (0, -1), "SMS": (0, -11), "S+WMS": (0, -5)}


def measure_passage(out: Path) -> None:
    """Score the three summaries, and write the cell."""
    texts, references = list(SUMMARIES.values()), [REFERENCE] * len(SUMMARIES)
    metrics = {"ROUGE-L": rouge, "WMS": movers.wms, "SMS": movers.sms, "S+WMS": movers.swms}
    results = {name: metric(texts, references) for name, metric in metrics.items()}
    cell = {
        "scores": {name: result["scores"] for name, result in results.items()},
        "signatures": {name: result["signature"] for name, result in results.items()},
        "version": VERSION,
    }
    path = out / "cells" / "clark-table-1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(cell, indent=2) + "\n")


def render_passage(out: Path) -> list[str]:
    """Markdown of the table, if it was measured."""
    path = out / "cells" / "clark-table-1.json"
    if not path.exists():
        return []
    scores = json.loads(path.read_text(encoding="utf-8"))["scores"]
    heading = ["metric", *(cell for name in SUMMARIES for cell in ([name] if name == "summary" else [name, "paper"]))]
    body = []
    for metric, (first, *others) in scores.items():
        changes = [f"{score:.4g} ({100 * (score / first - 1):+.0f} %)" for score in others]
        paper = [f"{change:+d} %" for change in PAPER[metric]]
        body.append([metric, f"{first:.4g}", *(cell for pair in zip(changes, paper, strict=True) for cell in pair)])
    return [
        "## Clark et al. 2019, Table 1: word order and repetition",
        "",
        "One reference passage and three summaries; the passage is our own (`passage.py`), of the kind of the paper's.",
        "",
        *align_table(heading, body, range(1, len(heading)), markdown=True),
        "",
    ]

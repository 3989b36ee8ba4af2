"""Clark et al. 2019, Table 1, with a passage of our own: what word order and repetition change.

The paper's passage is a news article's, so another one of the same kind stands here, with two summaries. Each is
altered as in the paper: its clauses rearranged, and some phrases repeated. The two differ in one repeated phrase, whose
words are in the passage ("moved away") or are not ("in dry regions").
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
# The summary, its clauses rearranged, its phrases repeated; {0} is the phrase that differs, {1} its repeated end.
FORMS = (
    "a former captain in a coastal town is selling fog online to {0} . for $ 12 , he will mail a sealed jar of fog "
    "from the pier .",
    "in a coastal town , a former captain is selling fog online to {0} . he will mail a sealed jar of fog from the "
    "pier for $ 12 .",
    "a former captain in a coastal town is selling fog is selling fog online to {0} {1} . for $ 12 , he will mail he "
    "will mail a sealed jar a sealed jar of fog from the pier from a pier .",
)
PHRASES = {"1": ("people who moved away", "who moved away"), "2": ("collectors in dry regions", "in dry regions")}
# The paper's changes in per cent, by word order and by repetition.
PAPER = {"ROUGE-L": (-20, -11), "WMS": (0, -1), "SMS": (0, -11), "S+WMS": (0, -5)}


def measure_passage(out: Path) -> None:
    """Score the summaries, and write the cell."""
    texts = [form.format(*phrase) for phrase in PHRASES.values() for form in FORMS]
    metrics = {"ROUGE-L": rouge, "WMS": movers.wms, "SMS": movers.sms, "S+WMS": movers.swms}
    results = {name: metric(texts, [REFERENCE] * len(texts)) for name, metric in metrics.items()}
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
    body = []
    for place, summary in enumerate(PHRASES):
        for metric, own in scores.items():
            first, *others = own[place * len(FORMS) : (place + 1) * len(FORMS)]
            order, repetition = (f"{score:.4g} ({100 * (score / first - 1):+.0f} %)" for score in others)
            paper = [f"{change:+d} %" for change in PAPER[metric]]
            body.append([summary, metric, f"{first:.4g}", order, paper[0], repetition, paper[1]])
    heading = ["summary", "metric", "score", "word order", "paper", "repetition", "paper"]
    return [
        "## Clark et al. 2019, Table 1: word order and repetition",
        "",
        "One passage with two summaries, each altered as in the paper; the texts are our own (`passage.py`), similar "
        "to the paper's. The first summary repeats a phrase whose words are in the passage, the second one whose words "
        "are not: the cost of repetition depends on what is repeated.",
        "",
        *align_table(heading, body, range(2, len(heading)), markdown=True),
        "",
    ]

"""HTML report on a file: distribution of scores, best and worst rows with their alignments, flagged rows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from movers.pictures.explain import Explainer, Row
from movers.pictures.html import document_of, histogram, pictures_of
from movers.pictures.model import Explanation
from movers.scores.engine import score_stream

__all__ = ["Report", "report_of"]

_LISTED = 200  # rows listed per flag
_KINDS = {
    "empty": "Empty: a text has no word",
    "unfiltered": "Unfiltered: the filters left nothing of a text, so all its words were compared",
    "truncated": "Cut: a text was longer than the encoder reads",
    "unknown": "Unknown: a text has words or pieces that the encoder does not know",
}


@dataclass(frozen=True)
class Report:
    """A scored file.

    Attributes
    ----------
    title, signature, paper : str
    scores : (n,)
    flagged : mapping
        "empty", "unfiltered", "truncated", "unknown" → row numbers, from 0.
    best, worst : sequence of (row number, Explanation)
    """

    title: str
    signature: str
    paper: str
    scores: Sequence[float]
    flagged: Mapping[str, Sequence[int]] = field(default_factory=dict)
    best: Sequence[tuple[int, Explanation]] = ()
    worst: Sequence[tuple[int, Explanation]] = ()

    def html(self) -> str:
        """A self-contained HTML page."""
        count = len(self.scores)
        mean = math.fsum(self.scores) / count
        ordered = sorted(self.scores)
        numbers = {
            "mean": f"{mean:.4g}",
            "median": f"{(ordered[(count - 1) // 2] + ordered[count // 2]) / 2:.4g}",
            "lowest": f"{ordered[0]:.4g}",
            "highest": f"{ordered[-1]:.4g}",
            "rows": str(count),
        }
        items = "".join(f"<li><b>{value}</b><span>{name}</span></li>" for name, value in numbers.items())
        body = [
            f'<h1>{escape(self.title)}</h1>\n<ul class="numbers">{items}</ul>',
            f"<h2>Distribution of scores</h2>\n{histogram(self.scores)}",
            "<h2>Rows to look at</h2>",
            *(_listing(_KINDS[kind], rows, count) for kind, rows in self.flagged.items()),
            f"<h2>The {len(self.best)} best rows</h2>",
            *(_row(*row) for row in self.best),
            f"<h2>The {len(self.worst)} worst rows</h2>",
            *(_row(*row) for row in self.worst),
            f"<h2>Signature</h2>\n<p><code>{escape(self.signature)}</code></p>",
            f'<p class="soft">{escape(self.paper)}</p>',
        ]
        return document_of(f"{self.title}: report of {count} rows", "\n".join(body))


def _listing(title: str, rows: Sequence[int], count: int) -> str:
    shown = ", ".join(str(row + 1) for row in rows[:_LISTED])
    more = f" and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
    listed = f"; rows {shown}{more}" if rows else ""
    return f"<p>{escape(title)}: {len(rows)} of {count}{listed}</p>"


def _row(number: int, explanation: Explanation) -> str:
    words = explanation.prediction.strip() or "(blank)"
    shown = words if len(words) <= 110 else words[:109] + "…"
    return (
        f'<details class="row"><summary>Row {number + 1}: <strong>{explanation.score:.4g}</strong> {escape(shown)}'
        f"</summary>{pictures_of(explanation)}</details>"
    )


def report_of(explainer: Explainer, rows: Iterable[Row], total: int | None = None, most: int = 10) -> Report:
    """Score rows (iterated twice) and explain the `most` best and worst.

    >>> from movers.registry import METRICS
    >>> from movers.weights import Corpus
    >>> rows = [("Snow melts.", ["Snow melts."]), ("Shares fell.", ["Snow melts."])]
    >>> explainer = Explainer.build(METRICS["wms"], {}, Corpus([], []))
    >>> report = report_of(explainer, rows, most=1)
    >>> [(number, explanation.score == 1) for number, explanation in [*report.best, *report.worst]]
    [(0, True), (1, False)]
    """
    scores = array("d")
    flagged: dict[str, list[int]] = {kind: [] for kind in _KINDS}
    for number, example in enumerate(score_stream(explainer.metric, rows, total)):
        scores.append(example.score)
        for kind, numbers in flagged.items():
            if getattr(example, kind):
                numbers.append(number)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], number))
    best = order[:most]
    worst = order[: len(best) - 1 : -1][:most] if len(order) > most else []
    wanted = {*best, *worst}
    texts = {number: row for number, row in enumerate(rows) if number in wanted}
    found = dict(zip(texts, explainer.explain(list(texts.values())), strict=True))
    first = next(iter(found.values()))
    return Report(
        first.title,
        first.signature,
        first.paper,
        scores,
        flagged,
        [(number, found[number]) for number in best],
        [(number, found[number]) for number in worst],
    )

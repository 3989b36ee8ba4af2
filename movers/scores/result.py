"""From comparisons to the result dict."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

from movers.io import printable
from movers.scores.metric import AnyMetric, Comparison, Example

__all__ = ["Result", "Totals", "collect", "corpus_score", "reduce_references"]


class Result(dict[str, Any]):
    """Result of a metric: a dict that prints as score, number of texts and signature.

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
        return f"{score} ({count}) {printable(signature)}"

    def _repr_html_(self) -> str:
        score, count, signature = map(html.escape, self._shown())
        return f"<b>{score}</b> ({count})<br><code>{signature}</code>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def reduce_references(metric: AnyMetric, comparisons: list[Comparison], truncated: bool, unknown: bool) -> Example:
    if metric.multi_ref == "max":
        best = max(comparisons, key=lambda comparison: comparison.score)
        value, parts, distance = best.score, best.parts, best.distance
    else:
        count = 1 if metric.multi_ref == "sum" else len(comparisons)
        value = math.fsum(comparison.score for comparison in comparisons) / count
        names = comparisons[0].parts
        parts = {name: math.fsum(comparison.parts[name] for comparison in comparisons) / count for name in names}
        moved = [comparison.distance for comparison in comparisons if comparison.distance is not None]
        distance = math.fsum(moved) / len(moved) if moved else None
    alignments = None
    if metric.options.return_alignment:
        alignments = [
            {
                "reference_index": index,
                "score": metric.rescale("score", comparison.score),
                **(comparison.alignment or {}),
            }
            for index, comparison in enumerate(comparisons)
        ]
    return Example(
        metric.rescale("score", value),
        {name: metric.rescale(name, part) for name, part in parts.items()} if metric.baseline else parts,
        any(comparison.empty for comparison in comparisons),
        any(comparison.unfiltered for comparison in comparisons),
        truncated,
        unknown,
        alignments,
        distance,
    )


@dataclass
class Totals:
    """Running totals for the corpus score: counts, and exact sums as a few floats each."""

    rows: int = 0
    moved: int = 0  # rows with a distance
    scores: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    other_scores: list[float] = field(default_factory=list)  # of the rows without distance

    def add(self, scores: Sequence[float], distances: Sequence[float | None]) -> None:
        """Add rows."""
        moved = [distance for distance in distances if distance is not None]
        others = [score for score, distance in zip(scores, distances, strict=True) if distance is None]
        self.rows += len(scores)
        self.moved += len(moved)
        self.scores = _exact_sum([*self.scores, *scores])
        self.distances = _exact_sum([*self.distances, *moved])
        self.other_scores = _exact_sum([*self.other_scores, *others])

    def corpus_score(self, metric: AnyMetric) -> float:
        """The mean of the scores or, with `average="distances"`, the similarity of the mean distance.

        A row without distance (one side is blank) counts with its score.
        """
        if getattr(metric.options, "average", "scores") == "scores":
            return math.fsum(self.scores) / self.rows
        mean = math.fsum(self.distances) / self.moved if self.moved else 0.0
        value = metric.rescale("score", metric.similarity(mean)) if self.moved else 0.0
        return math.fsum([value * self.moved, *self.other_scores]) / self.rows


def _exact_sum(values: Iterable[float]) -> list[float]:
    """A few floats with exactly the same sum, so that a later `math.fsum` rounds once, as over all values.

    >>> _exact_sum([1e16, 1.0, 1.0, 0.5])
    [1.0000000000000002e+16, 0.5]
    """
    left = list(values)
    parts: list[float] = []
    while part := math.fsum(left):
        parts.append(part)
        if not math.isfinite(part):
            break
        left.append(-part)
    return parts


def corpus_score(metric: AnyMetric, scores: Sequence[float], distances: Sequence[float | None]) -> float:
    """Corpus score of all rows."""
    totals = Totals()
    totals.add(scores, distances)
    return totals.corpus_score(metric)


def collect(metric: AnyMetric, examples: Sequence[Example]) -> dict[str, object]:
    """The result dict, with plain Python values only."""
    scores, distances = [example.score for example in examples], [example.distance for example in examples]
    result: dict[str, object] = Result(
        score=corpus_score(metric, scores, distances),
        scores=scores,
        signature=metric.signature,
        n_empty=sum(example.empty for example in examples),
        n_unfiltered=sum(example.unfiltered for example in examples),
        n_truncated=sum(example.truncated for example in examples),
        n_unknown=sum(example.unknown for example in examples),
    )
    if any(distance is not None for distance in distances):
        result["distances"] = distances
    for name in examples[0].parts:
        result[name] = [example.parts[name] for example in examples]
    result.update(metric.extra())
    if metric.options.return_alignment:
        result["alignments"] = [example.alignments for example in examples]
    return result

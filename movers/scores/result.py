"""From comparisons to the result every metric returns: a dict for code, a few lines for people."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence, Sized
from typing import Any

from movers.scores.metric import Comparison, Example, PairMetric

__all__ = ["Result", "collect", "corpus_score", "reduce_references"]


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


def reduce_references(
    metric: PairMetric[Any], comparisons: list[Comparison], truncated: bool, unknown: bool
) -> Example:
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


def corpus_score(metric: PairMetric[Any], scores: Sequence[float], distances: Sequence[float | None]) -> float:
    """The mean of the scores or, with `average="distances"`, the similarity of the mean distance.

    A row without distance (one side is blank) counts with its score.
    """
    if getattr(metric.options, "average", "scores") == "scores":
        return math.fsum(scores) / len(scores)
    moved = [distance for distance in distances if distance is not None]
    others = [score for score, distance in zip(scores, distances, strict=True) if distance is None]
    value = metric.rescale("score", metric.similarity(math.fsum(moved) / len(moved))) if moved else 0.0
    return math.fsum([value * len(moved), *others]) / len(scores)


def collect(metric: PairMetric[Any], examples: Sequence[Example]) -> dict[str, object]:
    """The result every metric returns: plain Python values only."""
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

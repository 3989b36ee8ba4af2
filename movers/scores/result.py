"""From comparisons to the result dict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from movers.io import printable
from movers.scores.metric import Comparison, Example, Metric


class Result(dict[str, Any]):
    """Result of a metric: a dict that prints as score, number of texts and signature.

    >>> Result(score=0.51234, scores=[0.5, 0.52], signature="wms|v:1", n_empty=0)
    0.5123 (n=2) wms|v:1
    """

    def __repr__(self) -> str:
        counts = "".join(f", {name[2:]} {self[name]}" for name in self if name.startswith("n_") and self[name])
        return f"{self['score']:.4g} (n={len(self['scores'])}{counts}) {printable(self['signature'])}"

    def to_pandas(self) -> Any:
        """A DataFrame with one row per prediction: `scores` and every other list in the result."""
        import pandas

        return pandas.DataFrame({name: value for name, value in self.items() if isinstance(value, list)})


def reduce_references(
    metric: Metric, comparisons: list[Comparison], unfiltered: bool, truncated: bool, unknown: bool
) -> Example:
    """Combine the comparisons of a prediction with all its references, and rescale."""
    if len(comparisons) == 1 or metric.reduction == "max":
        best = max(comparisons, key=lambda comparison: comparison.score)
        value, parts, distance = best.score, best.parts, best.distance
    else:
        count = 1 if metric.reduction == "sum" else len(comparisons)
        value = math.fsum(comparison.score for comparison in comparisons) / count
        names = comparisons[0].parts
        parts = {name: math.fsum(comparison.parts[name] for comparison in comparisons) / count for name in names}
        distances = [comparison.distance for comparison in comparisons if comparison.distance is not None]
        distance = math.fsum(distances) / len(distances) if distances else None
    alignments = None
    if metric.options.return_alignment:
        alignments = [
            {
                "reference_index": index,
                "score": _rescale(metric, "score", comparison.score),
                **(comparison.alignment or {}),
            }
            for index, comparison in enumerate(comparisons)
        ]
    return Example(
        _rescale(metric, "score", value),
        {name: _rescale(metric, name, part) for name, part in parts.items()} if metric.baseline else parts,
        any(comparison.empty for comparison in comparisons),
        unfiltered,
        truncated,
        unknown,
        alignments,
        distance,
    )


def _rescale(metric: Metric, name: str, value: float) -> float:
    """Unrelated texts to 0, equal texts to 1."""
    if metric.baseline is None:
        return value
    return (value - metric.baseline[name]) / (1.0 - metric.baseline[name])


def collect(metric: Metric, examples: Sequence[Example]) -> Result:
    """The result dict, with plain Python values only."""
    scored = [example for example in examples if not example.failed] or examples
    distances = [example.distance for example in examples]
    result = Result(
        score=math.fsum(example.score for example in scored) / len(scored),
        scores=[example.numbers["score"] for example in examples],
        signature=metric.signature,
    )
    for flag in ("empty", "unfiltered", "truncated", "unknown"):
        result[f"n_{flag}"] = sum(getattr(example, flag) for example in examples)
    if any(distance is not None for distance in distances):
        result["distances"] = distances
    for name in examples[0].parts:
        result[name] = [example.numbers[name] for example in examples]
    if failed := sum(bool(example.failed) for example in examples):
        result["n_failed"] = failed
    result.update(metric.extra)
    if metric.options.return_alignment:
        result["alignments"] = [example.alignments for example in examples]
    return result

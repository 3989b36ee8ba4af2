"""Baselines for rescaling, as `movers baseline` writes them: mean scores of unrelated texts."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from movers.errors import InputError, RowError
from movers.inputs import check_positive
from movers.io import write_file
from movers.registry import find_metric
from movers.scores.unrelated import BASELINE_FORMAT
from movers.signature import short_digest


def compute_baseline(
    metric: str, texts: Sequence[str], options: Mapping[str, object] | None = None, pairs: int = 10_000, seed: int = 13
) -> dict[str, object]:
    """Mean scores of random pairs of different texts by a metric with references, and how they were computed.

    ``texts`` are sentences or documents like those to be scored. The result has ``score``, and ``precision``,
    ``recall`` and ``f1`` where the metric has them.
    """
    check_positive(metric, "pairs", pairs, none_allowed=False)
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if len(distinct) < 2:
        raise InputError(f"{metric}: corpus: expected at least two different texts, but got {len(distinct)}")
    spec = find_metric(metric)
    if spec.compared_with != "references":
        raise InputError(f"{metric}: a baseline needs a metric that compares with references")
    draw = random.Random(seed)
    places = [draw.sample(range(len(distinct)), 2) for _ in range(pairs)]
    predictions, references = ([distinct[pair[side]] for pair in places] for side in (0, 1))
    try:
        result = spec.function(predictions, references, **(options or {}))
    except RowError as error:
        raise error.at(f"corpus: {predictions[error.row][:40]!r}") from None
    record: dict[str, object] = {
        "format": BASELINE_FORMAT,
        "metric": metric,
        "signature": result["signature"],
        "score": result["score"],
        "pairs": pairs,
        "seed": seed,
        "texts": len(distinct),
        "corpus": short_digest("\n".join(distinct)),
    }
    for part in ("precision", "recall", "f1"):
        if part in result:
            record[part] = sum(result[part]) / len(result[part])
    return record


def save_baseline(record: Mapping[str, object], path: str | Path) -> None:
    write_file(path, json.dumps(dict(record), indent=2, ensure_ascii=False) + "\n")

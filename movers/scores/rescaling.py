"""Reading the baselines that `movers baseline` writes, to rescale scores by them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

from movers.errors import InputError

__all__ = ["BASELINE_FORMAT", "read_baseline"]

BASELINE_FORMAT = "movers-baseline-1"


def read_baseline(
    metric: str, path: object, expected: Mapping[str, str | None], state: int | None
) -> tuple[float, float, float]:
    """Precision, recall and F1 of random pairs, for just the expected metric, alignment, model, layer and weights.

    A file in the format of the `bert-score` package (columns LAYER, P, R, F) serves greedy alignments; it does not name
    its model, so the caller answers for that.
    """
    file = Path(str(path))
    if not file.is_file():
        raise InputError(f"{metric}: baseline_path: no such file: {file}")
    text = file.read_text(encoding="utf-8")
    if not text.lstrip().startswith("{"):
        return _read_table(metric, file, text, expected["alignment"], state)
    try:
        record = json.loads(text)
        if record["format"] != BASELINE_FORMAT:
            raise KeyError(record["format"])
        values = (float(record["precision"]), float(record["recall"]), float(record["f1"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{metric}: baseline_path: {file} was not written by `movers baseline` ({error!r})") from None
    _check_values(metric, file, values)
    for name, value in expected.items():
        if name == "metric" and expected["alignment"] == "greedy":
            continue  # both metrics are the same then
        if record.get(name) != value:
            raise InputError(
                f"{metric}: baseline_path: {file} is for {name} {record.get(name)!r}, but this call has {value!r}"
            )
    return values


def _read_table(
    metric: str, file: Path, text: str, alignment: str | None, state: int | None
) -> tuple[float, float, float]:
    if alignment != "greedy":
        raise InputError(
            f"{metric}: baseline_path: {file} is for greedy alignments; `movers baseline` makes one for this"
        )
    rows = {row.get("LAYER"): row for row in csv.DictReader(text.splitlines())}
    row = rows.get(str(state))
    try:
        if row is None:
            raise KeyError(f"no row for layer {state}")
        values = float(row["P"]), float(row["R"]), float(row["F"])
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{metric}: baseline_path: {file}: expected columns LAYER, P, R, F: {error}") from None
    _check_values(metric, file, values)
    return values


def _check_values(metric: str, file: Path, values: tuple[float, float, float]) -> None:
    """Scores are divided by 1 − b: a baseline of 1, or of no number at all, would make no number of them."""
    if not all(math.isfinite(value) and value < 1.0 for value in values):
        raise InputError(f"{metric}: baseline_path: {file}: expected numbers below 1, but got {values}")

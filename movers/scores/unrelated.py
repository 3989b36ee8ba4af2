"""Scores of unrelated texts: `temperature="auto"`, and baselines for rescaling.

Contextual vectors of unrelated texts are similar, so scores concentrate in the upper part of their range. Rescaling by
the mean score b of unrelated texts, (x − b) / (1 − b), puts unrelated texts around 0 and leaves equal texts at 1.
"""

from __future__ import annotations

import csv
import json
import math
import os
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

from movers.errors import InputError
from movers.scores.engine import score_block
from movers.scores.metric import Example, Metric
from movers.signature import read_signature

BASELINE_FORMAT = "movers-baseline-2"
_FREE = ("idf", "refs", "baseline")  # signature fields in which a baseline may differ from the call that uses it
_examples: dict[str, list[Example]] = {}  # by signature, which holds everything that changes a distance


@lru_cache(maxsize=1)
def unrelated_texts() -> tuple[str, ...]:
    """The built-in list: unrelated sentences and short paragraphs of 4 to 40 words."""
    lines = resources.files("movers").joinpath("data", "unrelated.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _unrelated_examples(metric: Metric) -> list[Example]:
    """Score every text of the list against every other."""
    examples = _examples.get(metric.signature)
    if examples is None:
        options = replace(metric.options, return_alignment=False, truncation="window")
        plain = replace(metric, options=options, encoding=metric.encoding and replace(metric.encoding, options=options))
        examples = score_block(plain, [(first, [second]) for first, second in combinations(unrelated_texts(), 2)])
        if len(_examples) >= 64:
            _examples.clear()
        _examples[metric.signature] = examples
    return examples


def mean_unrelated_distance(metric: Metric) -> float:
    """`temperature="auto"`: the mean distance between unrelated texts; too few known words are an error."""
    examples = _unrelated_examples(metric)
    distances = [example.distance for example in examples if example.distance is not None]
    if 2 * len(distances) < len(examples) or not math.fsum(distances) > 0:
        raise InputError(
            f"{metric.name}: temperature: 'auto' measures the distance of unrelated English texts, but the encoder "
            f"knows words of both in {len(distances)} of {len(examples)} pairs only; pass a number, such as 1"
        )
    return math.fsum(distances) / len(distances)


def rescaled(metric: Metric) -> Metric:
    """The metric with its baseline, if `rescale` is set."""
    rescale = getattr(metric.options, "rescale", False)
    if rescale is False or rescale is None:
        return metric
    if rescale is True:
        rows = [{"score": example.score, **example.parts} for example in _unrelated_examples(metric)]
        baseline = {name: math.fsum(row[name] for row in rows) / len(rows) for name in rows[0]}
        label = "unrelated"  # determined by the other fields and the version
    else:
        baseline = _read_baseline(metric, Path(str(rescale)))
        label = ",".join(f"{value!r}" for value in baseline.values())
    # Scores are divided by 1 − b, so b must be a number below 1.
    if not all(math.isfinite(value) and value < 1.0 for value in baseline.values()):
        raise InputError(f"{metric.name}: rescale: expected numbers below 1, but got {baseline}")
    head, version = metric.signature.rsplit("|", 1)
    return replace(metric, baseline=baseline, signature=f"{head}|baseline:{label}|{version}")


def _read_baseline(metric: Any, file: Path) -> dict[str, float]:
    """Read a baseline file, written by `movers baseline` for the same options or in the format of `bert-score`."""
    if not os.path.isfile(file):
        raise InputError(f"{metric.name}: rescale: no such file: {file}")
    try:
        text = file.read_text(encoding="utf-8")
        if text.startswith("LAYER,"):
            return _read_table(metric, file, text)
        record = json.loads(text)
        if record["format"] != BASELINE_FORMAT:
            raise KeyError(record["format"])
        baseline = {name: float(record[name]) for name in ("score", *metric.compare_empty(True).parts)}
        made_for = read_signature(record["signature"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{metric.name}: rescale: {file} was not written by `movers baseline` ({error!r})") from None
    fields = read_signature(metric.signature)
    for name in [*fields, *made_for]:
        # The greedy alignment is the same for both metrics.
        if name in _FREE or (name == "metric" and fields.get("align") == made_for.get("align") == "greedy"):
            continue
        if fields.get(name) != made_for.get(name):
            expected, actual = made_for.get(name), fields.get(name)
            raise InputError(f"{metric.name}: rescale: {file} is for {name} {expected!r}, but this call has {actual!r}")
    return baseline


def _read_table(metric: Metric, file: Path, text: str) -> dict[str, float]:
    """Read columns LAYER, P, R, F, for greedy alignments; the file does not name its model, so this is not checked."""
    layer = getattr(metric, "baseline_layer", None)
    if read_signature(metric.signature).get("align") != "greedy" or layer is None:
        raise InputError(f"{metric.name}: rescale: {file} is for greedy alignments of one layer; use `movers baseline`")
    row = {row["LAYER"]: row for row in csv.DictReader(text.splitlines())}[str(layer)]
    values = {"precision": float(row["P"]), "recall": float(row["R"]), "f1": float(row["F"])}
    return {"score": values["f1"], **values}

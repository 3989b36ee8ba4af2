"""Documents with summaries, from files or the Hub; split so that no document stands on two sides."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from movers.inputs import check_text

__all__ = ["SPLITS", "DocumentSummary", "data_digest", "read_pairs", "split_rows"]

SPLITS = ("train", "validation", "test")
# Names that data sets give the two columns, the likeliest first.
_SOURCE_COLUMNS = ("source", "document", "article", "text", "dialogue", "report", "description")
_SUMMARY_COLUMNS = ("summary", "highlights", "abstract", "target", "headline")


@dataclass(frozen=True)
class DocumentSummary:
    """A document and a good summary of it."""

    source: str
    summary: str


def _column(names: Iterable[str], wanted: str | None, known: Sequence[str], what: str) -> str:
    names = list(names)
    if wanted is not None:
        if wanted not in names:
            raise ValueError(f"quality: data: expected a column {wanted!r} ({what}), but it has {', '.join(names)}")
        return wanted
    for name in known:
        if name in names:
            return name
    raise ValueError(
        f"quality: data: expected a column of {what} ({', '.join(known)}), but it has {', '.join(names)}; "
        f"name it with {what}_column"
    )


def _rows(data: str, split: str) -> list[Mapping[str, Any]]:
    path = Path(data)
    if path.is_file():
        name = path.name.removesuffix(".gz")
        if name.endswith((".jsonl", ".json")):
            opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
            with opened as file:
                if name.endswith(".json"):
                    return list(json.load(file))
                return [json.loads(line) for line in file if line.strip()]
        if name.endswith((".csv", ".parquet", ".arrow")):
            import datasets

            kind = name.rsplit(".", 1)[-1]
            return list(datasets.load_dataset(kind, data_files=str(path), split="train"))
        raise ValueError(
            f"quality: data: expected a file of jsonl, json, csv, parquet or arrow (jsonl and json also gzip'd), "
            f"but got {path.name!r}"
        )
    if data.startswith((".", os.sep, "~")) or data.endswith((".jsonl", ".json", ".csv", ".parquet", ".gz")):
        raise FileNotFoundError(f"quality: data: {data!r} looks like a file, but there is none of that name")
    import datasets

    name, _, configuration = data.partition(":")
    return list(datasets.load_dataset(name, configuration or None, split=split))


def read_pairs(
    data: str | Sequence[str],
    *,
    source_column: str | None = None,
    summary_column: str | None = None,
    split: str = "train",
    limit: int | None = None,
) -> list[DocumentSummary]:
    """Read one or several sets; rows with a blank document or summary are left out.

    Parameters
    ----------
    data
        A file (JSON Lines, JSON, CSV, Parquet, Arrow; the first two also gzip'd) or the name of a Hub data set,
        `name` or `name:configuration`; or a list of these.
    source_column, summary_column
        Found by their usual names if None.
    split
        Split of a Hub data set.
    limit
        Take the first so many rows of each set.
    """
    pairs = []
    for one in [data] if isinstance(data, str) else list(data):
        rows = _rows(one, split)
        if not rows:
            raise ValueError(f"quality: data: {one!r} has no rows")
        source = _column(rows[0], source_column, _SOURCE_COLUMNS, "source")
        summary = _column(rows[0], summary_column, _SUMMARY_COLUMNS, "summary")
        for number, row in enumerate(rows[:limit]):
            texts = [check_text("quality", column, str(number), row.get(column)) for column in (source, summary)]
            if all(text.strip() for text in texts):
                pairs.append(DocumentSummary(*texts))
    return pairs


def data_digest(pairs: Sequence[DocumentSummary]) -> str:
    """SHA-256 over the rows, in order: what a training record names its data by."""
    total = hashlib.sha256()
    for pair in pairs:
        total.update(json.dumps([pair.source, pair.summary]).encode())
    return total.hexdigest()


def split_rows(
    pairs: Sequence[DocumentSummary], seed: int = 0, shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
) -> dict[str, list[int]]:
    """Rows of the training, validation and test side; rows of one document, or of one summary, stay together.

    >>> rows = [DocumentSummary(f"d{i // 2}", f"s{i}") for i in range(20)]
    >>> sides = split_rows(rows)
    >>> {name: len(side) for name, side in sides.items()}
    {'train': 16, 'validation': 2, 'test': 2}
    """
    groups: dict[str, int] = {}
    parents: list[int] = []

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    owners = []
    for pair in pairs:
        nodes = []
        for key in ("d" + pair.source.strip(), "s" + pair.summary.strip()):
            if key not in groups:
                groups[key] = len(parents)
                parents.append(len(parents))
            nodes.append(groups[key])
        parents[root(nodes[1])] = root(nodes[0])
        owners.append(nodes[0])
    members: dict[int, list[int]] = {}
    for row, node in enumerate(owners):
        members.setdefault(root(node), []).append(row)
    # The order of the groups must not hang on which rows stand before them alone: shuffle them with the seed.
    order = np.random.default_rng([seed, 80]).permutation(len(members))
    listed = list(members.values())
    sides: dict[str, list[int]] = {name: [] for name in SPLITS}
    bounds = np.cumsum(shares) * len(pairs)
    taken = 0
    for group in (listed[place] for place in order):
        side = next((name for name, bound in zip(SPLITS, bounds, strict=True) if taken + 0.5 <= bound), SPLITS[-1])
        sides[side] += group
        taken += len(group)
    return {name: sorted(rows) for name, rows in sides.items()}

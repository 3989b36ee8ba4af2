"""Documents with summaries, from files or the Hub; split so that no document is on two sides."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from movers import io
from movers.errors import InputError
from movers.inputs import check_text

__all__ = ["SPLITS", "Pair", "data_digest", "read_pairs", "split_rows"]

SPLITS = ("train", "validation", "test")
# Names that data sets give the two columns, the likeliest first.
_USUAL_COLUMNS = {
    "source": ("source", "document", "article", "text", "dialogue", "report", "description"),
    "summary": ("summary", "highlights", "abstract", "target", "headline"),
}
_COMMAND = "train quality"
_FILES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".gz", ".txt")


class Pair(NamedTuple):
    """A document with a good summary."""

    document: str
    summary: str


def _column(where: str, names: Sequence[str], wanted: str | None, what: str) -> str:
    usual = _USUAL_COLUMNS[what] if wanted is None else (wanted,)
    found = next((name for name in usual if name in names), None)
    if found is None:
        expected = f"a column {wanted!r}" if wanted is not None else f"one of the columns {', '.join(usual)}"
        raise InputError(
            f"{_COMMAND}: data: {where}: expected {expected} for the {what}, but got {', '.join(names)}; "
            f"name it with --{what}-column"
        )
    return found


def _records(data: str, split: str) -> Iterable[dict[str, object]]:
    if Path(data).exists() or data == "-" or data.startswith((".", os.sep, "~")) or data.endswith(_FILES):
        return io.read_records(data)
    import datasets

    name, _, configuration = data.partition(":")
    try:
        return datasets.load_dataset(name, configuration or None, split=split)
    except (OSError, ValueError) as error:  # no such set, configuration or split; no connection
        raise InputError(
            f"{_COMMAND}: data: {data!r} is neither a file nor a data set that the Hub gave: {str(error)[:200]}"
        ) from error


def read_pairs(
    data: str | Sequence[str],
    *,
    source_column: str | None = None,
    summary_column: str | None = None,
    split: str = "train",
    limit: int | None = None,
) -> list[Pair]:
    """Read one or several data sets; rows with a blank document or summary are left out.

    `data` is a file (JSON Lines, JSON, CSV, TSV, Parquet, Arrow; also gzip'd), a Hub data set (`name` or
    `name:configuration`, of which `split` is read), or a list of these; columns are found by their usual names unless
    named; `limit` rows are taken from the beginning of each data set.
    """
    pairs = []
    for one in [data] if isinstance(data, str) else data:
        columns: list[str] = []
        for number, row in enumerate(islice(_records(one, split), limit)):
            if not columns:
                wanted = {"source": source_column, "summary": summary_column}
                columns = [_column(one, list(row), name, what) for what, name in wanted.items()]
            document, summary = (check_text(_COMMAND, name, str(number), row.get(name)) for name in columns)
            if document.strip() and summary.strip():
                pairs.append(Pair(document, summary.strip()))
        if not columns:
            raise InputError(f"{_COMMAND}: data: {one!r} has no rows")
    return pairs


def data_digest(pairs: Sequence[Pair]) -> str:
    """SHA-256 over the rows, in order; the training record identifies its data by it."""
    total = hashlib.sha256()
    for pair in pairs:
        total.update(json.dumps([pair.document, pair.summary]).encode())
    return total.hexdigest()


def split_rows(
    pairs: Sequence[Pair], seed: int = 0, shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
) -> dict[str, list[int]]:
    """Rows of the training, validation and test side; rows of one document, or of one summary, stay together.

    >>> rows = [Pair(f"d{i // 2}", f"s{i}") for i in range(20)]
    >>> {name: len(side) for name, side in split_rows(rows).items()}
    {'train': 16, 'validation': 2, 'test': 2}
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # a graph of texts, with an edge for every row; its components must not be divided
    nodes: dict[tuple[str, str], int] = {}
    documents = [nodes.setdefault(("document", pair.document.strip()), len(nodes)) for pair in pairs]
    summaries = [nodes.setdefault(("summary", pair.summary.strip()), len(nodes)) for pair in pairs]
    graph = coo_array((np.ones(len(pairs)), (documents, summaries)), shape=(len(nodes), len(nodes)))
    _, labels = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(labels[documents].tolist()):
        groups.setdefault(label, []).append(row)
    listed = list(groups.values())
    sides: dict[str, list[int]] = {name: [] for name in SPLITS}
    bounds = np.cumsum(shares) * len(pairs)
    taken = 0
    for place in np.random.default_rng([seed, 80]).permutation(len(listed)):
        side = next((name for name, bound in zip(SPLITS, bounds, strict=True) if taken + 0.5 <= bound), SPLITS[-1])
        sides[side] += listed[place]
        taken += len(listed[place])
    if empty := [name for name, rows in sides.items() if not rows]:
        raise InputError(
            f"data: expected rows of different texts, but {len(pairs)} rows fall into {len(listed)} groups with texts "
            f"in common, which leaves none for {' and '.join(empty)}"
        )
    return {name: sorted(rows) for name, rows in sides.items()}

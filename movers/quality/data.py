"""Documents with summaries, from files or the Hub; split so that no document is on two sides."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from movers import io
from movers.errors import InputError
from movers.inputs import check_text

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
    for name in usual:
        if name in names:
            return name
    expected = f"a column {wanted!r}" if wanted is not None else f"one of the columns {', '.join(usual)}"
    got = f"{', '.join(names)}; name it with --{what}-column"
    raise InputError(f"{_COMMAND}: data: {where}: expected {expected} for the {what}, but got {got}")


def _records(data: str, split: str) -> Iterable[dict[str, object]]:
    if Path(data).exists() or data == "-" or data.startswith((".", os.sep, "~")) or data.endswith(_FILES):
        return io.read_records(data)
    import datasets

    name, _, configuration = data.partition(":")
    try:
        return datasets.load_dataset(name, configuration or None, split=split)
    except (OSError, ValueError) as error:  # no such set, configuration or split; no connection
        what = "neither a file nor a data set that the Hub gave"
        raise InputError(f"{_COMMAND}: data: {data!r} is {what}: {str(error)[:200]}") from error


def read_pairs(
    data: str | Sequence[str], *, source_column: str | None = None, summary_column: str | None = None,
    split: str = "train", limit: int | None = None,
) -> list[Pair]:  # fmt: skip
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


def split_rows(pairs: Sequence[Pair], seed: int = 0) -> dict[str, list[int]]:
    """Rows of the sides, 80/10/10; rows of one document, or of one summary, stay together."""
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
    for place in np.random.default_rng([seed, 80]).permutation(len(listed)):
        taken = (sum(map(len, sides.values())) + 0.5) / len(pairs)
        sides["train" if taken <= 0.8 else "validation" if taken <= 0.9 else "test"] += listed[place]
    if empty := [name for name, rows in sides.items() if not rows]:
        groups_left = f"{len(listed)} groups with texts in common, which leaves none for {' and '.join(empty)}"
        raise InputError(f"data: expected rows of different texts, but {len(pairs)} rows fall into {groups_left}")
    return {name: sorted(rows) for name, rows in sides.items()}

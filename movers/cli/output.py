"""The output file of `movers score`: one row per prediction, in blocks from which a later run can resume."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from movers.errors import InputError
from movers.io import BlockFile, check_output, compress_block
from movers.io.arrow import find_pyarrow, write_json_lines
from movers.io.writer import is_direct

if TYPE_CHECKING:
    from movers.scores.engine import Example

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".feather")
_ARROW = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


def check_scores(path: str) -> None:
    """Check that the suffix is supported and the file is writable."""
    check_output(path, SUFFIXES)
    if _suffix(path) in _ARROW:
        if path.endswith(".gz"):
            raise InputError(f"{path}: cannot write it: expected a name without .gz: this format is compressed inside")
        if is_direct(path):
            raise InputError(f"{path}: cannot write it: expected a file, because its parts are not written in order")
        find_pyarrow(path)


def holds_records(path: str | None) -> bool:
    """Whether the format stores full records, not only scores."""
    return path is not None and (_suffix(path) == ".jsonl" or _suffix(path) in _ARROW)


def _suffix(path: str) -> str:
    return Path(path.removesuffix(".gz")).suffix.lower()


class ScoreFile:
    """Scores only (text, CSV, TSV) or full records (JSON Lines, Parquet, Arrow).

    Blocks of the two binary formats are kept as JSON Lines and converted at the end.
    """

    def __init__(self, blocks: BlockFile, path: str, labels: Sequence[str]) -> None:
        self.blocks = blocks
        self.path = path
        self.labels = labels
        self.suffix = _suffix(path)
        self.rows = io.StringIO(newline="")
        self.table = csv.writer(self.rows, lineterminator="\n", delimiter="," if self.suffix == ".csv" else "\t")

    def begin(self, head: Mapping[str, str]) -> list[dict[str, object]] | None:
        """Record what identifies this run. Returns the state of the interrupted run, if there is one."""
        state = self.blocks.begin(head)
        if state is None and self.suffix in (".csv", ".tsv"):
            self.table.writerow(["index", *(self.labels if len(self.labels) > 1 else ["score"])])
        return state

    def write(self, index: int, examples: Sequence[Example]) -> None:
        if self.suffix == ".jsonl" or self.suffix in _ARROW:
            found = [_as_record(example) for example in examples]
            own = found[0] if len(found) == 1 else dict(zip(self.labels, found, strict=True))
            self.rows.write(json.dumps({"index": index, **own}, ensure_ascii=False) + "\n")
        else:
            scores = [example.score for example in examples]
            self.table.writerow([index, *scores] if self.suffix in (".csv", ".tsv") else scores)

    def end_block(self, state: list[dict[str, object]]) -> None:
        """Store the rows since the last block, with the state after them."""
        data = self.rows.getvalue().encode("utf-8")
        self.rows.seek(0)
        self.rows.truncate()
        self.blocks.append(compress_block(data) if self.path.endswith(".gz") else data, state)

    def finish(self) -> None:
        """All blocks are complete: write the file."""
        if self.blocks.partial is None:
            return
        with self.blocks.finish() as file:
            if self.suffix in _ARROW:
                write_json_lines(self.path, _ARROW[self.suffix], file, self.blocks)
            else:
                file.writelines(self.blocks)


def _as_record(example: Example) -> dict[str, object]:
    record: dict[str, object] = {"score": example.score, **example.parts}
    if example.distance is not None:
        record["distance"] = example.distance
    return record if example.alignments is None else {**record, "alignments": example.alignments}

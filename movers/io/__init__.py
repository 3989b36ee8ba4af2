"""One reader and one writer for every file, and the one rule for progress bars."""

from __future__ import annotations

from movers.io.columns import TextGroups, Texts, find_column
from movers.io.progress import progress_bar
from movers.io.reader import Row, Table, read_records, read_rows
from movers.io.tables import align_table
from movers.io.writer import check_output, open_output, write_file

__all__ = [
    "Row",
    "Table",
    "TextGroups",
    "Texts",
    "align_table",
    "check_output",
    "find_column",
    "open_output",
    "progress_bar",
    "read_records",
    "read_rows",
    "write_file",
]

"""One reader and one writer for every file, and the one rule for progress bars."""

from __future__ import annotations

from movers.io.blocks import BlockFile, compress_block, open_blocks
from movers.io.columns import Survey, TextGroups, Texts, find_column
from movers.io.packed import bounded_lines, longest_line, open_packed, read_packed
from movers.io.progress import progress_bar
from movers.io.reader import Row, Table, read_records, read_rows
from movers.io.tables import align_table, csv_cell, csv_row, printable
from movers.io.writer import check_output, open_output, write_file

__all__ = [
    "BlockFile",
    "Row",
    "Survey",
    "Table",
    "TextGroups",
    "Texts",
    "align_table",
    "bounded_lines",
    "check_output",
    "compress_block",
    "csv_cell",
    "csv_row",
    "find_column",
    "longest_line",
    "open_blocks",
    "open_output",
    "open_packed",
    "printable",
    "progress_bar",
    "read_packed",
    "read_records",
    "read_rows",
    "write_file",
]

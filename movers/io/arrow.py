"""Parquet and Arrow files, read and written one batch of records at a time.

A few kilobytes of such a file can hold a value once and name it a million times, or pages that unpack to gigabytes.
So values stay in their dictionaries until rows become Python objects, rows become so in groups of bounded size, and the
limits of `movers.io.packed` hold for cells and pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import IO, TYPE_CHECKING

from movers.errors import InputError
from movers.io.ipc import IPC_FILE, Damaged, claims
from movers.io.packed import FLOOR, RATIO, longest_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyarrow.parquet import ParquetFile

__all__ = ["find_pyarrow", "read_batches", "write_json_lines"]

Record = dict[str, object]
_ROWS = 1024  # that become Python objects at a time


def find_pyarrow(path: str) -> ModuleType:
    """The package that reads and writes these files."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: reading or writing it needs the package pyarrow: pip install pyarrow") from None
    return pyarrow


def read_batches(path: str, kind: str, source: IO[bytes]) -> Iterator[list[Record]]:
    """The records of a Parquet file, or of an Arrow file or stream (Feather included), a bounded number at a time."""
    pyarrow = find_pyarrow(path)
    try:
        if kind == "parquet":
            batches = _open_parquet(pyarrow, path, source).iter_batches(batch_size=_ROWS)
        else:
            _check_claims(path, source)
            source.seek(0)
            is_file = source.read(len(IPC_FILE)) == IPC_FILE
            source.seek(0)
            if is_file:
                reader = pyarrow.ipc.open_file(source)
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                batches = pyarrow.ipc.open_stream(source)
        before = 0
        for batch in batches:
            if len(set(names := batch.schema.names)) < len(names):
                raise InputError(f"{path}: expected different names of columns, but got {', '.join(names)}")
            for begin, end in _groups(path, batch, before):
                yield _objects(path, _decoded(pyarrow, batch.slice(begin, end - begin)), before + begin)
            before += batch.num_rows
    except (pyarrow.ArrowException, Damaged) as error:
        raise InputError(f"{path}: expected {'an' if kind == 'arrow' else 'a'} {kind} file, but got: {error}") from None


def _check_claims(path: str, source: IO[bytes]) -> None:
    """Refuse an Arrow file of which a batch unpacks as no text does: its reader unpacks batches whole."""
    for claim in claims(source):
        if claim.unpacked > max(FLOOR, RATIO * claim.packed):
            raise InputError(
                f"{path}: expected batches that unpack to at most {RATIO} times their size, but one claims "
                f"{claim.unpacked:,} bytes from {claim.packed:,}; if it is meant, write the file without compression"
            )


def _open_parquet(pyarrow: ModuleType, path: str, source: IO[bytes]) -> ParquetFile:
    """A Parquet file whose texts stay in their dictionaries; refused if its pages unpack as no text does."""
    metadata = pyarrow.parquet.read_metadata(source)
    texts = set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.total_uncompressed_size > max(FLOOR, RATIO * column.total_compressed_size):
                raise InputError(
                    f"{path}: expected columns that unpack to at most {RATIO} times their size, but "
                    f"{column.path_in_schema!r} claims {column.total_uncompressed_size:,} bytes from "
                    f"{column.total_compressed_size:,}; if it is meant, write the file without compression"
                )
            # Levels are counted in runs: a few bytes can say that one row holds a list of a thousand million values.
            listed = 8 * (column.num_values - group.num_rows)
            if listed > max(FLOOR, RATIO * column.total_compressed_size):
                raise InputError(
                    f"{path}: expected lists of at most {FLOOR >> 3:,} values in a group of rows, or {RATIO} bytes per "
                    f"byte of the file, but {column.path_in_schema!r} claims {column.num_values:,} values from "
                    f"{column.total_compressed_size:,} bytes; leave the column out, or write smaller groups of rows"
                )
            if column.physical_type == "BYTE_ARRAY":
                texts.add(column.path_in_schema)
    source.seek(0)
    return pyarrow.parquet.ParquetFile(source, metadata=metadata, read_dictionary=sorted(texts))


def _groups(path: str, batch: pa.RecordBatch, before: int) -> Iterator[tuple[int, int]]:
    """Begin and end of groups of rows that may become Python objects together; `before` rows came before the batch."""
    import numpy as np

    sizes = sum((_bytes(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64))
    limit = longest_line()
    if (large := np.flatnonzero(sizes > limit)).size:
        raise InputError(
            f"{path}: row {before + int(large[0]) + 1}: expected at most {limit:,} bytes, but it has "
            f"{int(sizes[large[0]]):,}; the environment variable MOVERS_MAX_LINE allows more"
        )
    ends, begin = np.cumsum(sizes), 0
    while begin < batch.num_rows:
        room = FLOOR + (int(ends[begin - 1]) if begin else 0)
        end = min(begin + _ROWS, max(begin + 1, int(np.searchsorted(ends, room, "right"))))
        yield begin, end
        begin = end


def _decoded(pyarrow: ModuleType, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the values of their dictionaries written out, which become Python objects faster."""
    kinds = pyarrow.types
    columns = [one.dictionary_decode() if kinds.is_dictionary(one.type) else one for one in rows.columns]
    return pyarrow.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _objects(path: str, rows: pa.RecordBatch, before: int) -> list[Record]:
    """Rows as Python objects; a value that Python cannot hold is an error that names its row and column."""
    try:
        return rows.to_pylist()
    except (ValueError, OverflowError, LookupError):  # no UTF-8, a date after the year 9999, an unknown time zone
        for row in range(rows.num_rows):
            for name, column in zip(rows.schema.names, rows.columns, strict=True):
                try:
                    column[row].as_py()
                except (ValueError, OverflowError, LookupError) as error:
                    raise InputError(
                        f"{path}: row {before + row + 1}: column {name!r}: cannot read its {column.type}: {error}"
                    ) from None
        raise


def _bytes(array: pa.Array) -> NDArray[np.int64]:
    """(n,) bytes that each value takes once it is written out."""
    import numpy as np
    import pyarrow.compute as compute
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        own = np.append(_bytes(array.dictionary), 0)  # the last one is what a missing value takes
        return own[array.indices.cast("int64").fill_null(len(own) - 1).to_numpy(zero_copy_only=False)]
    if types.is_struct(kind):
        return sum((_bytes(field) for field in array.flatten()), np.zeros(len(array), np.int64))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inside = np.concatenate([[0], np.cumsum(_bytes(array.flatten()))])
        lengths = compute.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        return inside[ends] - inside[ends - lengths] + 8
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return compute.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)  # each begins with its length
        lengths = views[array.offset : array.offset + len(array), 0].astype(np.int64)
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    if types.is_run_end_encoded(kind):
        places = np.arange(len(array)) + array.offset
        return _bytes(array.values)[np.searchsorted(array.run_ends.to_numpy(), places, "right")]
    if types.is_map(kind):
        inside = np.concatenate([[0], np.cumsum(_bytes(array.keys) + _bytes(array.items))])
        offsets = array.offsets.to_numpy()
        return inside[offsets[1:]] - inside[offsets[:-1]] + 8
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        inside = np.concatenate([[0], np.cumsum(_bytes(array.values))])
        begin = array.offsets.to_numpy()
        return inside[begin + array.sizes.to_numpy()] - inside[begin] + 8
    return np.full(len(array), kind.byte_width if types.is_fixed_size_binary(kind) else 8)


def write_json_lines(path: str, kind: str, file: IO[bytes], blocks: Iterable[bytes]) -> None:
    """Write blocks of JSON Lines, which are iterated twice, as one Parquet or Arrow file with a batch per block.

    Numbers and texts become columns, objects become structs, lists become texts in JSON.
    """
    pyarrow = find_pyarrow(path)
    found: Record = {}
    for block in blocks:
        for line in block.splitlines():
            _note_kinds(json.loads(line), found)
    schema = pyarrow.schema(_fields(pyarrow, found))
    open_writer = pyarrow.parquet.ParquetWriter if kind == "parquet" else pyarrow.ipc.new_file
    with open_writer(file, schema) as writer:
        for block in blocks:
            rows = [_without_lists(json.loads(line)) for line in block.splitlines()]
            writer.write_batch(pyarrow.RecordBatch.from_pylist(rows, schema=schema))


def _note_kinds(record: Record, found: Record) -> None:
    """Note the names of a record's fields and what they hold: another record, or the name of an Arrow type."""
    for name, value in record.items():
        if isinstance(value, dict):
            own = found.setdefault(name, {})
            assert isinstance(own, dict)
            _note_kinds(value, own)
        else:
            found[name] = {int: "int64", float: "float64"}.get(type(value), "string")


def _fields(pyarrow: ModuleType, found: Record) -> list[tuple[str, object]]:
    return [
        (name, pyarrow.struct(_fields(pyarrow, kind)) if isinstance(kind, dict) else getattr(pyarrow, str(kind))())
        for name, kind in found.items()
    ]


def _without_lists(record: Record) -> Record:
    return {
        name: json.dumps(value, ensure_ascii=False)
        if isinstance(value, list)
        else _without_lists(value)
        if isinstance(value, dict)
        else value
        for name, value in record.items()
    }

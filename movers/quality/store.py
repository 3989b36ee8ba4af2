"""Vectors of units on disk while models are trained: Arrow files, each of which says what it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from movers import io
from movers.encoders import Encoder
from movers.errors import InputError
from movers.quality.units import Array, TextVectors, Unit, UnitVectors, assemble, encode_units

if TYPE_CHECKING:
    import pyarrow

__all__ = ["StoreKind", "VectorStore"]

_HEADER = b"movers"


@dataclass(frozen=True)
class StoreKind:
    """What determines the vectors in a store; vectors of different kinds are never mixed.

    Parameters
    ----------
    encoder : identity of the encoder
    dimension : length of the vectors
    unit : "words" or "sentences"
    lang : language of the rules that split texts into units
    tokens : whether the tokens inside the units are stored too, with their ids
    window : tokens that the encoder reads at once; None for static vectors
    """

    encoder: str
    dimension: int
    unit: Unit
    lang: str
    tokens: bool
    window: int | None
    format: int = 4  # 3 had no ids of tokens

    @property
    def folder_name(self) -> str:
        digest = hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()
        return f"{self.encoder.replace('/', '_')}-{self.unit}{'-tokens' if self.tokens else ''}-{digest[:8]}"


class VectorStore:
    """Vectors of units in half precision, memory-mapped; an interrupted run finds them again.

    Parameters
    ----------
    folder : Path
        Has `part-….arrow` files, each written whole or not at all, with the store's kind in its header.
    kind : StoreKind
        What is to be stored. A file of another kind is an error.
    """

    def __init__(self, folder: Path, kind: StoreKind) -> None:
        self.folder = folder
        self.kind = kind
        self._places: dict[bytes, tuple[int, int]] = {}
        self._parts: list[tuple[Array, Array, NDArray[np.int64], NDArray[np.int32]]] = []
        for path in sorted(folder.glob("part-*.arrow")):
            self._open(path)

    def __contains__(self, unit: str) -> bool:
        return _key(unit) in self._places

    def __len__(self) -> int:
        return len(self._places)

    def _open(self, path: Path) -> None:
        import pyarrow

        try:
            with pyarrow.memory_map(str(path)) as source:
                table = pyarrow.ipc.open_file(source).read_all().combine_chunks()
        except pyarrow.ArrowInvalid as error:
            raise InputError(f"vectors: {path}: expected an Arrow file of vectors, but {error}; remove it") from None
        held = json.loads((table.schema.metadata or {}).get(_HEADER, b"{}"))
        if held != (wanted := asdict(self.kind)):
            names = sorted(name for name in wanted if held.get(name) != wanted[name])
            raise InputError(
                f"vectors: {path}: expected vectors with "
                + ", ".join(f"{name} {wanted[name]!r}" for name in names)
                + ", but got "
                + ", ".join(f"{name} {held.get(name)!r}" for name in names)
            )
        vectors = _values(table.column("vector")).reshape(-1, self.kind.dimension)
        tokens = _values(table.column("tokens")).reshape(-1, self.kind.dimension)
        offsets = np.asarray(table.column("tokens").chunk(0).offsets) // self.kind.dimension
        for row, key in enumerate(table.column("key").to_pylist()):
            self._places[key] = (len(self._parts), row)
        ids = table.column("ids").chunk(0).values.to_numpy(zero_copy_only=True)
        self._parts.append((vectors, tokens, offsets, ids))

    def add(self, units: Sequence[tuple[str, UnitVectors]]) -> None:
        """Write one more file."""
        import pyarrow

        half = pyarrow.float16()
        keys = [_key(text) for text, _ in units]
        tokens = [u.tokens.astype(np.float16).ravel() if self.kind.tokens else _NO_TOKENS for _, u in units]
        ids = [u.ids.astype(np.int32) if self.kind.tokens else _NO_TOKENS.astype(np.int32) for _, u in units]
        columns = {
            "key": pyarrow.array(keys, pyarrow.binary(16)),
            "vector": pyarrow.array([u.vector.astype(np.float16) for _, u in units], pyarrow.list_(half)),
            "tokens": pyarrow.array(tokens, pyarrow.large_list(half)),
            "ids": pyarrow.array(ids, pyarrow.large_list(pyarrow.int32())),
        }
        table = pyarrow.table(columns).replace_schema_metadata({_HEADER: json.dumps(asdict(self.kind)).encode()})
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        # named by content, so that two runs that share a store do not overwrite each other's files
        path = self.folder / f"part-{hashlib.sha256(b''.join(keys)).hexdigest()[:16]}.arrow"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"vectors: {self.folder}: cannot make this folder: {error.strerror}") from None
        io.write_file(path, sink.getvalue().to_pybytes())
        self._open(path)

    def get(self, unit: str) -> UnitVectors:
        """Vectors of a stored unit, as views of the mapped file (float16)."""
        part, row = self._places[_key(unit)]
        vectors, tokens, offsets, ids = self._parts[part]
        kept = slice(offsets[row], offsets[row + 1])
        return UnitVectors(vectors[row], tokens[kept], ids[kept].astype(np.int64))

    def text(self, units: Sequence[str]) -> TextVectors:
        """A text of stored units."""
        return assemble(units, [self.get(unit) for unit in units], self.kind.dimension)

    def fill(self, units: Iterable[str], encoder: Encoder, *, part: int = 4096, progress: bool | None = None) -> None:
        """Encode the units that are missing, `part` of them per file."""
        # longest first, so that batches need little padding
        missing = sorted({unit for unit in units if unit not in self}, key=lambda text: (-len(text), text))
        unit = f" {self.kind.unit}"
        with io.progress_bar(len(missing), desc="encode", unit=unit, progress=progress) as bar:
            for begin in range(0, len(missing), part):
                chunk = missing[begin : begin + part]
                done = []
                for index, vectors in encode_units(chunk, encoder, self.kind.unit):
                    done.append((chunk[index], vectors))
                    bar.update(1)
                self.add(done)


_NO_TOKENS = np.zeros(0, np.float16)


def _key(unit: str) -> bytes:
    return hashlib.sha256(unit.encode("utf-8", "surrogatepass")).digest()[:16]


def _values(lists: pyarrow.ChunkedArray) -> Array:
    return np.asarray(lists.chunk(0).values.to_numpy(zero_copy_only=True))

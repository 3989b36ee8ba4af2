"""Documents and summaries → vectors, each distinct unit read once, kept on disk as Arrow while a model is trained.

Three ways of Bao et al. 2020, section 2.1 and 3.2: static vectors of *words*, vectors of *sentences*, and a *cross*
encoder that reads document and summary together (that one needs token ids alone, see `movers.quality.cross`).
The aligning head also looks at the tokens inside the sentences; they come out of the same forward pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from movers.encoders.passages import when_whole
from movers.texts import WordRules, is_visible, split_sentences

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "EncodedText",
    "SentenceAndTokens",
    "Unit",
    "UnitVectors",
    "VectorStore",
    "assemble",
    "encode_texts",
    "encode_units",
    "split_units",
]

Unit = Literal["words", "sentences", "cross"]
Array = NDArray[Any]
_SPACED_STOP = re.compile(r"(?<=\s[.!?])\s+(?=\S)")


@dataclass(frozen=True)
class SentenceAndTokens:
    """Aggregation of hidden states for an encoder's `encode`: the last layer and a middle one, side by side.

    The mean of the last layer is the sentence's vector. Tokens are taken at two thirds of the depth: the last layer of
    a sentence encoder pulls all tokens towards the sentence's meaning, and a wrong word shows less.
    """

    kind: str = "sentence_and_tokens"

    def __str__(self) -> str:
        return self.kind

    def needed(self, states: int) -> list[int]:
        """Numbers of the hidden states it reads, of L + 1 there are.

        >>> SentenceAndTokens().needed(7)
        [6, 4]
        """
        return [states - 1, round((states - 1) * 2 / 3)]

    def combine(self, layers: Any) -> Any:
        """(n, 2d) from (2, n, d)."""
        return layers.permute(1, 0, 2).flatten(1)


@dataclass(frozen=True)
class UnitVectors:
    """A sentence (or word) as a (d,) vector of length 1 and its (t, d) token vectors of length 1.

    Words and encoders without tokens have t = 0. Special tokens count in the vector and are left out of the tokens.
    """

    vector: Array
    tokens: Array


@dataclass(frozen=True)
class EncodedText:
    """A text as (n, d) vectors of its units, (t, d) token vectors and the (t,) number of each token's unit."""

    units: tuple[str, ...]
    vectors: Array
    tokens: Array
    owners: NDArray[np.int64]

    @property
    def blank(self) -> bool:
        return not self.units


def split_units(text: str, unit: Unit, lang: str = "en") -> list[str]:
    """Sentences with something to read in them, or lower-cased words.

    >>> split_units("Rain fell. It stopped!", "sentences"), split_units("Rain fell.", "words")
    (['Rain fell.', 'It stopped!'], ['rain', 'fell'])
    >>> split_units("` it rains . we stay , ' he said .", "sentences")
    ['` it rains .', "we stay , ' he said ."]
    """
    if unit == "words":
        return [span.text for span in WordRules(keep_numbers=True, lang=lang).spans(text) if span.kept]
    sentences: list[str] = []
    # summarisation corpora are often tokenized: a full stop between spaces ends a sentence, also inside a quotation
    for sentence in (part for whole in split_sentences(text, lang) for part in _SPACED_STOP.split(whole)):
        if not is_visible(sentence):
            continue
        # a lone quotation mark or bullet belongs to the sentence before it
        if sentences and not any(character.isalnum() for character in sentence):
            sentences[-1] += " " + sentence
        else:
            sentences.append(sentence)
    return sentences


def _unit_length(vectors: Array) -> Array:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def encode_units(
    units: Sequence[str], encoder: Any, unit: Unit, *, batch_tokens: int | None = None, window: int | None = None
) -> Iterator[tuple[int, UnitVectors]]:
    """`(index, vectors)` of distinct units as they become ready, in any order."""
    if unit == "words":
        if not units:
            return
        vectors, _ = encoder.vectors(list(units))  # an unknown word is the zero vector
        nothing = np.zeros((0, vectors.shape[1]), np.float32)
        for index, vector in enumerate(_unit_length(vectors)):
            yield index, UnitVectors(vector, nothing)
        return
    limit = encoder.sentence_window if window is None else window
    both = SentenceAndTokens()
    for index, encoded in encoder.encode(list(units), both, batch_tokens=batch_tokens, window=limit):
        half = encoded.vectors.shape[1] // 2
        vector = _unit_length(encoded.vectors[:, :half].mean(axis=0, dtype=np.float64)).astype(np.float32)
        yield index, UnitVectors(vector, _unit_length(encoded.vectors[~encoded.tokens.special, half:]))


def assemble(units: Sequence[str], parts: Sequence[UnitVectors], dimension: int) -> EncodedText:
    """Put the vectors of a text's units together."""
    if not parts:
        empty = np.zeros((0, dimension), np.float32)
        return EncodedText((), empty, empty, np.zeros(0, np.int64))
    owners = np.repeat(np.arange(len(parts)), [len(part.tokens) for part in parts])
    vectors = np.stack([part.vector for part in parts]).astype(np.float32)
    return EncodedText(tuple(units), vectors, np.concatenate([part.tokens for part in parts]), owners)


def encode_texts(
    texts: Sequence[str],
    encoder: Any,
    unit: Unit,
    *,
    lang: str = "en",
    batch_tokens: int | None = None,
    window: int | None = None,
) -> Iterator[tuple[int, EncodedText]]:
    """`(index, encoded text)` for every text as soon as its last unit is ready; every distinct unit is read once."""
    units = [split_units(text, unit, lang) for text in texts]

    def encode(distinct: list[str]) -> Iterator[tuple[int, UnitVectors]]:
        return encode_units(distinct, encoder, unit, batch_tokens=batch_tokens, window=window)

    for index, parts in when_whole(units, encode):
        yield index, assemble(units[index], parts, 0)


# ---------------------------------------------------------------------------------------------------------------------


def _key(unit: str) -> bytes:
    return hashlib.sha256(unit.encode("utf-8", "surrogatepass")).digest()[:16]


class VectorStore:
    """Vectors of units in Arrow files of half precision, memory-mapped: a run that was stopped finds them again.

    Parameters
    ----------
    folder : Path
        Holds `part-00000.arrow`, …; each is written whole or not at all.
    dimension : int
        Length of the vectors.
    tokens : bool
        Whether the tokens inside the units are kept too.
    """

    def __init__(self, folder: Path, dimension: int, tokens: bool) -> None:
        self.folder = folder
        self.dimension = dimension
        self.tokens = tokens
        folder.mkdir(parents=True, exist_ok=True)
        self._places: dict[bytes, tuple[int, int]] = {}
        self._parts: list[tuple[Array, Array, Array]] = []
        for path in sorted(folder.glob("part-*.arrow")):
            self._open(path)

    def __contains__(self, unit: str) -> bool:
        return _key(unit) in self._places

    def __len__(self) -> int:
        return len(self._places)

    def _open(self, path: Path) -> None:
        import pyarrow

        with pyarrow.memory_map(str(path)) as source:
            table = pyarrow.ipc.open_file(source).read_all().combine_chunks()
        if table.num_rows == 0:
            return
        keys = table.column("key").chunk(0)
        vectors = _values(table.column("vector").chunk(0)).reshape(-1, self.dimension)
        lists = table.column("tokens").chunk(0)
        tokens = _values(lists).reshape(-1, self.dimension)
        offsets = np.asarray(lists.offsets) // self.dimension
        for row, key in enumerate(keys.to_pylist()):
            self._places[key] = (len(self._parts), row)
        self._parts.append((vectors, tokens, offsets))

    def add(self, units: Iterable[tuple[str, UnitVectors]]) -> None:
        """Write one more part."""
        import pyarrow

        units = list(units)
        if not units:
            return
        half = pyarrow.float16()
        nothing = np.zeros(0, np.float16)
        table = pyarrow.table(
            {
                "key": pyarrow.array([_key(text) for text, _ in units], pyarrow.binary(16)),
                "vector": pyarrow.array([u.vector.astype(np.float16) for _, u in units], pyarrow.list_(half)),
                "tokens": pyarrow.array(
                    [u.tokens.astype(np.float16).ravel() if self.tokens else nothing for _, u in units],
                    pyarrow.large_list(half),
                ),
            }
        )
        path = self.folder / f"part-{len(list(self.folder.glob('part-*.arrow'))):05d}.arrow"
        unfinished = path.with_suffix(".tmp")
        with pyarrow.OSFile(str(unfinished), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        unfinished.replace(path)
        self._open(path)

    def get(self, unit: str) -> UnitVectors:
        """Vectors of a unit that is in the store, as views of the mapped file (float16)."""
        part, row = self._places[_key(unit)]
        vectors, tokens, offsets = self._parts[part]
        return UnitVectors(vectors[row], tokens[offsets[row] : offsets[row + 1]])

    def text(self, units: Sequence[str]) -> EncodedText:
        """A text of stored units."""
        return assemble(units, [self.get(unit) for unit in units], self.dimension)

    def fill(
        self,
        units: Iterable[str],
        encoder: Any,
        unit: Unit,
        *,
        batch_tokens: int | None = None,
        window: int | None = None,
        part: int = 4096,
        progress: bool | None = None,
    ) -> None:
        """Encode what is missing, a part of so many units at a time."""
        from tqdm import tqdm

        # longest first, so that a part pads little
        missing = sorted({u for u in units if u not in self}, key=lambda text: (-len(text), text))
        disable = None if progress is None else not progress
        with tqdm(total=len(missing), desc="encode", unit=f" {unit}", disable=disable) as bar:
            for begin in range(0, len(missing), part):
                chunk = missing[begin : begin + part]
                done = []
                for index, vectors in encode_units(chunk, encoder, unit, batch_tokens=batch_tokens, window=window):
                    done.append((chunk[index], vectors))
                    bar.update(1)
                self.add(done)


def _values(lists: pyarrow.Array) -> Array:
    return np.asarray(lists.values.to_numpy(zero_copy_only=True))

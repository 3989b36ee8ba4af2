"""Static encoders: WordLlama, word-vector files, spaCy vectors."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from movers.encoders.cache import cache_folder, file_digest, locked_cache, sha256_of
from movers.encoders.checks import check_vectors
from movers.encoders.embedded import WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS
from movers.errors import InputError
from movers.io import bounded_lines, longest_line, open_packed, progress_bar
from movers.threads import SafeLock

__all__ = ["SpacyVectors", "StaticEncoder", "VectorFile", "WordLlama", "known_vectors"]

Vectors = NDArray[np.float32]

# Limits for binary files, whose header is not trusted: dimension, bytes per word.
_WIDEST = 1 << 16
_LONGEST_WORD = 1 << 20


@runtime_checkable
class StaticEncoder(Protocol):
    """Maps words to vectors.

    Attributes
    ----------
    identity : str
        Name, dimensions and digest, for signatures: `wordllama-256@64b47a2d`.
    dimension : int
    """

    identity: str
    dimension: int

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """(n, dimension) vectors of n words, and (n,) whether each word is known; unknown words have zero vectors."""
        ...


def known_vectors(encoder: StaticEncoder, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
    """Validated output of an encoder: (n, dimension) finite vectors and (n,) whether each word is known."""
    vectors, known = encoder.vectors(words)
    found = np.asarray(known)
    if found.shape != (len(words),) or found.dtype != np.bool_:
        raise InputError(
            f"model: {encoder.identity}: expected {len(words)} booleans, but got {found.dtype} of shape {found.shape}"
        )
    return check_vectors(encoder.identity, " ".join(words[:8]), vectors, len(words), encoder.dimension), found


class WordLlama:
    """256-dimensional subword vectors distilled from Llama-2, shipped in the package `wordllama`.

    The vector of a word is the mean of its subword vectors, so no word is out of vocabulary.

    >>> vectors, known = WordLlama().vectors(["snow", "snowman", "xyzzyq"])
    >>> vectors.shape, bool(known.all())
    ((3, 256), True)
    """

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        self._table = _mapped(Path(WORDLLAMA_WEIGHTS.locate()))
        self._tokenizer = Tokenizer.from_file(str(WORDLLAMA_TOKENIZER.locate()))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dimension = self._table.shape[1]
        self.identity = f"wordllama-{self.dimension}@{WORDLLAMA_WEIGHTS.sha256[:8]}"

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        if not words:
            return np.zeros((0, self.dimension), np.float32), np.zeros(0, dtype=bool)
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)]
        lengths = np.array([len(row) for row in ids])
        known = lengths > 0  # a word without subwords has no vector
        matrix = np.zeros((len(words), self.dimension), np.float32)
        if known.any():
            starts = np.concatenate([[0], np.cumsum(lengths[known])[:-1]])
            pieces = self._table[np.concatenate(ids).astype(np.intp)].astype(np.float32)
            sums = np.add.reduceat(pieces, starts, axis=0)
            matrix[known] = sums / lengths[known, None]
        return matrix, known

    def count_pieces(self, words: Sequence[str]) -> int:
        """Number of subwords of the words."""
        return sum(map(len, self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)))

    def __reduce__(self) -> tuple[type[WordLlama], tuple[()]]:
        return WordLlama, ()  # another process maps the same file


def _mapped(path: Path) -> NDArray[np.float16]:
    """The single float16 tensor of a safetensors file, memory-mapped so that processes share it."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    (tensor,) = (value for name, value in header.items() if name != "__metadata__")
    assert tensor["dtype"] == "F16"
    return np.memmap(path, np.float16, "r", 8 + size + tensor["data_offsets"][0], tuple(tensor["shape"]))


class VectorFile:
    """A word-vector file: GloVe text, word2vec text or binary, fastText `.vec`; optionally gzipped.

    On first use the file is converted to an array in the cache folder; later uses memory-map that array and read only
    the rows they need.
    """

    dimension: int

    def __init__(self, path: str | os.PathLike[str], progress: bool | None = None) -> None:
        source = Path(path)
        digest = file_digest(source)
        folder = cache_folder() / "vectors" / digest[:32]
        if not _is_whole(folder):  # a complete cache may be read-only
            with locked_cache("vectors"):
                if not _is_whole(folder):  # nor filled by another process in the meantime
                    shutil.rmtree(folder, ignore_errors=True)
                    _convert(source, folder, progress)
        self.__setstate__((folder, ""))
        self.identity = f"{_base_name(source)}-{self.dimension}@{digest[:8]}"

    def __getstate__(self) -> tuple[Path, str]:
        return self._folder, self.identity  # another process maps the same array

    def __setstate__(self, state: tuple[Path, str]) -> None:
        folder, self.identity = state
        self._folder = folder
        # As bytes: text mode would treat a carriage return inside a word as a line break.
        words = (folder / "words.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
        self._rows = {word: row for row, word in enumerate(words)}
        self._table: Vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        self.dimension = int(self._table.shape[1])

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        rows = np.array([self._rows.get(word, -1) for word in words], dtype=np.int64)
        known = rows >= 0
        matrix = np.zeros((len(words), self.dimension), np.float32)
        matrix[known] = self._table[rows[known]]
        return matrix, known


def _base_name(path: Path) -> str:
    return re.sub(r"(\.(txt|vec|bin|w2v|gz|model))+$", "", path.name)


def _open(path: Path) -> BinaryIO:
    return open_packed(path, path.suffix == ".gz", whole=True)


def _convert(source: Path, folder: Path, progress: bool | None) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob("building-*"):  # left by a killed run; this process holds the lock
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as temporary:
        words: dict[str, None] = {}
        target = Path(temporary) / "rows"
        ready = Path(temporary) / "ready"
        ready.mkdir()
        dimension = 0
        bar = progress_bar(desc=f"reading {source.name}", unit=" words", progress=progress)
        with target.open("wb") as rows, bar:
            for word, vector in _readable(source):
                bar.update()
                # A repeated word keeps its first vector, as in gensim; a line break would corrupt the word list.
                if word in words or "\n" in word:
                    continue
                words[word] = None
                dimension = len(vector)
                rows.write(vector.tobytes())
        if not words:
            raise InputError(f"model: {source}: expected word vectors, but the file has none")
        table = np.memmap(target, dtype=np.float32, mode="r", shape=(len(words), dimension))
        with (ready / "vectors.npy").open("wb") as file:
            # Through `write`, because NumPy's own error on a full disk does not say so.
            np.save(cast(BinaryIO, SimpleNamespace(write=file.write)), table, allow_pickle=False)
        del table
        (ready / "words.txt").write_bytes("\n".join(words).encode("utf-8", "surrogateescape"))
        digests = {name: sha256_of(ready / name) for name in ("vectors.npy", "words.txt")}
        (ready / "meta.json").write_text(json.dumps({"source": source.name, "words": len(words), **digests}))
        ready.rename(folder)  # atomically


def _is_whole(folder: Path) -> bool:
    """Whether the folder matches its digests; a damaged copy would give other vectors under the same identity."""
    try:
        meta = json.loads((folder / "meta.json").read_text())
        return all(file_digest(folder / name) == meta[name] for name in ("vectors.npy", "words.txt"))
    except (OSError, ValueError, KeyError):
        return False


def _readable(source: Path) -> Iterator[tuple[str, Vectors]]:
    try:
        yield from _entries(source)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"model: {source}: expected a gzip archive of word vectors, but {error}") from None


def _entries(source: Path) -> Iterator[tuple[str, Vectors]]:
    """Words and vectors of a file; the format is detected from its beginning."""
    with _open(source) as file:
        first = file.readline(longest_line())
        header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)\s*", first)
        if header is None:
            yield from _text_entries(source, [first], file)
            return
        count, dimension = int(header[1]), int(header[2])
        second = file.readline(longest_line())
        if _is_text_line(second, dimension):
            yield from _text_entries(source, [b"", second], file, dimension, count)
            return
    if not 0 < dimension <= _WIDEST:
        raise InputError(
            f"model: {source}: expected vectors of 1 to {_WIDEST:,} numbers, but its header says {dimension}"
        )
    with _open(source) as file:
        file.readline()
        yield from _binary_entries(source, file, count, dimension)


def _is_text_line(line: bytes, dimension: int) -> bool:
    fields = line.split()
    try:
        [float(field) for field in fields[-dimension:]]
    except ValueError:
        return False
    return len(fields) > dimension


def _text_entries(
    source: Path, begun: list[bytes], file: BinaryIO, dimension: int | None = None, count: int = 0
) -> Iterator[tuple[str, Vectors]]:
    """`begun` are the lines already read; a header gives the number of words and the dimension."""

    def lines() -> Iterator[bytes]:
        yield from begun
        yield from bounded_lines(file, f"model: {source}")

    read = 0
    for number, raw in enumerate(lines(), start=1):
        line = raw.rstrip()
        if not line:
            continue
        if dimension is None:
            # The first line determines the dimension: a word, then numbers up to the end.
            dimension = len(line.split(b" ")) - 1
            if dimension < 1:
                raise InputError(
                    f"model: {source}: line {number}: expected a word and its vector, but got {line[:60]!r}"
                )
        # Some words contain spaces (". . ." in GloVe 840B), so fields are counted from the end.
        fields = line.rsplit(b" ", dimension)
        try:
            if len(fields) != dimension + 1:
                raise ValueError
            vector = np.array(fields[1:], dtype=np.float32)
        except ValueError:
            raise InputError(
                f"model: {source}: line {number}: expected a word and {dimension} numbers, but got {line[:60]!r}"
            ) from None
        yield fields[0].decode("utf-8", "surrogateescape"), vector
        read += 1
    if read < count:
        raise _ends_early(source, count, dimension, read)


def _ends_early(source: Path, count: int, dimension: int | None, read: int) -> InputError:
    return InputError(
        f"model: {source}: expected {count} vectors of {dimension} numbers, but the file ends after {read}"
    )


def _binary_entries(source: Path, file: BinaryIO, count: int, dimension: int) -> Iterator[tuple[str, Vectors]]:
    size = 4 * dimension
    buffer = b""
    for row in range(count):
        while (end := buffer.find(b" ")) < 0 or len(buffer) < end + 1 + size:
            block = file.read(1 << 20)
            if not block or len(buffer) > size + _LONGEST_WORD:
                raise _ends_early(source, count, dimension, row)
            buffer += block
        word = buffer[:end].lstrip(b"\n").decode("utf-8", "surrogateescape")
        yield word, np.frombuffer(buffer[end + 1 : end + 1 + size], dtype="<f4").astype(np.float32)
        buffer = buffer[end + 1 + size :]


class SpacyVectors:
    """The word vectors of a spaCy pipeline (`en_core_web_md`, or a folder), without running the pipeline."""

    def __init__(self, name: str) -> None:
        try:
            import spacy
        except ImportError:
            raise InputError(f"model: {name!r} is a spaCy pipeline: pip install 'movers[spacy]'") from None
        pipeline = spacy.load(
            name, exclude=["tok2vec", "tagger", "parser", "ner", "lemmatizer", "attribute_ruler", "senter"]
        )
        self._name = name
        self._vocab = pipeline.vocab
        self.dimension = int(self._vocab.vectors_length)
        if not self.dimension:
            raise InputError(
                f"model: the spaCy pipeline {name!r} has no word vectors; take one that ends in _md or _lg"
            )
        vectors = self._vocab.vectors
        total = hashlib.sha256(np.ascontiguousarray(vectors.data).tobytes())
        total.update(json.dumps([vectors.mode, sorted(vectors.key2row.items())]).encode())  # word → row
        base = f"{pipeline.meta['lang']}_{pipeline.meta['name']}-{pipeline.meta['version']}"
        self.identity = f"{base}-{self.dimension}@{total.hexdigest()[:8]}"
        self._lock = SafeLock()

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        matrix = np.zeros((len(words), self.dimension), np.float32)
        known = np.zeros(len(words), dtype=bool)
        with self._lock:  # a lookup adds the word to spaCy's string store
            for row, word in enumerate(words):
                if self._vocab.has_vector(word):
                    known[row] = True
                    matrix[row] = self._vocab.get_vector(word)
        return matrix, known

    def __reduce__(self) -> tuple[type[SpacyVectors], tuple[str]]:
        return SpacyVectors, (self._name,)

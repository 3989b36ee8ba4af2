"""Static encoders: WordLlama, word-vector files, spaCy vectors."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from movers.encoders.cache import build_once, file_state, sha256_of
from movers.encoders.wheels import WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS
from movers.errors import InputError
from movers.io import progress_bar

__all__ = ["SpacyVectors", "StaticEncoder", "VectorFile", "WordLlama", "check_vectors", "convert_vectors",
           "known_vectors"]  # fmt: skip

Vectors = NDArray[np.float32]


@runtime_checkable
class StaticEncoder(Protocol):
    """Maps words to vectors."""

    identity: str  # name, dimensions and digest, for signatures: `wordllama-256@64b47a2d`
    dimension: int

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """(n, dimension) vectors of n words, and (n,) whether each word is known; unknown words have zero vectors."""
        ...


def known_vectors(encoder: StaticEncoder, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
    """Validated output of an encoder: (n, dimension) finite vectors and (n,) whether each word is known."""
    vectors, known = encoder.vectors(words)
    known = np.asarray(known)
    if known.shape != (len(words),) or known.dtype != np.bool_:
        raise InputError(
            f"model: {encoder.identity}: expected {len(words)} booleans, but got {known.dtype} of shape {known.shape}"
        )
    return check_vectors(encoder.identity, " ".join(words[:8]), vectors, len(words), encoder.dimension), known


def check_vectors(encoder: str, text: str, vectors: object, count: int, width: int | None = None) -> Vectors:
    """Check that the vectors of a text (or words) are (count, width) finite numbers; errors name encoder and text."""
    matrix = np.asarray(vectors)
    what = f"model: {encoder}: {text[:60]!r}"
    if matrix.ndim != 2 or len(matrix) != count or (width is not None and matrix.shape[1] != width):
        expected = f"({count}, {'d' if width is None else width})"
        raise InputError(f"{what}: expected {expected} vectors, but got {matrix.shape}")
    if not np.issubdtype(matrix.dtype, np.floating):
        raise InputError(f"{what}: expected real numbers, but got dtype {matrix.dtype}")
    with np.errstate(over="ignore"):
        single = matrix.astype(np.float32, copy=False)  # values that are too large become infinite
    finite = np.isfinite(single).all(axis=1)
    if not finite.all():
        raise InputError(f"{what}: expected finite numbers, but vector {int(finite.argmin())} has none")
    return single


class WordLlama:
    """256-dimensional subword vectors distilled from Llama-2, shipped in the package `wordllama`.

    The vector of a word is the mean of its subword vectors, so no word is out of vocabulary.

    >>> vectors, known = WordLlama().vectors(["snow", "snowman", "xyzzyq"])
    >>> vectors.shape, bool(known.all())
    ((3, 256), True)
    """

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        (self._table,) = load_file(WORDLLAMA_WEIGHTS.locate()).values()  # float16
        self._tokenizer = Tokenizer.from_file(str(WORDLLAMA_TOKENIZER.locate()))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dimension = self._table.shape[1]
        self.identity = f"wordllama-{self.dimension}@{WORDLLAMA_WEIGHTS.sha256[:8]}"

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        ids = self._pieces(words)
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        known = lengths > 0  # a word without subwords has no vector
        matrix = np.zeros((len(words), self.dimension), np.float32)
        if known.any():
            starts = np.concatenate([[0], np.cumsum(lengths[known])[:-1]])
            pieces = self._table[np.concatenate(ids).astype(np.intp)].astype(np.float32)
            matrix[known] = np.add.reduceat(pieces, starts, axis=0) / lengths[known, None]
        return matrix, known

    def count_pieces(self, words: Sequence[str]) -> int:
        """Number of subwords of the words."""
        return sum(map(len, self._pieces(words)))

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)]

    def __reduce__(self) -> tuple[type[WordLlama], tuple[()]]:
        return WordLlama, ()  # another process reads the same file


class VectorFile:
    """The words and vectors of a file that `convert_vectors` has read; only the rows in use are held in memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self._arguments = folder, name
        # As bytes: text mode would treat a carriage return inside a word as a line break.
        words = (folder / "words.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
        self._rows = {word: row for row, word in enumerate(words)}
        self._table = np.memmap(folder / "vectors.f32", np.float32, "r").reshape(len(words), -1)
        self.dimension = self._table.shape[1]
        self.identity = f"{name}-{self.dimension}@{(folder / 'sha256').read_text()[:8]}"

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        rows = np.array([self._rows.get(word, -1) for word in words], dtype=np.int64)
        known = rows >= 0
        matrix = np.zeros((len(words), self.dimension), np.float32)
        matrix[known] = self._table[rows[known]]
        return matrix, known

    def __reduce__(self) -> tuple[type[VectorFile], tuple[Path, str]]:
        return VectorFile, self._arguments  # another process maps the same file


def convert_vectors(source: Path, progress: bool | None = None) -> tuple[Path, str]:
    """Read a file of word vectors into a folder of the cache, once; returns the folder and a name for signatures.

    Formats: GloVe text, word2vec text or binary, fastText `.vec`; optionally gzipped.
    """

    def convert(building: Path) -> Path:
        words: dict[str, None] = {}
        bar = progress_bar(desc=f"reading {source.name}", unit=" words", progress=progress)
        with bar, (building / "vectors.f32").open("wb") as rows:
            for word, vector in _entries(source):
                bar.update()
                # A repeated word keeps its first vector, as in gensim; a line break would corrupt the word list.
                if word not in words and "\n" not in word:
                    words[word] = None
                    rows.write(vector.tobytes())
        if not words:
            raise InputError(f"model: {source}: expected word vectors, but the file has none")
        (building / "words.txt").write_bytes("\n".join(words).encode("utf-8", "surrogateescape"))
        (building / "sha256").write_text(sha256_of(source))
        return building

    # Not by content: it takes seconds to read a file of gigabytes.
    key = hashlib.sha256(f"{source.resolve()}-{file_state(source)}".encode("utf-8", "surrogateescape")).hexdigest()
    folder = build_once(f"vectors/{key[:32]}", convert)
    return folder, re.sub(r"(\.(txt|vec|bin|w2v|gz|model))+$", "", source.name)


def _entries(source: Path) -> Iterator[tuple[str, Vectors]]:
    """Words and vectors of a file; the format is detected from its beginning."""
    with cast(BinaryIO, gzip.open(source) if source.suffix == ".gz" else source.open("rb")) as file:
        try:
            first = file.readline()
            header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)\s*", first)
            if header is None:
                yield from _text_entries(source, chain([first], file))
                return
            count, dimension, read = int(header[1]), int(header[2]), 0
            second = file.readline()
            entries = _text_entries(source, chain([b"", second], file), dimension)
            try:
                _parse(second, dimension)
            except ValueError:
                entries = _binary_entries(second, file, count, dimension)
            for entry in entries:
                read += 1
                yield entry
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"model: {source}: expected a gzip archive of word vectors, but {error}") from None
    if read < count:
        raise InputError(
            f"model: {source}: expected {count} vectors of {dimension} numbers, but the file ends after {read}"
        )


def _text_entries(source: Path, lines: Iterable[bytes], dimension: int = 0) -> Iterator[tuple[str, Vectors]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        dimension = dimension or line.rstrip().count(b" ")  # the first line: a word, then numbers up to the end
        try:
            yield _parse(line, dimension)
        except ValueError:
            expected = f"{dimension} numbers" if dimension else "its vector"
            raise InputError(
                f"model: {source}: line {number}: expected a word and {expected}, but got {line.rstrip()[:60]!r}"
            ) from None


def _parse(line: bytes, dimension: int) -> tuple[str, Vectors]:
    # Some words contain spaces (". . ." in GloVe 840B), so fields are counted from the end.
    word, *numbers = line.rstrip().rsplit(b" ", dimension)
    if not len(numbers) == dimension > 0:
        raise ValueError
    return word.decode("utf-8", "surrogateescape"), np.array(numbers, dtype=np.float32)


def _binary_entries(data: bytes, file: BinaryIO, count: int, dimension: int) -> Iterator[tuple[str, Vectors]]:
    """Entries of word2vec's binary format, `data` being the bytes already read after the header; stops at the end."""
    begin, size = 0, 4 * dimension
    for _ in range(count):
        while (end := data.find(b" ", begin)) < 0 or len(data) < end + 1 + size:
            block = file.read(1 << 24)
            if not block:
                return
            data, begin = data[begin:] + block, 0
        word = data[begin:end].lstrip(b"\n").decode("utf-8", "surrogateescape")
        yield word, np.frombuffer(data, "<f4", dimension, end + 1).astype(np.float32)
        begin = end + 1 + size


class SpacyVectors:
    """The word vectors of a spaCy pipeline (`en_core_web_md`, or a folder), without running the pipeline."""

    def __init__(self, name: str) -> None:
        try:
            import spacy
        except ImportError:
            raise InputError(f"model: {name!r} is a spaCy pipeline: pip install 'movers[spacy]'") from None
        components = ["tok2vec", "tagger", "parser", "ner", "lemmatizer", "attribute_ruler", "senter"]
        pipeline = spacy.load(name, exclude=components)
        self._name, self._vocab, vectors = name, pipeline.vocab, pipeline.vocab.vectors
        self.dimension = int(self._vocab.vectors_length)
        if not self.dimension:
            raise InputError(
                f"model: the spaCy pipeline {name!r} has no word vectors; take one that ends in _md or _lg"
            )
        total = hashlib.sha256(np.ascontiguousarray(vectors.data).tobytes())
        total.update(json.dumps([vectors.mode, sorted(vectors.key2row.items())]).encode())  # word → row
        base = f"{pipeline.meta['lang']}_{pipeline.meta['name']}-{pipeline.meta['version']}"
        self.identity = f"{base}-{self.dimension}@{total.hexdigest()[:8]}"
        self._lock = threading.Lock()

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

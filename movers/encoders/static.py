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

from movers.encoders.cache import build_once, file_digest, file_state
from movers.encoders.wheels import WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS
from movers.errors import InputError, import_extra

Vectors = NDArray[np.float32]


@runtime_checkable
class StaticEncoder(Protocol):
    """Maps words to vectors."""

    identity: str  # name, dimensions and digest, for signatures: `wordllama-256@64b47a2dc493cb8e`
    dimension: int

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """(n, dimension) vectors of n words, and (n,) whether each word is known; unknown words have zero vectors."""
        ...


def known_vectors(encoder: StaticEncoder, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
    """Validated output of an encoder: (n, dimension) finite vectors and (n,) whether each word is known."""
    vectors, known = encoder.vectors(words)
    checked = check_vectors(encoder.identity, " ".join(words[:8]), vectors, len(words), encoder.dimension)
    return checked, np.asarray(known, dtype=bool)


def check_vectors(encoder: str, text: str, vectors: object, count: int, width: int | None = None) -> Vectors:
    """Check that the vectors of a text (or words) are (count, width) finite numbers; errors name encoder and text."""
    matrix = np.asarray(vectors)
    where, shape = f"model: {encoder}: {text[:60]!r}", f"({count}, {'d' if width is None else width})"
    width_fits = matrix.ndim == 2 and width in (None, matrix.shape[1])
    if not width_fits or len(matrix) != count or not np.issubdtype(matrix.dtype, np.floating):
        raise InputError(f"{where}: expected {shape} real numbers, but got {matrix.dtype} of shape {matrix.shape}")
    with np.errstate(over="ignore"):
        single = matrix.astype(np.float32, copy=False)  # values that are too large become infinite
    if not np.isfinite(single).all():
        raise InputError(f"{where}: expected finite numbers")
    return single


class WordLlama:
    """256-dimensional subword vectors distilled from Llama-2, shipped in the package `wordllama`.

    The vector of a word is the mean of its subword vectors, so no word is out of vocabulary.
    """

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        (self._table,) = load_file(WORDLLAMA_WEIGHTS.locate()).values()  # float16
        self._tokenizer = Tokenizer.from_file(str(WORDLLAMA_TOKENIZER.locate()))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.dimension = self._table.shape[1]
        self.identity = f"wordllama-{self.dimension}@{WORDLLAMA_WEIGHTS.sha256[:16]}"

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
        return sum(map(len, self._pieces(words)))

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(words), add_special_tokens=False)]


class VectorFile:
    """A file of word vectors: GloVe text, word2vec text or binary, fastText `.vec`; optionally gzipped.

    It is converted once, into a folder of the cache, because parsing takes minutes; only rows in use are in memory.
    """

    def __init__(self, source: Path) -> None:
        self._source = source
        # Not by content: it takes seconds to read a file of gigabytes.
        key = hashlib.sha256(f"{source.resolve()}-{file_state(source)}".encode("utf-8", "surrogateescape")).hexdigest()
        folder = build_once(f"vectors/{key[:32]}", self._convert)
        # As bytes: text mode would treat a carriage return inside a word as a line break.
        words = (folder / "words.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
        self._rows = {word: row for row, word in enumerate(words)}
        self._table = np.memmap(folder / "vectors.f32", np.float32, "r").reshape(len(words), -1)
        self.dimension = self._table.shape[1]
        name = re.sub(r"(\.(txt|vec|bin|w2v|gz|model))+$", "", source.name)
        self.identity = f"{name}-{self.dimension}@{(folder / 'sha256').read_text()[:16]}"

    def _convert(self, folder: Path) -> Path:
        words: dict[str, None] = {}
        opened = gzip.open(self._source) if self._source.suffix == ".gz" else self._source.open("rb")
        with (folder / "vectors.f32").open("wb") as rows, cast(BinaryIO, opened) as file:
            try:
                for word, vector in _read_vectors(file):
                    # A repeated word keeps its first vector, as in gensim; a line break would corrupt the word list.
                    if word not in words and "\n" not in word:
                        words[word] = None
                        rows.write(vector.tobytes())
            except (gzip.BadGzipFile, EOFError, ValueError, zlib.error) as error:
                raise InputError(f"model: {self._source}: expected word vectors, but {error}") from None
        if not words:
            raise InputError(f"model: {self._source}: expected word vectors, but the file has none")
        (folder / "words.txt").write_bytes("\n".join(words).encode("utf-8", "surrogateescape"))
        (folder / "sha256").write_text(file_digest(self._source))
        return folder

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        rows = np.array([self._rows.get(word, -1) for word in words], dtype=np.int64)
        known = rows >= 0
        matrix = np.zeros((len(words), self.dimension), np.float32)
        matrix[known] = self._table[rows[known]]
        return matrix, known


def _read_vectors(file: BinaryIO) -> Iterator[tuple[str, Vectors]]:
    """Words and vectors of a file; its first two lines determine the format."""
    first = file.readline()
    header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)\s*", first)
    if header is None:  # GloVe: a word, then numbers up to the end of the line
        yield from _read_lines(chain([first], file), first.rstrip().count(b" "), 1)
        return
    count, dimension = int(header[1]), int(header[2])
    second = file.readline()
    try:
        _parse(second, dimension)
        entries = _read_lines(chain([second], file), dimension, 2)
    except ValueError:
        entries = _read_binary(second, file, count, dimension)
    for entry in entries:
        yield entry
        count -= 1
    if count > 0:
        raise ValueError(f"the file ends before the last {count} of {header[1].decode()}")


def _read_lines(lines: Iterable[bytes], dimension: int, number: int) -> Iterator[tuple[str, Vectors]]:
    for place, line in enumerate(lines, start=number):
        if line.strip():
            try:
                yield _parse(line, dimension)
            except ValueError:
                message = f"line {place} is not a word and {dimension} numbers: {line.rstrip()[:60]!r}"
                raise ValueError(message) from None


def _parse(line: bytes, dimension: int) -> tuple[str, Vectors]:
    # Some words contain spaces (". . ." in GloVe 840B), so fields are counted from the end.
    word, *numbers = line.rstrip().rsplit(b" ", dimension)
    if not len(numbers) == dimension > 0:
        raise ValueError
    return word.decode("utf-8", "surrogateescape"), np.array(numbers, dtype=np.float32)


def _read_binary(data: bytes, file: BinaryIO, count: int, dimension: int) -> Iterator[tuple[str, Vectors]]:
    """Entries of word2vec's binary format, `data` being the bytes already read after the header."""
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
        spacy = import_extra("spacy", "spacy", f"model: {name!r} is a spaCy pipeline")
        pipeline = spacy.load(name, exclude="tok2vec tagger parser ner lemmatizer attribute_ruler senter".split())
        self._vocab, vectors = pipeline.vocab, pipeline.vocab.vectors
        self.dimension = int(self._vocab.vectors_length)
        if not self.dimension:
            raise InputError(f"model: {name!r} has no word vectors; take a spaCy pipeline that ends in _md or _lg")
        total = hashlib.sha256(np.ascontiguousarray(vectors.data).tobytes())
        total.update(json.dumps([vectors.mode, sorted(vectors.key2row.items())]).encode())  # word → row
        meta, digest = pipeline.meta, total.hexdigest()[:16]
        self.identity = f"{meta['lang']}_{meta['name']}-{meta['version']}-{self.dimension}@{digest}"
        self._lock = threading.Lock()

    def vectors(self, words: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        matrix = np.zeros((len(words), self.dimension), np.float32)
        with self._lock:  # a lookup adds the word to spaCy's string store
            known = np.array([self._vocab.has_vector(word) for word in words], dtype=bool)
            for row in np.flatnonzero(known).tolist():
                matrix[row] = self._vocab.get_vector(words[row])
        return matrix, known

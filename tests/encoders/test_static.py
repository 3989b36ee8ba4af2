from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import tiny_table, vector_bytes

import movers
from movers import InputError, load_encoder
from movers.encoders import static
from movers.encoders.static import StaticEncoder, known_vectors

WORDS = ["cat", "naïve", "我", "3.5", "a", "😀"]
BINARY = vector_bytes(tiny_table(WORDS, 2), "binary")

pytestmark = pytest.mark.usefixtures("empty_cache")


def assert_holds(encoder: StaticEncoder, table: dict[str, list[float]]) -> None:
    vectors, known = encoder.vectors([*table, "unheard-of"])
    assert known.tolist() == [True] * len(table) + [False]
    assert vectors.dtype == np.float32 and vectors.shape == (len(table) + 1, encoder.dimension)
    np.testing.assert_allclose(vectors[:-1], np.array(list(table.values())), rtol=1e-6)
    assert (vectors[-1] == 0).all()


@pytest.mark.parametrize("form", ["glove", "word2vec", "fasttext", "binary"])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_every_format_is_recognised_by_its_beginning(vector_file: Callable[..., Path], form: str, end: str) -> None:
    table = tiny_table(WORDS)
    encoder = load_encoder(vector_file(table, form, f"tiny.{form}{end}"))
    assert encoder.dimension == 4
    assert_holds(encoder, table)


@pytest.mark.parametrize(
    ("content", "table"),
    [
        ("the 1 2 3\n. . . 4 5 6\nat a@b.com 7 8 9\n", {". . .": [4, 5, 6], "at a@b.com": [7, 8, 9]}),
        ("the 1 2\nx\r\u0085\u2028\x0b\x1cy 3 4\ncat 5 6\n", {"x\r\u0085\u2028\x0b\x1cy": [3, 4], "cat": [5, 6]}),
        ("the 1 2\r\n\r\ncat 5 6\r\n", {"the": [1, 2], "cat": [5, 6]}),
        (b"\xff\xfe 1 2\ncat 3 4\n".decode("utf-8", "surrogateescape"), {"cat": [3, 4]}),
        ("cat 1 2\ndog 3 4\ncat 5 6\nman 7 8\n", {"cat": [1, 2], "man": [7, 8], "dog": [3, 4]}),  # first, as in gensim
    ],
    ids=["blanks in words", "line breaks in words", "Windows", "not UTF-8", "repeated word"],
)
def test_odd_lines_are_read(tmp_path: Path, content: str, table: dict[str, list[float]]) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert_holds(load_encoder(path), table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2 3\ncat 4 x 6\n", "line 2 is not a word and 3 numbers: b'cat 4 x 6'"),
        (b"3 2\nthe 1 2\ncat 4 5\ndog 7\n", "line 4 is not a word and 2 numbers: b'dog 7'"),
        (b"3 2\nthe 1 2\ncat 4 5\n", "the file ends before the last 1 of 3"),
        (BINARY[:-5], "the file ends before the last 1 of 6"),
        (b"alone\n", "line 1 is not a word and 0 numbers: b'alone'"),
        (b"\n\n", "the file has none"),
        (b"cat 1 2\n", "Not a gzip"),
        (gzip.compress(BINARY, mtime=0)[:-12], "Compressed file ended"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str, empty_cache: Path) -> None:
    path = tmp_path / f"bad.{'gz' if message[0] in 'NC' else 'txt'}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"model: .*bad\..*: expected word vectors, but {message}"):
        load_encoder(path)
    assert not list(empty_cache.glob("vectors/*")), "nothing half-read is left in the cache"


def test_the_second_use_does_not_parse_until_the_file_changes(
    vector_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tiny_table(WORDS, seed=1), tiny_table(WORDS, seed=2)
    path = vector_file(old, "glove", "glove.6B.txt.gz")
    first, times = load_encoder(str(path)), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    with monkeypatch.context() as patch:
        patch.setattr(static, "_read_vectors", lambda file: pytest.fail("the file was parsed again"))
        assert load_encoder(path) is first
        assert first.identity == f"glove.6B-4@{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
        assert_holds(static.VectorFile(path), old)
    vector_file(new, "glove", "glove.6B.txt.gz")
    os.utime(path, ns=times)
    second = load_encoder(path)
    assert_holds(second, new)
    assert second.identity != first.identity


def test_a_path_that_is_not_there_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nothing.txt"), "nothing.vec", "./nothing"):
        with pytest.raises(InputError, match="looks like a path, but there is no such file or folder"):
            load_encoder(name)


def save_pipeline(folder: Path, table: dict[str, Sequence[float]]) -> Path:
    pipeline = pytest.importorskip("spacy").blank("en")
    for word, row in table.items():
        pipeline.vocab.set_vector(word, np.array(row, dtype=np.float32))
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(folder)
    return folder


def test_spacy_vectors_come_from_a_pipeline_folder_and_are_named_by_words_and_vectors(tmp_path: Path) -> None:
    table = tiny_table(WORDS, seed=5)
    folder = save_pipeline(tmp_path / "pipeline", table)
    encoder = load_encoder(str(folder))
    assert_holds(encoder, table)
    assert load_encoder(folder) is encoder
    assert encoder.identity.startswith("en_pipeline-") and "@" in encoder.identity and "/" not in encoder.identity
    swapped = dict(zip(reversed(table), table.values(), strict=True))
    save_pipeline(folder, swapped)  # the same name, saved again
    again = load_encoder(folder)
    assert_holds(again, swapped)
    assert again.identity != encoder.identity


def test_wordllama_vectors_are_the_means_of_subword_vectors() -> None:
    from importlib import metadata

    from safetensors import safe_open
    from tokenizers import Tokenizer

    root = Path(str(metadata.distribution("wordllama").locate_file("wordllama")))
    with safe_open(root / "weights/l2_supercat_256.safetensors", "numpy") as file:
        (name,) = file.keys()
        table = file.get_tensor(name).astype(np.float64)
    tokenizer = Tokenizer.from_file(str(root / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    words = ["snow", "snowman", "antidisestablishmentarianism", "naïve", "我", "ไ", "😀", "3.5", "o'brien", "snow"]
    encoder = load_encoder("wordllama")
    vectors, known = encoder.vectors(words)
    assert known.all() and encoder.identity == "wordllama-256@64b47a2dc493cb8e"
    pieces = [tokenizer.encode(word, add_special_tokens=False).ids for word in words]
    for ids, vector in zip(pieces, vectors, strict=True):
        np.testing.assert_allclose(vector, np.mean([table[number] for number in ids], axis=0), atol=1e-6)
    assert encoder.count_pieces(words) == sum(map(len, pieces))
    assert (encoder.vectors(["snowman"])[0][0] == vectors[1]).all()
    assert encoder.vectors([])[0].shape == (0, 256)


class Seeded:
    """A seeded vector per word; number 1 has a value `bad`."""

    identity = "own@1"
    dimension = 8

    def __init__(self, bad: float = 0.0, width: int = 8, dtype: Any = np.float32) -> None:
        self.bad, self.width, self.dtype = bad, width, dtype

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        rows = [np.random.default_rng(sum(map(ord, word))).normal(size=self.width) for word in words]
        matrix = np.array(rows).reshape(len(words), self.width)
        matrix[1:2, 0] += self.bad
        return matrix.astype(self.dtype), np.ones(len(words), dtype=bool)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bad": np.nan}, "expected finite numbers"),
        ({"bad": 1e60, "dtype": np.float64}, "expected finite numbers"),
        ({"width": 7}, r"expected \(2, 8\) real numbers, but got float32 of shape \(2, 7\)"),
        ({"dtype": np.int64}, r"expected \(2, 8\) real numbers, but got int64 of shape \(2, 8\)"),
    ],
)
def test_wrong_vectors_are_an_error_that_names_encoder_and_words(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"model: own@1: 'red cats': {message}"):
        known_vectors(Seeded(**options), ["red", "cats"])


@pytest.mark.parametrize("metric", ["wms", "sms", "moverscore"])
def test_every_metric_checks_the_vectors_of_a_users_encoder(metric: str) -> None:
    with pytest.raises(InputError, match="own@1: .*expected finite numbers"):
        getattr(movers, metric)(["red cats sat"], ["big cats sat down"], model=Seeded(bad=np.inf))

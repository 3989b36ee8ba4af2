from __future__ import annotations

import builtins
import gzip
import io
import os
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import tiny_table, vector_bytes

import movers
from movers import InputError, load_encoder
from movers.encoders import static
from movers.encoders.static import StaticEncoder, VectorFile, WordLlama

WORDS = ["cat", "naïve", "我", "3.5", "a", "😀"]
FORMS = ["glove", "word2vec", "fasttext", "binary"]


def assert_holds(encoder: StaticEncoder, table: dict[str, list[float]]) -> None:
    vectors, known = encoder.vectors([*table, "unheard-of"])
    assert known.tolist() == [True] * len(table) + [False]
    assert vectors.dtype == np.float32 and vectors.shape == (len(table) + 1, encoder.dimension)
    np.testing.assert_allclose(vectors[:-1], np.array(list(table.values())), rtol=1e-6)
    assert (vectors[-1] == 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_every_format_is_recognised_by_its_beginning(
    vector_file: Callable[..., Path], form: str, packed: bool, empty_cache: Path
) -> None:
    table = tiny_table(WORDS)
    encoder = VectorFile(vector_file(table, form, f"tiny.{form}.gz" if packed else f"tiny.{form}"))
    assert encoder.dimension == 4
    assert_holds(encoder, table)


def test_a_binary_file_without_line_breaks_between_vectors_is_read(tmp_path: Path, empty_cache: Path) -> None:
    table = tiny_table(WORDS, dimension=3)
    data = b"6 3\n" + b"".join(word.encode() + b" " + struct.pack("<3f", *row) for word, row in table.items())
    (tmp_path / "v.bin").write_bytes(data)
    assert_holds(VectorFile(tmp_path / "v.bin"), table)


def test_binary_vectors_may_hold_the_bytes_of_blanks_and_line_breaks(tmp_path: Path, empty_cache: Path) -> None:
    (odd,) = struct.unpack("<f", b"  \n\n")
    table = {"cat": [odd, odd], "dog": [odd, 1.0]}
    (tmp_path / "v.bin").write_bytes(vector_bytes(table, "binary"))
    assert_holds(VectorFile(tmp_path / "v.bin"), table)


def test_words_may_hold_blanks(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n")
    vectors, known = VectorFile(path).vectors([". . .", "at name@domain.com", "."])
    assert known.tolist() == [True, True, False]
    assert vectors[:2].tolist() == [[4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize("mark", ["\r", "\u0085", "\u2028", "\x0b", "\x1c", "\u00a0"])
def test_no_mark_inside_a_word_shifts_the_words_after_it(tmp_path: Path, mark: str, empty_cache: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(f"the 1 2\nx{mark}y 3 4\ncat 5 6\n".encode())
    vectors, known = VectorFile(path).vectors(["the", f"x{mark}y", "cat"])
    assert known.all() and vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_lines_may_end_as_on_windows_and_blank_lines_are_skipped(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(b"the 1 2\r\n\r\ncat 5 6\r\n")
    vectors, known = VectorFile(path).vectors(["the", "cat"])
    assert known.all() and vectors.tolist() == [[1, 2], [5, 6]]


def test_a_word_that_is_not_utf8_does_no_harm(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_bytes(b"\xff\xfe 1 2\ncat 3 4\n")
    vectors, known = VectorFile(path).vectors(["cat"])
    assert known.all() and vectors.tolist() == [[3, 4]]


@pytest.mark.parametrize("form", ["glove", "binary"])
def test_a_repeated_word_keeps_its_first_vector(tmp_path: Path, form: str, empty_cache: Path) -> None:
    path = tmp_path / "v.txt"
    if form == "glove":
        path.write_text("cat 1 2\ndog 3 4\ncat 5 6\nman 7 8\n")
    else:
        rows = [(b"cat", 1, 2), (b"dog", 3, 4), (b"cat", 5, 6), (b"man", 7, 8)]
        path.write_bytes(b"4 2\n" + b"".join(word + b" " + struct.pack("<2f", *row) for word, *row in rows))
    vectors, _ = VectorFile(path).vectors(["cat", "man", "dog"])
    assert vectors.tolist() == [[1, 2], [7, 8], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the 1 2 3\ncat 4 x 6\n", "line 2: expected a word and 3 numbers, but got b'cat 4 x 6'"),
        ("the 1 2 3\ncat 4 5 6\ndog 7\n", "line 3: expected a word and 3 numbers, but got b'dog 7'"),
        ("3 2\nthe 1 2\ncat 4 5\ndog 7\n", "line 4: expected a word and 2 numbers, but got b'dog 7'"),
        ("alone\n", "line 1: expected a word and its vector, but got b'alone'"),
        ("once upon a time\n", "line 1: expected a word and 3 numbers, but got b'once upon a time'"),
        ("", "expected word vectors, but the file has none"),
        ("\n\n", "expected word vectors, but the file has none"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, content: str, message: str, empty_cache: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"model: .*bad.txt: {message}"):
        VectorFile(path)
    assert not list(empty_cache.glob("vectors/*")), "nothing half-read is left in the cache"


@pytest.mark.parametrize("missing", [1, 5, 12])
def test_a_truncated_binary_file_is_refused(tmp_path: Path, missing: int, empty_cache: Path) -> None:
    path = tmp_path / "cut.bin"
    path.write_bytes(vector_bytes(tiny_table(["cat", "dog", "man"], 2), "binary")[:-missing])
    if missing == 1:  # only the line break after the last vector
        assert VectorFile(path).vectors(["man"])[1].all()
        return
    with pytest.raises(InputError, match="cut.bin: expected 3 vectors of 2 numbers, but the file ends after 2"):
        VectorFile(path)


def test_a_text_file_with_fewer_words_than_its_header_says_is_refused(tmp_path: Path, empty_cache: Path) -> None:
    path = tmp_path / "cut.vec"
    path.write_text("3 2\nthe 1 2\ncat 4 5\n")
    with pytest.raises(InputError, match="cut.vec: expected 3 vectors of 2 numbers, but the file ends after 2"):
        VectorFile(path)


def test_the_second_use_maps_the_cached_array_and_does_not_parse(
    vector_file: Callable[..., Path], empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tiny_table(WORDS)
    path = vector_file(table)
    first = VectorFile(path)

    def refuse(*_: Any) -> Any:
        raise AssertionError("the source was parsed again")

    monkeypatch.setattr(static, "_entries", refuse)
    second = VectorFile(path)
    assert isinstance(second._table, np.memmap)
    assert_holds(second, table)
    assert second.identity == first.identity


def test_a_changed_file_is_read_again(vector_file: Callable[..., Path], empty_cache: Path) -> None:
    old, new = tiny_table(WORDS, seed=1), tiny_table(WORDS, seed=2)
    path = vector_file(old)
    before = load_encoder(str(path))
    assert_holds(before, old)
    assert load_encoder(str(path)) is before
    status = path.stat()
    vector_file(new)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    after = load_encoder(path)
    assert_holds(after, new)
    assert after.identity != before.identity


@pytest.mark.parametrize("file", ["vectors.npy", "words.txt", "meta.json"])
def test_an_interrupted_first_use_leaves_nothing_that_a_later_one_trusts(
    vector_file: Callable[..., Path], empty_cache: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    table = tiny_table(WORDS)
    path = vector_file(table)
    plain_open = io.open

    def interrupted(name: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if str(name).endswith(file) and "w" in mode:
            raise KeyboardInterrupt
        return plain_open(name, mode, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(io, "open", interrupted)
        patch.setattr(builtins, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            VectorFile(path)
    assert_holds(VectorFile(path), table)


def test_several_first_uses_at_once_all_see_the_whole_file(vector_file: Callable[..., Path], empty_cache: Path) -> None:
    table = tiny_table([f"word{number}" for number in range(500)])
    path = vector_file(table)
    with ThreadPoolExecutor(6) as pool:
        for encoder in pool.map(lambda _: VectorFile(path), range(12)):
            assert_holds(encoder, table)


def test_the_identity_names_file_dimensions_and_content_but_no_folder(
    vector_file: Callable[..., Path], empty_cache: Path
) -> None:
    import hashlib

    path = vector_file(tiny_table(WORDS), "glove", "glove.6B.txt.gz")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    assert VectorFile(path).identity == f"glove.6B-4@{digest}"


def test_a_cache_that_cannot_hold_digests_only_costs_time(vector_file: Callable[..., Path], empty_cache: Path) -> None:
    table = tiny_table(WORDS)
    path = vector_file(table)
    empty_cache.mkdir()
    (empty_cache / "digests").write_text("a file where a folder should be")
    assert_holds(VectorFile(path), table)


def test_a_path_that_is_not_there_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nothing.txt"), "nothing.vec", "./nothing", "nothing.txt.gz"):
        with pytest.raises(InputError, match="looks like a path, but there is no such file or folder"):
            load_encoder(name)


def test_a_metric_reads_a_vector_file(vector_file: Callable[..., Path], empty_cache: Path) -> None:
    path = vector_file({"cat": [0.0, 0.0], "dog": [3.0, 4.0], "red": [0.0, 1.0]})
    result = movers.wms(["red cat", "cat"], ["cat red", "dog"], model=str(path), temperature=1)
    assert result["scores"] == pytest.approx([1.0, np.exp(-5.0)])
    assert result["signature"].startswith("wms|emb:tiny-glove-2@")


def test_words_without_vectors_are_left_out(vector_file: Callable[..., Path], empty_cache: Path) -> None:
    path = vector_file({"cat": [0.0, 0.0], "dog": [3.0, 4.0]})
    result = movers.wms(["zzz cat", "zzz"], ["dog qqq", "dog"], model=path, temperature=1)
    assert result["scores"] == pytest.approx([np.exp(-5.0), 0.0])


def test_gensim_and_movers_read_each_others_files_alike(tmp_path: Path, empty_cache: Path) -> None:
    keyed = pytest.importorskip("gensim.models").KeyedVectors(vector_size=5)
    table = tiny_table(WORDS, dimension=5)
    keyed.add_vectors(list(table), np.array(list(table.values()), dtype=np.float32))
    keyed.save_word2vec_format(str(tmp_path / "v.bin"), binary=True)
    keyed.save_word2vec_format(str(tmp_path / "v.txt"), binary=False)
    keyed.save_word2vec_format(str(tmp_path / "v.txt.gz"), binary=False)
    keyed.save_word2vec_format(str(tmp_path / "v.bin.gz"), binary=True)
    keyed.save_word2vec_format(str(tmp_path / "glove.txt"), binary=False, write_header=False)
    for name in ("v.bin", "v.txt", "v.txt.gz", "v.bin.gz", "glove.txt"):
        assert_holds(VectorFile(tmp_path / name), table)
    (tmp_path / "ours.bin").write_bytes(vector_bytes(table, "binary"))
    theirs = type(keyed).load_word2vec_format(str(tmp_path / "ours.bin"), binary=True)
    vectors, _ = VectorFile(tmp_path / "ours.bin").vectors(WORDS)
    assert (np.stack([theirs[word] for word in WORDS]) == vectors).all()


def test_gensims_word_movers_distance_equals_ours(tmp_path: Path, empty_cache: Path) -> None:
    keyed = pytest.importorskip("gensim.models").KeyedVectors(vector_size=8)
    vocabulary = [f"{first}{second}" for first in "bcdfg" for second in "aeiou"]
    table = tiny_table(vocabulary, dimension=8)
    keyed.add_vectors(vocabulary, np.array(list(table.values()), dtype=np.float32))
    (tmp_path / "v.txt").write_bytes(vector_bytes(table, "glove"))
    generator = np.random.default_rng(4)
    for _ in range(10):
        one, other = (generator.choice(vocabulary, size=size).tolist() for size in (9, 6))
        ours = movers.wms([" ".join(one)], [" ".join(other)], model=tmp_path / "v.txt", stopwords=None, temperature=1)[
            "score"
        ]
        assert -np.log(ours) == pytest.approx(keyed.wmdistance(one, other, norm=False), abs=1e-5)


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spacy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    for word, row in tiny_table(WORDS, seed=5).items():
        pipeline.vocab.set_vector(word, np.array(row, dtype=np.float32))
    pipeline.add_pipe("sentencizer")
    folder = tmp_path_factory.mktemp("spacy") / "pipeline"
    pipeline.to_disk(folder)
    return folder


def test_spacy_vectors_come_from_a_pipeline_folder(spacy_folder: Path) -> None:
    encoder = load_encoder(str(spacy_folder))
    assert_holds(encoder, tiny_table(WORDS, seed=5))
    assert load_encoder(spacy_folder) is encoder
    assert encoder.identity.startswith("en_pipeline-") and "@" in encoder.identity and "/" not in encoder.identity
    assert movers.wms(["cat"], ["cat"], model=str(spacy_folder), temperature=1)["score"] == pytest.approx(1.0)


def test_a_spacy_pipeline_without_vectors_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy").blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="has no word vectors; take one that ends in _md or _lg"):
        load_encoder(tmp_path / "blank")


def test_without_spacy_the_user_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en_tiny").mkdir()
    (tmp_path / "en_tiny" / "meta.json").write_text("{}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "spacy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match="is a spaCy pipeline: pip install 'movers\\[spacy\\]'"):
        load_encoder(tmp_path / "en_tiny")


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordllama() -> WordLlama:
    return load_encoder("wordllama")


def test_wordllama_vectors_are_the_means_of_sub_word_vectors(wordllama: WordLlama) -> None:
    from importlib import metadata

    from safetensors import safe_open
    from tokenizers import Tokenizer

    root = Path(str(metadata.distribution("wordllama").locate_file("wordllama")))
    with safe_open(root / "weights/l2_supercat_256.safetensors", "numpy") as file:
        (name,) = file.keys()
        table = file.get_tensor(name).astype(np.float64)
    tokenizer = Tokenizer.from_file(str(root / "tokenizers/l2_supercat_tokenizer_config.json"))
    words = [
        "snow",
        "snowman",
        "antidisestablishmentarianism",
        "naïve",
        "我",
        "ไ",
        "😀",
        "$",
        "3.5",
        "Москва",
        "o'brien",
    ]
    vectors, known = wordllama.vectors(words)
    assert known.all() and wordllama.dimension == 256
    for word, vector in zip(words, vectors, strict=True):
        encoding = tokenizer.encode(word, add_special_tokens=False)
        ids = [token for token, mask in zip(encoding.ids, encoding.attention_mask, strict=True) if mask]
        np.testing.assert_allclose(vector, np.mean([table[token] for token in ids], axis=0), atol=1e-6)


def test_wordllama_vectors_do_not_depend_on_the_other_words(wordllama: WordLlama) -> None:
    words = ["cat", "snowman", "cat", "unbelievable"]
    fresh = WordLlama()
    together, _ = fresh.vectors(words)
    again, _ = WordLlama().vectors(words[::-1])
    assert (together == again[::-1]).all() and (together[0] == together[2]).all()
    assert (fresh.vectors(["snowman"])[0][0] == together[1]).all()


def test_wordllama_knows_every_visible_character(wordllama: WordLlama) -> None:
    from movers.texts import token_spans

    generator = np.random.default_rng(6)
    characters = [chr(code) for code in generator.integers(0x20, 0x1FAFF, size=5000) if not 0xD800 <= code < 0xE000]
    tokens = [piece for character in characters for piece, _, _ in token_spans(character)]
    vectors, known = wordllama.vectors(tokens)
    assert known.all() and np.isfinite(vectors).all()


def test_no_words_have_no_vectors(wordllama: WordLlama) -> None:
    vectors, known = wordllama.vectors([])
    assert vectors.shape == (0, 256) and known.shape == (0,)


def test_the_identity_carries_the_digest_of_the_weights(wordllama: WordLlama) -> None:
    assert wordllama.identity == "wordllama-256@64b47a2d"


def test_a_damaged_archive_is_named(tmp_path: Path, empty_cache: Path) -> None:
    whole = gzip.compress(vector_bytes(tiny_table(WORDS), "glove") * 50)
    for content in (b"cat 1 2\n", whole[:-20], whole[:12] + b"\xff" * 40):
        (tmp_path / "v.txt.gz").write_bytes(content)
        with pytest.raises(InputError, match="model: .*v.txt.gz: expected a gzip archive of word vectors, but"):
            VectorFile(tmp_path / "v.txt.gz")


def test_a_file_replaced_at_equal_size_and_time_is_read_again_in_the_same_process(
    vector_file: Callable[..., Path], empty_cache: Path
) -> None:
    path = vector_file({"cat": [1.0, 2.0], "dog": [3.0, 4.0]})
    status = path.stat()
    first = load_encoder(path)
    path.write_bytes(vector_bytes({"cat": [5.0, 2.0], "dog": [3.0, 4.0]}, "glove"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = load_encoder(path)
    assert path.stat().st_size == status.st_size and first.identity != second.identity
    assert second.vectors(["cat"])[0].tolist() == [[5.0, 2.0]]


@pytest.mark.parametrize("name", ["vectors.npy", "words.txt"])
def test_a_flipped_byte_in_the_cache_is_mended(vector_file: Callable[..., Path], empty_cache: Path, name: str) -> None:
    table = tiny_table(WORDS)
    path = vector_file(table)
    assert_holds(VectorFile(path), table)
    (cached,) = (empty_cache / "vectors").glob(f"*/{name}")
    data = bytearray(cached.read_bytes())
    data[-1] ^= 1
    cached.write_bytes(data)
    assert_holds(VectorFile(path), table)


def test_a_cache_that_is_ready_may_be_read_only_and_one_that_is_not_names_the_variable(
    vector_file: Callable[..., Path], empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tiny_table(WORDS)
    path = vector_file(table)
    VectorFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(static, "locked_cache", lambda name: pytest.fail("the cache was locked"))
        assert_holds(VectorFile(path), table)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOVERS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write to .*file/cache .*: set MOVERS_CACHE"):
        VectorFile(path)


def test_spacy_vectors_are_named_by_their_words_too(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    names = set()
    for words in (["cat", "dog"], ["dog", "cat"]):
        pipeline = spacy.blank("en")
        for word, row in zip(words, np.eye(2, dtype=np.float32), strict=True):
            pipeline.vocab.set_vector(word, row)
        pipeline.to_disk(tmp_path / "pipeline")
        names.add(load_encoder(tmp_path / "pipeline").identity)  # the same name, saved again
    assert len(names) == 2

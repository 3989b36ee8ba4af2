from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from movers.errors import InputError
from movers.weights import Corpus, IdfTable, choose_weights, normalised, resolve_tables, weigh

DOCUMENTS = [["a", "b", "b"], ["a", "c"], ["a"], ["a"]]


def test_frequencies_follow_the_formula() -> None:
    table = IdfTable.build(DOCUMENTS)
    assert table.documents == 4
    assert table["a"] == pytest.approx(math.log(5 / 5))
    assert table["b"] == pytest.approx(math.log(5 / 2))  # twice in one document counts once
    assert table["never"] == pytest.approx(math.log(5))
    np.testing.assert_allclose(table(["b", "a", "never"]), [math.log(5 / 2), 0.0, math.log(5)])


def test_a_document_given_twice_counts_twice() -> None:
    once, twice = IdfTable.build([["a"], ["b"]]), IdfTable.build([["a"], ["a"], ["b"]])
    assert twice["a"] == pytest.approx(math.log(4 / 3)) != once["a"]


def test_no_documents_make_no_table() -> None:
    with pytest.raises(InputError, match="IdfTable: expected at least one document"):
        IdfTable.build([])


def test_an_empty_document_counts_as_a_document() -> None:
    assert IdfTable.build([[], ["a"]])["a"] == pytest.approx(math.log(3 / 2))


@pytest.mark.parametrize("name", ["table.json", "table.json.gz"])
def test_a_saved_table_comes_back_whole(tmp_path: Path, name: str) -> None:
    words = IdfTable.build([["naïve", "我", "a"], ["a"]])
    words.save(tmp_path / name)
    back = IdfTable.load(str(tmp_path / name))
    assert back == words and back.digest == words.digest
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b'{"')


def test_token_ids_stay_numbers_and_keep_their_tokenizer(tmp_path: Path) -> None:
    table = IdfTable.build([[101, 7], [101]], "tokens", "abc")
    table.save(tmp_path / "t.json")
    back = IdfTable.load(tmp_path / "t.json")
    assert back[7] == pytest.approx(math.log(3 / 2)) and back["7"] == pytest.approx(math.log(3))
    assert (back.keys, back.tokenizer) == ("tokens", "abc")


def test_saving_twice_gives_equal_bytes(tmp_path: Path) -> None:
    IdfTable.build([["b", "a"], ["a"]]).save(tmp_path / "1.gz")
    IdfTable.build([["a"], ["a", "b"]]).save(tmp_path / "2.gz")
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()


def test_the_digest_tells_tables_apart() -> None:
    tables = [
        IdfTable({"a": 1}, 2),
        IdfTable({"a": 2}, 2),
        IdfTable({"a": 1}, 3),
        IdfTable({"b": 1}, 2),
        IdfTable({1: 1}, 2, "tokens", "x"),
        IdfTable({1: 1}, 2, "tokens", "y"),
        IdfTable({"1": 1}, 2, "tokens", "y"),
    ]
    assert len({table.digest for table in tables}) == len(tables)


def test_the_digest_of_a_table_never_changes() -> None:
    # Signatures of published scores hold these.
    assert IdfTable({"naïve": 1, "a": 2}, 3).digest == IdfTable({"a": 2, "naïve": 1}, 3).digest == "8c92493c"
    assert IdfTable({101: 2, 7: 1}, 3, "tokens", "x").digest == "1964298a"
    assert IdfTable({2: 1, "b": 1}, 3).digest == IdfTable({"b": 1, 2: 1}, 3).digest  # keys that have no order


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="idf: .* no file .*nowhere"):
        IdfTable.load(tmp_path / "nowhere.json")


def _truncated_gzip() -> bytes:
    return gzip.compress(json.dumps({"format": "movers-idf-1", "x": list(range(500))}).encode(), mtime=0)[:-40]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"not json"),
        ("b.json", b"[1, 2]"),
        ("c.json", b'{"format": "other"}'),
        ("d.json", b'{"format": "movers-idf-1", "documents": 2}'),
        ("e.json", b"\xff\xfe"),
        ("f.gz", b"not gzip"),
        ("g.gz", _truncated_gzip()),
        ("h.gz", gzip.compress(b"x" * 99, mtime=0)[:10] + b"\xff" * 30),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"idf: .*{name} is not a table written by IdfTable.save"):
        IdfTable.load(tmp_path / name)


def test_a_table_of_other_keys_is_refused() -> None:
    with pytest.raises(InputError, match="wms: idf: expected a table of words, but got one of tokens"):
        IdfTable({1: 1}, 1, "tokens", "x").check("wms", "words")
    with pytest.raises(InputError, match="moverscore: idf: .* another tokenizer .*digest x, this encoder's y"):
        IdfTable({1: 1}, 1, "tokens", "x").check("moverscore", "tokens", "y")
    assert IdfTable({1: 1}, 1, "tokens", "x").check("moverscore", "tokens", "x") is None


# ---------------------------------------------------------------------------------------------------------------------
# Masses


class Words:
    """Three words with vectors of lengths 5, 1 and 2."""

    def vectors(self) -> NDArray[np.float32]:
        return np.array([[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], dtype=np.float32)

    def keys(self) -> list[str]:
        return ["a", "b", "c"]


def test_masses_are_counts_ones_idf_or_lengths() -> None:
    counts, table = np.array([1.0, 2.0, 3.0]), IdfTable({"a": 3, "b": 1}, 3)
    assert weigh("count", counts, Words(), None).tolist() == [1, 2, 3]
    assert weigh("uniform", counts, Words(), None).tolist() == [1, 1, 1]
    assert weigh("norm", counts, Words(), None).tolist() == [5, 2, 6]
    assert weigh("idf", counts, Words(), table) == pytest.approx([0, 2 * math.log(2), 3 * math.log(4)])


def test_normalised_masses_sum_to_one_and_are_equal_if_there_are_none() -> None:
    assert normalised("wms", np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    assert normalised("wms", np.array([0.25, 0.25])).tolist() == [0.5, 0.5]
    with pytest.warns(UserWarning, match="wms: a text has no mass under these weights"):
        assert normalised("wms", np.zeros(4)).tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("weights", "idf", "expected"),
    [(None, None, "count"), (None, "corpus", "idf"), ("norm", None, "norm"), ("idf", "corpus", "idf")],
)
def test_a_table_implies_idf_weights(weights: str | None, idf: str | None, expected: str) -> None:
    assert choose_weights("wms", weights, idf, "count") == expected


@pytest.mark.parametrize(("weights", "idf"), [("idf", None), ("norm", "corpus"), ("count", "corpus")])
def test_weights_and_table_must_not_contradict_each_other(weights: str, idf: str | None) -> None:
    with pytest.raises(InputError, match="wms: (weights: 'idf' needs a table|idf: a table is given, but weights=)"):
        choose_weights("wms", weights, idf, "count")


class Builder:
    """Counts words between blanks."""

    keys = "words"
    tokenizer = None

    def build(self, texts: Iterable[str]) -> IdfTable:
        return IdfTable.build(text.split() for text in texts)


def test_tables_come_from_the_call_from_files_or_from_the_caller(tmp_path: Path) -> None:
    builder: Any = Builder()
    corpus = Corpus(["a b"], [["a", "c"], ["c d"]])
    assert resolve_tables("m", None, corpus, builder) is None
    references = IdfTable({"a": 1, "c": 2, "d": 1}, 3)
    assert resolve_tables("m", "corpus", corpus, builder) == (references, references)
    predictions = IdfTable({"a": 1, "b": 1}, 1)
    both = resolve_tables("m", "corpus", corpus, builder, both_sides=True)
    assert both == (predictions, references)
    assert both is not None and both.digest == f"{predictions.digest}+{references.digest}"
    one = resolve_tables("m", references, None, builder)
    assert one == (references, references) and one is not None and one.digest == references.digest
    references.save(tmp_path / "table.json")
    assert resolve_tables("m", [predictions, tmp_path / "table.json"], None, builder) == (predictions, references)


@pytest.mark.parametrize(
    ("idf", "message"),
    [
        ("corpus", "m: idf: 'corpus' needs the texts of the whole call"),
        ([IdfTable({}, 1)], "m: idf: expected a table or a pair of tables, but got 1 items"),
        (3, "m: idf: expected 'corpus', a saved table's path or an IdfTable, but got 3"),
        (IdfTable({1: 1}, 1, "tokens"), "m: idf: expected a table of words, but got one of tokens"),
    ],
    ids=["corpus", "one", "number", "tokens"],
)
def test_what_is_no_table_is_refused(idf: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_tables("m", idf, None, Builder())  # type: ignore[arg-type]


def test_a_table_with_a_key_in_more_documents_than_there_are_is_refused() -> None:
    for count in (3, -1):
        with pytest.raises(InputError, match="expected each key in 0 to 2 documents"):
            IdfTable({"word": count}, 2)

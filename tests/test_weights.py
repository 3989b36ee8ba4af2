from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from movers.errors import InputError
from movers.weights import IdfTable

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

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from movers.errors import InputError
from movers.weights import Corpus, IdfTable, idf_tables, normalised


def build(texts: Iterable[str]) -> IdfTable:
    return IdfTable.build(text.split() for text in texts)


def test_frequencies_follow_the_formula() -> None:
    table = build(["a b b", "a c", "a", "a", ""])  # twice in a document counts once, an empty document counts
    assert table.documents == 5
    np.testing.assert_allclose(table(["a", "b", "never"]), [math.log(6 / 5), math.log(6 / 2), math.log(6)])
    assert build(["a", "a", "b"])["a"] == pytest.approx(math.log(4 / 3))  # a document given twice counts twice
    with pytest.raises(InputError, match="IdfTable: expected at least one document"):
        build([])
    assert IdfTable({"never": 0}, 2)["never"] == pytest.approx(math.log(3))
    for count in (3, -1):
        with pytest.raises(InputError, match="expected each key in 0 to 2 documents"):
            IdfTable({"word": count}, 2)


@pytest.mark.parametrize("name", ["table.json", "table.json.gz"])
@pytest.mark.parametrize(
    "table", [IdfTable({"naïve": 1, "我": 1, "a": 2}, 2), IdfTable({101: 2, 7: 1}, 2, "tokens", "abc")]
)
def test_a_saved_table_is_the_same_when_loaded(table: IdfTable, tmp_path: Path, name: str) -> None:
    table.save(tmp_path / name)
    again = IdfTable.load(str(tmp_path / name))
    assert again == table and again.digest == table.digest
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b'{"')


def test_digests_of_tables() -> None:
    # Signatures of published scores hold these.
    assert IdfTable({"naïve": 1, "a": 2}, 3).digest == IdfTable({"a": 2, "naïve": 1}, 3).digest == "8c92493c3411e073"
    assert IdfTable({101: 2, 7: 1}, 3, "tokens", "x").digest == "1964298aa693e730"
    tables = [
        *(IdfTable({"a": 1}, 2), IdfTable({"a": 2}, 2), IdfTable({"a": 1}, 3), IdfTable({"b": 1}, 2)),
        *(IdfTable({key: 1}, 2, "tokens", tokenizer) for key in (1, "1") for tokenizer in "xy"),
    ]
    assert len({table.digest for table in tables}) == len(tables)


TABLE = {"format": "movers-idf-1", "keys": "words", "tokenizer": None, "frequencies": []}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"not json"),
        ("b.json", b"[1, 2]"),
        ("c.json", b'{"format": "other"}'),
        ("d.json", b'{"format": "movers-idf-1", "documents": 2}'),
        ("e.json", b"\xff\xfe"),
        *((f"{n}.json", json.dumps({**TABLE, "documents": n}).encode()) for n in (-5, "x", True)),
        ("f.gz", b"not gzip"),
        ("g.gz", gzip.compress(b"x" * 999, mtime=0)[:-12]),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"idf: .*{name} is not a table written by IdfTable.save"):
        IdfTable.load(tmp_path / name)
    with pytest.raises(InputError, match="idf: .* no file .*nowhere"):
        IdfTable.load(tmp_path / "nowhere.json")


def test_masses_sum_to_one_also_if_there_are_none() -> None:
    assert normalised("wms", np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    with pytest.warns(UserWarning, match="wms: a text has no mass under these weights"):
        assert normalised("wms", np.zeros(4)).tolist() == [0.25] * 4


def test_tables_come_from_the_call_from_files_or_from_the_caller(tmp_path: Path) -> None:
    corpus = Corpus(["a b"], [["a", "c"], ["c d"]])
    predictions, references = IdfTable({"a": 1, "b": 1}, 1), IdfTable({"a": 1, "c": 2, "d": 1}, 3)
    references.save(tmp_path / "table.json")
    assert idf_tables("m", None, corpus, build) == ()
    assert idf_tables("m", "corpus", corpus, build) == idf_tables("m", references, None, build) == (references,)
    assert idf_tables("m", "per-side", corpus, build, two_sides=True) == (predictions, references)
    pair = [predictions, tmp_path / "table.json"]
    assert idf_tables("m", pair, None, build, two_sides=True) == (predictions, references)
    assert idf_tables("m", "all", corpus, build) == (IdfTable({"a": 2, "b": 1, "c": 2, "d": 1}, 4),)
    tokens = IdfTable({1: 1}, 1, "tokens", "x")
    assert idf_tables("m", tokens, None, build, tokenizer="x") == (tokens,)
    for idf, tokenizer, message in [
        ("corpus", None, "'corpus' needs the texts of the whole call"),
        ([references] * 2, None, "expected one table for both sides, but got 2"),
        ("per-side", None, "expected one table for both sides, but got per-side"),
        (3, None, "expected 'corpus', a saved table's path or an IdfTable, but got 3"),
        (tokens, None, "expected a table of words, but got one of tokens"),
        (tokens, "y", "the table was built with another tokenizer .*digest x, this encoder's y"),
    ]:
        with pytest.raises(InputError, match=f"m: idf: {message}"):
            idf_tables("m", idf, None, build, tokenizer)

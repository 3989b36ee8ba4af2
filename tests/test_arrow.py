"""Parquet and Arrow files, in and out, against what pyarrow itself reads and writes."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from movers.cli import main
from movers.errors import InputError
from movers.io import Table, Texts
from movers.io.arrow import read_batches, write_json_lines
from movers.io.ipc import claims

pyarrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ["Snow fell.", "", "Zwölf Bäume, 木", *(f"row {number}" for number in range(3000))]


def written(kind: str, path: Path) -> Path:
    """A file of texts by pyarrow: all rows in one batch or row group."""
    table = pyarrow.table({"id": list(range(len(TEXTS))), "text": TEXTS, "refs": [[text, "x"] for text in TEXTS]})
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "feather":
        feather.write_feather(table, path, chunksize=len(TEXTS))
    else:
        new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize(
    ("kind", "name"),
    [("parquet", "t.parquet"), ("feather", "t.feather"), ("file", "t.arrow"), ("stream", "t.arrow")],
)
def test_texts_and_lists_of_texts_are_read_in_batches(tmp_path: Path, kind: str, name: str) -> None:
    path = written(kind, tmp_path / name)
    assert list(Texts(str(path), "predictions")) == TEXTS
    assert list(Texts(str(path), "references", "refs").groups()) == [[text, "x"] for text in TEXTS]
    assert Table(path).where(3) == f"{path}: row 3"
    with path.open("rb") as file:
        sizes = [
            len(batch) for batch in read_batches(str(path), name.partition(".")[2].replace("feather", "arrow"), file)
        ]
    assert sum(sizes) == len(TEXTS) and max(sizes) <= 1024


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_pipe_of_arrow_is_recognized(tmp_path: Path, kind: str, run_python: Callable[..., str]) -> None:
    path = written(kind, tmp_path / "t.arrow")
    code = f"""if True:
        import os, sys
        os.dup2(os.open({str(path)!r}, os.O_RDONLY), 0)
        from movers.io import Texts
        print(Texts("-", "predictions").count())
    """
    assert run_python(code) == str(len(TEXTS))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "parquet without a dictionary in its schema", "arrow"])
def test_a_value_that_is_named_often_is_written_out_in_groups(
    tmp_path: Path, kind: str, nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("movers.io.arrow.FLOOR", 10_000)
    values = ["a" * 3000, None, "b"] * 20
    column = pyarrow.array(values)
    if kind != "parquet without a dictionary in its schema":
        column = column.dictionary_encode()
    if nested:
        column = pyarrow.ListArray.from_arrays(range(0, 61, 2), column)
    table = pyarrow.table({"text": column, "id": list(range(len(column)))})
    path = tmp_path / "t"
    if kind == "arrow":
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        parquet.write_table(table, path)
    with path.open("rb") as file:
        batches = list(read_batches(str(path), kind.partition(" ")[0], file))
    assert sum(batches, []) == table.to_pylist()
    written_out = [
        len("".join(text or "" for row in batch for text in ([row["text"]], row["text"])[nested])) for batch in batches
    ]  # type: ignore[arg-type]
    assert len(batches) > 5 and max(written_out) <= 10_000


def test_rows_that_are_too_long_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("parquet", tmp_path / "t.parquet")
    monkeypatch.setenv("MOVERS_MAX_LINE", "40")
    with pytest.raises(
        InputError, match=r"t.parquet: row 3: expected at most 40 bytes, but it has 5\d; the env.*MAX_LINE"
    ):
        list(Texts(str(path), "predictions"))


def test_pages_that_unpack_as_no_text_does_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"text": ["a" * 2_000_000]}), path, compression="zstd", use_dictionary=False)
    assert Texts(str(path), "predictions").count() == 1
    monkeypatch.setattr("movers.io.arrow.FLOOR", 1_000_000)
    with pytest.raises(
        InputError, match=r"at most 100 times their size, but 'text' claims 2,000,\d+ bytes from \d+; if"
    ):
        Texts(str(path), "predictions").count()


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_a_file_that_is_none_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"ARROW1, but not really, and then some more bytes")
    with pytest.raises(InputError, match=rf"{name}: expected (a parquet|an arrow) file, but got: "):
        Texts(str(tmp_path / name), "predictions").count()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_json_lines_become_columns_structs_and_texts(kind: str) -> None:
    blocks = [
        b'{"index": 0, "wms": {"score": 0.5}}\n{"index": 1, "wms": {"score": 1.0, "distance": 2.0}}\n',
        b'{"index": 2, "wms": {"score": 0.25, "alignments": [{"flows": [[0, 1]]}]}}\n',
    ]
    sink = io.BytesIO()
    write_json_lines("t", kind, sink, blocks)
    again = io.BytesIO()
    write_json_lines("t", kind, again, blocks)
    assert sink.getvalue() == again.getvalue()
    sink.seek(0)
    table = parquet.read_table(sink) if kind == "parquet" else pyarrow.ipc.open_file(sink).read_all()
    double, text = pyarrow.float64(), pyarrow.string()
    struct = pyarrow.struct([("score", double), ("distance", double), ("alignments", text)])
    assert table.schema == pyarrow.schema([("index", pyarrow.int64()), ("wms", struct)])
    rows: list[dict[str, Any]] = table.to_pylist()
    assert [row["wms"]["score"] for row in rows] == [0.5, 1.0, 0.25]
    assert [row["wms"]["distance"] for row in rows] == [None, 2.0, None]
    assert json.loads(rows[2]["wms"]["alignments"]) == [{"flows": [[0, 1]]}]
    assert parquet.ParquetFile(sink).num_row_groups == 2 if kind == "parquet" else True


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_scores_go_from_arrow_to_arrow(tmp_path: Path, suffix: str) -> None:
    pairs = {"prediction": ["Snow fell.", "", "Rain."], "reference": [["It snowed.", "Snow."], ["A"], ["It rained."]]}
    parquet.write_table(pyarrow.table(pairs), tmp_path / "pairs.parquet")
    texts = ["-p", str(tmp_path / "pairs.parquet"), "-r", str(tmp_path / "pairs.parquet"), "-q"]
    for metric in ("wms", "wms,sms"):
        for name in (f"s.{suffix}", "s.jsonl"):
            assert main(["score", metric, *texts, "-o", str(tmp_path / name)]) == 0
        expected = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
        own = tmp_path / f"s.{suffix}"
        table = parquet.read_table(own) if suffix == "parquet" else feather.read_table(own)
        assert [_without_nulls(row) for row in table.to_pylist()] == expected
        assert [row.value for row in Table(own)] == table.to_pylist()


def _without_nulls(record: dict[str, Any]) -> dict[str, Any]:
    plain = {name: _without_nulls(value) if isinstance(value, dict) else value for name, value in record.items()}
    return {name: value for name, value in plain.items() if value is not None}


def test_outputs_that_cannot_be_are_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "wms", "-p", "none", "-r", "none", "-o", str(tmp_path / "s.parquet.gz")]) == 2
    assert "s.parquet.gz: cannot write it: expected a name without .gz" in capsys.readouterr().err


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    with pyarrow.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="t.arrow: expected different names of columns, but got text, text"):
        Texts(str(tmp_path / "t.arrow"), "predictions").count()


def test_a_value_that_python_cannot_hold_is_told(tmp_path: Path) -> None:
    dates = pyarrow.array([0, 2**30], pyarrow.int32()).cast(pyarrow.date32())
    table = pyarrow.table({"text": ["a", "b"], "date": dates})
    with pyarrow.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match=r"t.arrow: row 2: column 'date': cannot read its date32\[day\]: "):
        list(Texts(str(tmp_path / "t.arrow"), "predictions", "text"))


def test_every_kind_of_column_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_MAX_LINE", "50")
    long, listed = "a" * 100, pyarrow.array([[0] * 20])
    columns = {
        "view": pyarrow.array([long], pyarrow.string_view()),
        "runs": pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1], pyarrow.int32()), pyarrow.array([long])),
        "fixed": pyarrow.array([long.encode()], pyarrow.binary(100)),
        "fixed list": listed.cast(pyarrow.list_(pyarrow.int64(), 20)),
        "map": pyarrow.array([[(long, 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "small dictionary": pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([127], pyarrow.int8()), pyarrow.array([*map(str, range(127)), long])
        ),
    }
    for name, column in columns.items():
        table = pyarrow.table({"text": column})
        with pyarrow.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(InputError, match="t.arrow: row 1: expected at most 50 bytes, but it has 1"):
            Texts(str(tmp_path / "t.arrow"), "predictions").count()
            pytest.fail(name)


def test_lists_that_claim_more_than_their_file_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = pyarrow.array([[0] * 200_000], pyarrow.list_(pyarrow.int8()))
    parquet.write_table(pyarrow.table({"text": ["a"], "mask": zeros}), tmp_path / "t.parquet")
    assert list(Texts(str(tmp_path / "t.parquet"), "predictions")) == ["a"]
    monkeypatch.setattr("movers.io.arrow.FLOOR", 1_000_000)
    with pytest.raises(InputError, match=r"t.parquet: expected lists of .* 'mask.list.element' claims 200,000 values"):
        list(Texts(str(tmp_path / "t.parquet"), "predictions"))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("kind", ["file", "stream", "dictionary"])
def test_batches_that_unpack_as_no_text_does_are_refused(
    tmp_path: Path, kind: str, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.arrow"
    column = pyarrow.array(["a" * 2_000_000, "b"])
    table = pyarrow.table({"text": column.dictionary_encode() if kind == "dictionary" else column})
    new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
    with new(str(path), table.schema, options=pyarrow.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    assert Texts(str(path), "predictions").count() == 2
    monkeypatch.setattr("movers.io.arrow.FLOOR", 1_000_000)
    with pytest.raises(
        InputError, match=r"t.arrow: expected batches .* 100 times .*, but one claims 2,000,\d+ bytes from [\d,]+; if"
    ):
        Texts(str(path), "predictions").count()
    with path.open("rb+") as file:  # what is not compressed may have any size
        with new(file, table.schema) as writer:
            writer.write_table(table)
    assert Texts(str(path), "predictions").count() == 2


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_claims_are_the_sizes_of_what_arrow_unpacks(tmp_path: Path, codec: str | None) -> None:
    table = pyarrow.table({
        "id": pyarrow.array([1, None, 3] * 500),
        "text": ["Snow fell." * 30, "", "x"] * 500,
        "kind": pyarrow.array(["long " * 50, None, "b"] * 500).dictionary_encode(),
        "lists": [["a", "b"], None, []] * 500,
    })  # fmt: skip
    path = tmp_path / "t.arrow"
    for new in (pyarrow.ipc.new_file, pyarrow.ipc.new_stream):
        with new(str(path), table.schema, options=pyarrow.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_table(table, max_chunksize=400)
        with path.open("rb") as file:
            found = list(claims(file))
        batches = table.to_batches(400)
        assert len(found) == 1 + len(batches)
        for claim, batch in zip(found[1:], batches, strict=True):
            assert batch.drop_columns("kind").nbytes <= claim.unpacked <= batch.nbytes + 8 * 64
            assert claim.packed <= path.stat().st_size and (codec is not None or claim.packed == claim.unpacked)


def test_a_stream_that_leads_back_to_itself_is_told(tmp_path: Path) -> None:
    path = written("stream", tmp_path / "t.arrow")
    data = path.read_bytes()
    with pyarrow.ipc.open_stream(data) as reader:
        body = next(reader).nbytes
    place = next(at for at in range(len(data)) if body <= int.from_bytes(data[at : at + 8], "little") <= body + 512)
    path.write_bytes(data[:place] + (-64).to_bytes(8, "little", signed=True) + data[place + 8 :])
    with pytest.raises(InputError, match=r"expected an arrow file, but got: damaged metadata .a body of negative"):
        Texts(str(path), "predictions").count()


def test_damaged_metadata_are_told_wherever_a_byte_is_wrong(tmp_path: Path) -> None:
    for kind in ("file", "stream"):
        whole = written(kind, tmp_path / "t.arrow").read_bytes()
        rng = random.Random(0)
        for _ in range(150):
            data = bytearray(whole)
            place = rng.choice([rng.randrange(1200), rng.randrange(len(whole) - 1200, len(whole))])
            data[place] = rng.randrange(256)
            (tmp_path / "t.arrow").write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
            with contextlib.suppress(InputError):  # or what is read is text as before
                for row in Table(tmp_path / "t.arrow"):
                    assert row.value

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from movers.files import TextFile, read_groups

TEXTS = ["Snow fell.", "", "Zwölf Bäume, 木", 'He said "no",\tthen left.']
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file, gzip'd if its name says so; returns its path."""

    def put(name: str, content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return put


def read(path: str, column: str | None = None) -> list[Any]:
    file = TextFile(path, column, "predictions")
    values = list(file)
    assert file.count() == len(values)
    assert list(file) == values  # a file can be read again
    return values


def csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "t", "t.de"])
def test_lines_of_text(write: Write, name: str) -> None:
    assert read(write(name, "\n".join(TEXTS) + "\n")) == TEXTS
    assert read(write(name, "\n".join(TEXTS))) == TEXTS  # no line break at the end
    assert read(write(name, "")) == []


def test_line_breaks_of_windows_and_a_byte_order_mark_are_no_text(write: Write) -> None:
    assert read(write("t.txt", "\ufeffone\r\ntwo\r\n")) == ["one", "two"]


def test_only_line_breaks_cut_lines(write: Write) -> None:
    lines = ["one\u2028two", "three\x0cfour\x85five", "six\rseven"]
    assert read(write("t.txt", "\n".join(lines) + "\n")) == lines


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz", "T.JSONL"])
def test_a_column_of_json_lines(write: Write, name: str) -> None:
    rows = "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS)
    assert read(write(name, rows + "\n"), "text") == TEXTS
    assert read(write(name, json.dumps({"text": ["a", "b"]})), "text") == [["a", "b"]]


@pytest.mark.parametrize(("name", "mark"), [("t.csv", ","), ("t.tsv", "\t"), ("t.csv.gz", ",")])
def test_a_column_of_a_table(write: Write, name: str, mark: str) -> None:
    texts = [*TEXTS, "two\nlines", "two\r\nlines"]
    rows = "".join(f"{number}{mark}{csv_cell(text)}\n" for number, text in enumerate(texts))
    assert read(write(name, f"id{mark}text\n{rows}"), "text") == texts


def test_a_long_cell_is_read(write: Write) -> None:
    text = "word " * 100_000
    assert read(write("t.csv", f"text\n{csv_cell(text)}\n"), "text") == [text]


def test_a_file_with_columns_wants_the_name_of_one(write: Write) -> None:
    with pytest.raises(
        ValueError, match=r"predictions: .*t\.jsonl has columns: say which one with --prediction-column"
    ):
        TextFile(write("t.jsonl", "{}"), None, "predictions")
    with pytest.raises(ValueError, match="--reference-column"):
        TextFile(write("t.csv", "a\n"), None, "references 2")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", '{"text": "a"}\n{"text"\n', "line 2: expected JSON"),
        ("t.jsonl", '{"text": "a"}\n["b"]\n', "line 2: expected an object"),
        ("t.jsonl", '{"text": "a"}\n\n{"txt": "b"}\n', "line 3: no column 'text'; there are: txt"),
        ("t.csv", "id,txt\n1,a\n", "header: no column 'text'; there are: id, txt"),
        ("t.csv", "", "header: no column 'text'"),
    ],
    ids=["no-json", "no-object", "no-key", "no-header", "empty"],
)
def test_what_is_wrong_with_a_column_is_told(write: Write, name: str, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"predictions: .*{name}: {message}"):
        list(TextFile(write(name, content), "text", "predictions"))


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv"])
def test_bytes_that_are_no_utf_8_are_told(write: Write, name: str) -> None:
    path = write(name, 'text\n{"text": "fäß"}\n'.encode("latin-1"))
    with pytest.raises(ValueError, match=f"predictions: .*{name}: expected UTF-8|line 1: expected JSON"):
        list(TextFile(path, None if name == "t.txt" else "text", "predictions"))


def test_a_damaged_archive_is_told(write: Write, tmp_path: Path) -> None:
    whole = Path(write("t.txt.gz", "some text\n" * 1000)).read_bytes()
    for name, data in (("cut.txt.gz", whole[:-12]), ("plain.txt.gz", b"no archive at all")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name}: expected a whole gzip file"):
            list(TextFile(str(tmp_path / name), None, "predictions"))


def test_missing_files_and_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"predictions: no such file: .*none\.txt"):
        TextFile(str(tmp_path / "none.txt"), None, "predictions")
    with pytest.raises(FileNotFoundError, match="predictions: expected a file, but .* is a folder"):
        TextFile(str(tmp_path), None, "predictions")


def test_groups_join_files_and_lists_row_by_row(write: Write) -> None:
    lines = TextFile(write("a.txt", "one\ntwo\n"), None, "references 1")
    lists = TextFile(write("b.jsonl", '{"r": ["x", "y"]}\n{"r": "z"}\n'), "r", "references 2")
    assert list(read_groups([lines, lists])) == [["one", "x", "y"], ["two", "z"]]

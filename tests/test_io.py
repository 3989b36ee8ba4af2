"""Files: what is read, what is refused with file, row and column, what is on disk after a failure, what is resumed."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from movers.errors import InputError
from movers.io import ResumableFile, Table, Texts, align_table, csv_row, printable, read_text, write_file

TEXTS = ["Snow fell.", "", "Zwölf Bäume, 木", 'He said "no",\tthen left.', "one\u2028two\x85three\rfour"]
LITERAL = ["NA", "007", "1.50", "2021-03-04", "", "nan", "null", "True", "1e5", " padded "]
Write = Callable[[str, str | bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file, compressed if its name says so; returns its path."""

    def put(name: str, content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return put


def content(kind: str, texts: list[str], column: str = "text") -> bytes:
    """The texts as a file of that kind, written by hand or by pyarrow."""
    if kind in ("parquet", "arrow", "stream"):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table({"id": list(range(len(texts))), column: texts, "lists": [[text, "x"] for text in texts]})
        sink = pyarrow.BufferOutputStream()
        if kind == "parquet":
            parquet.write_table(table, sink)
        else:
            new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
            with new(sink, table.schema) as writer:
                writer.write_table(table)
        return sink.getvalue().to_pybytes()
    records = [{"id": number, column: text, "lists": [text, "x"]} for number, text in enumerate(texts)]
    if kind == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    if kind == "json":
        return json.dumps(records, indent=1).encode()
    mark = "\t" if kind == "tsv" else ","
    cells = (f'{number}{mark}"{text.replace(chr(34), chr(34) * 2)}"\n' for number, text in enumerate(texts))
    return (f"id{mark}{column}\n" + "".join(cells)).encode()


def error(path: str, column: str | None = None, argument: str = "predictions") -> str:
    """The message about a file that is refused, without its path."""
    with pytest.raises(InputError) as caught:
        list(Texts(path, argument, column))
    assert path in str(caught.value)
    return str(caught.value).replace(path, "FILE")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", ["jsonl", "ndjson", "json", "csv", "tsv", "parquet", "arrow", "feather"])
def test_a_column_is_read_as_it_is_written_again_and_again(write: Write, kind: str, suffix: str) -> None:
    texts = [*TEXTS, *LITERAL, "two\nlines", "two\r\nlines", "word " * 100_000, *map(str, range(3000))]
    form = {"ndjson": "jsonl", "feather": "arrow"}.get(kind, kind)
    file = Texts(write(f"t.{kind}{suffix}", content(form, texts)), "predictions", "text")
    assert list(file) == list(file) == texts
    assert file.survey()[0] == len(texts)


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "t", "t.de"])
def test_any_other_file_holds_one_text_per_line(write: Write, name: str) -> None:
    assert list(Texts(write(name, "\n".join(TEXTS) + "\n"), "predictions")) == TEXTS
    assert list(Texts(write(name, "\n".join(TEXTS)), "predictions")) == TEXTS  # no line break at the end
    assert list(Texts(write(name, "\ufeffone\r\ntwo\r\n"), "predictions")) == ["one", "two"]
    assert list(Texts(write(name, ""), "predictions")) == []
    assert list(Texts(write("t.json", json.dumps(TEXTS)), "predictions")) == TEXTS  # or a list of texts


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow"])
def test_a_column_may_hold_lists_of_texts(write: Write, kind: str) -> None:
    path = write(f"t.{kind}", content(kind, TEXTS))
    assert list(Texts(path, "references", "lists").groups()) == [[text, "x"] for text in TEXTS]


def test_rows_have_the_numbers_that_an_editor_shows(write: Write) -> None:
    table = Table(write("t.csv", 'a,text\n1,"two\nlines"\n3,x\n\n'))
    assert [(number, row["text"]) for number, row in table] == [(2, "two\nlines"), (4, "x")]
    assert Texts(table, "predictions").where_row(1) == f"predictions: {table.path}: line 4"
    assert [number for number, _ in Table(write("t.jsonl", '{"a": 1}\n{"a": 2}\n\n\n'))] == [1, 2]


@pytest.mark.parametrize(
    ("data", "column", "kind"),
    [
        (b"one\ntwo\n", None, "text"),
        (gzip.compress(b"one\ntwo\n"), None, "text"),
        (b'{"prediction": "one"}\n{"prediction": "two"}\n', None, "jsonl"),
        (b'"id","t"\n1,one\n2,two\n', "t", "csv"),
    ],
    ids=["text", "gz", "jsonl", "csv"],
)
def test_a_pipe_is_read_as_often_as_a_file(tmp_path: Path, data: bytes, column: str | None, kind: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[data])
    writer.start()
    file = Texts(str(pipe), "predictions", column)
    writer.join()
    assert file.table.kind == kind
    assert list(file) == list(file) == ["one", "two"]


def test_the_only_column_with_a_common_name_is_read(write: Write) -> None:
    for columns in ("id,candidate,reference,text", "id,output,gold,document", "summary,prediction,refs,articles"):
        path = write("t.csv", f"{columns}\n0,a,b,c\n")
        assert [list(Texts(path, name)) for name in ("predictions", "references", "sources")] == [["a"], ["b"], ["c"]]
    assert list(Texts(path, "references", "summary")) == ["0"]
    assert list(Texts(write("t.csv", "article,summary\na,b\n"), "predictions")) == ["b"]


def test_a_column_that_cannot_be_chosen_is_an_error_that_lists_the_columns(write: Write) -> None:
    assert error(write("t.csv", "prediction,output\na,b\n")) == (
        "predictions: FILE: line 2: expected --prediction-column to choose a column, but got the columns 'prediction', "
        "'output'"
    )
    assert "references: FILE: line 1: expected --reference-column to choose a column, but got the columns 'a'" in error(
        write("t.jsonl", '{"a": "b"}'), argument="references"
    )
    for column in ("text", None):
        assert "line 2: expected a column 'text', but got the columns 'txt'" in error(
            write("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n'), column
        )
    assert "one text per line, so --prediction-column is useless" in error(write("t.txt", "a\n"), "text")


@pytest.mark.parametrize("value", ["null", "5", "true", "[]", '["a", "b"]', "{}"])
def test_a_value_that_is_no_text_is_an_error_with_row_and_column(write: Write, value: str) -> None:
    path = write("t.jsonl", '{"text": "a"}\n' * 3000 + f'{{"text": {value}}}\n')
    assert error(path) == f"predictions: FILE: line 3001: column 'text': expected a text, but got {value}"
    rows = ", ".join(['{"text": "a"}'] * 10 + [f'{{"text": {value}}}'])
    assert error(write("t.json", f"[{rows}]")).startswith("predictions: FILE: row 11: column 'text': expected a text")


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.jsonl", '{"text": "a"}\n{"text"\n', "line 2: expected JSON, but got '{\"text\"\\n': Expecting ':'"),
        ("t.jsonl", '{"text": "a"}\n["b"]\n', "line 2: expected an object, but got [\"b\"]"),
        ("t.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', "line 2: expected JSON, but got"),
        ("t.jsonl", '{"text": "\\ud800"}\n', "line 1: column 'text': expected valid Unicode, but got a lone surrogate"),
        ("t.json", '[{"text": "a"}, ["b"]]', "row 2: expected an object or a text, but got ["),
        ("t.json", '["a" "b"]', "FILE: expected JSON, but got: Expecting ',' delimiter: line 1"),
        ("t.json", '{"text": ["a"]}', "FILE: expected a list of objects or of texts, but got {"),
        ("t.csv", "id,text\n1,a\n2\n", "line 3: expected 2 cells, but got 1"),
        ("t.csv", 'id,text\n1,a\n2,"b\n3,c\n', "line 3: expected CSV (quotes inside quoted cells are doubled)"),
        ("t.csv", "text,text\na,b\n", "FILE: expected different columns, but got text, text"),
        ("t.csv", "text\nalpha\n\nbeta\n", "line 3: expected a row, but got an empty line"),
        ("t.jsonl", '{"text": "a"}\n \n{"text": "b"}\n', "line 2: expected a row, but got an empty line"),
        ("t.parquet", "no table", "FILE: expected a valid parquet file, but got: "),
        ("t.arrow", "ARROW1, but not really, and then more", "FILE: expected a valid arrow file, but got: "),
    ],
)  # fmt: skip
def test_a_malformed_file_is_an_error_with_its_row(write: Write, name: str, text: str, message: str) -> None:
    if name.endswith(("parquet", "arrow")):
        pytest.importorskip("pyarrow")
    shown = error(write(name, text))
    assert message in shown and len(shown) < 250


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
@pytest.mark.parametrize("name", ["t.txt", "t.csv.gz"])
def test_another_encoding_is_an_error(write: Write, name: str, encoding: str) -> None:
    shown = error(write(name, "text\neins\nfünf\n".encode(encoding)))
    place = "line 3: expected UTF-8, but got the byte 0xfc" if encoding == "latin-1" else "UTF-16"
    assert "expected UTF-8, but got " in shown and place in shown


def test_a_damaged_archive_is_an_error(write: Write, tmp_path: Path) -> None:
    whole = Path(write("t.txt.gz", "some text\n" * 1000)).read_bytes()
    middle = whole[:20] + bytes(10) + whole[30:]
    for name, data in (("cut.txt.gz", whole[:-12]), ("bits.txt.gz", middle)):
        (tmp_path / name).write_bytes(data)
        assert "FILE: expected a complete gzip file, but got: " in error(str(tmp_path / name))
    (tmp_path / "renamed.txt").write_bytes(whole)
    assert len(list(Texts(str(tmp_path / "renamed.txt"), "predictions"))) == 1000


def test_a_file_that_cannot_be_opened_is_an_error(write: Write, tmp_path: Path) -> None:
    assert error(str(tmp_path / "none.txt")) == "FILE: no such file"
    assert error(str(tmp_path)) == "FILE: cannot read it: Is a directory"
    assert error(f"{write('t.txt', 'a')}/t.txt") == "FILE: cannot read it: Not a directory"


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_as_text_bytes_or_compressed(tmp_path: Path) -> None:
    write_file(tmp_path / "t.txt", "Bäume\r\n木\n")
    assert (tmp_path / "t.txt").read_bytes() == "Bäume\r\n木\n".encode()
    write_file(str(tmp_path / "t.bin"), b"\0\1")
    assert (tmp_path / "t.bin").read_bytes() == b"\0\1"
    write_file(tmp_path / "t.gz", "text")
    assert read_text(tmp_path / "t.gz") == "text"
    assert (tmp_path / "t.gz").read_bytes()[3:8] == bytes(5)  # neither name nor time
    assert listed(tmp_path) == ["t.bin", "t.gz", "t.txt"]


def test_a_full_disk_leaves_the_old_file_and_names_it(small_disk: Path) -> None:
    (small_disk / "t.txt").write_text("old")
    with pytest.raises(InputError, match=r"t\.txt: cannot write it: No space left on device"):
        write_file(small_disk / "t.txt", os.urandom(100_000).hex())
    assert (small_disk / "t.txt").read_text() == "old" and listed(small_disk) == ["t.txt"]


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_is_written_in_order_even_if_it_is_a_file(tmp_path: Path, name: str) -> None:
    code = f"from movers.io import write_file; print('a'); write_file({name!r}, 'b\\n'); print('c')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "a\nb\nc\n"


def test_a_full_disk_keeps_the_whole_sections(small_disk: Path) -> None:
    with ResumableFile(small_disk / "t.txt", resume=False) as file:
        file.begin({})
        file.append("one\n", 1)
        with pytest.raises(InputError, match=r"t\.txt\.partial: cannot write it: No space left on device"):
            file.append("x" * 100_000, 2)
    with ResumableFile(small_disk / "t.txt", resume=True) as again:
        assert again.begin({}) == 1
        again.append("two\n", 2)
        again.finish()
    assert (small_disk / "t.txt").read_bytes() == b"one\ntwo\n"


def test_texts_cannot_control_the_terminal_or_a_spreadsheet() -> None:
    assert printable("a\x1b[31m\u202eb\n\tc") == "a\\u001b[31m\\u202eb\n\tc"
    assert align_table(["a"], [["x\ny|"]], markdown=True)[-1] == "| x\\u000ay\\| |"
    assert csv_row(["=1", "+a", "-a", "@a", "-1+1"]) == "'=1,'+a,'-a,'@a,'-1+1\n"
    assert csv_row(["-0.5", "+3", "-1e-5", -1, "a\rb", 'c"d']) == '-0.5,+3,-1e-5,-1,"a\rb","c""d"\n'

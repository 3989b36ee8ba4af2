"""Files: what is read, what is refused with file, row and column, what is on disk after a failure, what is resumed."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from movers.errors import InputError
from movers.io import (
    ResumableFile,
    Table,
    TextGroups,
    Texts,
    align_table,
    check_output,
    csv_cell,
    csv_row,
    open_output,
    printable,
    progress_bar,
    read_text,
    write_file,
)

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


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", ["jsonl", "ndjson", "json", "csv", "tsv", "parquet", "arrow", "feather"])
def test_a_column_is_read_as_it_is_written_again_and_again(write: Write, kind: str, suffix: str) -> None:
    texts = [*TEXTS, *LITERAL, "two\nlines", "two\r\nlines", "word " * 100_000, *map(str, range(3000))]
    form = {"ndjson": "jsonl", "feather": "arrow"}.get(kind, kind)
    file = Texts(write(f"t.{kind}{suffix}", content(form, texts)), "predictions", "text")
    assert list(file) == list(file) == texts
    assert file.survey()[0] == len(texts)


def test_unquoted_cells_are_texts_too(write: Write) -> None:
    plain = [text for text in LITERAL if text]
    assert list(Texts(write("t.csv", "id,text\n" + "".join(f"1,{text}\n" for text in plain)), "predictions")) == plain
    assert list(Texts(write("e.csv", "id,text\n1,\n"), "predictions")) == [""]


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


def test_groups_join_files_row_by_row(write: Write) -> None:
    lines = Texts(write("a.txt", "one\ntwo\n"), "references")
    lists = Texts(write("b.jsonl", '{"r": ["x", "y"]}\n{"r": "z"}\n'), "references", "r")
    groups = TextGroups([lines, lists])
    assert list(groups) == list(groups) == [["one", "x", "y"], ["two", "z"]]
    assert groups.where_row(0, 2) == f"references: {lists.table.path}: line 1"
    nothing = Texts(write("c.jsonl", '{"r": ["x"]}\n{"r": []}\n'), "references", "r")
    with pytest.raises(InputError, match="line 2: column 'r': expected at least one text, but got an empty list"):
        list(TextGroups([nothing]))


def test_rows_have_the_numbers_that_an_editor_shows(write: Write) -> None:
    table = Table(write("t.csv", 'a,b\n1,"two\nlines"\n3,x\n\n'))
    assert [(row.number, row.value["b"]) for row in table] == [(2, "two\nlines"), (4, "x")]
    assert table.where(4) == f"{table.path}: line 4"
    assert [row.number for row in Table(write("t.jsonl", '{"a": 1}\n{"a": 2}\n\n\n'))] == [1, 2]
    assert Texts(write("u.csv", 'text\n"two\nlines"\nx\n'), "predictions").where_row(1).endswith("line 4")


def test_a_digest_is_of_the_texts_and_not_of_the_format(write: Write) -> None:
    surveys = {Texts(write(f"t.{kind}", content(kind, TEXTS)), "predictions").survey() for kind in ("csv", "jsonl")}
    assert len(surveys) == 1
    changed = Texts(write("t.csv", content("csv", [*TEXTS[:-1], "other"])), "predictions").survey()
    assert changed not in surveys


@pytest.mark.parametrize(
    ("data", "column", "kind"),
    [
        (b"one\ntwo\n", None, "text"),
        (gzip.compress(b"one\ntwo\n"), None, "text"),
        (b'{"prediction": "one"}\n{"prediction": "two"}\n', None, "jsonl"),
        (b'["one",\n "two"]', "text", "json"),
        (b'"id","t"\n1,one\n2,two\n', "t", "csv"),
        (b"id\tt\n1\tone\n2\ttwo\n", "t", "tsv"),
        ("parquet", "text", "parquet"),
        ("arrow", "text", "arrow"),
        ("stream", "text", "arrow"),
    ],
    ids=["text", "gz", "jsonl", "json", "csv", "tsv", "parquet", "arrow", "stream"],
)
def test_a_pipe_is_read_as_often_as_a_file(tmp_path: Path, data: bytes | str, column: str | None, kind: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    written = content(data, ["one", "two"]) if isinstance(data, str) else data
    writer = threading.Thread(target=pipe.write_bytes, args=[written])
    writer.start()
    file = Texts(str(pipe), "predictions", column)
    writer.join()
    assert file.table.kind == kind
    assert list(file) == list(file) == ["one", "two"]


def test_standard_input_is_read_once_and_serves_two_columns(run_python: Callable[..., str], write: Write) -> None:
    path = write("t.jsonl", '{"prediction": "a", "reference": "b"}\n{"prediction": "c", "reference": "d"}\n')
    code = f"""if True:
        import os, sys
        os.dup2(os.open({path!r}, os.O_RDONLY), 0)
        from movers.io import Table, Texts
        table = Table("-")
        print(*zip(*(Texts(table, argument) for argument in ("predictions", "references"))), table.where(1))
        print([name for name in ("numpy", "pyarrow", "tqdm") if name in sys.modules])
    """
    assert run_python(code) == "('a', 'b') ('c', 'd') -: line 1\n[]"


# --- columns ---------------------------------------------------------------------------------------------------------


def test_the_only_column_with_a_common_name_is_read(write: Write) -> None:
    path = write("t.csv", "id,candidate,reference,text\n1,a,b,c\n")
    found = [list(Texts(path, argument)) for argument in ("predictions", "references", "sources")]
    assert found == [["a"], ["b"], ["c"]]
    assert list(Texts(path, "references", "id")) == ["1"]


def test_a_column_that_cannot_be_chosen_is_an_error_that_lists_the_columns(write: Write) -> None:
    assert error(write("t.csv", "prediction,output\na,b\n")) == (
        "predictions: FILE: line 2: expected --prediction-column to choose one of the columns prediction, output"
    )
    assert error(write("t.jsonl", '{"a": "b", "c": "d"}'), argument="references") == (
        "references: FILE: line 1: expected --reference-column to name a column, but got the columns a, c"
    )
    for column in ("text", None):
        assert "line 2: expected a column 'text', but got the columns txt" in error(
            write("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n'), column
        )
    assert "one text per line, so --prediction-column is useless" in error(write("t.txt", "a\n"), "text")
    assert "'a;b' alone: .csv has commas between cells" in error(write("t.csv", "a;b\n1;2\n"), "a")


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["null", "5", "true", "[]", '["a", "b"]', "{}"])
def test_a_value_that_is_no_text_is_an_error_with_row_and_column(write: Write, value: str) -> None:
    shown = {"5": "the number 5", "[]": "a list", '["a", "b"]': "a list", "{}": "an object"}.get(value, value)
    path = write("t.jsonl", '{"text": "a"}\n' * 3000 + f'{{"text": {value}}}\n')
    assert error(path) == f"predictions: FILE: line 3001: column 'text': expected a text, but got {shown}"
    rows = ", ".join(['{"text": "a"}'] * 10 + [f'{{"text": {value}}}'])
    assert error(write("t.json", f"[{rows}]")).startswith("predictions: FILE: row 11: column 'text': expected a text")


@pytest.mark.parametrize("values", [[1, 2], ["a", None], [1.5, 2.0]])
def test_a_typed_column_is_not_turned_into_texts(tmp_path: Path, values: list[object]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": values}), tmp_path / "t.parquet")
    assert "column 'text': expected a text, but got " in error(str(tmp_path / "t.parquet"))


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.jsonl", '{"text": "a"}\n{"text"\n', "line 2: expected JSON, but got '{\"text\"\\n': Expecting ':'"),
        ("t.jsonl", '{"text": "a"} {"text": "b"}\n', "line 1: expected JSON, but got"),
        ("t.jsonl", '{"text": "a"}\n["b"]\n', "line 2: expected an object, but got a list"),
        ("t.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', "line 2: expected JSON, but got"),
        ("t.jsonl", '{"text": "\\ud800"}\n', "line 1: column 'text': expected valid Unicode, but got a lone surrogate"),
        ("t.json", '[{"text": "a"}, ["b"]]', "row 2: expected an object like row 1, but got a list"),
        ("t.json", '["a", {"text": "b"}]', "row 2: expected a text like row 1, but got an object"),
        ("t.json", "[5]", "row 1: expected an object or a text, but got the number 5"),
        ("t.json", '["a" "b"]', "FILE: expected JSON, but got: Expecting ',' delimiter: line 1"),
        ("t.json", f"[{DEEP}]", "FILE: expected JSON, but got: "),
        ("t.json", '{"text": ["a"]}', "FILE: expected a list of objects or of texts, but got an object"),
        ("t.csv", "id,text\n1,a\n2\n", "line 3: expected 2 cells as in the header, but got 1"),
        ("t.csv", "text\na\nb,c\n", "line 3: expected 1 cells as in the header, but got 2"),
        ("t.csv", 'id,text\n1,a\n2,"b\n3,c\n', "line 3: expected CSV (quotes inside quoted cells are doubled)"),
        ("t.csv", "text,text\na,b\n", "FILE: expected different columns, but got text, text"),
        ("t.csv", "text\nalpha\n\nbeta\n", 'line 3: expected a row, but got an empty line; write an empty text as ""'),
        ("t.tsv", "a\ttext\n1\t2\n\n\n3\t4\n", "line 3: expected a row, but got an empty line"),
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
@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.csv.gz"])
def test_another_encoding_is_an_error_with_the_way_to_convert_it(write: Write, name: str, encoding: str) -> None:
    shown = error(write(name, "text\neins\nfünf\n".encode(encoding)))
    if encoding == "latin-1":
        assert "line 3: expected UTF-8, but got the byte 0xfc; if the file is Latin-1" in shown
    assert f"iconv -f {'LATIN1' if encoding == 'latin-1' else 'UTF-16'} -t UTF-8 FILE" in shown


def test_a_damaged_archive_is_an_error(write: Write, tmp_path: Path) -> None:
    whole = Path(write("t.txt.gz", "some text\n" * 1000)).read_bytes()
    middle = whole[:20] + bytes(10) + whole[30:]
    for name, data in (("cut.txt.gz", whole[:-12]), ("plain.txt.gz", b"no archive at all"), ("bits.txt.gz", middle)):
        (tmp_path / name).write_bytes(data)
        assert "FILE: expected a complete gzip file, but got: " in error(str(tmp_path / name))
    (tmp_path / "renamed.txt").write_bytes(whole)
    assert len(list(Texts(str(tmp_path / "renamed.txt"), "predictions"))) == 1000


def test_a_file_that_cannot_be_opened_is_an_error(write: Write, tmp_path: Path) -> None:
    assert error(str(tmp_path / "none.txt")) == "FILE: no such file"
    assert error(str(tmp_path)) == "FILE: expected a file, but it is a folder"
    assert error(f"{write('t.txt', 'a')}/t.txt") == "FILE: cannot read it: Not a directory"
    with pytest.raises(InputError, match="expected the name of a file, but got an empty one"):
        Table("")


# --- writing ---------------------------------------------------------------------------------------------------------


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_as_text_bytes_or_compressed(tmp_path: Path) -> None:
    write_file(tmp_path / "t.txt", "Bäume\r\n木\n")
    assert (tmp_path / "t.txt").read_bytes() == "Bäume\r\n木\n".encode()
    write_file(str(tmp_path / "t.bin"), b"\0\1")
    assert (tmp_path / "t.bin").read_bytes() == b"\0\1"
    write_file(tmp_path / "t.gz", "text")
    assert read_text(tmp_path / "t.gz") == "text"
    assert gzip.decompress((tmp_path / "t.gz").read_bytes()) == b"text"
    assert (tmp_path / "t.gz").read_bytes()[3:8] == bytes(5)  # neither name nor time
    assert listed(tmp_path) == ["t.bin", "t.gz", "t.txt"]


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, stop: type[BaseException]) -> None:
    write_file(tmp_path / "t.txt", "old")
    with pytest.raises(stop), open_output(tmp_path / "t.txt") as file:
        file.write(b"new" * 100_000)
        raise stop
    assert (tmp_path / "t.txt").read_text() == "old" and listed(tmp_path) == ["t.txt"]


def test_a_full_disk_leaves_the_old_file_and_names_it(small_disk: Path) -> None:
    (small_disk / "t.txt").write_text("old")
    with pytest.raises(InputError, match=r"t\.txt: cannot write it: No space left on device"):
        write_file(small_disk / "t.txt", os.urandom(100_000).hex())
    assert (small_disk / "t.txt").read_text() == "old" and listed(small_disk) == ["t.txt"]


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to("real/t.txt")
    (tmp_path / "plain.txt").write_text("as the process makes files")
    write_file(tmp_path / "link.txt", "new")
    target = tmp_path / "real" / "t.txt"
    assert target.stat().st_mode == (tmp_path / "plain.txt").stat().st_mode
    target.chmod(0o640)
    write_file(tmp_path / "link.txt", "newer")
    assert (tmp_path / "link.txt").is_symlink() and target.read_text() == "newer"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_pipes_and_devices_are_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "text")
    reader.join()
    assert received == ["text"] and stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(InputError, match="/dev/full: cannot write it: No space left on device"):
        write_file("/dev/full", "text")


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_is_written_in_order_even_if_it_is_a_file(tmp_path: Path, name: str) -> None:
    code = f"from movers.io import write_file; print('a'); write_file({name!r}, 'b\\n'); print('c')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "a\nb\nc\n"


def test_an_output_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path, message in (
        (tmp_path, "expected a file, but it is a folder"),
        (tmp_path / "none" / "t.txt", f"there is no folder {tmp_path / 'none'}"),
        (tmp_path / "loop", "Too many levels of symbolic links"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "t.parquet", "expected a name that ends in .txt or .csv"),
    ):
        with pytest.raises(InputError, match=f"^{path}: cannot write it: {message}"):
            check_output(path, [".txt", ".csv"])
    for name in ("t.csv", "T.CSV", "t.txt.gz", "t", "t.gz"):
        assert check_output(tmp_path / name, [".txt", ".csv"]) == tmp_path / name
    with pytest.raises(InputError, match="expected the name of a file to write, but got ''"):
        check_output("")
    assert listed(tmp_path) == ["loop"]


# --- resuming --------------------------------------------------------------------------------------------------------


def test_a_run_continues_after_its_last_whole_section(tmp_path: Path) -> None:
    first = ResumableFile(tmp_path / "t.txt", resume=False)
    assert first.begin({"input": "x"}) is None
    first.append(b"one\n", {"rows": 1})
    first.append(b"two\n", {"rows": 2})
    first.close()
    with (tmp_path / "t.txt.partial").open("ab") as torn:
        torn.write(b"thr")
    with pytest.raises(InputError, match=r"t\.txt\.partial is an unfinished run: continue it with --resume"):
        ResumableFile(tmp_path / "t.txt", resume=False)
    with pytest.raises(InputError, match=r"cannot resume: expected the same input \(x\), but got y"):
        ResumableFile(tmp_path / "t.txt", resume=True).begin({"input": "y"})
    second = ResumableFile(tmp_path / "t.txt", resume=True)
    assert second.begin({"input": "x"}) == {"rows": 2}
    second.append(b"three\n", {"rows": 3})
    second.finish()
    assert (tmp_path / "t.txt").read_bytes() == b"one\ntwo\nthree\n" and listed(tmp_path) == ["t.txt"]


def test_a_run_without_a_whole_section_starts_over(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "t.txt.partial").symlink_to("precious")  # what is there is removed, a link not followed
    file = ResumableFile(tmp_path / "t.txt", resume=True)
    assert file.begin({}) is None
    file.close()
    assert listed(tmp_path) == ["precious"] and (tmp_path / "precious").read_text() == "mine"


def test_a_full_disk_keeps_the_whole_sections(small_disk: Path) -> None:
    file = ResumableFile(small_disk / "t.txt", resume=False)
    file.begin({})
    file.append(b"one\n", 1)
    with pytest.raises(InputError, match=r"t\.txt\.partial: cannot write it: No space left on device"):
        file.append(bytes(100_000), 2)
    file.close()
    again = ResumableFile(small_disk / "t.txt", resume=True)
    assert again.begin({}) == 1
    again.append(b"two\n", 2)
    again.finish()
    assert (small_disk / "t.txt").read_bytes() == b"one\ntwo\n"


# --- for people ------------------------------------------------------------------------------------------------------


def test_progress_bars_show_on_request_and_otherwise_on_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (None, False, True):
        with progress_bar(2, desc="reading", unit=" texts", progress=progress) as bar:
            bar.update(2)
        assert ("reading" in capsys.readouterr().err) is (progress is True)
    assert list(progress_bar(desc="x", unit=" y", progress=False, iterable=[1, 2])) == [1, 2]


def test_texts_cannot_control_the_terminal_or_a_spreadsheet() -> None:
    assert printable("a\x1b[31m\u202eb\n\tc") == "a\\u001b[31m\\u202eb\n\tc"
    assert align_table(["a"], [["x\ny|"]], markdown=True)[-1] == "| x\\u000ay\\| |"
    for text in ("=1+1", "+a", "-a", "@a", "\t=1"):
        assert csv_cell(text) == f"'{text}"
    assert [csv_cell(value) for value in ("-0.5", "+3", "a=b", -1, None)] == ["-0.5", "+3", "a=b", -1, None]
    assert csv_row(["=1", "a\rb", 'c"d']) == '\'=1,"a\rb","c""d"\n'

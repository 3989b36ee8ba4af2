"""One reader and one writer for every file: what comes in, what is refused with file and row, what stays on disk."""

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
    Table,
    TextGroups,
    Texts,
    check_output,
    find_column,
    open_output,
    progress_bar,
    read_records,
    read_rows,
    write_file,
)

TEXTS = ["Snow fell.", "", "Zwölf Bäume, 木", 'He said "no",\tthen left.', "one\u2028two\x85three\rfour"]
Write = Callable[[str, str | bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file, gzip'd if its name says so; returns its path."""

    def put(name: str, content: str | bytes) -> str:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return put


def content(kind: str, texts: list[str], column: str = "text") -> bytes:
    """The texts as a file of that kind, written by hand or by another package."""
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.table({"id": list(range(len(texts))), column: texts}), sink)
        return sink.getvalue().to_pybytes()
    records = [{"id": number, column: text} for number, text in enumerate(texts)]
    if kind == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    if kind == "json":
        return json.dumps(records, indent=1).encode()
    mark = "\t" if kind == "tsv" else ","
    cells = (f'{number}{mark}"{text.replace(chr(34), chr(34) * 2)}"\n' for number, text in enumerate(texts))
    return (f"id{mark}{column}\n" + "".join(cells)).encode()


def error(path: str, column: str | None = None, argument: str = "predictions") -> str:
    """What is said of a file that is refused, without its path."""
    with pytest.raises(InputError) as caught:
        list(Texts(path, argument, column))
    assert path in str(caught.value)
    return str(caught.value).replace(path, "FILE")


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", ["jsonl", "ndjson", "json", "csv", "tsv", "parquet"])
def test_a_column_of_each_format_is_read_again_and_again(write: Write, kind: str, suffix: str) -> None:
    texts = [*TEXTS, "two\nlines", "two\r\nlines", "word " * 100_000]
    file = Texts(write(f"t.{kind}{suffix}", content(kind.replace("ndjson", "jsonl"), texts)), "predictions", "text")
    assert list(file) == list(file) == texts
    assert file.count() == len(texts)


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz", "t", "t.de"])
def test_anything_else_holds_one_text_per_line(write: Write, name: str) -> None:
    assert list(Texts(write(name, "\n".join(TEXTS) + "\n"), "predictions")) == TEXTS
    assert list(Texts(write(name, "\n".join(TEXTS)), "predictions")) == TEXTS  # no line break at the end
    assert list(Texts(write(name, "\ufeffone\r\ntwo\r\n"), "predictions")) == ["one", "two"]
    assert list(Texts(write(name, ""), "predictions")) == []


def test_json_may_be_a_list_of_texts(write: Write) -> None:
    assert list(Texts(write("t.json", json.dumps(TEXTS)), "predictions")) == TEXTS
    assert list(Texts(write("t.json", " [ ] "), "predictions")) == []


def test_rows_have_the_numbers_that_an_editor_shows(write: Write) -> None:
    table = Table(write("t.csv", 'a,b\n1,"two\nlines"\n3,x\n\n'))
    assert [(row.number, row.value["b"]) for row in table] == [(2, "two\nlines"), (4, "x")]
    assert table.where(4) == f"{table.path}: line 4"
    assert [row.number for row in read_rows(write("t.jsonl", '{"a": 1}\n{"a": 2}\n\n\n'))] == [1, 2]
    assert list(read_records(write("t.json", '[{"a": 1}, {"a": null}]'))) == [{"a": 1}, {"a": None}]
    with pytest.raises(InputError, match=r"t\.txt: line 1: expected an object, but got a text"):
        list(read_records(write("t.txt", "text\n")))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("t.csv", "text\nalpha\n\nbeta\n", 3),
        ("t.csv", 'text\n"two\nlines"\n\n\nbeta\n', 4),
        ("t.tsv", "a\tb\n1\t2\n\n3\t4\n", 3),
        ("t.jsonl", '{"a": 1}\n \n{"a": 2}\n', 2),
    ],
)
def test_an_empty_line_between_rows_is_told(write: Write, name: str, content: str, line: int) -> None:
    with pytest.raises(InputError, match=rf"{name}: line {line}: expected a row, but got an empty line between rows"):
        list(Table(write(name, content)))
    assert [row.value for row in Table(write("t.txt", "alpha\n\nbeta\n"))] == ["alpha", "", "beta"]
    assert [row.value for row in Table(write("t.csv", 'text\nalpha\n""\n'))] == [{"text": "alpha"}, {"text": ""}]


def test_groups_join_files_and_lists_row_by_row(write: Write) -> None:
    lines = Texts(write("a.txt", "one\ntwo\n"), "references")
    lists = Texts(write("b.jsonl", '{"r": ["x", "y"]}\n{"r": "z"}\n'), "references", "r")
    groups = TextGroups([lines, lists])
    assert list(groups) == list(groups) == [["one", "x", "y"], ["two", "z"]]
    assert groups.counts() == [2, 2]
    nothing = Texts(write("c.jsonl", '{"r": ["x"]}\n{"r": []}\n'), "references", "r")
    with pytest.raises(InputError, match="references: .*line 2: expected at least one text, but got an empty list"):
        TextGroups([nothing]).counts()


@pytest.mark.parametrize(
    ("given", "column", "kind"),
    [
        (b"one\ntwo\n", None, "text"),
        (gzip.compress(b"one\ntwo\n"), None, "text"),
        (b'{"prediction": "one"}\n{"prediction": "two"}\n', None, "jsonl"),
        (b'["one",\n "two"]', "text", "json"),
        (b'"id","t"\n1,one\n2,two\n', "t", "csv"),
        (b"id\tt\n1\tone\n2\ttwo\n", "t", "tsv"),
        ("parquet", "text", "parquet"),
    ],
    ids=["text", "gz", "jsonl", "json", "csv", "tsv", "parquet"],
)
def test_a_pipe_is_read_as_often_as_a_file(tmp_path: Path, given: bytes | str, column: str | None, kind: str) -> None:
    data = content("parquet", ["one", "two"]) if isinstance(given, str) else given
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[data])
    writer.start()
    file = Texts(str(pipe), "predictions", column)
    writer.join()
    assert file.table.kind == kind
    assert file.count() == 2 and list(file) == ["one", "two"]


def test_standard_input_is_read_once_and_serves_two_columns(run_python: Callable[..., str], write: Write) -> None:
    path = write("t.jsonl", '{"prediction": "a", "reference": "b"}\n')
    code = f"""if True:
        import os, sys
        os.dup2(os.open({path!r}, os.O_RDONLY), 0)
        from movers.io import Table, Texts
        table = Table("-")
        texts = [Texts(table, argument) for argument in ("predictions", "references")]
        print(*(list(file) * 2 for file in texts), table.where(1))
    """
    assert run_python(code) == "['a', 'a'] ['b', 'b'] -: line 1"


# --- which column ----------------------------------------------------------------------------------------------------


def test_the_only_column_with_a_usual_name_is_taken(write: Write) -> None:
    path = write("t.csv", "id,candidate,reference,text\n1,a,b,c\n")
    assert [list(Texts(path, argument)) for argument in ("predictions", "references", "sources")] == [
        ["a"],
        ["b"],
        ["c"],
    ]
    assert list(Texts(path, "references", "id")) == ["1"]


def test_a_column_that_cannot_be_chosen_is_an_error_that_lists_the_columns(write: Write) -> None:
    assert error(write("t.csv", "prediction,output\na,b\n")) == (
        "predictions: FILE: line 2: expected --prediction-column to choose one of the columns prediction, output"
    )
    assert error(write("t.jsonl", '{"a": "b", "c": "d"}'), argument="references") == (
        "references: FILE: line 1: expected --reference-column to name a column, but got the columns a, c"
    )
    assert "line 2: expected a column 'text', but got the columns txt" in error(
        write("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n'), "text"
    )
    assert "line 2: expected a column 'text', but got the columns txt" in error(
        write("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n')
    )
    assert "expected no --prediction-column: it holds one text per line" in error(write("t.txt", "a\n"), "text")
    with pytest.raises(InputError, match="t: expected source_column to name a column, but got the columns x"):
        find_column("t", ["x"], None, ["source"], "source_column")


# --- what is refused, with file and row -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["null", "5", "true", "[]", '["a", "b"]', "{}"])
def test_a_bad_value_in_the_last_row_is_found_while_counting(write: Write, value: str) -> None:
    shown = {"5": "the number 5", "[]": "a list", '["a", "b"]': "a list", "{}": "an object"}.get(value, value)
    file = Texts(write("t.jsonl", '{"text": "a"}\n' * 3000 + f'{{"text": {value}}}\n'), "predictions", "text")
    with pytest.raises(InputError, match=f"predictions: .*t.jsonl: line 3001: expected a text, but got {shown}$"):
        file.count()
    rows = ", ".join(['{"text": "a"}'] * 10 + [f'{{"text": {value}}}'])
    assert error(write("t.json", f"[{rows}]")) == f"predictions: FILE: row 11: expected a text, but got {shown}"


DEEP = "[" * 100_000 + "]" * 100_000
LONG = "1" * 10_000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.jsonl", '{"text": "a"}\n{"text"\n', "line 2: expected JSON, but got"),
        ("t.jsonl", '{"text": "a"} {"text": "b"}\n', "line 1: expected JSON, but got"),
        ("t.jsonl", '{"text": "a"}\n["b"]\n', "line 2: expected an object, but got a list"),
        ("t.jsonl", f'{{"text": "a"}}\n{{"text": {DEEP}}}\n', "line 2: expected JSON, but it is nested too deeply"),
        ("t.jsonl", f'{{"text": "a"}}\n{{"n": {LONG}}}\n', "line 2: expected JSON, but got"),
        (
            "t.jsonl",
            '{"text": "a"}\n{"text": "b", "n": 1, "text": "c"}\n',
            "line 2: expected different keys in an obj",
        ),
        ("t.jsonl", '{"text": "a", "more": [{"n": 1, "n": 1}]}\n', "line 1: expected different keys in an object, but"),
        (
            "t.json",
            '[{"text": "a"}, {"text": "b", "text": "b"}]',
            "row 2: expected different keys in an object, but",
        ),
        ("t.jsonl", '{"text": "\\ud800"}\n', "line 1: expected valid Unicode, but got a lone surrogate '\\ud800'"),
        ("t.json", f'[{{"text": "a"}}, {{"text": {DEEP}}}]', "row 2: expected JSON, but it is nested too deeply"),
        ("t.json", f'[{{"text": "a"}}, {{"n": {LONG}}}]', "row 2: expected JSON, but got"),
        ("t.json", '[{"text": "a"}, ["b"]]', "row 2: expected an object, but got a list"),
        ("t.json", '["a", {"text": "b"}]', "row 2: expected a text like row 1, but got an object"),
        ("t.json", '["a" "b"]', "row 1: expected a comma or the end of the list after it"),
        ("t.json", '["a", ]', "row 2: expected JSON"),
        ("t.json", '["a"', "row 1: expected a comma or the end of the list after it"),
        ("t.json", '["a"] ["b"]', "FILE: expected one list, but got more after it: '[\"b\"]'"),
        ("t.json", '{"text": ["a"]}', "FILE: expected a list of objects or of texts, but got '{"),
        ("t.csv", "id,text\n1,a\n2\n", "line 3: expected 2 cells as in the header, but got 1"),
        ("t.csv", "text\na\nb,c\n", "line 3: expected 1 cells as in the header, but got 2"),
        ("t.csv", 'id,text\n1,a\n2,"b\n3,c\n', "line 3: expected CSV (quotes inside quoted cells are doubled)"),
        ("t.csv", "text,text\na,b\n", "FILE: expected different names of columns, but got text, text"),
        ("t.parquet", "no table", "FILE: expected a parquet file, but got: "),
    ],
)
def test_what_is_wrong_is_told_with_file_and_row(write: Write, name: str, text: str, message: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    found = error(write(name, text))
    assert message in found and len(found) < 250


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-16", "looks like UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE"),
        ("utf-16-le", "looks like UTF-16LE; convert it: iconv -f UTF-16LE -t UTF-8 FILE"),
        ("utf-16-be", "looks like UTF-16BE; convert it: iconv -f UTF-16BE -t UTF-8 FILE"),
        ("utf-32", "looks like UTF-32; convert it: iconv -f UTF-32 -t UTF-8 FILE"),
        (
            "latin-1",
            "line 3: expected UTF-8, but got the byte 0xfc; if the file is Latin-1, convert it: iconv -f LATIN1",
        ),
    ],
)
@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.csv.gz"])
def test_another_encoding_is_named_with_what_to_do(write: Write, name: str, encoding: str, message: str) -> None:
    assert message in error(write(name, "text\neins\nfünf\n".encode(encoding)))


def test_a_damaged_archive_is_told(write: Write, tmp_path: Path) -> None:
    whole = Path(write("t.txt.gz", "some text\n" * 1000)).read_bytes()
    middle = whole[:20] + bytes(10) + whole[30:]
    for name, data in (("cut.txt.gz", whole[:-12]), ("plain.txt.gz", b"no archive at all"), ("bits.txt.gz", middle)):
        (tmp_path / name).write_bytes(data)
        assert "FILE: expected a complete gzip file, but got: " in error(str(tmp_path / name))


def test_files_that_are_not_there_or_are_none_are_told(write: Write, tmp_path: Path) -> None:
    assert error(str(tmp_path / "none.txt")) == "FILE: no such file"
    assert error(str(tmp_path)) == "FILE: expected a file, but it is a folder"
    assert error(f"{write('t.txt', 'a')}/t.txt") == "FILE: cannot read it: Not a directory"
    if os.geteuid():  # the superuser may read everything
        path = write("secret.txt", "a")
        os.chmod(path, 0)
        assert error(path) == "FILE: cannot read it: Permission denied"


def test_reading_imports_pyarrow_for_tables_of_it_alone(run_python: Callable[..., str], write: Write) -> None:
    code = (
        "import sys; from movers.io import Texts; "
        f"print(Texts({write('t.csv', 'text' + chr(10) + 'a')!r}, 'predictions').count(), "
        "[name for name in ('numpy', 'pyarrow', 'tqdm') if name in sys.modules])"
    )
    assert run_python(code) == "1 []"


# --- what is written -------------------------------------------------------------------------------------------------


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_as_text_bytes_or_compressed(tmp_path: Path) -> None:
    write_file(tmp_path / "t.txt", "Bäume\r\n木\n")
    assert (tmp_path / "t.txt").read_bytes() == "Bäume\r\n木\n".encode()
    write_file(str(tmp_path / "t.bin"), b"\0\1")
    assert (tmp_path / "t.bin").read_bytes() == b"\0\1"
    write_file(tmp_path / "one.gz", "text")
    write_file(tmp_path / "two.gz", "text")
    assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == b"text"
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    assert (tmp_path / "one.gz").read_bytes()[4:8] == bytes(4)  # no time of writing
    assert listed(tmp_path) == ["one.gz", "t.bin", "t.txt", "two.gz"]


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, stop: type[BaseException]) -> None:
    write_file(tmp_path / "t.txt.gz", "old")
    before = (tmp_path / "t.txt.gz").read_bytes()
    with pytest.raises(stop), open_output(tmp_path / "t.txt.gz") as file:
        file.write("new" * 100_000)
        raise stop
    assert (tmp_path / "t.txt.gz").read_bytes() == before
    assert listed(tmp_path) == ["t.txt.gz"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without a name")
def test_a_process_that_is_killed_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_file(tmp_path / "t.txt", "old")
    code = """if True:
        import os, sys
        from movers.io import open_output
        with open_output(sys.argv[1]) as file:
            file.write("new" * 100_000)
            file.flush()
            os.kill(os.getpid(), 9)
    """
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.txt")]).returncode == -9
    assert (tmp_path / "t.txt").read_text() == "old" and listed(tmp_path) == ["t.txt"]


def test_without_nameless_files_a_file_is_written_whole_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    for text in ("first", "second"):
        write_file(tmp_path / "t.txt", text)
        assert (tmp_path / "t.txt").read_text() == text
    with pytest.raises(RuntimeError), open_output(tmp_path / "t.txt") as file:
        file.write("third")
        raise RuntimeError
    assert (tmp_path / "t.txt").read_text() == "second" and listed(tmp_path) == ["t.txt"]


def test_two_writers_of_one_file_never_mix(tmp_path: Path) -> None:
    target = tmp_path / "t.txt"
    start = threading.Barrier(4)

    def run(mark: str) -> None:
        with open_output(target) as file:
            start.wait()
            for _ in range(20_000):
                file.write(f"{mark}\n")

    runs = [threading.Thread(target=run, args=[mark]) for mark in "abcd"]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    lines = target.read_text().splitlines()
    assert len(lines) == 20_000 and len(set(lines)) == 1
    assert listed(tmp_path) == ["t.txt"]


def test_the_target_of_a_link_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to("real/t.txt")
    for text in ("new", "newer"):  # the first goes to a target that does not exist yet
        write_file(tmp_path / "link.txt", text)
        assert (tmp_path / "link.txt").is_symlink()
        assert (tmp_path / "real" / "t.txt").read_text() == text
    assert listed(tmp_path / "real") == ["t.txt"]


def test_permissions_of_an_existing_file_stay_and_new_ones_are_the_usual(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("as the process makes files")
    for mode in (0o600, 0o640, 0o755):
        write_file(tmp_path / "t.txt", "one")
        if mode == 0o600:
            assert (tmp_path / "t.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode
        (tmp_path / "t.txt").chmod(mode)
        write_file(tmp_path / "t.txt", "two")
        assert stat.S_IMODE((tmp_path / "t.txt").stat().st_mode) == mode


def test_pipes_and_devices_are_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "text")
    reader.join()
    assert found == ["text"] and stat.S_ISFIFO(pipe.stat().st_mode)
    write_file("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(InputError, match="/dev/full: cannot write it: No space left on device"):
        write_file("/dev/full", "text")


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_in_order_even_if_it_is_a_file(tmp_path: Path, name: str) -> None:
    code = f"from movers.io import write_file; print('a'); write_file({name!r}, 'b\\n'); print('c')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "a\nb\nc\n"
    assert listed(tmp_path) == ["out"]


def test_a_target_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
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
    assert listed(tmp_path) == ["loop"]


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_a_full_disk_leaves_the_old_file_and_names_the_file(small_disk: Path, name: str) -> None:
    (small_disk / name).write_text("old")
    with pytest.raises(InputError, match=rf"{name}: cannot write it: No space left on device"):
        write_file(small_disk / name, os.urandom(100_000).hex())
    assert (small_disk / name).read_text() == "old"
    assert listed(small_disk) == [name]


# --- progress bars ---------------------------------------------------------------------------------------------------


def test_bars_show_on_request_and_otherwise_on_terminals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (None, False, True):
        with progress_bar(2, desc="reading", unit=" texts", progress=progress) as bar:
            bar.update(2)
        assert ("reading" in capsys.readouterr().err) is (progress is True)
    assert list(progress_bar(desc="x", unit=" y", progress=False, iterable=[1, 2])) == [1, 2]

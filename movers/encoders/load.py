"""Load an encoder by name, path or objects, once per process."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, TypeVar, Union

from movers.encoders.cache import file_state, folder_digest, folder_state
from movers.encoders.embedded import MINILM, MPNET, SETTINGS, MissingWeights, minilm_folder, mpnet_folder
from movers.encoders.static import SpacyVectors, StaticEncoder, VectorFile, WordLlama
from movers.errors import InputError
from movers.threads import SafeLock

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from movers.encoders.contextual import ContextualEncoder

__all__ = ["MODEL_FILES", "Encoder", "find_device", "hub_answers", "load_encoder", "load_static", "object_digest",
           "quiet", "remote_code_allowed"]  # fmt: skip

Encoder: TypeAlias = Union[StaticEncoder, "ContextualEncoder"]
_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")

_HUB_NAMES = {
    "all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "all-mpnet-base-v2": "sentence-transformers/all-mpnet-base-v2",
}
_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".w2v", ".gz", ".model")
MODEL_FILES = ("*.safetensors", "*.bin", *SETTINGS)  # what determines the vectors

# What metrics need of a contextual encoder.
_CONTEXTUAL = ("identity", "dtype", "states", "tokenizer_digest", "window_for", "tokenize", "encode")
# Encoders cached for later calls.
_STATIC_KEPT = 8
_CONTEXTUAL_KEPT = 4
_PAIRS_KEPT = 2  # (model, tokenizer) objects are the caller's

_static: dict[tuple[object, ...], StaticEncoder] = {}
_contextual: dict[tuple[object, ...], ContextualEncoder] = {}
_pairs: dict[tuple[int, int], ContextualEncoder] = {}
_loading = SafeLock()


def load_encoder(
    model: object,
    *,
    device: str | None = "auto",
    dtype: str = "float32",
    progress: bool | None = None,
    trust_remote_code: bool | None = None,
) -> Encoder:
    """Load an encoder; it is loaded once per process and shared by all metrics.

    Parameters
    ----------
    model
        `"wordllama"`, `"all-MiniLM-L6-v2"`, `"all-mpnet-base-v2"`; a word-vector file; the name or folder of a spaCy
        pipeline with vectors; a folder or Hub id for `transformers.AutoModel`; a `(model, tokenizer)` pair; or an
        encoder.
    device : {"auto", "cpu", "cuda", "mps"} or a torch device name
    dtype : {"float32", "float16", "bfloat16"}
    trust_remote_code : bool, optional
        Run the Python code that comes with a transformers model. The default is False, unless the environment variable
        `MOVERS_TRUST_REMOTE_CODE` is 1; no option of a metric can allow it.

    Returns
    -------
    StaticEncoder or ContextualEncoder
    """
    if isinstance(model, tuple | list):
        return _from_objects(model)
    if not isinstance(model, str | os.PathLike):
        if isinstance(model, StaticEncoder) or _is_contextual(model):
            return model
        raise InputError(
            "model: expected a name, a path, a (model, tokenizer) pair or an encoder (static: identity, dimension, "
            f"vectors; contextual: {', '.join(_CONTEXTUAL)}), but got {type(model).__name__}"
        )
    name = _short_name(os.fspath(model))
    with _loading:
        static = _find_static(name, progress)
        if static is not None:
            return static
        return _find_contextual(name, device, dtype, progress, remote_code_allowed(trust_remote_code))


def remote_code_allowed(given: bool | None = None) -> bool:
    """Whether Python code of a transformers model may run: as given, otherwise by the environment variable."""
    return os.environ.get("MOVERS_TRUST_REMOTE_CODE") == "1" if given is None else given


def _is_contextual(model: object) -> TypeGuard[ContextualEncoder]:
    return all(hasattr(model, name) for name in _CONTEXTUAL)


def _short_name(name: str) -> str:
    """Short name of a known encoder, also for its Hub id."""
    return next((short for short, long in _HUB_NAMES.items() if name == long), name)


def load_static(model: str) -> StaticEncoder | None:
    """The static encoder of that name, or None if it is not static (without heavy imports)."""
    with _loading:
        return _find_static(model, None)


def _find_static(name: str, progress: bool | None) -> StaticEncoder | None:
    if not name:
        raise InputError("model: expected a name or a path, but got an empty string")
    key: tuple[object, ...] = ("wordllama",)
    if name == "wordllama":
        return _keep(_static, key, _static.get(key) or WordLlama(), _STATIC_KEPT)
    path = Path(name)
    if os.path.isfile(path):  # pathlib would raise for impossible file names
        key = ("file", str(path.resolve()), file_state(path))
        return _keep(_static, key, _static.get(key) or VectorFile(path, progress), _STATIC_KEPT)
    if os.path.isdir(path):
        if not (path / "meta.json").is_file() or (path / "config.json").is_file():
            return None
    elif name.endswith(_VECTOR_SUFFIXES) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise InputError(f"model: {name!r} looks like a path, but there is no such file or folder")
    elif not _is_spacy_package(name):
        return None
    key = ("spacy", name, folder_state(path, ("meta.json", "vocab/*")))
    return _keep(_static, key, _static.get(key) or SpacyVectors(name), _STATIC_KEPT)


def _keep(kept: dict[_Key, _Kept], key: _Key, encoder: _Kept, most: int) -> _Kept:
    """Mark an encoder as most recently used and drop the least recently used ones."""
    kept.pop(key, None)
    kept[key] = encoder
    while len(kept) > most:
        del kept[next(iter(kept))]
    return encoder


def _is_spacy_package(name: str) -> bool:
    if not re.fullmatch(r"[a-z]{2,3}_\w+", name):
        return False
    spec = importlib.util.find_spec(name)
    return spec is not None and bool(spec.submodule_search_locations)


# ---------------------------------------------------------------------------------------------------------------------


def _find_contextual(
    name: str, device: str | None, dtype: str, progress: bool | None, trusted: bool
) -> ContextualEncoder:
    place = find_device(device)
    key = (name, place, dtype, trusted, folder_state(Path(name), MODEL_FILES))
    found = _contextual.get(key)
    if found is None:
        for stale in [other for other in _contextual if other[:4] == key[:4]]:
            del _contextual[stale]  # the previous weights of the folder
        source, short, digest = _find_weights(name, progress)
        model, tokenizer = _load_objects(source, dtype, trusted)
        model.to(place)
        if digest is None:
            digest = getattr(model.config, "_commit_hash", None) or object_digest(model, tokenizer)
        if type(model).__module__.startswith("transformers_modules."):  # the code determines the vectors too
            code = folder_digest(Path(inspect.getfile(type(model))).parent, ("*.py",))
            digest = hashlib.sha256(f"{digest}+{code}".encode()).hexdigest()
        from movers.encoders.contextual import ContextualEncoder

        found = ContextualEncoder(model, tokenizer, short, digest)
    return _keep(_contextual, key, found, _CONTEXTUAL_KEPT)


def find_device(device: str | None) -> str:
    """The torch device for the option `device`; an error if it is not available."""
    import torch

    if device in (None, "auto"):  # None in evaluate's bertscore
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise InputError(
            f"device: expected 'auto', 'cpu', 'cuda', 'mps' or a torch device, but got {device!r}"
        ) from None
    missing = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if missing.get(kind, False):
        raise InputError(f"device: {device!r} is not available here (torch {torch.__version__}); use 'cpu' or 'auto'")
    return device


def _find_weights(name: str, progress: bool | None) -> tuple[str, str, str | None]:
    """Folder or Hub id to load from, short name, digest (None: from the loaded model)."""
    short = name.removeprefix("sentence-transformers/")
    for known in (MINILM, MPNET):
        if short == known.name:
            try:
                folder = minilm_folder() if known is MINILM else mpnet_folder(progress=progress)
            except MissingWeights:
                return _HUB_NAMES[short], short, None
            return str(folder), short, known.identify(folder)
    path = Path(name)
    if os.path.isdir(path):
        return str(path), path.resolve().name, folder_digest(path, MODEL_FILES)
    return name, name.rsplit("/", 1)[-1], None


def _load_objects(source: str, dtype: str, trusted: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import torch
    import transformers

    if dtype not in ("float32", "float16", "bfloat16"):
        raise InputError(f"dtype: expected one of 'float32', 'float16', 'bfloat16', but got {dtype!r}")
    reached = os.path.isdir(source) or hub_answers()
    try:
        # Weights missing from a checkpoint (such as an unused pooler) are initialised with a fixed seed, without
        # changing the random state of a surrounding training loop.
        with quiet(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            # If the Hub is unreachable, use only downloaded files; requests would be retried for minutes.
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                source, local_files_only=not reached, trust_remote_code=trusted
            )
            model = transformers.AutoModel.from_pretrained(
                source,
                dtype=getattr(torch, dtype),
                local_files_only=not reached,
                trust_remote_code=trusted,
                weights_only=True,
            )
    except UnpicklingError:
        raise InputError(f"model: {source!r}: expected weights, but got code, which is not run") from None
    except (OSError, ValueError) as error:  # a folder without a tokenizer is a ValueError
        if "trust_remote_code" in str(error):
            raise InputError(
                f"model: {source!r} brings code of its own, which movers does not run; if you trust it, use "
                "movers.load_encoder(…, trust_remote_code=True) as model, or set MOVERS_TRUST_REMOTE_CODE=1"
            ) from None
        if os.path.isdir(source):  # Path would raise if the name is too long
            raise InputError(
                f"model: {source!r}: expected the folder of a transformers model (config.json, weights, tokenizer), "
                f"but it cannot be loaded: {' '.join(str(error).split())[:200]}"
            ) from error
        why = "the Hub cannot be reached; connect, or give the folder of a downloaded model"
        why = str(error).splitlines()[0] if reached else why
        raise InputError(
            f"model: {source!r} is neither an encoder that movers knows, nor a file of word vectors, an installed "
            f"spaCy pipeline or a local folder, and the Hugging Face Hub did not give it: {why}"
        ) from error
    return model, tokenizer


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

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
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
    model: PreTrainedModel = pair[0]
    tokenizer: PreTrainedTokenizerBase = pair[1]
    # Digested at every call, because the model may be in training.
    digest = object_digest(model, tokenizer)
    place = (id(model), id(tokenizer))  # the cached encoder keeps both alive, so the ids are not reused
    with _loading:
        found = _pairs.pop(place, None)
        if found is None or found.digest != digest:
            from movers.encoders.contextual import ContextualEncoder

            name = str(getattr(model.config, "_name_or_path", "") or type(model).__name__).rstrip("/")
            found = ContextualEncoder(model, tokenizer, name.rsplit("/", 1)[-1], digest)
        return _keep(_pairs, place, found, _PAIRS_KEPT)


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
        total.update(
            value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
            if value.ndim
            else repr(value.item()).encode()
        )
    return total.hexdigest()

"""Words or sentences → vectors. One string names an encoder everywhere."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.encoders.cache import folder_digest
from movers.encoders.embedded import MINILM, MissingWeights, mpnet_folder
from movers.encoders.layers import Aggregation
from movers.encoders.static import SpacyVectors, StaticEncoder, VectorFile, WordLlama

if TYPE_CHECKING:
    from movers.encoders.contextual import ContextualEncoder

__all__ = ["Encoder", "announce", "load_encoder", "load_static"]

Encoder = Any  # StaticEncoder | ContextualEncoder; spelled out it would import torch's types everywhere

_HUB_NAMES = {
    "all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "all-mpnet-base-v2": "sentence-transformers/all-mpnet-base-v2",
}
_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".w2v", ".gz", ".model")
_WEIGHT_FILES = ("*.safetensors", "*.bin", "config.json", "tokenizer.json")

_loaded: dict[tuple[Any, ...], Encoder] = {}
_loading = threading.Lock()
_announced: dict[str, dict[tuple[Aggregation, ...], None]] = {}


def load_encoder(model: Any, *, device: str = "auto", dtype: str = "float32", progress: bool | None = None) -> Encoder:
    """The encoder that `model` names; loaded once a process, shared by all metrics.

    Parameters
    ----------
    model
        `"wordllama"`, `"all-MiniLM-L6-v2"`, `"all-mpnet-base-v2"`; a file of word vectors; the name or folder of a
        spaCy pipeline with vectors; a folder or Hub id that `transformers.AutoModel` loads; a `(model, tokenizer)`
        pair; or an encoder itself.
    device : {"auto", "cpu", "cuda", "mps"} or a torch device name
    dtype : {"float32", "float16", "bfloat16"}

    Returns
    -------
    StaticEncoder or ContextualEncoder
    """
    if not isinstance(model, str | os.PathLike | tuple | list):
        if isinstance(model, StaticEncoder) or hasattr(model, "tokenize"):
            return model
        raise TypeError(
            f"model: expected a name, a path, a (model, tokenizer) pair or an encoder, but got {type(model).__name__}"
        )
    if isinstance(model, tuple | list):
        return _from_objects(model)
    name = _short_name(os.fspath(model))
    with _loading:
        static = _static(name, progress)
        if static is not None:
            return static
        return _contextual(name, device, dtype, progress)


def _short_name(name: str) -> str:
    """Encoders that movers knows by a short name answer to their Hub id too."""
    return next((short for short, long in _HUB_NAMES.items() if name == long), name)


def load_static(model: str) -> StaticEncoder | None:
    """The static encoder of that name, or None if it is not one (nothing heavy is imported to find out)."""
    with _loading:
        return _static(model, None)


def _static(name: str, progress: bool | None) -> StaticEncoder | None:
    if not name:
        raise ValueError("model: expected a name or a path, but got an empty string")
    key: tuple[Any, ...]
    if name == "wordllama":
        key = ("wordllama",)
        if key not in _loaded:
            _loaded[key] = WordLlama()
        return _loaded[key]
    path = Path(name)
    if path.is_file():
        status = path.stat()
        key = ("file", str(path.resolve()), status.st_size, status.st_mtime_ns)
        if key not in _loaded:
            _loaded[key] = VectorFile(path, progress)
        return _loaded[key]
    if path.is_dir():
        if not (path / "meta.json").is_file() or (path / "config.json").is_file():
            return None
    elif name.endswith(_VECTOR_SUFFIXES) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise FileNotFoundError(f"model: {name!r} looks like a path, but there is no such file or folder")
    elif not _is_spacy_package(name):
        return None
    key = ("spacy", name)
    if key not in _loaded:
        _loaded[key] = SpacyVectors(name)
    return _loaded[key]


def _is_spacy_package(name: str) -> bool:
    if not re.fullmatch(r"[a-z]{2,3}_\w+", name):
        return False
    spec = importlib.util.find_spec(name)
    return spec is not None and bool(spec.submodule_search_locations)


# ---------------------------------------------------------------------------------------------------------------------


def _contextual(name: str, device: str, dtype: str, progress: bool | None) -> ContextualEncoder:
    key = ("contextual", name, _folder_state(Path(name)), _device(device), dtype)
    if key not in _loaded:
        for stale in [other for other in _loaded if other[:2] == key[:2] and other[3:] == key[3:]]:
            del _loaded[stale]  # the weights the folder held before
        source, short, digest = _find_weights(name, progress)
        model, tokenizer = _load_objects(source, dtype)
        model.to(_device(device))
        if digest is None:
            digest = getattr(model.config, "_commit_hash", None) or _parameter_digest(model)
        from movers.encoders.contextual import ContextualEncoder

        _loaded[key] = ContextualEncoder(model, tokenizer, short, digest)
        for aggregations in _announced.get(name, []):
            _loaded[key].want(*aggregations)
    return _loaded[key]


def announce(model: Any, *aggregations: Aggregation) -> None:
    """Tell that metrics of this process will ask `model` for these aggregations, before any of them is computed.

    Changes no score: metrics that share an encoder then share its passes over the texts.
    """
    if not isinstance(model, str):
        return
    with _loading:
        model = _short_name(model)
        _announced.setdefault(model, {})[aggregations] = None
        for key, encoder in _loaded.items():
            if key[:2] == ("contextual", model):
                encoder.want(*aggregations)


def _folder_state(folder: Path) -> tuple[Any, ...]:
    """What changes when a model is saved again under the same name; nothing for names that are no folder."""
    if not folder.is_dir():
        return ()
    files = sorted({path for pattern in _WEIGHT_FILES for path in folder.glob(pattern)})
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)


def _device(device: str) -> str:
    if device != "auto":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _find_weights(name: str, progress: bool | None) -> tuple[str, str, str | None]:
    """Folder or Hub id to load from, short name, digest (None: ask the loaded model)."""
    short = name.removeprefix("sentence-transformers/")
    if short == "all-MiniLM-L6-v2":
        try:
            return str(MINILM.locate().parent), short, MINILM.sha256
        except MissingWeights:
            return _HUB_NAMES[short], short, None
    if short == "all-mpnet-base-v2":
        try:
            return str(mpnet_folder(progress=progress)), short, folder_digest(mpnet_folder(), ("model.safetensors",))
        except MissingWeights:
            return _HUB_NAMES[short], short, None
    path = Path(name)
    if path.is_dir():
        return str(path), path.resolve().name, folder_digest(path, _WEIGHT_FILES)
    return name, name.rsplit("/", 1)[-1], None


def _load_objects(source: str, dtype: str) -> tuple[Any, Any]:
    import torch
    import transformers

    if not hasattr(torch, dtype) or dtype not in ("float32", "float16", "bfloat16"):
        raise ValueError(f"dtype: expected one of 'float32', 'float16', 'bfloat16', but got {dtype!r}")
    try:
        with _quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(source)
            model = transformers.AutoModel.from_pretrained(source, dtype=getattr(torch, dtype))
    except OSError as error:
        raise OSError(
            f"model: {source!r} is neither an encoder that movers knows, nor a file of word vectors, an installed "
            f"spaCy pipeline or a local folder, and the Hugging Face Hub did not give it: {str(error).splitlines()[0]}"
        ) from error
    return model, tokenizer


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No loading bars or reports of unused heads: they would tear a progress bar or a piped output."""
    logging = transformers.utils.logging
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


def _from_objects(pair: Any) -> ContextualEncoder:
    if len(pair) != 2 or not hasattr(pair[0], "config"):
        raise TypeError("model: expected a (model, tokenizer) pair of transformers objects")
    model, tokenizer = pair
    # The digest is taken at every call: a model that is being trained is another encoder after each step.
    digest = _parameter_digest(model)
    place = ("objects", id(model), id(tokenizer))
    with _loading:
        found = _loaded.get(place)
        if found is None or found.digest != digest:
            from movers.encoders.contextual import ContextualEncoder

            name = (
                str(getattr(model.config, "_name_or_path", "") or type(model).__name__).rstrip("/").rsplit("/", 1)[-1]
            )
            found = ContextualEncoder(model, tokenizer, name, digest)
            found.objects = pair  # keeps the ids from being given to other objects
            _loaded[place] = found
    return found


def _parameter_digest(model: Any) -> str:
    import hashlib

    import torch

    total = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        total.update(name.encode())
        total.update(
            value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
            if value.ndim
            else repr(value.item()).encode()
        )
    return total.hexdigest()

"""A trained model as a folder: safetensors, config.json, record.json, README.md. Nothing in it is pickled.

Weights are stored in float16, and only those that were trained: a cross-encoder is stored as the difference to the
encoder that it starts from, which `encoder_identity` names.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from movers import io
from movers.encoders.cache import folder_digest
from movers.errors import InputError
from movers.version import VERSION

if TYPE_CHECKING:
    from movers.quality.heads import Network

#: The model that comes with the package: the cross-encoder of Bao et al.
PAPER = "paper"
HeadName = Literal["fc", "cnn", "lstm"]
ModelConfig = dict[str, Any]  # what a model is built from
_FORMAT = 4  # 3 stored whole transformers and other networks
_SCORING_FILES = ("model.safetensors", "config.json")
_METRIC = "reference_free_summary_quality"


@dataclass(frozen=True, eq=False)
class QualityModel:
    """A network in evaluation mode; `digest` covers all that determines its scores."""

    module: Network
    config: ModelConfig
    digest: str
    name: str
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        return f"{self.name}@{self.digest[:16]}"


def save_model(folder: Path, module: Network, config: ModelConfig, record: dict[str, Any]) -> QualityModel:
    """Write the folder of a trained network and return the model as it is loaded from there."""
    from safetensors.torch import save

    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    weights = {name: value.cpu().half().contiguous() for name, value in module.state_dict().items() if name in trained}
    config = {**config, "metric": _METRIC, "format": _FORMAT, "movers": VERSION}
    folder.mkdir(parents=True, exist_ok=True)
    io.write_file(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))
    io.write_file(folder / "record.json", json.dumps(record, indent=1))
    io.write_file(folder / "README.md", _card(config, record))
    io.write_file(folder / "config.json", json.dumps(config, indent=1))  # last: without it the folder is no model
    return load_model(folder)


def find_model(model: object) -> QualityModel | Path:
    """The folder that `model` names, or a model itself; loads nothing. An error if it names none."""
    if isinstance(model, QualityModel):
        return model
    folder = Path(str(resources.files("movers.quality"))) / PAPER if model == PAPER else Path(str(model))
    if not isinstance(model, str | Path) or not all(os.path.isfile(folder / name) for name in _SCORING_FILES):
        expected = "'aspects', 'paper', a QualityModel or a folder that `movers train quality` wrote"
        raise InputError(f"{_METRIC}: model: expected {expected}, but got {str(model)!r}")
    return folder.resolve()


def load_model(model: object) -> QualityModel:
    """The paper's model by its name, a saved one by its folder, or a model itself."""
    folder = find_model(model)
    if isinstance(folder, QualityModel):
        return folder
    return _load(str(folder), folder.name, folder_digest(folder, _SCORING_FILES))


@lru_cache(maxsize=4)
def _load(folder: str, name: str, digest: str) -> QualityModel:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from movers.encoders import load_encoder

    path = Path(folder)
    try:
        config: ModelConfig = json.loads((path / "config.json").read_text(encoding="utf-8"))
        if config.get("metric") != _METRIC or config.get("format") != _FORMAT:
            got = f"{folder!r} has metric {config.get('metric')!r} and format {config.get('format')!r}"
            raise InputError(f"{_METRIC}: model: expected a model of this metric in format {_FORMAT}, but {got}")
        identity = load_encoder(config["encoder"]).identity
        if identity != config["encoder_identity"]:
            origin = config["encoder_identity"]
            raise InputError(f"{_METRIC}: model: was trained on {origin}, but the encoder here is {identity}")
        module = build_network(config).float()  # whatever the default dtype of torch is
        weights = {name: value.float() for name, value in load_file(path / "model.safetensors").items()}
        expected = {name for name, value in module.named_parameters() if value.requires_grad}
        if set(weights) != expected:
            raise KeyError(f"weights {', '.join(sorted(set(weights) ^ expected)[:3])} …")
        module.load_state_dict(weights, strict=False)
        record = json.loads((path / "record.json").read_text(encoding="utf-8"))
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RuntimeError, SafetensorError, OSError) as error:
        raise InputError(f"{_METRIC}: model: {folder!r} is incomplete or damaged: {error}") from error
    return QualityModel(module.eval(), config, digest, name, record)


def build_network(config: ModelConfig) -> Network:
    """The network of a configuration, with fresh weights on top of its encoder."""
    if config["unit"] == "cross":
        from movers.quality.cross import load_cross_encoder

        return load_cross_encoder(config["encoder"], config["window"])
    from movers.quality.heads import Head

    return Head(config)


def _card(config: ModelConfig, record: dict[str, Any]) -> str:
    options, data = record["options"], record["data"]
    sides = ", ".join(f"{count:,} {name}" for name, count in record["sides"].items())
    test = ", ".join(f"{name} {value:.3f}" for name, value in record["test"].items())
    return f"""# A model of {_METRIC}

Scores a summary against its document in [0, 1]; `model="FOLDER"` uses it. Text to vector: {config["unit"]} of \
`{config["encoder"]}`; head: {config["head"]}; negative samples: {options["negatives"]}, \
{options["fakes"]} per document.

Trained on {"; ".join(data["sources"]) or "not stated"}: {data["documents"]:,} documents, split by document: {sides}.

On the test side: {test}. Hyperparameters, curve, versions and the digest of the data are in `record.json`.
"""

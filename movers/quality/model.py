"""A trained model as a folder: safetensors, config.json, record.json, README.md. Nothing in it is pickled."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from movers import io
from movers.encoders.cache import folder_digest
from movers.errors import InputError
from movers.quality.loop import Curve, best_entry, written_folder
from movers.quality.units import Unit
from movers.version import VERSION

if TYPE_CHECKING:
    from movers.quality.cross import CrossEncoder
    from movers.quality.heads import Head
    from movers.quality.joins import JoinNetwork

    Module: TypeAlias = Head | CrossEncoder | JoinNetwork

__all__ = ["PAPER", "SHIPPED", "HeadName", "ModelConfig", "QualityModel", "TrainingRecord", "find_model", "load_model",
           "save_model"]  # fmt: skip

#: The names of the models that come with the package: the default, and Bao et al.'s network.
SHIPPED, PAPER = "shipped", "paper"
HeadName = Literal["fc", "cnn", "lstm", "aspects"]
_FORMAT = 3  # 2 had one network over all features, without aspects
# What determines scores: weights, what they mean and, of a cross-encoder, how it reads.
_SCORING_FILES = ("model.safetensors", "config.json", "transformer.json", "tokenizer/*")
_METRIC = "reference_free_summary_quality"


class ModelConfig(TypedDict, total=False):
    """What a model is built from."""

    unit: Unit
    encoder: str
    encoder_identity: str
    head: HeadName
    dimension: int
    lang: str
    document_length: int
    summary_length: int
    window: int
    metric: str
    format: int
    movers: str


class DataRecord(TypedDict):
    digest: str
    documents: int
    sources: list[dict[str, object]]


class TrainingRecord(TypedDict, total=False):
    """How a model was trained."""

    data: DataRecord
    sides: dict[str, int]
    samples: dict[str, int]
    options: dict[str, object]
    parameters: int
    curve: Curve
    test: dict[str, float]
    environment: dict[str, str]


@dataclass(frozen=True, eq=False)
class QualityModel:
    """A head or cross-encoder in evaluation mode; `digest` covers all that determines its scores."""

    module: Module
    config: ModelConfig
    digest: str
    name: str = SHIPPED
    record: TrainingRecord = field(default_factory=TrainingRecord)

    @property
    def identity(self) -> str:
        return f"{self.name}@{self.digest[:16]}"


def save_model(folder: Path, module: Module, config: ModelConfig, record: TrainingRecord) -> QualityModel:
    """Write the folder of a trained module and return the model as it is loaded from there."""
    from safetensors.torch import save

    from movers.quality.cross import CrossEncoder

    weights = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    config = {**config, "metric": _METRIC, "format": _FORMAT, "movers": VERSION}
    with written_folder("train quality", folder, last="config.json") as written:
        io.write_file(written / "model.safetensors", save(weights, metadata={"format": "pt"}))
        if isinstance(module, CrossEncoder):
            module.save_parts(written)
        io.write_file(written / "record.json", json.dumps(record, indent=1))
        io.write_file(written / "README.md", _card(config, record))
        io.write_file(written / "config.json", json.dumps(config, indent=1))
    return load_model(folder)


def find_model(model: object) -> QualityModel | Path:
    """The folder that `model` names, or a model itself; loads nothing. An error if it names none."""
    if isinstance(model, QualityModel):
        return model
    if not isinstance(model, str | Path):
        raise InputError(
            f"{_METRIC}: model: expected 'shipped', 'paper', a folder or a QualityModel, but got {type(model).__name__}"
        )
    named = str(model) in (SHIPPED, PAPER)
    folder = Path(str(resources.files("movers.quality"))) / model if named else Path(model)
    if not all(os.path.isfile(folder / name) for name in ("config.json", "model.safetensors")):
        raise InputError(
            f"{_METRIC}: model: expected 'shipped', 'paper' or a folder with config.json and model.safetensors, "
            f"as `movers train quality` writes it, but got {str(model)!r}"
        )
    return folder.resolve()


def load_model(model: object = SHIPPED) -> QualityModel:
    """The shipped model by its name, a saved one by its folder, or a model itself."""
    folder = find_model(model)
    if isinstance(folder, QualityModel):
        return folder
    name = str(model) if str(model) in (SHIPPED, PAPER) else folder.name
    return _load(str(folder), name, folder_digest(folder, _SCORING_FILES))


@lru_cache(maxsize=4)
def _load(folder: str, name: str, digest: str) -> QualityModel:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(folder)
    try:
        config: ModelConfig = json.loads((path / "config.json").read_text(encoding="utf-8"))
        if config.get("metric") != _METRIC or config.get("format") != _FORMAT:
            raise InputError(
                f"{_METRIC}: model: expected a model of this metric in format {_FORMAT}, which movers {VERSION} reads, "
                f"but {folder!r} has metric {config.get('metric')!r} and format {config.get('format')!r}"
            )
        module: Module
        if config["unit"] == "cross":
            from movers.quality.cross import load_cross_encoder

            module = load_cross_encoder(folder, config["window"])
        elif config["head"] == "aspects":
            from movers.quality.joins import JoinNetwork

            module = JoinNetwork(config["dimension"])
        else:
            from movers.quality.heads import build_head

            module = build_head(config)
        module.float().load_state_dict(load_file(path / "model.safetensors"))
        record = json.loads((path / "record.json").read_text(encoding="utf-8"))
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RuntimeError, SafetensorError, OSError) as error:
        raise InputError(f"{_METRIC}: model: {folder!r} is incomplete or damaged: {error}") from error
    return QualityModel(module.eval(), config, digest, name, record)


def _card(config: ModelConfig, record: TrainingRecord) -> str:
    """The README of the folder."""
    options, data = record["options"], record["data"]
    sources = [", ".join(text for text in one.values() if isinstance(text, str)) for one in data["sources"]]
    sides = ", ".join(f"{count:,} {name}" for name, count in record["sides"].items())
    test = ", ".join(f"{name} {value:.3f}" for name, value in record["test"].items())
    faults = f"negative samples: {options['negatives']}, {options['fakes']} per document"
    if config["head"] == "aspects":
        faults = "learned from sound and spoiled sentences"
    return f"""# A model of {_METRIC}

Scores a summary against its document in [0, 1]. Text to vector: {config["unit"]} of `{config["encoder"]}`; head: \
{config["head"]}; {faults}; {record["parameters"]:,} trained parameters.

Trained on {"; ".join(sources) or "not stated"}: {data["documents"]:,} documents (digest `{data["digest"][:16]}`), \
split by document: {sides}.

On the test side: {test}.

Best epoch {best_entry(record["curve"])["epoch"]} of {len(record["curve"])}; the whole curve, all hyperparameters and \
the versions used are in `record.json`.

```python
import movers

movers.{_METRIC}(["summary"], ["document"], model="path/of/this/folder")
```
"""

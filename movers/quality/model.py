"""A trained model as a folder: safetensors, config.json, record.json, README.md. Nothing in it is pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.encoders.cache import replace_file, sha256_of
from movers.version import VERSION

if TYPE_CHECKING:
    from movers.quality.training import TrainingOptions

__all__ = ["SHIPPED", "QualityModel", "check_model", "load_model", "save_model"]

#: The name of the model that comes with the package.
SHIPPED = "shipped"
_FORMAT = 2  # 1 had the weights of the features on another scale
_METRIC = "reference_free_summary_quality"


@dataclass(frozen=True)
class QualityModel:
    """A head (or cross-encoder) with its configuration, ready to score.

    Attributes
    ----------
    module : torch module in evaluation mode
    config : what it was built from: unit, encoder, head, sizes
    record : how it was trained
    digest : SHA-256 of the weights
    """

    module: Any
    config: dict[str, Any]
    digest: str
    name: str = SHIPPED
    record: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def identity(self) -> str:
        return f"{self.name}@{self.digest[:8]}"


def save_model(folder: Path, learner: Any, options: TrainingOptions, record: dict[str, Any]) -> QualityModel:
    """Write the folder of a trained learner and return the model as it would be loaded."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().cpu().contiguous() for name, value in learner.module.state_dict().items()}
    unfinished = folder / "model.tmp"
    save_file(weights, unfinished, metadata={"format": "pt"})
    unfinished.replace(folder / "model.safetensors")
    if learner.config["unit"] == "cross":
        learner.module.transformer.config.to_json_file(folder / "transformer.json", use_diff=False)
        learner.module.tokenizer.save_pretrained(folder / "tokenizer")
    config = {**learner.config, "metric": _METRIC, "format": _FORMAT, "movers": VERSION}
    replace_file(folder / "config.json", json.dumps(config, indent=1).encode())
    replace_file(folder / "record.json", json.dumps(record, indent=1).encode())
    replace_file(folder / "README.md", _card(config, record).encode())
    return load_model(folder)


def check_model(model: Any) -> None:
    """Raise if `model` names no model; loads nothing."""
    if isinstance(model, QualityModel):
        return
    if not isinstance(model, str | Path):
        raise TypeError(
            f"{_METRIC}: model: expected 'shipped', a folder or a QualityModel, but got {type(model).__name__}"
        )
    folder = _folder(model)
    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"{_METRIC}: model: expected 'shipped' or a folder with config.json and model.safetensors, "
            f"as `movers train quality` writes it, but got {str(model)!r}"
        )


def _folder(model: str | Path) -> Path:
    return Path(str(resources.files("movers.quality") / "shipped")) if str(model) == SHIPPED else Path(model)


def load_model(model: str | Path | QualityModel = SHIPPED) -> QualityModel:
    """The shipped model by its name, a saved one by its folder, or a model itself."""
    check_model(model)
    if isinstance(model, QualityModel):
        return model
    folder = _folder(model)
    digest = sha256_of(folder / "model.safetensors")
    return _load(str(folder.resolve()), digest, SHIPPED if str(model) == SHIPPED else folder.resolve().name)


@lru_cache(maxsize=4)
def _load(folder: str, digest: str, name: str) -> QualityModel:
    from safetensors.torch import load_file

    path = Path(folder)
    config = json.loads((path / "config.json").read_text())
    if config.get("metric") != _METRIC or config.get("format") != _FORMAT:
        raise ValueError(
            f"{_METRIC}: model: expected a model of this metric in format {_FORMAT}, which movers {VERSION} reads, "
            f"but {folder!r} has metric {config.get('metric')!r} and format {config.get('format')!r}"
        )
    if config["unit"] == "cross":
        from movers.quality.cross import load_cross_encoder

        module: Any = load_cross_encoder(folder, config["window"])
    else:
        from movers.quality.heads import build_head

        module = build_head(config)
    module.load_state_dict(load_file(path / "model.safetensors"))
    module.eval()
    record = json.loads((path / "record.json").read_text()) if (path / "record.json").is_file() else {}
    return QualityModel(module, config, digest, name, record)


def _card(config: dict[str, Any], record: dict[str, Any]) -> str:
    """What the folder says of itself to a person."""
    options = record["options"]
    sources = record["data"]["sources"] or [{"name": "not stated"}]
    lines = [
        "# A model of reference_free_summary_quality",
        "",
        f"Scores a summary against its document in [0, 1]. Text to vector: {config['unit']} of `{config['encoder']}`; "
        f"head: {config['head']}; negative samples: {options['negatives']}, {options['fakes']} a document; "
        f"{record['parameters']:,} trained parameters.",
        "",
        "Trained on "
        + "; ".join(", ".join(value for value in source.values() if isinstance(value, str)) for source in sources)
        + f": {record['data']['documents']:,} documents (digest `{record['data']['digest'][:16]}`), split by document "
        + ", ".join(f"{count:,} {name}" for name, count in record["sides"].items())
        + ".",
        "",
        "On the test side: " + ", ".join(f"{name} {value:.3f}" for name, value in record["test"].items()) + ".",
        "",
        f"Best epoch {min(record['curve'], key=lambda entry: entry['validation_loss'])['epoch']} of "
        f"{len(record['curve'])}; the whole curve, all options and the versions used are in `record.json`.",
        "",
        "```python",
        "import movers",
        "",
        'movers.reference_free_summary_quality(["summary"], ["document"], model="path/of/this/folder")',
        "```",
        "",
    ]
    return "\n".join(lines)

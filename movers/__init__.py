"""Text-generation metrics based on embeddings and optimal transport.

>>> import movers
>>> result = movers.sms(["The cat sat. The dog ran."], ["The dog ran. The cat sat."])
>>> result["score"]
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from movers.registry import METRICS
from movers.version import VERSION

if TYPE_CHECKING:
    from movers import engines, hooks, rewards
    from movers import torchmetrics as torchmetrics
    from movers.all_pairs import pairwise
    from movers.decoding import mbr
    from movers.encoders import load_encoder
    from movers.errors import InputError
    from movers.paths import module_path
    from movers.pictures import explain
    from movers.registry import MetricFunction
    from movers.scorer import Scorer, score_many
    from movers.scores.clark import mover_distance
    from movers.scores.tensors import bertscore_tensors
    from movers.weights import IdfTable

    wms: MetricFunction
    sms: MetricFunction
    swms: MetricFunction
    moverscore: MetricFunction
    bertscore_hungarian: MetricFunction
    bertscore_emd: MetricFunction
    reference_free_summary_quality: MetricFunction

__version__ = VERSION

# Nothing heavy is imported before it is used.
_HOMES = {
    "IdfTable": "movers.weights",
    "InputError": "movers.errors",
    "Scorer": "movers.scorer",
    "bertscore_tensors": "movers.scores.tensors",
    "explain": "movers.pictures",
    "load_encoder": "movers.encoders",
    "mbr": "movers.decoding",
    "module_path": "movers.paths",
    "mover_distance": "movers.scores.clark",
    "pairwise": "movers.all_pairs",
    "score_many": "movers.scorer",
}
_MODULES = ("engines", "hooks", "rewards", "torchmetrics")  # the last needs its extra
__all__ = ["IdfTable", "InputError", "Scorer", "__version__", "bertscore_emd", "bertscore_hungarian",
           "bertscore_tensors", "engines", "explain", "hooks", "load_encoder", "mbr", "module_path",
           "mover_distance", "moverscore", "pairwise", "reference_free_summary_quality", "rewards", "score_many",
           "sms", "swms", "wms"]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in METRICS:
        value: object = METRICS[name].function
    elif name in _MODULES:
        value = importlib.import_module(f"movers.{name}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'movers' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

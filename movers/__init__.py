"""Text-generation metrics based on embeddings and optimal transport.

>>> import movers
>>> result = movers.sms(["The cat sat. The dog ran."], ["The dog ran. The cat sat."])
>>> result["score"]
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from movers.version import VERSION

if TYPE_CHECKING:
    from movers import engines, hooks, rewards
    from movers.encoders import SharedPass, load_encoder
    from movers.errors import InputError
    from movers.paths import module_path
    from movers.pictures import explain
    from movers.quality.scorer import reference_free_summary_quality
    from movers.registry import score_many
    from movers.scores.bertscore import bertscore_emd, bertscore_hungarian
    from movers.scores.clark import mover_distance, sms, swms, wms
    from movers.scores.moverscore import moverscore
    from movers.scores.tensors import bertscore_tensors
    from movers.weights import IdfTable

__version__ = VERSION

# Nothing heavy is imported before it is used.
_HOMES = {
    "IdfTable": "movers.weights",
    "InputError": "movers.errors",
    "SharedPass": "movers.encoders",
    "bertscore_emd": "movers.scores.bertscore",
    "bertscore_hungarian": "movers.scores.bertscore",
    "bertscore_tensors": "movers.scores.tensors",
    "explain": "movers.pictures",
    "load_encoder": "movers.encoders",
    "module_path": "movers.paths",
    "mover_distance": "movers.scores.clark",
    "moverscore": "movers.scores.moverscore",
    "reference_free_summary_quality": "movers.quality.scorer",
    "score_many": "movers.registry",
    "sms": "movers.scores.clark",
    "swms": "movers.scores.clark",
    "wms": "movers.scores.clark",
}
_MODULES = ("engines", "hooks", "rewards")
__all__ = [
    "IdfTable",
    "InputError",
    "SharedPass",
    "__version__",
    "bertscore_emd",
    "bertscore_hungarian",
    "bertscore_tensors",
    "engines",
    "explain",
    "hooks",
    "load_encoder",
    "module_path",
    "mover_distance",
    "moverscore",
    "reference_free_summary_quality",
    "rewards",
    "score_many",
    "sms",
    "swms",
    "wms",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"movers.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'movers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

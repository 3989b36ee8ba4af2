"""Text-generation metrics that compare meanings: embeddings and optimal transport.

>>> import movers
>>> result = movers.sms(["The cat sat. The dog ran."], ["The dog ran. The cat sat."])
>>> result["score"]
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from movers.version import VERSION

if TYPE_CHECKING:
    from movers.encoders import load_encoder
    from movers.quality.scorer import reference_free_summary_quality
    from movers.scores.bertscore import bertscore_emd, bertscore_hungarian
    from movers.scores.mover_similarity import mover_distance, sms, swms, wms
    from movers.scores.moverscore import moverscore
    from movers.scores.tensors import bertscore_tensors
    from movers.weights import IdfTable

__version__ = VERSION
__all__ = [
    "IdfTable",
    "__version__",
    "bertscore_emd",
    "bertscore_hungarian",
    "bertscore_tensors",
    "load_encoder",
    "mover_distance",
    "moverscore",
    "reference_free_summary_quality",
    "sms",
    "swms",
    "wms",
]

# Nothing heavy is imported before it is used.
_HOMES = {
    "IdfTable": "movers.weights",
    "bertscore_emd": "movers.scores.bertscore",
    "bertscore_hungarian": "movers.scores.bertscore",
    "bertscore_tensors": "movers.scores.tensors",
    "load_encoder": "movers.encoders",
    "mover_distance": "movers.scores.mover_similarity",
    "moverscore": "movers.scores.moverscore",
    "reference_free_summary_quality": "movers.quality.scorer",
    "sms": "movers.scores.mover_similarity",
    "swms": "movers.scores.mover_similarity",
    "wms": "movers.scores.mover_similarity",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'movers' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

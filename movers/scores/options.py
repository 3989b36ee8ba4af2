"""Options that several metrics share, typed and closed: an unknown name or value is an error naming the valid ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypedDict, TypeVar

from movers.encoders.contextual import Truncation
from movers.encoders.layers import Aggregation
from movers.inputs import check_choice, check_options, check_positive
from movers.scores.pairs import MultiRef

__all__ = ["CommonKwargs", "CommonOptions", "make_options"]

DTYPES = ("float32", "float16", "bfloat16")


class CommonKwargs(TypedDict, total=False):
    """Keyword arguments of every pairwise metric; see `CommonOptions`."""

    model: Any
    weights: Any
    idf: Any
    multi_ref: MultiRef
    device: str
    dtype: str
    batch_tokens: int | None
    threads: int | None
    progress: bool | None
    truncation: Truncation
    window: int | None


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of every pairwise metric.

    Parameters
    ----------
    model : str, path, (model, tokenizer) or encoder
        See `movers.encoders.load_encoder`.
    weights : {"count", "uniform", "idf", "norm"}
        What a unit's mass is.
    idf : "corpus", path, IdfTable or None
        Where the table of inverse document frequencies comes from; `"corpus"` is this call's references.
    multi_ref : {"max", "mean"}
        How several references become one score.
    device, dtype : str
        Where and in which precision a contextual encoder runs.
    batch_tokens : int, optional
        Tokens in a batch of the encoder, padding included.
    threads : int, optional
        Threads that solve transport problems; all processors if not given.
    progress : bool, optional
        Show a bar; by default on terminals only, after two seconds.
    truncation : {"window", "error", "cut"}
        What happens to a text longer than the window.
    window : int, optional
        Tokens the encoder sees at once; the model's own limit if not given.
    """

    metric: ClassVar[str] = ""

    model: Any = "wordllama"
    weights: Any = None
    idf: Any = None
    multi_ref: MultiRef = "max"
    device: str = "auto"
    dtype: str = "float32"
    batch_tokens: int | None = None
    threads: int | None = None
    progress: bool | None = None
    truncation: Truncation = "window"
    window: int | None = None

    def layers(self) -> Aggregation | None:
        """What a contextual encoder's layers become for this metric; None if that is not known beforehand."""
        return None

    def check_common(self, metric: str) -> None:
        check_choice(metric, "multi_ref", self.multi_ref, MultiRef)
        check_choice(metric, "truncation", self.truncation, Truncation)
        check_positive(metric, "window", self.window)
        check_running(metric, self)


def check_running(metric: str, options: Any) -> None:
    """How a metric runs: dtype, batch_tokens, threads, progress and device, which every metric's options have."""
    check_choice(metric, "dtype", options.dtype, DTYPES)
    for option in ("batch_tokens", "threads"):
        check_positive(metric, option, getattr(options, option))
    check_choice(metric, "progress", options.progress, (None, True, False))
    if not isinstance(options.device, str):
        raise TypeError(
            f"{metric}: device: expected 'auto', 'cpu', 'cuda', 'mps' or a torch device, but got {options.device!r}"
        )


OptionsType = TypeVar("OptionsType", bound=CommonOptions)


def make_options(kind: type[OptionsType], metric: str, given: Mapping[str, Any]) -> OptionsType:
    """Options object of a metric from keyword arguments."""
    check_options(metric, given, [item.name for item in fields(kind)])
    return kind(**given)

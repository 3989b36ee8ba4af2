"""Options that several metrics share, typed and closed: an unknown name or value is an error naming the valid ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypedDict, TypeVar

from movers.encoders.contextual import Truncation
from movers.inputs import check_choice, check_options, check_positive
from movers.scores.pairs import MultiRef
from movers.weights import IdfTable

__all__ = ["CommonKwargs", "CommonOptions", "make_options", "resolve_idf"]

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

    def check_common(self, metric: str) -> None:
        check_choice(metric, "multi_ref", self.multi_ref, MultiRef)
        check_choice(metric, "dtype", self.dtype, DTYPES)
        check_choice(metric, "truncation", self.truncation, Truncation)
        for option in ("batch_tokens", "threads", "window"):
            check_positive(metric, option, getattr(self, option))
        check_choice(metric, "progress", self.progress, (None, True, False))
        if not isinstance(self.device, str):
            raise TypeError(
                f"{metric}: device: expected 'auto', 'cpu', 'cuda', 'mps' or a torch device, but got {self.device!r}"
            )


OptionsType = TypeVar("OptionsType", bound=CommonOptions)


def make_options(kind: type[OptionsType], metric: str, given: Mapping[str, Any]) -> OptionsType:
    """Options object of a metric from keyword arguments."""
    check_options(metric, given, [item.name for item in fields(kind)])
    return kind(**given)


def resolve_idf(
    options: OptionsType, metric: str, build: Callable[[Iterable[str]], IdfTable], references: Iterable[str] | None
) -> OptionsType:
    """Options whose `idf` is a table: built from the references for "corpus", read if it is a path."""
    idf = options.idf
    if isinstance(idf, str) and idf == "corpus":
        if references is None:
            raise ValueError(f"{metric}: idf='corpus' needs the references of the whole call; pass an IdfTable here")
        idf = build(references)
    elif isinstance(idf, str | Path):
        idf = IdfTable.load(idf)
    elif idf is not None and not isinstance(idf, IdfTable):
        raise TypeError(
            f"{metric}: idf: expected 'corpus', the path of a saved table, an IdfTable or None, but got {idf!r:.60}"
        )
    return replace(options, idf=idf)

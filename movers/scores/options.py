"""Options of the metrics, each declared once: type, default and one sentence of help.

Validation, docstrings and signatures of the functions, evaluate's `inputs_description`, the tables of the metric cards,
`movers options NAME` and the forms of the web pages are derived from the fields of these dataclasses.
"""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from movers.encoders.shared import SharedPass
from movers.encoders.windows import Truncation
from movers.errors import InputError
from movers.inputs import check_choice, check_options, check_positive

__all__ = ["OptionRow", "Options", "PairOptions", "References", "RunOptions", "documented", "option", "option_rows"]

Function = TypeVar("Function", bound=Callable[..., object])
Dtype = Literal["float32", "float16", "bfloat16"]
MultiRef = Literal["max", "mean"]
References = Sequence[str] | Sequence[Sequence[str]]


def option(
    default: object, help: str, *, values: str | None = None, alias_of: str | None = None, least: int = 1
) -> Any:
    """A field of an options dataclass.

    Parameters
    ----------
    default : default value
    help : str
        One sentence.
    values : str, optional
        Valid values, if the type of the field does not show them.
    alias_of : str, optional
        The option of which this is an alias.
    least : int
        Minimum of an integer option.
    """
    return field(default=default, metadata={"help": help, "values": values, "alias_of": alias_of, "least": least})


class OptionRow(NamedTuple):
    """An option as documentation shows it."""

    name: str
    values: str
    default: object
    help: str
    choices: tuple[object, ...]
    alias_of: str | None


def _plain(value: object) -> object:
    """Arrays as lists, so that comparisons give a single bool."""
    return value.tolist() if getattr(value, "ndim", 0) and hasattr(value, "tolist") else value


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options: a frozen dataclass whose fields are declared with `option`."""

    #: Preset → the defaults it sets.
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}

    @classmethod
    def parse(cls, metric: str, given: Mapping[str, object]) -> Self:
        """Validate keyword arguments and resolve defaults; an unknown name or value is an error."""
        check_options(metric, given, [item.name for item in fields(cls)])
        given = {name: _plain(value) for name, value in given.items()}
        chosen = given.get("preset")
        if chosen is not None:
            check_choice(metric, "preset", chosen, [*cls.presets, None])
            given = {**cls.presets[str(chosen)], **given}
        options = cls(**given)
        _check_aliases(metric, options, given)
        kinds = _types(cls)
        for item in fields(cls):
            _check(metric, item.name, getattr(options, item.name), kinds[item.name], item.metadata["least"])
        return options.settle(metric)

    def settle(self, metric: str) -> Self:
        """Fill in defaults that depend on other options; contradictions are errors."""
        return self


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """Where and how a metric runs; only `dtype` and `unescape` change scores by more than rounding.

    In float32 scores agree within 1e-6 in any batch and on any device; half precision is a thousand times coarser.
    """

    device: str | None = option(
        "auto", "device of a contextual model given by name: `auto`, `cpu`, `cuda`, `mps` or any torch device"
    )
    dtype: Dtype = option(
        "float32", "precision of a contextual model given by name; scores are batch-invariant (1e-6) in `float32` only"
    )
    batch_tokens: int | None = option(None, "tokens per batch of a contextual model, padding included")
    threads: int | None = option(None, "threads that compare texts; by default one per available processor")
    workers: int | None = option(
        None, "worker processes, for static vectors; contextual models run in one process, with threads"
    )
    progress: bool | None = option(None, "show a progress bar; by default only on a terminal, after two seconds")
    return_alignment: bool = option(False, "add `alignments`: which units were matched, with their mass and cost")
    preset: str | None = option(None, "sets several options at once; options given explicitly override it")
    unescape: bool = option(False, "decode HTML entities such as `&quot;` first")

    def clean(self, text: str) -> str:
        """The text after `unescape`."""
        return html.unescape(text) if self.unescape else text


@dataclass(frozen=True, kw_only=True)
class PairOptions(RunOptions):
    """Options shared by all metrics with references."""

    model: object = option(
        "wordllama",
        "encoder: a known name, a word-vector file, a spaCy pipeline, or a transformers model by Hub id or folder",
        values="str, path, (model, tokenizer) or encoder",
    )
    idf: object = option(
        None,
        "IDF table: `corpus` computes it from the references of this call; implies IDF weights",
        values="'corpus', path, IdfTable or None",
    )
    multi_ref: MultiRef = option("max", "how scores against several references are combined")
    truncation: Truncation = option(
        "window", "texts longer than the window: read in overlapping windows, rejected, or truncated and counted"
    )
    window: int | None = option(None, "tokens a contextual model reads at once; by default the model's own limit")
    rescale: object = option(
        False,
        "rescale linearly so that unrelated texts score 0 on average and equal texts 1, with the built-in list of "
        "unrelated texts or a file written by `movers baseline`",
        values="True, False or path",
    )
    max_cells: int = option(
        25_000_000, "largest cost matrix, in cells of about 42 bytes; larger pairs are an error that names the row"
    )
    shared_pass: SharedPass | None = option(
        None, "metrics given the same `movers.SharedPass` reuse one forward pass per text", values="SharedPass or None"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Validation and documentation derived from types


def _types(cls: Any) -> dict[str, Any]:
    return {name: kind for name, kind in get_type_hints(cls).items() if name in {item.name for item in fields(cls)}}


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _choices(kind: Any) -> tuple[object, ...]:
    """All values of a finite type; empty for other types."""
    found: list[object] = []
    for member in _members(kind):
        if get_origin(member) is Literal:
            found += get_args(member)
        elif member is bool:
            found += [True, False]
        elif member is NoneType:
            found.append(None)
        else:
            return ()
    return tuple(found)


def _check_aliases(metric: str, options: Options, given: Mapping[str, object]) -> None:
    """Raise if an option and its alias are given different values."""
    defaults = {item.name: item.default for item in fields(options)}
    for item in fields(options):
        own, value = item.metadata["alias_of"], getattr(options, item.name)
        if own in given and value not in (None, False) and given[own] not in (value, defaults[own]):
            raise InputError(
                f"{metric}: {item.name}: expected it or {own}, whose other name it is, but got both: {value!r} and "
                f"{given[own]!r}"
            )


def _check(metric: str, name: str, value: object, kind: Any, least: int) -> None:
    members = _members(kind)
    if choices := _choices(kind):
        check_choice(metric, name, value, choices)
    elif int in members:
        check_positive(metric, name, value, NoneType in members, least)
    elif str in members and not (isinstance(value, str) and value) and not (value is None and NoneType in members):
        raise InputError(f"{metric}: {name}: expected a text, but got {value!r}")
    elif SharedPass in members and not isinstance(value, SharedPass | None):
        raise InputError(f"{metric}: {name}: expected a movers.SharedPass or None, but got {type(value).__name__}")


def _values(item: Field[Any], kind: Any) -> str:
    if item.metadata["values"]:
        return str(item.metadata["values"])
    if choices := _choices(kind):
        return ", ".join(map(repr, choices))
    return " or ".join("None" if member is NoneType else member.__name__ for member in _members(kind))


def option_rows(cls: type[Options]) -> list[OptionRow]:
    """All options of a metric, its own first, then the shared ones.

    >>> next(row for row in option_rows(PairOptions) if row.name == "multi_ref")[:3]
    ('multi_ref', "'max', 'mean'", 'max')
    """
    kinds = _types(cls)
    shared = [item.name for item in fields(PairOptions)]
    ordered = sorted(fields(cls), key=lambda item: (item.name in shared and item.name != "model", item.name != "model"))
    return [
        OptionRow(
            item.name,
            _values(item, kinds[item.name]) if item.name != "preset" else ", ".join(map(repr, [*cls.presets, None])),
            item.default,
            item.metadata["help"],
            _choices(kinds[item.name]),
            item.metadata["alias_of"],
        )
        for item in ordered
    ]


def documented(cls: type[Options]) -> Callable[[Function], Function]:
    """Add the options to a function's signature and, in place of `{options}`, to its docstring."""

    def document(function: Function) -> Function:
        rows = option_rows(cls)
        lines = [f"{row.name} : {row.values}, default {row.default!r}\n        {row.help}" for row in rows]
        function.__doc__ = (function.__doc__ or "").replace("{options}", "\n    ".join(lines))
        given = [
            part
            for part in inspect.signature(function).parameters.values()
            if part.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        named = [inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default) for row in rows]
        function.__signature__ = inspect.Signature([*given, *named])  # type: ignore[attr-defined]
        return function

    return document

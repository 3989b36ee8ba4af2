"""Options of the metrics, each declared once: type, default and one sentence of help.

Validation, docstrings and signatures of the functions, evaluate's `inputs_description`, the tables of the metric cards
and `movers options NAME` are derived from the fields of these dataclasses. What concerns the machine and not the
definition of the score is in `RunSettings`, the same for all metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from movers.encoders.windows import Truncation
from movers.errors import InputError
from movers.inputs import check_choice, check_options, check_positive


def option(
    default: object, help: str, *, values: str | None = None, alias_of: str | None = None, least: int = 1
) -> Any:
    """A field of an options dataclass, with one sentence of help.

    `values` describes valid values if the type does not show them, `alias_of` names the option of which this is an
    alias for callers of evaluate's bertscore, and `least` is the minimum of an integer.
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


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options: a frozen dataclass whose fields are declared with `option`."""

    @classmethod
    def parse(cls, owner: str, values: Mapping[str, object]) -> Self:
        """Validate options and resolve defaults; an unknown name or value is an error that names the owner."""
        check_options(owner, values, [item.name for item in _options(cls)])
        options = cls(**values)
        kinds = get_type_hints(cls)
        for item in _options(cls):
            _check(owner, item.name, getattr(options, item.name), kinds[item.name], item.metadata["least"])
        return options.settle(owner)

    def settle(self, owner: str) -> Self:
        """Fill in defaults that depend on other options; contradictions are errors."""
        return self


@dataclass(frozen=True, kw_only=True)
class RunSettings(Options):
    """Where and how a metric runs; only `dtype` changes scores by more than rounding.

    In float32 scores agree within 1e-6 in any batch and on any device; half precision is a thousand times coarser.
    """

    device: str | None = option("auto", "`auto`, `cpu`, `cuda`, `mps` or any torch device")
    dtype: Literal["float32", "float16", "bfloat16"] = option(
        "float32", "precision of a contextual model; scores are batch-invariant (1e-6) in `float32` only"
    )
    batch_size: int | None = option(
        None, "texts per forward pass of a contextual model; by default as many as fill the processor's cache"
    )
    threads: int | None = option(None, "threads that compare texts; by default one per available processor")
    workers: int | None = option(
        None, "worker processes, for static vectors; contextual models run in one process, with threads"
    )
    progress: bool | None = option(None, "show a progress bar; by default only on a terminal, after two seconds")


@dataclass(frozen=True, kw_only=True)
class MetricOptions(Options):
    """Base of the options of a metric."""

    return_alignment: bool = option(False, "add `alignments`: which units were matched, with their mass and cost")
    preset: str | None = option(None, "sets several options at once; options given explicitly override it")
    run: RunSettings = RunSettings()

    #: Preset → the defaults it sets.
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}

    @classmethod
    def parse(cls, owner: str, values: Mapping[str, object]) -> Self:
        """Validate the options of a metric, together with the run settings."""
        settings = [item.name for item in fields(RunSettings)]
        check_options(owner, values, [*(item.name for item in _options(cls)), *settings])
        values = {name: _plain(value) for name, value in values.items()}
        preset = values.get("preset")
        if preset is not None:
            check_choice(owner, "preset", preset, [*cls.presets, None])
            values = {**cls.presets[str(preset)], **values}
        values = {**values, **_translate_aliases(owner, cls, values)}
        run = RunSettings.parse(owner, {name: value for name, value in values.items() if name in settings})
        options = super().parse(owner, {name: value for name, value in values.items() if name not in settings})
        return replace(options, run=run)


@dataclass(frozen=True, kw_only=True)
class PairOptions(MetricOptions):
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
    multi_ref: Literal["max", "mean"] = option("max", "how scores against several references are combined")
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


# ---------------------------------------------------------------------------------------------------------------------
# Validation and documentation derived from types


def _options(cls: Any) -> list[Field[Any]]:
    """The fields declared with `option`."""
    return [item for item in fields(cls) if item.metadata]


def _plain(value: object) -> object:
    """Arrays as lists, so that comparisons give a single bool."""
    return value.tolist() if getattr(value, "ndim", 0) and hasattr(value, "tolist") else value


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _choices(kind: Any) -> tuple[object, ...]:
    """All values of a finite type; empty for other types."""
    choices: list[object] = []
    for member in _members(kind):
        if get_origin(member) is Literal:
            choices += get_args(member)
        elif member is bool:
            choices += [True, False]
        elif member is NoneType:
            choices.append(None)
        else:
            return ()
    return tuple(choices)


def _translate_aliases(owner: str, cls: Any, values: Mapping[str, object]) -> dict[str, object]:
    """The options whose aliases are given; another value for the option itself is an error."""
    defaults = {item.name: item.default for item in [*_options(cls), *_options(RunSettings)]}
    translated = {}
    for item in _options(cls):
        name, value = item.metadata["alias_of"], values.get(item.name)
        if name is not None and value is not None and value is not False:
            if name in values and values[name] not in (value, defaults[name]):
                got = f"got {value!r} and {values[name]!r}"
                raise InputError(f"{owner}: {item.name!r} is an alias of {name!r}; pass only one: {got}")
            translated[name] = value
    return translated


def _check(owner: str, name: str, value: object, kind: Any, least: int) -> None:
    members = _members(kind)
    if choices := _choices(kind):
        check_choice(owner, name, value, choices)
    elif int in members:
        check_positive(owner, name, value, NoneType in members, least)
    elif str in members and not (isinstance(value, str) and value) and not (value is None and NoneType in members):
        raise InputError(f"{owner}: {name}: expected a text, but got {value!r}")


def option_rows(cls: Any) -> list[OptionRow]:
    """The options of a metric (or the run settings) for documentation, `model` first, shared ones last.

    >>> next(row for row in option_rows(PairOptions) if row.name == "multi_ref")[:3]
    ('multi_ref', "'max', 'mean'", 'max')
    """
    kinds = get_type_hints(cls)
    shared = [item.name for item in _options(PairOptions)]
    rows = []
    for item in sorted(_options(cls), key=lambda item: (item.name != "model", item.name in shared)):
        kind, about = kinds[item.name], item.metadata
        choices, values = _choices(kind), about["values"]
        if item.name == "preset":
            values = ", ".join(map(repr, [*cls.presets, None]))
        elif not values:
            names = ["None" if member is NoneType else getattr(member, "__name__", "") for member in _members(kind)]
            values = ", ".join(map(repr, choices)) or " or ".join(names)
        rows.append(OptionRow(item.name, values, item.default, about["help"], choices, about["alias_of"]))
    return rows

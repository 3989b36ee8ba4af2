"""What a page answers: a scored pair with its picture, a scored file. Limits are checked here; no gradio yet."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from movers.errors import InputError
from movers.io import Table, TextGroups, Texts
from movers.pictures import Explanation, explain
from movers.pictures.html import frame, histogram, pictures_of
from movers.registry import find_metric, parse_value
from movers.scores.engine import Example, PairMetric, score_stream
from movers.scores.options import OptionRow, option_rows
from movers.weights import Corpus

__all__ = ["LIMITS", "FileAnswer", "FileRun", "FormRow", "PairAnswer", "chosen_options", "form_rows", "score_pair"]


class Limits(NamedTuple):
    """What a page takes: characters of a text, references of a pair, bytes and rows of a file."""

    characters: int = 20_000
    references: int = 4
    file_bytes: int = 5_000_000
    rows: int = 2_000
    shown_rows: int = 50


LIMITS = Limits()

# --- the form --------------------------------------------------------------------------------------------------------

#: Options that concern the machine, not the score, or that a page decides.
_HIDDEN = {"device", "dtype", "batch_tokens", "threads", "progress", "return_alignment", "shared_pass", "max_cells"}
#: A visitor chooses among these, and cannot name files of the server.
_OFFERED: dict[str, tuple[str | bool | None, ...]] = {
    "model": ("wordllama", "all-MiniLM-L6-v2"),
    "idf": (None, "corpus"),
    "rescale": (True, False),
    "sentence_encoder": (None, "all-MiniLM-L6-v2"),
}


class FormRow(NamedTuple):
    """A field of the form.

    Attributes
    ----------
    name, help : str
    default : what the field shows at first
    choices : sequence of str
        What can be chosen; a field without choices takes what the command line takes.
    """

    name: str
    help: str
    default: str | bool
    choices: Sequence[str]

    @property
    def values(self) -> str:
        """What can be given, in Markdown."""
        listed = self.choices or (["true", "false"] if isinstance(self.default, bool) else [])
        return ", ".join(f"`{choice}`" for choice in listed) or "text"


def form_rows(name: str) -> list[FormRow]:
    """The options that a page offers, made from the metric's options.

    >>> [row.name for row in form_rows("reference_free_summary_quality")]
    ['doc_reduce', 'preset', 'unescape']
    """
    return [row for option in option_rows(find_metric(name).options_class) if (row := _form_row(name, option))]


def _form_row(metric: str, option: OptionRow) -> FormRow | None:
    if option.name in _HIDDEN or option.alias_of or option.help.startswith("accepted"):
        return None
    choices = option.choices
    if not choices and option.name in _OFFERED:
        choices = _OFFERED[option.name]
        if option.default not in choices:
            return None
        if metric not in ("wms", "sms", "swms"):
            choices = tuple(choice for choice in choices if choice != "wordllama" or option.default == choice)
        if len(choices) < 2:
            return None
    elif not choices and "path" in option.values:
        return None
    if set(choices) == {True, False}:
        return FormRow(option.name, option.help, bool(option.default), ())
    return FormRow(option.name, option.help, _typed(option.default), [_typed(choice) for choice in choices])


def _typed(value: object) -> str:
    """A value as a person would type it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def chosen_options(name: str, values: Mapping[str, object]) -> dict[str, object]:
    """The options that differ from the defaults, checked; what the form does not offer is an error.

    >>> chosen_options("wms", {"normalize": True, "lang": "en", "stopwords": "none"})
    {'normalize': True, 'stopwords': None}
    """
    rows = {row.name: row for row in form_rows(name)}
    chosen: dict[str, object] = {}
    for key, value in values.items():
        row = rows.get(key)
        if row is None:
            raise InputError(f"{name}: options: expected some of {', '.join(rows)}, but got {key!r:.60}")
        typed = value if isinstance(value, bool) else _typed(value).strip()
        if typed == row.default:
            continue
        if row.choices and typed not in row.choices and _typed(typed) not in row.choices:
            raise InputError(f"{name}: {key}: expected one of {', '.join(row.choices)}, but got {typed!r:.60}")
        chosen[key] = typed if isinstance(typed, bool) else parse_value(typed)
    find_metric(name).parse(chosen)
    return chosen


# --- a pair ----------------------------------------------------------------------------------------------------------


class PairAnswer(NamedTuple):
    """What a page shows for a pair; `summary` and `picture` are HTML with every text escaped."""

    summary: str
    signature: str
    picture: str
    explanation: Explanation


def score_pair(name: str, prediction: str, others: Sequence[str], options: Mapping[str, object]) -> PairAnswer:
    """Score one prediction against one or several references (or documents).

    >>> score_pair("wms", "Snow melts.", ["Snow melts."], {}).explanation.score
    1.0
    """
    spec = find_metric(name)
    others = [text for text in others if text.strip()] or list(others[:1])
    if not 0 < len(others) <= LIMITS.references:
        raise InputError(
            f"{name}: {spec.compared_with}: expected 1 to {LIMITS.references} texts, but got {len(others)}"
        )
    argument = spec.compared_with.removesuffix("s")
    for what, text in [("prediction", prediction), *((argument, text) for text in others)]:
        if len(text) > LIMITS.characters:
            raise InputError(
                f"{name}: {what}: expected at most {LIMITS.characters:,} characters, but got {len(text):,}; "
                "for longer texts use the package"
            )
    chosen = chosen_options(name, options)
    compared = {"reference": None, "source": None, argument: others}
    explanation = explain(name, prediction, compared["reference"], source=compared["source"], **chosen)
    picture = frame(pictures_of(explanation), f"{explanation.title}: what was matched", height=700)
    return PairAnswer(_summary(explanation), explanation.signature, picture, explanation)


def _summary(explanation: Explanation) -> str:
    """The score in large type, with the paper's own number beside it."""
    numbers = {"score": explanation.score} | {
        name: value for name, value in explanation.numbers.items() if name not in ("f1", "distance")
    }
    distance = explanation.numbers.get("distance")
    if distance is not None:
        if explanation.metric in ("wms", "sms", "swms"):
            numbers["in the paper: exp(−distance)"] = math.exp(-distance)
        numbers["distance"] = distance
    elif "f1" in explanation.numbers:
        numbers["in the paper: F1"] = explanation.numbers["f1"]
    return (
        '<ul class="movers-numbers">'
        + "".join(f"<li><b>{value:.4g}</b> <span>{escape(name)}</span></li>" for name, value in numbers.items())
        + "</ul>"
    )


# --- a file ----------------------------------------------------------------------------------------------------------


class FileAnswer(NamedTuple):
    """A scored file: one line about it, the plot (HTML), heading and first rows of the table, all scores as CSV."""

    summary: str
    plot: str
    heading: list[str]
    rows: list[list[object]]
    csv: str
    signature: str


@dataclass(frozen=True)
class FileRun:
    """The rows of an uploaded file, within the limits, and the metric that scores them."""

    metric: PairMetric[object]
    predictions: Sequence[str]
    groups: Sequence[Sequence[str]]

    @classmethod
    def open(
        cls, name: str, path: str, options: Mapping[str, object], prediction_column: str = "", other_column: str = ""
    ) -> FileRun:
        """Read a file and build the metric; columns are found by their usual names unless they are named."""
        spec = find_metric(name)
        chosen = chosen_options(name, options)
        size = os.path.getsize(path)
        if size > LIMITS.file_bytes:
            raise InputError(f"file: expected at most {LIMITS.file_bytes:,} bytes, but got {size:,}")
        try:
            table = Table(path)
            if table.kind == "text":
                raise InputError("file: expected JSONL, JSON, CSV, TSV or Parquet with columns, but got another format")
            predictions = list(_limited(Texts(table, "predictions", prediction_column.strip() or None)))
            groups = [
                group
                for group in _limited(TextGroups([Texts(table, spec.compared_with, other_column.strip() or None)]))
                if not isinstance(group, str)
            ]
        except InputError as error:  # where the server keeps the file is nobody's business
            raise InputError(str(error).replace(path, os.path.basename(path))) from None
        if not predictions:
            raise InputError("file: expected at least one row, but got none")
        texts = [text for text in predictions if isinstance(text, str)]
        metric = spec.build(spec.parse({**chosen, "progress": False}), Corpus(texts, groups))
        return cls(metric, texts, groups)

    def examples(self) -> Iterator[Example]:
        """The scored rows, one after the other."""
        rows = zip(self.predictions, self.groups, strict=True)
        return score_stream(self.metric, rows, len(self.predictions))

    def answer(self, examples: Sequence[Example]) -> FileAnswer:
        """Table and plot."""
        scores = [example.score for example in examples]
        parts, flags = list(examples[0].parts), ("empty", "unfiltered", "truncated", "unknown")
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(["index", "score", *parts, *flags])
        table: list[list[object]] = []
        for index, (text, example) in enumerate(zip(self.predictions, examples, strict=True)):
            numbers = [example.score, *(example.parts[part] for part in parts)]
            writer.writerow([index, *numbers, *(int(getattr(example, flag)) for flag in flags)])
            if index < LIMITS.shown_rows:
                shown = text if len(text) <= 120 else text[:119] + "…"
                table.append([index + 1, *(float(f"{number:.4g}") for number in numbers), shown])
        counts = {flag: sum(getattr(example, flag) for example in examples) for flag in flags}
        told = "".join(f", {count} {flag}" for flag, count in counts.items() if count)
        more = f" The table shows the first {LIMITS.shown_rows}." if len(scores) > LIMITS.shown_rows else ""
        summary = f"Mean {math.fsum(scores) / len(scores):.4g} over {len(scores):,} rows{told}.{more}"
        heading = ["row", "score", *parts, "prediction"]
        return FileAnswer(summary, frame(histogram(scores)), heading, table, written.getvalue(), self.metric.signature)


def _limited(rows: Iterable[str | list[str]]) -> Iterator[str | list[str]]:
    for number, row in enumerate(rows, 1):
        if number > LIMITS.rows:
            raise InputError(f"file: expected at most {LIMITS.rows:,} rows, but got more")
        for text in [row] if isinstance(row, str) else row:
            if len(text) > LIMITS.characters:
                raise InputError(
                    f"file: row {number}: expected at most {LIMITS.characters:,} characters, but got {len(text):,}"
                )
        yield row

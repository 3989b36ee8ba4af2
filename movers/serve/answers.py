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

from movers.errors import InputError, RowError
from movers.inputs import check_text, is_group
from movers.io import Table, TextGroups, Texts
from movers.pictures import Explanation, explain
from movers.pictures.html import frame, histogram, pictures_of
from movers.registry import find_metric, parse_value
from movers.scores.engine import Example, PairMetric, score_stream
from movers.scores.options import OptionRow, option_rows
from movers.serve.limits import LIMITS, check_length, check_seconds, estimate_seconds
from movers.weights import Corpus

__all__ = ["FileAnswer", "FileRun", "FormRow", "Pair", "PairAnswer", "chosen_options", "form_rows", "score_pair"]


# --- the form --------------------------------------------------------------------------------------------------------

#: Options that concern the machine, not the score, or that a page decides.
_HIDDEN = {"device", "dtype", "batch_tokens", "threads", "progress", "return_alignment", "shared_pass", "max_cells",
           "workers", "lm", "reference_free_summary_quality.truncation"}  # fmt: skip
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
    if (
        not _HIDDEN.isdisjoint((option.name, f"{metric}.{option.name}"))
        or option.alias_of
        or option.help.startswith("accepted")
    ):
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


def chosen_options(name: str, values: object) -> dict[str, object]:
    """The options that differ from the defaults, checked; what the form does not offer is an error.

    >>> chosen_options("wms", {"normalize": True, "lang": "en", "stopwords": "none"})
    {'normalize': True, 'stopwords': None}
    """
    rows = {row.name: row for row in form_rows(name)}
    chosen: dict[str, object] = {}
    if not isinstance(values, Mapping):
        raise InputError(f"{name}: options: expected names with values, but got {type(values).__name__}")
    for key, value in values.items():
        row = rows.get(key)
        if row is None:
            raise InputError(f"{name}: options: expected some of {', '.join(rows)}, but got {key!r:.60}")
        typed = value if isinstance(value, bool) else _typed(value).strip()
        if not isinstance(typed, bool):
            check_text(name, "options", key, typed)
            if len(typed) > LIMITS.option_characters:
                limit = f"at most {LIMITS.option_characters} characters"
                raise InputError(f"{name}: {key}: expected {limit}, but got {len(typed):,}")
        if typed == row.default:
            continue
        if row.choices and typed not in row.choices and _typed(typed) not in row.choices:
            raise InputError(f"{name}: {key}: expected one of {', '.join(row.choices)}, but got {typed!r:.60}")
        chosen[key] = typed if isinstance(typed, bool) else parse_value(typed)
    find_metric(name).parse(chosen)
    return chosen


# --- a pair ----------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A prediction and what it is compared with, within the limits, and the options that differ from the defaults."""

    metric: str
    prediction: str
    others: list[str]
    options: dict[str, object]

    @classmethod
    def check(cls, name: str, prediction: object, others: object, options: object) -> Pair:
        """What a visitor sent, checked."""
        spec = find_metric(name)
        if not is_group(others):
            raise InputError(f"{name}: {spec.compared_with}: expected a list of texts, but got {type(others).__name__}")
        texts = [check_text(name, spec.compared_with, str(place), text) for place, text in enumerate(others)]
        texts = [text for text in texts if text.strip()] or texts[:1]
        if not 0 < len(texts) <= LIMITS.references:
            raise InputError(
                f"{name}: {spec.compared_with}: expected 1 to {LIMITS.references} texts, but got {len(texts)}"
            )
        first = check_text(name, "predictions", "0", prediction)
        check_length(f"{name}: prediction", first)
        for text in texts:
            check_length(f"{name}: {spec.compared_with.removesuffix('s')}", text)
        return cls(name, first, texts, chosen_options(name, options))

    @property
    def seconds(self) -> float:
        """How long it takes, estimated."""
        return estimate_seconds(self.metric, [(self.prediction, self.others)], self.options)


class PairAnswer(NamedTuple):
    """What a page shows for a pair; `summary` and `picture` are HTML with every text escaped."""

    summary: str
    picture: str
    explanation: Explanation

    def result(self) -> dict[str, object]:
        """For programs: the score, its parts, its signature and the flows of the best alignment."""
        found = self.explanation
        flows = [
            {
                "from": panel.left[flow.i].text,
                "to": panel.right[flow.j].text,
                panel.measure: flow.share,
                "cost": flow.cost,
            }
            for picture in found.pictures[:1]
            for panel in picture.panels[-1:]
            for flow in panel.flows
        ]
        return {"score": found.score, **found.numbers, "signature": found.signature, "flows": flows}


def score_pair(pair: Pair) -> PairAnswer:
    """Score one prediction against one or several references (or documents).

    >>> score_pair(Pair.check("wms", "Snow melts.", ["Snow melts."], {})).explanation.score
    1.0
    """
    argument = find_metric(pair.metric).compared_with.removesuffix("s")
    compared = {"reference": None, "source": None, argument: pair.others}
    explanation = explain(
        pair.metric, pair.prediction, compared["reference"], source=compared["source"], **pair.options
    )
    picture = frame(pictures_of(explanation), f"{explanation.title}: what was matched", height=700)
    return PairAnswer(_summary(explanation), picture, explanation)


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
        if not os.path.isfile(path):
            raise InputError("file: expected a file, but it has been deleted; upload it again")
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
        check_seconds(name, estimate_seconds(name, zip(texts, groups, strict=True), chosen))
        metric = spec.build(spec.parse({**chosen, "progress": False}), Corpus(texts, groups))
        return cls(metric, texts, groups)

    def examples(self) -> Iterator[Example]:
        """The scored rows, one after the other."""
        rows = zip(self.predictions, self.groups, strict=True)
        try:
            yield from score_stream(self.metric, rows, len(self.predictions))
        except RowError as error:
            raise error.at(f"file: row {error.row + 1}") from None

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
            check_length(f"file: row {number}", text)
        yield row

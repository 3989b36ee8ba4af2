"""Web pages to try the metrics: one for all of them (`movers serve`), and one per metric (its Space).

A page has an API: every metric is an endpoint of its name. What is typed or uploaded is not stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import gradio
import pandas
from gradio.exceptions import InvalidPathError

from movers.errors import InputError, RowError
from movers.inputs import check_text
from movers.io import Table, Texts, csv_row
from movers.pictures import Explainer, Explanation
from movers.pictures.explain import FLAGS, about, frame, histogram, pictures
from movers.registry import METRICS, MetricSpec, find_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.options import option_rows

__all__ = ["all_metrics_page", "chosen_options", "form_rows", "launch", "metric_page", "score_file", "score_pair"]

CHARACTERS = 5_000  # of a text
REFERENCES = 4  # of a pair
FILE_BYTES = 1_000_000
FILE_ROWS = 2_000
SHOWN_ROWS = 50  # of a file, in the table
WAITING = 20  # requests in gradio's queue
FORMATS = (".jsonl", ".json", ".csv", ".tsv")  # nothing compressed: what is uploaded is what memory must hold

#: Options of the machine, or with a single sensible value.
_HIDDEN = {"dtype", "progress", "return_alignment", "all_layers", "use_fast_tokenizer"}
#: Choices for options (by name and default) that take more than a page may: files of the server above all.
_OFFERED: dict[tuple[str, object], tuple[object, ...]] = {
    ("model", "wordllama"): ("wordllama", "all-MiniLM-L6-v2"),
    ("sentence_encoder", None): (None, "all-MiniLM-L6-v2"),
    ("idf", None): (None, "corpus"),
    ("rescale", False): (False, True),
    ("stopwords", "auto"): ("auto", "english", None),
    ("stopwords", None): (None, "english"),
    ("lang", "en"): ("en", "de", "es", "fr", "it", "nl", "pl", "pt", "ru"),
    ("layer", "mean"): ("mean", "last", "pmeans", "routing"),
    ("layer", "last"): ("last", "mean", "pmeans", "routing"),
    ("aggregation", None): (None, "pmeans", "routing", "last", "mean"),
    ("n_gram", 1): (1, 2, 3, "sentence"),
}


class FormRow(NamedTuple):
    """An option with the choices that a page offers, as a person types them (`none`, `true`) → their values."""

    name: str
    help: str
    default: str
    choices: Mapping[str, object]


def form_rows(metric: str) -> list[FormRow]:
    """The options that a page offers; all are choices."""
    spec = find_metric(metric)
    rows = []
    for option in option_rows(spec.options_class):
        choices = option.choices or _OFFERED.get((option.name, option.default), ())
        if option.name == "preset":
            choices = (None, *spec.options_class.presets)
        if len(choices) > 1 and option.name not in _HIDDEN and not option.alias_of:
            typed = {_typed(choice): choice for choice in choices}
            rows.append(FormRow(option.name, option.help, _typed(option.default), typed))
    return rows


def _typed(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def chosen_options(metric: str, values: object) -> dict[str, object]:
    """The options that differ from the defaults; what the form does not offer is an error.

    >>> chosen_options("wms", {"normalize": True, "lang": "en", "stopwords": "none"})
    {'normalize': True, 'stopwords': None}
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{metric}: options: expected names with values, but got {type(values).__name__}")
    rows = {row.name: row for row in form_rows(metric)}
    chosen: dict[str, object] = {}
    for name, value in values.items():
        if name not in rows:
            raise InputError(f"{metric}: options: expected some of {', '.join(rows)}, but got {name!r:.60}")
        row = rows[name]
        if _typed(value) not in row.choices:
            got = repr(value)[:60] if isinstance(value, str) else type(value).__name__
            raise InputError(f"{metric}: {name}: expected one of {', '.join(row.choices)}, but got {got}")
        if _typed(value) != row.default:
            chosen[name] = row.choices[_typed(value)]
    find_metric(metric).parse(chosen)
    return chosen


def _check_length(place: str, text: str) -> None:
    if len(text) > CHARACTERS:
        expected = f"expected at most {CHARACTERS:,} characters, but got {len(text):,}"
        raise InputError(f"{place}: {expected}; for longer texts use the package")


def score_pair(metric: str, prediction: object, references: object, options: object) -> Explanation:
    """Score what a visitor sent: one prediction against one or several references (or documents).

    >>> score_pair("wms", "Snow melts.", ["Snow melts."], {}).score
    1.0
    """
    spec = find_metric(metric)
    chosen = chosen_options(metric, options)
    if not isinstance(references, list) or not 0 < len(references) <= REFERENCES:
        got = len(references) if isinstance(references, list) else type(references).__name__
        raise InputError(f"{metric}: {spec.compared_with}: expected a list of 1 to {REFERENCES} texts, but got {got}")
    for index, text in enumerate([prediction, *references]):
        place = f"{spec.compared_with}[{index - 1}]" if index else "predictions[0]"
        if not isinstance(text, str):  # without its value: gradio may have put a path into it
            raise InputError(f"{metric}: {place}: expected a text, but got {type(text).__name__}")
        _check_length(f"{metric}: {place}", check_text(metric, place[:-3], place[-2], text))
    compared = [text for text in references if text.strip()] or references[:1]
    row = Row(str(prediction), **{spec.compared_with: compared})
    return Explainer(metric, chosen, [row]).explain([row])[0]


class ScoredFile(NamedTuple):
    """A scored file: a line about it, the signature, and all rows as CSV."""

    summary: str
    signature: str
    scores: list[float]
    csv: str


def score_file(
    metric: str,
    path: str,
    options: object,
    prediction_column: str = "",
    other_column: str = "",
    track: Callable[..., Iterable[tuple[Example, ...]]] = lambda examples, total: examples,
) -> ScoredFile:
    """Score an uploaded file; columns are found by their usual names unless they are named. `track` shows progress."""
    chosen = chosen_options(metric, options)
    try:
        rows = _read_rows(find_metric(metric), path, prediction_column.strip(), other_column.strip())
    except InputError as error:  # do not reveal the server's path
        raise InputError(str(error).replace(path, Path(path).name)) from None
    scorer = Scorer(metric, **chosen, progress=False).prepare(rows)
    try:
        examples = [example for (example,) in track(scorer.stream(rows, total=len(rows)), total=len(rows))]
    except RowError as error:
        raise error.at(f"file: row {error.row + 1}") from None
    lines = [csv_row(["row", "score", *examples[0].parts, *FLAGS, "prediction"])]
    for number, (row, example) in enumerate(zip(rows, examples, strict=True), 1):
        flags = [int(getattr(example, flag)) for flag in FLAGS]
        lines.append(csv_row([number, example.score, *example.parts.values(), *flags, row.prediction]))
    scores = [example.score for example in examples]
    counts = {flag: sum(getattr(example, flag) for example in examples) for flag in FLAGS}
    summary = f"Mean {math.fsum(scores) / len(scores):.4g} over {len(scores):,} rows"
    summary += "".join(f", {count} {flag}" for flag, count in counts.items() if count) + "."
    return ScoredFile(summary, scorer.signatures[metric], scores, "".join(lines))


def _read_rows(spec: MetricSpec, path: str, prediction_column: str, other_column: str) -> list[Row]:
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES + 1)
    except OSError:
        raise InputError("file: expected a file, but it has been deleted; upload it again") from None
    if len(content) > FILE_BYTES:
        raise InputError(f"file: expected at most {FILE_BYTES:,} bytes, but got more")
    if Path(path).suffix.lower() not in FORMATS or content.startswith(b"\x1f\x8b"):
        raise InputError("file: expected JSONL, JSON, CSV or TSV with columns, uncompressed, but got another format")
    table = Table(path)
    predictions = Texts(table, "predictions", prediction_column or None)
    others = Texts(table, spec.compared_with, other_column or None).groups()
    rows = []
    for number, (prediction, group) in enumerate(zip(predictions, others, strict=True), 1):
        if number > FILE_ROWS:
            raise InputError(f"file: expected at most {FILE_ROWS:,} rows, but got more")
        for text in (prediction, *group):
            _check_length(f"file: row {number}", text)
        rows.append(Row(prediction, **{spec.compared_with: group}))
    if not rows:
        raise InputError("file: expected at least one row, but got none")
    return rows


# One pair and one file at a time, of all metrics: a file does not hold up pairs.
_PAIRS: dict[str, Any] = {"concurrency_id": "pairs", "concurrency_limit": 1}
_FILES: dict[str, Any] = {"concurrency_id": "files", "concurrency_limit": 1}


class _Page(gradio.Blocks):
    """A page that opens nothing but uploads: gradio would download an address that is sent in place of a file."""

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *state: Any, **more: Any) -> Any:
        if _has_address(inputs):
            raise gradio.Error("file: expected an upload, but got an address", print_exception=False)
        try:
            return await super().preprocess_data(block_fn, inputs, *state, **more)
        except InvalidPathError:
            raise gradio.Error("file: expected an upload, but got another path", print_exception=False) from None


def _has_address(value: object) -> bool:
    if isinstance(value, Mapping):
        return "://" in str(value.get("path"))[:40] or _has_address(list(value.values()))
    return isinstance(value, list) and any(map(_has_address, value))


def metric_page(name: str) -> gradio.Blocks:
    """The page of one metric; `launch(metric_page("wms"))` serves it."""
    return all_metrics_page([name])


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, of which one is shown at a time; all metrics by default."""
    specs = [find_metric(name) for name in names or METRICS]
    # No usage data; uploads that were never scored are deleted after ten minutes.
    with _Page(title="movers", analytics_enabled=False, delete_cache=(60, 600)) as page:
        choices = [(spec.title, spec.name) for spec in specs]
        choice = gradio.Radio(choices, value=specs[0].name, label="Metric", visible=len(specs) > 1)
        columns = []
        for spec in specs:
            with gradio.Column(visible=spec is specs[0]) as column:
                _add_metric(page, spec, scored=spec is specs[0])
            columns.append(column)

        def switch(name: str) -> list[gradio.Column]:
            return [gradio.Column(visible=name == spec.name) for spec in specs]

        choice.change(switch, choice, columns, api_visibility="private", show_progress="hidden")
    return page


def launch(page: gradio.Blocks, **options: Any) -> None:
    """Serve a page, on this machine alone unless `server_name` says otherwise; there is no share link."""
    settings: dict[str, Any] = {
        "max_file_size": FILE_BYTES,
        "css": resources.files("movers").joinpath("data", "page.css").read_text(encoding="utf-8"),
        # Its own fonts would be loaded from elsewhere.
        "theme": gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        "footer_links": ["api"],
        **dict.fromkeys(("share", "run_history", "ssr_mode", "pwa", "enable_monitoring"), False),
    }
    page.queue(max_size=WAITING).launch(**{**settings, **options})


def _add_metric(page: gradio.Blocks, spec: MetricSpec, scored: bool) -> None:
    """Add the tabs of a metric to the page under construction; `scored` shows a result before the first click."""
    facts = about(spec.name)
    paper = f" [{facts['paper']}](https://doi.org/{facts['doi']})" if facts["doi"] else ""
    gradio.Markdown(f"# {spec.title}\n\n{facts['about'] or spec.summary}{paper}")
    with gradio.Tabs():
        with gradio.Tab("A pair"):
            options = _add_pair_tab(page, spec, facts["examples"], scored)
        with gradio.Tab("A file"):
            _add_file_tab(spec, options)

    # The endpoint for programs.
    def answer(prediction: str, references: list[str], options: dict[str, object] | None = None) -> dict[str, Any]:
        try:
            explanation = score_pair(spec.name, prediction, references, options or {})
        except InputError as error:
            raise gradio.Error(str(error), print_exception=False) from error
        flows = [
            {
                "from": panel.left[flow.i].text,
                "to": panel.right[flow.j].text,
                panel.measure: flow.share,
                "cost": flow.cost,
            }
            for panel in explanation.pictures[0].panels[-1:]
            for flow in panel.flows
        ]
        numbers = {"score": explanation.score, **explanation.numbers}
        return {**numbers, "signature": explanation.signature, "flows": flows}

    gradio.api(answer, api_name=spec.name, api_description=f"{spec.title}: {spec.summary}", **_PAIRS)


def _add_pair_tab(page: gradio.Blocks, spec: MetricSpec, examples: Sequence[Sequence[str]], scored: bool) -> list[Any]:
    """Fields, examples, options and the result; returns the fields of the options."""
    first, other = ("Summary", "Document") if spec.compared_with == "sources" else ("Prediction", "Reference")
    _, prediction, reference = examples[0] if examples else ("", "", "")
    with gradio.Row():
        texts = [gradio.Textbox(label=first, value=prediction, lines=5, min_width=280)]
        texts.append(gradio.Textbox(label=other, value=reference, lines=5, min_width=280))
    with gradio.Row():
        buttons = [gradio.Button(label, size="sm", min_width=220) for label, _, _ in examples]
    with gradio.Accordion("Options", open=False), gradio.Row(elem_classes="movers-options"):
        options = [
            gradio.Dropdown(list(row.choices), value=row.default, label=row.name, info=row.help, min_width=230)
            for row in form_rows(spec.name)
        ]
    score = gradio.Button("Score", variant="primary")
    signature = gradio.Textbox(label="Signature: model and options", interactive=False, lines=1, buttons=["copy"])
    outputs = [gradio.HTML(), signature, gradio.HTML(padding=False)]

    def show(prediction: str | None, reference: str | None, *values: Any) -> tuple[str, str, str]:
        try:
            explanation = score_pair(spec.name, prediction or "", [reference or ""], _named(spec, values))
        except InputError as error:
            return _alert(error), "", ""
        numbers = {"score": explanation.score, **explanation.numbers}
        items = "".join(f"<li><b>{value:.4g}</b> <span>{name}</span></li>" for name, value in numbers.items())
        picture = frame(pictures(explanation), f"{spec.title}: what was matched")
        note = f"<p>{escape(explanation.warning)}</p>" if explanation.warning else ""
        return f'<ul class="movers-numbers">{items}</ul>{note}', explanation.signature, picture

    arguments: dict[str, Any] = {"fn": show, "inputs": [*texts, *options], "outputs": outputs, **_PAIRS}
    arguments["api_visibility"] = "private"
    score.click(**arguments)
    if scored:
        page.load(**arguments)
    for (_, *pair), button in zip(examples, buttons, strict=True):
        button.click(lambda pair=pair: pair, None, texts, api_visibility="private").then(**arguments)
    return options


def _named(spec: MetricSpec, values: Sequence[object]) -> dict[str, object]:
    return dict(zip([row.name for row in form_rows(spec.name)], values, strict=True))


def _alert(error: InputError) -> str:
    """A message in the page itself: read aloud at once, and it stays until the next score."""
    return f'<p class="movers-error" role="alert">{escape(str(error))}</p>'


def _add_file_tab(spec: MetricSpec, options: list[Any]) -> None:
    """Upload, progress, table, plot, download."""
    gradio.Markdown(
        f"A file with a column of predictions and one of {spec.compared_with}: JSONL, JSON, CSV or TSV, at most "
        f"{FILE_ROWS:,} rows and {FILE_BYTES // 1_000_000} MB. The options are those of the first tab. The file is "
        "deleted when it has been scored."
    )
    file = gradio.File(label="File", file_types=list(FORMATS), type="filepath")
    columns = [
        gradio.Textbox(label=f"Column of {name}", placeholder="found by its name", lines=1, max_lines=1)
        for name in ("predictions", spec.compared_with)
    ]
    button = gradio.Button("Score the file", variant="primary")
    table = gradio.Dataframe(label=f"The first {SHOWN_ROWS} rows", interactive=False, wrap=True, visible=False)
    outputs = [gradio.HTML(elem_classes="movers-file-summary"), gradio.HTML(), table, gradio.HTML()]
    progress = gradio.Progress()

    def show(
        path: str | None, prediction: str | None, other: str | None, *values: Any, progress: Any = progress
    ) -> tuple[str, str, gradio.Dataframe, str]:
        try:
            if not path:
                raise InputError("file: expected a file, but got none")
            scored = score_file(spec.name, path, _named(spec, values), prediction or "", other or "", progress.tqdm)
        except InputError as error:
            return _alert(error), "", gradio.Dataframe(visible=False), ""
        finally:
            if path:
                Path(path).unlink(missing_ok=True)
                with suppress(OSError):  # gradio makes a folder for every file
                    Path(path).parent.rmdir()
        first_rows = pandas.read_csv(io.StringIO(scored.csv), nrows=SHOWN_ROWS, keep_default_na=False)
        # The link holds the file, so that none is written on the server.
        data = base64.b64encode(scored.csv.encode()).decode()
        return (
            f"<p>{escape(scored.summary)}</p><p><code>{escape(scored.signature)}</code></p>",
            frame(histogram(scored.scores), "Distribution of scores", height=300),
            gradio.Dataframe(value=first_rows, visible=True),
            f'<a class="movers-download" download="{spec.name}-scores.csv" href="data:text/csv;base64,{data}">'
            "Download all scores (CSV)</a>",
        )

    button.click(show, [file, *columns, *options], outputs, api_visibility="private", **_FILES)

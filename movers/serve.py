"""Web pages to try the metrics: one for all of them (`movers serve`), and one per metric (its Space).

A page has an API: every metric is an endpoint of its name. What is typed or uploaded is not stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import gradio
from gradio.exceptions import InvalidPathError

from movers.errors import InputError, RowError
from movers.inputs import check_text
from movers.io import Table, Texts, csv_row
from movers.pictures import Explainer, Explanation
from movers.pictures.explain import FLAGS, about, shorten
from movers.pictures.html import frame, histogram, pictures
from movers.registry import METRICS, MetricSpec, find_metric
from movers.scorer import Row, Scorer
from movers.scores.options import option_rows

__all__ = ["all_metrics_page", "chosen_options", "form_rows", "launch", "metric_page", "score_file", "score_pair"]

CHARACTERS = 5_000  # of a text
REFERENCES = 4  # of a pair
FILE_BYTES = 1_000_000
FILE_ROWS = 2_000
SHOWN_ROWS = 50  # of a file, in the table
WAITING = 20  # requests in gradio's queue
FORMATS = (".jsonl", ".json", ".csv", ".tsv")  # nothing compressed: what is uploaded is what memory must hold

# --- the form --------------------------------------------------------------------------------------------------------

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


# --- scoring ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _explainer(metric: str, options: tuple[tuple[str, object], ...]) -> Explainer:
    return Explainer(metric, dict(options))


@lru_cache(maxsize=64)
def _scorer(metric: str, options: tuple[tuple[str, object], ...]) -> Scorer:
    return Scorer(metric, **dict(options), progress=False)


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
    explainer = Explainer(metric, chosen, [row]) if "idf" in chosen else _explainer(metric, tuple(chosen.items()))
    return explainer.explain([row])[0]


class ScoredFile(NamedTuple):
    """A scored file: a line about it, heading and first rows of its table, and all rows as CSV."""

    summary: str
    signature: str
    scores: list[float]
    heading: list[str]
    table: list[list[object]]
    csv: str


def score_file(
    metric: str,
    path: str,
    options: object,
    prediction_column: str = "",
    other_column: str = "",
    progress: Callable[[tuple[int, int]], object] = lambda done: None,
) -> ScoredFile:
    """Score an uploaded file; columns are found by their usual names unless they are named."""
    chosen = chosen_options(metric, options)
    try:
        rows = _read_rows(find_metric(metric), path, prediction_column.strip(), other_column.strip())
    except InputError as error:  # do not reveal the server's path
        raise InputError(str(error).replace(path, Path(path).name)) from None
    scorer = _scorer(metric, tuple(chosen.items())).prepare(rows)
    examples = []
    try:
        for (example,) in scorer.stream(rows, total=len(rows)):
            examples.append(example)
            progress((len(examples), len(rows)))
    except RowError as error:
        raise error.at(f"file: row {error.row + 1}") from None
    scores, parts = [example.score for example in examples], list(examples[0].parts)
    lines, table = [csv_row(["row", "score", *parts, *FLAGS, "prediction"])], []
    for number, (row, example) in enumerate(zip(rows, examples, strict=True), 1):
        numbers = [example.score, *(example.parts[part] for part in parts)]
        flags = [int(getattr(example, flag)) for flag in FLAGS]
        lines.append(csv_row([number, *numbers, *flags, row.prediction]))
        if number <= SHOWN_ROWS:
            table.append([number, *(float(f"{value:.4g}") for value in numbers), shorten(row.prediction, 120)])
    counts = {flag: sum(getattr(example, flag) for example in examples) for flag in FLAGS}
    summary = f"Mean {math.fsum(scores) / len(scores):.4g} over {len(scores):,} rows"
    summary += "".join(f", {count} {flag}" for flag, count in counts.items() if count) + "."
    if len(scores) > SHOWN_ROWS:
        summary += f" The table shows the first {SHOWN_ROWS}."
    heading = ["row", "score", *parts, "prediction"]
    return ScoredFile(summary, scorer.signatures[metric], scores, heading, table, "".join(lines))


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


# --- the page --------------------------------------------------------------------------------------------------------

# One pair and one file at a time, of all metrics: a file does not hold up pairs.
_PAIRS: dict[str, Any] = {"concurrency_id": "pairs", "concurrency_limit": 1}
_FILES: dict[str, Any] = {"concurrency_id": "files", "concurrency_limit": 1}
# No usage data; uploads that were never scored are deleted after ten minutes.
_PRIVATE: dict[str, Any] = {"analytics_enabled": False, "delete_cache": (60, 600)}
# A picture tells how tall it is; nothing else is listened to.
_HEAD = """<script>
window.addEventListener("message", (event) => {
  const height = event.data && event.data.moversHeight;
  if (typeof height !== "number" || !(height > 0 && height < 100000)) return;
  for (const frame of document.querySelectorAll("iframe.movers-frame"))
    if (frame.contentWindow === event.source) frame.style.height = Math.ceil(height) + "px";
});
</script>"""


class _Page(gradio.Blocks):
    """A page that opens nothing but uploads: gradio would download an address that is sent in place of a file."""

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *state: Any, **more: Any) -> Any:
        """What gradio does before it calls a function."""
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
    with _Page(title="movers", **_PRIVATE) as page:
        choices = [(spec.title, spec.name) for spec in specs]
        choice = gradio.Radio(choices, value=specs[0].name, label="Metric", visible=len(specs) > 1)
        columns = []
        for spec in specs:
            with gradio.Column(visible=spec is specs[0]) as column:
                _add_metric(page, spec, scored=spec is specs[0])
            columns.append(column)
        quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        choice.change(
            lambda name: [gradio.Column(visible=name == spec.name) for spec in specs], choice, columns, **quiet
        )
    return page


def launch(page: gradio.Blocks, **options: Any) -> None:
    """Serve a page, on this machine alone unless `server_name` says otherwise; there is no share link."""
    settings: dict[str, Any] = {
        "share": False,
        "max_file_size": FILE_BYTES,
        "css": resources.files("movers").joinpath("data", "page.css").read_text(encoding="utf-8"),
        "head": _HEAD,
        # Its own fonts would be loaded from elsewhere.
        "theme": gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
        "enable_monitoring": False,
    }
    page.queue(max_size=WAITING)
    page.launch(**{**settings, **options})


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
            {"from": panel.left[flow.i].text, "to": panel.right[flow.j].text}
            | {panel.measure: flow.share, "cost": flow.cost}
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
        with gradio.Column(min_width=280):
            texts = [gradio.Textbox(label=first, value=prediction, lines=5)]
        with gradio.Column(min_width=280):
            texts.append(gradio.Textbox(label=other, value=reference, lines=5))
            with gradio.Accordion(f"More {other.lower()}s", open=False):
                texts += [gradio.Textbox(label=f"{other} {number}", lines=2) for number in range(2, REFERENCES + 1)]
    with gradio.Row():
        buttons = [gradio.Button(label, size="sm", min_width=220) for label, _, _ in examples]
    options: list[Any] = []
    with gradio.Accordion("Options", open=False), gradio.Row(elem_classes="movers-options"):
        for row in form_rows(spec.name):
            label: dict[str, Any] = {"label": row.name, "info": row.help, "min_width": 230}
            if set(row.choices) == {"true", "false"}:
                options.append(gradio.Checkbox(value=row.default == "true", **label))
            else:
                options.append(gradio.Dropdown(list(row.choices), value=row.default, **label))
    score = gradio.Button("Score", variant="primary")
    outputs = [
        gradio.HTML(elem_classes="movers-score"),
        gradio.Textbox(label="Signature: model and options", interactive=False, lines=1, buttons=["copy"]),
        gradio.HTML(elem_classes="movers-picture", padding=False),
    ]

    def show(prediction: str | None, *values: Any) -> tuple[str, str, str]:
        references = [str(value or "") for value in values[:REFERENCES]]
        try:
            explanation = score_pair(spec.name, prediction or "", references, _named(spec, values[REFERENCES:]))
        except InputError as error:
            return _alert(error), "", ""
        picture = frame(pictures(explanation), f"{explanation.title}: what was matched", height=700)
        return _numbers(explanation), explanation.signature, picture

    arguments: dict[str, Any] = {"fn": show, "inputs": [*texts, *options], "outputs": outputs, **_PAIRS}
    arguments["api_visibility"] = "private"
    score.click(**arguments)
    if scored:
        page.load(**arguments)
    for (_, *pair), button in zip(examples, buttons, strict=True):
        values = [*pair, *[""] * (REFERENCES - 1)]
        fill = button.click(lambda values=values: values, None, texts, api_visibility="private", show_progress="hidden")
        fill.then(**arguments)
    return options


def _named(spec: MetricSpec, values: Sequence[object]) -> dict[str, object]:
    return dict(zip([row.name for row in form_rows(spec.name)], values, strict=True))


def _alert(error: InputError) -> str:
    """A message in the page itself: read aloud at once, and it stays until the next score."""
    return f'<p class="movers-error" role="alert">{escape(str(error))}</p>'


def _numbers(explanation: Explanation) -> str:
    numbers = {"score": explanation.score, **explanation.numbers}
    items = (f"<li><b>{value:.4g}</b> <span>{escape(name)}</span></li>" for name, value in numbers.items())
    return f'<ul class="movers-numbers">{"".join(items)}</ul>'


def _add_file_tab(spec: MetricSpec, options: list[Any]) -> None:
    """Upload, progress, table, plot, download."""
    gradio.Markdown(
        f"A file with a column of predictions and one of {spec.compared_with}: JSONL, JSON, CSV or TSV, at most "
        f"{FILE_ROWS:,} rows and {FILE_BYTES // 1_000_000} MB. The options are those of the first tab. The file is "
        "deleted when it has been scored."
    )
    file = gradio.File(label="File", file_types=list(FORMATS), type="filepath")
    with gradio.Row():
        columns = [
            gradio.Textbox(label=f"Column of {name}", placeholder="found by its name", lines=1, max_lines=1)
            for name in ("predictions", spec.compared_with)
        ]
    button = gradio.Button("Score the file", variant="primary")
    outputs = [
        gradio.HTML(elem_classes="movers-file-summary"),
        gradio.HTML(),
        gradio.Dataframe(label="Rows", interactive=False, wrap=True, visible=False),
        gradio.HTML(),
    ]

    progress = gradio.Progress()

    def show(
        path: str | None, prediction: str | None, other: str | None, *values: Any, progress: Any = progress
    ) -> tuple[str, str, gradio.Dataframe, str]:
        try:
            if not path:
                raise InputError("file: expected a file, but got none")
            options = _named(spec, values)
            scored = score_file(
                spec.name, path, options, prediction or "", other or "", lambda done: progress(done, unit="rows")
            )
        except InputError as error:
            return _alert(error), "", gradio.Dataframe(visible=False), ""
        finally:
            if path:
                Path(path).unlink(missing_ok=True)
                with suppress(OSError):  # gradio makes a folder for every file
                    Path(path).parent.rmdir()
        kinds = ["number"] * (len(scored.heading) - 1) + ["str"]
        # The link holds the file, so that none is written on the server.
        data = base64.b64encode(scored.csv.encode()).decode()
        return (
            f"<p>{escape(scored.summary)}</p><p><code>{escape(scored.signature)}</code></p>",
            frame(histogram(scored.scores), "Distribution of scores", height=300),
            gradio.Dataframe(value=scored.table, headers=scored.heading, datatype=kinds, visible=True),
            f'<a class="movers-download" download="{spec.name}-scores.csv" href="data:text/csv;base64,{data}">'
            "Download all scores (CSV)</a>",
        )

    button.click(show, [file, *columns, *options], outputs, api_visibility="private", **_FILES)

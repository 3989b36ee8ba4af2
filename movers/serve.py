"""Web pages to try the metrics: one for all of them (`movers serve`), and one per metric (its Space).

A page has an API: every metric is an endpoint of its name. What is typed or uploaded is not stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

import base64
import ctypes
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from html import escape
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl

import gradio
from gradio.exceptions import InvalidPathError

from movers.encoders.cache import VECTORS
from movers.errors import InputError, RowError
from movers.inputs import check_text
from movers.io import Texts, csv_row, read_records
from movers.pictures import Explainer, Explanation
from movers.pictures.explain import FLAGS, about, frame, pictures
from movers.registry import METRICS, MetricSpec, find_metric
from movers.scorer import Row, Scorer
from movers.scores.options import OptionRow, option_rows
from movers.scores.unrelated import unrelated_texts

__all__ = ["all_metrics_page", "chosen_options", "form_rows", "launch", "metric_page", "score_file", "score_pair"]

CHARACTERS = 5_000  # of a text
REFERENCES = 4  # of a pair
FILE_BYTES = 1_000_000
FILE_ROWS = 2_000
WAITING = 20  # requests in gradio's queue
SESSIONS = 20  # visitors whose last output gradio keeps
VECTOR_BYTES = 64_000_000  # of encoded texts that are kept
FORMATS = (".jsonl", ".json", ".csv", ".tsv")  # nothing compressed: what is uploaded is what memory must hold
PAGE_OPTIONS = ("preset", "rescale", "model", "stopwords", "alignment")  # in the form; programs have them all

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
    ("aggregation", None): (None, "pmeans", "routing", "last", "mean"),
    ("n_gram", 1): (1, 2, 3, "sentence"),
    **{("layer", default): ("mean", "last", "pmeans", "routing") for default in ("mean", "last")},
}

_SUMMARY = "Compare a generated text with a reference, by embeddings and optimal transport."
_NAMES = {"references": ("Prediction", "Reference"), "sources": ("Summary", "Document")}
#: A table that the script of the page draws and sorts. The first input of the event `select` is the clicked row.
_TABLE: dict[str, Any] = {"html_template": "", "js_on_load": "movers.table(element, props, trigger, watch)"}
_CLICK: dict[str, Any] = {"js": "(_, ...fields) => [movers.row, ...fields]", "trigger_mode": "always_last"}
_DATA = Path(__file__).parent / "data"
# One pair and one file at a time, of all metrics: a file does not hold up pairs.
_PAIRS: dict[str, Any] = {"concurrency_id": "pairs", "concurrency_limit": 1}
_FILES: dict[str, Any] = {"concurrency_id": "files", "concurrency_limit": 1}
_PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}  # for the page alone


def form_rows(metric: str) -> list[OptionRow]:
    """The options that a page offers; all are choices."""
    spec, rows = find_metric(metric), []
    for option in option_rows(spec.options_class):
        choices = option.choices or _OFFERED.get((option.name, option.default), ())
        if option.name == "preset":
            choices = (None, *spec.options_class.presets)
        if len(choices) > 1 and option.name not in _HIDDEN and not option.alias_of:
            rows.append(option._replace(choices=choices))
    return rows


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
        choices = {str(choice).lower(): choice for choice in rows[name].choices}
        if str(value).lower() not in choices:
            got = repr(value)[:60] if isinstance(value, str) else type(value).__name__
            raise InputError(f"{metric}: {name}: expected one of {', '.join(choices)}, but got {got}")
        if choices[str(value).lower()] != rows[name].default:
            chosen[name] = choices[str(value).lower()]
    find_metric(metric).parse(chosen)
    return chosen


def _check_length(place: str, text: str) -> None:
    if len(text) > CHARACTERS:
        expected = f"expected at most {CHARACTERS:,} characters, but got {len(text):,}"
        raise InputError(f"{place}: {expected}; for longer texts use the package")


def score_pair(metric: str, prediction: object, references: object, options: object) -> Explanation:
    """Score what a visitor sent: one prediction against one or several references (or documents)."""
    spec, chosen = find_metric(metric), chosen_options(metric, options)
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


def score_file(
    metric: str, path: str, options: object, columns: Sequence[object], track: Callable[..., Any] | None = None
) -> tuple[str, str, list[list[Any]]]:
    """Score two columns of an uploaded file: a line about the scores, the signature, and a table with a heading."""
    chosen, rows = chosen_options(metric, options), read_rows(metric, path, columns)
    scorer = Scorer(metric, **chosen, progress=False).prepare(rows)
    scored = scorer.stream(rows, total=len(rows))
    try:
        examples = [example for (example,) in (track(scored, total=len(rows)) if track else scored)]
    except RowError as error:
        raise error.at(f"file: row {error.row + 1}") from None
    table: list[list[Any]] = [["row", "score", *examples[0].parts, *FLAGS, *scorer.compared_with, "prediction"]]
    for row, example in zip(rows, examples, strict=True):
        flags = [int(getattr(example, flag)) for flag in FLAGS]
        texts = [" / ".join(row.references or row.sources), row.prediction]
        table.append([len(table), example.score, *example.parts.values(), *flags, *texts])
    mean = math.fsum(example.score for example in examples) / len(examples)
    counts = {flag: sum(getattr(example, flag) for example in examples) for flag in FLAGS}
    flagged = "".join(f", {count} {flag}" for flag, count in counts.items() if count)
    return f"Mean {mean:.3f} over {len(rows):,} rows{flagged}.", scorer.signatures[metric], table


def _read_upload(path: str) -> list[dict[str, object]]:
    """The records of an uploaded file, whose size gradio limits."""
    try:
        os.utime(path)  # gradio deletes it ten minutes after this
        with open(path, "rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
    except OSError:
        raise InputError("file: expected a file, but there is none, or it has been deleted; upload it again") from None
    if compressed or Path(path).suffix.lower() not in FORMATS:
        raise InputError("file: expected JSONL, JSON, CSV or TSV with columns, uncompressed, but got another format")
    try:
        records = list(islice(read_records(path), FILE_ROWS + 1))
    except InputError as error:  # do not reveal the server's path
        raise InputError(str(error).replace(path, Path(path).name)) from None
    if not 0 < len(records) <= FILE_ROWS:
        raise InputError(f"file: expected 1 to {FILE_ROWS:,} rows, but got {'more' if records else 'none'}")
    return records


def find_columns(metric: str, path: str) -> tuple[list[str], list[str | None]]:
    """The columns of an uploaded file, and which to compare: the only one with a common name, or None."""
    names, compared = list(_read_upload(path)[0]), []
    for argument in ("predictions", find_metric(metric).compared_with):
        texts = Texts(path, argument)
        with suppress(InputError):
            next(texts.groups())
        compared.append(texts.column)
    return names, compared


def read_rows(metric: str, path: str, columns: Sequence[object]) -> list[Row]:
    """The rows of an uploaded file."""
    records, others = _read_upload(path), find_metric(metric).compared_with
    for argument, column in zip(("predictions", others), columns, strict=True):
        if column not in records[0]:
            expected = f"expected one of {', '.join(records[0])}, but got {column or 'none'!s:.60}"
            raise InputError(f"file: choose the column of {argument}: {expected}")
    rows = []
    for number, record in enumerate(records, 1):
        prediction, value = (record.get(str(column)) for column in columns)
        group: list[Any] = value if isinstance(value, list) and value else [value]
        for text in (prediction, *group):
            _check_length(f"file: row {number}", check_text("file", "row", str(number), text))
        rows.append(Row(str(prediction), **{others: group}))
    return rows


class _Page(gradio.Blocks):
    """Opens nothing but uploads (gradio would download an address in place of a file); what is wrong is a message."""

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *state: Any, **more: Any) -> Any:
        if _has_address(inputs):
            raise gradio.Error("file: expected an upload, but got an address", print_exception=False)
        try:
            return await super().preprocess_data(block_fn, inputs, *state, **more)
        except InvalidPathError:
            raise gradio.Error("file: expected an upload, but got another path", print_exception=False) from None
        except ValueError:
            raise gradio.Error("expected the values that the API names", print_exception=False) from None

    async def call_function(self, *arguments: Any, **more: Any) -> Any:
        try:
            return await super().call_function(*arguments, **more)
        except InputError as error:
            raise gradio.Error(str(error), print_exception=False) from error


def _has_address(value: object) -> bool:
    if isinstance(value, Mapping):
        return "://" in str(value.get("path"))[:40] or _has_address(list(value.values()))
    return isinstance(value, list) and any(map(_has_address, value))


def metric_page(name: str) -> gradio.Blocks:
    """The page of one metric; `launch(metric_page("wms"))` serves it."""
    return all_metrics_page([name])


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, by default of all."""
    specs = [find_metric(name) for name in names or METRICS]
    title, summary = (specs[0].title, specs[0].summary) if len(specs) == 1 else ("movers", _SUMMARY)
    # No usage data; uploads are deleted ten minutes after their last use.
    with _Page(title=title, analytics_enabled=False, delete_cache=(60, 600)) as page:
        gradio.HTML(f"<h1>{escape(title)}</h1><p>{escape(summary)}</p>", elem_classes="movers-head")
        address, forms = gradio.Textbox(visible=False), []
        with gradio.Tabs() as tabs:
            for tab, compared_with in (("A pair", "references"), ("A summary", "sources")):
                if group := [spec for spec in specs if spec.compared_with == compared_with]:
                    with gradio.Tab(tab, id=compared_with):
                        forms.append(_PairTab(group))
            with gradio.Tab("A file"):
                _add_file_tab(specs, forms[0])
            with gradio.Tab("API"):
                guide = gradio.Markdown()
        for spec in specs:
            _add_endpoint(spec)

        def follow_link(address: str) -> dict[Any, Any]:
            """Fill in what the address of the page says: `?prediction=…&reference=…&metric=…`."""
            place, _, query = address.partition("#")[0].partition("?")
            values = dict(parse_qsl(query))
            metric = values.get("metric")
            form = next((form for form in forms if metric in form.specs), forms[0])
            linked: dict[Any, Any] = dict(zip(form.texts, map(values.get, ("prediction", "reference")), strict=True))
            if metric in form.specs:
                linked |= {form.chosen: metric, tabs: gradio.Tabs(selected=form.specs[metric].compared_with)}
            return {guide: _guide(place, specs), **{field: value for field, value in linked.items() if value}}

        filled = [tabs, guide, *(field for form in forms for field in (*form.texts, form.chosen))]
        event = page.load(follow_link, address, filled, js="() => [location.href]", **_PRIVATE)
        for form in forms:
            event = event.then(form.score, form.inputs, form.outputs, **_PRIVATE, **_PAIRS)
    return page


def launch(page: gradio.Blocks, **options: Any) -> None:
    """Serve a page, on this machine alone unless `server_name` says otherwise; there is no share link."""
    settings: dict[str, Any] = {
        "max_file_size": FILE_BYTES,
        "state_session_capacity": SESSIONS,
        "css_paths": _DATA / "page.css",
        "head": f"<script>{(_DATA / 'page.js').read_text(encoding='utf-8')}</script>",
        # Its own fonts would be loaded from elsewhere.
        "theme": gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        "footer_links": [],
        **dict.fromkeys(("share", "run_history", "ssr_mode", "pwa", "enable_monitoring"), False),
    }
    VECTORS.capacity = min(VECTORS.capacity, VECTOR_BYTES)
    with suppress(AttributeError, OSError, TypeError):  # where malloc is glibc's: M_ARENA_MAX
        ctypes.CDLL(None).mallopt(-8, 2)  # with a heap for every thread, 2,000 requests left 100 MB of gaps
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "100")  # of its own statistics, made anew at every event
    page.queue(max_size=WAITING).launch(**{**settings, **options})


class _PairTab:
    """Two texts, a table with a row per metric, and the picture of one of them."""

    def __init__(self, specs: Sequence[MetricSpec]) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.names = _NAMES[specs[0].compared_with]
        examples = {label: texts for spec in specs for label, *texts in about(spec.name)["examples"]
                    if spec is specs[0] or label.startswith("Weakness")}  # fmt: skip
        small: dict[str, Any] = {"size": "sm", "scale": 0, "min_width": 0}
        with gradio.Row():
            self.texts = [gradio.Textbox(text, label=name, lines=3, max_lines=8, min_width=280)
                          for name, text in zip(self.names, next(iter(examples.values())), strict=True)]  # fmt: skip
        with gradio.Row(elem_classes="movers-actions"):
            score = gradio.Button("Score", variant="primary", scale=0, min_width=120)
            shortcuts = [gradio.Button(label, **small) for label in examples]
        self.options = self._add_options()
        self.message, self.table = gradio.HTML(), gradio.HTML(**_TABLE)
        with gradio.Row(elem_classes="movers-actions movers-take"):
            link = gradio.Button("Copy link", **small)
            saves = {kind: gradio.Button(f"Save picture ({kind.upper()})", **small) for kind in ("png", "svg")}
            status, content = gradio.HTML(), gradio.Textbox(visible=False)
        self.details, self.picture = gradio.HTML(), gradio.HTML()
        self.chosen = gradio.Textbox(specs[0].name, visible=False)
        self.outputs = [self.message, self.table, self.details, self.picture, self.chosen]
        self.inputs = [self.chosen, *self.texts, *self.options.values()]
        events: dict[str, Any] = {"inputs": self.inputs, "outputs": self.outputs, **_PRIVATE, **_PAIRS}
        score.click(self.score, **events)
        self.table.select(self.choose, **events, **_CLICK)
        for shortcut, texts in zip(shortcuts, examples.values(), strict=True):
            shortcut.click(lambda texts=texts: texts, None, self.texts, **_PRIVATE).then(self.score, **events)
        gradio.on([field.input for field in self.options.values()], self.score, **events)
        link.click(None, self.inputs[:3], status, js="movers.link", **_PRIVATE)
        for kind, button in saves.items():
            event = button.click(partial(self.save, kind), self.inputs, content, **_PRIVATE, **_PAIRS)
            event.then(None, [content, self.chosen], None, js=f"(url, name) => movers.save(url, `${{name}}.{kind}`)")

    def _add_options(self) -> dict[str, gradio.Dropdown]:
        fields = {}
        with gradio.Accordion("Options", open=False), gradio.Row(elem_classes="movers-options"):
            for name in PAGE_OPTIONS:
                rows = {metric: row for metric in self.specs for row in form_rows(metric) if row.name == name}
                choices = dict.fromkeys(["default", *(str(choice) for row in rows.values() for choice in row.choices)])
                if rows:
                    info = f"{next(iter(rows.values())).help} ({', '.join(rows)})"
                    fields[name] = gradio.Dropdown(list(choices), label=name, info=info, min_width=210)
        return fields

    def options_of(self, metric: str, values: Sequence[object]) -> dict[str, object]:
        """The chosen values that this metric offers; its other options have their defaults."""
        choices = {row.name: [*map(str, row.choices)] for row in form_rows(metric)}
        chosen = zip(self.options, map(str, values), strict=True)
        return {name: value for name, value in chosen if value in choices.get(name, ())}

    def explain(self, metric: str, first: str | None, second: str | None, *values: object) -> Explanation:
        for name, text in zip(self.names, (first, second), strict=True):
            _check_length(name, text or "")
        return score_pair(metric, first or "", [second or ""], self.options_of(metric, values))

    def score(self, chosen: str, *fields: Any) -> Iterator[dict[Any, Any]]:
        """Score by every metric, and show each score as soon as it is computed."""
        rows: dict[str, tuple[object, ...]] = {
            metric: (metric, spec.title, None, None, spec.summary) for metric, spec in self.specs.items()
        }
        explanations: list[Explanation] = []
        table = {"rows": [*rows.values()], "chosen": chosen, "texts": fields[:2]}
        yield {**dict.fromkeys(self.outputs[:4], ""), self.table: table}
        try:
            for metric, spec in self.specs.items():
                explanation = self.explain(metric, *fields)
                explanations.append(explanation)
                unrelated = _unrelated(metric, **self.options_of(metric, fields[2:]))
                rows[metric] = (metric, spec.title, explanation.score, unrelated, spec.summary)
                if spec.compared_with == "sources":  # the aspects that the score is made of
                    aspects = explanation.numbers.items()
                    rows |= {name: ("", name.replace("_", "-"), value, None, "") for name, value in aspects}
                table = {"rows": [*rows.values()], "chosen": chosen, "texts": fields[:2]}
                details = self._details(explanation) if metric == chosen else {}
                yield {self.table: table, self.message: _notes(explanations), **details}
        except InputError as error:
            yield {self.message: _alert(error), self.table: None}

    def choose(self, chosen: str, *fields: Any) -> dict[Any, Any]:
        """Show the picture of the row that was clicked."""
        return {self.chosen: chosen, **self._details(self.explain(chosen, *fields))}

    def save(self, kind: str, chosen: str, *fields: Any) -> str:
        """The picture as a data: address, so that no file stays on the server."""
        with TemporaryDirectory() as folder:
            self.explain(chosen, *fields).save(path := Path(folder) / f"picture.{kind}")
            content = base64.b64encode(path.read_bytes()).decode()
        return f"data:image/{'svg+xml' if kind == 'svg' else kind};base64,{content}"

    def _details(self, explanation: Explanation) -> dict[Any, str]:
        """Details of a score (its parts, the paper and the signature), folded, and its picture."""
        facts, numbers = about(explanation.metric), {"score": explanation.score, **explanation.numbers}
        items = "".join(f"<div><dt>{escape(name)}</dt><dd>{value:.3f}</dd></div>" for name, value in numbers.items())
        paper = f'<a href="https://doi.org/{facts["doi"]}">{escape(facts["paper"])}</a>' if facts["doi"] else ""
        text = f"<dl>{items}</dl><p>{escape(facts['about'])} {paper}</p><code>{escape(explanation.signature)}</code>"
        head = f'<details class="movers-details"><summary>About {escape(explanation.title)}</summary>'
        return {self.details: f"{head}{text}</details>", self.picture: _picture(explanation)}


@lru_cache(maxsize=64)
def _unrelated(metric: str, **options: object) -> float | None:
    """The mean score of unrelated texts; none without references, and rescaling maps it to 0."""
    if options.get("rescale") == "True" or find_metric(metric).compared_with == "sources":
        return None
    rows = [Row(text, [text]) for text in unrelated_texts()]  # for IDF weights
    scorer = Scorer((metric, {**chosen_options(metric, options), "rescale": True})).prepare(rows)
    return (scorer.metrics[metric].baseline or {})["score"]


def _notes(explanations: Iterable[Explanation]) -> str:
    """Flags and warnings about the texts, each once, with the metrics that it concerns."""
    metrics_by_note: dict[str, list[str]] = {}
    for explanation in explanations:
        warning = explanation.warning.removeprefix(f"{explanation.metric}: ")
        for note in (*(FLAGS[flag] for flag in explanation.flags), *filter(None, [warning])):
            metrics_by_note.setdefault(note, []).append(explanation.metric)
    items = "".join(f"<li>{escape(note)} ({', '.join(names)}).</li>" for note, names in metrics_by_note.items())
    return f'<ul class="movers-notes" role="status">{items}</ul>' if items else ""


def _picture(explanation: Explanation) -> str:
    return frame(pictures(explanation), f"{explanation.title}: what was matched")


def _alert(error: InputError) -> str:
    """A message in the page itself: read aloud at once, and it stays until the next score."""
    return f'<p class="movers-error" role="alert">{escape(str(error))}</p>'


def _add_file_tab(specs: Sequence[MetricSpec], form: _PairTab) -> None:
    """Upload, columns, progress, a table to sort, the picture of a row, download."""
    gradio.HTML(
        f"<p>JSONL, JSON, CSV or TSV with named columns, at most {FILE_ROWS:,} rows and {FILE_BYTES // 1_000_000} MB. "
        "The options are those of the first tab. The file is deleted ten minutes after its last use.</p>"
    )
    file = gradio.File(label="File", file_types=list(FORMATS), height=110)
    file.preprocess = lambda payload: payload and payload.path  # gradio's own leaves an empty file behind each time
    with gradio.Row(elem_classes="movers-columns"):
        metric = gradio.Dropdown([(spec.title, spec.name) for spec in specs], label="Metric", visible=len(specs) > 1)
        # gradio forgets the choices with the session; a name that is no column is refused by `read_rows`.
        columns = [gradio.Dropdown([], label=f"{name} column", min_width=140, allow_custom_value=True)
                   for name in _NAMES[specs[0].compared_with]]  # fmt: skip
    button = gradio.Button("Score the file", variant="primary", elem_classes="movers-narrow")
    message, table, picture = gradio.HTML(), gradio.HTML(**_TABLE), gradio.HTML()
    outputs, progress, clicked = [message, table, picture], gradio.Progress(), gradio.Textbox(visible=False)
    inputs = [metric, file, *columns, *form.options.values()]

    def offer_columns(name: str, path: str | None) -> dict[Any, Any]:
        shown: dict[Any, Any] = {message: "", table: None, picture: ""}
        try:
            names, compared = find_columns(name, path) if path else ([], [None, None])
        except InputError as error:
            names, compared, shown[message] = [], [None, None], _alert(error)
        for field, label, column in zip(columns, _NAMES[find_metric(name).compared_with], compared, strict=True):
            shown[field] = gradio.Dropdown(names, value=column, label=f"{label} column")
        return shown

    def show(name: str, path: str | None, *values: Any, progress: Any = progress) -> dict[Any, Any]:
        try:
            chosen = form.options_of(name, values[2:])
            summary, signature, (head, *rows) = score_file(name, path or "", chosen, values[:2], progress.tqdm)
        except InputError as error:
            return {message: _alert(error), table: None, picture: ""}
        # The link holds the file, so that none is written on the server.
        content = base64.b64encode("".join(map(csv_row, [head, *rows])).encode()).decode()
        link = f'<a download="{name}-scores.csv" href="data:text/csv;base64,{content}">Download all scores (CSV)</a>'
        cells = [(number, number, score, *(str(text)[:200] for text in rest[:-3:-1])) for number, score, *rest in rows]
        return {
            message: f"<p>{summary} {link}</p><p><code>{escape(signature)}</code></p>",
            table: {"head": ["Row", "Score", *_NAMES[find_metric(name).compared_with]], "rows": cells},
            picture: "<p>Choose a row to see its picture.</p>",
        }

    def choose(number: str, name: str, path: str | None, *values: Any) -> str:
        rows = read_rows(name, path or "", values[:2])
        row = dict(zip(map(str, range(1, len(rows) + 1)), rows, strict=True)).get(number, rows[0])
        chosen = chosen_options(name, form.options_of(name, values[2:]))
        return _picture(Explainer(name, chosen, rows).explain([row])[0])

    gradio.on([file.change, metric.input], offer_columns, [metric, file], [*columns, *outputs], **_PRIVATE)
    gradio.on([field.input for field in inputs[2:]], None, None, outputs, js="() => ['', '', '']", **_PRIVATE)
    button.click(show, inputs, outputs, api_visibility="private", **_FILES)
    table.select(choose, [clicked, *inputs], picture, **_CLICK, **_PRIVATE, **_FILES)


def _add_endpoint(spec: MetricSpec) -> None:
    """The metric for programs."""

    def answer(prediction: str, references: list[str], options: dict[str, object] | None = None) -> dict[str, Any]:
        explanation = score_pair(spec.name, prediction, references, options or {})
        picture = explanation.pictures[0]
        flows = [
            {"from": panel.left[flow.i].text, "to": panel.right[flow.j].text, panel.measure: flow.share,
             "cost": flow.cost}
            for panel in picture.panels[picture.main :][:1] for flow in panel.flows
        ]  # fmt: skip
        parts = {"score": explanation.score, **explanation.numbers}
        return {**parts, "signature": explanation.signature, "flows": flows}

    gradio.api(answer, api_name=spec.name, api_description=f"{spec.title}: {spec.summary}", **_PAIRS)


def _guide(address: str, specs: Sequence[MetricSpec]) -> str:
    """How a program calls the page, whose visitor sees it at that address."""
    options = "\n".join(f"- `/{spec.name}`: {', '.join(row.name for row in form_rows(spec.name))}" for spec in specs)
    text = (_DATA / "api.md").read_text(encoding="utf-8")
    return text.format(address=address, metric=specs[0].name, references=REFERENCES, options=options)

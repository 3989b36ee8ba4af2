"""Web pages to try the metrics: one for all of them (`movers serve`), and one per metric (its Space).

A page has an API: every metric is an endpoint of its name. What is typed or uploaded is not stored, and nothing is sent
anywhere. Needs gradio (extra `demo`).
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from html import escape
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import parse_qsl

import gradio
from gradio.exceptions import InvalidPathError

from movers.encoders.cache import VECTORS
from movers.errors import InputError, RowError
from movers.inputs import check_text
from movers.io import Texts, csv_row, read_records
from movers.pictures import Explainer, Explanation
from movers.pictures.explain import FLAGS, about, frame, marked_texts, pictures
from movers.registry import METRICS, MetricSpec, find_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.options import OptionRow, option_rows

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

_IMAGES = {"png": "image/png", "svg": "image/svg+xml"}
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
    spec = find_metric(metric)
    rows = []
    for option in option_rows(spec.options_class):
        choices = option.choices or _OFFERED.get((option.name, option.default), ())
        if option.name == "preset":
            choices = (None, *spec.options_class.presets)
        if len(choices) > 1 and option.name not in _HIDDEN and not option.alias_of:
            rows.append(option._replace(choices=choices))
    return rows


def _typed(value: object) -> str:
    """A value as a person types it: `none`, `true`."""
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
        choices = {_typed(choice): choice for choice in rows[name].choices}
        if _typed(value) not in choices:
            got = repr(value)[:60] if isinstance(value, str) else type(value).__name__
            raise InputError(f"{metric}: {name}: expected one of {', '.join(choices)}, but got {got}")
        if _typed(value) != _typed(rows[name].default):
            chosen[name] = choices[_typed(value)]
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


def score_file(
    metric: str,
    path: str | None,
    options: object,
    columns: Sequence[object],
    track: Callable[..., Iterable[tuple[Example, ...]]] = lambda examples, total: examples,
) -> tuple[str, list[list[Any]]]:
    """Score two columns of an uploaded file: a line about the scores, and a table with a heading."""
    chosen, rows = chosen_options(metric, options), read_rows(metric, path, columns)
    scorer = Scorer(metric, **chosen, progress=False).prepare(rows)
    try:
        examples = [example for (example,) in track(scorer.stream(rows, total=len(rows)), total=len(rows))]
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
    return f"Mean {mean:.3f} over {len(rows):,} rows{flagged}. {scorer.signatures[metric]}", table


def _read_upload(path: str | None) -> list[dict[str, object]]:
    """The records of an uploaded file, whose size gradio limits."""
    if not path:
        raise InputError("file: expected a file, but got none")
    try:
        os.utime(path)  # gradio deletes it ten minutes after this
        with open(path, "rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
    except OSError:
        raise InputError("file: expected a file, but it has been deleted; upload it again") from None
    if compressed or Path(path).suffix.lower() not in FORMATS:
        raise InputError("file: expected JSONL, JSON, CSV or TSV with columns, uncompressed, but got another format")
    try:
        records = list(islice(read_records(path), FILE_ROWS + 1))
    except InputError as error:  # do not reveal the server's path
        raise InputError(str(error).replace(path, Path(path).name)) from None
    if not 0 < len(records) <= FILE_ROWS:
        raise InputError(f"file: expected 1 to {FILE_ROWS:,} rows, but got {'more' if records else 'none'}")
    return records


def find_columns(metric: str, path: str | None) -> tuple[list[str], list[str | None]]:
    """The columns of an uploaded file, and which to compare: the only one with a common name, or None."""
    names, compared = list(_read_upload(path)[0]), []
    for argument in ("predictions", find_metric(metric).compared_with):
        texts = Texts(str(path), argument)
        with suppress(InputError):
            next(texts.groups())
        compared.append(texts.column)
    return names, compared


def read_rows(metric: str, path: str | None, columns: Sequence[object]) -> list[Row]:
    """The rows of an uploaded file."""
    records, others = _read_upload(path), find_metric(metric).compared_with
    for argument, column in zip(("predictions", others), columns, strict=True):
        if column not in records[0]:
            expected = f"expected one of {', '.join(records[0])}, but got {column or 'none'!s:.60}"
            raise InputError(f"file: choose the column of {argument}: {expected}")
    rows = []
    for number, record in enumerate(records, 1):
        prediction, value = (record.get(str(column)) for column in columns)
        group = value if isinstance(value, list) and value else [value]
        for text in (prediction, *group):
            _check_length(f"file: row {number}", check_text("file", "row", str(number), text))
        rows.append(Row(cast("str", prediction), **{others: group}))
    return rows


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

from gradio.events import Dependency

class _Upload(gradio.File):
    """The path of an upload; gradio's own component leaves an empty file behind each time it is read."""

    is_template = True  # drawn as gradio's

    def preprocess(self, payload: Any) -> str | None:
        return payload and payload.path
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


def metric_page(name: str) -> gradio.Blocks:
    """The page of one metric; `launch(metric_page("wms"))` serves it."""
    return all_metrics_page([name])


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, by default of all."""
    specs = [find_metric(name) for name in names or METRICS]
    title, summary = "movers", "Compare a generated text with a reference, by embeddings and optimal transport."
    if len(specs) == 1:
        title, summary = specs[0].title, f"{specs[0].summary}."
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
        "footer_links": ["api"],
        **dict.fromkeys(("share", "run_history", "ssr_mode", "pwa", "enable_monitoring"), False),
    }
    VECTORS.capacity = min(VECTORS.capacity, VECTOR_BYTES)
    page.queue(max_size=WAITING).launch(**{**settings, **options})


class _PairTab:
    """Two texts, a table with a row per metric, and the picture of one of them."""

    def __init__(self, specs: Sequence[MetricSpec]) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.names = _NAMES[specs[0].compared_with]
        examples = {label: texts for spec in specs for label, *texts in about(spec.name)["examples"]}
        small: dict[str, Any] = {"size": "sm", "scale": 0, "min_width": 0}
        with gradio.Row():
            self.texts = [gradio.Textbox(text, label=name, lines=3, max_lines=8, min_width=280)
                          for name, text in zip(self.names, next(iter(examples.values())), strict=True)]  # fmt: skip
        with gradio.Row(elem_classes="movers-actions"):
            score = gradio.Button("Score", variant="primary", scale=0, min_width=120)
            shortcuts = [gradio.Button(label, **small) for label in examples]
        self.options = self._add_options()
        self.message, self.table = gradio.HTML(), gradio.HTML(**_TABLE)
        self.details, self.picture = gradio.HTML(), gradio.HTML()
        with gradio.Row(elem_classes="movers-actions"):
            link = gradio.Button("Copy link", **small)
            saves = {kind: gradio.Button(f"Save picture ({kind.upper()})", **small) for kind in _IMAGES}
            status, content = gradio.HTML(), gradio.Textbox(visible=False)
        self.chosen = gradio.Textbox(specs[0].name, visible=False)
        self.outputs = [self.message, self.table, self.details, self.picture, self.chosen]
        self.inputs = [self.chosen, *self.texts, *self.options.values()]
        events: dict[str, Any] = {"inputs": self.inputs, "outputs": self.outputs, **_PRIVATE, **_PAIRS}
        score.click(self.score, **events)
        self.table.select(self.choose, **events, **_CLICK)
        for shortcut, texts in zip(shortcuts, examples.values(), strict=True):
            shortcut.click(lambda texts=texts: texts, None, self.texts, **_PRIVATE).then(self.score, **events)
        # No result stands beside texts and options that it does not belong to.
        changes = [field.input for field in self.inputs[1:]]
        gradio.on(changes, None, None, self.outputs[:4], js="() => ['', null, '', '']", **_PRIVATE)
        link.click(None, self.inputs[:3], status, js="movers.link", **_PRIVATE)
        for kind, button in saves.items():
            event = button.click(partial(self.save, kind), self.inputs, content, **_PRIVATE, **_PAIRS)
            event.then(None, [content, self.chosen], None, js=f"(url, name) => movers.save(url, `${{name}}.{kind}`)")

    def _add_options(self) -> dict[str, gradio.Dropdown]:
        fields = {}
        with gradio.Accordion("Options", open=False), gradio.Row(elem_classes="movers-options"):
            for name in PAGE_OPTIONS:
                rows = {metric: row for metric in self.specs for row in form_rows(metric) if row.name == name}
                choices = dict.fromkeys(["default", *(choice for row in rows.values() for choice in row.choices)])
                for row in [*rows.values()][:1]:
                    info = f"{row.help} ({', '.join(rows)})"
                    fields[name] = gradio.Dropdown(list(choices), label=name, info=info, min_width=210)
        return fields

    def options_of(self, metric: str, values: Sequence[object]) -> dict[str, object]:
        """The chosen values that this metric offers; its other options have their defaults."""
        choices = {row.name: row.choices for row in form_rows(metric)}
        chosen = zip(self.options, map(str, values), strict=True)
        return {name: value for name, value in chosen if value in choices.get(name, ())}

    def explain(self, metric: str, first: str | None, second: str | None, *values: object) -> Explanation:
        for name, text in zip(self.names, (first, second), strict=True):
            _check_length(name, text or "")
        return score_pair(metric, first or "", [second or ""], self.options_of(metric, values))

    def score(self, chosen: str, *fields: Any) -> Iterator[dict[Any, Any]]:
        """Score by every metric, and show each score as soon as it is computed."""
        rows = {metric: (metric, spec.title, None, None, spec.summary) for metric, spec in self.specs.items()}
        explanations: list[Explanation] = []
        yield {self.table: _score_table(rows, chosen), self.message: ""}
        try:
            for metric, spec in self.specs.items():
                explanation = self.explain(metric, *fields)
                explanations.append(explanation)
                unrelated = _unrelated(metric, **self.options_of(metric, fields[2:]))
                rows[metric] = (metric, spec.title, explanation.score, unrelated, spec.summary)
                if spec.compared_with == "sources":  # the aspects that the score is made of
                    rows |= {name: ("", name, value, None, "") for name, value in explanation.numbers.items()}
                details = self._details(explanation) if metric == chosen else {}
                yield {self.table: _score_table(rows, chosen), self.message: _notes(explanations), **details}
        except InputError as error:
            yield {self.message: _alert(error), self.table: None, self.details: "", self.picture: ""}

    def choose(self, chosen: str, *fields: Any) -> dict[Any, Any]:
        """Show the picture of the row that was clicked."""
        try:
            return {self.chosen: chosen, **self._details(self.explain(chosen, *fields))}
        except InputError as error:
            return {self.message: _alert(error)}

    def save(self, kind: str, chosen: str, *fields: Any) -> str:
        """The picture as a data: address, so that no file stays on the server."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"picture.{kind}"
            try:
                self.explain(chosen, *fields).save(path)
            except InputError as error:
                raise gradio.Error(str(error), print_exception=False) from error
            return _data_address(_IMAGES[kind], path.read_bytes())

    def _details(self, explanation: Explanation) -> dict[Any, str]:
        """What stands behind a score: folded its parts, the paper's own scale and the signature; then the picture."""
        facts, numbers = about(explanation.metric), {"score": explanation.score, **explanation.numbers}
        items = "".join(f"<div><dt>{escape(name)}</dt><dd>{value:.3f}</dd></div>" for name, value in numbers.items())
        paper = f'<a href="https://doi.org/{facts["doi"]}">{escape(facts["paper"])}</a>' if facts["doi"] else ""
        details = (
            f'<details class="movers-details"><summary>About {escape(explanation.title)}</summary><dl>{items}</dl>'
            f"<p>{escape(facts['about'])} {paper}</p><p><code>{escape(explanation.signature)}</code></p></details>"
        )
        return {self.details: details, self.picture: _picture(explanation)}


def _score_table(rows: Mapping[str, Sequence[object]], chosen: str) -> dict[str, Any]:
    return {"head": ["Metric", "Score", "", "What it is"], "rows": list(rows.values()), "chosen": chosen}


@lru_cache(maxsize=64)
def _unrelated(metric: str, **options: object) -> float | None:
    """The mean score of unrelated texts: what rescaling maps to 0."""
    chosen = chosen_options(metric, options)
    if find_metric(metric).compared_with == "sources":
        return None
    return (
        0.0
        if chosen.get("rescale")
        else Scorer((metric, {**chosen, "rescale": True})).metrics[metric].baseline["score"]
    )


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
    marked = marked_texts(explanation) if find_metric(explanation.metric).compared_with == "sources" else ""
    return frame(marked + pictures(explanation), f"{explanation.title}: what was matched")


def _alert(error: InputError) -> str:
    """A message in the page itself: read aloud at once, and it stays until the next score."""
    return f'<p class="movers-error" role="alert">{escape(str(error))}</p>'


def _data_address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _add_file_tab(specs: Sequence[MetricSpec], form: _PairTab) -> None:
    """Upload, columns, progress, a table to sort, the picture of a row, download."""
    gradio.HTML(
        f"<p>JSONL, JSON, CSV or TSV with named columns, at most {FILE_ROWS:,} rows and {FILE_BYTES // 1_000_000} MB. "
        "The options are those of the first tab. The file is deleted ten minutes after its last use.</p>"
    )
    with gradio.Row():
        file = _Upload(label="File", file_types=list(FORMATS), height=150, min_width=280)
        with gradio.Column(min_width=280):
            titles = [(spec.title, spec.name) for spec in specs]
            metric = gradio.Dropdown(titles, label="Metric", visible=len(specs) > 1)
            with gradio.Row():
                # gradio forgets the choices with the session; a name that is no column is refused by `read_rows`.
                columns = [gradio.Dropdown([], label=f"{name} column", min_width=120, allow_custom_value=True)
                           for name in _NAMES[specs[0].compared_with]]  # fmt: skip
    button = gradio.Button("Score the file", variant="primary", elem_classes="movers-narrow")
    message, table, picture, clicked = (
        gradio.HTML(),
        gradio.HTML(**_TABLE),
        gradio.HTML(),
        gradio.Textbox(visible=False),
    )
    outputs, options, progress = [message, table, picture], list(form.options.values()), gradio.Progress()
    inputs = [metric, file, *columns, *options]

    def offer_columns(name: str, path: str | None) -> dict[Any, Any]:
        names, compared, alert = [], [None, None], ""
        try:
            names, compared = find_columns(name, path) if path else (names, compared)
        except InputError as error:
            alert = _alert(error)
        labels = _NAMES[find_metric(name).compared_with]
        fields = [gradio.Dropdown(names, value=column, label=f"{label} column")
                  for label, column in zip(labels, compared, strict=True)]  # fmt: skip
        return {**dict(zip(columns, fields, strict=True)), message: alert, table: None, picture: ""}

    def show(name: str, path: str | None, *values: Any, progress: Any = progress) -> dict[Any, Any]:
        try:
            chosen = form.options_of(name, values[2:])
            summary, (head, *rows) = score_file(name, path, chosen, values[:2], progress.tqdm)
        except InputError as error:
            return {message: _alert(error), table: None, picture: ""}
        # The link holds the file, so that none is written on the server.
        content = _data_address("text/csv", "".join(map(csv_row, [head, *rows])).encode())
        link = f'<a download="{name}-scores.csv" href="{content}">Download all scores (CSV)</a>'
        cells = [(number, number, score, *(str(text)[:200] for text in rest[:-3:-1])) for number, score, *rest in rows]
        return {
            message: f"<p>{escape(summary)} {link}</p>",
            table: {"head": ["Row", "Score", *_NAMES[find_metric(name).compared_with]], "rows": cells},
            picture: "<p>Choose a row to see its picture.</p>",
        }

    def choose(number: str, name: str, path: str | None, *values: Any) -> str:
        try:
            rows = read_rows(name, path, values[:2])
            row = dict(zip(map(str, range(1, len(rows) + 1)), rows, strict=True)).get(str(number), rows[0])
            chosen = chosen_options(name, form.options_of(name, values[2:]))
            return _picture(Explainer(name, chosen, rows).explain([row])[0])
        except InputError as error:
            return _alert(error)

    gradio.on([file.change, metric.input], offer_columns, [metric, file], [*columns, *outputs], **_PRIVATE)
    changes = [field.input for field in (*columns, *options)]
    gradio.on(changes, None, None, outputs, js="() => ['', null, '']", **_PRIVATE)
    button.click(show, inputs, outputs, api_visibility="private", **_FILES)
    table.select(choose, [clicked, *inputs], picture, **_CLICK, **_PRIVATE, **_FILES)


def _add_endpoint(spec: MetricSpec) -> None:
    """The metric for programs."""

    def answer(prediction: str, references: list[str], options: dict[str, object] | None = None) -> dict[str, Any]:
        try:
            explanation = score_pair(spec.name, prediction, references, options or {})
        except InputError as error:
            raise gradio.Error(str(error), print_exception=False) from error
        flows = [
            {"from": panel.left[flow.i].text, "to": panel.right[flow.j].text, panel.measure: flow.share,
             "cost": flow.cost}
            for panel in explanation.pictures[0].panels[-1:] for flow in panel.flows
        ]  # fmt: skip
        numbers = {"score": explanation.score, **explanation.numbers}
        return {**numbers, "signature": explanation.signature, "flows": flows}

    gradio.api(answer, api_name=spec.name, api_description=f"{spec.title}: {spec.summary}", **_PAIRS)


def _guide(address: str, specs: Sequence[MetricSpec]) -> str:
    """How a program calls the page, whose visitor sees it at that address."""
    options = "\n".join(f"- `/{spec.name}`: {', '.join(row.name for row in form_rows(spec.name))}" for spec in specs)
    text = (_DATA / "api.md").read_text(encoding="utf-8")
    return text.format(address=address, metric=specs[0].name, references=REFERENCES, options=options)
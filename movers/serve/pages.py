"""The pages themselves: fields, buttons and tabs, made with gradio."""

from __future__ import annotations

import base64
import contextlib
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

import gradio
from starlette.middleware import Middleware

from movers.errors import InputError
from movers.papers import PAPERS
from movers.registry import METRICS, MetricSpec, find_metric
from movers.serve.answers import FileAnswer, Pair, chosen_options, form_rows
from movers.serve.examples import EXAMPLES
from movers.serve.guard import Guard, GuardedPage, sweep_regularly, upload_folder, visitor
from movers.serve.lanes import LONG, SHORT, lane_for
from movers.serve.limits import LIMITS, check_seconds

__all__ = ["all_metrics_page", "launch", "metric_page"]

_FILE_SECONDS = 5.0  # of work that an upload is taken for while others wait; its rows are counted when it is read
_SCORING = {"concurrency_id": "score", "concurrency_limit": 28}  # more than may wait: those are told so at once
_FILES = [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz"]
# A picture tells how tall it is; nothing else is listened to.
_HEAD = """<script>
window.addEventListener("message", (event) => {
  const height = event.data && event.data.moversHeight;
  if (typeof height !== "number" || !(height > 0 && height < 100000)) return;
  for (const frame of document.querySelectorAll("iframe.movers-frame"))
    if (frame.contentWindow === event.source) frame.style.height = Math.ceil(height) + "px";
});
</script>"""


def metric_page(name: str) -> gradio.Blocks:
    """The page of one metric; `launch(metric_page("wms"))` serves it."""
    spec = find_metric(name)
    with _page(spec.title) as page:
        panel = _Panel.add(spec)
        page.load(
            panel.score, panel.inputs, panel.outputs, api_visibility="private", **_SCORING
        )  # a result before the first click
    return page


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, of which one is shown at a time; all metrics by default."""
    specs = [find_metric(name) for name in names or METRICS]
    with _page("movers") as page:
        gradio.Markdown("# movers\n\nText-generation metrics based on embeddings and optimal transport.")
        choice = gradio.Radio([(spec.title, spec.name) for spec in specs], value=specs[0].name, label="Metric")
        columns = []
        for spec in specs:
            with gradio.Column(visible=spec is specs[0]) as column:
                panel = _Panel.add(spec, level=2)
            columns.append(column)
            if spec is specs[0]:
                page.load(panel.score, panel.inputs, panel.outputs, api_visibility="private", **_SCORING)
        shown = [spec.name for spec in specs]
        choice.change(
            lambda name: [gradio.Column(visible=name == other) for other in shown],
            choice,
            columns,
            api_visibility="private",
            show_progress="hidden",
        )
    return page


def launch(page: gradio.Blocks, **options: object) -> None:
    """Serve a page, on this machine alone unless `server_name` says otherwise.

    Uploads are limited in size; there is no share link; what a page needs comes from this server.
    """
    files = resources.files("movers.serve")
    settings: dict[str, object] = {
        "share": False,
        "inbrowser": False,
        "max_file_size": LIMITS.file_bytes,
        "css": files.joinpath("page.css").read_text(encoding="utf-8"),
        "head": _HEAD,
        "theme": gradio.themes.Default(
            primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
        "enable_monitoring": False,
        "state_session_capacity": LIMITS.sessions,
    }
    guard = Middleware(Guard, uploads=upload_folder())
    page.queue(default_concurrency_limit=4, max_size=32)
    page._queue.pending_messages_per_session.max_size = LIMITS.sessions  # gradio keeps answers nobody fetches of 2,000
    metrics = [fn.api_name for fn in page.fns.values() if fn.api_name in METRICS]
    threading.Thread(target=_warm_up, args=[metrics], daemon=True).start()
    threading.Thread(target=sweep_regularly, args=[upload_folder()], daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, which deletes uploads too
    page.launch(**{**settings, "app_kwargs": {"middleware": [guard]}, **options})


def _page(title: str) -> gradio.Blocks:
    """An empty page.

    Texts under evaluation may be confidential: no usage data leaves it. Uploads are deleted when they have been scored,
    after ten minutes, and with the server, which has a folder of its own for them.
    """
    upload_folder()
    return GuardedPage(title=title, analytics_enabled=False, delete_cache=(60, 600))


def _warm_up(metrics: Sequence[str]) -> None:
    """Load what short requests need before the first visitor waits for it."""
    for name in metrics:
        with contextlib.suppress(InputError):
            SHORT.ask({"kind": "pair", "pair": Pair(name, "snow", ["ice"], {})}, 0.0)


def _download(name: str, content: str) -> str:
    """A link that holds the file, so that none is written on the server."""
    data = base64.b64encode(content.encode()).decode()
    return (
        f'<a class="movers-download" download="{name}" href="data:text/csv;base64,{data}">Download all scores (CSV)</a>'
    )


def _alert(error: InputError) -> str:
    """A message in the page itself: read aloud at once, and it stays until the next score."""
    return f'<p class="movers-error" role="alert">{escape(str(error))}</p>'


@dataclass(frozen=True)
class _Panel:
    """The fields of one metric and the events that score with them."""

    spec: MetricSpec
    inputs: list[gradio.components.Component]  # prediction, references, options
    outputs: list[gradio.components.Component]  # score, signature, picture

    @classmethod
    def add(cls, spec: MetricSpec, level: int = 1) -> _Panel:
        """Add the fields to the page under construction, below a heading of that level."""
        paper = PAPERS[spec.name]
        gradio.Markdown(
            f"{'#' * level} {spec.title}\n\n{paper.about} [{paper.authors}: {paper.title}]({paper.address})"
        )
        with gradio.Tabs():
            with gradio.Tab("A pair"):
                texts, add = _text_fields(spec)
                gradio.Markdown("Examples")
                with gradio.Row():
                    examples = [gradio.Button(each.label, size="sm", min_width=220) for each in EXAMPLES[spec.name]]
                options = _option_fields(spec)
                button = gradio.Button("Score", variant="primary")
                panel = cls(spec, [*texts, *options], _answer_fields())
                button.click(panel.score, panel.inputs, panel.outputs, api_visibility="private", **_SCORING)
                panel.connect_examples(texts, examples)
                panel.connect_references(texts, add)
            with gradio.Tab("A file"):
                panel.add_files(options)
            with gradio.Tab("API"):
                gradio.Markdown(panel.api_text())
        gradio.api(panel.answer, api_name=spec.name, api_description=f"{spec.title}: {spec.summary}", **_SCORING)
        return panel

    # --- a pair ---

    def score(self, prediction: str | None, *values: object) -> tuple[str, str, str]:
        """What the page shows for its fields."""
        references = [str(value or "") for value in values[: LIMITS.references]]
        try:
            answer = self._ask(prediction or "", references, self._options(values[LIMITS.references :]))
        except InputError as error:
            return _alert(error), "", ""
        return answer["summary"], answer["result"]["signature"], answer["picture"]

    def answer(self, prediction: str, references: list[str], options: dict[str, object] | None = None) -> dict:
        """One prediction against its references (or documents), for programs."""
        try:
            return self._ask(prediction, references, options or {})["result"]
        except InputError as error:
            raise gradio.Error(str(error), print_exception=False) from error

    def _ask(self, prediction: object, references: object, options: object) -> dict:
        pair = Pair.check(self.spec.name, prediction, references, options)
        seconds = check_seconds(self.spec.name, pair.seconds)
        return lane_for(seconds).ask({"kind": "pair", "pair": pair}, seconds, visitor=visitor())

    def _options(self, values: Sequence[object]) -> dict[str, object]:
        return dict(zip([row.name for row in form_rows(self.spec.name)], values, strict=True))

    def connect_examples(self, texts: list[gradio.Textbox], buttons: Sequence[gradio.Button]) -> None:
        """Let each button fill the fields and score."""
        for example, button in zip(EXAMPLES[self.spec.name], buttons, strict=True):
            values = [example.prediction, example.other, *[""] * (LIMITS.references - 1)]
            filled = button.click(_Constant(values), None, texts, api_visibility="private", show_progress="hidden")
            filled.then(self.score, self.inputs, self.outputs, api_visibility="private", **_SCORING)

    def connect_references(self, texts: list[gradio.Textbox], add: gradio.Button) -> None:
        """Let the button show one more field."""
        shown = gradio.State(1)
        fields = texts[2:]
        add.click(
            lambda count: [
                min(count + 1, LIMITS.references),
                *(gradio.Textbox(visible=place < count) for place in range(len(fields))),
                gradio.Button(interactive=count + 1 < LIMITS.references),
            ],
            shown,
            [shown, *fields, add],
            api_visibility="private",
            show_progress="hidden",
        )

    # --- a file ---

    def add_files(self, options: list[gradio.components.Component]) -> None:
        """Upload, progress, table, plot, download."""
        other = self.spec.compared_with.removesuffix("s")
        gradio.Markdown(
            f"A file with a column of predictions and one of {self.spec.compared_with}: JSONL, CSV, TSV or Parquet, at "
            f"most {LIMITS.rows:,} rows and {LIMITS.file_bytes // 1_000_000} MB. The options are those of the first "
            "tab. The file is deleted when it has been scored."
        )
        file = gradio.File(label="File", file_types=_FILES, type="filepath")
        with gradio.Row():
            columns = [
                gradio.Textbox(label=label, placeholder="found by its name", lines=1, max_lines=1)
                for label in ("Column of predictions", f"Column of {other}s")
            ]
        button = gradio.Button("Score the file", variant="primary")
        summary = gradio.HTML(elem_classes="movers-file-summary")
        plot = gradio.HTML()
        table = gradio.Dataframe(label="Rows", interactive=False, wrap=True, visible=False)
        download = gradio.HTML()
        button.click(
            self.score_file,
            [file, *columns, *options],
            [summary, plot, table, download],
            api_visibility="private",
            **_SCORING,
        )

    def score_file(
        self,
        path: str | None,
        prediction_column: str,
        other_column: str,
        *values: object,
        progress: gradio.Progress = gradio.Progress(),  # noqa: B008 (how gradio finds it)
    ) -> tuple[str, str, gradio.Dataframe, str]:
        """Score an uploaded file and delete it."""
        if not path:
            return _alert(InputError("file: expected a file, but got none")), "", gradio.Dataframe(visible=False), ""
        try:
            options = self._options(values)
            chosen_options(self.spec.name, options)
            columns = [str(column or "")[: LIMITS.option_characters] for column in (prediction_column, other_column)]
            request = {"kind": "file", "metric": self.spec.name, "path": path, "options": options, "columns": columns}
            found = LONG.ask(
                request, _FILE_SECONDS, lambda done, of: progress((done, of), desc="Scoring", unit="rows"), visitor()
            )
        except InputError as error:
            return _alert(error), "", gradio.Dataframe(visible=False), ""
        finally:
            Path(path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # gradio makes a folder for every file
                Path(path).parent.rmdir()
        answer = FileAnswer(**found)
        kinds = ["number"] * (len(answer.heading) - 1) + ["str"]
        return (
            f"<p>{escape(answer.summary)}</p><p><code>{escape(answer.signature)}</code></p>",
            answer.plot,
            gradio.Dataframe(value=answer.rows, headers=answer.heading, datatype=kinds, visible=True),
            _download(f"{self.spec.name}-scores.csv", answer.csv),
        )

    def api_text(self) -> str:
        """How programs call the page."""
        name, other = self.spec.name, "documents" if self.spec.compared_with == "sources" else "references"
        rows = "\n".join(
            f"| `{row.name}` | {row.values} | `{str(row.default).lower()}` | {row.help} |" for row in form_rows(name)
        )
        return f"""
Every metric is an endpoint: the prediction, a list of 1 to {LIMITS.references} {other}, and the options that differ
from their defaults. The answer has the score, its signature and the flows of the best alignment.

```python
from gradio_client import Client

client = Client("http://127.0.0.1:7860")  # or "organisation/{name}" for a Space
result = client.predict("Snow is sold online.", ["A man sells snow."], {{}}, api_name="/{name}")
print(result["score"], result["signature"])
```

| option | values | default | meaning |
|---|---|---|---|
{rows}
"""


@dataclass(frozen=True)
class _Constant:
    """A function that always returns the same values."""

    values: list[str]

    def __call__(self) -> list[str]:
        return self.values


# --- fields ----------------------------------------------------------------------------------------------------------


def _text_fields(spec: MetricSpec) -> tuple[list[gradio.Textbox], gradio.Button]:
    """Prediction and references, of which the first is shown, and the button that shows more."""
    first, other = ("Summary", "Document") if spec.compared_with == "sources" else ("Prediction", "Reference")
    example = EXAMPLES[spec.name][0]
    with gradio.Row():
        with gradio.Column(min_width=280):
            prediction = gradio.Textbox(label=first, value=example.prediction, lines=5, max_length=LIMITS.characters)
        with gradio.Column(min_width=280):
            others = [
                gradio.Textbox(
                    label=other if place == 0 else f"{other} {place + 1}",
                    value=example.other if place == 0 else "",
                    lines=5 if place == 0 else 2,
                    visible=place == 0,
                    max_length=LIMITS.characters,
                )
                for place in range(LIMITS.references)
            ]
            add = gradio.Button(f"Add a {other.lower()}", size="sm")
    return [prediction, *others], add


def _option_fields(spec: MetricSpec) -> list[gradio.components.Component]:
    """The form, made from the metric's options."""
    found: list[gradio.components.Component] = []
    with gradio.Accordion("Options", open=False), gradio.Row(elem_classes="movers-options"):
        for row in form_rows(spec.name):
            label = {"label": row.name, "info": row.help, "min_width": 230}
            if isinstance(row.default, bool):
                found.append(gradio.Checkbox(value=row.default, **label))
            elif row.choices:
                found.append(gradio.Dropdown(list(row.choices), value=row.default, **label))
            else:
                found.append(gradio.Textbox(value=row.default, max_length=200, lines=1, max_lines=1, **label))
    return found


def _answer_fields() -> list[gradio.components.Component]:
    score = gradio.HTML(elem_classes="movers-score")
    signature = gradio.Textbox(label="Signature: model and options", interactive=False, lines=1, buttons=["copy"])
    picture = gradio.HTML(elem_classes="movers-picture", padding=False)
    return [score, signature, picture]

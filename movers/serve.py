"""Pages to try the metrics on: one for a single metric (its Space), one for all of them (`movers serve`).

A page has an API of its own: every metric is an endpoint of its name.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio

from movers.registry import METRICS, Metric, find_metric

__all__ = ["ALIGNMENT_COLUMNS", "PairResult", "all_metrics_page", "metric_page", "score_pair"]

ALIGNMENT_COLUMNS = ("From the prediction", "To the reference", "Mass", "Cost", "Mass × cost")
_REFERENCE = "After the blizzard, villagers cleared the snow from the baker's shop. By midday it sold loaves again."
_DOCUMENT = (
    "A blizzard closed every road to the village on Monday night. By morning the door of the only bakery was buried "
    "under two metres of snow. Some thirty villagers came with shovels and cleared it within hours. Bread was on sale "
    "again at noon."
)
_EXAMPLES = {
    "references": [
        ["Neighbours dug out the village bakery after the storm. Bread was on sale by noon.", _REFERENCE],
        ["The storm hit the village. The storm hit the village. The storm hit the village.", _REFERENCE],
        ["Shares in the shipping company fell for a third day.", _REFERENCE],
    ],
    "sources": [
        ["Villagers dug out their bakery, which reopened at noon.", _DOCUMENT],
        ["Bread bread noon the the closed.", _DOCUMENT],
    ],
}


class PairResult(NamedTuple):
    """What a page shows of a pair: score with four significant digits, signature, rows of `ALIGNMENT_COLUMNS`."""

    score: str
    signature: str
    alignment: list[list[Any]]


def score_pair(name: str, prediction: str, against: str) -> PairResult:
    """Score one prediction against one reference (or source).

    >>> score_pair("wms", "Snow melts.", "Snow melts.").score
    '1'
    """
    metric = find_metric(name)
    options = {"return_alignment": True} if _has_alignments(metric) else {}
    result = metric.function([prediction], [against], **options)
    alignments = result.get("alignments")
    return PairResult(
        f"{result['score']:.4g}", result["signature"], _alignment_rows(alignments[0][0]) if alignments else []
    )


def _has_alignments(metric: Metric) -> bool:
    return "return_alignment" in inspect.signature(metric.function).parameters


def _alignment_rows(alignment: dict[str, Any]) -> list[list[Any]]:
    """One row a flow, in the order of the prediction, its largest flows first; then their total."""
    if not alignment.get("flows"):
        return []  # a side is blank: nothing moves
    flows = sorted(alignment["flows"], key=lambda flow: (flow["i"], -flow["mass"]))
    prediction, reference = alignment["prediction"], alignment["reference"]
    masses = [flow["mass"] for flow in flows]
    costs = [flow["cost"] for flow in flows]
    parts = [mass * cost for mass, cost in zip(masses, costs, strict=True)]
    froms = [prediction[flow["i"]]["text"] for flow in flows]
    tos = [reference[flow["j"]]["text"] for flow in flows]
    rows = zip(froms, tos, map(_short, masses), map(_short, costs), map(_short, parts), strict=True)
    return [*map(list, rows), ["total", "", _short(math.fsum(masses)), "", _short(math.fsum(parts))]]


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def metric_page(name: str) -> gradio.Blocks:
    """The page of one metric; `metric_page("wms").launch()` serves it."""
    metric = find_metric(name)
    with _page(metric.title) as page:
        gradio.Markdown(f"# {metric.title}")
        event = _add_metric(metric)
        page.load(**event, api_visibility="private")  # a visitor sees a result before the first click
    return page


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, each on its tab; all of them by default."""
    with _page("movers") as page:
        gradio.Markdown("# movers\n\nText-generation metrics that compare meanings: embeddings and optimal transport.")
        for metric in map(find_metric, names or METRICS):
            with gradio.Tab(metric.title):
                _add_metric(metric)
    return page


def _page(title: str) -> gradio.Blocks:
    # Texts under evaluation may be confidential: no usage data leaves the page.
    return gradio.Blocks(title=title, analytics_enabled=False)


def _add_metric(metric: Metric) -> dict[str, Any]:
    """Put a metric's fields into the page that is being built; what happens when a pair is to be scored."""
    pairs = _EXAMPLES[metric.against]

    def score(prediction: str, against: str) -> PairResult:
        try:
            return score_pair(metric.name, prediction, against)
        except (TypeError, ValueError) as error:
            raise gradio.Error(str(error), print_exception=False) from error

    labels = ("Summary", "Document") if metric.against == "sources" else ("Prediction", "Reference")
    gradio.Markdown(f"`{metric.name}` {metric.summary}.")
    with gradio.Row():
        prediction, against = (
            gradio.Textbox(label=label, value=text, lines=5) for label, text in zip(labels, pairs[0], strict=True)
        )
    examples = gradio.Examples(pairs, [prediction, against])
    button = gradio.Button("Score", variant="primary")
    with gradio.Row(equal_height=True):
        number = gradio.Textbox(label="Score", interactive=False, scale=1, min_width=120)
        signature = gradio.Textbox(label="Signature: what it was computed with", interactive=False, scale=6, lines=2)
    table = gradio.Dataframe(
        label="What moved where",
        headers=list(ALIGNMENT_COLUMNS),
        datatype=["str", "str", "number", "number", "number"],
        column_count=(len(ALIGNMENT_COLUMNS), "fixed"),
        column_widths=["30%", "30%", "13%", "13%", "14%"],
        interactive=False,
        wrap=True,
        visible=_has_alignments(metric),
    )
    event = {"fn": score, "inputs": [prediction, against], "outputs": [number, signature, table]}
    button.click(**event, api_name=metric.name)
    examples.load_input_event.then(**event, api_visibility="private")
    return event

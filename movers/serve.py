"""Web pages to try the metrics: one for a single metric (its Space), one for all of them (`movers serve`).

A page has an API: every metric is an endpoint of its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import gradio

from movers.errors import InputError
from movers.registry import METRICS, MetricSpec, find_metric

__all__ = ["ALIGNMENT_COLUMNS", "PairResult", "all_metrics_page", "metric_page", "score_pair"]

ALIGNMENT_COLUMNS = ("In the prediction", "In the reference", "Mass", "Cost", "Mass × cost")
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
    """What a page shows for a pair: the score with four significant digits, signature, rows of `ALIGNMENT_COLUMNS`."""

    score: str
    signature: str
    alignment: list[list[str | float]]


def score_pair(name: str, prediction: str, reference: str) -> PairResult:
    """Score one prediction against one reference (or source document).

    >>> score_pair("wms", "Snow melts.", "Snow melts.").score
    '1'
    """
    spec = find_metric(name)
    options = {"return_alignment": True} if _has_alignments(spec) else {}
    result = spec.function([prediction], [reference], **options)
    alignments = result.get("alignments")
    return PairResult(
        f"{result['score']:.4g}", result["signature"], _alignment_rows(alignments[0][0]) if alignments else []
    )


def _has_alignments(spec: MetricSpec) -> bool:
    return any(item.name == "return_alignment" for item in fields(spec.options_class))


def _alignment_rows(alignment: Mapping[str, Any]) -> list[list[str | float]]:
    """One row per flow, in the order of the prediction, its largest flows first; then their total."""
    if not alignment.get("flows"):
        return []  # one of the texts is blank
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
    spec = find_metric(name)
    with _page(spec.title) as page:
        gradio.Markdown(f"# {spec.title}")
        event = _add_metric(spec)
        page.load(**event, api_visibility="private")  # shows a result before the first click
    return page


def all_metrics_page(names: Sequence[str] | None = None) -> gradio.Blocks:
    """The page of several metrics, one tab each; all metrics by default."""
    with _page("movers") as page:
        gradio.Markdown("# movers\n\nText-generation metrics based on embeddings and optimal transport.")
        for spec in map(find_metric, names or METRICS):
            with gradio.Tab(spec.title):
                _add_metric(spec)
    return page


def _page(title: str) -> gradio.Blocks:
    # Texts under evaluation may be confidential: no usage data leaves the page.
    return gradio.Blocks(title=title, analytics_enabled=False)


def _add_metric(spec: MetricSpec) -> dict[str, Any]:
    """Add a metric's fields to the page under construction; returns the arguments of the event that scores a pair."""
    pairs = _EXAMPLES[spec.compared_with]

    def score(prediction: str, reference: str) -> PairResult:
        try:
            return score_pair(spec.name, prediction, reference)
        except InputError as error:
            raise gradio.Error(str(error), print_exception=False) from error

    labels = ("Summary", "Document") if spec.compared_with == "sources" else ("Prediction", "Reference")
    gradio.Markdown(f"`{spec.name}` {spec.summary}.")
    with gradio.Row():
        prediction, reference = (
            gradio.Textbox(label=label, value=text, lines=5) for label, text in zip(labels, pairs[0], strict=True)
        )
    examples = gradio.Examples(pairs, [prediction, reference])
    button = gradio.Button("Score", variant="primary")
    with gradio.Row(equal_height=True):
        number = gradio.Textbox(label="Score", interactive=False, scale=1, min_width=120)
        signature = gradio.Textbox(label="Signature: model and options", interactive=False, scale=6, lines=2)
    table = gradio.Dataframe(
        label="Alignment: what was matched, and at what cost",
        headers=list(ALIGNMENT_COLUMNS),
        datatype=["str", "str", "number", "number", "number"],
        column_count=(len(ALIGNMENT_COLUMNS), "fixed"),
        column_widths=["30%", "30%", "13%", "13%", "14%"],
        interactive=False,
        wrap=True,
        visible=_has_alignments(spec),
    )
    event = {"fn": score, "inputs": [prediction, reference], "outputs": [number, signature, table]}
    button.click(**event, api_name=spec.name)
    examples.load_input_event.then(**event, api_visibility="private")
    return event

"""The bundled example: every metric on six candidates, in one table, and what moved where in one of them."""

from __future__ import annotations

import json
import sys
from importlib import resources
from typing import Any

from movers.registry import METRICS, Metric

__all__ = ["example", "flow_lines", "run", "table_lines"]


def example() -> dict[str, Any]:
    """The bundled texts: `document`, `reference` and `candidates` (each with `name` and `text`)."""
    return json.loads(resources.files("movers").joinpath("data", "demo.json").read_text(encoding="utf-8"))


def _scores(metric: Metric, texts: dict[str, Any]) -> list[float]:
    predictions = [candidate["text"] for candidate in texts["candidates"]]
    other = texts["document"] if metric.against == "sources" else texts["reference"]
    return metric.function(predictions, [other] * len(predictions), progress=False)["scores"]


def table_lines(names: list[str], columns: dict[str, list[float]]) -> list[str]:
    """One row a candidate, one column a metric, four significant digits."""
    first = max(map(len, names))
    widths = {metric: max(len(metric), 9) for metric in columns}
    lines = [" " * first + "".join(f"  {metric:>{width}}" for metric, width in widths.items())]
    for row, name in enumerate(names):
        cells = (f"  {columns[metric][row]:>{width}.4g}" for metric, width in widths.items())
        lines.append(f"{name:<{first}}" + "".join(cells))
    return lines


def flow_lines(alignment: dict[str, Any], most: int = 8, width: int = 44) -> list[str]:
    """The largest flows of an alignment as arrows.

    >>> unit = [{"text": "snow"}]
    >>> flow_lines({"prediction": unit, "reference": unit, "flows": [{"i": 0, "j": 0, "mass": 1.0, "cost": 0.0}]})
    ['100.0 %  snow → snow   at distance 0']
    """
    flows = sorted(alignment["flows"], key=lambda flow: -flow["mass"])[:most]

    def short(text: str) -> str:
        return text if len(text) <= width else text[: width - 1] + "…"

    rows = [
        (short(alignment["prediction"][flow["i"]]["text"]), short(alignment["reference"][flow["j"]]["text"]), flow)
        for flow in flows
    ]
    left = max((len(row[0]) for row in rows), default=0)
    right = max((len(row[1]) for row in rows), default=0)
    return [
        f"{100 * flow['mass']:5.1f} %  {a:<{left}} → {b:<{right}}   at distance {flow['cost']:.3g}"
        for a, b, flow in rows
    ]


def run() -> int:
    """Print the table and the flows."""
    from tqdm import tqdm

    texts = example()
    print("Reference:\n  " + texts["reference"] + "\n")
    for candidate in texts["candidates"]:
        print(f"{candidate['name']}:\n  {candidate['text']}")
    columns = {}
    for metric in tqdm(list(METRICS.values()), desc="scoring", disable=None, leave=False, file=sys.stderr):
        columns[metric.name] = _scores(metric, texts)
    print()
    print("\n".join(table_lines([candidate["name"] for candidate in texts["candidates"]], columns)))
    shown = texts["candidates"][1]
    result = METRICS["sms"].function([shown["text"]], [texts["reference"]], return_alignment=True, progress=False)
    print(f"\nWhat sms moved where for '{shown['name']}' (share of mass, from candidate → to reference):")
    print("\n".join(flow_lines(result["alignments"][0][0])))
    print(f"\n{result['signature']}")
    return 0

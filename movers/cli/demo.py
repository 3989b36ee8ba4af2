"""`movers demo`: all metrics on six candidates in one table, and one alignment."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from movers.cli.arguments import Subparsers, check_picture
from movers.io import align_table, progress_bar
from movers.registry import METRICS

_SHORT = {"bertscore_hungarian": "bertscore_hung.", "reference_free_summary_quality": "ref.-free"}


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "demo",
        help="score a bundled example with every metric",
        description="Score six candidates of a bundled example with every metric, and show one alignment.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="draw the alignment: .html, .svg or .png")
    parser.set_defaults(run=run)


def example() -> dict[str, Any]:
    """The bundled texts: `document`, `reference` and `candidates` (each with `name` and `text`)."""
    return json.loads(resources.files("movers").joinpath("data", "demo.json").read_text(encoding="utf-8"))


def flow_lines(alignment: Mapping[str, Any], most: int = 8, width: int = 44) -> list[str]:
    """The largest flows of an alignment as arrows.

    >>> unit = [{"text": "snow"}]
    >>> flow_lines({"prediction": unit, "reference": unit, "flows": [{"i": 0, "j": 0, "mass": 1.0, "cost": 0.0}]})
    ['100.0 %  snow → snow  at distance 0']
    """
    flows = sorted(alignment["flows"], key=lambda flow: -flow["mass"])[:most]
    rows = [
        [
            f"{100 * flow['mass']:.1f} %",
            _short(alignment["prediction"][flow["i"]]["text"], width),
            "→ " + _short(alignment["reference"][flow["j"]]["text"], width),
            f"at distance {flow['cost']:.3g}",
        ]
        for flow in flows
    ]
    return align_table([], rows, {0})


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def run(arguments: argparse.Namespace) -> int:
    """Print the table and an alignment, and draw it on request."""
    if arguments.output is not None:
        check_picture(arguments.output)
    texts = example()
    print("Reference:\n  " + texts["reference"] + "\n")
    for candidate in texts["candidates"]:
        print(f"{candidate['name']}:\n  {candidate['text']}")
    predictions = [candidate["text"] for candidate in texts["candidates"]]
    columns: dict[str, Sequence[float]] = {}
    for metric in progress_bar(desc="scoring", unit=" metrics", iterable=list(METRICS.values()), delay=0):
        other = texts["document"] if metric.compared_with == "sources" else texts["reference"]
        options = {} if metric.compared_with == "sources" else {"rescale": True}
        compared = [other] * len(predictions)
        columns[metric.name] = metric.function(predictions, compared, progress=False, **options)["scores"]
    print("\nScores in percent, rescaled: 100 for a text equal to the reference, around 0 for unrelated texts.")
    print("The last column, reference_free_summary_quality, compares with the source document (0 to 100).")
    print("\n".join(_table([candidate["name"] for candidate in texts["candidates"]], columns)))
    shown = texts["candidates"][1]
    result = METRICS["sms"].function([shown["text"]], [texts["reference"]], return_alignment=True, progress=False)
    print(f"\nSentence alignment of sms for '{shown['name']}' (share of mass, candidate → reference):")
    print("\n".join(flow_lines(result["alignments"][0][0])))
    print(f"\n{result['signature']}")
    if arguments.output is not None:
        from movers.explain import explain

        explain("swms", shown["text"], texts["reference"]).save(arguments.output)
        print(f"\nWord and sentence alignment of the same pair (swms): {os.path.abspath(arguments.output)}")
    return 0


def _table(names: Sequence[str], columns: Mapping[str, Sequence[float]]) -> list[str]:
    rows = [[name, *(f"{100 * scores[row]:.0f}" for scores in columns.values())] for row, name in enumerate(names)]
    return align_table(["candidate", *(_SHORT.get(name, name) for name in columns)], rows, range(1, len(columns) + 1))

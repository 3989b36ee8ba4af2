"""`movers demo`: all metrics on six candidates in one table, and one alignment."""

from __future__ import annotations

import argparse
import json
import os
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


def run(arguments: argparse.Namespace) -> int:
    """Print the table and an alignment, and draw it on request."""
    if arguments.output is not None:
        check_picture(arguments.output)
    from movers.pictures import explain

    texts = example()
    names, predictions = zip(*((item["name"], item["text"]) for item in texts["candidates"]), strict=True)
    print(f"Reference:\n  {texts['reference']}\n")
    for name, text in zip(names, predictions, strict=True):
        print(f"{name}:\n  {text}")
    columns = []
    for metric in progress_bar(desc="scoring", unit=" metrics", iterable=list(METRICS.values()), delay=0):
        from_source = metric.compared_with == "sources"
        compared = [texts["document" if from_source else "reference"]] * len(predictions)
        options = {} if from_source else {"rescale": True}
        columns.append(metric.function(predictions, compared, progress=False, **options)["scores"])
    print("\nScores in percent, rescaled: 100 for a text equal to the reference, around 0 for unrelated texts.")
    print("The last column, reference_free_summary_quality, compares with the source document (0 to 100).")
    scores = zip(*columns, strict=True)
    rows = [[name, *(f"{100 * score:.0f}" for score in row)] for name, row in zip(names, scores, strict=True)]
    heading = ["candidate", *(_SHORT.get(name, name) for name in METRICS)]
    print("\n".join(align_table(heading, rows, range(1, len(heading)))))
    print(f"\nSentence alignment of sms for '{names[1]}':")
    print(explain("sms", predictions[1], texts["reference"]))
    if arguments.output is not None:
        explain("swms", predictions[1], texts["reference"]).save(arguments.output)
        print(f"\nWord and sentence alignment of the same pair (swms): {os.path.abspath(arguments.output)}")
    return 0

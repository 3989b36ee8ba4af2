"""What unrelated texts of 5, 25 and 100 words score with `wms`, `sms` and `swms`.

    python benchmarks/unrelated_lengths.py --output benchmarks/results/unrelated_lengths.md

The beginnings of news articles of the SummEval set, each against that of the next article.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import data_folder, machine

import movers
from movers.io import read_records, write_file

METRICS = ("wms", "sms", "swms")
LENGTHS = (5, 25, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = read_records(data_folder() / "human" / "summeval.jsonl.gz")
    documents = list({str(row["doc"]): str(row["source"]).split() for row in rows}.values())
    lines = ["| words | " + " | ".join(METRICS) + " |", "|---|" + "---|" * len(METRICS)]
    for length in LENGTHS:
        texts = [" ".join(words[:length]) for words in documents if len(words) >= length]
        cells = []
        for name in METRICS:
            scores = getattr(movers, name)(texts, texts[1:] + texts[:1], progress=False)["scores"]
            low, middle, high = np.quantile(scores, [0.05, 0.5, 0.95])
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {length} | " + " | ".join(cells) + " |")
    head = "# Scores of unrelated texts by length\n\nMedian (5th to 95th percentile) over "
    text = f"{head}{len(documents)} pairs of beginnings of unrelated articles (SummEval).\n\n" + "\n".join(lines)
    text += f"\n\n{machine()}\n"
    print(text)
    if arguments.output is not None:
        write_file(arguments.output, text)


if __name__ == "__main__":
    main()

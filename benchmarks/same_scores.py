"""Score 300 rows of every judged set with every metric in three settings, to compare two states of the code.

    python benchmarks/same_scores.py write before.json          # in one checkout
    python benchmarks/same_scores.py write after.json           # in the other
    python benchmarks/same_scores.py compare before.json after.json

`--metrics wms,sms` and `--rows N` take less of it.
`compare` prints, for each metric, the largest difference of a score and every pair of signatures that differ. Its exit
status is 1 if a static metric differs by more than 1e-12 or another one by more than 1e-6.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from pathlib import Path

import movers

ROWS = 300
STATIC = ("wms", "sms", "swms")
SETTINGS: dict[str, list[dict[str, object]]] = {
    "wms": [{}, {"weights": "norm", "normalize": True}, {"idf": "corpus", "distance": "cosine", "multi_ref": "mean"}],
    "sms": [{}, {"sentence_weights": "uniform", "keep_numbers": True}, {"idf": "corpus", "stopwords": None}],
    "swms": [{}, {"weights": "uniform", "lowercase": False}, {"idf": "corpus", "normalize": True}],
    "moverscore": [{}, {"variant": "v2", "n_gram": 2, "idf": "corpus"}, {"alignment": "hard", "aggregation": "4+6"}],
    "bertscore_hungarian": [{}, {"alignment": "greedy", "layer": 4}, {"idf": True, "multi_ref": "mean"}],
    "bertscore_emd": [{}, {"weights": "uniform", "layer": "mean"}, {"idf": True}],
    "reference_free_summary_quality": [{}, {"doc_reduce": "sum"}, {"batch_tokens": 4096}],
}


def rows_of(path: Path, count: int) -> list[dict[str, object]]:
    """The first rows of a judged set."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for _, line in zip(range(count), file, strict=False)]


def write(target: Path, folder: Path, metrics: list[str], count: int) -> None:
    """Score everything and write scores and signatures."""
    found: dict[str, object] = {}
    for path in sorted((folder / "human").glob("*.jsonl.gz")):
        rows = rows_of(path, count)
        for metric in metrics:
            other = "source" if metric == "reference_free_summary_quality" else "references"
            kept = [row for row in rows if row.get(other)]
            if not kept:
                continue
            predictions, against = [row["candidate"] for row in kept], [row[other] for row in kept]
            for number, options in enumerate(SETTINGS[metric]):
                result = getattr(movers, metric)(predictions, against, progress=False, **options)
                key = f"{path.name.split('.')[0]}/{metric}/{number}"
                found[key] = {"signature": result["signature"], "scores": result["scores"]}
                print(key, len(kept), file=sys.stderr)
    target.write_text(json.dumps(found))


def compare(first: Path, second: Path) -> int:
    """Print the differences; 1 if one is too large."""
    before, after = json.loads(first.read_text()), json.loads(second.read_text())
    if set(before) != set(after):
        print(f"not the same runs: {sorted(set(before) ^ set(after))}")
        return 1
    worst: dict[str, float] = {}
    runs: dict[str, int] = {}
    signatures: dict[tuple[str, str], None] = {}
    for key, old in before.items():
        metric, new = key.split("/")[1], after[key]
        if len(old["scores"]) != len(new["scores"]):
            print(f"{key}: {len(old['scores'])} and {len(new['scores'])} scores")
            return 1
        difference = max(abs(a - b) for a, b in zip(old["scores"], new["scores"], strict=True))
        worst[metric] = max(worst.get(metric, 0.0), difference)
        runs[metric] = runs.get(metric, 0) + len(old["scores"])
        if old["signature"] != new["signature"]:
            signatures[old["signature"], new["signature"]] = None
    print("| metric | scores | largest difference |\n|---|---|---|")
    for metric, value in worst.items():
        print(f"| {metric} | {runs[metric]:,} | {value:.1e} |")
    for old_line, new_line in signatures:
        print(f"\n- {old_line}\n+ {new_line}")
    return int(any(value > (1e-12 if metric in STATIC else 1e-6) for metric, value in worst.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("MOVERS_DATA"), help="default: MOVERS_DATA")
    parser.add_argument("--metrics", default=",".join(SETTINGS))
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    if arguments.action == "compare":
        return compare(*arguments.files)
    write(arguments.files[0], arguments.data, arguments.metrics.split(","), arguments.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Freeze the scores of every metric under its defaults, presets and option values, to compare two states of the code.

    python tools/qa/same_scores.py write before.json            # in one checkout
    python tools/qa/same_scores.py write after.json             # in the other
    python tools/qa/same_scores.py compare before.json after.json

Defaults are scored on 300 rows of every judged set, every other setting on 40 rows of three sets; `--metrics wms,sms`
takes less of it. `compare` prints the largest difference per metric and every setting that differs by more than 1e-12
(static vectors) or 1e-6 (contextual), and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from itertools import islice
from pathlib import Path

import movers

Options = dict[str, object]

MINILM: Options = {"model": "all-MiniLM-L6-v2"}
STATIC: Options = {"model": "wordllama"}
REFERENCES: list[Options] = [
    {"multi_ref": "max"},
    {"multi_ref": "mean"},
    {"rescale": True},
    {"idf": "corpus"},
    {"preset": "paper"},
]
WORDS: list[Options] = [
    *REFERENCES,
    {"stopwords": None},
    {"stopwords": "english"},
    {"stopwords": ["snow", "the"]},
    {"lowercase": False},
    {"alphabetic": True},
    {"temperature": 1.0},
    {"oov": "zero"},
    {"oov": "match"},
    {"lang": "de"},
    {"distance": "cosine"},
    {"normalize": True},
    MINILM,
    {**MINILM, "layer": "last"},
    {**MINILM, "layer": "pmeans"},
    {**MINILM, "layer": 4},
    {**MINILM, "layer": "4+6"},
    {**MINILM, "context": "text"},
    {**MINILM, "context": "text", "window": 16},
    {**MINILM, "context": "text", "window": 16, "truncation": "cut"},
    {**MINILM, "preset": "paper"},
]
TOKENS: list[Options] = [
    *REFERENCES,
    {"idf": "corpus", "rescale": True},
    {"weights": "uniform"},
    {"weights": "norm"},
    {"window": 16},
    {"window": 16, "truncation": "cut"},
    STATIC,
    {**STATIC, "idf": "corpus"},
]
BERTSCORE: list[Options] = [
    *TOKENS,
    {"idf": True},
    {"layer": "mean"},
    {"layer": "pmeans"},
    {"layer": "routing"},
    {"layer": 4},
    {"layer": "4+6"},
    {"num_layers": 3},
    {"alignment": "greedy"},
    {"alignment": "greedy", "greedy_special": False},
    {"alignment": "greedy", "rescale_with_baseline": True},
]
SETTINGS: dict[str, list[Options]] = {
    "wms": [{}, *WORDS, {"weights": "uniform"}, {"weights": "norm"}],
    "sms": [{}, *WORDS, {"sentence_weights": "uniform"}, {"sentence_encoder": "all-MiniLM-L6-v2"}],
    "swms": [{}, *WORDS, {"weights": "uniform"}, {"weights": "norm"}, {"sentence_weights": "uniform"}],
    "moverscore": [
        {},
        *TOKENS,
        {"preset": "translation"},
        {"preset": "short"},
        {"variant": "v2"},
        {"n_gram": 2},
        {"n_gram": 2, "idf": "corpus"},
        {"n_gram": "sentence"},
        {"aggregation": "routing"},
        {"aggregation": "last"},
        {"aggregation": "mean"},
        {"aggregation": 4},
        {"aggregation": "4+6"},
        {"distance": "euclidean"},
        {"distance": "cosine"},
        {"similarity": "inverse"},
        {"similarity": "exp"},
        {"alignment": "hard"},
        {"stopwords": "english"},
        {"stopwords": ["snow", "the"]},
        {"punctuation": False},
        {"punctuation": "ascii"},
        {"drop_subwords": False},
        {"normalize": False},
        {"special_tokens": False},
    ],
    "bertscore_hungarian": [{}, *BERTSCORE],
    "bertscore_emd": [{}, *BERTSCORE],
    "reference_free_summary_quality": [{}, {"doc_reduce": "sum"}],
}
EMPTY = (["", "The the.", "Snow melts.", "!!!", "15"], [["Snow melts."], ["Of of"], [""], ["The the."], ["51 15"]])
FEW = ("summeval", "webnlg2020_en", "wmt17_seg_da_to_en")


def pairs_of(path: Path, other: str, count: int) -> tuple[list[str], list[list[str]]]:
    """Predictions and references (or sources) of the first rows of a judged set that have both."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(islice((row for row in map(json.loads, file) if row.get(other)), count))
    return [row["candidate"] for row in rows], [row[other] for row in rows]


def write(target: Path, folder: Path, metrics: list[str]) -> None:
    """Score everything and write scores and distances."""
    results: dict[str, object] = {}
    for metric in metrics:
        other = "source" if metric == "reference_free_summary_quality" else "references"
        for options in SETTINGS[metric]:
            label = f"{metric} {json.dumps(options)}"
            sets = {"empty": EMPTY} if other == "references" else {}
            for path in sorted((folder / "human").glob("*.jsonl.gz")):
                name = path.name.split(".")[0]
                if not options or name in FEW:
                    sets[name] = pairs_of(path, other, 40 if options else 300)
            for name, (predictions, references) in sets.items():
                if predictions:
                    result = getattr(movers, metric)(predictions, references, progress=False, **options)
                    counts = [result[key] for key in ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")]
                    parts = result.get("precision", []) + result.get("recall", [])
                    results[f"{label} {name}"] = {"scores": result["scores"] + parts, "counts": counts}
            print(label, file=sys.stderr)
    target.write_text(json.dumps(results))


def compare(first: Path, second: Path) -> int:
    """Print the differences; 1 if one is too large."""
    before, after = json.loads(first.read_text()), json.loads(second.read_text())
    before = {key: value for key, value in before.items() if key.split()[0] in {name.split()[0] for name in after}}
    wrong = [f"{key}: only in one of the two" for key in before.keys() ^ after.keys()]
    worst: dict[str, tuple[int, float]] = {}
    for key in before.keys() & after.keys():
        old, new, metric = before[key], after[key], key.split()[0]
        difference = max(abs(a - b) for a, b in zip(old["scores"], new["scores"], strict=True))
        count, largest = worst.get(metric, (0, 0.0))
        worst[metric] = count + len(old["scores"]), max(largest, difference)
        static = metric in ("wms", "sms", "swms") and "MiniLM" not in key
        if difference > (1e-12 if static else 1e-6):
            wrong.append(f"{key}: {difference:.1e}")
        if old["counts"] != new["counts"]:
            wrong.append(f"{key}: counts {old['counts']} and {new['counts']}")
    print("| metric | scores | largest difference |\n|---|---|---|")
    for metric, (count, largest) in sorted(worst.items()):
        print(f"| {metric} | {count:,} | {largest:.1e} |")
    print("\n".join(sorted(wrong)))
    return int(bool(wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("MOVERS_DATA"), help="default: MOVERS_DATA")
    parser.add_argument("--metrics", default=",".join(SETTINGS))
    arguments = parser.parse_args()
    if arguments.action == "compare":
        return compare(*arguments.files)
    write(arguments.files[0], arguments.data, arguments.metrics.split(","))
    return 0


if __name__ == "__main__":
    sys.exit(main())

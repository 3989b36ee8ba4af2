"""What the benchmarks of reference_free_summary_quality share: stored vectors, scores of pairs, results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from common import data_folder, judged, machine, read_results, save_results  # noqa: E402

from movers.encoders import load_encoder  # noqa: E402
from movers.quality.model import QualityModel  # noqa: E402
from movers.quality.scorer import compare_vectors  # noqa: E402
from movers.quality.store import StoreKind, VectorStore  # noqa: E402
from movers.quality.units import TextVectors, split_units  # noqa: E402

__all__ = ["SUITE", "WORK", "Library", "data_folder", "judged", "read_results", "save", "score_pairs"]

SUITE = Path(__file__).parent
WORK = SUITE.parents[1] / "build" / "quality"  # vectors and trained models, kept between runs


class Library:
    """Texts with their vectors, each sentence encoded once and kept on disk."""

    def __init__(self, encoder: str = "all-MiniLM-L6-v2") -> None:
        self.encoder = load_encoder(encoder)
        dimension = int(self.encoder.model.config.hidden_size)  # type: ignore[union-attr]
        window = self.encoder.sentence_window  # type: ignore[union-attr]
        kind = StoreKind(self.encoder.identity, dimension, "sentences", "en", True, window)
        self.store = VectorStore(WORK / "vectors" / kind.folder_name, kind)
        self._units: dict[str, list[str]] = {}

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._units:
                self._units[text] = split_units(text, "sentences")
        self.store.fill((unit for units in self._units.values() for unit in units), self.encoder, progress=True)

    def get(self, text: str) -> TextVectors:
        return self.store.text(self._units[text])


def score_pairs(model: QualityModel, library: Library, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Scores of (document, summary) pairs by a model over stored vectors, as the metric gives them."""
    scores: list[float] = []
    for begin in range(0, len(pairs), 32):
        part = [(library.get(summary), library.get(document)) for document, summary in pairs[begin : begin + 32]]
        scores += [comparison.score for comparison in compare_vectors(model, part)]
    return scores


def save(table: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Put rows into results.csv and RESULTS.md, with the machine."""
    save_results(SUITE, table, rows)
    save_results(SUITE, "environment", {table: {"machine": machine()}})
    print(f"{table}: {', '.join(rows)}", flush=True)

"""What the benchmarks of reference_free_summary_quality share: stored vectors, scores of pairs, result files."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from movers.encoders import load_encoder
from movers.encoders.cache import cache_folder
from movers.encoders.static import StaticEncoder
from movers.io import write_file
from movers.quality.model import QualityModel
from movers.quality.scorer import compare_vectors
from movers.quality.store import StoreKind, VectorStore
from movers.quality.units import TextVectors, split_units
from movers.training import environment as training_environment

sys.path.append(str(Path(__file__).parent.parent))  # a script finds what all benchmarks share in the folder above
sys.path.append(str(Path(__file__).parent.parent / "agreement"))
from common import data_folder, interleaved, judged  # noqa: E402
from contenders import best_batch, encoder  # noqa: E402
from get_data import BLANC, facts_of_summaries, news_archive  # noqa: E402

__all__ = [
    "Library",
    "best_batch",
    "blanc_rows",
    "data_folder",
    "encoder",
    "interleaved",
    "judged",
    "qags_xsum_rows",
    "save",
    "score_pairs",
    "work_folder",
]

RESULTS = Path(__file__).parent / "results"
ENCODER = "all-MiniLM-L6-v2"


def work_folder() -> Path:
    """Vectors and trained models of the benchmarks; kept between runs."""
    return cache_folder() / "quality-benchmarks"


class Library:
    """Texts with their vectors, each sentence encoded once and kept on disk."""

    def __init__(self, encoder: str = ENCODER) -> None:
        found = load_encoder(encoder)
        assert not isinstance(found, StaticEncoder)
        self.encoder = found
        dimension = int(found.model.config.hidden_size)
        kind = StoreKind(found.identity, dimension, "sentences", "en", True, found.sentence_window)
        self.store = VectorStore(work_folder() / "vectors" / kind.folder_name, kind)
        self._units: dict[str, list[str]] = {}

    def add(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._units:
                self._units[text] = split_units(text, "sentences")
        units = (unit for parts in self._units.values() for unit in parts)
        self.store.fill(units, self.encoder, progress=True)

    def get(self, text: str) -> TextVectors:
        return self.store.text(self._units[text])


def score_pairs(model: QualityModel, library: Library, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Scores of (document, summary) pairs by a model over stored vectors, as the metric gives them (half precision)."""
    found: list[float] = []
    for begin in range(0, len(pairs), 32):
        part = [(library.get(summary), library.get(document)) for document, summary in pairs[begin : begin + 32]]
        found += [comparison.score for comparison in compare_vectors(model, part)]
    return found


def blanc_rows(name: str) -> list[dict[str, Any]]:
    """A judged set of the `blanc` source package (CNN_DailyMail_555, DailyNews_300, DailyNews_300_aspects).

    The package is brought by pip once; a row's scores are the means over its judges.
    """
    folder = work_folder() / "blanc"
    archive = folder / BLANC
    if not archive.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        news_archive(folder)
    with tarfile.open(archive) as package:
        member = package.extractfile(f"blanc-0.3.4/data/{name}.json")
        assert member is not None
        rows = json.load(member)
    found = []
    for row in rows:
        kinds = row.get("map_quality_scores") or {"overall": row}
        scores = {kind: sum(judges["scores"]) / len(judges["scores"]) for kind, judges in kinds.items()}
        found.append({"source": row["text"], "candidate": row["summary"], "scores": scores})
    return found


def qags_xsum_rows() -> list[dict[str, Any]]:
    """Summaries of XSum with the judgement of QAGS's annotators whether they are consistent with the article."""
    folder = work_folder() / "qags"
    folder.mkdir(parents=True, exist_ok=True)
    found = facts_of_summaries(folder)["qags_xsum"].texts
    return [{"source": one.fields["source"], "candidate": one.candidate, "scores": one.scores} for one in found]


def save(name: str, result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    known = training_environment()
    environment = {**known, "machine": f"{known['machine']}, {os.cpu_count()} processors"}
    path = RESULTS / f"{name}.json"
    write_file(path, json.dumps({**result, "environment": environment}, indent=1) + "\n")
    print(f"wrote {path}")

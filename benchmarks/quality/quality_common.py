"""What the benchmarks of reference_free_summary_quality share: texts with stored vectors, results."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from common import data_folder, judged, machine, measured, save_results  # noqa: E402

from movers.encoders import load_encoder  # noqa: E402
from movers.quality.data import Pair, read_pairs  # noqa: E402
from movers.quality.units import TextVectors, encode_texts  # noqa: E402

__all__ = ["SUITE", "WORK", "Pair", "corpus", "judged", "measured", "read_texts", "save"]

SUITE = Path(__file__).parent
WORK = SUITE.parents[1] / "build" / "quality"  # vectors and trained models, kept between runs


def corpus(name: str, limit: int | None = None) -> list[Pair]:
    return read_pairs(str(data_folder() / "corpora" / f"{name}.jsonl.gz"), limit=limit)


def read_texts(name: str, texts: Iterable[str]) -> dict[str, TextVectors]:
    """Texts as the aspects read them, in half precision; kept on disk under that name."""
    path = WORK / f"{name}.pickle"
    stored: dict[str, TextVectors] = pickle.loads(path.read_bytes()) if path.is_file() else {}
    missing = list(dict.fromkeys(text for text in texts if text not in stored))
    if missing:
        for index, one in encode_texts(missing, load_encoder("all-MiniLM-L6-v2"), "sentences"):
            vectors, tokens = (part.astype(np.float16) for part in (one.vectors, one.tokens))
            stored[missing[index]] = TextVectors(one.units, vectors, tokens, one.owners, one.unknown)
        WORK.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(stored))
    return stored


def save(table: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Put rows into results.csv and RESULTS.md, with the machine."""
    save_results(SUITE, table, rows)
    save_results(SUITE, "environment", {table: {"machine": machine()}})
    print(f"{table}: {', '.join(rows)}", flush=True)

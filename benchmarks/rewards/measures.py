"""The rows of results.csv, and measures of outputs."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from movers.version import VERSION

sys.path.insert(0, str(Path(__file__).parents[1]))

RESULTS = Path(__file__).parent / "results.csv"
KEY = ["table", "setting", "seed", "measure"]


def load() -> pd.DataFrame:
    """All rows, every cell as the text that stands in the file."""
    return pd.read_csv(RESULTS, dtype=str, keep_default_na=False)


def is_finished(table: str, setting: str, seed: int) -> bool:
    rows = load()
    return bool(((rows["table"] == table) & (rows["setting"] == setting) & (rows["seed"] == str(seed))).any())


def save(table: str, setting: str, seed: int | str, values: Mapping[str, float | str], n: int | str = "") -> None:
    """Add one row per measure; rows of the same run and measure are replaced."""
    rows = [
        [table, setting, str(seed), measure, value if isinstance(value, str) else f"{value:.6f}", str(n), VERSION]
        for measure, value in values.items()
    ]
    everything = pd.concat([load(), pd.DataFrame(rows, columns=[*KEY, "value", "n", "version"])])
    everything.drop_duplicates(KEY, keep="last").to_csv(RESULTS, index=False, lineterminator="\n")


def repeated(texts: Sequence[str], n: int) -> float:
    """Share of n-grams that occur earlier in the same text.

    >>> repeated(["a b a b"], 2)
    0.3333333333333333
    """
    total = again = 0
    for text in texts:
        words = text.lower().split()
        grams = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
        total, again = total + len(grams), again + len(grams) - len(set(grams))
    return again / total if total else 0.0


def meteor(texts: Sequence[str], references: Sequence[str]) -> float:
    """METEOR of NLTK with exact and stem matches; WordNet's synonyms, which need a download, are left out."""
    from nltk.translate.meteor_score import single_meteor_score  # type: ignore[import-untyped]

    nothing = SimpleNamespace(synsets=lambda word: [])
    pairs = zip(texts, references, strict=True)
    return statistics.mean(single_meteor_score(other.split(), text.split(), wordnet=nothing) for text, other in pairs)


def quote(text: str, width: int = 220) -> str:
    """A text for a line of RESULTS.md."""
    return text.replace("|", "\\|").replace("\n", " ")[:width]

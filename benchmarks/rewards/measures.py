"""The rows of results.csv, and measures of outputs."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import add_rows, read_rows

SUITE = Path(__file__).parent


def load() -> pd.DataFrame:
    """All rows, every cell as the text that stands in the file; the row is the setting, the column the measure."""
    return pd.DataFrame(read_rows(SUITE)).rename(columns={"row": "setting", "column": "measure"})


def is_finished(table: str, setting: str, seed: int) -> bool:
    rows = load()
    return bool(((rows["table"] == table) & (rows["setting"] == setting) & (rows["seed"] == str(seed))).any())


def save(table: str, setting: str, seed: int | str, values: Mapping[str, float | str], n: int | str = "") -> None:
    """Add one figure per measure; those of the same run and measure are replaced."""
    same = {"table": table, "row": setting, "seed": str(seed), "n": n}
    shown = {name: value if isinstance(value, str) else f"{value:.6f}" for name, value in values.items()}
    add_rows(SUITE, [{**same, "column": name, "value": value} for name, value in shown.items()], whole=False)


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

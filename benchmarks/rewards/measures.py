"""What the tables of RESULTS.md share: reading results, means with spread, paired tests, measures of outputs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Results = Mapping[tuple[str, int], dict[str, Any]]


def read(folder: Path) -> Results:
    """Finished results by system and seed."""
    found = {}
    for path in sorted(folder.glob("*-[0-9]*.json")):
        system, _, seed = path.stem.rpartition("-")
        found[system, int(seed)] = json.loads(path.read_text(encoding="utf-8"))
    return found


def spread(values: Sequence[float], digits: int) -> str:
    """Mean, and the standard deviation over seeds where there are several."""
    mean = statistics.mean(values)
    return f"{mean:.{digits}f}" + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")


def permutation_p(differences: np.ndarray, draws: int = 10_000) -> float:
    """Two-sided paired permutation test: signs of the differences drawn at random.

    >>> permutation_p(np.ones(20)) < 0.001 and permutation_p(np.array([1.0, -1.0] * 10)) > 0.9
    True
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (draws, len(differences)))
    drawn = np.abs((signs * differences).mean(axis=1))
    return float((1 + (drawn >= abs(differences.mean()) - 1e-12).sum()) / (draws + 1))


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
    from importlib import import_module

    score = import_module("nltk.translate.meteor_score").single_meteor_score
    nothing = SimpleNamespace(synsets=lambda word: [])
    scores = [
        score(reference.split(), text.split(), wordnet=nothing)
        for text, reference in zip(texts, references, strict=True)
    ]
    return statistics.mean(scores)


def against(results: Results, start: str, system: str, metric: str) -> str:
    """Change against the start in points: mean and standard deviation over seeds, the number of each seed, and the
    paired test over examples (means over seeds)."""
    seeds = [seed for name, seed in results if name == system and (start, seed) in results]
    pairs = [
        (np.array(results[system, seed]["each"][metric]), np.array(results[start, seed]["each"][metric]))
        for seed in seeds
    ]
    changes = [100 * float((new - old).mean()) for new, old in pairs]
    shown = ", ".join(f"{change:+.2f}" for change in changes)
    if len(changes) > 1:
        shown = f"{statistics.mean(changes):+.2f} ± {statistics.stdev(changes):.2f}: {shown}"
    return f"{shown} (p = {permutation_p(np.mean([new - old for new, old in pairs], axis=0)):.4f})"


def quote(text: str, width: int = 220) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:width]

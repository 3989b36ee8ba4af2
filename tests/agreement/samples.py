"""Scores made for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

GRADED = Path(__file__).parent.parent / "data" / "graded.jsonl"

SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}


def related(n: int, noise: float, seed: int) -> tuple[list[float], list[float]]:
    """A metric that follows people's scores with some noise, and these on a coarse scale (so with ties)."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, size=n).astype(float)
    return (human + noise * rng.normal(size=n)).round(1).tolist(), human.tolist()


def judged_grid(seed: int = 9) -> dict[str, list]:
    """Six documents by five systems; document d5 is constant for people, one text lacks each kind of score."""
    rng = np.random.default_rng(seed)
    quality = np.tile([0.0, 1.0, 2.0, 3.0, 4.0], 6)
    human = (quality + rng.integers(-1, 2, size=30)).tolist()
    scores = (quality + rng.normal(size=30)).tolist()
    human[25:] = [3.0] * 5
    human[0] = scores[7] = None
    return {
        "documents": [f"d{document}" for document in range(6) for _ in range(5)],
        "systems": [f"s{system}" for _ in range(6) for system in range(5)],
        "human": human,
        "scores": scores,
        "complete": [row for row in range(30) if row not in (0, 7)],
    }

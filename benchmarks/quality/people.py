"""Agreement with people (the paper's Tables 5 to 8) on three judged sets, beside untrained baselines.

    MOVERS_DATA=… python benchmarks/quality/people.py [--model DIR]

SummEval: summary-level Spearman (mean over documents) on four aspects, on the first 50 documents, which choices may
look at, and on the other 50, which count; intervals are 95 % by bootstrap over documents. QAGS: Pearson. Ranked pairs:
share of pairs in which the correct sentence scores higher.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from quality_common import Library, judged, save, score_pairs
from scipy.stats import pearsonr, rankdata, spearmanr

from movers.quality.alignment import FEATURES, align
from movers.quality.model import load_model

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
_WORD = re.compile(r"\w+")


def _f1(common: float, first: int, second: int) -> float:
    return 2 * common / (first + second) if first + second else 0.0


def rouge(source: str, summary: str) -> dict[str, float]:
    """ROUGE-1, -2 and -L (F1, lower-cased words, no stemming) of a summary against its source."""
    a, b = _WORD.findall(source.lower()), _WORD.findall(summary.lower())
    out = {}
    for n in (1, 2):
        first = Counter(zip(*(a[k:] for k in range(n)), strict=False))
        second = Counter(zip(*(b[k:] for k in range(n)), strict=False))
        out[f"rouge{n}"] = _f1(sum((first & second).values()), sum(first.values()), sum(second.values()))
    numbers = {word: number for number, word in enumerate(dict.fromkeys(a + b))}
    row = np.zeros(len(a) + 1, np.int64)
    target = np.array([numbers[word] for word in a])
    for word in b:  # longest common subsequence, a row at a time
        match = row[:-1] + (target == numbers[word])
        row[1:] = np.maximum.accumulate(np.maximum(row[1:], match))
    out["rougeL"] = _f1(float(row[-1]), len(a), len(b))
    return out


def baselines(library: Library, pairs: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    """Untrained scores of (document, summary) pairs."""
    columns: dict[str, list[float]] = {}
    for document, summary in pairs:
        found = align(library.get(document), library.get(summary))
        named = dict(zip(FEATURES, found.features.tolist(), strict=True))
        support, coverage = named["support"], named["coverage"]
        row = {
            "length": float(len(_WORD.findall(summary))),
            **rouge(document, summary),
            "cosine of means": named["mean_cosine"],
            "mean support": support,
            "minimum support": named["least_support"],
            "mean coverage": coverage,
            "harmonic mean": 2 * support * coverage / max(support + coverage, 1e-9),
            "mean token match": named["token_match"],
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def by_document(scores: np.ndarray, human: np.ndarray, groups: np.ndarray, keep: Sequence[int]) -> np.ndarray:
    """Spearman correlation in each kept document; documents with constant judgements are left out."""
    found = []
    for group in keep:
        chosen = groups == group
        if np.ptp(human[chosen]) > 0 and np.ptp(scores[chosen]) > 0:
            ranks = rankdata(scores[chosen]), rankdata(human[chosen])
            found.append(float(np.corrcoef(*ranks)[0, 1]))
    return np.array(found)


def interval(values: np.ndarray, rounds: int = 2000, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), size=(rounds, len(values)))].mean(axis=1)
    return [float(value) for value in np.quantile(means, [0.025, 0.975])]


def summeval(library: Library, model: Any) -> dict[str, Any]:
    rows = judged("summeval")
    pairs = [(row["source"], row["candidate"]) for row in rows]
    library.add(text for pair in pairs for text in pair)
    columns = {"model": score_pairs(model, library, pairs), **baselines(library, pairs)}
    documents = list(dict.fromkeys(row["doc"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    groups = np.array([documents.index(row["doc"]) for row in rows])
    makers = np.array([systems.index(row["system"]) for row in rows])
    result: dict[str, Any] = {"documents": len(documents), "rows": len(rows)}
    for half, keep in (("first half", range(50)), ("second half", range(50, len(documents)))):
        inside = np.isin(groups, list(keep))
        table: dict[str, Any] = {}
        for name, column in columns.items():
            scores = np.array(column)
            table[name] = {}
            for aspect in ASPECTS:
                human = np.array([row["scores"][aspect] for row in rows])
                found = by_document(scores, human, groups, keep)
                means = [
                    [values[inside & (makers == n)].mean() for n in range(len(systems))] for values in (scores, human)
                ]
                table[name][aspect] = {
                    "spearman": float(found.mean()),
                    "interval": interval(found),
                    "system_spearman": float(spearmanr(*means)[0]),
                }
        result[half] = table
    # another document's summary against the own one: the same system's summary of the next document
    places = {(row["doc"], row["system"]): place for place, row in enumerate(rows)}
    foreign = []
    for row in rows:
        other = documents[(documents.index(row["doc"]) + 1) % len(documents)]
        foreign.append((row["source"], rows[places[other, row["system"]]]["candidate"]))
    lower = np.array(score_pairs(model, library, foreign)) < np.array(columns["model"])
    result["another document's summary scores lower"] = float(lower.mean())
    return result


def other_sets(library: Library, model: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in ("qags_cnndm", "rank19_cnndm"):
        rows = judged(name)
        pairs = [(row["source"], row["candidate"]) for row in rows]
        library.add(text for pair in pairs for text in pair)
        fact = np.array([row["scores"]["fact"] for row in rows])
        table = {}
        for column, values in {"model": score_pairs(model, library, pairs), **baselines(library, pairs)}.items():
            scores = np.array(values)
            if name == "qags_cnndm":
                rng = np.random.default_rng(0)
                draws = [rng.integers(0, len(rows), size=len(rows)) for _ in range(2000)]
                spread = np.quantile([np.corrcoef(scores[draw], fact[draw])[0, 1] for draw in draws], [0.025, 0.975])
                table[column] = {
                    "pearson": float(pearsonr(scores, fact)[0]),
                    "interval": [float(value) for value in spread],
                    "spearman": float(spearmanr(scores, fact)[0]),
                }
            else:
                groups: dict[str, list[int]] = {}
                for place, row in enumerate(rows):
                    groups.setdefault(row["doc"], []).append(place)
                right = np.array(
                    [
                        max(scores[p] for p in members if fact[p] == 1)
                        > max(scores[p] for p in members if fact[p] == 0)
                        for members in groups.values()
                    ],
                    dtype=float,
                )
                table[column] = {"right": float(right.mean()), "interval": interval(right)}
        result[name] = {"rows": len(rows), "table": table}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--name", default="people", help="name of the result file")
    arguments = parser.parse_args()
    library = Library()
    model = load_model(arguments.model)
    result = {"model": model.identity, "summeval": summeval(library, model), **other_sets(library, model)}
    save(arguments.name, result)
    for half in ("first half", "second half"):
        print(half)
        for name, row in result["summeval"][half].items():
            print(f"  {name:18s}", " ".join(f"{aspect[:5]} {row[aspect]['spearman']:+.3f}" for aspect in ASPECTS))


if __name__ == "__main__":
    main()

"""Agreement with human judgements on six sets: `MOVERS_DATA=… python benchmarks/quality/people.py`.

The score, each aspect and untrained measures side by side, plain and with the length of the summary partialled out.
Constants that judgements may choose are chosen without the set they are then tested on. QAGS-XSum is held out. The sets
of `blanc` and QAGS-XSum are those that `make data` downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality_common import Library, judged, save
from scipy.stats import rankdata

from movers.quality.aspects import ASPECTS, measure_aspects
from movers.quality.facts import split_words, stem
from movers.quality.joins import JoinNetwork
from movers.quality.model import load_model

Values = NDArray[np.float64]
RANKED, HELD_OUT = "ranked pairs", "QAGS-XSum"
SETS = {  # file, and whether correlations are taken within each document
    "SummEval": ("summeval", True),
    "CNN_DailyMail_555": ("cnn_dailymail_555", False),
    "DailyNews_300, generic": ("dailynews_300", False),
    "DailyNews_300, aspects": ("dailynews_300_aspects", False),
    "QAGS": ("qags_cnndm", False),
    RANKED: ("rank19_cnndm", True),
    HELD_OUT: ("qags_xsum", False),
}


@dataclass(frozen=True)
class JudgedSet:
    """Rows of a set, the judged columns, and groups of rows to correlate within (None: all rows together)."""

    name: str
    pairs: list[tuple[str, str]]  # (document, summary)
    columns: dict[str, Values]
    groups: list[list[int]] | None = None

    def mean(self, measure: Callable[..., float], *values: Values) -> float:
        """A correlation over all rows, or its mean over the groups."""
        if self.groups is None:
            return measure(*values)
        return float(np.nanmean([measure(*(one[group] for one in values)) for group in self.groups]))

    def value(self, scores: Values) -> float:
        """What constants are chosen by: mean Spearman over the columns, or the share of pairs ranked right."""
        if self.name == RANKED:
            return ranked_right(self, scores)
        return float(np.mean([self.mean(spearman, scores, human) for human in self.columns.values()]))


def read_set(name: str, rows: Sequence[Mapping[str, Any]], grouped: bool) -> JudgedSet:
    groups: dict[object, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.get("doc"), []).append(place)
    return JudgedSet(
        name,
        [(str(row["source"]), str(row["candidate"])) for row in rows],
        {column: np.array([row["scores"][column] for row in rows], np.float64) for column in rows[0]["scores"]},
        list(groups.values()) if grouped else None,
    )


def spearman(first: Values, second: Values) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def partial(first: Values, second: Values, third: Values) -> float:
    """Spearman correlation of the first two with the third partialled out."""
    a, b, c = spearman(first, second), spearman(first, third), spearman(second, third)
    return (a - b * c) / np.sqrt((1 - b * b) * (1 - c * c)) if abs(b) < 0.9999 else float("nan")


def ranked_right(judged_set: JudgedSet, scores: Values) -> float:
    """Share of pairs in which the right summary has the higher score; equal scores count half."""
    assert judged_set.groups is not None
    human = judged_set.columns["fact"]
    pairs = [sorted(group, key=lambda place: -human[place]) for group in judged_set.groups]
    return float(np.mean([(scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]) for a, b in pairs]))


def rouge_l(document: list[str], summary: list[str]) -> float:
    """F1 of the longest common subsequence of stems."""
    source, before = np.array(document), np.zeros(len(document) + 1, np.int64)
    for word in summary:
        longer = np.r_[0, before[:-1] + (source == word)]
        before = np.maximum.accumulate(np.maximum(before, longer))
    return 2 * float(before[-1]) / max(1, len(document) + len(summary))


def measure_set(judged_set: JudgedSet, library: Library) -> dict[str, Values]:
    """Everything that is compared, for each row of a set; names with an underscore are not shown."""
    network = load_model().module
    assert isinstance(network, JoinNetwork)
    rows: list[dict[str, float]] = []
    for document, summary in judged_set.pairs:
        source, target = library.get(document), library.get(summary)
        aspects = measure_aspects(source, target, network.broken([target])[0])
        words = [[stem(word) for word in split_words(text)] for text in (document, summary)]
        rows.append(
            {
                **{name: float(getattr(aspects, name)) for name in ("score", *ASPECTS)},
                "length": float(len(words[1])),
                "mean support": float(aspects.alignment.support.mean()),
                "mean token match": float(aspects.alignment.token_match.mean()),
                "mean coverage": float(aspects.alignment.coverage.mean()),
                "word coverage": source.words.covered_by(target.words),
                "ROUGE-L": rouge_l(*words),
                "_repeated": aspects.repeated,
                "_brevity": aspects.brevity,
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def family_means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of each set (both kinds of DailyNews_300 are one), the mean over its columns; of all columns; of the sets."""
    sets: dict[str, list[float]] = {}
    for name, columns in values.items():
        if name not in (RANKED, HELD_OUT):
            sets.setdefault(name.split(",")[0], []).extend(columns)
    means = {name: float(np.mean(columns)) for name, columns in sets.items()}
    columns = [value for own in sets.values() for value in own]
    return {**means, "mean of 12 columns": float(np.mean(columns)), "mean of 4 sets": float(np.mean([*means.values()]))}


def save_agreement(sets: Sequence[JudgedSet], values: Sequence[Mapping[str, Values]]) -> None:
    names = [name for name in values[0] if not name.startswith("_")]
    correlations: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    right: dict[str, float] = {}
    for judged_set, of in zip(sets, values, strict=True):
        if judged_set.name == RANKED:
            right = {name: ranked_right(judged_set, of[name]) for name in names}
            continue
        plain, without_length = {}, {}
        for name in names:
            plain[name] = {
                column: judged_set.mean(spearman, of[name], human) for column, human in judged_set.columns.items()
            }
            correlations[name][judged_set.name] = [*plain[name].values()]
            if name != "length":
                without_length[name] = {
                    column: judged_set.mean(partial, of[name], human, of["length"])
                    for column, human in judged_set.columns.items()
                }
            if judged_set.name.startswith("QAGS"):
                (human,) = judged_set.columns.values()
                plain[name]["Pearson"] = float(np.corrcoef(of[name], human)[0, 1])
        save(judged_set.name, plain)
        save(f"{judged_set.name}, length partialled out", without_length)
    save(
        "people",
        {
            name: {**family_means(own), RANKED: right[name], HELD_OUT: own[HELD_OUT][0]}
            for name, own in correlations.items()
        },
    )


def with_constants(of: Mapping[str, Values], sharpness: float, repetition: float, coverage: float) -> Values:
    """Scores if fluency is so sharp, and repetition and coverage have these exponents; shipped are 6, 1 and 1."""
    mean = (of["faithfulness"] * of["coverage"] ** coverage * of["fluency"] ** (sharpness / 6)) ** (1 / 3)
    return mean * (1 - of["_repeated"]) ** repetition * of["_brevity"]


def save_left_out(
    table: str, sets: Sequence[JudgedSet], values: Sequence[Mapping[str, Values]], exponents: Sequence[float]
) -> None:
    """Constants chosen by the other sets, and the score they give; sets of the same texts are left out together."""
    settings = [*product((2.0, 4.0, 6.0), (1 / 3, 2 / 3, 1.0, 4 / 3), exponents)]
    figures = {
        (one, judged_set.name): judged_set.value(with_constants(of, *one))
        for one in settings
        for judged_set, of in zip(sets, values, strict=True)
    }
    families: dict[str, list[str]] = {}
    for judged_set in sets:
        families.setdefault(judged_set.name.split(",")[0], []).append(judged_set.name)
    rows: dict[str, dict[str, object]] = {}
    columns: dict[str, list[float]] = {}
    for judged_set in sets:
        others = [names for family, names in families.items() if family != judged_set.name.split(",")[0]]
        best = max(settings, key=lambda one: np.mean([np.mean([figures[one, name] for name in own]) for own in others]))
        value = figures[best, judged_set.name]
        rows[judged_set.name] = {
            **dict(zip(("sharpness", "repetition", "coverage"), best, strict=True)),
            "score on it": value,
        }
        columns[judged_set.name] = [value] * len(judged_set.columns)
    save(table, rows)
    save("left out, means", {table: family_means(columns)})


def main() -> None:
    sets = [read_set(name, judged(file), grouped) for name, (file, grouped) in SETS.items()]
    library = Library()
    library.add(text for one in sets for pair in one.pairs for text in pair)
    values = [measure_set(one, library) for one in sets]
    save("facts", {f"rows of {one.name}": {"value": len(one.pairs)} for one in sets})
    save_agreement(sets, values)
    choosing = [(one, of) for one, of in zip(sets, values, strict=True) if one.name != HELD_OUT]
    for table, exponents in (("left out", (1.0,)), ("left out, coverage too", (0.5, 0.75, 1.0, 1.25))):
        save_left_out(table, [one for one, _ in choosing], [of for _, of in choosing], exponents)


if __name__ == "__main__":
    main()

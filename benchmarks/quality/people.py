"""Agreement with human judgements on six sets: `MOVERS_DATA=… python benchmarks/quality/people.py`.

The score, each aspect and plain measures side by side; the constants that judgements may choose are chosen without the
set they are then tested on. The sets of `blanc` and QAGS-XSum are those that `make data` downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from quality_common import judged, read_texts, save
from scipy.stats import spearmanr

from movers.quality import aspects
from movers.quality.aspects import measure_aspects
from movers.quality.facts import WORD, stem

Values = NDArray[np.float64]
RANKED, FREE = "ranked pairs", "QAGS-XSum"
SETS = {  # file, and whether correlations are taken within each document
    "SummEval": ("summeval", True),
    "CNN_DailyMail_555": ("cnn_dailymail_555", False),
    "DailyNews_300, generic": ("dailynews_300", False),
    "DailyNews_300, aspects": ("dailynews_300_aspects", False),
    "QAGS": ("qags_cnndm", False),
    RANKED: ("rank19_cnndm", True),
    FREE: ("qags_xsum", False),
}
#: What leave-one-set-out chooses among; shipped are the values in `movers.quality.aspects`.
CHOICES = {"PARAPHRASE": (0.5, 0.6, 0.8), "LEFT_WITH_UNKNOWN": (1 / 3, 1 / 2, 2 / 3), "EARLY": (3.0, 5.0, 10.0)}


class JudgedSet(NamedTuple):
    """Rows of a set, the judged columns, and groups of rows to correlate within (None: all rows together)."""

    name: str
    rows: list[dict[str, Any]]
    groups: list[list[int]] | None

    def correlations(self, scores: Values) -> dict[str, float]:
        """Spearman by column (mean over the groups); of ranked pairs the share that is right, equal ones half."""
        if self.name == RANKED:
            assert self.groups is not None
            pairs = [sorted(group, key=lambda place: -self.rows[place]["scores"]["fact"]) for group in self.groups]
            return {
                "right": float(np.mean([(scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]) for a, b in pairs]))
            }
        out = {}
        for column in self.rows[0]["scores"]:
            human = np.array([row["scores"][column] for row in self.rows], np.float64)
            groups = self.groups or [[*range(len(human))]]
            varied = [one for one in groups if np.ptp(human[one]) > 0 and np.ptp(scores[one]) > 0]
            out[column] = float(np.mean([spearmanr(scores[one], human[one]).statistic for one in varied]))
        return out


def read_set(name: str) -> JudgedSet:
    file, grouped = SETS[name]
    rows, groups = judged(file), dict[object, list[int]]()
    for place, row in enumerate(rows):
        groups.setdefault(row.get("doc"), []).append(place)
    return JudgedSet(name, rows, list(groups.values()) if grouped else None)


def rouge_l(document: list[str], summary: list[str]) -> float:
    """F1 of the longest common subsequence of stems."""
    source, before = np.array(document), np.zeros(len(document) + 1, np.int64)
    for word in summary:
        longer = np.r_[0, before[:-1] + (source == word)]
        before = np.maximum.accumulate(np.maximum(before, longer))
    return 2 * float(before[-1]) / max(1, len(document) + len(summary))


def measure(one: JudgedSet, texts: Mapping[str, Any]) -> dict[str, Values]:
    """Everything that is compared, for each row of a set."""
    rows: list[dict[str, float]] = []
    for row in one.rows:
        document, summary = texts[row["source"]], texts[row["candidate"]]
        measured = measure_aspects(document, summary)
        words = [[stem(word) for word in WORD.findall(row[side])] for side in ("source", "candidate")]
        rows.append(
            {
                "score": measured.score,
                **measured.parts,
                "length": float(len(words[1])),
                "ROUGE-L against the document": rouge_l(*words),
                "token match alone": float(aspects._token_match(document, summary).mean()),
                "sentence support alone": float(measured.cosines.max(axis=1).mean()),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def family(name: str) -> str:
    """Sets of the same texts are left out together."""
    return name.split(",")[0]


def summary_row(correlations: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of each set the mean over its columns, the mean of the twelve columns, ranked pairs and QAGS-XSum."""
    twelve = {name: list(values.values()) for name, values in correlations.items() if name not in (RANKED, FREE)}
    means: dict[str, list[float]] = {}
    for name, values in twelve.items():
        means.setdefault(family(name), []).extend(values)
    every = [value for values in twelve.values() for value in values]
    return {
        **{name: float(np.mean(values)) for name, values in means.items()},
        "mean of 12 columns": float(np.mean(every)),
        RANKED: correlations[RANKED]["right"],
        FREE: next(iter(correlations[FREE].values())),
    }


def score_parts(document: Any, summary: Any) -> Callable[[float, float, float], float]:
    """The score of a pair as a function of the constants in CHOICES, everything else computed once."""
    measured = measure_aspects(document, summary)
    sizes = np.bincount(summary.owners, minlength=len(summary.units))
    match = np.bincount(summary.owners, aspects._token_match(document, summary), len(sizes)) / np.maximum(sizes, 1)
    tokens = np.clip((match - aspects.UNRELATED) / (1 - aspects.UNRELATED), 0, 1)
    unknown, words = np.array([len(facts) for facts in measured.unknown]), document.words.covered_by(summary.words)
    said, places = np.clip(measured.cosines.max(axis=0), 0, 1), np.arange(len(document.units))

    def score(paraphrase: float, left: float, early: float) -> float:
        sentences = (tokens + np.clip(measured.cosines.max(axis=1) / paraphrase, 0, 1)) / 2 * left**unknown
        weights = np.exp(-places / early)
        coverage = (words + weights @ said / weights.sum()) / 2
        return float(sentences @ sizes / max(1, sizes.sum()) * coverage * measured.non_repetition)

    return score


def leave_one_out(sets: Sequence[JudgedSet], texts: Mapping[str, Any]) -> None:
    """For each set the constants that the columns of the other sets choose, and the score they give on it."""
    parts = {one.name: [score_parts(texts[row["source"]], texts[row["candidate"]]) for row in one.rows] for one in sets}
    correlations = {
        values: {one.name: one.correlations(np.array([part(*values) for part in parts[one.name]])) for one in sets}
        for values in product(*CHOICES.values())
    }

    def mean(values: tuple[float, ...], names: Sequence[str]) -> float:
        return float(np.mean([value for name in names for value in correlations[values][name].values()]))

    rows, columns = {}, []
    for left in dict.fromkeys(family(one.name) for one in sets):
        others = [one.name for one in sets if family(one.name) != left]
        left_out = [one.name for one in sets if family(one.name) == left]
        best = max(correlations, key=lambda values: mean(values, others))
        rows[left] = {**dict(zip(CHOICES, best, strict=True)), "score on it": mean(best, left_out)}
        columns += [value for name in left_out for value in correlations[best][name].values()]
    save("left out", {**rows, "mean of 12 columns": {"score on it": float(np.mean(columns))}})


def main() -> None:
    sets = [read_set(name) for name in SETS]
    texts = read_texts("people", [row[side] for one in sets for row in one.rows for side in ("source", "candidate")])
    values = {one.name: measure(one, texts) for one in sets}
    save("facts", {f"rows of {one.name}": {"value": len(one.rows)} for one in sets})
    table = {name: {one.name: one.correlations(values[one.name][name]) for one in sets} for name in values["SummEval"]}
    save("people", {name: summary_row(of) for name, of in table.items()})
    for one in sets:
        save(one.name, {name: of[one.name] for name, of in table.items()})
    leave_one_out([one for one in sets if one.name not in (RANKED, FREE)], texts)


if __name__ == "__main__":
    main()

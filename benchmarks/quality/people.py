"""Agreement with people on six judged sets: `MOVERS_DATA=… python benchmarks/quality/people.py`.

The score, each aspect and measures that need no training stand side by side, plain and with the length of the summary
partialled out. The settings that judgements may choose are chosen without the set they are then tested on. QAGS's
summaries of XSum chose nothing: they were first measured when the metric without a language model was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from quality_common import Library, blanc_rows, judged, qags_xsum_rows, save
from scipy.stats import rankdata

from movers.quality.aspects import ASPECTS, measure_aspects
from movers.quality.facts import split_words, stem
from movers.quality.joins import JoinNetwork
from movers.quality.model import load_model

Values = NDArray[np.float64]
Candidate = TypeVar("Candidate")
#: How often judgements were printed while the design was made: tables of single features (3 times), sums of features,
#: forms of faithfulness, of fluency (2), of coverage and score (4), the constants, the finished formulas (5).
LOOKS = 17
#: The set that chose nothing of the metric without a language model.
UNSEEN = "QAGS-XSum"
#: How many combinations of features, forms and weights those tables held.
SETTINGS = 1850


@dataclass(frozen=True)
class JudgedSet:
    """Rows of a set, the columns people judged, and groups of rows to correlate within (None: all rows together)."""

    name: str
    pairs: list[tuple[str, str]]  # (document, summary)
    columns: dict[str, Values]
    groups: list[list[int]] | None = None


def read_set(name: str, rows: Sequence[Mapping[str, object]], *, grouped: bool = False) -> JudgedSet:
    groups: dict[object, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.get("doc"), []).append(place)
    columns = list(rows[0]["scores"])  # type: ignore[call-overload]
    return JudgedSet(
        name,
        [(str(row["source"]), str(row["candidate"])) for row in rows],
        {column: np.array([row["scores"][column] for row in rows], np.float64) for column in columns},  # type: ignore[index]
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


def over_groups(judged_set: JudgedSet, measure: Callable[..., float], *values: Values) -> float:
    if judged_set.groups is None:
        return measure(*values)
    return float(np.nanmean([measure(*(one[group] for one in values)) for group in judged_set.groups]))


def ranked_right(judged_set: JudgedSet, values: Values) -> float:
    """Share of pairs in which the right summary has the higher value; equal values count half."""
    assert judged_set.groups is not None
    people = judged_set.columns["fact"]
    pairs = [sorted(group, key=lambda place: -people[place]) for group in judged_set.groups]
    return float(np.mean([(values[a] > values[b]) + 0.5 * (values[a] == values[b]) for a, b in pairs]))


def rouge_l(document: list[str], summary: list[str]) -> float:
    """F1 of the longest common subsequence of stems."""
    source, before = np.array(document), np.zeros(len(document) + 1, np.int64)
    for word in summary:
        longer = np.r_[0, before[:-1] + (source == word)]
        before = np.maximum.accumulate(np.maximum(before, longer))
    return 2 * float(before[-1]) / max(1, len(document) + len(summary))


def measure_set(judged_set: JudgedSet, library: Library) -> dict[str, Values]:
    """Everything that is compared, for each row of a set."""
    network = load_model().module
    assert isinstance(network, JoinNetwork)
    found: list[dict[str, float]] = []
    for document, summary in judged_set.pairs:
        source, target = library.get(document), library.get(summary)
        aspects = measure_aspects(source, target, network.broken([target])[0])
        words = [[stem(word) for word in split_words(text)] for text in (document, summary)]
        found.append(
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
    return {name: np.array([row[name] for row in found]) for name in found[0]}


def agreement(judged_set: JudgedSet, values: Mapping[str, Values]) -> dict[str, dict[str, dict[str, float]]]:
    """Spearman with each column, plain and without length; for ranked pairs the share that is right."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for name, one in values.items():
        if name.startswith("_"):
            continue
        if judged_set.name == "ranked pairs":
            table[name] = {"fact": {"right": ranked_right(judged_set, one)}}
            continue
        table[name] = {}
        for column, people in judged_set.columns.items():
            cell = {"spearman": over_groups(judged_set, spearman, one, people)}
            if name != "length":
                cell["without_length"] = over_groups(judged_set, partial, one, people, values["length"])
            if judged_set.name.startswith("QAGS"):
                cell["pearson"] = float(np.corrcoef(one, people)[0, 1])
            table[name][column] = cell
    return table


def main_value(judged_set: JudgedSet, values: Values) -> float:
    if judged_set.name == "ranked pairs":
        return ranked_right(judged_set, values)
    return float(np.mean([over_groups(judged_set, spearman, values, people) for people in judged_set.columns.values()]))


def leave_one_out(
    sets: Sequence[JudgedSet], scores: Mapping[Candidate, Sequence[Values]]
) -> dict[str, dict[str, object]]:
    """For each set what the others choose of the candidates, and what it gives; under "all", what all choose."""
    table = {
        (candidate, one.name): main_value(one, of)
        for candidate, own in scores.items()
        for one, of in zip(sets, own, strict=True)
    }
    families: dict[str, list[str]] = {}  # sets of the same texts are left out together
    for one in sets:
        families.setdefault(one.name.split(",")[0], []).append(one.name)

    def choice(left_out: str | None) -> Candidate:
        kept = [names for family, names in families.items() if family != left_out]
        return max(scores, key=lambda one: np.mean([np.mean([table[one, name] for name in names]) for names in kept]))

    found: dict[str, dict[str, object]] = {"all": {"chosen": choice(None)}}
    for one in sets:
        chosen = choice(one.name.split(",")[0])
        found[one.name] = {"chosen": chosen, "columns": len(one.columns), "value": table[chosen, one.name]}
    return found


def with_constants(of: Mapping[str, Values], sharpness: float, repetition: float, coverage: float) -> Values:
    """Scores if fluency is so sharp, and repetition and coverage have these exponents; shipped are 6, 1 and 1."""
    mean = (of["faithfulness"] * of["coverage"] ** coverage * of["fluency"] ** (sharpness / 6)) ** (1 / 3)
    return mean * (1 - of["_repeated"]) ** repetition * of["_brevity"]


def chosen_constants(
    sets: Sequence[JudgedSet], values: Sequence[Mapping[str, Values]], exponents: Sequence[float]
) -> dict[str, dict[str, object]]:
    """The constants by what the other sets choose, with the exponent of coverage among the given ones."""
    settings = product((2.0, 4.0, 6.0), (1 / 3, 2 / 3, 1.0, 4 / 3), exponents)
    scores = {one: [with_constants(of, *one) for of in values] for one in settings}
    return leave_one_out(sets, scores)


def judged_sets() -> list[JudgedSet]:
    return [
        read_set("SummEval", judged("summeval"), grouped=True),
        read_set("CNN_DailyMail_555", blanc_rows("CNN_DailyMail_555")),
        read_set("DailyNews_300, generic", blanc_rows("DailyNews_300")),
        read_set("DailyNews_300, aspects", blanc_rows("DailyNews_300_aspects")),
        read_set("QAGS", judged("qags_cnndm")),
        read_set("ranked pairs", judged("rank19_cnndm"), grouped=True),
        read_set(UNSEEN, qags_xsum_rows()),
    ]


def main() -> None:
    sets = judged_sets()
    library = Library()
    library.add(text for one in sets for pair in one.pairs for text in pair)
    values = [measure_set(one, library) for one in sets]
    chosen_by = [(one, of) for one, of in zip(sets, values, strict=True) if one.name != UNSEEN]
    choosing = [one for one, _ in chosen_by], [of for _, of in chosen_by]
    save(
        "people",
        {
            "model": load_model().identity,
            "looks": LOOKS,
            "settings": SETTINGS,
            "aspects": ASPECTS,
            "rows": {one.name: len(one.pairs) for one in sets},
            "table": {one.name: agreement(one, of) for one, of in zip(sets, values, strict=True)},
            "leave_one_out": chosen_constants(*choosing, (1.0,)),
            "leave_one_out, coverage too": chosen_constants(*choosing, (0.5, 0.75, 1.0, 1.25)),
        },
    )


if __name__ == "__main__":
    main()

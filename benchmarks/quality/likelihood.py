"""Agreement with people with a language model: `MOVERS_DATA=… python benchmarks/quality/likelihood.py [minutes]`.

Likelihoods are kept as they are found, the documents of all sets by turns, so that a run of some minutes (none: only
what is there) can be followed by another; what is measured is measured on the rows that have one. How much the
likelihood weighs, and how often coverage counts beside it, is chosen without the set it is then tested on, in two ways:

* the maximum: the best mean over the other sets;
* one standard error (Breiman et al. 1984): of the settings whose mean is within one standard error of that maximum, the
  one that changes the metric least: the smallest weight, then the fewest times of coverage.

The second rule is for sets that differ in what they reward, as these do: a gain that the choosing sets cannot tell from
none is no reason to weigh a language model more on a set of another kind. The standard error is that of the difference
from the maximum on the same texts, because the level of a set says nothing about settings, and over a bootstrap that
draws sets and, within them, documents, because what is asked is how settings do on a further set, not on further rows
of these. Weight 0 is no candidate: it is the metric without the model. Minimax regret would let the one set that asks
for most likelihood decide alone. This was written down before the rule was tried, but after the maximum had been seen
to fail on DailyNews_300.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from people import JudgedSet, Values, agreement, judged_sets, main_value, measure_set, ranked_right, spearman
from quality_common import Library, save, work_folder
from scipy.stats import rankdata

from movers.io import progress_bar
from movers.quality.aspects import ASPECTS, COVERAGE_BESIDE_LIKELIHOOD, LIKELIHOOD_WEIGHT
from movers.quality.lm import SMALL, load_lm
from movers.quality.units import split_units

Setting = tuple[float, int]  # weight, times of coverage
SETTINGS: list[Setting] = list(product((0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5), (1, 2, 4, 8)))
RESAMPLES = 1000
#: How often judgements beside likelihoods were printed: the weight 0.3, weights of score and aspects, forms that level
#: off for high likelihoods (no better), the finished rule; then on nearly all rows: weights, exponents of everything
#: (160 settings, 2), the present rule (2), the rule of one standard error. They are beyond those of `people.py`.
LOOKS = 10
SHARES = {"CNN_DailyMail_555": 0.4, "SummEval": 0.5}  # the most tokens: their rows come later


class Likelihoods:
    """Mean log-likelihoods of (document, summary) pairs in a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, float] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.found[row["pair"]] = row["mean"]

    @staticmethod
    def key(document: str, summary: str) -> str:
        return hashlib.sha256(f"{document}\0{summary}".encode()).hexdigest()[:32]

    def add(self, document: str, means: Mapping[str, float]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            for summary, mean in means.items():
                self.found[self.key(document, summary)] = mean
                file.write(json.dumps({"pair": self.key(document, summary), "mean": mean}) + "\n")


def read(text: str) -> str:
    """A text as the metric hands it to the language model."""
    return " ".join(split_units(text, "sentences"))


def fill(sets: Sequence[JudgedSet], known: Likelihoods, minutes: float) -> None:
    """Find likelihoods until the time is up: a tenth of each set's documents, then the next tenth."""
    turns: dict[str, tuple[float, dict[str, None]]] = {}
    for one in sets:
        documents: dict[str, dict[str, None]] = {}
        for document, summary in one.pairs:
            documents.setdefault(read(document), {})[read(summary)] = None
        for place, (document, summaries) in enumerate(documents.items()):
            if document in turns:
                turns[document][1].update(summaries)
            else:
                turns[document] = 10 * place / len(documents) / SHARES.get(one.name, 1) // 1, summaries
    lm = load_lm(SMALL, "cpu")  # float32, as the metric by default
    end = time.monotonic() + 60 * minutes
    with progress_bar(len(turns), desc="likelihoods", unit=" documents") as bar:
        for document, (_, summaries) in sorted(turns.items(), key=lambda item: item[1][0]):
            new = [summary for summary in summaries if known.key(document, summary) not in known.found]
            if new and time.monotonic() < end:
                found = lm.log_likelihoods(document, new)
                known.add(document, {text: float(one.mean()) for text, one in zip(new, found, strict=True)})
            bar.update(1)


def known_part(one: JudgedSet, known: Likelihoods) -> tuple[JudgedSet, Values]:
    """The rows that have a likelihood (of grouped sets, the groups all of whose rows have one), with it."""
    means = [known.found.get(known.key(read(document), read(summary))) for document, summary in one.pairs]
    groups = one.groups or [[row] for row in range(len(means))]
    whole = [group for group in groups if all(means[row] is not None for row in group)]
    rows = [row for group in whole for row in group]
    places = {row: place for place, row in enumerate(rows)}
    part = replace(
        one,
        pairs=[one.pairs[row] for row in rows],
        columns={name: values[rows] for name, values in one.columns.items()},
        groups=None if one.groups is None else [[places[row] for row in group] for group in whole],
    )
    return part, np.exp(np.array([means[row] for row in rows], np.float64))


def with_likelihood(of: Mapping[str, Values], weight: float, times: int) -> dict[str, Values]:
    """Score and aspects with the likelihood in them, as `movers.quality.aspects` has it."""
    found = {name: of[name] ** (1 - weight) * of["likelihood"] ** weight for name in ASPECTS}
    mean = (found["faithfulness"] * found["coverage"] ** times * found["fluency"]) ** (1 / (2 + times))
    return {"score": mean * (1 - of["_repeated"]) * of["_brevity"], **found}


def families(sets: Sequence[JudgedSet]) -> dict[str, list[int]]:
    """Places of the sets with the same texts, which are chosen from or left out together."""
    found: dict[str, list[int]] = {}
    for place, one in enumerate(sets):
        found.setdefault(one.name.split(",")[0], []).append(place)
    return found


def units_of(one: JudgedSet) -> dict[str, list[int]]:
    """Which units of a set (groups, or rows of a set without them) each document has."""
    found: dict[str, list[int]] = {}
    groups = one.groups or [[row] for row in range(len(one.pairs))]
    for unit, group in enumerate(groups):
        start = "".join(one.pairs[group[0]][0].split())[:80]  # the two sets of DailyNews_300 differ in white space
        found.setdefault(start, []).append(unit)
    return found


def of_unit(one: JudgedSet, values: Values, people: Values) -> list[float]:
    """What each group of a grouped set says of the values."""
    assert one.groups is not None
    if one.name == "ranked pairs":
        return [ranked_right(replace(one, groups=[group]), values) for group in one.groups]
    return [spearman(values[group], people[group]) for group in one.groups]


def resampled(one: JudgedSet, scores: Values) -> Callable[[NDArray[np.int64]], Values]:
    """A function from drawn units to the (settings,) main values on them, for (settings, rows) scores."""
    columns = np.array(list(one.columns.values()))
    if one.groups is not None:
        of_group = np.array([[of_unit(one, of, people) for people in columns] for of in scores])
        return lambda units: np.nanmean(of_group[:, :, units], axis=2).mean(axis=1)

    def main_values(units: NDArray[np.int64]) -> Values:
        ours, theirs = (rankdata(of[:, units], axis=1) for of in (scores, columns))
        ours, theirs = (of - of.mean(axis=1, keepdims=True) for of in (ours, theirs))
        ours, theirs = (of / np.linalg.norm(of, axis=1, keepdims=True) for of in (ours, theirs))
        return np.asarray((ours @ theirs.T).mean(axis=1), np.float64)

    return main_values


def bootstrap(sets: Sequence[JudgedSet], scores: Sequence[Values]) -> dict[str, Values]:
    """(resamples, settings) main values of each family over documents drawn with replacement."""
    rng, found = np.random.default_rng(0), {}
    for family, places in families(sets).items():
        own = [(units_of(sets[place]), resampled(sets[place], scores[place])) for place in places]
        documents = sorted({document for units, _ in own for document in units})
        rows = []
        for _ in range(RESAMPLES):
            drawn = [documents[place] for place in rng.integers(len(documents), size=len(documents))]
            values = [
                measure(np.array([unit for document in drawn for unit in units.get(document, ())]))
                for units, measure in own
            ]
            rows.append(np.mean(values, axis=0))
        found[family] = np.array(rows)
    return found


def choose(means: Mapping[str, Values], resamples: Mapping[str, Values]) -> dict[str, Setting]:
    """The setting by each rule, from the (settings,) values of families and their resamples."""
    mean = np.mean(list(means.values()), axis=0)
    best, rng = int(mean.argmax()), np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        families = rng.choice(list(means), size=len(means))
        drawn.append(np.mean([resamples[family][rng.integers(RESAMPLES)] for family in families], axis=0))
    lost = np.array(drawn)
    errors = (lost[:, [best]] - lost).std(axis=0)
    near = [place for place in range(len(mean)) if mean[best] - mean[place] <= errors[place]]
    return {"maximum": SETTINGS[best], "one standard error": min(SETTINGS[place] for place in near)}


def leave_one_out(sets: Sequence[JudgedSet], values: Sequence[Mapping[str, Values]]) -> dict[str, object]:
    """The setting that each rule chooses by the other sets, and what it gives; and what it chooses by all."""
    scores = [np.array([with_likelihood(of, *setting)["score"] for setting in SETTINGS]) for of in values]
    table = [np.array([main_value(one, of) for of in own]) for one, own in zip(sets, scores, strict=True)]
    means = {family: np.mean([table[place] for place in places], axis=0) for family, places in families(sets).items()}
    resamples = bootstrap(sets, scores)
    found: dict[str, dict[str, object]] = {}
    for family, places in families(sets).items():
        chosen = choose({name: of for name, of in means.items() if name != family}, resamples)
        for rule, (weight, times) in chosen.items():
            for place in places:
                found.setdefault(rule, {})[sets[place].name] = {
                    "weight": weight,
                    "times": times,
                    "columns": len(sets[place].columns),
                    "value": float(table[place][SETTINGS.index((weight, times))]),
                }
    by_all = {rule: {"weight": weight, "times": times} for rule, (weight, times) in choose(means, resamples).items()}
    return {"left_out": found, "by_all": by_all}


def main() -> None:
    sets = judged_sets()
    known = Likelihoods(work_folder() / f"likelihoods-{SMALL}.jsonl")
    if len(sys.argv) > 1:
        fill(sets, known, float(sys.argv[1]))
    library = Library()
    parts, values = [], []
    for one in sets:
        part, likelihood = known_part(one, known)
        library.add(text for pair in part.pairs for text in pair)
        parts.append(part)
        values.append({**measure_set(part, library), "likelihood": likelihood})
    shown = [
        {
            **{
                f"{name}, with lm": one
                for name, one in with_likelihood(of, LIKELIHOOD_WEIGHT, COVERAGE_BESIDE_LIKELIHOOD).items()
            },
            **{name: of[name] for name in ("score", *ASPECTS, "likelihood", "length")},
        }
        for of in values
    ]
    save(
        "likelihood",
        {
            "lm": SMALL,
            "looks": LOOKS,
            "weight": LIKELIHOOD_WEIGHT,
            "times": COVERAGE_BESIDE_LIKELIHOOD,
            "rows": {one.name: [len(part.pairs), len(one.pairs)] for one, part in zip(sets, parts, strict=True)},
            "table": {part.name: agreement(part, of) for part, of in zip(parts, shown, strict=True)},
            **leave_one_out(parts, values),
        },
    )


if __name__ == "__main__":
    main()

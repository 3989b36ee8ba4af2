"""Agreement with people with a language model: `MOVERS_DATA=… python benchmarks/quality/likelihood.py [minutes]`.

Likelihoods are kept as they are found, the documents of all sets by turns, so that a run of some minutes (none: only
what is there) can be followed by another; what is measured is measured on the rows that have one. How much the
likelihood weighs, and how often coverage counts beside it, is chosen without the set it is then tested on.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from people import JudgedSet, Values, agreement, judged_sets, main_value, measure_set
from quality_common import Library, save, work_folder

from movers.io import progress_bar
from movers.quality.aspects import ASPECTS, COVERAGE_BESIDE_LIKELIHOOD, LIKELIHOOD_WEIGHT
from movers.quality.lm import SMALL, load_lm
from movers.quality.units import split_units

SETTINGS = list(product((0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5), (1, 2, 4, 8)))  # weight, times of coverage
#: How often judgements beside likelihoods were printed: the weight 0.3, weights of score and aspects, forms that level
#: off for high likelihoods (no better), the finished rule; then on nearly all rows: weights, exponents of everything
#: (160 settings, 2), the present rule (2). They are beyond those of `people.py`.
LOOKS = 9
SHARES = {"CNN_DailyMail_555": 0.5}  # its documents are the longest, and it is one column of twelve


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
    lm = load_lm(SMALL, "cpu", "bfloat16")
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


def leave_one_out(sets: Sequence[JudgedSet], values: Sequence[Mapping[str, Values]]) -> dict[str, object]:
    """The setting that is best on the other sets (those of the same texts left out together), and what it gives."""
    table = {
        (setting, one.name): main_value(one, with_likelihood(of, *setting)["score"])
        for setting in SETTINGS
        for one, of in zip(sets, values, strict=True)
    }
    found: dict[str, object] = {}
    for judged_set in sets:
        others: dict[str, list[str]] = {}
        for one in sets:
            if one.name.split(",")[0] != judged_set.name.split(",")[0]:
                others.setdefault(one.name.split(",")[0], []).append(one.name)

        def mean(setting: tuple[float, int], others: dict[str, list[str]] = others) -> float:
            return float(np.mean([np.mean([table[setting, name] for name in names]) for names in others.values()]))

        best = max(SETTINGS, key=mean)
        found[judged_set.name] = {
            "weight": best[0],
            "times": best[1],
            "columns": len(judged_set.columns),
            "value": table[best, judged_set.name],
        }
    return found


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
            "leave_one_out": leave_one_out(parts, values),
        },
    )


if __name__ == "__main__":
    main()

"""Agreement with people with a language model: `MOVERS_DATA=… python benchmarks/quality/likelihood.py [minutes]`.

Likelihoods are kept as they are found, the documents of all sets by turns, so that a run of some minutes (none: only
what is there) can be followed by another; what is measured is measured on the rows that have one. How much of
faithfulness and fluency the likelihood replaces in the score is chosen without the set it is then tested on, by the
best mean over the other sets. Nothing, the metric without the model, is one of the candidates.

The family of candidates is narrow on purpose. Where the weight of the likelihood was free, sets whose judges look at
facts and language chose more of it than DailyNews_300, whose judges reward coverage, can bear. Here it can only take
the place of faithfulness and fluency, and its scale comes from texts without judgements (`likelihood_scale.py`); what
other scales would have given is shown beside it. This family was drawn up after the free one had failed. QAGS's
summaries of XSum were measured when it was finished, with three quarters replaced, as the sets before chose; the score
fell there (.262 without the model, .188 with it). Since then they are one of the sets that choose.
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
from people import JudgedSet, Values, agreement, judged_sets, leave_one_out, measure_set
from quality_common import Library, save, work_folder

from movers.io import progress_bar
from movers.quality.aspects import ASPECTS, LIKELIHOOD_SCALE, REPLACED
from movers.quality.lm import SMALL, Likelihood, load_lm
from movers.quality.units import split_units

#: Shares of faithfulness and fluency in the score that the likelihood may replace.
CANDIDATES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Weights of the likelihood and times that coverage counts, in the family without that bound.
FREE = tuple(product((0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5), (1, 2, 4, 8)))
#: The metric's scale of the likelihood, and others to compare with.
SCALES = (LIKELIHOOD_SCALE, 0.1, 0.15, 0.25, 0.3)
#: How often judgements beside likelihoods were printed: the weight 0.3, weights of score and aspects, forms that level
#: off for high likelihoods (no better), the finished rule; then on nearly all rows: weights, exponents of everything
#: (160 settings, 2), a rule with free weights (2), its weights by one standard error; then single features (among them
#: the likelihood of the document after the summary), weights of that one, likelihoods relative to the document's
#: (worse), the present family with four scales, without repetitions, on all rows; QAGS-XSum, and the family with it.
#: They are beyond those of `people.py`.
LOOKS = 18
SHARES = {"CNN_DailyMail_555": 0.4, "SummEval": 0.5}  # the most tokens: their rows come later


class Likelihoods:
    """Likelihoods of (document, summary) pairs in a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Likelihood] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.found[row["pair"]] = Likelihood(row["whole"], row["new"])

    @staticmethod
    def key(document: str, summary: str) -> str:
        return hashlib.sha256(f"{document}\0{summary}".encode()).hexdigest()[:32]

    def add(self, document: str, values: Mapping[str, Likelihood]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            for summary, of in values.items():
                self.found[self.key(document, summary)] = of
                file.write(json.dumps({"pair": self.key(document, summary), **of._asdict()}) + "\n")


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
                known.add(document, dict(zip(new, lm.likelihoods(document, new), strict=True)))
            bar.update(1)


def known_part(one: JudgedSet, known: Likelihoods) -> tuple[JudgedSet, dict[str, Values]]:
    """The rows that have a likelihood (of grouped sets, the groups all of whose rows have one), with it."""
    known_values = [known.found.get(known.key(read(document), read(summary))) for document, summary in one.pairs]
    groups = one.groups or [[row] for row in range(len(known_values))]
    whole = [group for group in groups if all(known_values[row] is not None for row in group)]
    rows = [row for group in whole for row in group]
    places = {row: place for place, row in enumerate(rows)}
    part = replace(
        one,
        pairs=[one.pairs[row] for row in rows],
        columns={name: values[rows] for name, values in one.columns.items()},
        groups=None if one.groups is None else [[places[row] for row in group] for group in whole],
    )
    return part, {
        "likelihood": np.array([known_values[row].whole for row in rows]),  # type: ignore[union-attr]
        "_new": np.array([known_values[row].new for row in rows]),  # type: ignore[union-attr]
    }


def with_likelihood(of: Mapping[str, Values], replaced: float, scale: float = LIKELIHOOD_SCALE) -> dict[str, Values]:
    """Score and aspects with the likelihood in them, as `movers.quality.aspects` has it."""
    likelihood, share = of["_new"] ** scale, 2 * replaced / 3
    language = (of["faithfulness"] * of["fluency"]) ** (1 - replaced) * likelihood ** (2 * replaced)
    score = (language * of["coverage"]) ** (1 / 3) * (1 - of["_repeated"]) * of["_brevity"]
    return {"score": score, **{name: of[name] ** (1 - share) * likelihood**share for name in ASPECTS}}


def with_free_weight(of: Mapping[str, Values], weight: float, times: int) -> Values:
    """Scores if the likelihood is any share of every aspect, and coverage counts any number of times."""
    found = {name: of[name] ** (1 - weight) * of["_new"] ** weight for name in ASPECTS}
    mean = (found["faithfulness"] * found["coverage"] ** times * found["fluency"]) ** (1 / (2 + times))
    return mean * (1 - of["_repeated"]) * of["_brevity"]


def main() -> None:
    sets = judged_sets()
    known = Likelihoods(work_folder() / f"likelihoods-{SMALL}.jsonl")
    if len(sys.argv) > 1:
        fill(sets, known, float(sys.argv[1]))
    library = Library()
    parts, values = [], []
    for one in sets:
        part, likelihoods = known_part(one, known)
        library.add(text for pair in part.pairs for text in pair)
        parts.append(part)
        values.append({**measure_set(part, library), **likelihoods})
    shown = [
        {
            **{f"{name}, with lm": one for name, one in with_likelihood(of, REPLACED).items()},
            **{name: of[name] for name in ("score", *ASPECTS, "likelihood")},
            "likelihood, no repeats": of["_new"],
            "length": of["length"],
        }
        for of in values
    ]
    save(
        "likelihood",
        {
            "lm": SMALL,
            "looks": LOOKS,
            "replaced": REPLACED,
            "scale": LIKELIHOOD_SCALE,
            "candidates": CANDIDATES,
            "rows": {one.name: [len(part.pairs), len(one.pairs)] for one, part in zip(sets, parts, strict=True)},
            "table": {part.name: agreement(part, of) for part, of in zip(parts, shown, strict=True)},
            "left_out": {
                str(scale): leave_one_out(
                    parts, {one: [with_likelihood(of, one, scale)["score"] for of in values] for one in CANDIDATES}
                )
                for scale in SCALES
            },
            "free": leave_one_out(parts, {one: [with_free_weight(of, *one) for of in values] for one in FREE}),
        },
    )


if __name__ == "__main__":
    main()

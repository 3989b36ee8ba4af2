"""Score judged texts, or the texts of several systems, with several metrics in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from movers.agreement.coefficients import Outcome, rows_by_label
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.lexical import LEXICAL_METRICS, check_lexical_options
from movers.agreement.systems import compare_systems
from movers.errors import RowError
from movers.registry import METRICS
from movers.scorer import Row, Scorer


@dataclass(frozen=True)
class MetricCall:
    """A metric (also ``rouge``, ``bleu``, ``chrf``) with its options, and its label in tables.

    ``output`` is the entry of the result to use: ``scores``, or ``precision``, ``recall``, ``f1`` where it has them.
    """

    label: str
    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    output: str = "scores"


@dataclass(frozen=True)
class Scored:
    """One metric's scores of all judged texts; None if a text has no reference (or source)."""

    scores: list[float | None]
    signatures: dict[str, None] = field(default_factory=dict)  # an ordered set: one for each IDF table

    @property
    def signature(self) -> str:
        return " ".join(self.signatures) or "no texts"


def compared_with(name: str) -> str:
    """``references`` or ``sources``."""
    return "references" if name in LEXICAL_METRICS else METRICS[name].compared_with


def score_judged(
    judged: JudgedSet, calls: Sequence[MetricCall], *, groups: Sequence[str] | None = None, progress: bool | None = None
) -> dict[str, Scored]:
    """Score every judged text with every metric: label of the call → scores, in the order of the texts.

    Metrics with references skip texts without references, reference-free metrics skip texts without a source. With
    ``idf="corpus"``, IDF tables are built within each of the ``groups`` (one label per text).
    """
    scored = {call.label: Scored([None] * len(judged)) for call in calls}
    for argument in ("references", "sources"):
        chosen = [call for call in calls if compared_with(call.name) == argument]
        metrics = {call.label: (call.name, call.options) for call in chosen if call.name in METRICS}
        scorer = Scorer(metrics, progress=progress) if metrics else None
        parts = [[row for row, text in enumerate(judged.texts) if getattr(text, argument)]]
        if groups is not None and scorer is not None and scorer.needs_corpus:
            members = rows_by_label([groups[row] for row in parts[0]]).values()
            parts = [[parts[0][member] for member in group] for group in members]
        for part in filter(None, parts):
            results = _score_part(judged, part, chosen, scorer)
            for call in chosen:
                scored[call.label].signatures[results[call.label]["signature"]] = None
                for row, score in zip(part, results[call.label][call.output], strict=True):
                    scored[call.label].scores[row] = score
    return scored


def _score_part(
    judged: JudgedSet, part: Sequence[int], calls: Sequence[MetricCall], scorer: Scorer | None
) -> dict[str, dict[str, Any]]:
    """Label → result over some of the texts."""
    results: dict[str, dict[str, Any]] = {}
    rows = [Row(text.candidate, text.references, text.sources) for text in (judged.texts[row] for row in part)]
    for call in calls:
        if call.name in LEXICAL_METRICS:
            check_lexical_options(call.name, call.options)
            texts = [row.prediction for row in rows], [list(row.references) for row in rows]
            results[call.label] = LEXICAL_METRICS[call.name](*texts, **call.options)
    if scorer is not None:
        scorer = scorer.prepare(rows)
        try:
            results |= scorer.collect(list(scorer.stream(rows, total=len(rows))))
        except RowError as error:
            raise RowError(error.metric, judged.name, part[error.row], error.reason) from None
    return results


def compare_texts(
    systems: Mapping[str, Sequence[str]],
    calls: Sequence[MetricCall],
    compared: Mapping[str, Sequence[Sequence[str]]],
    progress: bool | None = None,
    **resampling: Any,
) -> list[Outcome]:
    """Score the texts of several systems with every metric, and compare every pair: :func:`compare_systems`.

    ``systems`` maps names to n texts each, ``compared`` maps ``references`` and ``sources`` to n lists of texts.
    Returns the rows of :func:`compare_systems` by metric, each also with ``metric`` and ``signature``.
    """
    compare_systems(dict.fromkeys(systems, [0.0]), **resampling)  # fail before scoring
    n = len(next(iter(compared.values())))
    references, sources = (compared.get(name, [()] * n) for name in ("references", "sources"))
    judged = [  # of all systems together, so that references are encoded once
        JudgedText(f"{name}:{row}", outputs[row], tuple(references[row]), {}, {"source": list(sources[row])})
        for name, outputs in systems.items()
        for row in range(n)
    ]
    try:
        scored = score_judged(JudgedSet("compare", tuple(judged)), calls, progress=progress)
    except RowError as error:
        place, row = divmod(error.row, n)
        raise RowError(error.metric, list(systems)[place], row, error.reason) from None
    rows = []
    for call in calls:
        column = scored[call.label]
        scores = {name: column.scores[place * n : (place + 1) * n] for place, name in enumerate(systems)}
        outcomes = compare_systems(scores, **resampling)
        rows += [{"metric": call.label, **outcome, "signature": column.signature} for outcome in outcomes]
    return rows

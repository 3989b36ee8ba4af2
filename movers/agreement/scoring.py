"""Score judged texts, or the texts of several systems, with several metrics in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from movers.agreement.coefficients import Outcome, rows_by_label
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.lexical import LEXICAL_METRICS, References, check_lexical_options
from movers.agreement.systems import compare_systems
from movers.errors import InputError, RowError
from movers.inputs import check_pairs
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
    """``references`` or ``sources``; an unknown metric is an error that lists the known ones."""
    if name in LEXICAL_METRICS:
        return "references"
    if name not in METRICS:
        raise InputError(f"metric: expected one of {', '.join([*METRICS, *LEXICAL_METRICS])}, but got {name!r}")
    return METRICS[name].compared_with


def score_judged(
    judged: JudgedSet, calls: Sequence[MetricCall], *, groups: Sequence[str] | None = None, progress: bool | None = None
) -> dict[str, Scored]:
    """Score every judged text with every metric: label of the call → scores, in the order of the texts.

    Metrics with references skip texts without references, reference-free metrics skip texts without a source. With
    ``idf="corpus"``, IDF tables are built within each of the ``groups`` (one label per text).
    """
    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise InputError(f"metrics: expected each metric once, but got {', '.join(labels)}")
    scored = {label: Scored([None] * len(judged)) for label in labels}
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
                column = results[call.label].get(call.output)
                if not isinstance(column, list):
                    outputs = [name for name, value in results[call.label].items() if isinstance(value, list)]
                    expected = f"expected one of {', '.join(outputs)}"
                    raise InputError(f"{call.name}: output: {expected}, but got {call.output!r}")
                scored[call.label].signatures[str(results[call.label]["signature"])] = None
                for row, score in zip(part, column, strict=True):
                    scored[call.label].scores[row] = score
    return scored


def _score_part(
    judged: JudgedSet, part: Sequence[int], calls: Sequence[MetricCall], scorer: Scorer | None
) -> dict[str, Mapping[str, object]]:
    """Label → result over some of the texts."""
    results: dict[str, Mapping[str, object]] = {}
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
    *,
    references: References | None = None,
    sources: References | None = None,
    progress: bool | None = None,
    **resampling: Any,
) -> list[Outcome]:
    """Score the texts of several systems with every metric, and compare every pair: :func:`compare_systems`.

    ``systems`` maps names to n texts each. ``references`` and ``sources`` are n texts, or n lists of texts. Returns the
    rows of :func:`compare_systems` by metric, each also with ``metric`` and ``signature``.
    """
    compare_systems(dict.fromkeys(systems, [0.0]), **resampling)  # fail before scoring
    compared = {name: texts for name, texts in (("references", references), ("sources", sources)) if texts is not None}
    for call in calls:
        if (needed := compared_with(call.name)) not in compared:
            raise InputError(f"compare: {call.label}: expected {needed} to compare with, but got none")
    judged: list[JudgedText] = []  # of all systems together, so that references are encoded once
    for name, outputs in systems.items():
        groups = {key: check_pairs(f"compare: {name}", outputs, texts, key)[1] for key, texts in compared.items()}
        for row, text in enumerate(outputs):
            others = {key: column[row] for key, column in groups.items()}
            fields = {"source": others.get("sources", [])}
            judged.append(JudgedText(f"{name}:{row}", text, tuple(others.get("references", ())), {}, fields))
    n = len(judged) // len(systems)
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

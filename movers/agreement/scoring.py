"""Score judged texts, or the texts of several systems, with several metrics in one pass."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from movers.agreement.coefficients import check_resampling, rows_by_label
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.lexical import LEXICAL_METRICS
from movers.agreement.significance import SystemComparison, compare_systems
from movers.errors import InputError, RowError
from movers.inputs import check_options, check_positive, check_text_groups, check_texts
from movers.io import progress_bar
from movers.registry import METRICS, parse_metric
from movers.scorer import Row, Scorer
from movers.scores.options import References

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["MetricCall", "Scored", "SystemTest", "compare_texts", "compared_with", "score_judged"]


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
    judged: JudgedSet,
    calls: Sequence[MetricCall],
    *,
    groups: Sequence[str] | None = None,
    progress: bool | None = None,
) -> dict[str, Scored]:
    """Score every judged text with every metric: label of the call → scores, in the order of the texts.

    Metrics with references skip texts without references, reference-free metrics skip texts without a source. Metrics
    with the same encoder reuse one forward pass per text. With ``idf="corpus"``, IDF tables are built within each of
    the ``groups`` (one label per text).
    """
    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise InputError(f"metrics: expected each metric once, but got {', '.join(labels)}")
    scored = {label: Scored([None] * len(judged)) for label in labels}
    jobs = _jobs(calls)
    rows_with = {
        argument: [row for row, text in enumerate(judged.texts) if getattr(text, argument)]
        for argument in ("references", "sources")
    }
    total = sum(len(rows_with[job.argument]) for job in jobs)
    with progress_bar(total, desc="scoring", unit=" texts", progress=progress) as bar:
        for job in jobs:
            rows = rows_with[job.argument]
            parts = [rows] if rows else []
            if groups is not None and job.scorer is not None and job.scorer.needs_corpus:
                members = rows_by_label([groups[row] for row in rows]).values()
                parts = [[rows[member] for member in part] for part in members]
            for part in parts:
                try:
                    results = job.run([judged.texts[row] for row in part], bar)
                except RowError as error:
                    raise RowError(error.metric, judged.name, part[error.row], error.reason) from None
                for result, metric_calls in zip(results, job.calls, strict=True):
                    for call in metric_calls:
                        column = result.get(call.output)
                        if not isinstance(column, list):
                            known = ", ".join(name for name, value in result.items() if isinstance(value, list))
                            raise InputError(f"{call.name}: output: expected one of {known}, but got {call.output!r}")
                        scored[call.label].signatures[str(result["signature"])] = None
                        for row, score in zip(part, column, strict=True):
                            scored[call.label].scores[row] = score
    return scored


@dataclass(frozen=True)
class _Job:
    """Metrics that are compared with the same texts, for each the calls that use it; without a scorer a lexical one."""

    argument: str
    calls: list[list[MetricCall]]
    scorer: Scorer | None

    def run(self, texts: Sequence[JudgedText], bar: tqdm[object]) -> list[Mapping[str, object]]:
        """The result of each metric."""
        if self.scorer is None:
            ((call,),) = self.calls
            candidates, references = [text.candidate for text in texts], [list(text.references) for text in texts]
            bar.update(len(texts))
            return [LEXICAL_METRICS[call.name](candidates, references, **call.options)]
        rows = [Row(text.candidate, text.references, text.sources) for text in texts]
        scorer = self.scorer.prepare(rows)
        examples = []
        for example in scorer.stream(rows, total=len(rows)):
            examples.append(example)
            bar.update(1)
        return list(scorer.collect(examples).values())


def _jobs(calls: Sequence[MetricCall]) -> list[_Job]:
    """One job for all metrics that compare with references, one for those with sources; all options are validated."""
    jobs: list[_Job] = []
    metrics: dict[str, dict[str, list[MetricCall]]] = {}
    for call in calls:
        argument = compared_with(call.name)
        if call.name in LEXICAL_METRICS:
            parameters = inspect.signature(LEXICAL_METRICS[call.name]).parameters.values()
            known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            check_options(call.name, call.options, known)
            jobs.append(_Job(argument, [[call]], None))
        elif (text := _as_text(call)) is None:
            jobs.append(_Job(argument, [[call]], Scorer([(call.name, call.options)], progress=False)))
        else:
            metrics.setdefault(argument, {}).setdefault(text, []).append(call)
    for argument, users in metrics.items():
        jobs.append(_Job(argument, list(users.values()), Scorer(list(users), progress=False)))
    return jobs


def _as_text(call: MetricCall) -> str | None:
    """``name[key=value,…]``, by which a Scorer tells metrics apart; None if an option is no text, as an encoder."""
    try:
        options = {key: "none" if value is None else json.dumps(value) for key, value in call.options.items()}
        text = call.name + (f"[{','.join(f'{key}={value}' for key, value in options.items())}]" if options else "")
        return text if parse_metric(text)[1] == call.options else None
    except (TypeError, InputError):
        return None


# --- systems ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemTest:
    """Comparison of two systems by one metric, with their names and the signature."""

    metric: str
    a: str
    b: str
    signature: str
    outcome: SystemComparison
    alpha: float = 0.05

    @property
    def better(self) -> str | None:
        """The name of the significantly better system, None if there is none."""
        if not self.outcome.significant(self.alpha):
            return None
        return self.a if self.outcome.difference.value > 0 else self.b

    def as_dict(self) -> dict[str, object]:
        """A flat dict of JSON values."""
        outcome = self.outcome
        return {
            "metric": self.metric,
            "a": self.a,
            "b": self.b,
            "better": self.better,
            "n": outcome.n,
            **outcome.a.as_dict("mean_a"),
            **outcome.b.as_dict("mean_b"),
            **outcome.difference.as_dict("difference"),
            "bootstrap_p": outcome.bootstrap_p,
            "randomization_p": outcome.randomization.p,
            "randomization_exact": outcome.randomization.exact,
            "alpha": self.alpha,
            "signature": self.signature,
        }


def compare_texts(
    systems: Mapping[str, Sequence[str]],
    calls: Sequence[MetricCall],
    *,
    references: References | None = None,
    sources: References | None = None,
    n_resamples: int = 1000,
    n_exchanges: int = 10_000,
    confidence: float = 0.95,
    alpha: float = 0.05,
    seed: int = 0,
    progress: bool | None = None,
) -> list[SystemTest]:
    """Score the texts of several systems with every metric, and compare the first system with each of the others.

    ``systems`` maps names to n texts each, the first is A of every comparison. ``references`` and ``sources`` are n
    texts, or n lists of texts. A system is better if both tests of :func:`compare_systems` give p < alpha. The tests
    are ordered by metric, then system.
    """
    if len(systems) < 2:
        raise InputError(f"compare: expected at least two systems, but got {len(systems)}")
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    check_positive("agreement", "n_exchanges", n_exchanges, none_allowed=False)
    first, *others = systems
    texts = {name: check_texts("compare", name, outputs) for name, outputs in systems.items()}
    n = len(texts[first])
    compared = {"references": references, "sources": sources}
    groups = {key: check_text_groups("compare", key, rows) for key, rows in compared.items() if rows is not None}
    for name, length in {key: len(rows) for part in (texts, groups) for key, rows in part.items()}.items():
        if length != n:
            raise InputError(f"compare: {name}: expected as many rows as {first} has ({n}), but got {length}")
    for call in calls:
        if (needed := compared_with(call.name)) not in groups:
            raise InputError(f"compare: {call.label}: expected {needed} to compare with, but got none")
    empty: list[list[str]] = [[]] * n
    # All systems together, so that references are encoded once.
    judged = JudgedSet(
        "compare",
        tuple(
            JudgedText(f"{name}:{row}", text, tuple(row_references), {}, {"source": row_sources})
            for name, outputs in texts.items()
            for row, (text, row_references, row_sources) in enumerate(
                zip(outputs, groups.get("references", empty), groups.get("sources", empty), strict=True)
            )
        ),
    )
    try:
        scored = score_judged(judged, calls, progress=progress)
    except RowError as error:
        place, row = divmod(error.row, n)
        raise RowError(error.metric, list(systems)[place], row, error.reason) from None
    resampling = {"n_resamples": n_resamples, "n_exchanges": n_exchanges, "seed": seed}
    tests = []
    for call in calls:
        column = scored[call.label]
        scores = {name: column.scores[place * n : (place + 1) * n] for place, name in enumerate(systems)}
        for other in others:
            outcome = compare_systems(scores[first], scores[other], confidence=confidence, **resampling)
            tests.append(SystemTest(call.label, first, other, column.signature, outcome, alpha))
    return tests

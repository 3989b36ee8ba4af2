"""Score judged texts, or the texts of several systems, with several metrics in one pass."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from movers.agreement.correlation import check_resampling, rows_by_label
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.lexical import LEXICAL_METRICS
from movers.agreement.significance import SystemComparison, compare_systems
from movers.errors import InputError, RowError
from movers.inputs import check_options, check_positive, check_text_groups, check_texts
from movers.io import progress_bar
from movers.registry import METRICS, MetricWithOptions, parse_metric
from movers.scorer import Example, Row, Scorer
from movers.scores.options import References

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
    """Score every judged text with every metric.

    Parameters
    ----------
    judged : JudgedSet
    calls : sequence of MetricCall
        Metrics with references skip texts without references, reference-free metrics skip texts without a source.
        Metrics with the same encoder reuse one forward pass per text.
    groups : sequence of str, optional
        One label per text: with ``idf="corpus"``, IDF tables are built within each group.
    progress : bool, optional
        Show a progress bar; by default on terminals only.

    Returns
    -------
    dict
        Label of the call → its scores, in the order of the texts.
    """
    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise InputError(f"metrics: expected each metric once, but got {', '.join(labels)}")
    scored: dict[str, Scored] = {label: Scored([None] * len(judged)) for label in labels}
    scorers = [(Scorer(items, progress=False), users) for items, users in _by_scorer(calls)]
    lexical = [call for call in calls if call.name in LEXICAL_METRICS]
    for call in lexical:
        parameters = inspect.signature(LEXICAL_METRICS[call.name]).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        check_options(call.name, call.options, names)
    rows_with = {
        argument: [row for row, text in enumerate(judged.texts) if getattr(text, argument)]
        for argument in ("references", "sources")
    }
    total = sum(len(rows_with[scorer.compared_with[0]]) for scorer, _ in scorers)
    with progress_bar(
        total + len(lexical) * len(rows_with["references"]), desc="scoring", unit=" texts", progress=progress
    ) as bar:
        for call in lexical:
            rows = rows_with["references"]
            if rows:
                texts = [judged.texts[row] for row in rows]
                result = LEXICAL_METRICS[call.name](
                    [text.candidate for text in texts], [list(text.references) for text in texts], **call.options
                )
                scored[call.label].signatures[str(result["signature"])] = None
                for row, score in zip(rows, _column(call, result), strict=True):
                    scored[call.label].scores[row] = score
            bar.update(len(rows))
        for scorer, users in scorers:
            rows = rows_with[scorer.compared_with[0]]
            for part in _parts(rows, groups if scorer.needs_corpus else None):
                for row, examples in _examples(scorer, judged, part, scored, users):
                    for example, metric_calls in zip(examples, users, strict=True):
                        for call in metric_calls:
                            scored[call.label].scores[row] = _output(call, example)
                    bar.update(1)
    return scored


def _by_scorer(calls: Sequence[MetricCall]) -> list[tuple[list[MetricWithOptions], list[list[MetricCall]]]]:
    """What one Scorer each is made of: metrics that are compared with the same texts, and the calls that use each.

    A Scorer tells metrics apart by their text, so an option that cannot be written as text needs a Scorer of its own.
    """
    scorers: dict[str, dict[str, list[MetricCall]]] = {}
    single: list[tuple[list[MetricWithOptions], list[list[MetricCall]]]] = []
    for call in calls:
        argument = compared_with(call.name)
        if call.name in LEXICAL_METRICS:
            continue
        text = _as_text(call)
        if text is None:
            single.append(([(call.name, call.options)], [[call]]))
        else:
            scorers.setdefault(argument, {}).setdefault(text, []).append(call)
    return [(list(metrics), list(metrics.values())) for metrics in scorers.values()] + single


def _as_text(call: MetricCall) -> str | None:
    """``name[key=value,…]``; None if that does not give the options back, as for an encoder."""
    try:
        options = {key: "none" if value is None else json.dumps(value) for key, value in call.options.items()}
        text = call.name + (f"[{','.join(f'{key}={value}' for key, value in options.items())}]" if options else "")
        return text if parse_metric(text)[1] == call.options else None
    except (TypeError, InputError):
        return None


def _parts(rows: list[int], groups: Sequence[str] | None) -> Iterator[list[int]]:
    """Rows that are scored together: all, or those of each group."""
    if groups is not None:
        for members in rows_by_label([groups[row] for row in rows]).values():
            yield [rows[member] for member in members]
    elif rows:
        yield rows


def _examples(
    scorer: Scorer, judged: JudgedSet, rows: list[int], scored: Mapping[str, Scored], users: list[list[MetricCall]]
) -> Iterator[tuple[int, tuple[Example, ...]]]:
    """The examples of every row; signatures are noted."""
    texts = [Row(text.candidate, text.references, text.sources) for text in (judged.texts[row] for row in rows)]
    prepared = scorer.prepare(texts)
    for signature, metric_calls in zip(prepared.signatures.values(), users, strict=True):
        for call in metric_calls:
            scored[call.label].signatures[signature] = None
    try:
        yield from zip(rows, prepared.stream(texts, total=len(texts)), strict=True)
    except RowError as error:
        raise RowError(error.metric, judged.name, rows[error.row], error.reason) from None


def _output(call: MetricCall, example: Example) -> float:
    outputs = {"scores": example.score, **example.parts}
    if call.output not in outputs:
        raise InputError(f"{call.name}: output: expected one of {', '.join(outputs)}, but got {call.output!r}")
    return outputs[call.output]


def _column(call: MetricCall, result: Mapping[str, object]) -> list[float]:
    scores = result.get(call.output)
    if not isinstance(scores, list):
        raise InputError(f"{call.name}: output: expected scores, but got {call.output!r}")
    return scores


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

    Parameters
    ----------
    systems : mapping of str to sequence of str, each of shape (n,)
        Name → texts, at least two; the first system is A of every comparison.
    calls : sequence of MetricCall
    references, sources : n texts, or n lists of texts, optional
    alpha : float
        A system is better if both tests give p < alpha.
    n_resamples, n_exchanges, confidence, seed
        As in :func:`compare_systems`.

    Returns
    -------
    list of SystemTest
        Ordered by metric, then system.
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
    tests = []
    for label, metric_scores in scored.items():
        scores = {name: metric_scores.scores[place * n : (place + 1) * n] for place, name in enumerate(systems)}
        for other in others:
            outcome = compare_systems(
                scores[first],
                scores[other],
                n_resamples=n_resamples,
                n_exchanges=n_exchanges,
                confidence=confidence,
                seed=seed,
            )
            tests.append(SystemTest(label, first, other, metric_scores.signature, outcome, alpha))
    return tests

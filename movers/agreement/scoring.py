"""Score judged texts with several metrics, in blocks, with shared forward passes.

All metrics are built first, so that an encoder knows which layers they need. Then all metrics score one block of rows
after the other: one forward pass over the texts of a block serves all of them.
"""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from movers.agreement.columns import rows_of_each
from movers.agreement.judged import JudgedSet, JudgedText
from movers.agreement.lexical import LEXICAL_METRICS
from movers.encoders.shared import SharedPass
from movers.errors import InputError, RowError
from movers.inputs import check_options
from movers.io import progress_bar
from movers.registry import METRICS
from movers.scores import engine
from movers.scores.options import PairOptions, RunOptions
from movers.weights import Corpus

__all__ = ["MetricCall", "Scored", "compared_with", "score_judged"]

# Rows per block.
_BLOCK = 512


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
    signature: str


def score_judged(
    judged: JudgedSet,
    calls: Sequence[MetricCall],
    *,
    groups: Sequence[str] | None = None,
    progress: bool | None = None,
    known: Mapping[str, Mapping[int, float]] | None = None,
    keep: Callable[[str, Mapping[int, float], str], None] | None = None,
) -> dict[str, Scored]:
    """Score every judged text with every metric.

    Parameters
    ----------
    judged : JudgedSet
    calls : sequence of MetricCall
        Metrics with references skip texts without references, reference-free metrics skip texts without a source.
    groups : sequence of str, optional
        One label per text: with ``idf="corpus"``, IDF tables are built within each group.
    progress : bool, optional
        Show a progress bar; by default on terminals only.
    known : mapping, optional
        Label → row → score: scores of an earlier, interrupted run.
    keep : function, optional
        Called with a label, the newly scored rows and the signature after every block, for a later run's ``known``.

    Returns
    -------
    dict
        Label of the call → its scores, in the order of the texts.
    """
    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise InputError(f"metrics: expected each metric once, but got {', '.join(labels)}")
    group_of = ["all"] * len(judged) if groups is None else list(groups)
    shared = SharedPass()
    runs = {
        call.label: _Run.prepare(call, judged, group_of, (known or {}).get(call.label, {}), shared) for call in calls
    }
    total = sum(len(run.to_score) for run in runs.values())
    with progress_bar(total, desc="scoring", unit=" texts", progress=progress) as bar:
        for start in range(0, len(judged), _BLOCK):
            for label, run in runs.items():
                bar.set_postfix_str(label)
                new = run.score(start, start + _BLOCK)
                bar.update(len(new))
                if keep is not None and new:
                    keep(label, new, run.signature)
    return {label: Scored(run.scores, run.signature) for label, run in runs.items()}


def _parse(call: MetricCall, shared: SharedPass) -> RunOptions | None:
    """Validated options of a metric; None for a lexical one."""
    if call.name in LEXICAL_METRICS:
        known = inspect.signature(LEXICAL_METRICS[call.name]).parameters.values()
        check_options(call.name, call.options, [option.name for option in known if option.kind is option.KEYWORD_ONLY])
        return None
    options = METRICS[call.name].parse({"progress": False, **call.options})
    if isinstance(options, PairOptions):
        options = replace(options, shared_pass=options.shared_pass or shared)
    return options


@dataclass(frozen=True)
class _Run:
    """State of a metric on a judged dataset.

    ``others`` holds the references (or sources) of each text, ``metrics`` the metric of each group, ``to_score`` the
    remaining rows, ``scores`` and ``signatures`` (an ordered set) the results so far.
    """

    call: MetricCall
    judged: JudgedSet
    others: list[list[str]]
    group_of: Sequence[str]
    metrics: dict[str, engine.PairMetric[object] | None]
    to_score: list[int]
    scores: list[float | None]
    signatures: dict[str, None] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        call: MetricCall,
        judged: JudgedSet,
        group_of: Sequence[str],
        known: Mapping[int, float],
        shared: SharedPass,
    ) -> _Run:
        argument = compared_with(call.name)
        others = [_texts_to_compare_with(text, argument) for text in judged.texts]
        options = _parse(call, shared)
        if getattr(options, "idf", None) not in (True, "corpus"):
            group_of = ["all"] * len(judged)  # Scores depend on the group only through a corpus IDF table.
        rows = [row for row, texts in enumerate(others) if texts]
        to_score = [row for row in rows if row not in known]
        metrics: dict[str, engine.PairMetric[object] | None] = {}
        for group in dict.fromkeys(group_of[row] for row in to_score):
            own = [row for row in rows if group_of[row] == group]
            corpus = Corpus([judged.texts[row].candidate for row in own], [others[row] for row in own])
            metrics[group] = None if options is None else METRICS[call.name].build(options, corpus)
        return cls(call, judged, others, group_of, metrics, to_score, [known.get(row) for row in range(len(judged))])

    @property
    def signature(self) -> str:
        return " ".join(self.signatures) or f"{self.call.name}|no texts"

    def score(self, start: int, stop: int) -> dict[int, float]:
        """Score the remaining rows from ``start`` to ``stop``."""
        left = self.to_score[bisect_left(self.to_score, start) : bisect_left(self.to_score, stop)]
        new: dict[int, float] = {}
        for group, members in rows_of_each([self.group_of[row] for row in left]).items():
            rows = [left[member] for member in members]
            candidates = [self.judged.texts[row].candidate for row in rows]
            others, metric = [self.others[row] for row in rows], self.metrics[group]
            if metric is None:
                result = LEXICAL_METRICS[self.call.name](candidates, others, **self.call.options)
            else:
                try:
                    result = engine.score(metric, candidates, others)
                except RowError as error:
                    raise RowError(error.metric, self.judged.name, rows[error.row], error.reason) from None
            scores = result.get(self.call.output)
            if not isinstance(scores, list):
                lists = ", ".join(name for name, value in result.items() if isinstance(value, list))
                raise InputError(f"{self.call.name}: output: expected one of {lists}, but got {self.call.output!r}")
            self.signatures[str(result["signature"])] = None
            new |= zip(rows, scores, strict=True)
        for row, score in new.items():
            self.scores[row] = score
        return new


def compared_with(name: str) -> str:
    """``references`` or ``sources``; an unknown metric is an error that lists the known ones."""
    if name in LEXICAL_METRICS:
        return "references"
    if name not in METRICS:
        raise InputError(f"metric: expected one of {', '.join([*METRICS, *LEXICAL_METRICS])}, but got {name!r}")
    return METRICS[name].compared_with


def _texts_to_compare_with(text: JudgedText, argument: str) -> list[str]:
    """References, or the source document(s); empty if the text has none."""
    if argument == "references":
        return list(text.references)
    source = text.fields.get("source")
    if isinstance(source, str):
        return [source]
    return [part for part in source if isinstance(part, str)] if isinstance(source, list) else []

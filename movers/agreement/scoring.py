"""Judged texts → every metric's scores, in blocks, so that metrics share what one encoder computes.

All metrics are made ready first, so that an encoder knows what each of them will ask for. Then rows go through them
block by block: one pass of the encoder over a block's texts serves every metric.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from movers.agreement.columns import rows_of_each
from movers.judged import JudgedSet, JudgedText
from movers.lexical import LEXICAL_METRICS
from movers.registry import METRICS, find_metric
from movers.scores.weighing import Corpus

__all__ = ["MetricCall", "Scored", "score_judged"]

# Rows that all metrics score before the next rows are read.
_BLOCK = 512


@dataclass(frozen=True)
class MetricCall:
    """A metric as a user asks for it.

    Attributes
    ----------
    label : str
        How tables call it.
    name : str
        A metric of ours, or ``rouge``, ``bleu``, ``chrf``.
    options : mapping
        Its options.
    output : str
        Which list of the metric's result to take: ``scores``, or ``precision``, ``recall``, ``f1`` where it has them.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    output: str = "scores"


@dataclass(frozen=True)
class Scored:
    """One metric's scores of all judged texts, None where a text has nothing to be compared with."""

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
        Metrics that compare with references skip texts without any; those that compare with a source skip texts
        without one.
    groups : sequence of str, optional
        One label a text: inverse document frequencies of the corpus are counted inside each group.
    progress : bool, optional
        Show a bar; by default on terminals only.
    known : mapping, optional
        Label → row → score: what an earlier, interrupted run has scored already.
    keep : function, optional
        Called with a label, the newly scored rows and the signature after every block, for a later run's ``known``.

    Returns
    -------
    dict
        Label of the call → its scores, in the order of the texts.
    """
    from tqdm import tqdm

    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise ValueError(f"every metric needs a name of its own in the table; got {', '.join(labels)}.")
    group_of = ["all"] * len(judged) if groups is None else list(groups)
    _announce(calls)
    running = {call.label: _Running(call, judged, group_of, (known or {}).get(call.label, {})) for call in calls}
    total = sum(len(each.to_score) for each in running.values())
    bar = tqdm(total=total, unit=" texts", disable=None if progress is None else not progress, leave=False)
    with bar:
        for start in range(0, len(judged), _BLOCK):
            block = range(start, min(start + _BLOCK, len(judged)))
            for label, each in running.items():
                bar.set_postfix_str(label)
                new = each.score(block)
                bar.update(len(new))
                if keep is not None and new:
                    keep(label, new, each.signature)
    return {label: Scored(each.scores, each.signature) for label, each in running.items()}


def _announce(calls: Sequence[MetricCall]) -> None:
    """Let metrics that share an encoder share its passes, however many there are."""
    from movers.encoders import announce

    wanted: dict[str, dict[Any, None]] = {}
    for call in calls:
        asked = find_metric(call.name).layers(call.options) if call.name in METRICS else None
        if asked is not None and isinstance(asked[0], str):
            wanted.setdefault(asked[0], {})[asked[1]] = None
    for model, aggregations in wanted.items():
        announce(model, *aggregations)


class _Running:
    """A metric at work on a judged set: which rows it can score, and what it has scored so far."""

    def __init__(
        self, call: MetricCall, judged: JudgedSet, group_of: Sequence[str], known: Mapping[int, float]
    ) -> None:
        self.call = call
        against = _find(call.name)
        self.judged = judged
        self.others = [_compared_with(text, against) for text in judged.texts]
        self.rows = [row for row, others in enumerate(self.others) if others]
        self.to_score = [row for row in self.rows if row not in known]
        self.scores: list[float | None] = [known.get(row) for row in range(len(judged))]
        # Only a table of the corpus makes a score depend on its group.
        self.group_of = group_of if _counts_the_corpus(call) else ["all"] * len(judged)
        groups = dict.fromkeys(self.group_of[row] for row in self.to_score)
        self.score_texts = {group: self._scorer(group) for group in groups}
        self.signatures: dict[str, None] = {}

    @property
    def signature(self) -> str:
        return " ".join(self.signatures) or f"{self.call.name}|no texts"

    def score(self, block: range) -> dict[int, float]:
        """Score what is left to score of a block's rows."""
        first, last = bisect_left(self.to_score, block.start), bisect_left(self.to_score, block.stop)
        chosen = self.to_score[first:last]
        new: dict[int, float] = {}
        for group, members in rows_of_each([self.group_of[row] for row in chosen]).items():
            rows = [chosen[member] for member in members]
            result = self.score_texts[group](
                [self.judged.texts[row].candidate for row in rows], [self.others[row] for row in rows]
            )
            if self.call.output not in result:
                lists = ", ".join(name for name, value in result.items() if isinstance(value, list))
                raise ValueError(f"{self.call.name} returns no list {self.call.output!r}; it returns {lists}.")
            self.signatures[result["signature"]] = None
            for row, score in zip(rows, result[self.call.output], strict=True):
                self.scores[row] = new[row] = score
        return new

    def _scorer(self, group: str) -> Callable[..., dict[str, Any]]:
        """A function of predictions and references with everything that holds for the whole group settled."""
        options = dict(self.call.options)
        if self.call.name in LEXICAL_METRICS:
            function = LEXICAL_METRICS[self.call.name]
            return lambda predictions, references: function(predictions, references, **options)
        options.setdefault("progress", False)
        rows = [row for row in self.rows if self.group_of[row] == group]
        corpus = Corpus.of([self.judged.texts[row].candidate for row in rows], [self.others[row] for row in rows])
        return find_metric(self.call.name).scorer(options, corpus).score


def _counts_the_corpus(call: MetricCall) -> bool:
    return call.options.get("idf") is True or call.options.get("idf") == "corpus"


def _find(name: str) -> str:
    """What the metric of that name compares with; an unknown name is an error that lists the known ones."""
    if name in LEXICAL_METRICS:
        return "references"
    if name not in METRICS:
        known = ", ".join([*METRICS, *LEXICAL_METRICS])
        raise ValueError(f"metric: expected one of {known}, but got {name!r}")
    return METRICS[name].against


def _compared_with(text: JudgedText, against: str) -> list[str]:
    """References, or the source document(s); empty if the text has none."""
    if against == "references":
        return list(text.references)
    source = text.fields.get("source")
    return [source] if isinstance(source, str) else [part for part in source or [] if isinstance(part, str)]

"""A metric, or several with weights, as a reward function for TRL's trainers and for plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from movers.encoders.shared import SharedPass
from movers.errors import InputError
from movers.quality.aspects import ASPECTS
from movers.registry import MetricSpec, parse_metric
from movers.rewards.messages import has_words, repetitions, text_of, texts_of
from movers.rewards.scale import Scale, Transform, mean, parse_scale
from movers.scores.engine import Comparison, PairMetric
from movers.scores.options import PairOptions, RunOptions
from movers.threads import chunks, threaded_map

__all__ = ["Reward", "reward"]

_TEXTS_KEPT = 4096  # references that a reward keeps read between steps
Log = Callable[[str, float], object]


@dataclass
class _Part:
    """One metric of a reward: built when it is first needed, with the references it has read so far."""

    label: str
    spec: MetricSpec
    options: RunOptions
    scale: Scale
    weight: float
    aspect: str | None = None
    built: PairMetric[object] | None = None
    kept: dict[str, object] = field(default_factory=dict)

    def score(self, rows: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
        """Scores of completions against one or several texts each."""
        if self.built is None:
            self.built = self.spec.build(self.options)
        metric, clean = self.built, self.options.clean
        rows = [(clean(text), [clean(other) for other in others]) for text, others in rows]
        compared = dict.fromkeys(text for _, others in rows for text in others)
        new = list(dict.fromkeys([*(text for text in compared if text not in self.kept), *(text for text, _ in rows)]))
        read = {new[number]: text for number, text in metric.read(new)}
        for text in compared:
            self.kept[text] = self.kept.pop(text, None) or read[text]  # the latest used are the last
        pairs = [(read[text], self.kept[other]) for text, others in rows for other in others]
        groups = threaded_map(metric.compare_many, chunks(pairs, 16), metric.options.threads, chunk=1)
        compared_pairs = zip(pairs, (comparison for group in groups for comparison in group), strict=True)
        scores = iter([_score(metric, *pair, comparison, self.aspect) for pair, comparison in compared_pairs])
        while len(self.kept) > _TEXTS_KEPT:
            del self.kept[next(iter(self.kept))]
        return [metric.rescale("score", _reduce(metric, [next(scores) for _ in others])) for _, others in rows]

    def rewards(self, rows: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
        """Rewards of completions that have words; a completion that is a repetition earns no more than one of it."""
        shortened = [_once(text, others) for text, others in rows]
        again = [
            (shorter, others) for (text, others), shorter in zip(rows, shortened, strict=True) if shorter is not None
        ]
        scores = self.score([*rows, *again])
        once = iter(scores[len(rows) :])
        found = []
        for value, shorter in zip(scores, shortened, strict=False):
            found.append(self.scale.apply(value if shorter is None else min(value, next(once))))
        return found


def _score(
    metric: PairMetric[object], completion: object, other: object, comparison: Comparison, aspect: str | None
) -> float:
    """The score of a pair, or the aspect that counts instead; without limit low for a completion of stop words alone.

    A metric compares it with all tokens of the other text, which tells nothing and may be more than what a good
    sentence gets from a comparison of content words.
    """
    if aspect is not None:
        if aspect not in comparison.parts:
            raise InputError(f"{metric.name}: aspect: expected a model with aspects, but got {metric.signature}")
        return comparison.parts[aspect]
    if comparison.unfiltered and metric.compare(completion, completion).unfiltered:
        return comparison.score if metric.compare(other, other).unfiltered else -math.inf
    return comparison.score


def _reduce(metric: PairMetric[object], scores: list[float]) -> float:
    if metric.multi_ref == "max":
        return max(scores)
    return math.fsum(scores) if metric.multi_ref == "sum" else mean(scores)


def _once(text: str, others: Sequence[str]) -> str | None:
    """The text without its repetition; None if it has none, or if a reference repeats itself as often."""
    count, shorter = repetitions(text)
    return None if count == 1 or any(repetitions(other)[0] >= count for other in others) else shorter


class Reward:
    """A reward function: call it with keywords, as TRL's trainers do, or use `score` in a loop of your own.

    Attributes
    ----------
    __name__ : str
        What trainers log the reward under.
    lower : float
        What a completion without a word earns; nothing earns less.
    """

    def __init__(self, parts: Sequence[_Part], reference_column: str, source_column: str, name: str) -> None:
        self._parts = list(parts)
        self._columns = {"references": reference_column, "sources": source_column}
        self.__name__ = name
        self.lower = math.fsum(part.weight * part.scale.lower for part in self._parts)

    def __repr__(self) -> str:
        return f"<reward {self.__name__}>"

    def __call__(self, *, completions: object, log_metric: Log | None = None, **columns: object) -> list[float | None]:
        """One reward per completion; None where the row has nothing to compare with.

        Parameters
        ----------
        completions : texts, or conversations (lists of messages) whose last message counts
        log_metric : function of name and value, optional
            Gets the mean score of each metric and the share of completions without a word.
        **columns
            Columns of the data set, among them the references (or sources); everything else is ignored.
        """
        if isinstance(completions, str) or not isinstance(completions, Sequence):
            raise InputError(f"{self.__name__}: completions: expected a list, but got {type(completions).__name__}")
        texts = [text_of(self.__name__, "completions", str(row), value) for row, value in enumerate(completions)]
        compared: dict[str, list[list[str]]] = {}
        for kind in {part.spec.compared_with for part in self._parts}:
            column = self._columns[kind]
            if column not in columns:
                known = ", ".join(name for name in columns if isinstance(columns[name], list)) or "none"
                raise InputError(f"{self.__name__}: expected a column {column!r} with {kind}, but got {known}")
            compared[kind] = texts_of(self.__name__, column, columns[column], len(texts))
        return self._combine(texts, compared, log_metric)

    def score(
        self,
        completions: Sequence[str],
        references: Sequence[object] | None = None,
        *,
        sources: Sequence[object] | None = None,
    ) -> list[float | None]:
        """The same for a loop of one's own: texts, with one or several references (or `sources`) each."""
        given = {"references": references, "sources": sources}
        for kind in {part.spec.compared_with for part in self._parts}:
            if given[kind] is None:
                came = [name for name, value in given.items() if value is not None]
                raise InputError(f"{self.__name__}: score: expected {kind}=…, but got {', '.join(came) or 'none'}")
        columns = {self._columns[kind]: texts for kind, texts in given.items() if texts is not None}
        return self(completions=completions, log_metric=None, **columns)

    def _combine(
        self, texts: list[str], compared: Mapping[str, list[list[str]]], log: Log | None
    ) -> list[float | None]:
        counted = [row for row in range(len(texts)) if all(groups[row] for groups in compared.values())]
        spoken = [row for row in counted if has_words(texts[row])]
        totals: list[float | None] = [None] * len(texts)
        for row in counted:
            totals[row] = self.lower
        earned = dict.fromkeys(spoken, 0.0)
        for part in self._parts:
            groups = compared[part.spec.compared_with]
            values = part.rewards([(texts[row], groups[row]) for row in spoken]) if spoken else []
            for row, value in zip(spoken, values, strict=True):
                earned[row] += part.weight * value
            if log is not None and values and len(self._parts) > 1:
                log(f"{self.__name__}/{part.label}", mean(values))
        for row, total in earned.items():
            totals[row] = max(total, self.lower)
        if log is not None and counted:
            log(f"{self.__name__}/no_words", 1 - len(spoken) / len(counted))
        return totals


def reward(
    metric: str | Sequence[str] | Mapping[str, float],
    *,
    reference_column: str = "reference",
    source_column: str = "source",
    transform: Transform | None = None,
    aspect: str | None = None,
    name: str | None = None,
    **options: object,
) -> Reward:
    """A metric as a reward function for `reward_funcs` of TRL's `GRPOTrainer` and `RLOOTrainer`.

    Parameters
    ----------
    metric : str, list of str, or dict of weights
        `name` or `name[key=value,…]`. Several are added up: with equal weights that sum to 1 for a list, with the given
        weights for a dict. Metrics with the same encoder reuse one forward pass per text.
    reference_column : str
        Column of the data set with one reference or several per row. Rows where it is None, empty or blank get None,
        which trainers leave out.
    source_column : str
        Column of the documents, for `reference_free_summary_quality`.
    transform : {None, "log"}
        "log" gives −distance instead of exp(−distance), for wms, sms and swms.
    aspect : {None, "faithfulness", "coverage", "fluency", "likelihood"}
        Reward this aspect of `reference_free_summary_quality` instead of its score; `likelihood` needs an `lm`. In
        brackets after the name it holds for one metric of several.
    name : str, optional
        What trainers log the reward under; the metrics' names by default.
    **options
        Options of the metric (of all of them, if there are several). Scores are readable by default:
        `temperature="auto"` for wms, sms, swms (1 is the paper's), `rescale=True` for moverscore and bertscore_*.

    Returns
    -------
    Reward
        Its lower bound, which a completion without a word earns, is 0 for wms, sms, swms and
        reference_free_summary_quality, −4 with `transform="log"` (four times the distance of unrelated texts), and −1
        for moverscore and bertscore_*. A completion of stop words alone earns it too, where the metric drops them and
        the reference has more. A completion that says the same over and over earns no more than if it had said
        it once, unless a reference repeats itself as often.

    Examples
    --------
    >>> sms = reward("sms")
    >>> good, other, none, blank = sms(
    ...     completions=["A man sells snow.", "The court adjourned.", "A man sells snow.", "..."],
    ...     reference=["Someone is selling snow.", "Someone is selling snow.", None, "Someone is selling snow."],
    ... )
    >>> good > other > blank, none, blank
    (True, None, 0.0)
    """
    weights = _weights(metric)
    several = len(weights) > 1
    shared = SharedPass()
    parts = []
    for text, weight in weights.items():
        spec, own = parse_metric(text)
        scale, rest = parse_scale(spec.name, {"aspect": aspect, **options, **own}, transform)
        chosen = _aspect(spec.name, rest.pop("aspect"), rest)
        if rest.get("idf") == "corpus":
            raise InputError(
                f"{spec.name}: idf: expected a table for a reward, because 'corpus' would change it with every batch; "
                "save one with IdfTable.save"
            )
        settled = spec.parse({"progress": False, **rest})
        if several and isinstance(settled, PairOptions):
            settled = replace(settled, shared_pass=shared)
        parts.append(_Part(text, spec, settled, scale, weight, chosen))
    return Reward(parts, reference_column, source_column, name or "+".join(part.label for part in parts))


def _aspect(metric: str, aspect: object, options: Mapping[str, object]) -> str | None:
    if aspect is None:
        return None
    known = (*ASPECTS, "likelihood") if options.get("lm") else ASPECTS
    if metric != "reference_free_summary_quality" or aspect not in known:
        raise InputError(
            f"{metric}: aspect: expected None, or {', '.join(known)} of reference_free_summary_quality "
            f"({'with' if options.get('lm') else 'likelihood: only with'} lm), but got {aspect!r}"
        )
    return str(aspect)


def _weights(metric: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    if isinstance(metric, str):
        return {metric: 1.0}
    if not isinstance(metric, Sequence | Mapping):
        raise InputError(f"reward: metric: expected a name, a list or weights by name, but got {metric!r:.60}")
    found = dict(metric) if isinstance(metric, Mapping) else {text: 1 / len(metric) for text in metric}
    numbers = [value for value in found.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    if not found or len(numbers) < len(found) or not all(0 < value < math.inf for value in numbers):
        raise InputError(f"reward: metric: expected metrics with weights above zero, but got {metric!r}")
    if not isinstance(metric, Mapping) and len(found) < len(metric):
        raise InputError(f"reward: metric: expected different metrics, but got {', '.join(metric)}")
    return found

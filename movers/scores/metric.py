"""What a metric is: it reads texts into bags and compares two bags."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from movers.bag import Bag, alignment_of
from movers.encoders.contextual import ContextualEncoder, EncodedText
from movers.encoders.layers import Aggregation
from movers.scores.options import MetricOptions, PairOptions
from movers.weights import Corpus, IdfTable

_MOST_CELLS = 25_000_000  # of a cost matrix, about a gigabyte with the solver's arrays
_MANY_CELLS = 1_000_000  # such problems are solved one at a time, to bound the memory of all threads
_large = threading.Lock()


class Comparison(NamedTuple):
    """One prediction against one reference."""

    score: float
    parts: Mapping[str, float] = {}  # further numbers (`precision`, `recall`, `f1`), reduced like the score
    empty: bool = False  # a side has no token at all
    alignment: dict[str, object] | None = None  # units, masses and flows, on request
    distance: float | None = None  # transport cost; None if a side is empty


class Example(NamedTuple):
    """One prediction against all its references."""

    score: float
    parts: Mapping[str, float]
    empty: bool
    unfiltered: bool
    truncated: bool
    unknown: bool
    alignments: list[dict[str, object]] | None
    distance: float | None
    failed: str = ""  # why it could not be scored; score and parts then mean nothing

    @property
    def numbers(self) -> dict[str, float | None]:
        """`score` and the further numbers; None if it failed."""
        return {name: None if self.failed else value for name, value in {"score": self.score, **self.parts}.items()}


@dataclass(frozen=True)
class Encoding:
    """How a metric encodes texts with a contextual model.

    `extra` names the aggregations of other metrics that read the same texts: they are computed in the same forward
    pass, and those metrics find them in the cache. `sizes_only` returns placeholder vectors at once, to count units.
    """

    encoder: ContextualEncoder
    aggregation: Aggregation
    options: PairOptions
    extra: tuple[Aggregation, ...] = ()
    sizes_only: bool = False

    def __call__(self, texts: Sequence[str]) -> Iterator[tuple[int, EncodedText]]:
        """Yield `(index, encoded text)` as soon as it is ready, in any order."""
        limits: dict[str, Any] = {"truncation": self.options.truncation, "window": self.options.window}
        if self.sizes_only:
            return self.encoder.count(texts, **limits)
        size = self.options.run.batch_size
        return self.encoder.encode(texts, self.aggregation, extra=self.extra, batch_size=size, **limits)

    def fields(self) -> dict[str, object]:
        """Signature fields."""
        window = f"{self.encoder.window_for(self.options.window)}-{self.options.truncation}"
        return {"layer": self.aggregation, "dtype": self.encoder.dtype, "window": window}


@dataclass(frozen=True, kw_only=True)
class Metric(abc.ABC):
    """A metric with settled options."""

    name: str
    signature: str
    options: Any
    encoding: Encoding | None = None  # its contextual model, if it has one
    tables: tuple[IdfTable, ...] = ()  # the IDF tables in use, in a form that the option `idf` accepts
    baseline: Mapping[str, float] | None = None  # mean scores of unrelated texts, for rescaling

    options_class: ClassVar[type[MetricOptions]]
    #: What predictions are compared with: `references` or `sources`.
    compared_with: ClassVar[str] = "references"

    @classmethod
    @abc.abstractmethod
    def build(cls, name: str, options: Any, corpus: Corpus | None = None) -> Metric:
        """Build the metric from validated options; `idf="corpus"` needs all texts of the call."""

    @abc.abstractmethod
    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield `(index, bag)` for each distinct text as soon as it is ready, in any order."""

    @abc.abstractmethod
    def compare(self, prediction: Any, reference: Any) -> Comparison:
        """Compare one pair; runs in threads."""

    @property
    def reduction(self) -> str:
        """How scores against several references are combined: `max`, `mean` or `sum`."""
        return str(self.options.multi_ref)

    @property
    def in_processes(self) -> bool:
        """Whether rows may be distributed over worker processes: not with a contextual model."""
        return self.encoding is None

    @property
    def extra(self) -> Mapping[str, object]:
        """Further entries of the result."""
        return {}


class TransportMetric(Metric):
    """What the six metrics with references share: blank texts, and a limit on sizes."""

    @abc.abstractmethod
    def align(self, prediction: Bag, reference: Bag) -> Comparison:
        """Compare two bags that have units."""

    def compare(self, prediction: Bag, reference: Bag) -> Comparison:
        reference = reference.as_reference or reference
        m, n = len(prediction.masses), len(reference.masses)
        if not m or not n:
            equal = prediction.text.split() == reference.text.split() or (prediction.blank and reference.blank)
            comparison = self.compare_empty(equal)
            if self.options.return_alignment:
                nothing = np.zeros((m, n))
                comparison = comparison._replace(alignment=alignment_of(prediction, reference, nothing, nothing, None))
            return comparison
        if problem := size_problem(m, n):
            raise TooLarge(problem)
        if m * n > _MANY_CELLS:
            with _large:
                return self.align(prediction, reference)
        return self.align(prediction, reference)

    def compare_empty(self, equal: bool) -> Comparison:
        """The comparison if a side has no units: 1 for equal texts, 0 for others."""
        return Comparison(float(equal), empty=True, distance=0.0 if equal else None)


class TooLarge(Exception):
    """A pair whose cost matrix would not fit into memory."""


def size_problem(m: int, n: int) -> str:
    """Why m units cannot be compared with n; empty if they can."""
    if m * n <= _MOST_CELLS:
        return ""
    cells = f"takes {m * n:,} cells, more than {_MOST_CELLS:,}"
    return f"comparing {m:,} with {n:,} units {cells}; score shorter texts"

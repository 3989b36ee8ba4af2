"""The interface of a metric: it reads texts and compares two of them."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from movers.scores.options import RunOptions
from movers.weights import Corpus, IdfTable, Tables

__all__ = ["AnyMetric", "Comparison", "Costs", "Example", "PairMetric", "TooLarge", "check_size"]

Text = TypeVar("Text")
Costs = NDArray[np.float64]
Reduction = Literal["max", "mean", "sum"]  # `sum`: over the documents of a multi-document summary
_BYTES_PER_CELL = 42  # of a transport problem: costs, plan and the solver's arrays


class Comparison(NamedTuple):
    """One prediction against one reference.

    Attributes
    ----------
    score : float
    parts : mapping
        Further numbers of the pair (`precision`, `recall`, `f1`), reduced over references like the score.
    empty : bool
        A side has no token at all.
    unfiltered : bool
        Filtering left a side without units, so the pair was compared on all its tokens.
    alignment : dict or None
        Units, masses and flows, on request.
    distance : float or None
        Transport cost; None if a side is empty.
    """

    score: float
    parts: Mapping[str, float] = {}
    empty: bool = False
    unfiltered: bool = False
    alignment: dict[str, object] | None = None
    distance: float | None = None


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


@dataclass(frozen=True)
class PairMetric(abc.ABC, Generic[Text]):
    """A metric with fixed options; `Text` is its representation of a text.

    Attributes
    ----------
    name, signature : str
    options : RunOptions
        Validated.
    baseline : mapping or None
        Mean scores of unrelated texts (`score` and the parts), for rescaling.
    """

    name: str
    signature: str
    options: RunOptions
    baseline: Mapping[str, float] | None = field(default=None, kw_only=True)

    #: The class of its options.
    options_class: ClassVar[type[RunOptions]]
    #: What its predictions are compared with, as messages name it.
    compared_with: ClassVar[str] = "references"

    @classmethod
    @abc.abstractmethod
    def build(cls, name: str, options: Any, corpus: Corpus | None = None) -> Self:
        """Build the metric from validated options; `idf="corpus"` needs all texts of the call."""

    @property
    @abc.abstractmethod
    def multi_ref(self) -> Reduction:
        """How scores against several references are combined."""

    @property
    def overlaps(self) -> bool:
        """Whether to compare the first pairs while later texts are being read.

        A transformer releases the GIL, so both run at once. A metric that reads texts in plain Python does not overlap:
        its cost matrices are prepared on the calling thread (`costs_many`) and only the solver, which releases the GIL,
        runs in the pool.
        """
        return True

    @property
    def runs_in_processes(self) -> bool:
        """Whether pairs may be distributed over worker processes: true if no contextual model is needed."""
        return False

    @property
    def by_reference(self) -> bool:
        """Whether `compare_many` receives all predictions of a reference at once, after all texts have been read."""
        return False

    @abc.abstractmethod
    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Text]]:
        """Yield `(index, text)` for each distinct text as soon as it is ready, in any order."""

    @abc.abstractmethod
    def compare(self, prediction: Text, reference: Text, costs: Costs | None = None) -> Comparison:
        """Compare one pair; runs in threads. `costs` is the matrix from `costs_many`, if any."""

    def costs_many(self, pairs: Sequence[tuple[Text, Text]]) -> list[Costs | None]:
        """Cost matrices of pairs, for metrics that do not overlap; None where `compare` shall compute it."""
        return [None] * len(pairs)

    def compare_many(self, pairs: Sequence[tuple[Text, Text]]) -> list[Comparison]:
        """Compare several pairs one after the other; a metric may override this with a batched version."""
        found: list[Comparison] = []
        for prediction, reference in pairs:
            try:
                found.append(self.compare(prediction, reference))
            except TooLarge as error:
                error.index = len(found)
                raise
        return found

    def was_cut(self, text: Text) -> bool:
        """Whether the text was truncated."""
        return False

    def has_unknown(self, text: Text) -> bool:
        """Whether the text has words or subwords that the encoder does not know."""
        return False

    def similarity(self, distance: float) -> float:
        """Score of a distance, for metrics whose score depends on the distance only."""
        raise NotImplementedError

    def idf_tables(self) -> IdfTable | Tables | None:
        """The IDF tables in use, in a form that the option `idf` accepts."""
        return None

    def reading_whole(self) -> Self:
        """The metric with `truncation="window"`, for built-in texts."""
        return self

    def table_row(self) -> int | None:
        """Layer whose row applies in a baseline file of the package `bert-score`; None if there is none."""
        return None

    def rescale(self, name: str, value: float) -> float:
        """Rescale a score or part with the baseline: unrelated texts to 0, equal texts to 1."""
        if self.baseline is None:
            return value
        return (value - self.baseline[name]) / (1.0 - self.baseline[name])

    def extra(self) -> dict[str, object]:
        """Further entries of the result."""
        return {}


AnyMetric = PairMetric[Any]


class TooLarge(Exception):
    """A pair whose cost matrix exceeds `max_cells`: `index` in a list of pairs, and the numbers of its texts."""

    index: int = 0
    pair: tuple[int, int] = (0, 0)


def check_size(m: int, n: int, limit: int) -> None:
    """Raise if a cost matrix (m, n) would exceed `limit` cells, before anything of that size is allocated."""
    if m * n > limit:
        size = m * n * _BYTES_PER_CELL / 1e9
        raise TooLarge(
            f"comparing {m:,} with {n:,} units takes {m * n:,} cells (about {size:,.1f} GB): more than "
            f"max_cells={limit:,}; raise max_cells if there is room, or score shorter texts"
        )

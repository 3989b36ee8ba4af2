"""What a metric is: it reads texts, and compares two of them."""

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
Reduction = Literal["max", "mean", "sum"]  # `sum` for documents that a summary covers together
_BYTES_PER_CELL = 42  # of a transport problem: costs, plan and the solver's own arrays


class Comparison(NamedTuple):
    """One prediction against one reference.

    Attributes
    ----------
    score : float
    parts : mapping
        Further numbers of the pair (`precision`, `recall`, `f1`), reduced over references like the score.
    empty : bool
        A side had no token at all.
    unfiltered : bool
        Filtering left a side without units, so the pair was compared on all its tokens.
    alignment : dict or None
        Units, masses and flows, if asked for.
    distance : float or None
        What it cost to move one side into the other; None where nothing can be moved.
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
    """A metric with all its options settled; `Text` is what it makes of a text.

    Attributes
    ----------
    name, signature : str
    options : RunOptions
        Validated; threads, progress bar, whether alignments are wanted, and the metric's own.
    baseline : mapping or None
        What unrelated texts score: `score` and the parts, by which all are rescaled.
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
        """The metric that validated options describe; `idf="corpus"` needs the texts of the whole call."""

    @property
    @abc.abstractmethod
    def multi_ref(self) -> Reduction:
        """How the scores against several references become one."""

    @property
    def overlaps(self) -> bool:
        """Whether to compare the first pairs while later texts are being read.

        An encoder's arithmetic leaves Python's lock free for that. A metric that reads in plain Python does not
        overlap: its `costs` are prepared on the calling thread and only the solver runs in the threads, which would
        otherwise take the lock from each other.
        """
        return True

    @property
    def runs_in_processes(self) -> bool:
        """Whether `workers` processes may share the pairs: no contextual model is needed."""
        return False

    @property
    def by_reference(self) -> bool:
        """Whether all predictions of a reference go into one call of `compare_many`, once every text is read."""
        return False

    @abc.abstractmethod
    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Text]]:
        """`(index, text)` for each of the distinct texts as soon as it is ready, in any order."""

    @abc.abstractmethod
    def compare(self, prediction: Text, reference: Text, costs: Costs | None = None) -> Comparison:
        """One pair; runs in threads. `costs` are those prepared by `costs`, if any."""

    def costs_many(self, pairs: Sequence[tuple[Text, Text]]) -> list[Costs | None]:
        """The cost matrices of pairs, for metrics that do not overlap."""
        return [None] * len(pairs)

    def compare_many(self, pairs: Sequence[tuple[Text, Text]]) -> list[Comparison]:
        """Several pairs, one after the other; a metric may do better in a batch."""
        found: list[Comparison] = []
        for prediction, reference in pairs:
            try:
                found.append(self.compare(prediction, reference))
            except TooLarge as error:
                error.index = len(found)
                raise
        return found

    def was_cut(self, text: Text) -> bool:
        """Whether tokens of the text were left out."""
        return False

    def has_unknown(self, text: Text) -> bool:
        """Whether the encoder does not know all words or pieces of the text."""
        return False

    def similarity(self, distance: float) -> float:
        """The score of a distance, for metrics whose score is a function of it alone."""
        raise NotImplementedError

    def idf_tables(self) -> IdfTable | Tables | None:
        """The tables in use, as the option `idf` takes them."""
        return None

    def reading_whole(self) -> Self:
        """The metric for texts of our own: read through windows, never refused for their length."""
        return self

    def table_row(self) -> int | None:
        """Which layer's row of a baseline table in the `bert-score` package's format belongs to it, if one does."""
        return None

    def rescale(self, name: str, value: float) -> float:
        """A score or part on the scale of the baseline: unrelated texts at 0, equal ones at 1."""
        if self.baseline is None:
            return value
        return (value - self.baseline[name]) / (1.0 - self.baseline[name])

    def extra(self) -> dict[str, object]:
        """Further entries of the result."""
        return {}


AnyMetric = PairMetric[Any]  # whatever a text is to it


class TooLarge(Exception):
    """A pair whose cost matrix would have more cells than the caller allows: its place in a list, then its texts."""

    index: int = 0
    pair: tuple[int, int] = (0, 0)


def check_size(m: int, n: int, limit: int) -> None:
    """Refuse a cost matrix (m, n) of more than `limit` cells, before anything of that size is made."""
    if m * n > limit:
        size = m * n * _BYTES_PER_CELL / 1e9
        raise TooLarge(
            f"comparing {m:,} with {n:,} units takes {m * n:,} cells (about {size:,.1f} GB): more than "
            f"max_cells={limit:,}; raise max_cells if there is room, or score shorter texts"
        )

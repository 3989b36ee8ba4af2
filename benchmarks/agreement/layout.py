"""What a table of the benchmark is: a judged set, how it is correlated, and a metric per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from movers.agreement.coefficients import Coefficient, Level
from movers.agreement.scoring import MetricCall

MINILM, MPNET = "all-MiniLM-L6-v2", "all-mpnet-base-v2"
GLOVE = "data/vectors/glove.840B.300d-33860.txt"  # of `make data`, from the folder of the checkout


@dataclass(frozen=True)
class Row:
    """One line of a table: a metric of ours, and the numbers of the paper's row that it stands beside.

    ``paper`` maps columns to the paper's numbers; ``stands_for`` is the paper's name of the row. ``differs_from`` is
    the label of a row that this one is tested against (Williams' test, two-sided), ``paper_p`` the paper's p-value.
    """

    call: MetricCall
    stands_for: str = ""
    paper: Mapping[str, float] = field(default_factory=dict)
    differs_from: str | None = None
    paper_p: float | None = None


@dataclass(frozen=True)
class Table:
    """One table: a judged set, how it is correlated, and its rows.

    ``data`` names the set's file without its ending. Each of the ``humans`` is a column unless ``group`` makes the
    columns: the ``groups``, the ``mean`` over all groups, and the ``means`` of some (name → groups). ``ranked`` shows
    the share of pairs ranked right instead of a coefficient. All rows are tested against the ``baseline``, a row's
    label. ``decoded`` turns HTML entities of the texts into characters first. ``level``, ``group`` and ``where`` as in
    ``movers correlate``.
    """

    name: str
    title: str
    data: str
    humans: tuple[str, ...]
    rows: tuple[Row, ...]
    coefficient: Coefficient = "pearson"
    level: Level = "segment"
    group: str | None = None
    groups: tuple[str, ...] = ()
    mean: bool = True
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    decoded: bool = False
    ranked: bool = False
    baseline: str | None = None
    note: str = ""

    @property
    def columns(self) -> list[str]:
        if self.group is None:
            return list(self.humans)
        return [*self.groups, *(["mean"] if self.mean else []), *self.means]


def written(metric: MetricCall) -> str:
    """A metric with its options, and the entry of its result.

    >>> written(call("", "moverscore", "f1", n_gram=2))
    'moverscore[n_gram=2].f1'
    """
    options = ",".join(f"{key}={value}" for key, value in metric.options.items())
    output = "" if metric.output == "scores" else f".{metric.output}"
    return metric.name + (f"[{options}]" if options else "") + output


def call(label: str, name: str, output: str = "scores", /, **options: object) -> MetricCall:
    return MetricCall(label, name, options, output)


def paper(columns: str, numbers: str) -> dict[str, float]:
    """Columns and numbers as they stand in a paper's line, separated by spaces."""
    return {name: float(number) for name, number in zip(columns.split(), numbers.split(), strict=True)}

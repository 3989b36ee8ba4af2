"""Data of a picture: the units of two texts, the flows between them, and the scores of the pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from movers.errors import InputError
from movers.papers import PAPERS
from movers.registry import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Bar", "Explanation", "Flow", "Panel", "Picture", "Unit"]

Mark = Literal["", "supported", "unsupported", "repeated", "twice"]
SUFFIXES = (".html", ".svg", ".png")


@dataclass(frozen=True)
class Unit:
    """A word, token, n-gram or sentence of a text.

    Attributes
    ----------
    text, kind : str
    sentence : int
        Index of its sentence.
    weight : float
        Share of the mass of its text.
    mark : str
        Mark such as "unsupported"; shown by shape and word, not by colour alone.
    note : str
        Details, shown on hover and focus.
    """

    text: str
    kind: str
    sentence: int
    weight: float
    mark: Mark = ""
    note: str = ""


@dataclass(frozen=True)
class Flow:
    """Mass transported from unit i of one text to unit j of the other, as a share of the total, and its cost."""

    i: int
    j: int
    share: float
    cost: float


@dataclass(frozen=True)
class Panel:
    """One alignment of two texts.

    Attributes
    ----------
    title, note : str
    left, right : sequence of Unit
    flows : sequence of Flow
        Largest first.
    names : (str, str)
        Names of the two texts.
    measure : str
        Meaning of `share`.
    """

    title: str
    note: str
    left: Sequence[Unit]
    right: Sequence[Unit]
    flows: Sequence[Flow]
    names: tuple[str, str] = ("Prediction", "Reference")
    measure: str = "mass"

    @property
    def has_sentences_and_words(self) -> bool:
        return len({unit.kind for unit in self.left}) > 1 and "sentence" in {unit.kind for unit in self.left}


@dataclass(frozen=True)
class Bar:
    """A named number from 0 to 1."""

    name: str
    value: float
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """One prediction and one reference or document: one or several panels."""

    title: str
    panels: Sequence[Panel]
    bars: Sequence[Bar] = ()
    matrix: bool = False

    @property
    def empty(self) -> bool:
        return not any(panel.flows for panel in self.panels)

    @property
    def costs(self) -> tuple[float, float]:
        """The lowest and the highest cost of its flows: one scale of colours for all panels."""
        costs = [flow.cost for panel in self.panels for flow in panel.flows] or [0.0]
        return min(costs), max(costs)


@dataclass(frozen=True)
class Explanation:
    """A scored prediction with one picture per reference or document, the best first.

    It displays itself in a notebook; `save` writes HTML, SVG or PNG.

    Attributes
    ----------
    metric : str
    score : float
    numbers : mapping
        Further scores: precision, distance, …
    flags : sequence of str
        Any of "empty", "unfiltered", "truncated", "unknown".
    signature : str
    prediction : str
    compared_with : sequence of str
        The references or documents.
    pictures : sequence of Picture
    """

    metric: str
    score: float
    numbers: Mapping[str, float]
    flags: Sequence[str]
    signature: str
    prediction: str
    compared_with: Sequence[str]
    pictures: Sequence[Picture]

    @property
    def title(self) -> str:
        return METRICS[self.metric].title

    @property
    def paper(self) -> str:
        """Citation of the paper, with DOI."""
        return PAPERS[self.metric].cited

    def html(self) -> str:
        """A self-contained HTML page."""
        from movers.pictures.html import page_of

        return page_of(self)

    def figure(self, number: int = 0) -> Figure:
        """Draw a picture with matplotlib."""
        from movers.pictures.figures import figure_of

        return figure_of(self, self.pictures[number])

    def save(self, path: str | Path) -> None:
        """Write `.html`, `.svg` or `.png`."""
        from movers.io import check_output, write_file

        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES:
            raise InputError(f"{path}: cannot write it: expected a name that ends in {', '.join(SUFFIXES)}")
        check_output(path, SUFFIXES)
        if suffix == ".html":
            write_file(path, self.html())
            return
        from movers.pictures.figures import image_of

        write_file(path, image_of(self.figure(), suffix.removeprefix(".")))

    def _repr_html_(self) -> str:
        from movers.pictures.html import frame_of

        return frame_of(self)


# ---------------------------------------------------------------------------------------------------------------------
# From results to panels


def _units(described: Sequence[Mapping[str, object]]) -> list[Unit]:
    return [
        Unit(str(unit["text"]), str(unit["kind"]), as_int(unit["sentence"]), as_float(unit["weight"]))
        for unit in described
    ]


def as_float(value: object) -> float:
    """A float of a result."""
    assert isinstance(value, int | float)
    return float(value)


def as_int(value: object) -> int:
    """An int of a result."""
    return int(as_float(value))


def as_records(value: object) -> list[Mapping[str, object]]:
    """A list of records of a result."""
    assert isinstance(value, list)
    return value


def strongest_first(flows: Sequence[Flow]) -> list[Flow]:
    """Flows by decreasing share."""
    return sorted(flows, key=lambda flow: (-flow.share, flow.i, flow.j))


def transport_panel(alignment: Mapping[str, object], title: str, note: str) -> Panel:
    """Panel of an alignment with units and flows."""
    flows = as_records(alignment["flows"])
    total = sum(as_float(flow["mass"]) for flow in flows) or 1.0
    found = [
        Flow(as_int(flow["i"]), as_int(flow["j"]), as_float(flow["mass"]) / total, as_float(flow["cost"]))
        for flow in flows
    ]
    left, right = (_units(as_records(alignment[side])) for side in ("prediction", "reference"))
    return Panel(title, note, left, right, strongest_first(found))


def mark_twice(panel: Panel) -> Panel:
    """Mark the units on the right that are matched with more than one unit on the left."""
    counts = Counter(flow.j for flow in panel.flows)
    right = [
        Unit(unit.text, unit.kind, unit.sentence, unit.weight, "twice", f"matched {counts[place]} times")
        if counts[place] > 1
        else unit
        for place, unit in enumerate(panel.right)
    ]
    return Panel(panel.title, panel.note, panel.left, right, panel.flows, panel.names, panel.measure)

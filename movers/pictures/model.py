"""What a picture shows: the units of two texts, the flows between them, and the scores of the pair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.errors import InputError
from movers.registry import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FLAGS", "Explanation", "Flow", "Panel", "Picture", "Unit", "about", "in_order", "shorten"]

FLAGS = {
    "empty": "Empty: a text has no word",
    "unfiltered": "Unfiltered: the filters left nothing of a text, so all its words were compared",
    "truncated": "Cut: a text was longer than the encoder reads",
    "unknown": "Unknown: a text has words or pieces that the encoder does not know",
}
_MARKS = {"supported": "✓ supported", "unsupported": "✗ unsupported", "repeated": "↻ repeated"}


def about(metric: str) -> dict[str, Any]:
    """`paper`, `doi`, `about` and `examples` of a metric; empty for one that is not ours."""
    file = resources.files("movers").joinpath("data", "about.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found.get(metric, {"paper": "", "doi": "", "about": "", "examples": []})


@dataclass(frozen=True)
class Unit:
    """A word, token, n-gram or sentence; `sentence` is the index of its sentence, `weight` its share of the mass."""

    text: str
    kind: str
    sentence: int
    weight: float
    mark: str = ""  # "supported", "unsupported", "repeated" or "twice"
    note: str = ""  # shown on hover and focus

    @property
    def is_sentence(self) -> bool:
        return self.kind == "sentence"

    @property
    def shown_mark(self) -> str:
        """The mark by shape and word, not by colour alone."""
        return f"×{self.note.split()[1]}" if self.mark == "twice" else _MARKS.get(self.mark, "")

    @property
    def label(self) -> str:
        """A name for the axes of a matrix."""
        return f"sentence {self.sentence + 1}" if self.is_sentence else shorten(self.text, 16)


def in_order(units: Sequence[Unit]) -> list[int]:
    """Indices of the units, each sentence before its words."""
    return sorted(range(len(units)), key=lambda index: (units[index].sentence, not units[index].is_sentence, index))


@dataclass(frozen=True)
class Flow:
    """Mass that moves from unit i of one text to unit j of the other, as a share of the total, and its cost."""

    i: int
    j: int
    share: float
    cost: float


@dataclass(frozen=True)
class Panel:
    """One alignment of two texts; the flows come largest first, and `measure` says what their share is."""

    title: str
    note: str
    left: Sequence[Unit]
    right: Sequence[Unit]
    flows: Sequence[Flow]
    names: tuple[str, str] = ("Prediction", "Reference")
    measure: str = "mass"


@dataclass(frozen=True)
class Picture:
    """One prediction and one reference or document: one or several panels, with the matrix of each or without."""

    title: str
    panels: Sequence[Panel]
    matrix: bool = False

    @property
    def costs(self) -> tuple[float, float]:
        """The lowest and the highest cost of its flows: one scale of colours for all panels."""
        costs = [flow.cost for panel in self.panels for flow in panel.flows] or [0.0]
        return min(costs), max(costs)


@dataclass(frozen=True)
class Explanation:
    """A scored prediction with one picture per reference or document, the best first.

    It displays itself in a notebook, `print` shows its largest flows, and `save` writes HTML, SVG, PNG or JSON.

    `numbers` are further scores (precision, distance, …), `flags` some of "empty", "unfiltered", "truncated" and
    "unknown", and `compared_with` the references or documents.
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

    def html(self) -> str:
        """A self-contained HTML page."""
        from movers.pictures.html import document, explanation_body

        return document(f"{self.title}: {self.score:.4g}", explanation_body(self))

    def _repr_html_(self) -> str:
        from movers.pictures.html import explanation_body, frame

        panels = [panel for picture in self.pictures for panel in picture.panels]
        rows = max((max(len(panel.left), len(panel.right)) for panel in panels), default=0)
        return frame(explanation_body(self), f"{self.title}: what was matched", min(900, 420 + 26 * rows))

    def figure(self, number: int = 0) -> Figure:
        """Draw a picture with matplotlib."""
        from movers.pictures.figures import draw

        return draw(self, self.pictures[number])

    def save(self, path: str | Path) -> None:
        """Write `.html`, `.svg`, `.png` or `.json`."""
        from movers.io import write_file

        suffix = Path(path).suffix.lower()
        if suffix == ".html":
            write_file(path, self.html())
        elif suffix == ".json":
            write_file(path, json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n")
        elif suffix in (".svg", ".png"):
            from movers.pictures.figures import image

            write_file(path, image(self.figure(), suffix[1:]))
        else:
            raise InputError(f"{path}: cannot write it: expected a name that ends in .html, .svg, .png or .json")

    def __str__(self) -> str:
        """Score and largest flows as text."""
        from movers.io import align_table

        lines = [f"{self.signature} = {self.score:.4g}"]
        lines += [f"  {name}: {value:.4g}" for name, value in self.numbers.items()]
        lines += [f"  {flag}" for flag in self.flags]
        for picture in self.pictures:
            for panel in picture.panels:
                lines += ["", f"{picture.title} {panel.title}".strip()]
                rows = [
                    [shorten(panel.left[flow.i].text, 44), shorten(panel.right[flow.j].text, 44)]
                    + [f"{flow.share:.1%}", f"{flow.cost:.3g}"]
                    for flow in panel.flows[:12]
                ]
                lines += align_table([*panel.names, panel.measure, "distance"], rows, {2, 3})
                if len(panel.flows) > 12:
                    lines.append(f"… and {len(panel.flows) - 12} more, shown by a saved picture")
        return "\n".join(lines)


def shorten(text: str, width: int) -> str:
    """The text, cut to that many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"

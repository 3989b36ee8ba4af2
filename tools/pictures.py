"""Draw the picture of every metric's card, `metrics/<name>/picture.png`, and the README's: `make pictures`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.cli.basics import example
from movers.paths import module_path
from movers.pictures import Explanation, explain
from movers.pictures.explain import digits, pieces
from movers.pictures.figures import INK, SOFT, image, shade
from movers.registry import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_sentences", "explanation_of", "small_png"]

_SYNONYMS = "The doctor bought a red car.", "A physician purchased a cheap red vehicle."
_SHORT = (
    "Neighbours dug out the village bakery after the storm.",
    "After the blizzard, villagers cleared the snow from the baker's shop.",
)
_REPEATED = (
    "The storm hit the village. The storm hit the village.",
    "The storm hit the village. Villagers cleared it.",
)
_SUMMARY = (
    "The ferry to Hallen has stopped because of cracks in its engine mount. About six hundred people commute on it. "
    "The ferry to Hallen has stopped. The orchestra opened its season."
)


def explanation_of(name: str) -> Explanation:
    """The pair that a metric's card shows."""
    texts = example()
    if METRICS[name].compared_with == "sources":
        return explain(name, _SUMMARY, source=texts["document"])
    if name.startswith("bertscore"):
        return explain(name, *_REPEATED)
    if name == "moverscore":
        return explain(name, *_SHORT, n_gram=2)
    if name == "wms":
        return explain(name, *_SHORT)
    return explain(name, texts["candidates"][1]["text"], texts["reference"])


def draw_sentences(explanation: Explanation, labels: int = 4) -> Figure:
    """Two short texts, one above the other, with lines between their words."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    picture = explanation.pictures[0]
    panel = picture.panels[picture.main]
    figure = Figure(figsize=(8, 2.5), dpi=200)
    renderer = FigureCanvasAgg(figure).get_renderer()
    axis = figure.add_axes((0, 0, 1, 1))  # in inches
    axis.set(xlim=(0, 8), ylim=(0, 2.5))
    axis.axis("off")
    places: list[dict[int, float]] = [{}, {}]
    for side, height in enumerate((2.02, 0.78)):
        units = [*panel.sides[side], *panel.dropped[side]]
        words = [(axis.text(0, height, text, fontsize=17, va="center"), index)
                 for text, index in pieces(picture.texts[side], units)]  # fmt: skip
        widths = [
            0.11 if word.get_text().isspace() else word.get_window_extent(renderer).width / 200 for word, _ in words
        ]
        x = 4 - sum(widths) / 2
        for (word, index), width in zip(words, widths, strict=True):
            word.set(x=x, color=SOFT if index is None or units[index].mark else INK)
            places[side].setdefault(-1 if index is None else index, x + width / 2)
            x += width
        axis.text(4, height + (0.32 if not side else -0.3), panel.names[side].lower(), ha="center", va="center",
                  fontsize=9, color=SOFT)  # fmt: skip
    labelled: list[float] = []
    for flow in panel.flows:
        first, second, colour = places[0][flow.i], places[1][flow.j], shade(picture.tint(flow.cost))
        ends = [(first, 1.84), (first, 1.42), (second, 1.42), (second, 0.98)]
        path = Curve(ends, [Curve.MOVETO, *[Curve.CURVE4] * 3])
        width = 7 * flow.share / panel.flows[0].share
        axis.add_patch(PathPatch(path, fill=False, edgecolor=colour, linewidth=width, alpha=0.75))
        middle = (first + second) / 2
        if len(labelled) < labels and all(abs(middle - other) > 0.6 for other in labelled):
            labelled.append(middle)
            box: Any = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": colour}
            axis.text(middle, 1.41, digits(flow.cost), bbox=box, ha="center", va="center", fontsize=10, zorder=4)
    caption = (
        f"{explanation.title}: {digits(explanation.score)}  ·  width of a line: mass  ·  colour and number: distance"
    )
    axis.text(4, 0.16, caption, ha="center", va="center", fontsize=9, color=SOFT)
    return figure


def small_png(figure: Figure, colours: int = 96) -> bytes:
    """A PNG with few colours, a third of the size."""
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(image(figure, "png"))).convert("RGB")
    picture.quantize(colours).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def main() -> None:
    figures = {Path(module_path(name)) / "picture.png": explanation_of(name).figure() for name in METRICS}
    readme = Path(__file__).parents[1] / "docs" / "alignment.png"
    figures[readme] = draw_sentences(explain("wms", *_SYNONYMS))
    for path, figure in figures.items():
        path.write_bytes(small_png(figure))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()

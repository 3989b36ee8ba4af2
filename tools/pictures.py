"""Draw the picture of every metric's card, `metrics/<name>/picture.png`: `make pictures`."""

from __future__ import annotations

import io
from pathlib import Path

from movers.cli.basics import example
from movers.paths import module_path
from movers.pictures import Explanation, explain
from movers.pictures.figures import image
from movers.registry import METRICS

__all__ = ["explanation_of", "small_png"]

_SHORT = (
    "Neighbours dug out the village bakery after the storm.",
    "After the blizzard, villagers cleared the snow from the baker's shop.",
)
_REPEATED = (
    "The storm hit the village. The storm hit the village.",
    "The storm hit the village. Villagers cleared it.",
)
_SUMMARY = (
    "The ferry to Hallen has stopped because of cracks in its engine mount. The ferry to Hallen has stopped. "
    "The orchestra opened its season."
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


def small_png(explanation: Explanation, colours: int = 48) -> bytes:
    """A PNG with few colours, a third of the size."""
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(image(explanation.figure(), "png"))).convert("RGB")
    picture.quantize(colours).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def main() -> None:
    for name in METRICS:
        path = Path(module_path(name)) / "picture.png"
        path.write_bytes(small_png(explanation_of(name)))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()

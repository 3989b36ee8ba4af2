"""Write the options of every metric into the files that must list them: `make cards`.

Options, their defaults and their help are written once, in the metric's options class. From there this script fills
what stands between two markers: in `metrics/<name>/<name>.py` the arguments in `_KWARGS_DESCRIPTION` and the named
options of `_compute`, in `metrics/<name>/README.md` the table.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from movers.paths import module_path
from movers.registry import METRICS, find_metric
from movers.scores.options import OptionRow, option_rows

__all__ = ["fill", "option_arguments", "option_help", "option_table", "updated_files"]

WIDTH = 120
HELP = ("Args:", "Returns:")
ARGUMENTS = ("# options: written by `make cards`", "# end of the options")
TABLE = ("<!-- options: written by `make cards` -->", "<!-- end of the options -->")
INPUTS = {
    "references": (
        "predictions (list of str): texts to score.",
        "references (list of str, or list of list of str): for each prediction one reference or several.",
    ),
    "sources": (
        "predictions (list of str): summaries to score.",
        "sources (list of str, or list of list of str): for each summary its document, or the documents it covers.",
    ),
}


def _literal(value: object) -> str:
    """Python source of a default.

    >>> _literal("max"), _literal(None)
    ('"max"', 'None')
    """
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"expected a default that can be written as a literal, but got {value!r}")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def option_arguments(rows: Iterable[OptionRow]) -> list[str]:
    """Named arguments with their defaults, as many in a line as fit."""
    indent = " " * 8
    items = [f"{row.name}={_literal(row.default)}," for row in rows]
    lines = [indent]
    for item in items:
        separator = "" if lines[-1] == indent else " "
        if len(lines[-1] + separator + item) > WIDTH:
            lines.append(indent)
            separator = ""
        lines[-1] += separator + item
    return lines


def option_help(rows: Iterable[OptionRow], compared_with: str) -> list[str]:
    """The texts and then the options, one entry each, as in Google-style docstrings."""
    entries = [
        *INPUTS[compared_with],
        *(f"{row.name} ({row.values}; default {row.default!r}): {row.help}." for row in rows),
    ]
    wrap = textwrap.TextWrapper(WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False)
    return [*(line for entry in entries for line in wrap.wrap(entry)), ""]


def option_table(rows: Iterable[OptionRow]) -> list[str]:
    """A Markdown table."""
    return [
        "",
        "| option | values | default | meaning |",
        "|---|---|---|---|",
        *(f"| **{row.name}** | {_cell(row.values)} | `{row.default!r}` | {_cell(row.help)} |" for row in rows),
        "",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def fill(text: str, markers: tuple[str, str], lines: Sequence[str]) -> str:
    """The text with other lines between two lines that hold the markers.

    >>> fill("a\\n# from\\nold\\n# to\\nb", ("# from", "# to"), ["new", "er"])
    'a\\n# from\\nnew\\ner\\n# to\\nb'
    """
    old = text.split("\n")
    first, last = ([place for place, line in enumerate(old) if line.strip() == marker] for marker in markers)
    if len(first) != 1 or len(last) != 1 or first > last:
        raise ValueError(f"expected one line {markers[0]!r} and below it one line {markers[1]!r}")
    return "\n".join([*old[: first[0] + 1], *lines, *old[last[0] :]])


def updated_files(name: str) -> dict[Path, str]:
    """A metric's files as its options say they should be."""
    folder = Path(module_path(name))
    spec = find_metric(name)
    rows = option_rows(spec.options_class)
    script, card = folder / f"{name}.py", folder / "README.md"
    code = fill(script.read_text(encoding="utf-8"), HELP, option_help(rows, spec.compared_with))
    return {
        script: fill(code, ARGUMENTS, option_arguments(rows)),
        card: fill(card.read_text(encoding="utf-8"), TABLE, option_table(rows)),
    }


def main() -> None:
    for name in METRICS:
        for path, text in updated_files(name).items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(f"wrote {path}")


if __name__ == "__main__":
    main()

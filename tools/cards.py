"""Write the options of every metric into the files that must list them: `make cards`.

Options, their defaults and their help are written once, in the metric's options class and in `RunSettings`. From there
this script fills what stands between two markers: in `metrics/<name>/<name>.py` the arguments in `_KWARGS_DESCRIPTION`
and of `_compute`, in `metrics/<name>/README.md` the rows of the table (to add one: `| **name** |`) and the other names.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from movers.paths import module_path
from movers.registry import METRICS, find_metric
from movers.scores.options import OptionRow, RunSettings, option_rows

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
RUN_SETTINGS = "Run settings, the same for all metrics:"


def option_arguments(rows: Iterable[OptionRow]) -> list[str]:
    """Named arguments with their defaults, as many in a line as fit."""
    items = (
        f"{row.name}={json.dumps(row.default) if isinstance(row.default, str) else repr(row.default)}," for row in rows
    )
    # An item is one word of the wrapped text.
    indent = " " * 8
    return textwrap.wrap(
        " ".join(items), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def option_help(rows: Iterable[OptionRow]) -> list[str]:
    """One entry per option, as in Google-style docstrings."""
    return [
        line for row in rows for line in _wrapped(f"{row.name} ({row.values}; default {row.default!r}): {row.help}.")
    ]


def _wrapped(entry: str) -> list[str]:
    return textwrap.wrap(entry, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False)


def option_table(rows: Sequence[OptionRow], card: str) -> list[str]:
    """A table of the options that have a row in the card, and the names of the others, without aliases."""
    options = {row.name: row for row in rows}
    shown = [options[name] for name in re.findall(r"^\| \*\*(\w+)\*\*", card, re.MULTILINE) if name in options]
    lines = [f"| **{row.name}** | `{row.default!r}` | {row.help} |" for row in shown]
    others = ", ".join(f"`{row.name}`" for row in rows if row not in shown and row.alias_of is None)
    return ["", "| option | default | meaning |", "|---|---|---|", *lines, "", f"Others: {others}.", ""]


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
    options, settings = option_rows(spec.options_class), option_rows(RunSettings)
    script, card = folder / f"{name}.py", folder / "README.md"
    inputs = [line for entry in INPUTS[spec.compared_with] for line in _wrapped(entry)]
    entries = [*inputs, *option_help(options), "", f"    {RUN_SETTINGS}", *option_help(settings), ""]
    code = fill(script.read_text(encoding="utf-8"), HELP, entries)
    text = card.read_text(encoding="utf-8")
    text = fill(text, TABLE, option_table([*options, *settings], text))
    return {script: fill(code, ARGUMENTS, [*option_arguments(options), *option_arguments(settings)]), card: text}


def main() -> None:
    for name in METRICS:
        for path, text in updated_files(name).items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(f"wrote {path}")


if __name__ == "__main__":
    main()

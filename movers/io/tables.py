"""Tables for people, aligned text or Markdown, and what texts of others may not do to a terminal or a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

__all__ = ["align_table", "csv_cell", "csv_row", "printable"]


def align_table(
    heading: Sequence[str],
    body: Sequence[Sequence[str]],
    right: Collection[int] = (),
    *,
    markdown: bool = False,
) -> list[str]:
    """Lines of a table with aligned columns; those numbered in `right` are aligned to the right.

    Without a heading there is no rule below it either.

    >>> align_table(["metric", "n"], [["wms", "7"]], {1})
    ['metric  n', '------  -', 'wms     7']
    """
    heading, body = [printable(cell, "") for cell in heading], [[printable(cell, "") for cell in line] for line in body]
    if markdown:
        rule = ["--:" if column in right else "---" for column in range(len(heading))]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in [heading, rule, *body]]
        return ["| " + " | ".join(line) + " |" for line in escaped]
    lines = [heading, *body] if heading else list(body)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if heading:
        lines.insert(1, ["-" * width for width in widths])
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


_QUOTE = '"'
_QUOTED = re.compile('[",\r\n]')
# Control characters of ASCII and Latin-1, line separators, and marks that turn the direction of what follows.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str, keep: str = "\n\t") -> str:
    r"""A text as a terminal may show it: control characters, which could move its cursor or hide text, as escapes.

    What is JSON before is the same JSON after.

    >>> print(printable("red: " + chr(27) + "[31m"))
    red: \u001b[31m
    """
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text)


def csv_cell(value: object) -> object:
    """A value for a CSV file that a spreadsheet may open: a text that begins a formula gets an apostrophe.

    >>> [csv_cell(value) for value in ("=1+1", "-0.5", -0.5, "a = b")]
    ["'=1+1", '-0.5', -0.5, 'a = b']
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_row(values: Iterable[object]) -> str:
    r"""A line of a CSV file. The csv module leaves a cell with a lone carriage return unquoted, which tears the row.

    >>> csv_row(["a", -0.5, None, "b,c"])
    'a,-0.5,,"b,c"\n'
    """
    cells = ("" if value is None else str(csv_cell(value)) for value in values)
    return ",".join(f'"{cell.replace(_QUOTE, 2 * _QUOTE)}"' if _QUOTED.search(cell) else cell for cell in cells) + "\n"

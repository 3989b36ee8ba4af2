"""Tables for people: aligned text or Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["align_table"]


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

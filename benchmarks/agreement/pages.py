"""Figures in ``results.csv``, one row each, and the tables of ``RESULTS.md`` made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from movers.agreement.table import short
from movers.io import align_table, write_file

from common import read_rows, version_note  # isort: skip
from clark import CLARK_TABLES, render  # isort: skip
from layout import Table, written  # isort: skip

Figure = dict[str, str]  # a line of results.csv


def figures_of(results: Iterable[Figure], table: str) -> dict[str, dict[str, Figure]]:
    """Row → column → figure."""
    rows: dict[str, dict[str, Figure]] = {}
    for figure in results:
        if figure["table"] == table:
            rows.setdefault(figure["row"], {})[figure["column"]] = figure
    return rows


def render_table(table: Table, results: Iterable[Figure]) -> list[str]:
    """Markdown of one table: our number with its interval, the paper's beside it."""
    figures = figures_of(results, table.name)
    with_paper = {column for column in table.columns if any(column in row.paper for row in table.rows)}
    heading = ["metric", "options", *(["row of the paper"] if with_paper else [])]
    first_number = len(heading)
    for column in table.columns:
        heading += [column, *(["paper"] if column in with_paper else [])]
    numbers = range(first_number, len(heading))
    heading += [f"better than {table.baseline}"] if table.baseline else []
    compared = any(row.differs_from for row in table.rows)
    heading += ["differs from", "p", "paper"] if compared else []
    body, sizes = [], set()
    for row in table.rows:
        columns = figures.get(row.call.label)
        if columns is None:
            continue
        line = [row.call.label, f"`{written(row.call)}`", *([row.stands_for or "–"] if with_paper else [])]
        for column in table.columns:
            figure = columns.get(column)
            line.append(_with_interval(figure, brief=table.group is not None and column != "mean"))
            if figure is not None:
                sizes.add(int(figure["n"]))
            if column in with_paper:
                line.append(short(row.paper[column]) if column in row.paper else "–")
        if table.baseline:
            p = _p_value(columns, f"better than {table.baseline}")
            line.append("–" if p is None else f"{'**' if p < 0.01 else '*' if p < 0.05 else 'no'} (p = {p:.2g})")
        if compared:
            p = _p_value(columns, f"differs from {row.differs_from}")
            shown = ["–" if number is None else f"{number:.2g}" for number in (p, row.paper_p)]
            line += [row.differs_from or "–", *shown]
        body.append(line)
    if not body:
        return []
    interval = " In brackets: 95 % confidence interval." if table.group is None and not table.ranked else ""
    size = " to ".join(map(str, sorted({min(sizes), max(sizes)})))
    note = f"{table.note} {'Pairs' if table.ranked else 'Texts'} in a column: {size}.{interval}"
    shown = [*align_table(heading, body, numbers, markdown=True), *version_note("agreement", table.name, results)]
    return [f"## {table.title}", "", note, "", *shown, ""]


def _with_interval(figure: Figure | None, *, brief: bool) -> str:
    if figure is None or not figure["value"]:
        return "–"
    value, low, high = (short(float(figure[name])) if figure[name] else "" for name in ("value", "low", "high"))
    return value if brief or not low else f"{value} [{low}, {high}]"


def _p_value(columns: Mapping[str, Figure], column: str) -> float | None:
    return float(columns[column]["value"]) if column in columns else None


def write_page(folder: Path, tables: Mapping[str, Table]) -> Path:
    """Write ``RESULTS.md`` from ``results.csv`` and the pictures in ``figures/``."""
    results = read_rows(folder)
    lines = [
        "# Correlation with human judgements",
        "",
        "Written by `benchmarks/agreement/run.py` from `results.csv`, which has the signature and version of a row.",
        "",
        "Every table shows the paper's numbers beside ours. Encoders differ (see the notes), so compare the order of",
        "the rows and the differences between them, not the absolute values. Rows “as printed” have `preset=paper`,",
        "the paper's definition to the letter; the correlation of a distance is shown with its sign turned.",
        "",
        *render({name: figures_of(results, name) for name in CLARK_TABLES}),
        *(line for table in tables.values() for line in render_table(table, results)),
    ]
    pictures = [f"![{path.stem}](figures/{path.name})" for path in sorted((folder / "figures").glob("*.png"))]
    if pictures:
        named = "Clark et al. 2019, Fig. 3, and Zhao et al. 2019, Figs. 2 and 3, drawn by `figures.py`."
        lines += ["## Figures", "", named, "", *pictures]
    write_file(folder / "RESULTS.md", "\n".join(lines).rstrip("\n") + "\n")
    return folder / "RESULTS.md"

"""Render `RESULTS.md` from cells."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from movers.agreement.rendering import short
from movers.io import align_table, write_file

from common import machine  # isort: skip
from layout import Row, Table  # isort: skip
from passage import render_passage  # isort: skip

PACKAGES = ("numpy", "scipy", "torch", "transformers", "POT", "rouge-score", "sacrebleu")


def slug(text: str) -> str:
    """A name for a file.

    >>> slug("MoverScore, bigrams, IDF")
    'moverscore-bigrams-idf'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def cell_path(out: Path, table: Table, row: Row) -> Path:
    return out / "cells" / table.name / f"{slug(row.call.label)}.json"


def render_table(table: Table, cells: Mapping[str, Any]) -> list[str]:
    """Markdown of one table: our number with its interval, the paper's beside it."""
    with_paper = {column for column in table.columns if any(column in row.paper for row in table.rows)}
    heading = ["metric", "options"]
    if with_paper:
        heading.append("row of the paper")
    for column in table.columns:
        heading += [column, *(["paper"] if column in with_paper else [])]
    tested = table.baseline is not None
    if tested:
        heading.append(f"better than {table.baseline}")
    compared = any(row.differs_from for row in table.rows)
    if compared:
        heading += ["differs from", "p", "paper"]
    body = []
    for row in table.rows:
        cell = cells.get(row.call.label)
        if cell is None:
            continue
        options = ", ".join(f"{key}={value}" for key, value in cell["options"].items())
        options += f", output={cell['output']}" if cell["output"] != "scores" else ""
        line = [row.call.label, f"`{row.call.name}`" + (f" {options}" if options else "")]
        if with_paper:
            line.append(row.stands_for or "–")
        for column in table.columns:
            line.append(_with_interval(cell["columns"].get(column), brief=table.group is not None and column != "mean"))
            if column in with_paper:
                line.append(short(row.paper[column]) if column in row.paper else "–")
        if tested:
            p = cell["williams_p"]
            line.append("–" if p is None else f"{'**' if p < 0.01 else '*' if p < 0.05 else 'no'} (p = {p:.2g})")
        if compared:
            differs = cell.get("differs") or {"row": "–", "p": None}
            line += [differs["row"], *("–" if p is None else f"{p:.2g}" for p in (differs["p"], row.paper_p))]
        body.append(line)
    if not body:
        return []
    numeric = set(range(3 if with_paper else 2, len(heading) - (1 if tested else 0) - (3 if compared else 0)))
    interval = " In brackets: 95 % confidence interval." if table.group is None and not table.ranked else ""
    ns = {number["n"] for cell in cells.values() for number in cell["columns"].values()}
    texts = f"{min(ns)}" if len(ns) == 1 else f"{min(ns)} to {max(ns)}"
    return [
        f"## {table.title}",
        "",
        f"{table.note} {'Pairs' if table.ranked else 'Texts'} in a column: {texts}.{interval}",
        "",
        *align_table(heading, body, numeric, markdown=True),
        "",
    ]


def _with_interval(number: Mapping[str, float | None] | None, *, brief: bool) -> str:
    if number is None or number["value"] is None:
        return "–"
    value, low, high = number["value"], number["low"], number["high"]
    if brief or low is None or high is None:
        return short(value)
    return f"{short(value)} [{short(low)}, {short(high)}]"


def write_results(out: Path, tables: Mapping[str, Table]) -> Path:
    """Write ``RESULTS.md`` from all cells."""
    lines = [
        "# Correlation with human judgements",
        "",
        "Written by `python benchmarks/agreement/run.py`; each number comes from one of the files in `cells/`.",
        f"Last written with {machine(PACKAGES)}.",
        "",
        "Every table shows the paper's numbers beside ours. Encoders differ (see the notes), so compare the order of",
        "the rows and the differences between them, not the absolute values.",
        "",
        *render_passage(out),
    ]
    for table in tables.values():
        cells = {}
        for row in table.rows:
            path = cell_path(out, table, row)
            if path.exists():
                cells[row.call.label] = json.loads(path.read_text(encoding="utf-8"))
        lines += render_table(table, cells)
    lines += render_figures(out)
    speed = out / "cells" / "speed.json"
    if speed.exists():
        lines += render_speed(json.loads(speed.read_text(encoding="utf-8")))
    path = out / "RESULTS.md"
    write_file(path, "\n".join(lines).rstrip("\n") + "\n")
    return path


def tuned_encoder(out: Path) -> str | None:
    """The fine-tuned encoder of an earlier run."""
    for path in (out / "cells").glob("zhao-table-*/tuned-encoder-idf.json"):
        return str(json.loads(path.read_text(encoding="utf-8"))["options"]["model"])
    return None


def render_figures(out: Path) -> list[str]:
    """The pictures that `figures.py` has drawn."""
    drawn = [f"![{path.stem}](figures/{path.name})" for path in sorted((out / "figures").glob("*.png"))]
    note = "Zhao et al. 2019, Figs. 2 and 3, drawn by `figures.py` from the scores in `cells/figures.json`."
    return ["## Figures", "", note, "", *drawn, ""] if drawn else []


def render_speed(found: Mapping[str, Any]) -> list[str]:
    seconds = {name: sorted(times) for name, times in found["seconds"].items()}
    one, five = (seconds[name][len(seconds[name]) // 2] for name in ("one", "five"))
    runs = len(seconds["one"])
    return [
        "## Shared forward passes",
        "",
        f"{found['data']} ({found['texts']} texts): {one:.1f} s with one contextual metric (MoverScore), {five:.1f} s "
        f"with five ({', '.join(found['metrics'])}): {found['ratio']:.2f} times as long (median of {runs} runs).",
        "",
    ]

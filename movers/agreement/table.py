"""Tables of correlations and of comparisons of systems as text, Markdown, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from movers.agreement.coefficients import COEFFICIENT_TITLES, Outcome
from movers.io import align_table, csv_row

Format = Literal["text", "markdown", "csv", "json"]


def render(rows: Sequence[Outcome], format: Format = "text") -> str:
    """A table of :func:`agreement_table` as one string: for reading, or (``csv``, ``json``) with all fields.

    >>> from movers.agreement import agreement_table
    >>> rows = agreement_table({"wms": [1, 2, 3, 5]}, {"overall": [1, 2, 4, 3]}, n_resamples=20)
    >>> print(render(rows, "markdown").splitlines()[0])
    | metric | human | n | Pearson | Spearman | Kendall τ-b | better than |
    """
    lines: list[dict[str, str]] = []
    for row in rows:
        line = {"metric": row["metric"], "human": row["human"] + " (lower is better)" * row["lower_is_better"]}
        line |= {"group": row["group"]} if row["group"] != "all" else {}
        line |= {"n": str(row["n"])}
        line |= {title: _shown(row, name, short) for name, title in COEFFICIENT_TITLES.items()}
        lines.append(line | {"better than": ", ".join(row["better_than"]) or "–"})
    return _render(rows, [lines], _notes(rows), format)


def render_comparison(rows: Sequence[Outcome], format: Format = "text") -> str:
    """The result of :func:`movers.agreement.compare_texts`: a table of systems by metric, and one of all pairs."""
    write = "{:.4f}".format
    systems: dict[str, dict[str, str]] = {}
    for row in rows:
        for side in "ab":
            line = systems.setdefault(row[side], {"system": row[side], "n": str(row["n"])})
            line[row["metric"]] = f"{_shown(row, f'mean_{side}', write)} ({row[f'group_{side}']})"
    pairs = [
        {"metric": row["metric"], "A": row["a"], "B": row["b"], "A − B": _shown(row, "difference", write)}
        | {"p (bootstrap)": f"{row['bootstrap_p']:.4f}"}
        | {"p (randomization)": f"{row['randomization_p']:.4f}"}
        | {"p (Holm)": f"{row['holm_p']:.4f}", "better": row["better"] or "–"}
        for row in rows
    ]
    first = rows[0]
    notes = [
        f"Means with {first['confidence']:.0%} intervals, paired bootstrap over texts. In parentheses the group: every "
        "system of a group is better than every system of the groups with higher numbers.",
        f"Better: the system with the higher mean, if p < {first['alpha']:g} in both tests (two-sided), after Holm's "
        "correction for the number of pairs; otherwise –.",
        *(f"{metric}: {signature}" for metric, signature in {row["metric"]: row["signature"] for row in rows}.items()),
    ]
    return _render(rows, [list(systems.values()), pairs], notes, format)


def _render(
    rows: Sequence[Outcome], tables: Sequence[Sequence[Mapping[str, str]]], notes: Sequence[str], format: Format
) -> str:
    """All fields of ``rows`` as JSON or CSV (nested values as JSON), or ``tables`` for people with notes below."""
    if format == "json":
        return json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if format == "csv":
        cells = [
            [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell for cell in row.values()]
            for row in rows
        ]
        return "".join(map(csv_row, [rows[0], *cells]))
    text = ""
    for lines in tables:
        heading, body = list(lines[0]), [list(line.values()) for line in lines]
        numbers = {heading.index("n")} if "n" in heading else set()
        text += "\n".join(align_table(heading, body, numbers, markdown=format == "markdown")) + "\n\n"
    return text + ("\n\n" if format == "markdown" else "\n").join(notes) + "\n"


def short(number: float) -> str:
    """Three decimals without the leading zero, as papers print coefficients.

    >>> short(0.2583), short(-0.05), short(1.0)
    ('.258', '-.050', '1.000')
    """
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 0.9995 else f"{number:.3f}"


def _shown(row: Outcome, name: str, write: Callable[[float], str]) -> str:
    value, low, high = (row[name + suffix] for suffix in ("", "_low", "_high"))
    if value is None:
        return "undefined"
    return write(value) + ("" if low is None else f" [{write(low)}, {write(high)}]")


_SKIPPED = {
    "skipped_no_human_score": "texts without a human score",
    "skipped_no_metric_score": "texts without a metric score, such as those without references",
    "skipped_constant_documents": "documents with constant scores",
    "skipped_groups": "groups without a coefficient",
}


def _notes(rows: Sequence[Outcome]) -> list[str]:
    """Notes: level, intervals, tests, and everything that was skipped."""
    first = rows[0]
    level, units = first["level"], {"segment": "texts", "summary": "documents", "system": "systems"}[first["level"]]
    notes = [
        f"Level: {level}{' (n counts systems)' * (level == 'system')}. Intervals: {first['confidence']:.0%}, "
        f"bootstrap over {units} ({first['n_resamples']} resamples, seed {first['seed']})."
    ]
    if any(row["permutation_p"] for row in rows):
        notes.append(
            f"Better than: higher {COEFFICIENT_TITLES[first['tested']]}, p < {first['alpha']:g} in the paired "
            "permutation test and, where it applies, Williams' test (two-sided, uncorrected)."
        )
    skipped: dict[str, list[str]] = {}
    for row in rows:
        counts = [f"{what}: {row[reason]}" for reason, what in _SKIPPED.items() if row[reason]]
        if counts:
            where = row["human"] if row["group"] == "all" else f"{row['human']}, {row['group']}"
            skipped.setdefault(f"{where} ({', '.join(counts)})", []).append(row["metric"])
    return notes + [f"Skipped for {', '.join(metrics)} on {what}." for what, metrics in skipped.items()]

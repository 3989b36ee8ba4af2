"""Tables of agreement as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Literal, get_args

from movers.agreement.columns import check_choice
from movers.agreement.systems import SystemComparison
from movers.agreement.table import AgreementRow

Format = Literal["text", "markdown", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

_HEADINGS = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b", "kendall_c": "Kendall τ-c"}
_SKIPPED = {
    "skipped_no_references": "texts without references",
    "skipped_no_human_score": "texts without a human score",
    "skipped_no_metric_score": "texts without a metric score",
    "skipped_constant_documents": "documents with constant scores",
    "skipped_groups": "groups without a coefficient",
}


def render(rows: Sequence[AgreementRow], format: Format = "text") -> str:
    """A table of :func:`movers.agreement.agreement_table` as one string, ending in a newline.

    ``text`` and ``markdown`` are for reading: coefficients with their intervals, which metrics each one surpasses, and
    below the table what was skipped and which tests were made. ``csv`` and ``json`` hold every field of every row.

    Examples
    --------
    >>> from movers.agreement import agreement_table
    >>> rows = agreement_table({"wms": [1, 2, 3, 5]}, {"overall": [1, 2, 4, 3]}, n_resamples=20)
    >>> print(render(rows, "markdown").splitlines()[0])
    | metric | human | n | Pearson | Spearman | Kendall τ-b | Kendall τ-c | better than |
    >>> json.loads(render(rows, "json"))[0]["metric"]
    'wms'
    """
    check_choice("format", format, FORMATS)
    if not rows:
        raise ValueError("`rows` must hold at least one row; got none.")
    if format == "json":
        return json.dumps([row.as_dict() for row in rows], ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if format == "csv":
        return _as_csv(rows)
    grouped = any(row.group != "all" for row in rows)
    ranked = any(row.ranked_pairs for row in rows)
    heading = [
        "metric",
        "human",
        *(["group"] if grouped else []),
        "n",
        *_HEADINGS.values(),
        *(["pairs ranked right"] if ranked else []),
        "better than",
    ]
    body = [
        [
            row.metric,
            row.human + (" (lower is better)" if row.lower_is_better else ""),
            *([row.group] if grouped else []),
            str(row.n),
            *(_with_interval(row, coefficient) for coefficient in _HEADINGS),
            *([_ranked(row)] if ranked else []),
            ", ".join(row.better_than) or "–",
        ]
        for row in rows
    ]
    numeric = {column for column, name in enumerate(heading) if name == "n"}
    lines = align(heading, body, numeric, markdown=format == "markdown")
    return "\n".join([*lines, "", *_notes(rows, markdown=format == "markdown")]) + "\n"


def _with_interval(row: AgreementRow, coefficient: str) -> str:
    value, low, high = (getattr(row, coefficient + suffix) for suffix in ("", "_low", "_high"))
    if value is None:
        return "undefined"
    return short(value) if low is None else f"{short(value)} [{short(low)}, {short(high)}]"


def _ranked(row: AgreementRow) -> str:
    return "undefined" if row.ranked_right is None else f"{row.ranked_right:.1%} of {row.ranked_pairs}"


def short(number: float) -> str:
    """Three decimals without the leading zero, as papers print coefficients.

    >>> short(0.2583), short(-0.05), short(1.0)
    ('.258', '-.050', '1.000')
    """
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 0.9995 else f"{number:.3f}"


def align(
    heading: Sequence[str], body: Sequence[Sequence[str]], right: set[int] | None = None, *, markdown: bool = False
) -> list[str]:
    """Lines of a table with aligned columns; those numbered in ``right`` are aligned to the right.

    >>> align(["metric", "n"], [["wms", "7"]], {1})
    ['metric  n', '------  -', 'wms     7']
    """
    right = right or set()
    if markdown:
        rule = ["--:" if column in right else "---" for column in range(len(heading))]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in [heading, rule, *body]]
        return ["| " + " | ".join(line) + " |" for line in escaped]
    widths = [max(len(line[column]) for line in [heading, *body]) for column in range(len(heading))]
    lines = [heading, ["-" * width for width in widths], *body]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _notes(rows: Sequence[AgreementRow], *, markdown: bool) -> list[str]:
    """What a reader must know to judge the numbers: level, intervals, tests, everything that was left out."""
    first = rows[0]
    units = {"segment": "texts", "summary": "documents", "system": "systems"}[first.level]
    notes = [
        f"Level: {first.level}. Intervals: {first.confidence:.0%}, bootstrap over {units} "
        f"({first.n_resamples} resamples, seed {first.seed})."
    ]
    if any(row.permutation_p for row in rows):
        notes.append(
            f"Better than: higher {_HEADINGS[first.tested]}, p < {first.alpha:g} in the paired permutation test and, "
            "where it applies, Williams' test (two-sided, not corrected for the number of comparisons)."
        )
    if first.skipped_reference_texts:
        notes.append(f"Skipped everywhere (references that were judged themselves: {first.skipped_reference_texts}).")
    skipped: dict[str, list[str]] = {}
    for row in rows:
        counts = [f"{what}: {getattr(row, key)}" for key, what in _SKIPPED.items() if getattr(row, key)]
        if counts and row.group != "mean":
            where = row.human if row.group == "all" else f"{row.human}, {row.group}"
            skipped.setdefault(f"{where} ({', '.join(counts)})", []).append(row.metric)
    notes += [f"Skipped for {', '.join(metrics)} on {what}." for what, metrics in skipped.items()]
    notes += [
        f"Left out of the mean for {row.metric} on {row.human} (groups without a coefficient: {row.skipped_groups})."
        for row in rows
        if row.group == "mean" and row.skipped_groups
    ]
    return [line for note in notes for line in ((note, "") if markdown else (note,))]


def _as_csv(rows: Sequence[AgreementRow]) -> str:
    """Every field a column; lists and mappings as JSON, undefined numbers as empty cells."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, fieldnames=list(rows[0].as_dict()), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                key: json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
                for key, value in row.as_dict().items()
            }
        )
    return lines.getvalue()


def render_comparison(
    comparisons: Sequence[tuple[str, str, str, SystemComparison]], format: Format = "text", confidence: float = 0.95
) -> str:
    """Systems compared two by two: rows of (metric, name of A, name of B, outcome) as one string.

    Examples
    --------
    >>> from movers.agreement import compare_systems
    >>> outcome = compare_systems([0.9, 0.8, 0.7], [0.5, 0.6, 0.65], n_resamples=50)
    >>> print(render_comparison([("wms", "A", "B", outcome)], "markdown").splitlines()[0])
    | metric | A | B | n | mean of A | mean of B | A − B | p (bootstrap) | p (randomisation) |
    """
    check_choice("format", format, FORMATS)
    flat = [
        {
            "metric": metric,
            "a": a,
            "b": b,
            "n": found.n,
            **{
                name + suffix: number
                for name, estimate in (("mean_a", found.a), ("mean_b", found.b), ("difference", found.difference))
                for suffix, number in (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high))
            },
            "bootstrap_p": found.bootstrap_p,
            "randomization_p": found.randomization.p,
            "randomization_exact": found.randomization.exact,
        }
        for metric, a, b, found in comparisons
    ]
    if not flat:
        raise ValueError("`comparisons` must hold at least one comparison; got none.")
    if format == "json":
        return json.dumps(flat, ensure_ascii=False, indent=2) + "\n"
    if format == "csv":
        lines = io.StringIO()
        writer = csv.DictWriter(lines, fieldnames=list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return lines.getvalue()
    heading = ["metric", "A", "B", "n", "mean of A", "mean of B", "A − B", "p (bootstrap)", "p (randomisation)"]
    body = [
        [
            metric,
            a,
            b,
            str(found.n),
            *(
                f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"
                for estimate in (found.a, found.b, found.difference)
            ),
            f"{found.bootstrap_p:.4f}",
            f"{found.randomization.p:.4f}" + (" (exact)" if found.randomization.exact else ""),
        ]
        for metric, a, b, found in comparisons
    ]
    note = f"Intervals: {confidence:.0%}, paired bootstrap over texts. Both tests are two-sided."
    return "\n".join([*align(heading, body, {3}, markdown=format == "markdown"), "", note]) + "\n"

"""Tables of agreement as text, Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

from movers.agreement.columns import COEFFICIENT_TITLES
from movers.agreement.levels import FEW_SYSTEMS, Estimate
from movers.agreement.systems import SystemTest
from movers.agreement.table import AgreementRow
from movers.errors import InputError
from movers.inputs import check_choice
from movers.io import align_table, csv_row

Format = Literal["text", "markdown", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

_SKIPPED = {
    "no_references": "texts without references",
    "no_human_score": "texts without a human score",
    "no_metric_score": "texts without a metric score",
    "constant_documents": "documents with constant scores",
}


def render(rows: Sequence[AgreementRow], format: Format = "text") -> str:
    """A table of :func:`movers.agreement.agreement_table` as one string, ending in a newline.

    ``text`` and ``markdown`` are for reading: coefficients with intervals, which metrics each one is better than, and
    notes on what was skipped and tested. ``csv`` and ``json`` contain all fields of all rows.

    Examples
    --------
    >>> from movers.agreement import agreement_table
    >>> rows = agreement_table({"wms": [1, 2, 3, 5]}, {"overall": [1, 2, 4, 3]}, n_resamples=20)
    >>> print(render(rows, "markdown").splitlines()[0])
    | metric | human | n | Pearson | Spearman | Kendall τ-b | Kendall τ-c | better than |
    >>> json.loads(render(rows, "json"))[0]["metric"]
    'wms'
    """
    check_format(format)
    if not rows:
        raise InputError("agreement: rows: expected at least one row, but got none")
    if format == "json" or format == "csv":
        return all_fields([row.as_dict() for row in rows], format)
    columns = {
        "metric": [row.metric for row in rows],
        "human": [row.human + (" (lower is better)" if row.lower_is_better else "") for row in rows],
        "group": [row.group for row in rows],
        "n": [str(row.n) for row in rows],
        **{
            title: [_with_interval(row.coefficients[name]) for row in rows]
            for name, title in COEFFICIENT_TITLES.items()
        },
        "pairs ranked right": [_ranked(row) for row in rows],
        "better than": [", ".join(row.better_than) or "–" for row in rows],
    }
    if all(row.group == "all" for row in rows):
        del columns["group"]
    if not any(row.ranked_pairs for row in rows):
        del columns["pairs ranked right"]
    return plain_table(columns, _notes(rows), format)


def _with_interval(found: Estimate) -> str:
    if math.isnan(found.value):
        return "undefined"
    bounds = "" if math.isnan(found.low) else f" [{short(found.low)}, {short(found.high)}]"
    return short(found.value) + bounds


def check_format(format: Format) -> None:
    check_choice("agreement", "format", format, FORMATS)


def plain_table(
    columns: Mapping[str, Sequence[str]], notes: Sequence[str], format: Format, numbers: Collection[str] = ("n",)
) -> str:
    """A readable table with notes below; columns of numbers are right-aligned."""
    markdown = format == "markdown"
    right = {place for place, name in enumerate(columns) if name in numbers}
    lines = align_table(list(columns), list(zip(*columns.values(), strict=True)), right, markdown=markdown)
    below = ["", ("\n\n" if markdown else "\n").join(notes)] if notes else []
    return "\n".join([*lines, *below]) + "\n"


def all_fields(rows: Sequence[Mapping[str, object]], format: Format) -> str:
    """All fields of all rows; in CSV, lists and mappings are JSON, undefined numbers empty, formulas escaped."""
    if format == "json":
        return json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    lines = [csv_row(rows[0])] if rows else []
    for row in rows:
        cells = (row[name] for name in rows[0])
        lines.append(csv_row(json.dumps(c, ensure_ascii=False) if isinstance(c, list | dict) else c for c in cells))
    return "".join(lines)


def _ranked(row: AgreementRow) -> str:
    return "undefined" if row.ranked_right is None else f"{row.ranked_right:.1%} of {row.ranked_pairs}"


def short(number: float) -> str:
    """Three decimals without the leading zero, as papers print coefficients.

    >>> short(0.2583), short(-0.05), short(1.0)
    ('.258', '-.050', '1.000')
    """
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 0.9995 else f"{number:.3f}"


def _notes(rows: Sequence[AgreementRow]) -> list[str]:
    """Notes: level, intervals, tests, and everything that was skipped."""
    first = rows[0]
    units = {"segment": "texts", "summary": "documents", "system": "systems"}[first.level]
    level = f"{first.level} (n counts systems)" if first.level == "system" else first.level
    notes = [
        f"Level: {level}. Intervals: {first.confidence:.0%}, bootstrap over {units} "
        f"({first.n_resamples} resamples, seed {first.seed})."
    ]
    fewest = min(row.units for row in rows)
    if first.level == "system" and fewest < FEW_SYSTEMS:
        notes.append(f"Warning: coefficients between {fewest} systems (fewer than {FEW_SYSTEMS}) are very uncertain.")
    if any(row.permutation_p for row in rows):
        notes.append(
            f"Better than: higher {COEFFICIENT_TITLES[first.tested]}, p < {first.alpha:g} in the paired permutation "
            "test and, where it applies, Williams' test (two-sided, not corrected for the number of comparisons)."
        )
    if first.skipped_reference_texts:
        notes.append(f"Skipped everywhere (references that were judged themselves: {first.skipped_reference_texts}).")
    skipped: dict[str, list[str]] = {}
    for row in rows:
        counts = [f"{what}: {row.skipped[reason]}" for reason, what in _SKIPPED.items() if row.skipped[reason]]
        if counts and row.group != "mean":
            where = row.human if row.group == "all" else f"{row.human}, {row.group}"
            skipped.setdefault(f"{where} ({', '.join(counts)})", []).append(row.metric)
    notes += [f"Skipped for {', '.join(metrics)} on {what}." for what, metrics in skipped.items()]
    notes += [
        f"Left out of the mean for {row.metric} on {row.human} (groups without a coefficient: {row.skipped['groups']})."
        for row in rows
        if row.skipped["groups"]
    ]
    return notes


def render_comparison(tests: Sequence[SystemTest], format: Format = "text", confidence: float = 0.95) -> str:
    """The result of :func:`movers.agreement.compare_texts` as one string.

    A system is named as better only if both tests find a significant difference.

    Examples
    --------
    >>> from movers.agreement import compare_systems
    >>> outcome = compare_systems([0.9, 0.8, 0.7], [0.5, 0.6, 0.65], n_resamples=50)
    >>> print(render_comparison([SystemTest("wms", "a.txt", "b.txt", "wms|…", outcome)], "markdown").splitlines()[0])
    | metric | A | B | n | mean of A | mean of B | A − B | p (bootstrap) | p (randomization) | better |
    """
    check_format(format)
    if not tests:
        raise InputError("agreement: tests: expected at least one comparison, but got none")
    outcomes = [test.outcome for test in tests]
    if format == "json" or format == "csv":
        return all_fields([_flat(test) for test in tests], format)
    columns = {
        "metric": [test.metric for test in tests],
        "A": [test.a for test in tests],
        "B": [test.b for test in tests],
        "n": [str(found.n) for found in outcomes],
        "mean of A": [_mean(found.a) for found in outcomes],
        "mean of B": [_mean(found.b) for found in outcomes],
        "A − B": [_mean(found.difference) for found in outcomes],
        "p (bootstrap)": [f"{found.bootstrap_p:.4f}" for found in outcomes],
        "p (randomization)": [
            f"{found.randomization.p:.4f}" + (" (exact)" if found.randomization.exact else "") for found in outcomes
        ],
        "better": [test.better or "–" for test in tests],
    }
    notes = [
        f"Intervals: {confidence:.0%}, paired bootstrap over texts. Better: the system with the higher mean, if "
        f"p < {tests[0].alpha:g} in both tests (two-sided); otherwise –.",
        *(f"{name}: {signature}" for name, signature in {test.metric: test.signature for test in tests}.items()),
    ]
    return plain_table(columns, notes, format)


def _mean(found: Estimate) -> str:
    return f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"


def _flat(test: SystemTest) -> dict[str, object]:
    found = test.outcome
    return {
        "metric": test.metric,
        "a": test.a,
        "b": test.b,
        "better": test.better,
        "n": found.n,
        **found.a.as_dict("mean_a"),
        **found.b.as_dict("mean_b"),
        **found.difference.as_dict("difference"),
        "bootstrap_p": found.bootstrap_p,
        "randomization_p": found.randomization.p,
        "randomization_exact": found.randomization.exact,
        "alpha": test.alpha,
        "signature": test.signature,
    }

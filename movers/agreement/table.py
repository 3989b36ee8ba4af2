"""Tables of correlations and of comparisons of systems, as rows and as text, Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from movers.agreement.coefficients import (
    COEFFICIENT_TITLES,
    COEFFICIENTS,
    Coefficient,
    Floats,
    Level,
    Outcome,
    Paired,
    Scores,
    check_labels,
    check_resampling,
    few_systems,
    labels_for,
    measure,
    rows_by_label,
    stack,
    with_interval,
)
from movers.agreement.significance import pairwise_test, probability
from movers.errors import InputError
from movers.inputs import check_choice
from movers.io import align_table, csv_row

Format = Literal["text", "markdown", "csv", "json"]
Agreements = dict[str, tuple[Outcome, dict[Coefficient, Floats]]]  # by metric: row and replicates
Tests = dict[tuple[str, str], tuple[Outcome, Floats]]  # by pair of metrics: row and differences after exchange


def agreement_table(
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    lower_is_better: Sequence[str] = (),
    tested: Coefficient = "pearson",
    alpha: float = 0.05,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Outcome]:
    """Correlate every metric with every human score, and test all pairs of metrics: one flat dict for each.

    ``metrics`` and ``humans`` map names to scores of the same n texts, None if missing. Texts of one of the ``groups``
    (a language pair, say) are correlated separately; a row with the group ``"mean"`` follows, whose interval and
    permutation test treat groups as strata. Human scores in ``lower_is_better`` (edits, errors) are negated, so that a
    positive coefficient always means agreement. The tests compare the coefficient ``tested``; ``better_than`` names
    metrics whose coefficient is lower, where every test that applies gives p < alpha (two-sided, not corrected for the
    number of comparisons), ``williams_p`` and ``permutation_p`` are the p-values against each other metric. Other
    arguments and values as in :func:`correlate`; None is undefined. Rows are ordered by human score, group, metric.

    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row["metric"], row["n"], round(row["spearman"], 2)) for row in rows]
    [('good', 6, 0.94), ('poor', 5, 0.6)]
    """
    check_choice("agreement", "tested", tested, COEFFICIENTS)
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    if not metrics or not humans:
        raise InputError("agreement: metrics and humans: expected at least one list of scores each, but got none")
    for name in lower_is_better:
        check_choice("agreement", "lower_is_better", name, humans)
    columns = stack(
        {f"metrics[{name!r}]": column for name, column in metrics.items()}
        | {f"humans[{name!r}]": column for name, column in humans.items()}
    )
    n = columns.shape[1]
    if groups is not None:
        check_labels("groups", groups, n)
    level_labels = labels_for(level, documents, systems, n)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_by_label([str(group) for group in groups])
    settings = {"tested": tested, "alpha": alpha, "confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    table: list[Outcome] = []
    for human_name, human in zip(humans, columns[len(metrics) :], strict=True):
        sign = -1 if human_name in lower_is_better else 1
        blocks: dict[str, tuple[Agreements, Tests]] = {}
        for group, rows in rows_of_group.items():
            # Groups are independent strata with their own random streams, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            labels = None if level_labels is None else [level_labels[row] for row in rows]
            people, scores = sign * human[rows], dict(zip(metrics, columns[:, rows], strict=False))
            agreements: Agreements = {}
            for name, column in scores.items():
                pair, rng = np.stack([people, column]), np.random.default_rng(stream)
                agreements[name] = measure(pair, level, labels, n_resamples, confidence, rng)
            tests: Tests = {}
            for a, b in combinations(metrics, 2):
                paired = Paired.at(np.stack([people, scores[a], scores[b]]), level, labels)
                tests[a, b] = pairwise_test(paired, tested, n_resamples, np.random.default_rng([*stream, 1]))
            blocks[group] = agreements, tests
        if len(blocks) > 1:
            blocks["mean"] = _means(list(blocks.values()), confidence, seed)
        table += [
            {"metric": name, "human": human_name, "level": level, "group": group, "skipped_groups": 0, **row}
            | {"lower_is_better": sign < 0, **_outcomes(name, tests, alpha), **settings}
            for group, (agreements, tests) in blocks.items()
            for name, (row, _) in agreements.items()
        ]
    if warning := few_systems(level, min(row["units"] for row in table)):
        warnings.warn(f"agreement: {warning}", stacklevel=2)
    return table


def _outcomes(metric: str, tests: Tests, alpha: float) -> Outcome:
    """The tests of one metric against each other: p-values, and which metrics it is better than."""
    better_than: list[str] = []
    p_values: dict[str, dict[str, float]] = {"williams_p": {}, "permutation_p": {}}
    for (a, b), (test, _) in tests.items():
        if metric not in (a, b) or test["permutation_p"] is None:
            continue
        other = b if metric == a else a
        values = {kind: test[kind] for kind in p_values if test[kind] is not None}
        for kind, p in values.items():
            p_values[kind][other] = p
        higher = test["difference"] > 0 if metric == a else test["difference"] < 0
        if higher and max(values.values()) < alpha:
            better_than.append(other)
    return {"better_than": better_than, **p_values}


# --- means over groups -----------------------------------------------------------------------------------------------


def _means(blocks: Sequence[tuple[Agreements, Tests]], confidence: float, seed: int) -> tuple[Agreements, Tests]:
    """Means over groups of every metric's coefficients and of every pair's difference, tested by averaged exchanges."""
    agreements: Agreements = {}
    for metric in blocks[0][0]:
        parts = [of_group[metric] for of_group, _ in blocks]
        agreements[metric] = _mean_over_groups(parts, confidence, np.random.default_rng(seed)), {}
    tests: Tests = {}
    for pair in blocks[0][1]:
        defined = [of_group[pair] for _, of_group in blocks if of_group[pair][0]["difference"] is not None]
        if defined:
            difference = float(np.mean([row["difference"] for row, _ in defined]))
            p = probability(np.mean([exchanged for _, exchanged in defined], axis=0), difference)
            tests[pair] = {"difference": difference, "williams_p": None, "permutation_p": p}, np.empty(0)
    return agreements, tests


def _mean_over_groups(
    parts: Sequence[tuple[Outcome, dict[Coefficient, Floats]]], confidence: float, rng: np.random.Generator
) -> Outcome:
    """Mean coefficient over the groups that have one; groups are strata of the bootstrap."""
    defined = [(row, replicates) for row, replicates in parts if all(row[name] is not None for name in COEFFICIENTS)]
    mean = {key: sum(row[key] for row, _ in parts) for key in ("n", "units", "texts")}
    for name in COEFFICIENTS:
        centred = [_centred(replicates[name], row[name], rng) for row, replicates in defined]
        replicates_of_mean = np.mean(centred, axis=0).clip(-1, 1) if defined else np.empty(0)
        value = float(np.mean([row[name] for row, _ in defined])) if defined else math.nan
        mean |= with_interval(name, value, replicates_of_mean, confidence)
    mean |= {key: sum(row[key] for row, _ in parts) for key in parts[0][0] if key.startswith("skipped_")}
    return mean | {"skipped_groups": len(parts) - len(defined)}


def _centred(replicates: Floats, value: float, rng: np.random.Generator) -> Floats:
    """Replicates centred on a group's coefficient, undefined ones replaced by random others.

    Resampling a small group is biased: drawing a text twice creates a tie, a constant column has no coefficient. The
    mean over many groups has little variance, so that without this its interval could exclude its own estimate.
    """
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(len(replicates), value)
    filled = np.where(np.isnan(replicates), rng.choice(defined, len(replicates)), replicates)
    return filled - defined.mean() + value


# --- rendering -------------------------------------------------------------------------------------------------------


def render(rows: Sequence[Outcome], format: Format = "text") -> str:
    """A table of :func:`agreement_table` as one string: for reading, or (``csv``, ``json``) with all fields.

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
    return _render(rows, lines, _notes(rows), format)


def render_comparison(rows: Sequence[Outcome], format: Format = "text") -> str:
    """The result of :func:`movers.agreement.compare_texts` as one string, as :func:`render`."""
    means = {"mean of A": "mean_a", "mean of B": "mean_b", "A − B": "difference"}
    lines = [
        {"metric": row["metric"], "A": row["a"], "B": row["b"], "n": str(row["n"])}
        | {title: _shown(row, name, "{:.4g}".format) for title, name in means.items()}
        | {"p (bootstrap)": f"{row['bootstrap_p']:.4f}"}
        | {"p (randomization)": f"{row['randomization_p']:.4f}" + " (exact)" * row["randomization_exact"]}
        | {"better": row["better"] or "–"}
        for row in rows
    ]
    notes = [
        f"Intervals: {rows[0]['confidence']:.0%}, paired bootstrap over texts. Better: the system with the higher "
        f"mean, if p < {rows[0]['alpha']:g} in both tests (two-sided); otherwise –.",
        *(f"{metric}: {signature}" for metric, signature in {row["metric"]: row["signature"] for row in rows}.items()),
    ]
    return _render(rows, lines, notes, format)


def _render(rows: Sequence[Outcome], lines: Sequence[Mapping[str, str]], notes: Sequence[str], format: Format) -> str:
    """All fields of ``rows`` as JSON or CSV (nested values as JSON), or ``lines`` for people with notes below."""
    if format == "json":
        return json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if format == "csv":
        cells = [
            [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell for cell in row.values()]
            for row in rows
        ]
        return "".join(map(csv_row, [rows[0], *cells]))
    heading, body = list(lines[0]), [list(line.values()) for line in lines]
    table = align_table(heading, body, {heading.index("n")}, markdown=format == "markdown")
    return "\n".join(table) + "\n\n" + ("\n\n" if format == "markdown" else "\n").join(notes) + "\n"


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
    if warning := few_systems(level, min(row["units"] for row in rows)):
        notes.append(f"Warning: {warning}.")
    if any(row["permutation_p"] for row in rows):
        notes.append(
            f"Better than: higher {COEFFICIENT_TITLES[first['tested']]}, p < {first['alpha']:g} in the paired "
            "permutation test and, where it applies, Williams' test (two-sided, uncorrected)."
        )
    if count := first.get("skipped_reference_texts"):
        notes.append(f"Skipped everywhere (references that were judged themselves: {count}).")
    skipped: dict[str, list[str]] = {}
    for row in rows:
        counts = [f"{what}: {row[reason]}" for reason, what in _SKIPPED.items() if row[reason]]
        if counts:
            where = row["human"] if row["group"] == "all" else f"{row['human']}, {row['group']}"
            skipped.setdefault(f"{where} ({', '.join(counts)})", []).append(row["metric"])
    return notes + [f"Skipped for {', '.join(metrics)} on {what}." for what, metrics in skipped.items()]

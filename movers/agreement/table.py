"""Tables of correlations and of comparisons of systems, as rows and as text, Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from movers.agreement.coefficients import (
    COEFFICIENT_TITLES,
    COEFFICIENTS,
    FEW_SYSTEMS,
    Agreement,
    Coefficient,
    Estimate,
    Floats,
    Level,
    Paired,
    Scores,
    check_labels,
    check_resampling,
    labels_for,
    measure,
    percentile_interval,
    rows_by_label,
    stack,
    warn_of_few_systems,
)
from movers.agreement.scoring import SystemTest
from movers.agreement.significance import PairwiseTest, pairwise_test, probability
from movers.errors import InputError
from movers.inputs import check_choice
from movers.io import align_table, csv_row

Pairwise = dict[tuple[str, str], PairwiseTest]


@dataclass(frozen=True, kw_only=True)
class AgreementRow(Agreement):
    """One line of :func:`agreement_table`: an :class:`Agreement`, what it belongs to, and how it was tested.

    ``group`` is ``"all"`` for ungrouped texts and ``"mean"`` for the mean over groups. ``better_than`` names metrics
    whose coefficient is lower, where every test that applies gives p < alpha (two-sided, not corrected for the number
    of comparisons); ``williams_p`` and ``permutation_p`` are the p-values against each other metric.
    ``skipped_reference_texts`` counts references that were judged themselves.
    """

    metric: str
    human: str
    group: str
    better_than: list[str]
    williams_p: dict[str, float]
    permutation_p: dict[str, float]
    lower_is_better: bool
    tested: Coefficient
    alpha: float
    confidence: float
    n_resamples: int
    seed: int
    signature: str | None = None
    skipped_reference_texts: int = 0

    def as_dict(self) -> dict[str, object]:
        """A flat dict of JSON values: ``pearson``, ``pearson_low``, ``skipped_groups`` …"""
        flat = {name: getattr(self, name) for name in ("metric", "human", "level", "group", "n", "units", "texts")}
        for name, estimate in self.coefficients.items():
            flat |= estimate.as_dict(name)
        flat |= {name: getattr(self, name) for name in ("tested", "alpha", "confidence", "n_resamples", "seed")}
        flat |= {name: value for name, value in vars(self).items() if name not in flat}
        del flat["coefficients"], flat["replicates"], flat["skipped"]
        return flat | {f"skipped_{reason}": count for reason, count in self.skipped.items()}


def agreement_table(
    metrics: Mapping[str, Scores],
    humans: Mapping[str, Scores],
    *,
    level: Level = "segment",
    documents: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    has_references: Sequence[bool] | None = None,
    lower_is_better: Sequence[str] = (),
    tested: Coefficient = "pearson",
    alpha: float = 0.05,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    signatures: Mapping[str, str] | None = None,
) -> list[AgreementRow]:
    """Correlate every metric with every human score, and test all pairs of metrics.

    ``metrics`` and ``humans`` map names to scores of the same n texts, None if missing. Texts of one of the ``groups``
    (a language pair, say) are correlated separately; a row ``"mean"`` follows, whose interval and permutation test
    treat groups as strata. ``has_references`` is used only to report why a metric has no score. Human scores in
    ``lower_is_better`` (edits, errors) are negated, so that a positive coefficient always means agreement. The tests
    compare the coefficient ``tested``. Other arguments as in :func:`correlate`. Rows are ordered by human score,
    group, metric.

    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row.metric, row.n, round(row.coefficients["spearman"].value, 2)) for row in rows]
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
    for name, labels in (("groups", groups), ("has_references", has_references)):
        if labels is not None:
            check_labels(name, labels, n)
    level_labels = labels_for(level, documents, systems, n)
    referenced = np.ones(n, dtype=bool) if has_references is None else np.asarray(has_references, dtype=bool)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_by_label([str(group) for group in groups])

    shared: dict[str, Any] = {
        "tested": tested,
        "alpha": alpha,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "seed": seed,
    }
    table: list[AgreementRow] = []
    for human_name, human in zip(humans, columns[len(metrics) :], strict=True):
        sign = -1 if human_name in lower_is_better else 1
        blocks: dict[str, tuple[dict[str, Agreement], Pairwise]] = {}
        for group, rows in rows_of_group.items():
            # Groups are independent strata with their own random streams, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            labels = None if level_labels is None else [level_labels[row] for row in rows]
            scores = {name: columns[place, rows] for place, name in enumerate(metrics)}
            agreements = {
                name: measure(
                    np.stack([sign * human[rows], column]),
                    level,
                    labels,
                    has_references=referenced[rows],
                    n_resamples=n_resamples,
                    confidence=confidence,
                    rng=np.random.default_rng(stream),
                )
                for name, column in scores.items()
            }
            tests: Pairwise = {}
            for a, b in combinations(metrics, 2):
                paired = Paired.at(np.stack([sign * human[rows], scores[a], scores[b]]), level, labels)
                tests[a, b] = pairwise_test(paired, tested, n_resamples, np.random.default_rng([*stream, 1]))
            blocks[group] = agreements, tests
        if len(blocks) > 1:
            blocks["mean"] = _means(list(blocks.values()), confidence, seed)
        table += [
            AgreementRow(
                **vars(agreement),
                **_outcomes(name, tests, alpha),
                **shared,
                metric=name,
                human=human_name,
                group=group,
                lower_is_better=sign < 0,
                signature=(signatures or {}).get(name),
            )
            for group, (agreements, tests) in blocks.items()
            for name, agreement in agreements.items()
        ]
    warn_of_few_systems(level, min(row.units for row in table if row.group != "mean"))
    return table


def _outcomes(metric: str, tests: Pairwise, alpha: float) -> dict[str, Any]:
    """The tests of one metric against each other: p-values, and which metrics it is better than."""
    better_than: list[str] = []
    williams_p: dict[str, float] = {}
    permutation_p: dict[str, float] = {}
    for (a, b), test in tests.items():
        if metric not in (a, b) or test.permutation is None:
            continue
        other = b if metric == a else a
        permutation_p[other] = test.permutation.p
        if test.williams is not None:
            williams_p[other] = test.williams.p
        higher = test.difference > 0 if metric == a else test.difference < 0
        if higher and max(permutation_p[other], williams_p.get(other, 0.0)) < alpha:
            better_than.append(other)
    return {"better_than": better_than, "williams_p": williams_p, "permutation_p": permutation_p}


def _means(
    blocks: Sequence[tuple[dict[str, Agreement], Pairwise]], confidence: float, seed: int
) -> tuple[dict[str, Agreement], Pairwise]:
    """Means over groups of every metric's agreement and of every pair's difference, tested by averaged exchanges."""
    agreements = {
        name: _mean_over_groups([part[name] for part, _ in blocks], confidence, np.random.default_rng(seed))
        for name in blocks[0][0]
    }
    tests: Pairwise = {}
    for pair in blocks[0][1]:
        parts = [part[pair] for _, part in blocks if part[pair].permutation is not None]
        if parts:
            difference = float(np.mean([part.difference for part in parts]))
            permutation = probability(np.mean([part.exchanged for part in parts], axis=0), difference, exact=False)
            n, units = sum(part.n for part in parts), sum(part.units for part in parts)
            tests[pair] = PairwiseTest(n, units, difference, None, permutation)
    return agreements, tests


def _mean_over_groups(parts: Sequence[Agreement], confidence: float, rng: np.random.Generator) -> Agreement:
    """Mean coefficient over the groups that have one; groups are strata of the bootstrap.

    In a small group, resampling is biased: drawing a text twice creates a tie, and resamples with a constant column
    have no coefficient. The replicates are then not centred on the group's coefficient, and because the mean over many
    groups has little variance, its interval could exclude its own estimate. So each group's replicates are centred on
    the group's coefficient, and undefined ones are replaced by random other replicates of the group.
    """
    defined = [part for part in parts if not any(math.isnan(one.value) for one in part.coefficients.values())]
    used = defined or parts  # if no group has a coefficient, the mean is undefined
    replicates: dict[Coefficient, Floats] = {}
    estimates: dict[Coefficient, Estimate] = {}
    for name in parts[0].coefficients:
        centred = [_centred(part.replicates[name], part.coefficients[name].value, rng) for part in used]
        replicates[name] = np.mean(centred, axis=0).clip(-1, 1)
        mean = float(np.mean([part.coefficients[name].value for part in used]))
        estimates[name] = Estimate(mean, *percentile_interval(replicates[name], confidence))
    pairs = sum(part.ranked_pairs for part in parts)
    right = sum((part.ranked_right or 0.0) * part.ranked_pairs for part in parts)
    return Agreement(
        level=parts[0].level,
        n=sum(part.n for part in parts),
        units=sum(part.units for part in parts),
        texts=sum(part.texts for part in parts),
        coefficients=estimates,
        skipped={reason: sum(part.skipped[reason] for part in parts) for reason in parts[0].skipped}
        | {"groups": len(parts) - len(defined)},
        ranked_right=right / pairs if pairs else None,
        ranked_pairs=pairs,
        replicates=replicates,
    )


def _centred(replicates: Floats, value: float, rng: np.random.Generator) -> Floats:
    defined = replicates[~np.isnan(replicates)]
    if not len(defined):
        return np.full(len(replicates), value)
    filled = np.where(np.isnan(replicates), rng.choice(defined, len(replicates)), replicates)
    return filled - defined.mean() + value


# --- rendering -------------------------------------------------------------------------------------------------------

Format = Literal["text", "markdown", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SKIPPED = {
    "no_references": "texts without references",
    "no_human_score": "texts without a human score",
    "no_metric_score": "texts without a metric score",
    "constant_documents": "documents with constant scores",
}


def render(rows: Sequence[AgreementRow], format: Format = "text") -> str:
    """A table of :func:`agreement_table` as one string, ending in a newline.

    ``text`` and ``markdown`` are for reading: coefficients with intervals, which metrics each one is better than, and
    notes on what was skipped and tested. ``csv`` and ``json`` contain all fields of all rows.

    >>> rows = agreement_table({"wms": [1, 2, 3, 5]}, {"overall": [1, 2, 4, 3]}, n_resamples=20)
    >>> print(render(rows, "markdown").splitlines()[0])
    | metric | human | n | Pearson | Spearman | Kendall τ-b | Kendall τ-c | better than |
    """
    check_choice("agreement", "format", format, FORMATS)
    if not rows:
        raise InputError("agreement: rows: expected at least one row, but got none")
    if format in ("json", "csv"):
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
        "pairs ranked right": [
            "undefined" if row.ranked_right is None else f"{row.ranked_right:.1%} of {row.ranked_pairs}" for row in rows
        ],
        "better than": [", ".join(row.better_than) or "–" for row in rows],
    }
    if all(row.group == "all" for row in rows):
        del columns["group"]
    if not any(row.ranked_pairs for row in rows):
        del columns["pairs ranked right"]
    return plain_table(columns, _notes(rows), format)


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


def short(number: float) -> str:
    """Three decimals without the leading zero, as papers print coefficients.

    >>> short(0.2583), short(-0.05), short(1.0)
    ('.258', '-.050', '1.000')
    """
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 0.9995 else f"{number:.3f}"


def _with_interval(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    interval = "" if math.isnan(estimate.low) else f" [{short(estimate.low)}, {short(estimate.high)}]"
    return short(estimate.value) + interval


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
    """
    check_choice("agreement", "format", format, FORMATS)
    if not tests:
        raise InputError("agreement: tests: expected at least one comparison, but got none")
    if format in ("json", "csv"):
        return all_fields([test.as_dict() for test in tests], format)
    outcomes = [test.outcome for test in tests]
    columns = {
        "metric": [test.metric for test in tests],
        "A": [test.a for test in tests],
        "B": [test.b for test in tests],
        "n": [str(outcome.n) for outcome in outcomes],
        "mean of A": [_mean(outcome.a) for outcome in outcomes],
        "mean of B": [_mean(outcome.b) for outcome in outcomes],
        "A − B": [_mean(outcome.difference) for outcome in outcomes],
        "p (bootstrap)": [f"{outcome.bootstrap_p:.4f}" for outcome in outcomes],
        "p (randomization)": [
            f"{outcome.randomization.p:.4f}" + (" (exact)" if outcome.randomization.exact else "")
            for outcome in outcomes
        ],
        "better": [test.better or "–" for test in tests],
    }
    notes = [
        f"Intervals: {confidence:.0%}, paired bootstrap over texts. Better: the system with the higher mean, if "
        f"p < {tests[0].alpha:g} in both tests (two-sided); otherwise –.",
        *(f"{name}: {signature}" for name, signature in {test.metric: test.signature for test in tests}.items()),
    ]
    return plain_table(columns, notes, format)


def _mean(estimate: Estimate) -> str:
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"

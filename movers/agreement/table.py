"""Tables of correlations: every metric with every human score, in every group, and pairwise tests of the metrics."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Level,
    Scores,
    check_labels,
    check_resampling,
    labels_for,
    rows_of_each,
    stack,
    take,
)
from movers.agreement.levels import Agreement, Paired, mean_over_groups, measure, warn_of_few_systems
from movers.agreement.significance import PairwiseTest, pairwise_test, probability
from movers.errors import InputError
from movers.inputs import check_choice

Pairwise = dict[tuple[str, str], PairwiseTest]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a table: the tested coefficient, and parameters of tests and bootstrap."""

    tested: Coefficient
    alpha: float
    confidence: float
    n_resamples: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class AgreementRow(Agreement, Settings):
    """One line of :func:`agreement_table`: an :class:`Agreement`, and what it belongs to.

    Attributes
    ----------
    metric, human, group : str
        The metric, the human score and the group. ``group`` is ``"all"`` for ungrouped texts and ``"mean"`` for
        the mean over groups.
    better_than : list of str
        Metrics of the same block whose coefficient is lower, where every test that applies gives p < alpha.
        P-values are those of single comparisons, not corrected for their number.
    williams_p, permutation_p : dict
        P-value (two-sided) against each other metric of the block.
    skipped_reference_texts : int
        Judged references, which were skipped.
    """

    metric: str
    human: str
    group: str
    better_than: list[str]
    williams_p: dict[str, float]
    permutation_p: dict[str, float]
    lower_is_better: bool
    signature: str | None = None
    skipped_reference_texts: int = 0

    def as_dict(self) -> dict[str, object]:
        """A flat dict of JSON values: ``pearson``, ``pearson_low``, ``skipped_groups`` …"""
        flat = {name: getattr(self, name) for name in ("metric", "human", "level", "group", "n", "units", "texts")}
        for name, found in self.coefficients.items():
            flat |= found.as_dict(name)
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

    Parameters
    ----------
    metrics, humans : mapping of str to sequence of float or None, each of shape (n,)
        Scores of the same n texts by metrics and humans; None if missing.
    level, documents, systems, n_resamples, confidence, seed
        As in :func:`correlate`.
    groups : sequence of str, shape (n,), optional
        Texts of one group (a language pair, say) are correlated separately; a row ``"mean"`` follows, whose interval
        and permutation test treat groups as strata.
    has_references : sequence of bool, shape (n,), optional
        Used only to report why a metric has no score.
    lower_is_better : sequence of str
        Human scores where lower is better (edits, errors): they are negated, so that a positive coefficient always
        means agreement.
    tested, alpha
        The coefficient that the tests compare, and the p-value below which ``better_than`` names a metric.

    Returns
    -------
    list of AgreementRow
        Ordered by human score, group, metric, each as given.

    Examples
    --------
    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row.metric, row.n, round(row.coefficients["spearman"].value, 2)) for row in rows]
    [('good', 6, 0.94), ('poor', 5, 0.6)]
    """
    check_choice("agreement", "level", level, LEVELS)
    check_choice("agreement", "tested", tested, COEFFICIENTS)
    check_resampling(n_resamples, seed, confidence=confidence, alpha=alpha)
    if not metrics or not humans:
        raise InputError("agreement: metrics and humans: expected at least one list of scores each, but got none")
    for name in lower_is_better:
        check_choice("agreement", "lower_is_better", name, humans)
    scores = {f"metrics[{name!r}]": column for name, column in metrics.items()}
    people = {f"humans[{name!r}]": column for name, column in humans.items()}
    columns = stack(scores | people)
    n = columns.shape[1]
    for name, labels in (("groups", groups), ("has_references", has_references)):
        if labels is not None:
            check_labels(name, labels, n)
    level_labels = labels_for(level, documents, systems, n)
    referenced = np.ones(n, dtype=bool) if has_references is None else np.asarray(has_references, dtype=bool)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_of_each([str(group) for group in groups])

    settings = Settings(tested=tested, alpha=alpha, confidence=confidence, n_resamples=n_resamples, seed=seed)
    table: list[AgreementRow] = []
    for human_name, human in zip(humans, columns[len(metrics) :], strict=True):
        negated = human_name in lower_is_better
        measured: list[dict[str, Agreement]] = []
        tests: list[Pairwise] = []
        for group, rows in rows_of_group.items():
            # Groups are independent strata with their own random streams, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            labels = None if level_labels is None else take(level_labels, rows)
            own = {name: columns[place, rows] for place, name in enumerate(metrics)}
            people_here = human[rows] * (-1 if negated else 1)
            measured.append(
                {
                    name: measure(
                        np.stack([people_here, column]),
                        level,
                        labels,
                        referenced=referenced[rows],
                        n_resamples=n_resamples,
                        confidence=confidence,
                        rng=np.random.default_rng(stream),
                    )
                    for name, column in own.items()
                }
            )
            tests.append(
                {
                    (a, b): pairwise_test(
                        Paired.at(np.stack([people_here, own[a], own[b]]), level, labels),
                        tested,
                        n_resamples,
                        np.random.default_rng([*stream, 1]),
                    )
                    for a, b in combinations(own, 2)
                }
            )
            table += _block(human_name, negated, group, measured[-1], tests[-1], settings)
        if len(rows_of_group) > 1:
            means = {
                name: mean_over_groups([part[name] for part in measured], confidence, np.random.default_rng(seed))
                for name in metrics
            }
            table += _block(human_name, negated, "mean", means, _mean_tests(tests), settings)
    warn_of_few_systems(level, min(row.units for row in table if row.group != "mean"))
    return [replace(row, signature=(signatures or {}).get(row.metric)) for row in table]


def _mean_tests(tests: Sequence[Pairwise]) -> Pairwise:
    """Tests of mean differences over groups, by averaging the exchanges of the groups."""
    means: Pairwise = {}
    for pair in tests[0]:
        parts = [part[pair] for part in tests if part[pair].permutation is not None]
        if parts:
            difference = float(np.mean([part.difference for part in parts]))
            exchanged = np.mean([part.exchanged for part in parts], axis=0)
            n, units = sum(part.n for part in parts), sum(part.units for part in parts)
            permutation = probability(exchanged, difference, exact=False)
            means[pair] = PairwiseTest(n, units, difference, None, permutation)
    return means


def _block(
    human: str, negated: bool, group: str, measured: Mapping[str, Agreement], tests: Pairwise, settings: Settings
) -> list[AgreementRow]:
    """The rows of all metrics on one human score in one group."""
    rows = {
        name: AgreementRow(
            **vars(found),
            **vars(settings),
            metric=name,
            human=human,
            group=group,
            better_than=[],
            williams_p={},
            permutation_p={},
            lower_is_better=negated,
        )
        for name, found in measured.items()
    }
    for (a, b), test in tests.items():
        if test.permutation is None:
            continue
        better, worse = (a, b) if test.difference > 0 else (b, a)
        p_values = [test.permutation.p]
        for one, other in ((a, b), (b, a)):
            rows[one].permutation_p[other] = test.permutation.p
            if test.williams is not None:
                rows[one].williams_p[other] = test.williams.p
                p_values.append(test.williams.p)
        if test.difference and max(p_values) < settings.alpha:
            rows[better].better_than.append(worse)
    return list(rows.values())

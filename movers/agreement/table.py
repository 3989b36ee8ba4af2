"""Every metric against every kind of human score, in every group, and every two metrics against each other."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from movers.agreement.bootstrap import percentile_interval
from movers.agreement.coefficients import coefficient_of, is_constant, share_of_pairs_ranked_right
from movers.agreement.columns import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Floats,
    Level,
    Score,
    as_floats,
    check_choice,
    check_lengths,
    check_resampling,
    keep_labels,
    labels_for,
    rows_of_each,
)
from movers.agreement.levels import estimates, pair_up
from movers.agreement.significance import paired_differences, probability, williams_of


@dataclass(frozen=True)
class AgreementRow:
    """One line of :func:`agreement_table`.

    Attributes
    ----------
    metric, human, level, group
        What was correlated with which human score, where. ``group`` is ``"all"`` for ungrouped texts and ``"mean"`` for
        the mean over groups.
    n, units : int
        Texts used; and texts, documents or systems that the coefficients range over.
    pearson, pearson_low, pearson_high, …
        Coefficients with the bounds of their bootstrap intervals; ``kendall`` is τ-b. None where undefined.
    ranked_right, ranked_pairs : float, int
        At summary level: the share of pairs of a document's texts that the metric ranks as people do, and how many
        pairs people rank; None at other levels.
    tested : str
        The coefficient that the tests below compare.
    better_than : list of str
        Metrics of the same block whose coefficient is lower, where every test that applies gives p < alpha.
        Probabilities are those of single comparisons, not corrected for their number.
    williams_p, permutation_p : dict
        Probability (two-sided) against each other metric of the block.
    skipped_… : int
        Texts left out, each counted once: without references and so without a score, without a human score, without a
        metric score for another reason; documents left out because one side is constant; groups (in the mean) in which
        the coefficient is undefined; references that were judged as if they were candidates.
    """

    metric: str
    human: str
    level: str
    group: str
    n: int
    units: int
    pearson: float | None
    pearson_low: float | None
    pearson_high: float | None
    spearman: float | None
    spearman_low: float | None
    spearman_high: float | None
    kendall: float | None
    kendall_low: float | None
    kendall_high: float | None
    kendall_c: float | None
    kendall_c_low: float | None
    kendall_c_high: float | None
    tested: str
    better_than: list[str]
    williams_p: dict[str, float]
    permutation_p: dict[str, float]
    skipped_no_references: int
    skipped_no_human_score: int
    skipped_no_metric_score: int
    skipped_constant_documents: int
    skipped_groups: int
    lower_is_better: bool
    alpha: float
    confidence: float
    n_resamples: int
    seed: int
    signature: str | None = None
    skipped_reference_texts: int = 0
    ranked_right: float | None = None
    ranked_pairs: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class _Settings:
    """What the whole table shares."""

    level: Level
    tested: Coefficient
    alpha: float
    n_resamples: int
    confidence: float
    seed: int
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class _Cell:
    """One metric in one group: numbers that a row, or a mean over groups, is made of."""

    n: int
    units: int
    values: dict[Coefficient, float]
    replicates: dict[Coefficient, Floats]
    skipped: dict[str, int]
    ranked_right: float | None
    ranked_pairs: int


@dataclass(frozen=True)
class _Duel:
    """Two metrics in one group: the tests, and the exchanges from which a mean over groups is tested."""

    observed: float
    exchanged: Floats
    williams: float | None
    permutation: float


def agreement_table(
    metrics: Mapping[str, Sequence[Score]],
    humans: Mapping[str, Sequence[Score]],
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
    """Correlate every metric with every kind of human score, and test every two metrics against each other.

    Parameters
    ----------
    metrics : mapping of str to sequence of float or None, each of shape (n,)
        The metrics' scores of the same n texts; None where a metric has none.
    humans : mapping of str to sequence of float or None, each of shape (n,)
        People's scores of the same texts.
    level, documents, systems, n_resamples, confidence, seed
        As in :func:`correlate`.
    groups : sequence of str, shape (n,), optional
        Texts of one group (a language pair, say) are correlated apart; a row ``"mean"`` follows, whose interval and
        permutation test treat groups as strata.
    has_references : sequence of bool, shape (n,), optional
        Only names the reason why a metric has no score.
    lower_is_better : sequence of str
        Human scores of which a low one means a good text (edits needed, errors): they are negated, so that a positive
        coefficient always means agreement.
    tested : str
        The coefficient that the tests compare.
    alpha : float
        Probability below which ``better_than`` names a metric.

    Returns
    -------
    list of AgreementRow
        Ordered by human score, group, metric, each as given.

    Examples
    --------
    >>> rows = agreement_table(
    ...     {"good": [1, 2, 3, 4, 5, 6], "poor": [3, 1, 2, None, 6, 4]}, {"overall": [1, 2, 4, 3, 5, 6]}, n_resamples=50
    ... )
    >>> [(row.metric, row.n, round(row.spearman, 2)) for row in rows]
    [('good', 6, 0.94), ('poor', 5, 0.6)]
    """
    check_choice("level", level, LEVELS)
    check_choice("tested", tested, COEFFICIENTS)
    check_resampling(n_resamples, confidence)
    if not 0 < alpha < 1:
        raise ValueError(f"`alpha` must lie between 0 and 1, both excluded; got {alpha}.")
    if not metrics or not humans:
        raise ValueError("`metrics` and `humans` must each hold at least one list of scores.")
    for name in lower_is_better:
        check_choice("lower_is_better", name, list(humans))
    check_lengths(**{f"metrics[{name!r}]": column for name, column in metrics.items()})
    n = len(next(iter(metrics.values())))
    for name, column in (("groups", groups), ("has_references", has_references)):
        if column is not None and len(column) != n:
            raise ValueError(f"`{name}` must hold one value for each text: expected {n}, got {len(column)}.")
    labels = labels_for(level, documents, systems, n)
    score_columns = {name: as_floats(column, f"metrics[{name!r}]") for name, column in metrics.items()}
    referenced = np.ones(n, dtype=bool) if has_references is None else np.asarray(has_references, dtype=bool)
    rows_of_group = {"all": np.arange(n)} if groups is None else rows_of_each([str(group) for group in groups])

    settings = _Settings(level, tested, alpha, n_resamples, confidence, seed, signatures or {})
    table: list[AgreementRow] = []
    for human_name, human_scores in humans.items():
        if len(human_scores) != n:
            raise ValueError(
                f"`humans[{human_name!r}]` must hold one score for each text: expected {n}, got {len(human_scores)}."
            )
        negated = human_name in lower_is_better
        human = as_floats(human_scores, f"humans[{human_name!r}]") * (-1 if negated else 1)
        cells_of_group: dict[str, dict[str, _Cell]] = {}
        duels_of_group: dict[str, dict[tuple[str, str], _Duel]] = {}
        for group, rows in rows_of_group.items():
            # Groups are independent strata: each draws by its own stream, whatever other groups there are.
            stream = [seed, zlib.crc32(group.encode("utf-8"))]
            group_labels = None if labels is None else [labels[row] for row in rows]
            columns = {name: column[rows] for name, column in score_columns.items()}
            cells = cells_of_group[group] = {
                name: _cell(column, human[rows], referenced[rows], group_labels, settings, stream)
                for name, column in columns.items()
            }
            duels = duels_of_group[group] = {
                (a, b): duel
                for a, b in combinations(columns, 2)
                if (duel := _duel(columns[a], columns[b], human[rows], group_labels, settings, stream))
            }
            table += _rows_of_block(human_name, negated, group, cells, duels, settings)
        if len(rows_of_group) > 1:
            cells, duels = _mean_over_groups(cells_of_group, duels_of_group, settings)
            table += _rows_of_block(human_name, negated, "mean", cells, duels, settings)
    return table


def _cell(
    scores: Floats,
    human: Floats,
    referenced: NDArray[np.bool_],
    labels: Sequence[str] | None,
    settings: _Settings,
    stream: Sequence[int],
) -> _Cell:
    no_score, no_human = np.isnan(scores), np.isnan(human)
    complete = ~(no_score | no_human)
    paired = pair_up(np.stack([human, scores])[:, complete], settings.level, keep_labels(labels, complete))
    values, replicates = estimates(paired, 1, COEFFICIENTS, settings.n_resamples, np.random.default_rng(stream))
    unreferenced = no_score & ~referenced
    right, pairs = (None, 0) if labels is None or settings.level != "summary" else _ranking(scores, human, labels)
    return _Cell(
        n=paired.texts,
        units=paired.units,
        values=values,
        replicates=replicates,
        skipped={
            "no_references": int(unreferenced.sum()),
            "no_human_score": int((no_human & ~unreferenced).sum()),
            "no_metric_score": int((no_score & ~unreferenced & ~no_human).sum()),
            "constant_documents": paired.constant_documents,
            "groups": 0,
        },
        ranked_right=right,
        ranked_pairs=pairs,
    )


def _ranking(scores: Floats, human: Floats, documents: Sequence[str]) -> tuple[float | None, int]:
    share, pairs = share_of_pairs_ranked_right(scores.tolist(), human.tolist(), documents)
    return (share if pairs else None), pairs


def _duel(
    a: Floats,
    b: Floats,
    human: Floats,
    labels: Sequence[str] | None,
    settings: _Settings,
    stream: Sequence[int],
) -> _Duel | None:
    """None where a coefficient is undefined on the texts that both metrics scored."""
    columns = np.stack([human, a, b])
    complete = np.logical_not(np.isnan(columns).any(axis=0))
    paired = pair_up(columns[:, complete], settings.level, keep_labels(labels, complete))
    tested = settings.tested
    if not paired.units or (paired.rows_of_unit is None and any(is_constant(column) for column in paired.columns)):
        return None
    value_a, value_b = (
        float(paired.per_document(metric, [tested])[tested].mean())
        if paired.rows_of_unit is not None
        else coefficient_of(paired.columns[metric], paired.columns[0], tested)
        for metric in (1, 2)
    )
    rng = np.random.default_rng([*stream, 1])
    exchanged, exact = paired_differences(paired, 1, 2, tested, settings.n_resamples, rng, all_if_few=True)
    permutation = probability(exchanged, value_a - value_b, exact).p
    if exact:
        # A mean over groups needs as many exchanges of every group.
        exchanged, _ = paired_differences(paired, 1, 2, tested, settings.n_resamples, rng, all_if_few=False)
    williams = williams_of(paired, 1, 2, tested)
    return _Duel(value_a - value_b, exchanged, None if williams is None else williams.p, permutation)


def _mean_over_groups(
    cells_of_group: Mapping[str, Mapping[str, _Cell]],
    duels_of_group: Mapping[str, Mapping[tuple[str, str], _Duel]],
    settings: _Settings,
) -> tuple[dict[str, _Cell], dict[tuple[str, str], _Duel]]:
    """The mean of coefficients over the groups that have one; replicates and exchanges are averaged alike."""
    cells: dict[str, _Cell] = {}
    names = list(next(iter(cells_of_group.values())))
    for name in names:
        every = [cells[name] for cells in cells_of_group.values()]
        defined = [cell for cell in every if not any(map(math.isnan, cell.values.values()))]
        cells[name] = _Cell(
            n=sum(cell.n for cell in every),
            units=sum(cell.units for cell in every),
            values={
                c: float(np.mean([cell.values[c] for cell in defined])) if defined else math.nan for c in COEFFICIENTS
            },
            replicates={
                c: np.mean([cell.replicates[c] for cell in defined], axis=0)
                if defined
                else np.full(settings.n_resamples, math.nan)
                for c in COEFFICIENTS
            },
            skipped={key: sum(cell.skipped[key] for cell in every) for key in every[0].skipped}
            | {"groups": len(every) - len(defined)},
            ranked_right=_pooled(every),
            ranked_pairs=sum(cell.ranked_pairs for cell in every),
        )
    duels: dict[tuple[str, str], _Duel] = {}
    for pair in combinations(names, 2):
        fought = [duels_in_group[pair] for duels_in_group in duels_of_group.values() if pair in duels_in_group]
        if fought:
            observed = float(np.mean([duel.observed for duel in fought]))
            exchanged = np.mean([duel.exchanged for duel in fought], axis=0)
            duels[pair] = _Duel(observed, exchanged, None, probability(exchanged, observed, exact=False).p)
    return cells, duels


def _pooled(cells: Sequence[_Cell]) -> float | None:
    """The share of pairs ranked right over all groups together."""
    pairs = sum(cell.ranked_pairs for cell in cells)
    return sum((cell.ranked_right or 0.0) * cell.ranked_pairs for cell in cells) / pairs if pairs else None


def _rows_of_block(
    human: str,
    lower_is_better: bool,
    group: str,
    cells: Mapping[str, _Cell],
    duels: Mapping[tuple[str, str], _Duel],
    settings: _Settings,
) -> list[AgreementRow]:
    rows = []
    for name, cell in cells.items():
        numbers: dict[str, Any] = {}
        for coefficient in COEFFICIENTS:
            low, high = percentile_interval(cell.replicates[coefficient], settings.confidence)
            for suffix, number in (("", cell.values[coefficient]), ("_low", low), ("_high", high)):
                numbers[coefficient + suffix] = None if math.isnan(number) else number
        williams_p: dict[str, float] = {}
        permutation_p: dict[str, float] = {}
        better_than: list[str] = []
        for (a, b), duel in duels.items():
            if name not in (a, b):
                continue
            other, lead = (b, duel.observed) if name == a else (a, -duel.observed)
            permutation_p[other] = duel.permutation
            if duel.williams is not None:
                williams_p[other] = duel.williams
            probabilities = [p for p in (duel.permutation, duel.williams) if p is not None]
            if lead > 0 and max(probabilities) < settings.alpha:
                better_than.append(other)
        rows.append(
            AgreementRow(
                metric=name,
                human=human,
                level=settings.level,
                group=group,
                n=cell.n,
                units=cell.units,
                **numbers,
                tested=settings.tested,
                better_than=better_than,
                williams_p=williams_p,
                permutation_p=permutation_p,
                skipped_no_references=cell.skipped["no_references"],
                skipped_no_human_score=cell.skipped["no_human_score"],
                skipped_no_metric_score=cell.skipped["no_metric_score"],
                skipped_constant_documents=cell.skipped["constant_documents"],
                skipped_groups=cell.skipped["groups"],
                lower_is_better=lower_is_better,
                alpha=settings.alpha,
                confidence=settings.confidence,
                n_resamples=settings.n_resamples,
                seed=settings.seed,
                signature=settings.signatures.get(name),
                ranked_right=cell.ranked_right,
                ranked_pairs=cell.ranked_pairs,
            )
        )
    return rows

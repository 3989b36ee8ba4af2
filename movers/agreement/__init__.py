"""Correlation with human judgements, with confidence intervals and significance tests.

All functions work on plain lists of numbers from any source. ``scores`` are a metric's scores of some texts, ``human``
are human scores of the same texts, in the same order. ``None`` (or NaN) marks a missing value; missing
values are skipped and counted.

There are three levels:

``segment``
    one coefficient over all texts;
``summary``
    one coefficient within each document (over the texts that different systems wrote for it), then the mean over
    documents. Documents in which either side is constant have no coefficient; they are skipped and counted;
``system``
    scores are averaged over each system's texts first, then one coefficient over systems.

The *unit* of a level is what a coefficient is computed or averaged over: texts, documents or systems. The bootstrap
resamples units, and the permutation test exchanges them.

References
----------
Williams, Regression Analysis, 1959 (the test of two dependent correlations, recommended by Steiger, 1980).
Graham and Baldwin, Testing for significance of increased correlation with human judgment, EMNLP 2014.
Koehn, Statistical significance tests for machine translation evaluation, EMNLP 2004 (paired bootstrap).
Riezler and Maxwell, On some pitfalls in automatic evaluation, 2005 (approximate randomization).
"""

from __future__ import annotations

from movers.agreement.correlation import (
    COEFFICIENTS,
    LEVELS,
    Agreement,
    Coefficient,
    Estimate,
    Level,
    correlate,
    correlation,
    correlation_matrix,
    percentile_interval,
    share_of_pairs_ranked_right,
)
from movers.agreement.scoring import SystemTest, compare_texts
from movers.agreement.significance import (
    PairwiseTest,
    Randomization,
    SystemComparison,
    Williams,
    compare_correlations,
    compare_systems,
    williams_test,
)
from movers.agreement.table import AgreementRow, agreement_table

__all__ = [
    "COEFFICIENTS",
    "LEVELS",
    "Agreement",
    "AgreementRow",
    "Coefficient",
    "Estimate",
    "Level",
    "PairwiseTest",
    "Randomization",
    "SystemComparison",
    "SystemTest",
    "Williams",
    "agreement_table",
    "compare_correlations",
    "compare_systems",
    "compare_texts",
    "correlate",
    "correlation",
    "correlation_matrix",
    "percentile_interval",
    "share_of_pairs_ranked_right",
    "williams_test",
]

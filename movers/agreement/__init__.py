"""Correlation with human judgements, with confidence intervals and significance tests.

There are three levels: ``segment`` correlates all texts; ``summary`` correlates within each document (over the texts
that different systems wrote for it) and averages over documents, except those in which either side is constant;
``system`` averages each system's scores first and correlates systems. The *unit* of a level is what the bootstrap
resamples and the permutation test exchanges: texts, documents or systems.

References
----------
Williams, Regression Analysis, 1959 (the test of two dependent correlations, recommended by Steiger, 1980).
Graham and Baldwin, Testing for significance of increased correlation with human judgment, EMNLP 2014.
Koehn, Statistical significance tests for machine translation evaluation, EMNLP 2004 (paired bootstrap).
Riezler and Maxwell, On some pitfalls in automatic evaluation, 2005 (approximate randomization).
Holm, A simple sequentially rejective multiple test procedure, 1979.
"""

from __future__ import annotations

from movers.agreement.coefficients import COEFFICIENTS, LEVELS, agreement_table, correlation, williams_test
from movers.agreement.scoring import compare_texts
from movers.agreement.systems import compare_systems, groups_of, holm

__all__ = ["COEFFICIENTS", "LEVELS", "agreement_table", "compare_systems", "compare_texts", "correlation", "groups_of",
           "holm", "williams_test"]  # fmt: skip

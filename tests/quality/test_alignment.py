"""The alignment of a summary with its document, computed again in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up import made_up_text

from movers.quality.alignment import align
from movers.quality.units import TextVectors


@pytest.mark.parametrize(("sentences", "of_summary"), [(6, 2), (2, 3), (1, 1), (9, 4)])
def test_every_part_is_what_its_definition_says(sentences: int, of_summary: int) -> None:
    document, summary = made_up_text(sentences, 3), made_up_text(of_summary, 4, tokens=7)
    found = align(document, summary)
    d, s = document.vectors.astype(float), summary.vectors.astype(float)
    assert found.support == pytest.approx([max(float(one @ other) for other in d) for one in s], abs=1e-6)
    assert found.coverage == pytest.approx([max(float(one @ other) for other in s) for one in d], abs=1e-6)
    best = [max(float(one @ other) for other in document.tokens.astype(float)) for one in summary.tokens.astype(float)]
    assert found.token_match == pytest.approx(best, abs=1e-6)
    center = d.sum(axis=0) / math.hypot(*d.sum(axis=0))
    central = [math.exp(5 * float(one @ center)) for one in d]
    early = [math.exp(-place / 5) for place in range(sentences)]
    weights = [(a / sum(central) + b / sum(early)) / 2 for a, b in zip(central, early, strict=True)]
    assert found.weights == pytest.approx(weights, abs=1e-6)


def test_a_join_is_known_if_the_document_has_it_in_one_sentence() -> None:
    vectors, tokens = np.eye(2, dtype=np.float32), np.ones((5, 2), np.float32)
    document = TextVectors(("a b c", "d e"), vectors, tokens, np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 4]))
    summary = TextVectors(("a b", "c d e"), vectors, tokens, np.array([0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 4]))
    # begin-a, a-b, b-end; begin-c, c-d, d-e, e-end
    assert align(document, summary).known_joins.tolist() == [True, True, False, False, False, True, True]

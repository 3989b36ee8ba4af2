"""Agreement with people on 2,085 summaries of CNN/DailyMail (Chaganty et al. 2018), the set of Clark et al. (2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import spearmanr

import movers


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("wms", 0.175), ("sms", 0.27), ("swms", 0.21)])
def test_scores_agree_with_people_as_in_the_paper(name: str, least: float, judged: Callable[[str], list[Any]]) -> None:
    rows = [
        row for row in judged("chaganty18_cnndm") if not row["is_reference"] and row["scores"]["overall"] is not None
    ]
    assert len(rows) == 2085
    result = getattr(movers, name)([row["candidate"] for row in rows], [row["references"] for row in rows])
    assert spearmanr(result["scores"], [row["scores"]["overall"] for row in rows]).statistic >= least

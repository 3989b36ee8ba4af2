"""Agreement with people on 2,085 summaries of CNN/DailyMail (Chaganty et al. 2018), the set of Clark et al. (2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import spearmanr

import movers

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def rows(judged: Callable[[str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    every = judged("chaganty18_cnndm")
    return [row for row in every if not row["is_reference"] and row["scores"]["overall"] is not None]


def test_the_set_is_the_papers(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 2085


@pytest.mark.parametrize(("name", "least"), [("wms", 0.175), ("sms", 0.27), ("swms", 0.21)])
def test_scores_agree_with_people_as_well_as_the_paper_says(
    name: str, least: float, rows: list[dict[str, Any]]
) -> None:
    result = getattr(movers, name)([row["candidate"] for row in rows], [row["references"] for row in rows])
    human = [row["scores"]["overall"] for row in rows]
    assert spearmanr(result["scores"], human).statistic >= least

"""Changed facts: a metric may not see them as it should, but only word order may be invisible, to static vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.registry import METRICS

ROWS: list[dict[str, str]] = [
    json.loads(line) for line in (Path(__file__).parent / "meaning.jsonl").read_text(encoding="utf-8").splitlines()
]
STATIC = {"wms", "sms", "swms"}


@pytest.mark.filterwarnings("ignore:.*n_unknown")
@pytest.mark.parametrize("name", METRICS)
def test_a_changed_fact_lowers_the_score(name: str) -> None:
    score: Any = getattr(movers, name)
    references = [row["reference"] for row in ROWS]
    changed, same = (score([row[key] for row in ROWS], references)["scores"] for key in ("changed", "reference"))
    invisible = {row["kind"] for row, a, b in zip(ROWS, changed, same, strict=True) if a > b - 1e-6}
    assert invisible == ({"role swap"} if name in STATIC else set())


def test_the_papers_definition_drops_the_words_that_differ() -> None:
    texts = ["No patients survived in 2012."], ["All the patients survived in 2021!"]
    assert movers.wms(*texts, preset="paper")["scores"] == [1.0] > movers.wms(*texts)["scores"]

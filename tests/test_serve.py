"""The pages: what they show of a pair, and that nothing is sent anywhere."""

from __future__ import annotations

import gradio
import pytest

import movers
from movers.registry import METRICS
from movers.serve import ALIGNMENT_COLUMNS, all_metrics_page, metric_page, score_pair


def test_scores_have_four_significant_digits() -> None:
    score = movers.wms(["cats"], ["parliaments"])["score"]
    shown = score_pair("wms", "cats", "parliaments").score
    assert float(shown) == pytest.approx(score, rel=1e-3)
    assert len(shown.split("e")[0].replace(".", "").lstrip("0")) == 4


def test_each_flow_is_a_row_and_the_last_row_their_total() -> None:
    rows = score_pair("wms", "Snow melts.", "Ice thaws.").alignment
    assert {len(row) for row in rows} == {len(ALIGNMENT_COLUMNS)}
    assert {row[0] for row in rows[:-1]} == {"snow", "melts"}
    assert rows[-1][2] == pytest.approx(sum(row[2] for row in rows[:-1]), rel=1e-2)
    assert rows[-1][4] == pytest.approx(sum(row[4] for row in rows[:-1]), rel=1e-2)


def test_nothing_is_matched_if_a_text_is_blank() -> None:
    result = score_pair("wms", "", "Ice thaws.")
    assert (result.score, result.alignment) == ("0", [])


def test_the_page_sends_no_usage_data() -> None:
    assert metric_page("wms").analytics_enabled is False
    assert all_metrics_page().analytics_enabled is False


def test_the_page_of_all_metrics_has_an_endpoint_for_each() -> None:
    endpoints = all_metrics_page().get_api_info()["named_endpoints"]
    assert sorted(endpoints) == sorted(f"/{name}" for name in METRICS)


def test_wrong_input_is_shown_as_a_message_and_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    score = next(event.fn for event in metric_page("wms").fns.values() if event.api_name == "wms")
    with pytest.raises(gradio.Error, match=r"wms: predictions\[0\]: expected valid Unicode"):
        score("\ud800", "Ice thaws.")
    monkeypatch.setattr("movers.serve.score_pair", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        score("Snow melts.", "Ice thaws.")

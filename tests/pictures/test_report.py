"""The report of a file: which rows it shows, and what it counts."""

from __future__ import annotations

from page import Page

import movers
from movers.pictures.explain import Explainer
from movers.pictures.report import report_of
from movers.registry import METRICS
from movers.weights import Corpus

WORDS = "snow ice rain wind storm cloud river lake sea hill stone sand tree leaf root seed bird fish horse wolf".split()
ROWS = [*((f"{word} melts today", ["ice melts today"]) for word in WORDS), ("", ["a"]), ("of the", ["snow"])]
EXPECTED = movers.wms([row[0] for row in ROWS], [row[1] for row in ROWS])["scores"]


def explainer(name: str = "wms", **options: object) -> Explainer:
    return Explainer.build(METRICS[name], options, Corpus(*zip(*ROWS, strict=True)))


def test_best_and_worst_rows_are_those_of_the_metric() -> None:
    report = report_of(explainer(), ROWS)
    ranked = sorted(range(len(ROWS)), key=lambda row: -EXPECTED[row])
    assert list(report.scores) == EXPECTED
    assert [EXPECTED[row] for row, _ in report.best] == [EXPECTED[row] for row in ranked[:10]]
    assert [EXPECTED[row] for row, _ in report.worst] == [EXPECTED[row] for row in ranked[::-1][:10]]
    for row, explanation in [*report.best, *report.worst]:
        assert explanation.prediction == ROWS[row][0]
        assert explanation.score == EXPECTED[row]


def test_rows_that_were_empty_or_unfiltered_are_listed() -> None:
    report = report_of(explainer(), ROWS)
    assert report.flagged == {"empty": [20], "unfiltered": [21], "truncated": [], "unknown": []}
    page = report.html()
    assert "1 of 22; rows 21</p>" in page
    assert len(Page(page).all("details", class_="row")) == 20


def test_few_rows_are_shown_once() -> None:
    report = report_of(explainer(), ROWS[:3])
    assert (len(report.best), len(report.worst)) == (3, 0)


def test_weights_come_from_the_whole_file_not_from_the_rows_shown() -> None:
    report = report_of(explainer(idf="corpus"), ROWS)
    whole = movers.wms([row[0] for row in ROWS], [row[1] for row in ROWS], idf="corpus")
    assert list(report.scores) == whole["scores"]
    assert report.signature == whole["signature"]
    assert all(explanation.score == whole["scores"][row] for row, explanation in report.best)


def test_markup_in_rows_comes_out_as_text() -> None:
    rows = [("<script>alert(1)</script> snow", ["<img src=x onerror=alert(1)> snow"])]
    page = Page(report_of(explainer(), rows).html())
    assert not any("alert" in text for _, text in page.all("script")) and not page.all("img")

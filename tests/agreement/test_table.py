"""The table of all metrics against all human scores, and how it is written."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from samples import judged_grid, related

from movers import agreement
from movers.agreement.table import render


def made_up() -> tuple[dict[str, list[float]], list[float], list[str]]:
    """A good metric, a poor one and its copy, human scores and two groups."""
    rng = np.random.default_rng(19)
    human = rng.normal(size=80)
    good, poor = (human + noise * rng.normal(size=80) for noise in (0.5, 4))
    metrics = {"good": good.tolist(), "poor": poor.tolist(), "copy": poor.tolist()}
    return metrics, human.tolist(), ["cs-en"] * 40 + ["de-en"] * 40


@pytest.fixture(scope="module")
def rows():
    metrics, human, groups = made_up()
    return agreement.agreement_table(metrics, {"da": human}, groups=groups, n_resamples=200)


def test_groups_are_correlated_separately_and_then_averaged(rows):
    by_name = {(row["group"], row["metric"]): row for row in rows}
    assert list(by_name) == [(group, name) for group in ("cs-en", "de-en", "mean") for name in ("good", "poor", "copy")]
    metrics, human, _ = made_up()
    for name in agreement.COEFFICIENTS:
        halves = slice(40), slice(40, 80)
        parts = [agreement.correlation(metrics["good"][half], human[half], name) for half in halves]
        assert by_name["mean", "good"][name] == pytest.approx(np.mean(parts))
    # The mean of two groups is known better than each of them.
    widths = [by_name[group, "poor"]["pearson_high"] - by_name[group, "poor"]["pearson_low"] for group, _ in by_name]
    assert widths[-1] < widths[0]


@pytest.mark.parametrize("binary", [False, True])
def test_the_interval_of_a_mean_over_tiny_groups_lies_around_it_and_covers_the_truth(binary):
    """Resamples of a few texts have ties, and of few judgements are often constant, so undefined."""
    rng = np.random.default_rng(4)
    human = rng.normal(size=(10, 15, 6))  # tables, groups, texts
    scores = human + (0.7 if binary else 0.2) * rng.normal(size=human.shape)
    human = (human > 0) * 1.0 if binary else human
    groups = np.repeat(np.arange(15), 6)
    tables = [
        agreement.agreement_table({"m": x.ravel()}, {"h": y.ravel()}, groups=groups, n_resamples=40)
        for x, y in zip(scores, human, strict=True)
    ]
    for name in agreement.COEFFICIENTS:
        truth = np.mean([row[name] for table in tables for row in table[:-1] if row[name] is not None])
        means = [table[-1] for table in tables]
        assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row in means)
        # Of ten intervals that cover the truth with probability .93, fewer than seven do in 1 run of 300.
        assert sum(row[f"{name}_low"] <= truth <= row[f"{name}_high"] for row in means) >= 7


def test_better_than_names_only_metrics_that_are_significantly_worse(rows):
    better = {(row["group"], row["metric"]): row["better_than"] for row in rows}
    assert better["cs-en", "good"] == better["mean", "good"] == ["poor", "copy"]
    assert better["mean", "poor"] == better["mean", "copy"] == []
    assert rows[-1]["permutation_p"]["poor"] == 1
    assert rows[-1]["williams_p"] == {}  # There is no Williams test for a mean over groups.
    assert set(rows[0]["williams_p"]) == {"poor", "copy"}


def test_a_human_score_of_which_less_is_better_is_negated():
    scores, human = related(30, 1.0, seed=22)
    humans = {"overall": human, "edits": [-value for value in human]}
    rows = agreement.agreement_table({"wms": scores}, humans, lower_is_better=["edits"], n_resamples=10)
    assert rows[0]["pearson"] == pytest.approx(rows[1]["pearson"])
    assert [row["lower_is_better"] for row in rows] == [False, True]
    assert "edits (lower is better)" in render(rows)


def test_a_group_without_a_coefficient_is_left_out_of_the_mean_and_counted():
    metrics, groups = {"wms": [1, 3, 2, 4, 1, 2, 3]}, ["x"] * 4 + ["y"] * 3
    rows = agreement.agreement_table(metrics, {"da": [1, 2, 3, 4, 5, 5, 5]}, groups=groups, n_resamples=20)
    assert [row["pearson"] for row in rows] == [pytest.approx(0.8), None, pytest.approx(0.8)]
    assert "undefined" in render(rows) and "groups without a coefficient: 1" in render(rows)


def test_the_text_table_names_what_was_skipped_and_how_it_was_tested():
    grid = judged_grid()
    metrics = {"wms": grid["scores"], "sms": grid["scores"][::-1]}
    rows = agreement.agreement_table(
        metrics, {"h": grid["human"]}, level="system", labels=grid["systems"], n_resamples=20
    )
    text = render(rows)
    assert text.splitlines()[2].split()[:3] == ["wms", "h", "5"]
    assert "on h (texts without a human score: 1, texts without a metric score" in text
    assert "Williams' test" in text and "seed 0" in text


def test_every_format_has_one_line_per_row(rows):
    cells = list(csv.DictReader(io.StringIO(render(rows, "csv"))))
    assert [float(line["pearson"]) for line in cells] == [row["pearson"] for row in rows]
    assert json.loads(cells[0]["better_than"]) == ["poor", "copy"]
    assert json.loads(render(rows, "json")) == rows
    markdown = [line for line in render(rows, "markdown").splitlines() if line.startswith("|")]
    assert len(markdown) == 2 + len(rows)
    assert len({line.count("|") for line in markdown}) == 1

"""The table of all metrics against all human scores, and how it is written."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from samples import judged_grid, related

from movers import agreement
from movers.agreement.table import render
from movers.errors import InputError


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
    assert [(row.group, row.metric) for row in rows] == [
        (group, metric) for group in ("cs-en", "de-en", "mean") for metric in ("good", "poor", "copy")
    ]
    by_name = {(row.group, row.metric): row for row in rows}
    metrics, human, _ = made_up()
    for coefficient in agreement.COEFFICIENTS:
        parts = [
            agreement.correlation(metrics["good"][half], human[half], coefficient)
            for half in (slice(40), slice(40, 80))
        ]
        assert by_name["mean", "good"].coefficients[coefficient].value == pytest.approx(np.mean(parts))
    # The mean of two groups is known better than each of them.
    estimates = {group: by_name[group, "poor"].coefficients["pearson"] for group in ("cs-en", "mean")}
    widths = {group: found.high - found.low for group, found in estimates.items()}
    assert widths["mean"] < widths["cs-en"]


@pytest.mark.parametrize("binary", [False, True])
def test_the_interval_of_a_mean_over_tiny_groups_lies_around_it_and_covers_the_truth(binary):
    """Resamples of a few texts have ties, which lower τ-c, and of few judgements are often constant, so undefined."""
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
        truth = np.nanmean([row.coefficients[name].value for table in tables for row in table[:-1]])
        means = [table[-1].coefficients[name] for table in tables]
        assert all(found.low <= found.value <= found.high for found in means)
        # Of ten intervals that cover the truth with probability .93, fewer than seven do in 1 run of 300.
        assert sum(found.low <= truth <= found.high for found in means) >= 7


def test_better_than_names_only_metrics_that_are_significantly_worse(rows):
    better = {(row.group, row.metric): row.better_than for row in rows}
    assert better["cs-en", "good"] == ["poor", "copy"]
    assert better["mean", "good"] == ["poor", "copy"]
    assert better["mean", "poor"] == better["mean", "copy"] == []
    copies = next(row for row in rows if row.metric == "copy" and row.group == "mean")
    assert copies.permutation_p["poor"] == 1
    assert copies.williams_p == {}  # There is no Williams test for a mean over groups.


def test_every_skipped_text_is_counted_once_with_its_reason():
    (row,) = agreement.agreement_table(
        {"wms": [0.1, None, 0.3, None, 0.5, 0.6, 0.8]},
        {"overall": [1, 2, None, None, 5, 7, 6]},
        has_references=[True, False, True, True, True, True, True],
        n_resamples=10,
    )
    assert row.n == 4
    assert [row.skipped[why] for why in ("no_references", "no_human_score", "no_metric_score")] == [1, 2, 0]


def test_a_human_score_of_which_less_is_better_is_negated():
    scores, human = related(30, 1.0, seed=22)
    humans = {"overall": human, "edits": [-value for value in human]}
    rows = agreement.agreement_table({"wms": scores}, humans, lower_is_better=["edits"], n_resamples=10)
    assert rows[0].coefficients["pearson"].value == pytest.approx(rows[1].coefficients["pearson"].value)
    assert [row.lower_is_better for row in rows] == [False, True]


def test_at_summary_level_the_table_counts_pairs_ranked_right():
    documents = ["a", "a", "b", "b", "c", "c"]
    metrics, humans = {"wms": [0.9, 0.1, 0.2, 0.8, 0.5, 0.4]}, {"fact": [1, 0, 1, 0, 1, 1]}
    (row,) = agreement.agreement_table(metrics, humans, level="summary", documents=documents, n_resamples=10)
    assert (row.ranked_right, row.ranked_pairs, row.skipped["constant_documents"]) == (0.5, 2, 1)
    assert "50.0% of 2" in render([row], "text")
    (row,) = agreement.agreement_table(metrics, humans, n_resamples=10)
    assert row.ranked_right is None and "ranked right" not in render([row], "text")


def test_a_group_without_a_coefficient_is_left_out_of_the_mean_and_counted():
    rows = agreement.agreement_table(
        {"wms": [1, 3, 2, 4, 1, 2, 3]}, {"da": [1, 2, 3, 4, 5, 5, 5]}, groups=["x"] * 4 + ["y"] * 3, n_resamples=20
    )
    values = [row.coefficients["pearson"].value for row in rows]
    assert (values[0], values[2]) == (pytest.approx(0.8), pytest.approx(0.8)) and math.isnan(values[1])
    assert rows[-1].skipped["groups"] == 1


def test_at_system_level_the_table_counts_systems_and_warns_of_few():
    grid = judged_grid()
    with pytest.warns(UserWarning, match="between 5 systems"):
        rows = agreement.agreement_table(
            {"wms": grid["scores"]}, {"h": grid["human"]}, level="system", systems=grid["systems"], n_resamples=20
        )
    (row,) = json.loads(render(rows, "json"))
    assert (row["n"], row["units"], row["texts"]) == (5, 5, 28)
    text = render(rows, "text")
    assert text.splitlines()[2].split()[:3] == ["wms", "h", "5"]
    assert "Warning: coefficients between 5 systems (fewer than 10) are very uncertain." in text


# --- rendering -------------------------------------------------------------------------------------------------------


def test_json_rows_hold_plain_values_and_null_for_what_is_undefined():
    rows = agreement.agreement_table({"wms": [1, 1, 1, 1], "sms": [1, 2, 4, 3]}, {"overall": [1, 2, 3, 4]})
    constant, varied = json.loads(render(rows, "json"))
    assert constant["pearson"] is None and varied["pearson"] == pytest.approx(0.8)
    assert list(varied)[:6] == ["metric", "human", "level", "group", "n", "units"]
    assert {"spearman_low", "kendall", "kendall_c_high", "better_than", "williams_p", "skipped_groups"} <= set(varied)


def test_the_text_table_names_what_was_skipped_and_how_it_was_tested():
    rows = agreement.agreement_table(
        {"wms": [0.1, None, 0.3, 0.5, 0.4], "sms": [0.2, 0.1, 0.3, 0.3, 0.4]}, {"overall": [1, 2, 3, 4, None]}
    )
    text = render(rows, "text")
    assert "Skipped for wms on overall (texts without a human score: 1, texts without a metric score: 1)." in text
    assert "Williams' test" in text and "seed 0" in text


def test_csv_and_markdown_have_one_line_per_row(rows):
    cells = list(csv.DictReader(io.StringIO(render(rows, "csv"))))
    assert [float(line["pearson"]) for line in cells] == [row.coefficients["pearson"].value for row in rows]
    assert json.loads(cells[0]["better_than"]) == ["poor", "copy"]
    markdown = [line for line in render(rows, "markdown").splitlines() if line.startswith("|")]
    assert len(markdown) == 2 + len(rows)
    assert len({line.count("|") for line in markdown}) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1, 2]}), r"humans\['h'\]: expected as many values as"),
        (lambda: agreement.agreement_table({}, {"h": [1]}), "metrics and humans: expected at least one list of scores"),
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1]}, lower_is_better=["x"]), "expected one of 'h'"),
        (lambda: agreement.agreement_table({"a": [1]}, {"h": [1]}, groups=["x", "y"]), "groups: expected one value"),
        (
            lambda: agreement.agreement_table({"a": [1]}, {"h": [1]}, alpha=5),
            "alpha: expected a number between",
        ),
        (lambda: render([], "text"), "rows: expected at least one row, but got none"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((InputError, ValueError), match=f"^agreement: .*{message}"):
        call()

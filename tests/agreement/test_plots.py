"""The pictures: what is drawn, from the figure's own contents."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from tiny import ROOT

from movers.agreement import agreement_table
from movers.errors import InputError

pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plots`")

from movers.agreement import plots  # noqa: E402


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    human = rng.normal(size=120)
    metrics = {
        "good": (human + 0.3 * rng.normal(size=120)).tolist(),
        "poor": (human + 3 * rng.normal(size=120)).tolist(),
    }
    return metrics, human.tolist(), [f"system {number % 6}" for number in range(120)]


def test_bars_reach_the_coefficients_and_lines_the_intervals(scored):
    metrics, human, systems = scored
    rows = agreement_table(metrics, {"overall": human}, n_resamples=100)
    figure = plots.plot_correlation_bars(rows, coefficient="kendall")
    (axis,) = figure.axes
    assert [bar.get_height() for bar in axis.patches] == [
        pytest.approx(row.coefficients["kendall"].value) for row in rows
    ]
    kendall = [row.coefficients["kendall"] for row in rows]
    drawn = [segment for lines in axis.collections for segment in lines.get_segments()]
    assert [tuple(end[1] for end in segment) for segment in drawn] == [
        (pytest.approx(found.low), pytest.approx(found.high)) for found in kendall
    ]


def test_an_undefined_coefficient_leaves_a_gap(scored):
    metrics, human, _ = scored
    rows = agreement_table({"flat": [1.0] * 120, **metrics}, {"overall": human}, n_resamples=20)
    assert len(plots.plot_correlation_bars(rows).axes[0].patches) == 2


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_good_and_bad_texts_are_the_outer_quarters_of_peoples_scores_and_labels_say_so(scored, lower_is_better):
    metrics, human, _ = scored
    figure = plots.plot_score_distributions(metrics, human, human_name="fluency", lower_is_better=lower_is_better)
    assert [axis.get_title() for axis in figure.axes] == ["good", "poor"]
    order = np.argsort(human)
    lowest, highest = order[:30], order[-30:]
    bounds = [f"≤ {np.quantile(human, 0.25):.3g}", f"≥ {np.quantile(human, 0.75):.3g}"]
    bad, good = (1, 0) if lower_is_better else (0, 1)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == [f"bad: {bounds[bad]}\nn = 30", f"good: {bounds[good]}\nn = 30"]
    assert figure.get_supxlabel() == "texts by fluency: worst (bad) and best (good) 25%"
    points = [sorted(part.get_offsets()[:, 1]) for part in figure.axes[0].collections if len(part.get_offsets()) == 30]
    scores = np.array(metrics["good"])
    assert points[bad] == pytest.approx(sorted(scores[lowest]))
    assert points[good] == pytest.approx(sorted(scores[highest]))


def test_the_heat_map_shows_every_pair_once_and_people_first(scored):
    metrics, human, _ = scored
    axis = plots.plot_metric_correlations(metrics, human, human_name="overall").axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["overall", "good", "poor"]
    shown = [text.get_text() for text in axis.texts]
    corner = np.corrcoef([human, *metrics.values()])
    assert shown == [f"{corner[row, column]:.2f}" for row in range(3) for column in range(row, 3)]


def test_systems_stand_at_their_mean_scores_numbered_by_people(scored):
    metrics, human, systems = scored
    figure = plots.plot_system_ranking(metrics, human, systems)
    axis = figure.axes[0]
    means = sorted(
        ((np.mean(human[number::6]), np.mean(metrics["good"][number::6]), f"system {number}") for number in range(6)),
        reverse=True,
    )
    drawn = sorted((tuple(points.get_offsets()[0]) for points in axis.collections), reverse=True)
    assert drawn == [(pytest.approx(x), pytest.approx(y)) for x, y, _ in means]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"{place}  {name}" for place, (_, _, name) in enumerate(means, start=1)]


def test_all_pictures_are_written_as_files(scored, tmp_path):
    metrics, human, systems = scored
    rows = agreement_table(metrics, {"over all": human}, n_resamples=20)
    paths = plots.save_plots(tmp_path / "new" / "folder", rows, metrics, {"over all": human}, systems=systems)
    assert [path.name for path in paths] == [
        "correlation.png",
        "distribution_over_all.png",
        "metrics_over_all.png",
        "systems_over_all.png",
    ]
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in paths)


def test_missing_scores_do_not_stop_a_picture(scored, tmp_path):
    metrics, human, systems = scored
    gaps = {name: [None if number % 7 == 0 else score for number, score in enumerate(s)] for name, s in metrics.items()}
    rows = agreement_table(gaps, {"overall": [None, *human[1:]]}, n_resamples=20)
    assert len(plots.save_plots(tmp_path, rows, gaps, {"overall": [None, *human[1:]]}, systems=systems)) == 4


def test_where_less_is_better_the_system_with_the_lowest_score_is_number_one(scored):
    metrics, human, systems = scored
    figure = plots.plot_system_ranking(metrics, human, systems, lower_is_better=True)
    best = min(range(6), key=lambda number: np.mean(human[number::6]))
    assert figure.legends[0].get_texts()[0].get_text() == f"1  system {best}"
    assert "lower is better" in figure.get_supxlabel()


def test_more_than_half_of_the_texts_cannot_be_bad(scored):
    metrics, human, _ = scored
    with pytest.raises(InputError, match="share: expected a number above 0 and at most 0.5, but got 0.8"):
        plots.plot_score_distributions(metrics, human, share=0.8)


def test_the_committed_pictures_show_the_scores_of_the_committed_tables():
    """The correlations of Zhao's Fig. 3 are those of our Table 1."""
    folder = ROOT / "benchmarks" / "agreement"
    scores = json.loads((folder / "cells" / "figures.json").read_text(encoding="utf-8"))
    for name, row in (("SentBLEU", "sentence-bleu"), ("chrF++", "chrf"), ("WordMover", "moverscore-idf")):
        cell = json.loads((folder / "cells" / "zhao-table-1" / f"{row}.json").read_text(encoding="utf-8"))
        for pair in ("de-en", "zh-en"):
            found = stats.pearsonr(scores[pair][name], scores[pair]["DA"]).statistic
            assert found == pytest.approx(cell["columns"][pair]["value"], abs=2e-3)
    names = {path.name for path in (folder / "figures").glob("*.png")}
    assert names == {"zhao-figure-2-de-en.png", "zhao-figure-3-de-en.png", "zhao-figure-3-zh-en.png"}

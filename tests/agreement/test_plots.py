"""The pictures: what is drawn, from the figure's own contents."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plots`")

from movers.agreement import plots  # noqa: E402

RNG = np.random.default_rng(0)
HUMAN = RNG.normal(size=120)
METRICS = {"good": (HUMAN + 0.3 * RNG.normal(size=120)).tolist(), "poor": (HUMAN + 3 * RNG.normal(size=120)).tolist()}


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_good_and_bad_texts_are_the_outer_quarters_of_peoples_scores_and_labels_say_so(lower_is_better):
    figure = plots.plot_score_distributions(METRICS, HUMAN, human_name="fluency", lower_is_better=lower_is_better)
    assert [axis.get_title() for axis in figure.axes] == ["good", "poor"]
    order = np.argsort(HUMAN)
    bounds = [f"≤ {np.quantile(HUMAN, 0.25):.3g}", f"≥ {np.quantile(HUMAN, 0.75):.3g}"]
    bad, good = (1, 0) if lower_is_better else (0, 1)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == [f"bad: {bounds[bad]}\nn = 30", f"good: {bounds[good]}\nn = 30"]
    points = [sorted(part.get_offsets()[:, 1]) for part in figure.axes[0].collections if len(part.get_offsets()) == 30]
    scores = np.array(METRICS["good"])
    assert points[bad] == pytest.approx(sorted(scores[order[:30]]))
    assert points[good] == pytest.approx(sorted(scores[order[-30:]]))


def test_the_heat_map_shows_every_pair_once_and_people_first():
    axis = plots.plot_metric_correlations(METRICS, HUMAN, human_name="overall", coefficient="pearson").axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["overall", "good", "poor"]
    corner = np.corrcoef([HUMAN, *METRICS.values()])
    expected = [f"{corner[row, column]:.2f}" for row in range(3) for column in range(row, 3)]
    assert [text.get_text() for text in axis.texts] == expected


def test_pictures_are_written_as_files_also_where_scores_are_missing(tmp_path):
    gaps = {name: [None if row % 7 == 0 else score for row, score in enumerate(s)] for name, s in METRICS.items()}
    humans = {"over all": [None, *HUMAN[1:]]}
    paths = plots.save_plots(tmp_path / "new" / "folder", gaps, humans, coefficient="kendall", title="set")
    assert [path.name for path in paths] == ["distribution_over_all.png", "metrics_over_all.png"]
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in paths)

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

"""The pictures: what is drawn, from the figure's own contents."""

from __future__ import annotations

import numpy as np
import pytest

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
    return metrics, human.tolist()


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_good_and_bad_texts_are_the_outer_quarters_of_peoples_scores_and_labels_say_so(scored, lower_is_better):
    metrics, human = scored
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
    metrics, human = scored
    axis = plots.plot_metric_correlations(metrics, human, human_name="overall").axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["overall", "good", "poor"]
    shown = [text.get_text() for text in axis.texts]
    corner = np.corrcoef([human, *metrics.values()])
    assert shown == [f"{corner[row, column]:.2f}" for row in range(3) for column in range(row, 3)]


def test_pictures_are_written_as_files_also_where_scores_are_missing(scored, tmp_path):
    metrics, human = scored
    gaps = {name: [None if row % 7 == 0 else score for row, score in enumerate(s)] for name, s in metrics.items()}
    paths = plots.save_plots(tmp_path / "new" / "folder", gaps, {"over all": [None, *human[1:]]})
    assert [path.name for path in paths] == ["distribution_over_all.png", "metrics_over_all.png"]
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in paths)


def test_more_than_half_of_the_texts_cannot_be_bad(scored):
    metrics, human = scored
    with pytest.raises(InputError, match="share: expected a number above 0 and at most 0.5, but got 0.8"):
        plots.plot_score_distributions(metrics, human, share=0.8)

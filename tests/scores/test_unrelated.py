"""What scores mean: `temperature="auto"`, rescaling, presets, printed results."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import movers
from movers import InputError
from movers.scores.unrelated import unrelated_texts

TEXTS = (
    ["A man sells snow online.", "The bank paid $5,000 in 2019.", "Ferries are out of service."],
    ["A man is selling snow on the internet.", "The bank paid $9,000 in 2021.", "The orchestra rehearses."],
)
UNRELATED = tuple(zip(*combinations(unrelated_texts(), 2), strict=True))
CLARK = ["wms", "sms", "swms"]
every_metric = pytest.mark.parametrize("name", [*CLARK, "moverscore", "bertscore_hungarian", "bertscore_emd"])


def score(name: str, texts: Any = TEXTS, **options: Any) -> dict[str, Any]:
    return getattr(movers, name)(list(texts[0]), list(texts[1]), **options)


@pytest.mark.parametrize("name", CLARK)
def test_the_temperature_is_the_mean_distance_of_unrelated_texts(name: str) -> None:
    raw, auto = score(name, temperature=1), score(name)
    expected = float(np.mean(score(name, UNRELATED, temperature=1)["distances"]))
    assert auto["temperature"] == pytest.approx(expected, rel=1e-12)
    assert auto["distances"] == raw["distances"]
    assert raw["scores"] == pytest.approx([math.exp(-distance) for distance in raw["distances"]], rel=1e-12)
    assert auto["scores"] == pytest.approx([math.exp(-value / expected) for value in raw["distances"]], rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"model": "all-MiniLM-L6-v2"}, {"distance": "cosine"}])
def test_unrelated_texts_score_about_one_over_e_with_any_vectors(options: dict[str, Any]) -> None:
    pairs = tuple(zip(*combinations(unrelated_texts()[:12], 2), strict=True))
    assert 0.3 < score("wms", pairs, **options)["score"] < 0.45


def test_a_temperature_is_auto_or_above_zero(tmp_path: Path) -> None:
    for value in (0, -1, "hot", True, None, math.inf, math.nan):
        with pytest.raises(InputError, match="wms: temperature: expected 'auto' or a number above zero"):
            score("wms", temperature=value)
    (tmp_path / "v.txt").write_text("snow 1 2\nice 3 4\n")
    options: dict[str, Any] = {"model": str(tmp_path / "v.txt")}
    with pytest.raises(InputError, match="wms: temperature: 'auto' .* pass a number"):
        movers.wms(["snow"], ["ice"], **options)
    assert movers.wms(["snow"], ["ice"], temperature=2, **options)["temperature"] == 2


@every_metric
def test_rescaling_puts_unrelated_texts_at_zero_and_equal_texts_at_one(name: str) -> None:
    parts = [part for part in ("scores", "precision", "recall") if part in score(name)]
    unrelated, raw, rescaled = score(name, UNRELATED), score(name), score(name, rescale=True)
    for part in parts:
        base = float(np.mean(unrelated[part]))
        expected = [(value - base) / (1 - base) for value in raw[part]]
        assert rescaled[part] == pytest.approx(expected, abs=1e-6)
    equal = score(name, (TEXTS[1], TEXTS[1]), rescale=True)["scores"]
    assert equal == pytest.approx([1.0] * len(equal), abs=1e-6)
    assert "|baseline:unrelated|" in rescaled["signature"]


@every_metric
def test_a_baseline_file_is_for_the_metric_and_options_it_was_made_with(name: str, tmp_path: Path) -> None:
    from movers.baseline import compute_baseline, save_baseline

    record = compute_baseline(name, list(unrelated_texts()[:6]), pairs=12)
    save_baseline(record, tmp_path / "baseline.json")
    raw, new = score(name)["scores"], score(name, rescale=str(tmp_path / "baseline.json"))["scores"]
    base = float(str(record["score"]))
    assert new == pytest.approx([(value - base) / (1 - base) for value in raw], abs=1e-6)
    option: dict[str, Any] = {"normalize": True} if name in CLARK else {"window": 64}
    with pytest.raises(InputError, match=f"{name}: rescale: .* is for (norm|window)"):
        score(name, rescale=str(tmp_path / "baseline.json"), **option)


@every_metric
def test_a_preset_sets_defaults_and_explicit_options_win(name: str) -> None:
    assert len(score(name, preset="paper")["scores"]) == 3
    with pytest.raises(InputError, match=f"{name}: preset: expected one of 'paper', .*None, but got 'novel'"):
        score(name, preset="novel")
    if name == "wms":
        assert score(name, preset="paper") == score(name, temperature=1.0, keep_numbers=False, oov="zero")
        assert score(name, preset="paper", temperature=2.0)["temperature"] == 2.0


def test_a_result_prints_score_count_and_signature_and_is_a_dict_for_code() -> None:
    result = score("wms")
    assert repr(result) == f"{result['score']:.4g} (n=3) {result['signature']}"
    assert json.loads(json.dumps(result)) == dict(result)
    assert "n=2, empty 1" in repr(movers.wms(["", "snow"], ["ice", "snow"]))
    assert "&lt;" in type(result)(score=0.5, scores=[0.5], signature="<b>")._repr_html_()  # type: ignore[attr-defined]

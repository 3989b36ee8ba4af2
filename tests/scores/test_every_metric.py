"""What holds for all metrics with references: properties of the papers, edge cases, units of scores, rescaling."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import PREDICTIONS, REFERENCES

import movers
from movers import InputError
from movers.baseline import compute_baseline, save_baseline
from movers.scores.unrelated import unrelated_texts

CLARK = ["wms", "sms", "swms"]
every_metric = pytest.mark.parametrize("name", [*CLARK, "moverscore", "bertscore_hungarian", "bertscore_emd"])
TEXTS = PREDICTIONS[:12], REFERENCES[:12]
UNRELATED = tuple(zip(*combinations(unrelated_texts(), 2), strict=True))


def score(name: str, texts: Any = TEXTS, **options: Any) -> dict[str, Any]:
    return getattr(movers, name)(list(texts[0]), list(texts[1]), **options)


@every_metric
def test_a_text_is_like_itself_and_repetition_lowers_the_score(name: str) -> None:
    equal = score(name, (REFERENCES, REFERENCES))
    for part in [part for part in ("scores", "precision", "recall") if part in equal]:
        assert equal[part] == pytest.approx([1.0] * len(REFERENCES), abs=1e-5) and max(equal[part]) <= 1
    with_idf = score(name, (REFERENCES[:2], [REFERENCES[0], REFERENCES[3]]), idf="corpus")
    assert with_idf["scores"][0] == pytest.approx(1.0, abs=1e-5)
    reference = "The bakery opened early. A long queue waited outside. Everyone wanted fresh bread."
    summary = "The bakery opened early. Everyone wanted fresh bread."
    repeated = "The bakery opened early. The bakery opened early. The bakery opened early. Everyone wanted fresh bread."
    plain, padded = score(name, ([summary, repeated], [reference] * 2))["scores"]
    assert padded < plain < 1
    if name in CLARK:
        turned = "Everyone wanted fresh bread. The bakery opened early. A long queue waited outside."
        assert score(name, ([turned], [reference]))["scores"] == pytest.approx([1.0], abs=1e-6)


@every_metric
def test_several_references_are_combined_by_their_maximum_or_mean(name: str) -> None:
    single = score(name, ([PREDICTIONS[0]] * 3, REFERENCES[:3]))
    texts = [PREDICTIONS[0]], [REFERENCES[:3]]
    best = int(np.argmax(single["scores"]))
    for part in [part for part in ("scores", "distances", "precision", "recall") if part in single]:
        assert score(name, texts, multi_ref="max")[part] == pytest.approx([single[part][best]], abs=1e-6)
        assert score(name, texts, multi_ref="mean")[part] == pytest.approx([np.mean(single[part])], abs=1e-6)
    assert score(name, texts) == score(name, texts, multi_ref="mean" if name == "moverscore" else "max")


@every_metric
@pytest.mark.filterwarnings("ignore:.*does not know")
@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2", "vectors"])
def test_blank_texts_stop_words_and_unknown_words(name: str, model: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("red 1 0\ncat 0 1\nit 1 2\nis 1 3\n! 4 5\n3 2 1\n")
    options: dict[str, Any] = {"model": str(tmp_path / "v.txt") if model == "vectors" else model}
    if name in CLARK:
        options["temperature"] = 1
    cases = [  # prediction, reference, score, empty
        ("", "", 1.0, 1),
        ("  \n\t", "\u00a0", 1.0, 1),
        ("\u200b", "", 1.0, 1),
        ("", "red cat", 0.0, 1),
        ("red cat", " ", 0.0, 1),
        ("", "it is", 0.0, 1),
        ("it is", "it is", 1.0, 0),
        ("!", "!", 1.0, 0),
        ("3", "3", 1.0, 0),
        ("red cat", "red cat", 1.0, 0),
    ]
    if model == "vectors":
        cases += [("xyzzy", "plugh", 0.0, 1), ("xyzzy", "cat", 0.0, 1), ("xyzzy cat", "cat", 1.0, 0)]
    for prediction, reference, expected, empty in cases:
        result = score(name, ([prediction], [reference]), return_alignment=True, **options)
        assert result["score"] == pytest.approx(expected, abs=1e-5), (prediction, reference)
        unfiltered = prediction == "!" and name in (*CLARK, "moverscore")
        assert (result["n_empty"], result["n_unfiltered"], result["n_truncated"]) == (empty, unfiltered, 0)
        assert result["n_unknown"] == (prediction.startswith("xyzzy"))
        if empty:
            alignment = result["alignments"][0][0]
            assert (alignment["score"], alignment["distance"], alignment["flows"]) == (expected, None, [])


@every_metric
@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"model": "wordllama"}, {"rescale": True}])
def test_a_blank_prediction_never_scores_above_one_with_words(name: str, options: dict[str, Any]) -> None:
    texts = [*unrelated_texts()[:8], "3", "!", "zzz qqq", "¡ñ!", "the"]
    reference = "The magazine also hosts events for young cooks."
    blank, *others = score(name, (["", *texts], [reference] * (1 + len(texts))), **options)["scores"]
    assert min(others) >= blank and ("rescale" in options or blank == 0)


@every_metric
@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_alignments_hold_every_word_at_its_place_or_say_why_it_was_dropped(name: str, model: str) -> None:
    text = "Unbelievably, the storm (3) hit.\nIt isn't over: Zürich naps"
    result = score(name, ([text, ""], [REFERENCES[0], text]), model=model, return_alignment=True)
    for row, side in enumerate(["prediction", "reference"]):
        (alignment,) = result["alignments"][row]
        units, dropped = alignment[side], alignment["dropped"][side]
        covered = {place for unit in units + dropped for place in range(unit["start"], unit["end"])}
        assert covered >= {place for place, letter in enumerate(text) if not letter.isspace()}
        for unit in units + dropped:
            written = text[unit["start"] : unit["end"]]
            assert unit["kind"] == "special" or unit["text"] in (written, written.lower(), "not")
            last = unit["start"] > text.index("\n") or unit["text"] == "[end]"
            assert unit["sentence"] == int(last), unit
        assert all(unit["reason"] for unit in dropped) and not any("reason" in unit for unit in units)


@pytest.mark.parametrize("name", CLARK)
def test_the_temperature_is_the_mean_distance_of_unrelated_texts(name: str) -> None:
    raw, auto = score(name, temperature=1), score(name)
    expected = float(np.mean(score(name, UNRELATED, temperature=1)["distances"]))
    assert auto["temperature"] == pytest.approx(expected, rel=1e-12)
    assert auto["distances"] == raw["distances"]
    assert raw["scores"] == pytest.approx([math.exp(-distance) for distance in raw["distances"]], rel=1e-12)
    assert auto["scores"] == pytest.approx([math.exp(-value / expected) for value in raw["distances"]], rel=1e-12)


def rescaled(values: list[float], base: float) -> list[float]:
    return [(value - base) / (1 - base) for value in values]


@every_metric
def test_rescaling_puts_unrelated_texts_at_zero_and_equal_texts_at_one(name: str) -> None:
    unrelated, raw, new = score(name, UNRELATED), score(name), score(name, rescale=True)
    for part in [part for part in ("scores", "precision", "recall", "f1") if part in raw]:
        assert new[part] == pytest.approx(rescaled(raw[part], float(np.mean(unrelated[part]))), abs=1e-6)
    equal = score(name, (TEXTS[1], TEXTS[1]), rescale=True)["scores"]
    assert equal == pytest.approx([1.0] * len(equal), abs=1e-5)
    assert "|baseline:unrelated|" in new["signature"]


@every_metric
def test_a_baseline_file_is_for_the_metric_and_options_it_was_made_with(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "baseline.json")
    record: Any = compute_baseline(name, [*REFERENCES[:6], REFERENCES[0], " "], pairs=12)
    assert record == compute_baseline(name, REFERENCES[:6], pairs=12) and record["texts"] == 6
    save_baseline(record, path)
    raw, new = score(name), score(name, rescale=path)
    assert new["scores"] == pytest.approx(rescaled(raw["scores"], record["score"]), abs=1e-6)
    for part in [part for part in ("precision", "recall", "f1") if part in raw]:
        assert new[part] == pytest.approx(rescaled(raw[part], record[part]), abs=1e-6)
    shown = ",".join(repr(record[part]) for part in ("score", "precision", "recall", "f1") if part in record)
    assert new["signature"] == raw["signature"].replace("|v:", f"|baseline:{shown}|v:")
    option: dict[str, Any] = {"normalize": True} if name in CLARK else {"window": 64}
    with pytest.raises(InputError, match=f"{name}: rescale: .* is for (norm|window)"):
        score(name, rescale=path, **option)
    for part in [part for part in ("score", "recall") if part in record]:
        save_baseline({key: value for key, value in record.items() if key != part}, path)
        with pytest.raises(InputError, match=rf"{name}: rescale: .*baseline.json was not written by .*'{part}'"):
            score(name, rescale=path)
    save_baseline(record | {"score": 1.0}, path)
    with pytest.raises(InputError, match=f"{name}: rescale: expected numbers below 1, but got"):
        score(name, rescale=path)
    save_baseline(record, path)
    with pytest.raises(InputError, match="is for metric"):
        score("sms" if name == "wms" else "bertscore_emd" if name == "bertscore_hungarian" else "wms", rescale=path)
    if name == "bertscore_hungarian":  # the greedy alignment is the same for both
        option = {"alignment": "greedy", "weights": "uniform"}
        save_baseline(compute_baseline(name, REFERENCES[:6], option, pairs=12), path)
        assert score(name, rescale=path, **option)["f1"] == score("bertscore_emd", rescale=path, **option)["f1"]


def test_a_preset_sets_defaults_and_explicit_options_win() -> None:
    paper: dict[str, Any] = {"temperature": 1.0, "oov": "zero", "stopwords": "drop", "alphabetic": True}
    assert score("wms", preset="paper") == score("wms", distance="euclidean", **paper)
    assert score("wms", preset="paper", temperature=2.0)["temperature"] == 2.0

"""Numbers that people can read: the unit of distances, rescaling, presets, distances as data."""

from __future__ import annotations

import html
import json
import math
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from tiny import tiny_table, vector_bytes

import movers
from movers import InputError
from movers.registry import METRICS
from movers.scores import rescaling
from movers.scores.engine import Example
from movers.scores.rescaling import unrelated_texts
from movers.signature import read_signature

PREDICTIONS = ["A man sells snow online.", "The bank paid $5,000 in 2019.", "Ferries are out of service."]
REFERENCES = ["A man is selling snow on the internet.", "The bank paid $9,000 in 2021.", "The orchestra rehearses."]
CLARK = ["wms", "sms", "swms"]
PAIRWISE = [*CLARK, "moverscore", "bertscore_hungarian", "bertscore_emd"]


def score(name: str, *texts: Any, **options: Any) -> dict[str, Any]:
    return getattr(movers, name)(*(texts or (PREDICTIONS, REFERENCES)), progress=False, **options)


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    words = ["snow", "ice", "sells", "buys", "man", "woman", "cat", "dog"]
    file = tmp_path / "tiny.txt"
    file.write_bytes(vector_bytes(tiny_table(words), "glove"))
    return str(file)


@pytest.mark.parametrize("name", CLARK)
def test_a_score_is_the_exponential_of_the_distance_in_units_of_the_temperature(name: str) -> None:
    raw = score(name, temperature=1)
    assert raw["scores"] == pytest.approx([math.exp(-distance) for distance in raw["distances"]], rel=1e-12)
    auto = score(name)
    assert auto["distances"] == raw["distances"]
    expected = [math.exp(-distance / auto["temperature"]) for distance in raw["distances"]]
    assert auto["scores"] == pytest.approx(expected, rel=1e-12)


def test_the_shipped_unrelated_texts_are_different_sentences_and_nothing_else() -> None:
    texts = unrelated_texts()
    assert len(set(texts)) == len(texts) >= 20
    assert all(4 <= len(text.split()) <= 40 and text[-1] in ".!?" and text[0].isalnum() for text in texts)


def test_the_unit_is_the_mean_distance_of_the_shipped_unrelated_texts() -> None:
    pairs = list(combinations(unrelated_texts(), 2))
    alone = [score("wms", [first], [second], temperature=1)["distances"][0] for first, second in pairs[::30]]
    whole = score("wms", [first for first, _ in pairs], [second for _, second in pairs], temperature=1)["distances"]
    assert alone == pytest.approx(whole[::30], rel=1e-12)
    assert score("wms")["temperature"] == pytest.approx(float(np.mean(whole)), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"model": "all-MiniLM-L6-v2"}, {"distance": "cosine"}])
def test_unrelated_texts_score_about_one_over_e_with_any_vectors(options: dict[str, Any]) -> None:
    pairs = list(combinations(unrelated_texts()[:12], 2))
    scores = score("wms", [first for first, _ in pairs], [second for _, second in pairs], **options)["scores"]
    assert 0.3 < float(np.mean(scores)) < 0.45


def test_the_unit_follows_the_options_and_the_signature_says_auto_or_the_number() -> None:
    plain, unit = score("wms"), score("wms", normalize=True)
    assert plain["temperature"] > 5 > unit["temperature"]
    assert (
        "|temp:auto|" in plain["signature"]
        and "|temp:0.123456789|" in score("wms", temperature=0.123456789)["signature"]
    )


@pytest.mark.parametrize("value", [0, -1, "hot", True, None, math.inf, math.nan])
def test_a_temperature_is_auto_or_above_zero(value: object) -> None:
    with pytest.raises(InputError, match="wms: temperature: expected 'auto' or a number above zero"):
        score("wms", temperature=value)


def test_too_few_known_words_ask_for_a_number(vectors: str) -> None:
    with pytest.raises(InputError, match="wms: temperature: 'auto' .* pass a number"):
        score("wms", ["snow"], ["ice"], model=vectors)
    assert score("wms", ["snow"], ["ice"], model=vectors, temperature=2)["temperature"] == 2


def test_the_unit_needs_a_distance_in_half_of_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    def unit(*distances: float | None) -> float:
        examples = [Example(0.5, {}, False, False, False, False, None, distance) for distance in distances]
        monkeypatch.setattr(rescaling, "_unrelated_examples", lambda metric: examples)
        return rescaling.mean_unrelated_distance(METRICS["wms"].build(METRICS["wms"].parse({"temperature": 1})))

    assert unit(1.0, 4.0, None, None) == 2.5
    assert unit(0.25, 0.5) == 0.375
    with pytest.raises(InputError, match="knows words of both in 2 of 5 pairs only"):
        unit(1.0, 4.0, None, None, None)
    with pytest.raises(InputError, match="knows words of both in 2 of 2 pairs only"):
        unit(0.0, 0.0)


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRWISE)
def test_rescaling_puts_unrelated_texts_around_zero_and_equal_texts_at_one(name: str) -> None:
    pairs = list(combinations(unrelated_texts(), 2))
    result = score(name, [first for first, _ in pairs], [second for _, second in pairs], rescale=True)
    assert float(np.mean(result["scores"])) == pytest.approx(0, abs=1e-6)
    equal = score(name, REFERENCES, REFERENCES, rescale=True)["scores"]
    assert equal == pytest.approx([1.0] * len(REFERENCES), abs=1e-6)
    assert "|baseline:unrelated|" in result["signature"]


@pytest.mark.parametrize("name", PAIRWISE)
def test_rescaling_is_linear_in_every_number(name: str) -> None:
    raw, new = score(name), score(name, rescale=True)
    for part in ("scores", "precision", "recall"):
        if part in raw:
            slopes = np.diff(new[part]) / np.diff(raw[part])
            assert slopes == pytest.approx([slopes[0]] * len(slopes), rel=1e-5)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_baseline_file_serves_the_very_metric_and_options_it_was_made_for(name: str, tmp_path: Path) -> None:
    from movers.baseline import compute_baseline, save_baseline

    texts = list(unrelated_texts()[:6])
    record = compute_baseline(name, texts, {"progress": False}, pairs=12)
    save_baseline(record, tmp_path / "baseline.json")
    raw, new = score(name)["scores"], score(name, rescale=str(tmp_path / "baseline.json"))["scores"]
    base = float(str(record["score"]))
    assert new == pytest.approx([(value - base) / (1 - base) for value in raw], abs=1e-6)
    option = {"normalize": True} if name in CLARK else {"window": 64}
    with pytest.raises(InputError, match=f"{name}: rescale: .* is for (norm|window)"):
        score(name, rescale=str(tmp_path / "baseline.json"), **option)


@pytest.mark.parametrize(
    ("own", "made_for", "differs"),
    [
        ("bertscore_emd|align:greedy", "bertscore_hungarian|align:greedy", None),
        ("bertscore_emd|align:optimal", "bertscore_hungarian|align:optimal", "metric 'bertscore_hungarian'"),
        ("bertscore_emd|align:greedy", "bertscore_hungarian|align:optimal", "metric 'bertscore_hungarian'"),
        ("bertscore_emd|align:greedy", "bertscore_emd|align:optimal", "align 'optimal'"),
        ("wms|norm:no", "sms|norm:no", "metric 'sms'"),
        ("wms|norm:no|idf:1", "wms|norm:no|idf:2", None),
        ("wms|norm:no", "wms|norm:no|window:5", "window '5'"),
        ("wms|norm:no|window:5", "wms|norm:no", "window None"),
    ],
)
def test_a_greedy_baseline_serves_both_metrics_and_others_only_their_own(
    own: str, made_for: str, differs: str | None
) -> None:
    metric: Any = SimpleNamespace(name=own.partition("|")[0], signature=f"{own}|v:1")
    made = read_signature(f"{made_for}|v:1")
    if differs is None:
        rescaling._compare(metric, Path("b.json"), made)
    else:
        with pytest.raises(InputError, match=f"rescale: b.json is for {differs}, but this call has"):
            rescaling._compare(metric, Path("b.json"), made)


def test_evaluates_names_for_rescaling_mean_the_same() -> None:
    assert score("bertscore_emd", rescale_with_baseline=True) == score("bertscore_emd", rescale=True)


# ---------------------------------------------------------------------------------------------------------------------


def test_several_references_give_the_distance_that_scored_or_the_mean() -> None:
    both = [[REFERENCES[0], REFERENCES[2]]]
    single = [score("wms", PREDICTIONS[:1], [text])["distances"][0] for text in both[0]]
    assert score("wms", PREDICTIONS[:1], both)["distances"] == [min(single)]
    mean = score("wms", PREDICTIONS[:1], both, multi_ref="mean")["distances"]
    assert mean == pytest.approx([sum(single) / 2], rel=1e-12)


@pytest.mark.parametrize("name", ["wms", "moverscore"])
def test_the_corpus_score_can_be_the_similarity_of_the_mean_distance(name: str) -> None:
    result = score(name, average="distances")
    mean = sum(result["distances"]) / len(result["distances"])
    expected = math.exp(-mean / result["temperature"]) if name == "wms" else 1 - mean
    assert result["score"] == pytest.approx(expected, rel=1e-9)
    assert "average:distances" in result["signature"]
    blank = score(name, [*PREDICTIONS, ""], [*REFERENCES, "word"], average="distances")
    assert blank["distances"][-1] is None
    assert blank["score"] == pytest.approx(result["score"] * 3 / 4, rel=1e-9)


def test_numbers_count_by_default() -> None:
    texts = ["It paid $5,000 in 2019."], ["It paid $9,000 in 2021."]
    assert score("wms", *texts)["score"] < 0.999
    assert score("wms", *texts, keep_numbers=False)["score"] == 1.0


@pytest.mark.parametrize("name", PAIRWISE)
def test_entities_are_decoded_before_anything_else(name: str) -> None:
    written = ["Marks &amp; Spencer sells &quot;snow&quot;."]
    plain = [html.unescape(written[0])]
    found = score(name, written, REFERENCES[:1], unescape=True)
    assert found["scores"] == pytest.approx(score(name, plain, REFERENCES[:1])["scores"], abs=1e-9)
    assert "html:decoded" in found["signature"]
    idf = {"idf": "corpus"}
    with_table = score(name, written, [plain, plain][:1], unescape=True, **idf)
    assert with_table["scores"] == pytest.approx([1.0], abs=1e-6)


def test_unknown_words_are_dropped_or_at_the_origin_or_match_themselves(vectors: str) -> None:
    options = {"model": vectors, "stopwords": None, "temperature": 3.0}
    table = tiny_table(["snow", "ice", "sells", "buys", "man", "woman", "cat", "dog"])
    pair = ["man zzyzx"], ["woman zzyzx"]
    near = float(cdist([table["man"]], [table["woman"]])[0, 0])
    to_origin = [float(np.linalg.norm(table[word])) for word in ("man", "woman")]
    assert score("wms", *pair, **options)["distances"] == pytest.approx([near], rel=1e-6)
    zero = min((near + 0) / 2, sum(to_origin) / 2)
    assert score("wms", *pair, oov="zero", **options)["distances"] == pytest.approx([zero], rel=1e-6)
    match = min(near / 2, 3.0)
    assert score("wms", *pair, oov="match", **options)["distances"] == pytest.approx([match], rel=1e-6)
    other = score("wms", ["zzyzx"], ["qwxyz"], oov="match", **options)
    assert other["distances"] == [3.0] and other["n_unknown"] == 1
    assert score("wms", ["zzyzx"], ["qwxyz"], oov="zero", **options)["distances"] == [0.0]


def test_max_pooled_sentences_take_the_largest_value_of_every_dimension(vectors: str) -> None:
    table = tiny_table(["snow", "ice", "sells", "buys", "man", "woman", "cat", "dog"])
    options = {"model": vectors, "stopwords": None, "temperature": 1.0, "pooling": "max"}
    first, second = (np.max([table[word] for word in words], axis=0) for words in (["man", "sells"], ["cat", "dog"]))
    found = score("sms", ["Man sells."], ["Cat dog."], **options)
    assert found["distances"] == pytest.approx([float(np.linalg.norm(first - second))], rel=1e-6)
    assert "sentvec:max" in found["signature"]


# ---------------------------------------------------------------------------------------------------------------------


def test_a_preset_sets_defaults_and_options_beside_it_win() -> None:
    paper = score("wms", preset="paper")
    spelled = score("wms", temperature=1.0, keep_numbers=False, oov="zero")
    assert paper == spelled and "preset" not in paper["signature"]
    assert score("wms", preset="paper", temperature=2.0)["temperature"] == 2.0
    with pytest.raises(InputError, match="wms: preset: expected one of 'paper', None, but got 'translation'"):
        score("wms", preset="translation")


@pytest.mark.parametrize("name", PAIRWISE)
def test_every_metric_has_the_papers_preset(name: str) -> None:
    assert len(score(name, preset="paper")["scores"]) == len(PREDICTIONS)


def test_the_translation_preset_knows_the_layers_of_its_models() -> None:
    assert "|layer:4+6|" in score("moverscore", preset="translation")["signature"]
    options = movers.registry.find_metric("moverscore").parse({"preset": "translation", "model": "all-mpnet-base-v2"})
    assert str(options.aggregation) == "7+12"  # type: ignore[attr-defined]


def test_a_result_prints_score_count_and_signature_and_is_a_dict_for_code() -> None:
    result = score("wms")
    assert repr(result) == f"{result['score']:.4g} (n=3) {result['signature']}"
    assert json.loads(json.dumps(result)) == dict(result)
    marked = score("wms", ["", "snow"], ["ice", "snow"])
    assert "n=2, empty 1" in repr(marked)
    assert "&lt;" in type(result)(score=0.5, scores=[0.5], signature="<b>")._repr_html_()

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plain import PREDICTIONS, REFERENCES, check_alignment, hidden_states, minilm, transport

import movers
from movers import IdfTable, moverscore

TEXTS = PREDICTIONS[:30], REFERENCES[:30]
FEW = PREDICTIONS[:5], REFERENCES[:5]
Weight = Callable[[int], float]


def scores(predictions: Sequence[str], references: Any, **options: Any) -> list[float]:
    return moverscore(list(predictions), references, **options)["scores"]


def unit_texts(text: str, **options: Any) -> list[str]:
    """The units of a text, as its alignment shows them."""
    alignment = moverscore([text], ["a dog"], return_alignment=True, **options)["alignments"][0][0]
    return [unit["text"] for unit in alignment["prediction"]]


# ---------------------------------------------------------------------------------------------------------------------
# The authors' two scripts, plainly, from the hidden states of transformers


def plain_table(texts: Sequence[str]) -> Weight:
    documents = [set(hidden_states(text)[0]) for text in texts]
    return lambda number: math.log((len(texts) + 1) / (sum(number in ids for ids in documents) + 1))


def plain_bag(text: str, variant: str, n: int | None, weight: Weight) -> tuple[NDArray[Any], NDArray[Any]]:
    ids, states = hidden_states(text)
    names = minilm()[1].convert_ids_to_tokens(ids)
    marks = {*string.punctuation}
    kept = [place for place, name in enumerate(names) if not name.startswith("##") and name not in marks]
    layers = states[-5:] / np.linalg.norm(states[-5:], axis=-1, keepdims=True)
    pmeans = np.concatenate([layers.min(axis=0), layers.mean(axis=0), layers.max(axis=0)], axis=-1)
    vectors = (states[-1] if variant == "v2" else pmeans)[kept]
    weights = [weight(ids[place]) for place in kept]
    size = len(kept) if n is None else min(n, len(kept))
    rows, masses = [], []
    for begin in range(len(kept) - size + 1):
        window = range(begin, begin + size)
        masses.append(sum(weights[place] for place in window))  # Eq. 2
        shares = [weights[place] if masses[-1] or variant == "paper" else 1.0 for place in window]
        row = sum(share * vectors[place] for share, place in zip(shares, window, strict=True))  # Eq. 1
        rows.append(row if variant == "paper" else row / np.linalg.norm(row))
    return np.array(rows), np.array(masses) / sum(masses)


@pytest.mark.parametrize(
    ("variant", "n", "idf"),
    [
        ("v1", 1, None),
        ("v1", 2, "per-side"),
        ("v1", "sentence", "per-side"),
        ("v2", 1, "per-side"),
        ("v2", 2, None),
        ("paper", 1, "all"),  # the equations as printed
        ("paper", 2, "all"),
    ],
)
def test_scores_follow_the_authors_formulas(variant: str, n: Any, idf: str | None) -> None:
    tables: list[Weight] = [lambda number: 1.0] * 2
    if idf:
        tables = [plain_table(side if idf == "per-side" else [*TEXTS[0], *TEXTS[1]]) for side in TEXTS]
    expected = []
    for pair in zip(*TEXTS, strict=True):
        size = None if n == "sentence" else n
        (x, a), (y, b) = (plain_bag(text, variant, size, table) for text, table in zip(pair, tables, strict=True))
        costs = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
        distance = transport(a, b, costs if variant == "v1" else np.sqrt(costs))[1]
        expected.append(max(0, 1 - distance) if variant == "v1" else 1 / (1 + distance))
    assert np.std(expected) > 0.05
    options = {"preset": "paper"} if variant == "paper" else {"variant": variant, "idf": idf}
    assert scores(*TEXTS, n_gram=n, punctuation="ascii", **options) == pytest.approx(expected, abs=1e-5)


def one_minus_emd(x: NDArray[Any], y: NDArray[Any]) -> float:
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y))
    costs = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    return max(0, 1 - transport(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), costs)[1])


@pytest.mark.parametrize(("kind", "layers"), [("last", [-1]), (-2, [-2]), ("4+6", [4, 6]), ([0, 4, 6], [0, 4, 6])])
def test_other_aggregations_equal_a_plain_computation(kind: Any, layers: list[int]) -> None:
    def vectors(text: str) -> NDArray[Any]:
        states = hidden_states(text)[1]
        return np.concatenate([states[n] / np.linalg.norm(states[n], axis=1, keepdims=True) for n in layers], axis=1)

    expected = [one_minus_emd(vectors(one), vectors(other)) for one, other in zip(*FEW, strict=True)]
    options: dict[str, Any] = {"punctuation": False, "drop_subwords": False, "aggregation": kind}
    assert scores(*FEW, **options) == pytest.approx(expected, abs=2e-5)


def test_static_vectors_are_compared_likewise() -> None:
    encoder: Any = movers.load_encoder("wordllama")
    texts = ["A man sells Snow online.", "Snow is sold by a man!"]
    x, y = (encoder.vectors(text.lower().strip(".!").split())[0].astype(np.float64) for text in texts)
    result = moverscore(texts, [texts[1]] * 2, model="wordllama")
    assert result["scores"] == pytest.approx([one_minus_emd(x, y), 1], abs=1e-5)


def test_the_hard_alignment_is_greedy_bertscore_on_these_vectors() -> None:
    texts = PREDICTIONS[:12], REFERENCES[:12]
    options: dict[str, Any] = {"variant": "v2", "punctuation": "ascii", "idf": "per-side"}
    result = moverscore(*texts, alignment="hard", return_alignment=True, **options)
    tables = [plain_table(side) for side in texts]
    for row, (one, other) in enumerate(zip(*texts, strict=True)):
        (x, a), (y, b) = plain_bag(one, "v2", 1, tables[0]), plain_bag(other, "v2", 1, tables[1])
        precision, recall = (x @ y.T).max(axis=1) @ a, (x @ y.T).max(axis=0) @ b
        expected = [precision, recall, 2 * precision * recall / (precision + recall)]
        assert [result[part][row] for part in ("precision", "recall", "f1")] == pytest.approx(expected, abs=1e-5)
        (alignment,) = result["alignments"][row]
        assert [len(alignment[side]) for side in ("prediction", "reference")] == [len(a), len(b)]
        moves = [(move["j"], move["mass"], move["cost"]) for move in alignment["flows"]]
        best = np.transpose([(x @ y.T).argmax(axis=1), a, 1 - (x @ y.T).max(axis=1)])
        np.testing.assert_allclose(moves, best[a > 0], atol=1e-5)
    assert result["scores"] == result["f1"] and "distances" not in result
    equal = moverscore(REFERENCES, REFERENCES, alignment="hard")
    assert 1 >= max(equal["precision"] + equal["recall"]) >= min(equal["scores"]) > 1 - 1e-5


# ---------------------------------------------------------------------------------------------------------------------
# Units


def test_filters_decide_what_is_a_unit(tiny_bert: Any) -> None:
    assert unit_texts("The man is in the house", stopwords="english") == ["[start]", "man", "house", "[end]"]
    words = ["cat", "s", ",", "dog"]
    for options, expected in (
        ({"punctuation": False, "drop_subwords": False}, ["[start]", *words, "[end]"]),
        ({"punctuation": False, "drop_subwords": False, "special_tokens": False}, words),
        ({"stopwords": ["cats", "s"]}, ["[start]", "dog", "[end]"]),  # by the whole word
        ({"stopwords": ["cat"]}, ["[start]", "cat", "dog", "[end]"]),
        ({"n_gram": 2}, ["[start] cat", "cat dog", "dog [end]"]),  # spans what was dropped
        ({"n_gram": "sentence"}, ["[start] cat dog [end]"]),
    ):
        assert unit_texts("cats, dog", model=tiny_bert, **options) == expected
    bigrams = moverscore(["cats, dog"], ["a dog"], model=tiny_bert, n_gram=2, return_alignment=True)
    ends = [(unit["start"], unit["end"]) for unit in bigrams["alignments"][0][0]["prediction"]]
    assert ends == [(0, 3), (0, 9), (6, 9)]


# ---------------------------------------------------------------------------------------------------------------------
# Properties


def test_similarities_and_distances_are_what_they_say() -> None:
    distances = moverscore(*FEW)["distances"]
    assert scores(*FEW) == pytest.approx([max(0, 1 - value) for value in distances], abs=1e-9)
    assert scores(*FEW, similarity="exp") == pytest.approx([math.exp(-value) for value in distances], abs=1e-9)
    assert scores(*FEW, similarity="inverse") == pytest.approx([1 / (1 + value) for value in distances], abs=1e-9)
    # On unit vectors the squared Euclidean distance is twice the cosine distance.
    halved = [1 - value for value in scores(*FEW, distance="cosine")]
    assert halved == pytest.approx([value / 2 for value in distances], abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"variant": "v2"}, {"n_gram": 2}, {"idf": "corpus", "similarity": "exp"}])
def test_alignments_reproduce_the_distance(options: dict[str, Any]) -> None:
    result = moverscore(*FEW, return_alignment=True, **options)
    for (alignment,), distance, score in zip(result["alignments"], result["distances"], result["scores"], strict=True):
        check_alignment(alignment)
        assert (alignment["distance"], alignment["score"]) == (distance, score)


def test_each_side_may_have_its_own_idf_table(tmp_path: Path) -> None:
    def table(texts: Sequence[str]) -> IdfTable:
        encoder: Any = movers.load_encoder("all-MiniLM-L6-v2")
        ids = [tokens.ids.tolist() for tokens in encoder.tokenize(texts)]
        return IdfTable.build(ids, keys="tokens", tokenizer=encoder.tokenizer_digest)

    per_side = moverscore(*TEXTS, idf="per-side")
    pair = table(TEXTS[0]), table(TEXTS[1])
    pair[0].save(tmp_path / "predictions.json")
    pair[1].save(tmp_path / "references.json.gz")
    paths = [str(tmp_path / "predictions.json"), str(tmp_path / "references.json.gz")]
    assert moverscore(*TEXTS, idf=pair) == moverscore(*TEXTS, idf=paths) == per_side
    assert scores(*TEXTS, idf=pair[::-1]) != pytest.approx(per_side["scores"], abs=1e-4)
    assert moverscore(*TEXTS, idf=pair[1]) == moverscore(*TEXTS, idf="corpus")


def test_the_translation_preset_decodes_entities_and_knows_the_layers_of_its_models() -> None:
    for options in ({}, {"idf": "corpus"}):
        written, plain = (
            moverscore([text, "Snow fell."], ["Marks & Spencer sell snow.", "Snow."], preset="translation", **options)
            for text in ("Marks &amp; Spencer sells &quot;snow&quot;.", 'Marks & Spencer sells "snow".')
        )
        assert written["scores"] == pytest.approx(plain["scores"], abs=1e-9) and written["scores"][0] > 0.2
        assert "|layer:4+6|" in written["signature"] and "|html:decoded|" in written["signature"]
    large: Any = movers.registry.find_metric("moverscore").parse(
        {"preset": "translation", "model": "all-mpnet-base-v2"}
    )
    assert str(large.aggregation) == "7+12"

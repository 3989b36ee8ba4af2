"""The papers' own definitions, derived again in plain NumPy and SciPy."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from tiny import tiny_model, tiny_tokenizer

import movers
from movers.encoders.layers import pmeans, routing, routing_of_the_paper

TEXTS = ["a man sells snow on it", "the old dog runs on the mat", "a cat sat"]
OTHERS = ["the man ships snow in a box", "a big dog sat on the red mat", "the cat is old"]


def transport(a: np.ndarray, b: np.ndarray, costs: np.ndarray) -> float:
    m, n = costs.shape
    rows = np.kron(np.eye(m), np.ones((1, n)))
    columns = np.kron(np.ones((1, m)), np.eye(n))
    conditions = np.vstack([rows, columns])[:-1]
    solved = linprog(costs.ravel(), A_eq=conditions, b_eq=np.concatenate([a, b])[:-1], method="highs")
    return float(solved.fun)


@pytest.mark.parametrize("n", [1, 2])
def test_moverscore_of_the_paper_is_equation_1_to_3_as_printed(n: int) -> None:
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    result = movers.moverscore(TEXTS, OTHERS, model=(model, tokenizer), preset="paper", n_gram=n)
    everything = [tokenizer(text)["input_ids"] for text in [*OTHERS, *TEXTS]]  # one corpus: all sentences
    frequency = Counter(token for ids in everything for token in set(ids))
    idf = {token: math.log((len(everything) + 1) / (count + 1)) for token, count in frequency.items()}

    def bag(text: str) -> tuple[np.ndarray, np.ndarray]:
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-5:]
        layers = np.stack([state[0].double().numpy() for state in states])
        layers /= np.linalg.norm(layers, axis=-1, keepdims=True)
        vectors = np.concatenate([layers.min(axis=0), layers.mean(axis=0), layers.max(axis=0)], axis=-1)
        weights = np.array([idf[token] for token in ids])
        sums = [sum(weights[i + k] * vectors[i + k] for k in range(n)) for i in range(len(ids) - n + 1)]  # Eq. 1
        masses = np.array([weights[i : i + n].sum() for i in range(len(ids) - n + 1)])  # Eq. 2
        return np.array(sums), masses / masses.sum()

    for row, (text, other) in enumerate(zip(TEXTS, OTHERS, strict=True)):
        (x, a), (y, b) = bag(text), bag(other)
        distance = transport(a, b, np.linalg.norm(x[:, None] - y[None], axis=-1))
        assert result["distances"][row] == pytest.approx(distance, abs=1e-5)
        assert result["scores"][row] == pytest.approx(1 / (1 + distance), abs=1e-5)


def test_power_means_are_equation_4() -> None:
    layers = torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(1))
    unit = layers.double().numpy()
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    found = pmeans(layers, (2.0, 3.0, math.inf, 1.0)).double().numpy()
    cubes = (unit**3).mean(axis=0)
    expected = [np.sqrt((unit**2).mean(axis=0)), np.cbrt(cubes), unit.max(axis=0), unit.mean(axis=0)]
    np.testing.assert_allclose(found, np.concatenate(expected, axis=-1), atol=1e-5)


@pytest.mark.parametrize("powers", [[0], [-1], [1.5], "1", [], ["x"], [math.nan]])
def test_other_powers_are_refused(powers: Any) -> None:
    with pytest.raises(movers.InputError, match="moverscore: powers: expected whole numbers above zero, inf or -inf"):
        movers.moverscore(["a"], ["b"], powers=powers)


def algorithm_1(layers: np.ndarray) -> np.ndarray:
    """Appendix A.2 line by line, for one token: layers (L, d) of length 1."""
    v, gamma, before = layers.mean(axis=0), np.zeros(len(layers)), math.inf
    for _ in range(20):
        gamma = np.exp(gamma) / np.exp(gamma).sum()
        slope = np.exp(-((v - layers) ** 2).sum(axis=1) / 2)
        v = (gamma[:, None] * slope[:, None] * layers).sum(axis=0) / slope.sum()
        k = np.exp(-((v - layers) ** 2).sum(axis=1) / 2)
        gamma = gamma + k
        loss = math.log((gamma * k).sum())
        if abs(loss - before) < 1e-6:
            break
        before = loss
    return v


def test_routing_of_the_paper_is_algorithm_1() -> None:
    layers = torch.randn(5, 9, 6, generator=torch.Generator().manual_seed(2)).double()
    unit = layers / layers.norm(dim=-1, keepdim=True)
    found = routing_of_the_paper(layers)
    for token in range(9):
        np.testing.assert_allclose(found[token].numpy(), algorithm_1(unit[:, token].numpy()), atol=1e-9)


def test_our_routing_points_where_the_papers_does_on_real_layers(minilm: Any) -> None:
    with torch.inference_mode():
        ids = torch.tensor([minilm.tokenize(["A man sells snow on the internet."])[0].ids])
        states = minilm.model(ids, output_hidden_states=True).hidden_states[-5:]
    layers = torch.stack([state[0] for state in states])
    cosines = torch.cosine_similarity(routing(layers), routing_of_the_paper(layers), dim=-1)
    assert float(cosines.min()) > 0.99

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from movers.encoders.layers import Aggregation, parse_aggregation, pmeans, routing
from movers.errors import InputError

Floats = NDArray[np.float64]


def unit(vector: Floats) -> Floats:
    return vector / math.sqrt(sum(float(value) ** 2 for value in vector))


def slow_routing(layers: Floats) -> tuple[Floats, int]:
    """One token, layer by layer, as the definition reads; also the number of rounds."""
    z = [unit(layer) for layer in layers]
    v, gamma, loss, rounds = sum(z) / len(z), [0.0] * len(z), math.inf, 0
    while rounds < 20:
        rounds += 1
        exponentials = [math.exp(value) for value in gamma]
        gamma = [value / sum(exponentials) for value in exponentials]
        masses = [g * math.exp(-float(((v - layer) ** 2).sum()) / 2) for g, layer in zip(gamma, z, strict=True)]
        v = sum(mass * layer for mass, layer in zip(masses, z, strict=True)) / sum(masses)
        kernels = [math.exp(-float(((v - layer) ** 2).sum()) / 2) for layer in z]
        gamma = [g + k for g, k in zip(gamma, kernels, strict=True)]
        before, loss = loss, -sum(kernels)
        if abs(loss - before) < 1e-6:
            break
    return v, rounds


@pytest.fixture(params=[0.2, 1.0, 5.0], ids=lambda spread: f"spread-{spread}")
def layers(request: pytest.FixtureRequest) -> Floats:
    """Five layers of eight tokens that agree well, somewhat or hardly."""
    generator = np.random.default_rng(int(10 * request.param))
    centre = generator.normal(size=(1, 8, 6))
    return centre + request.param * generator.normal(size=(5, 8, 6))


def test_pmeans_are_minimum_mean_and_maximum_of_unit_vectors(layers: Floats) -> None:
    vectors = pmeans(torch.from_numpy(layers)).numpy()
    for token in range(layers.shape[1]):
        columns = list(zip(*[unit(layers[layer, token]) for layer in range(5)], strict=True))
        expected = [min(c) for c in columns] + [sum(c) / 5 for c in columns] + [max(c) for c in columns]
        np.testing.assert_allclose(vectors[token], expected, atol=1e-12)


def test_routing_equals_the_plain_loop_and_each_token_is_routed_alone(layers: Floats) -> None:
    vectors = routing(torch.from_numpy(layers)).numpy()
    rounds = set()
    for token in range(layers.shape[1]):
        expected, count = slow_routing(layers[:, token])
        rounds.add(count)
        np.testing.assert_allclose(vectors[token], expected, atol=1e-9)
    assert min(rounds) >= 2


def test_joined_layers_have_the_mean_of_the_layers_cosines() -> None:
    layers = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    joined = Aggregation("join", joined=(1, 2)).combine(layers)
    own = [torch.nn.functional.cosine_similarity(layer[:, None], layer[None], dim=-1) for layer in layers]
    np.testing.assert_allclose(joined @ joined.T, (own[0] + own[1]) / 2, atol=1e-12)


@pytest.mark.parametrize("combine", [pmeans, routing])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_zero_vectors_stay_finite_and_lengths_do_not_matter(combine: Any, scale: float) -> None:
    layers = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(2))
    vectors = combine(layers * scale)
    np.testing.assert_allclose(vectors, combine(layers) if scale else 0.0 * vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "states", "expected"),
    [
        ("last", 7, [6]),
        ("mean", 4, [0, 1, 2, 3]),
        ("pmeans", 13, [8, 9, 10, 11, 12]),
        ("routing", 3, [0, 1, 2]),
        (0, 7, [0]),
        (-7, 7, [0]),
        ("4+-1", 7, [4, 6]),
    ],
)
def test_layers_are_numbered_from_the_embeddings(value: Any, states: int, expected: list[int]) -> None:
    assert parse_aggregation("m", value).needed(states) == expected


@pytest.mark.parametrize("value", ["middle", None, 1.5, True, [1]])
def test_an_unknown_aggregation_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="m: layer: expected 'pmeans', 'routing', 'last', 'mean', a layer"):
        parse_aggregation("m", value)

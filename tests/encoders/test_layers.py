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


def slow_routing(layers: Floats, kernel: str) -> tuple[Floats, int]:
    """One token, layer by layer, as the definition reads; also the number of rounds."""
    z = [unit(layer) for layer in layers]
    count = len(z)
    mean = sum(z) / count
    v, gamma, loss, rounds = mean, [0.0] * count, None, 0
    while rounds < 20:
        rounds += 1
        top = max(gamma)
        exponentials = [math.exp(value - top) for value in gamma]
        gamma = [value / sum(exponentials) for value in exponentials]
        squares = [float(((v - layer) ** 2).sum()) for layer in z]
        slopes = [math.exp(-u / 2) if kernel == "gaussian" else float(u < 1) for u in squares]
        total = sum(g * k for g, k in zip(gamma, slopes, strict=True))
        if total > 0:
            v = sum(g * k * layer for g, k, layer in zip(gamma, slopes, z, strict=True)) / total
        else:
            v = mean
        squares = [float(((v - layer) ** 2).sum()) for layer in z]
        strengths = [math.exp(-u / 2) if kernel == "gaussian" else max(0.0, 1 - u) for u in squares]
        gamma = [g + k for g, k in zip(gamma, strengths, strict=True)]
        new_loss = -sum(strengths)
        if loss is not None and abs(new_loss - loss) < 1e-6:
            break
        loss = new_loss
    return v, rounds


@pytest.fixture(params=[0.2, 1.0, 5.0], ids=lambda spread: f"spread-{spread}")
def layers(request: pytest.FixtureRequest) -> Floats:
    """Five layers of eight tokens that agree well, somewhat or hardly."""
    generator = np.random.default_rng(int(10 * request.param))
    centre = generator.normal(size=(1, 8, 6))
    return centre + request.param * generator.normal(size=(5, 8, 6))


def test_pmeans_are_minimum_mean_and_maximum_of_unit_vectors(layers: Floats) -> None:
    found = pmeans(torch.from_numpy(layers)).numpy()
    for token in range(layers.shape[1]):
        rows = [unit(layers[layer, token]) for layer in range(5)]
        columns = list(zip(*rows, strict=True))
        expected = [min(c) for c in columns] + [sum(c) / 5 for c in columns] + [max(c) for c in columns]
        np.testing.assert_allclose(found[token], expected, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_routing_equals_the_plain_loop(layers: Floats, kernel: Any) -> None:
    found = routing(torch.from_numpy(layers), kernel).numpy()
    rounds = set()
    for token in range(layers.shape[1]):
        expected, count = slow_routing(layers[:, token], kernel)
        rounds.add(count)
        np.testing.assert_allclose(found[token], expected, atol=1e-9)
    assert min(rounds) >= 2


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_a_tokens_vector_does_not_depend_on_the_other_tokens(layers: Floats, kernel: Any) -> None:
    together = routing(torch.from_numpy(layers), kernel)
    for token in range(layers.shape[1]):
        alone = routing(torch.from_numpy(layers[:, token : token + 1]), kernel)
        np.testing.assert_allclose(alone[0], together[token], atol=1e-12)


def test_a_token_with_no_layer_inside_the_kernel_keeps_the_mean() -> None:
    opposed = torch.tensor([[[1.0, 0.0]], [[-1.0, 0.0]]], dtype=torch.float64)
    np.testing.assert_allclose(routing(opposed, "epanechnikov"), [[0.0, 0.0]], atol=1e-12)


def test_routing_moves_toward_the_majority_of_layers() -> None:
    same, other = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    layers = torch.tensor([[same], [same], [same], [same], [other]], dtype=torch.float64)
    mean, found = layers.mean(dim=0)[0], routing(layers)[0]
    assert found[0] > mean[0] and found[1] < mean[1]


@pytest.mark.parametrize("combine", [pmeans, routing])
def test_zero_vectors_stay_finite(combine: Any) -> None:
    assert torch.isfinite(combine(torch.zeros(5, 2, 3))).all()


@pytest.mark.parametrize(
    ("value", "states", "expected"),
    [
        ("last", 7, [6]),
        ("mean", 4, [0, 1, 2, 3]),
        ("pmeans", 13, [8, 9, 10, 11, 12]),
        ("routing", 3, [0, 1, 2]),
        (0, 7, [0]),
        (-1, 7, [6]),
        (-7, 7, [0]),
        (6, 7, [6]),
    ],
)
def test_layers_are_numbered_from_the_embeddings(value: Any, states: int, expected: list[int]) -> None:
    assert parse_aggregation("m", value).needed(states) == expected


@pytest.mark.parametrize("number", [7, -8, 100])
def test_a_layer_the_model_does_not_have_is_refused(number: int) -> None:
    with pytest.raises(InputError, match=rf"layer: expected a number from -7 to 6 .* but got {number}"):
        Aggregation("layer", number).needed(7)


@pytest.mark.parametrize("value", ["middle", None, 1.5, True, [1]])
def test_an_unknown_aggregation_lists_the_known_ones(value: Any) -> None:
    with pytest.raises(InputError, match="m: layer: expected one of 'pmeans', 'routing', 'last', 'mean' or a layer"):
        parse_aggregation("m", value)


def test_an_aggregation_is_written_so_that_it_can_be_told_apart() -> None:
    kinds = [
        *map(Aggregation, ("pmeans", "last", "mean", "routing")),  # type: ignore[arg-type]
        Aggregation("routing", kernel="epanechnikov"),
        Aggregation("layer", 5),
        Aggregation("layer", -2),
    ]
    assert len({str(kind) for kind in kinds}) == len({hash(kind) for kind in kinds}) == len(kinds)
    assert parse_aggregation("m", kinds[0]) is kinds[0]


def test_mean_and_single_layers_are_plain() -> None:
    states = torch.arange(24, dtype=torch.float64).reshape(3, 4, 2)
    assert Aggregation("mean").combine(states).tolist() == states.numpy().mean(axis=0).tolist()
    assert Aggregation("layer", 1).combine(states[1:2]).tolist() == states[1].tolist()

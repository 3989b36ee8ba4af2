"""Heads: the paper's sizes, and what the aligning head guarantees by its construction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_up import DIMENSION, made_up_text

from movers.errors import InputError
from movers.quality.alignment import FEATURES
from movers.quality.heads import AlignHead, CnnHead, FcHead, LstmHead, PairInput, build_head


def test_the_papers_networks_have_the_papers_sizes() -> None:
    assert FcHead(384, 47, 3).hidden.weight.shape == (128, 50 * 384)
    assert CnnHead(384, 47, 3).filters.weight.shape == (128, 384, 5)
    assert LstmHead(384, 47, 3).lstm.hidden_size == 128
    words = build_head({"head": "lstm", "unit": "words", "dimension": 100, "document_length": 9, "summary_length": 2})
    assert words.lstm.hidden_size == 25


@pytest.mark.parametrize("name", ["fc", "cnn", "lstm"])
def test_sequences_are_padded_and_cut_to_the_given_lengths(name: str) -> None:
    lengths = {"document_length": 4, "summary_length": 2}
    head = build_head({"head": name, "unit": "sentences", "dimension": DIMENSION, **lengths}).eval()
    long, short = made_up_text(9, 1), made_up_text(1, 2)
    batch = head.collate([PairInput(long, short), PairInput(short, long)])["sequence"]
    assert batch.shape == (2, 6, DIMENSION)
    assert np.array_equal(batch[0, :4], long.vectors[:4]) and np.array_equal(batch[0, 4], short.vectors[0])
    assert not batch[0, 5].any() and not batch[1, 1:4].any()
    assert head({"sequence": batch}).shape == (2,)


def test_the_score_is_the_product_that_the_formula_says() -> None:
    """Written again from the formula, with float64."""
    torch.manual_seed(5)
    head = AlignHead(DIMENSION).double().eval()
    head.calibrate(np.random.default_rng(0).normal(size=(20, len(FEATURES))).astype(np.float32))
    pair = PairInput(made_up_text(4, 1), made_up_text(2, 2))
    batch = {name: value.double() for name, value in head.collate([pair]).items()}
    with torch.inference_mode():
        x = ((batch["features"][0] - head.center) / head.scale) @ head.quality.weights()
        curve = head.quality.curve
        softplus = torch.nn.functional.softplus
        hidden = torch.tanh(softplus(curve.inner[:, 0]) * x + curve.shift)
        g = (softplus(curve.outer) * hidden).sum() + softplus(curve.linear[0]) * x + curve.bias
        tokens = batch["tokens"][0]
        after = torch.cat([tokens[1:], torch.zeros(1, DIMENSION)])
        u = head.damage(head.token(head.norm(torch.cat([tokens, after], dim=1)))).sigmoid().mean(dim=0)
        cost = softplus(head.cost(torch.cat([u, torch.tensor([np.log(len(tokens)) / 4])])))
        v = float(torch.exp(-(u * cost).sum()))
        expected = float(g.sigmoid()) * (1 - max(0.0, 1 - v - 0.22) / 0.78)
        assert float(head(batch).sigmoid()) == pytest.approx(expected, abs=1e-9)


def test_what_else_is_in_the_batch_changes_nothing() -> None:
    pairs = [PairInput(made_up_text(n + 1, n), made_up_text(1 + n % 4, 50 + n, tokens=3 + n)) for n in range(6)]
    torch.manual_seed(1)
    head = AlignHead(DIMENSION).eval()
    with torch.inference_mode():
        together = head(head.collate(pairs))
        alone = torch.cat([head(head.collate([pair])) for pair in pairs])
    assert together.numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_quality_never_falls_when_a_feature_rises() -> None:
    torch.manual_seed(2)
    head = AlignHead(DIMENSION).eval()
    features = torch.randn(200, len(FEATURES))
    with torch.inference_mode():
        for place, name in enumerate(FEATURES):
            risen = features.clone()
            risen[:, place] += 0.5
            assert bool((head.quality(risen) > head.quality(features)).all()), name


def test_language_without_damage_costs_nothing_at_any_length() -> None:
    head = AlignHead(DIMENSION).eval()
    with torch.no_grad():
        head.damage.weight.zero_()
        head.damage.bias.fill_(-50.0)
        for tokens in (1, 10, 400):
            pair = PairInput(made_up_text(3, 1), made_up_text(1, 2, tokens=tokens))
            assert float(head.parts(head.collate([pair]))[1]) == pytest.approx(1.0)


def test_an_unknown_head_is_an_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match="'fc', 'cnn', 'lstm', 'align', but got 'mlp'"):
        build_head({"head": "mlp", "dimension": 3, "document_length": 1, "summary_length": 1})  # type: ignore

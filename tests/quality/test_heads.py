"""Heads: the paper's sizes, and what the aligning head owes to its construction."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from movers.quality.heads import (
    FEATURES,
    AlignHead,
    CnnHead,
    FcHead,
    LstmHead,
    PairInput,
    align,
    build_head,
    match_tokens,
)
from movers.quality.vectors import EncodedText

D = 12


def made_up_text(sentences: int, seed: int, tokens: int = 5) -> EncodedText:
    rng = np.random.default_rng(seed)

    def unit(*shape: int) -> np.ndarray:
        vectors = rng.normal(size=shape).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    names = tuple(f"word{seed} number{n} of{n} text{n}" for n in range(sentences))
    return EncodedText(names, unit(sentences, D), unit(sentences * tokens, D), np.repeat(np.arange(sentences), tokens))


def shuffled(text: EncodedText, seed: int = 0) -> EncodedText:
    """The same sentences in another order."""
    order = np.random.default_rng(seed).permutation(len(text.units))
    tokens = [text.tokens[text.owners == place] for place in order]
    owners = np.repeat(np.arange(len(order)), [len(part) for part in tokens])
    return EncodedText(tuple(text.units[place] for place in order), text.vectors[order], np.concatenate(tokens), owners)


def test_the_papers_networks_have_the_papers_sizes() -> None:
    fc = FcHead(384, 47, 3)
    assert fc.hidden.weight.shape == (128, 50 * 384)
    cnn = CnnHead(384, 47, 3)
    assert cnn.filters.weight.shape == (128, 384, 5)
    assert LstmHead(384, 47, 3).lstm.hidden_size == 128
    words = build_head({"head": "lstm", "unit": "words", "dimension": 100, "document_length": 9, "summary_length": 2})
    assert words.lstm.hidden_size == 25


@pytest.mark.parametrize("name", ["fc", "cnn", "lstm"])
def test_sequences_are_padded_and_cut_to_the_given_lengths(name: str) -> None:
    head = build_head(
        {"head": name, "unit": "sentences", "dimension": D, "document_length": 4, "summary_length": 2}
    ).eval()
    long, short = made_up_text(9, 1), made_up_text(1, 2)
    batch = head.collate([PairInput(long, short), PairInput(short, long)])["sequence"]
    assert batch.shape == (2, 6, D)
    assert np.allclose(batch[0, :4], long.vectors[:4]) and np.allclose(batch[0, 4], short.vectors[0])
    assert not batch[0, 5].any() and not batch[1, 1:4].any()
    assert head({"sequence": batch}).shape == (2,)


def test_token_matches_are_the_best_cosines_found_one_by_one() -> None:
    document, summary = made_up_text(6, 3), made_up_text(2, 4)
    found = match_tokens(document, summary, neighbours=2)
    for place, token in enumerate(summary.tokens):
        cosines = [float(token @ other) for other in document.tokens]
        owner = summary.vectors[summary.owners[place]]
        near = sorted(range(6), key=lambda n: -float(owner @ document.vectors[n]))[:2]
        local = [cosine for cosine, sentence in zip(cosines, document.owners, strict=True) if sentence in near]
        assert found[place] == pytest.approx([max(cosines), max(local)], abs=1e-6)


def test_support_and_coverage_are_the_best_matches_of_each_side() -> None:
    document, summary = made_up_text(5, 5), made_up_text(3, 6)
    found = align(document, summary)
    named = dict(zip(FEATURES, found.features.tolist(), strict=True))
    best = [max(float(s @ d) for d in document.vectors) for s in summary.vectors]
    covered = [max(float(s @ d) for s in summary.vectors) for d in document.vectors]
    assert found.support == pytest.approx(best, abs=1e-6)
    assert named["support"] == pytest.approx(np.mean(best), abs=1e-6)
    assert named["least_support"] == pytest.approx(min(best), abs=1e-6)
    assert named["coverage"] == pytest.approx(np.mean(covered), abs=1e-6)


def test_the_order_of_the_documents_sentences_changes_nothing() -> None:
    document, summary = made_up_text(7, 7), made_up_text(3, 8)
    torch.manual_seed(0)
    head = AlignHead(D).eval()
    with torch.inference_mode():
        first = head(head.collate([PairInput(document, summary)]))
        second = head(head.collate([PairInput(shuffled(document), summary)]))
    assert float(first) == pytest.approx(float(second), abs=1e-5)


def test_what_else_is_in_the_batch_changes_nothing() -> None:
    pairs = [PairInput(made_up_text(n + 1, n), made_up_text(1 + n % 4, 50 + n, tokens=3 + n)) for n in range(6)]
    torch.manual_seed(1)
    head = AlignHead(D).eval()
    with torch.inference_mode():
        together = head(head.collate(pairs))
        alone = torch.cat([head(head.collate([pair])) for pair in pairs])
    assert together.numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_quality_never_falls_when_a_feature_rises() -> None:
    torch.manual_seed(2)
    head = AlignHead(D).eval()
    features = torch.randn(200, len(FEATURES))
    with torch.inference_mode():
        base = head.quality(features)
        for place in range(len(FEATURES)):
            risen = features.clone()
            risen[:, place] += 0.5
            assert bool((head.quality(risen) >= base).all()), FEATURES[place]


def test_the_logit_of_the_product_is_the_products_logit() -> None:
    torch.manual_seed(3)
    head = AlignHead(D)
    quality, intact = torch.tensor([-2.0, 0.3, 4.0]), torch.tensor([1.0, 0.9, 0.2])
    theta = head.tolerance
    expected = quality.sigmoid() * (1 - torch.relu(1 - intact - theta) / (1 - theta))
    assert head.combine(quality, intact).sigmoid().numpy() == pytest.approx(expected.numpy(), abs=1e-6)


def test_language_without_damage_costs_nothing_at_any_length() -> None:
    head = AlignHead(D).eval()
    with torch.no_grad():
        head.damage.weight.zero_()
        head.damage.bias.fill_(-50.0)
        for tokens in (1, 10, 400):
            pair = PairInput(made_up_text(3, 1), made_up_text(1, 2, tokens=tokens))
            assert float(head.parts(head.collate([pair]))[1]) == pytest.approx(1.0)


def test_an_unknown_head_is_an_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="fc, cnn, lstm, align, but got 'mlp'"):
        build_head({"head": "mlp", "dimension": 3, "document_length": 1, "summary_length": 1})

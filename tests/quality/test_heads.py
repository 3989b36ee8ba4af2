"""Heads: the paper's sizes, and that batches are only batches."""

from __future__ import annotations

import pytest
import torch
from made_up import DIMENSION, made_up_text

from movers.quality.heads import CnnHead, FcHead, LstmHead, PairInput, build_head


def test_the_papers_networks_have_the_papers_sizes() -> None:
    assert FcHead(384, 47, 3).hidden.weight.shape == (128, 50 * 384)
    assert CnnHead(384, 47, 3).filters.weight.shape == (128, 384, 5)
    assert LstmHead(384, 47, 3).lstm.hidden_size == 128
    words = build_head({"head": "lstm", "unit": "words", "dimension": 100, "document_length": 9, "summary_length": 2})
    assert words.lstm.hidden_size == 25


@pytest.mark.parametrize("name", ["fc", "cnn", "lstm"])
def test_what_else_is_in_the_batch_changes_nothing(name: str) -> None:
    pairs = [PairInput(made_up_text(n + 1, n), made_up_text(1 + n % 4, 50 + n, tokens=3 + n)) for n in range(6)]
    torch.manual_seed(1)
    lengths = {"document_length": 4, "summary_length": 2}
    head = build_head({"head": name, "unit": "sentences", "dimension": DIMENSION, **lengths}).eval()
    with torch.inference_mode():
        together = head(head.collate(pairs))
        alone = torch.cat([head(head.collate([pair])) for pair in pairs])
    assert together.numpy() == pytest.approx(alone.numpy(), abs=1e-5)

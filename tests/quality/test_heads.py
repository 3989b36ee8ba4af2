"""Heads: the paper's sizes, and that batches are only batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_up import DIMENSION, made_up_text

from movers.quality.heads import Head


def config(head: Any, unit: Any = "sentences", dimension: int = 384, lengths: tuple[int, int] = (47, 3)) -> Any:
    return {
        "head": head, "unit": unit, "dimension": dimension, "document_length": lengths[0], "summary_length": lengths[1],
    }  # fmt: skip


def test_the_papers_networks_have_the_papers_sizes() -> None:
    assert Head(config("fc")).body.weight.shape == (128, 50 * 384)
    assert Head(config("cnn")).body.weight.shape == (128, 384, 5)
    assert Head(config("lstm")).body.hidden_size == 128
    assert Head(config("lstm", unit="words")).body.hidden_size == 25


@pytest.mark.parametrize("name", ["fc", "cnn", "lstm"])
def test_what_else_is_in_the_batch_changes_nothing(name: str) -> None:
    pairs = [(made_up_text(n + 1, n).vectors, made_up_text(1 + n % 4, 50 + n).vectors) for n in range(6)]
    torch.manual_seed(1)
    head = Head(config(name, dimension=DIMENSION, lengths=(4, 2))).eval()
    with torch.inference_mode():
        together = head(sequence=torch.stack([head.sequence(*pair) for pair in pairs]))["logits"].sigmoid()
    assert [head.score(*pair) for pair in pairs] == pytest.approx(together.tolist(), abs=1e-6)

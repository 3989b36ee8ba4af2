"""The losses of self-critical training, against loops written out by hand."""

from __future__ import annotations

import math

import pytest
import torch

import movers
from movers.rewards import likelihood_loss, mixed_loss, rising_weight, self_critical_loss, token_log_probs


def made_up(rows: int = 4, width: int = 6, words: int = 9) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(5)
    logits = torch.randn(rows, width, words, generator=draw, dtype=torch.float64).requires_grad_()
    ids = torch.randint(words, (rows, width), generator=draw)
    lengths = torch.tensor([6, 1, 3, 4])
    return logits, ids, (torch.arange(width) < lengths[:, None]).long()


REWARDS, BASELINES = [0.9, 0.2, 0.5, 0.1], [0.4, 0.6, 0.5, 0.3]


@pytest.mark.parametrize("per_token", [False, True])
def test_the_loss_is_that_of_a_loop_over_rows_and_tokens(per_token: bool) -> None:
    logits, ids, mask = made_up()
    loss = self_critical_loss(token_log_probs(logits, ids), mask, REWARDS, BASELINES, per_token=per_token)
    total = 0.0
    for row in range(4):
        length = int(mask[row].sum())
        log_p = 0.0
        for step in range(length):
            scores = logits[row, step].tolist()
            log_p += scores[ids[row, step]] - math.log(sum(math.exp(score) for score in scores))
        total += (BASELINES[row] - REWARDS[row]) * log_p / (length if per_token else 1)
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-6)


def test_the_gradient_is_that_of_reinforce_with_the_greedy_baseline() -> None:
    # Eq. 11: −(r(ŷ) − r(ỹ)) ∇ log p(ŷ), and ∇ log p over logits is one-hot minus softmax
    logits, ids, mask = made_up()
    self_critical_loss(token_log_probs(logits, ids), mask, REWARDS, BASELINES).backward()
    probabilities = logits.detach().softmax(-1)
    expected = torch.nn.functional.one_hot(ids, 9) - probabilities
    advantage = torch.tensor(REWARDS) - torch.tensor(BASELINES)
    expected = -advantage[:, None, None] * expected * mask[..., None] / 4
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, expected, rtol=1e-5, atol=1e-7)


def test_what_stands_at_padded_places_does_not_matter() -> None:
    logits, ids, mask = made_up()
    log_probs = token_log_probs(logits, ids).detach()
    spoiled = log_probs.masked_fill(mask == 0, -math.inf).requires_grad_()
    loss = self_critical_loss(spoiled, mask, REWARDS, BASELINES)
    torch.testing.assert_close(loss.detach(), self_critical_loss(log_probs, mask, REWARDS, BASELINES))
    loss.backward()
    assert spoiled.grad is not None and torch.isfinite(spoiled.grad).all()


def test_rows_without_a_reward_do_not_count() -> None:
    logits, ids, mask = made_up()
    log_probs = token_log_probs(logits, ids)
    some = self_critical_loss(log_probs, mask, [0.9, None, 0.5, 0.1], [0.4, 0.6, math.nan, 0.3])
    kept = torch.tensor([0, 3])
    torch.testing.assert_close(some, self_critical_loss(log_probs[kept], mask[kept], [0.9, 0.1], [0.4, 0.3]))
    none = self_critical_loss(log_probs, mask, [None] * 4, BASELINES)
    none.backward()
    assert float(none.detach()) == 0.0 and logits.grad is not None and not logits.grad.any()


def test_likelihood_is_the_cross_entropy_summed_over_tokens() -> None:
    logits, ids, mask = made_up()
    labels = ids.masked_fill(mask == 0, -100)
    summed = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    log_probs = token_log_probs(logits, ids)
    assert float(likelihood_loss(log_probs, mask).detach()) == pytest.approx(float(summed.detach()) / 4, rel=1e-6)


def test_mixing_follows_both_papers() -> None:
    first, second = torch.tensor(2.0), torch.tensor(10.0)
    assert float(mixed_loss(first, second, 0.3)) == pytest.approx(0.3 * 2 + 0.7 * 10)
    weights = [rising_weight(step, 50) for step in range(60)]
    assert weights[0] == 0.97 and weights == sorted(weights) and weights[49] == weights[-1] == pytest.approx(0.9984)
    with pytest.raises(movers.InputError, match="weight: expected a number from 0 to 1, but got 1.5"):
        mixed_loss(first, second, 1.5)


def test_shapes_are_checked() -> None:
    with pytest.raises(movers.InputError, match=r"log_probs, mask: expected two tensors of shape \(B, T\)"):
        self_critical_loss(torch.zeros(2, 3), torch.ones(2, 4), [0, 0], [0, 0])
    with pytest.raises(movers.InputError, match=r"reward: expected one number per row, 2, but got \(3,\)"):
        self_critical_loss(torch.zeros(2, 3), torch.ones(2, 3), [0, 0, 0], [0, 0])

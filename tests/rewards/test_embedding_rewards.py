"""Rewards on a generator's own token embeddings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from scipy.optimize import linear_sum_assignment
from tiny import tiny_tokenizer

import movers
from movers.rewards import EmbeddingReward, embedding_reward


@pytest.fixture(scope="module")
def model() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    size = len(tiny_tokenizer())
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=16, vocab_size=size, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval()


def made(model: transformers.PreTrainedModel, alignment: str) -> EmbeddingReward:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "[CLS]", "eos_token": "[SEP]"})
    return embedding_reward(model, alignment, tokenizer=tokenizer)  # type: ignore[arg-type]


def test_hungarian_is_a_one_to_one_match_of_the_input_embeddings(model: transformers.PreTrainedModel) -> None:
    first, second = [20, 21, 22, 23], [22, 30, 21]
    table = model.get_input_embeddings().weight.detach().double().numpy()
    x, y = table[first], table[second]
    similarity = (x / np.linalg.norm(x, axis=1)[:, None]) @ (y / np.linalg.norm(y, axis=1)[:, None]).T
    matched = similarity[linear_sum_assignment(-similarity)].sum()
    expected = 2 * (matched / 4) * (matched / 3) / (matched / 4 + matched / 3)
    found = made(model, "hungarian").score_ids([first], [second])
    assert float(found[0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("alignment", ["hungarian", "emd", "greedy"])
def test_ids_texts_and_trainers_calls_agree(model: transformers.PreTrainedModel, alignment: str) -> None:
    reward = made(model, alignment)
    texts, references = ["the cat sat on the mat", "a dog runs"], ["the cat is on a mat", "a big dog runs"]
    ids = [reward.encode(text) for text in texts]
    by_ids = reward.score_ids(ids, [reward.encode(text) for text in references])
    torch.testing.assert_close(reward.score_texts(texts, references), by_ids)
    called = reward(completions=texts, reference=references, prompts=[""] * 2)
    assert called == pytest.approx(by_ids.tolist())
    ended = [[*row, 2, 0, 0] for row in ids]  # end token and padding carry no mass
    assert reward(completions=texts, completion_ids=ended, reference=references) == pytest.approx(by_ids.tolist())
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ended], batch_first=True)
    torch.testing.assert_close(reward.score_ids(padded, [reward.encode(text) for text in references]), by_ids)


def test_greedy_alignment_pays_for_repeated_tokens_and_the_optimal_ones_do_not(
    model: transformers.PreTrainedModel,
) -> None:
    reference = [[20, 21, 22]]
    for alignment in ("hungarian", "emd", "greedy"):
        found = float(made(model, alignment).score_ids([[20, 21, 22, 22, 22]], reference)[0])
        assert (found == pytest.approx(1.0)) == (alignment == "greedy")


@pytest.mark.parametrize("alignment", ["hungarian", "emd", "greedy"])
def test_lower_bound_references_and_extreme_lengths(model: transformers.PreTrainedModel, alignment: str) -> None:
    reward = made(model, alignment)
    assert reward(completions=["", " . ", "cat"], reference=["a cat"] * 3)[:2] == [0.0, 0.0]
    one, best, none = reward(completions=["a cat"] * 3, reference=["a dog", ["a dog", "a cat"], None])
    assert one < best == pytest.approx(1.0) and none is None
    found = reward.score_ids([[20] * 900, list(range(20, 60)) * 50, [20]], [[20, 21]] * 3)
    assert torch.isfinite(found).all() and (found >= 0).all()


def test_embeddings_are_read_as_they_are_now(model: transformers.PreTrainedModel) -> None:
    reward = made(model, "hungarian")
    before = reward.score_ids([[20, 21]], [[30, 31]])
    table = model.get_input_embeddings().weight
    kept = table.detach().clone()
    with torch.no_grad():
        table[20] = table[30]
        table[21] = table[31]
    now = float(reward.score_ids([[20, 21]], [[30, 31]])[0])
    assert now == pytest.approx(1.0, abs=1e-6) and float(before[0]) < 0.9
    with torch.no_grad():
        table.copy_(kept)


def test_texts_need_a_tokenizer(model: transformers.PreTrainedModel) -> None:
    with pytest.raises(movers.InputError, match="tokenizer: expected one for texts, but got None"):
        embedding_reward(model).score_texts(["a"], ["b"])
    with pytest.raises(movers.InputError, match="alignment: expected one of 'hungarian', 'emd', 'greedy'"):
        embedding_reward(model, "sinkhorn")  # type: ignore[arg-type]

"""Rewards: what TRL passes and gets back, scales and lower bounds, what training could exploit; the losses."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from scipy.optimize import linear_sum_assignment
from tiny import tiny_model, tiny_table, tiny_tokenizer

import movers
from movers.errors import InputError
from movers.registry import METRICS
from movers.rewards import (
    EmbeddingReward,
    Reward,
    embedding_reward,
    likelihood_loss,
    mixed_loss,
    self_critical_loss,
    token_log_probs,
)

PAIRWISE = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
QUALITY = "reference_free_summary_quality"
SENTENCES = {
    "A man in suburban Boston is selling snow online.": "A man near Boston sells snow to people in warmer states.",
    "The cat sat on the mat.": "A cat was sitting on a mat.",
    "Six officers were suspended.": "Six officers have been suspended with pay while the authorities investigate.",
    "The boa swallowed an animal.": "It was a picture of a boa constrictor in the act of swallowing an animal.",
}
TEXT, REFERENCE = next(iter(SENTENCES.items()))
UNRELATED = [
    "The court adjourned until Tuesday.", "Bake the bread for forty minutes.", "Her violin needs new strings.",
    "Share prices fell in early trade.", "Whales sing at low frequencies.", "He forgot the password again.",
]  # fmt: skip
DOCUMENT = "The council met on Monday. It voted to close the old bridge. Repairs would cost too much."
by_name: Callable[[str], Reward] = cache(movers.rewards.reward)  # one per metric for all tests
reward = movers.rewards.reward


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_completion_without_words_earns_the_lower_bound_and_none_earns_less(name: str) -> None:
    wordless = ["", "   \n", "...", "?! — …", "***"]
    other = ["the", "42", "a a a", "The court adjourned.", "snow " * 300, "Он продаёт снег.", "x", "😀 snow"]
    rewards = by_name(name).score([*wordless, *other], [REFERENCE] * 13)
    assert rewards[:5] == [by_name(name).lower] * 5 == [0.0 if name in ("wms", "sms", "swms") else -1.0] * 5
    assert all(math.isfinite(value) and value >= by_name(name).lower for value in rewards)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_good_sentence_earns_at_least_as_much_as_its_repetition(name: str) -> None:
    references = list(SENTENCES.values())
    once = by_name(name).score(list(SENTENCES), references)
    for count in (2, 3, 7):
        again = by_name(name).score([" ".join([text] * count) for text in SENTENCES], references)
        assert all(first >= second for first, second in zip(once, again, strict=True))


def test_a_repetition_that_the_reference_has_too_is_no_fault() -> None:
    song = "Row the boat. Row the boat."
    rewards = by_name("bertscore_hungarian").score([song, "Row the boat."], [song] * 2)
    assert rewards[0] == pytest.approx(1.0, abs=1e-5) and rewards[0] > rewards[1]


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_penalty_makes_a_phrase_with_its_copies_and_a_word_more_earn_less(name: str) -> None:
    phrase = "the storm hit the village"
    reference = f"{phrase} on Monday and villagers cleared the snow from the baker's shop before noon."
    texts = [phrase, f"{phrase} {phrase} and", f"{phrase} {phrase} {phrase} and", reference, "..."]
    plain = by_name(name).score(texts, [reference] * 5)
    penalised = reward(name, repetition_penalty=0.5).score(texts, [reference] * 5)
    once, twice, thrice, *_ = penalised
    assert once > twice > thrice > penalised[-1] == by_name(name).lower
    assert [plain[0], *plain[3:]] == pytest.approx([penalised[0], *penalised[3:]])
    assert plain[1] > plain[0] or name != "bertscore_hungarian"  # why there is a penalty
    assert reward(name, repetition_penalty=1).score(texts[1:2], texts[1:2]) == pytest.approx([1.0], abs=1e-5)


def test_stop_words_alone_earn_the_lower_bound_unless_references_have_nothing_else() -> None:
    references = [[REFERENCE], ["it was"], [REFERENCE, "it was"], ["it was"]]
    lower, equal, mixed, content = by_name("sms").score(["it was", "it was", "it was", "snow"], references)
    assert lower == mixed == 0.0 < content < equal == pytest.approx(1.0)


@pytest.mark.parametrize("name", PAIRWISE)
def test_unrelated_and_equal_texts_are_where_the_scale_says(name: str) -> None:
    pairs = list(itertools.combinations(UNRELATED, 2))
    rewards = by_name(name).score([first for first, _ in pairs], [second for _, second in pairs])
    expected = (math.exp(-1), 0.2) if name in ("wms", "sms", "swms") else (0.0, 0.1)
    assert sum(rewards) / len(rewards) == pytest.approx(expected[0], abs=expected[1])
    equal, good, stop, unrelated = by_name(name).score([REFERENCE, TEXT, "the", UNRELATED[0]], [REFERENCE] * 4)
    assert equal == pytest.approx(1.0, abs=1e-5) and good > max(stop, unrelated)


def test_log_is_the_negative_distance_in_units_of_the_temperature() -> None:
    for options in ({}, {"temperature": 20}):
        result = movers.wms([TEXT], [REFERENCE], **options)
        log = reward("wms", transform="log", **options)
        expected = [-result["distances"][0] / result["temperature"], -4.0]
        assert log.score([TEXT, "..."], [REFERENCE] * 2) == pytest.approx(expected)


def test_plain_and_conversational_completions_earn_the_same() -> None:
    completions: list[object] = [
        TEXT,
        [{"role": "assistant", "content": TEXT}],
        [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": TEXT}],
        [{"role": "assistant", "content": [{"type": "text", "text": TEXT}]}],
        [{"role": "assistant", "content": None, "tool_calls": []}],
    ]
    columns = {"prompts": ["p"] * 5, "completion_ids": [[1]] * 5, "reference": [REFERENCE] * 5, "trainer_state": None}
    *same, tool = by_name("sms")(completions=completions, **columns)
    assert same == [same[0]] * 4 and tool == 0.0


def test_rows_have_one_reference_or_several_or_none() -> None:
    one, best, none, empty, blank = reward("sms", reference_column="gold")(
        completions=[TEXT] * 5, gold=["It rains.", ["It rains.", TEXT], None, [], " "], reference=[None] * 5
    )
    assert best == pytest.approx(1.0) and one < best
    assert none is empty is blank is None


def test_the_reference_free_metric_reads_the_sources_and_has_aspects() -> None:
    texts = ["The council closes the old bridge.", "The council closes the old zoo."]
    expected = movers.reference_free_summary_quality(texts, sources=[DOCUMENT] * 2)
    *scores, blank, none = reward(QUALITY, source_column="document")(
        completions=[*texts, "...", "It votes."], document=[DOCUMENT] * 3 + [None]
    )
    assert scores == pytest.approx(expected["scores"]) and blank == 0.0 and none is None
    coverage = reward(QUALITY, aspect="coverage").score(texts, sources=[DOCUMENT] * 2)
    assert coverage == pytest.approx(expected["coverage"])
    both = reward({f"{QUALITY}[aspect=faithfulness]": 2.0, f"{QUALITY}[aspect=coverage]": 1.0})
    added = [2 * one + other for one, other in zip(expected["faithfulness"], expected["coverage"], strict=True)]
    assert both.score(texts, sources=[DOCUMENT] * 2) == pytest.approx(added)


def test_several_metrics_are_added_up_with_weights() -> None:
    weights = {"bertscore_hungarian": 0.25, "bertscore_emd[rescale=false]": 2.0, "sms": 1.0, "sms[temperature=2]": 1.0}
    alone = [by_name(name).score([TEXT], [REFERENCE])[0] for name in weights]
    together = reward(weights)
    expected = math.fsum(weight * value for weight, value in zip(weights.values(), alone, strict=True))
    assert together.score([TEXT], [REFERENCE])[0] == pytest.approx(expected, abs=1e-6)
    assert reward(list(weights)).score([TEXT], [REFERENCE])[0] == pytest.approx(math.fsum(alone) / 4, abs=1e-6)
    assert together.score(["."], [REFERENCE]) == [-2.25] == [together.lower]
    assert together.__name__ == "bertscore_hungarian+bertscore_emd[rescale=false]+sms+sms[temperature=2]"


def test_a_reward_has_a_name_and_can_be_pickled() -> None:
    both = reward(["wms", "sms"], name="movers")
    before = both.score([TEXT], [REFERENCE])
    copy = pickle.loads(pickle.dumps(both))
    assert copy.__name__ == "movers" and copy.score([TEXT], [REFERENCE]) == before


def test_a_warning_comes_once_for_each_metric(vector_file: Callable[..., Path]) -> None:
    path = str(vector_file(tiny_table(["snow", "melts"])))
    both = reward(["wms", "sms"], model=path, temperature=1)
    with pytest.warns(UserWarning, match="1 of 1 rows have words or pieces") as caught:
        both.score(["odd snow"], ["snow"])
    assert len(caught) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both.score(["odd snow"] * 2, ["snow"] * 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reward("smss"), "did you mean 'sms'"),
        (lambda: reward("wms", idf="corpus"), "'corpus' changes with every batch"),
        (lambda: reward("moverscore", transform="log"), "transform: expected None"),
        (lambda: reward({"wms": "x"}), "weights above zero, but got {'wms': 'x'}"),  # type: ignore[dict-item]
        (
            lambda: reward(QUALITY, aspect="beauty").score(["rain"], sources=["snow"]),
            "aspect: expected one of None, 'faithfulness', 'coverage', 'non_repetition', but got 'beauty'",
        ),
        (lambda: reward(QUALITY).score(["a"], ["b"]), "source: expected one entry per completion, 1, but got NoneType"),
        (lambda: reward("sms")(completions=["a"], answer=["b"]), "expected a column 'reference', but got answer"),
        (lambda: reward("sms")(completions=[3], reference=["b"]), r"completions\[0\]: expected a text"),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


ALIGNMENTS = ["hungarian", "emd", "greedy"]


@pytest.fixture(scope="module")
def model() -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=len(tiny_tokenizer()), **special)
    return transformers.GPT2LMHeadModel(config).eval()


def own(model: transformers.PreTrainedModel, alignment: str) -> EmbeddingReward:
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
    assert float(own(model, "hungarian").score_ids([first], [second])[0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_ids_texts_and_padded_tensors_agree(model: transformers.PreTrainedModel, alignment: str) -> None:
    reward, tokenizer = own(model, alignment), tiny_tokenizer()
    texts, references = ["the cat sat on the mat", "a dog runs"], ["the cat is on a mat", "a big dog runs"]
    ids, others = (tokenizer(side, add_special_tokens=False)["input_ids"] for side in (texts, references))
    by_ids = reward.score_ids(ids, others)
    assert reward(completions=texts, reference=references, prompts=[""] * 2) == pytest.approx(by_ids.tolist())
    ended = [[*row, 2, 0, 0] for row in ids]  # end token and padding carry no mass
    assert reward(completions=texts, completion_ids=ended, reference=references) == pytest.approx(by_ids.tolist())
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ended], batch_first=True)
    torch.testing.assert_close(reward.score_ids(padded, others), by_ids)


@pytest.mark.parametrize("alignment", ["hungarian", "emd"])
def test_the_papers_preset_compares_the_token_embeddings_of_the_generator(alignment: str) -> None:
    generator, tokenizer = tiny_model("t5"), tiny_tokenizer("t5")
    texts, references = ["the cat sat on the mat", "a dog"], ["a cat is on the mat", "the big dog runs"]
    metric = METRICS[f"bertscore_{alignment}"].function
    result = metric(texts, references, preset="paper", model=(generator, tokenizer))
    expected = embedding_reward(generator, alignment, tokenizer=tokenizer)(completions=texts, reference=references)
    assert result["scores"] == pytest.approx(expected, abs=1e-5) and "|layer:0|" in result["signature"]


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_repeated_tokens_empty_completions_and_missing_references(
    model: transformers.PreTrainedModel, alignment: str
) -> None:
    reward = own(model, alignment)
    repeated = float(reward.score_ids([[20, 21, 22, 22, 22]], [[20, 21, 22]])[0])
    assert (repeated == pytest.approx(1.0)) == (alignment == "greedy")
    assert reward(completions=["", " . "], reference=["a cat"] * 2) == [0.0, 0.0]
    one, best, none = reward(completions=["a cat"] * 3, reference=["a dog", ["a dog", "a cat"], None])
    assert one < best == pytest.approx(1.0) and none is None
    extreme = reward.score_ids([[20] * 900, list(range(20, 60)) * 50, [20], []], [[20, 21]] * 4)
    assert torch.isfinite(extreme).all() and (extreme >= 0).all()


def test_embeddings_are_read_as_they_are_now(model: transformers.PreTrainedModel) -> None:
    copy = transformers.GPT2LMHeadModel(model.config)
    reward = own(copy, "hungarian")
    before, table = reward.score_ids([[20, 21]], [[30, 31]]), copy.get_input_embeddings().weight
    with torch.no_grad():
        table[20:22] = table[30:32]
    after = reward.score_ids([[20, 21]], [[30, 31]])
    assert float(before[0]) < 0.9 and float(after[0]) == pytest.approx(1.0, abs=1e-6)


REWARDS, BASELINES = [0.9, 0.2, 0.5, 0.1], [0.4, 0.6, 0.5, 0.3]


def made_up() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits (4, 6, 9), ids and mask (4, 6)."""
    draw = torch.Generator().manual_seed(5)
    logits = torch.randn(4, 6, 9, generator=draw, dtype=torch.float64).requires_grad_()
    ids = torch.randint(9, (4, 6), generator=draw)
    return logits, ids, (torch.arange(6) < torch.tensor([6, 1, 3, 4])[:, None]).long()


def test_the_gradient_is_that_of_reinforce_with_the_greedy_baseline() -> None:
    # Eq. 11: −(r(ŷ) − r(ỹ)) ∇ log p(ŷ), and ∇ log p over logits is one-hot minus softmax
    logits, ids, mask = made_up()
    self_critical_loss(token_log_probs(logits, ids), mask, REWARDS, BASELINES).backward()
    expected = torch.nn.functional.one_hot(ids, 9) - logits.detach().softmax(-1)
    advantage = torch.tensor(REWARDS) - torch.tensor(BASELINES)
    expected = -advantage[:, None, None] * expected * mask[..., None] / 4
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, expected, rtol=1e-5, atol=1e-7)


def test_masked_positions_and_rows_without_a_reward_do_not_count() -> None:
    logits, ids, mask = made_up()
    log_probs = token_log_probs(logits, ids)
    spoiled = log_probs.detach().masked_fill(mask == 0, -math.inf).requires_grad_()
    loss = self_critical_loss(spoiled, mask, [0.9, None, 0.5, 0.1], [0.4, 0.6, math.nan, 0.3])
    rows = torch.tensor([0, 3])
    torch.testing.assert_close(loss, self_critical_loss(log_probs[rows], mask[rows], [0.9, 0.1], [0.4, 0.3]))
    loss.backward()
    assert spoiled.grad is not None and torch.isfinite(spoiled.grad).all()
    none = self_critical_loss(log_probs, mask, [None] * 4, BASELINES)
    none.backward()
    assert float(none.detach()) == 0.0 and logits.grad is not None and not logits.grad.any()


def test_likelihood_is_the_cross_entropy_summed_over_tokens_and_mixing_is_linear() -> None:
    logits, ids, mask = made_up()
    labels = ids.masked_fill(mask == 0, -100)
    summed = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum").detach()
    assert float(likelihood_loss(token_log_probs(logits, ids), mask).detach()) == pytest.approx(
        float(summed) / 4, rel=1e-6
    )
    assert float(mixed_loss(torch.tensor(2.0), torch.tensor(10.0), 0.3)) == pytest.approx(0.3 * 2 + 0.7 * 10)

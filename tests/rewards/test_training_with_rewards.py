"""`movers train reward`: what is trained rises, for seq2seq and causal models; runs can be killed and go on."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from test_training_loop import Killed, kills
from tiny import TINY_WORDS, tiny_tokenizer

import movers
from movers.cli import main
from movers.quality.data import Pair
from movers.rewards import embedding_reward
from movers.rewards.generator import load_generator
from movers.rewards.training import RewardOptions, read_prompts, train_reward

WORDS = TINY_WORDS[2:14]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny model of each kind, in folders of their own."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    torch.manual_seed(1)
    size = len(tokenizer)
    causal = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=1, n_head=2, n_embd=32, n_positions=64, vocab_size=size, bos_token_id=1,
                                eos_token_id=2, pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    )  # fmt: skip
    seq2seq = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=size, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2,
                              decoder_start_token_id=0, pad_token_id=0, eos_token_id=2, dropout_rate=0.0)
    )  # fmt: skip
    found = {}
    for name, model in (("causal", causal), ("seq2seq", seq2seq)):
        found[name] = folder / name
        model.save_pretrained(found[name])
        tokenizer.save_pretrained(found[name])
    return found


def sentences(count: int = 60) -> list[Pair]:
    """Two words, and a sentence with them."""
    words = [(WORDS[number % 12], WORDS[(number + number // 12 + 1) % 12]) for number in range(count)]
    return [Pair(f"{first} {second}", f"it is {first} on the {second}") for first, second in words]


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_log_probabilities_are_those_of_one_text_at_a_time(models: dict[str, Path], kind: str) -> None:
    generator = load_generator(models[kind], 16, 6)
    generator.model.eval().requires_grad_(False)
    prompts, outputs = ["the cat", "a big red dog runs"], [generator.encode("sat on it"), generator.encode("mat")]
    found, mask = generator.log_probs(prompts, outputs)
    for row in (0, 1):
        target = [*outputs[row], generator.end]
        alone = 0.0
        for step in range(len(target)):
            prompt = generator.tokenizer(prompts[row], add_special_tokens=kind == "seq2seq")["input_ids"]
            if kind == "causal":
                logits = generator.model(torch.tensor([[*prompt, *target[:step]]])).logits[0, -1]
            else:
                begun = torch.tensor([[0, *target[:step]]])
                logits = generator.model(torch.tensor([prompt]), decoder_input_ids=begun).logits[0, -1]
            alone += float(logits.log_softmax(-1)[target[step]])
        assert int(mask[row].sum()) == len(target)
        assert float((found[row] * mask[row]).sum()) == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_greedy_outputs_are_the_likeliest_tokens_and_samples_follow_the_distribution(
    models: dict[str, Path], kind: str
) -> None:
    generator = load_generator(models[kind], 16, 1)
    prompt = "the cat"
    ids = torch.tensor([generator.tokenizer(prompt, add_special_tokens=kind == "seq2seq")["input_ids"]])
    with torch.no_grad():
        more = {} if kind == "causal" else {"decoder_input_ids": torch.tensor([[0]])}
        likely = generator.model.eval()(ids, **more).logits[0, -1].softmax(-1)
    best = int(likely.argmax())
    assert generator.generate([prompt]) == [[] if best == generator.end else [best]]
    torch.manual_seed(0)
    sampled = [row for _ in range(20) for row in generator.generate([prompt] * 100, sample=True)]
    share = sum(row == ([] if best == generator.end else [best]) for row in sampled) / len(sampled)
    spread = math.sqrt(float(likely[best] * (1 - likely[best])) / len(sampled))
    assert abs(share - float(likely[best])) < 5 * spread


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_rewards_on_own_embeddings_take_a_folder_of_either_kind(models: dict[str, Path], kind: str) -> None:
    reward = embedding_reward(str(models[kind]), "emd")
    assert float(reward.score_texts(["the cat sat"], ["the cat sat"])[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_the_trained_reward_rises_on_held_out_pairs(models: dict[str, Path], tmp_path: Path, kind: str) -> None:
    options = RewardOptions(
        reward="embedding[alignment=hungarian]", mle_epochs=4, epochs=4, rate=0.005, weight=0.5, new_tokens=8
    )
    record = train_reward(sentences(), models[kind], tmp_path / "out", options)
    scores = record["scores"]
    assert scores["reward"]["reward"] > scores["before"]["reward"] + 0.1
    assert set(scores) == {"before", "likelihood", "reward"} and {"wms", "bertscore_emd"} <= set(scores["reward"])
    losses = [entry["validation_loss"] for entry in record["curves"]["reward"]]
    assert [-entry["reward"] for entry in record["curves"]["reward"]] == pytest.approx(losses)
    assert (tmp_path / "out" / "reward_curve.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out" / "training.json").read_text())["scores"] == scores
    again = load_generator(tmp_path / "out", 16, 4)
    assert again.encodes == (kind == "seq2seq")


def test_a_run_killed_at_any_write_ends_with_the_same_weights(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RewardOptions(reward="wms[temperature=15]", mle_epochs=1, epochs=2, rate=0.01, new_tokens=3)
    train_reward(sentences(20), models["causal"], tmp_path / "whole", options)
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    for number, _ in enumerate(kills(monkeypatch)):
        folder = tmp_path / str(number)
        with suppress(Killed):
            train_reward(sentences(20), models["causal"], folder, options)
        monkeypatch.undo()
        train_reward(sentences(20), models["causal"], folder, options)
        found = load_file(folder / "model.safetensors")
        assert all(torch.equal(found[name], value) for name, value in whole.items())


@pytest.mark.parametrize("reward", ["bleu", "rouge[variant=rouge1]", "wms,sms", "reference_free_summary_quality"])
def test_any_reward_can_be_trained_with(models: dict[str, Path], tmp_path: Path, reward: str) -> None:
    record = train_reward(
        sentences(12), models["causal"], tmp_path / "out", RewardOptions(reward=reward, new_tokens=3, batch=8)
    )
    assert math.isfinite(record["curves"]["reward"][0]["training_loss"])


def test_the_command_prints_all_metrics_before_and_after(
    models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "pairs.jsonl"
    rows = [{"prompt": pair.document, "answer": pair.summary} for pair in sentences(20)]
    data.write_text("\n".join(json.dumps(row) for row in rows))
    command = ["train", "reward", str(models["causal"]), "--data", str(data), "-o", str(tmp_path / "out"), "-q"]
    assert main([*command, "--reward", "sms", "--new-tokens", "3", "--weight", "0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["metric", "before", "reward"]
    assert {line.split()[0] for line in lines[3:]} >= {"reward", "wms", "sms", "swms", "moverscore", "bertscore_emd"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": 1.5}, "weight: expected a number from 0 to 1, but got 1.5"),
        ({"reward": "smss"}, "did you mean 'sms'"),
        ({"reward": "embedding[alignment=best]"}, "alignment=hungarian"),
        ({"rate": -1.0}, "rate: expected a number above zero"),
    ],
)
def test_mistakes_in_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(movers.InputError, match=message):
        RewardOptions.parse("train reward", options)


def test_mistakes_in_data_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "reference": "b"}\n{"prompt": "a", "reference": 3}\n')
    with pytest.raises(movers.InputError, match=r"reference\[1\]: expected a text, but got 3"):
        read_prompts(str(path))
    with pytest.raises(movers.InputError, match="no folder|expected a model folder"):
        load_generator(tmp_path / "none", 8, 8)

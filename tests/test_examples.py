"""Rewards inside TRL's trainers, and the examples as a user runs them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from tiny import ROOT, tiny_tokenizer

from movers.rewards import embedding_reward, reward

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model that understands conversations."""
    found = tmp_path_factory.mktemp("model")
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    tokenizer.save_pretrained(found)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=16, vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(found)
    return found


@pytest.mark.parametrize("name", ["GRPO", "RLOO"])
@pytest.mark.parametrize("conversational", [False, True])
def test_trainers_learn_from_metrics_and_from_own_embeddings(
    folder: Path, tmp_path: Path, name: str, conversational: bool
) -> None:
    rows = [("the cat", "the cat sat on the mat"), ("a dog", None), ("snow", "a man sells snow online")] * 4
    data = datasets.Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": prompt}] if conversational else prompt, "reference": reference}
            for prompt, reference in rows
        ]
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    before = model.get_input_embeddings().weight.detach().clone()
    config = getattr(trl, f"{name}Config")(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=4,
        max_completion_length=6, learning_rate=0.01, logging_steps=1, save_strategy="no", report_to=[],
        bf16=False, use_cpu=True, gradient_checkpointing=False,
    )  # fmt: skip
    trainer = getattr(trl, f"{name}Trainer")(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[reward(["wms", "sms"], name="movers"), embedding_reward(model, tokenizer=tokenizer)],
        args=config,
        train_dataset=data,
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "reward" in row]
    assert len(logged) == 2 and all(math.isfinite(row["reward"]) for row in logged)
    assert {"rewards/movers/mean", "rewards/embedding_hungarian/mean", "movers/no_words"} <= set().union(*logged)
    assert not torch.equal(before, model.get_input_embeddings().weight)


def run(*arguments: str) -> str:
    """Output of an example, run without the Hub."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_self_critical_loop_learns() -> None:
    lines = run(str(ROOT / "examples" / "self_critical_loop.py")).splitlines()
    rewards = [float(line.split()[-1]) for line in lines if line.startswith("step")]
    assert rewards[-1] > rewards[0] + 0.3


def test_a_pipelines_outputs_are_scored() -> None:
    lines = run(str(ROOT / "examples" / "pipeline_evaluation.py")).splitlines()
    assert [line.split(":")[0] for line in lines] == ["wms_score", "sms_score", "moverscore_score"]


def test_the_grpo_example_runs(folder: Path, tmp_path: Path) -> None:
    out = run(str(ROOT / "examples" / "grpo.py"), "--model", str(folder), "--steps", "2", "--output", str(tmp_path))
    assert "mean reward of the first step" in out

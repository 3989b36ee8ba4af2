"""Rewards inside TRL's trainers, and the examples as a user runs them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from tiny import ROOT, TINY_WORDS, tiny_model, tiny_tokenizer

import movers

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model with a chat template."""
    pytest.importorskip("trl", reason="needs the extra `rewards`")
    folder = tmp_path_factory.mktemp("model")
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=len(tokenizer), **special)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("name", "conversational"), [("GRPO", True), ("RLOO", False)])
def test_trainers_learn_from_metrics_and_from_own_embeddings(
    folder: Path, tmp_path: Path, name: str, conversational: bool
) -> None:
    import trl

    rows = [("the cat", "the cat sat on the mat"), ("a dog", None), ("snow", "a man sells snow online")] * 4
    prompts = [[{"role": "user", "content": prompt}] if conversational else prompt for prompt, _ in rows]
    data = datasets.Dataset.from_dict({"prompt": prompts, "reference": [reference for _, reference in rows]})
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    before = model.get_input_embeddings().weight.detach().clone()
    config = getattr(trl, f"{name}Config")(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=4,
        max_completion_length=6, learning_rate=0.01, logging_steps=1, save_strategy="no", report_to=[],
        bf16=False, use_cpu=True, gradient_checkpointing=False,
    )  # fmt: skip
    own = movers.rewards.embedding_reward(model, tokenizer=tokenizer)
    rewards = [movers.rewards.reward(["wms", "sms"], name="movers"), own]
    trainer = getattr(trl, f"{name}Trainer")(
        model=model, processing_class=tokenizer, reward_funcs=rewards, args=config, train_dataset=data
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "reward" in row]
    assert len(logged) == 2 and all(math.isfinite(row["reward"]) for row in logged)
    assert {"rewards/movers/mean", "rewards/embedding_hungarian/mean"} <= set().union(*logged)
    assert not torch.equal(before, model.get_input_embeddings().weight)


def run(name: str, *arguments: object) -> str:
    """Output of an example, run without the Hub."""
    command = [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_the_self_critical_loop_learns() -> None:
    rewards = [float(line.split()[-1]) for line in run("self_critical_loop.py").splitlines() if line.startswith("step")]
    assert rewards[-1] > rewards[0] + 0.3


@pytest.mark.slow
def test_a_trainer_is_evaluated_by_the_metrics(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    values = json.loads(run("seq2seq_trainer.py", "--steps", 2, "--output", tmp_path).strip().splitlines()[-1])
    assert {"eval_moverscore", "eval_bertscore_emd", "eval_bertscore_emd_precision", "eval_wms"} <= set(values)
    assert all(isinstance(value, float) for value in values.values())


@pytest.mark.slow
def test_a_pipelines_outputs_are_scored() -> None:
    lines = run("pipeline_evaluation.py").splitlines()
    assert [line.split(":")[0] for line in lines] == ["wms_score", "sms_score", "moverscore_score"]


@pytest.mark.slow
def test_the_evaluation_harness_reports_our_metric() -> None:
    pytest.importorskip("lm_eval")
    values = dict(line.split(": ") for line in run("harness.py").splitlines() if line.startswith("wms"))
    assert list(values) == ["wms,none", "wms_stderr,none"] and 0 < float(values["wms,none"]) < 1


@pytest.mark.slow
@pytest.mark.parametrize("choice", [[], ["--metric", "sms", "--prefilter", "wms", "--log-probs"]])
def test_the_mbr_example_chooses_a_sample_per_prompt(folder: Path, choice: list[str]) -> None:
    out = run("mbr.py", "--model", folder, "--samples", 6, "--tokens", 8, *choice)
    assert out.count("utility") == out.count("Summarize") == 2


@pytest.mark.slow
@pytest.mark.parametrize("choice", [["--trainer", "grpo"], ["--trainer", "rloo", "--reward", "embedding"]])
def test_the_grpo_example_trains_a_model_folder(folder: Path, tmp_path: Path, choice: list[str]) -> None:
    out = run("grpo.py", "--model", folder, "--steps", 2, "--output", tmp_path, *choice)
    assert "mean reward of the first step" in out and (tmp_path / "model.safetensors").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["similarity", "nli"])
def test_metrics_accept_the_encoder_that_the_example_fine_tuned(tmp_path: Path, task: str) -> None:
    pytest.importorskip("sentence_transformers")
    texts = [f"{first} {second}" for first in TINY_WORDS[:8] for second in TINY_WORDS[8:13]]
    pairs = zip(texts, reversed(texts), strict=True)
    labels = ["entailment", "neutral", "contradiction"]
    rows = [
        {"sentence1": first, "sentence2": second, "score": number % 6}
        if task == "similarity"
        else {"premise": first, "hypothesis": second, "label": labels[number % 3]}
        for number, (first, second) in enumerate(pairs)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoder, tuned = tmp_path / "encoder", tmp_path / "tuned"
    for part in (tiny_model(), tiny_tokenizer(max_length=32)):
        part.save_pretrained(encoder)
    out = run("finetune_encoder.py", tmp_path / "pairs.jsonl", "--encoder", encoder, "--output", tuned, "--rate", 0.01)
    assert "held-out loss" in out and "|emb:tuned@" in out
    before, after = (movers.moverscore(["a cat"], ["a dog"], model=str(model))["score"] for model in (encoder, tuned))
    assert math.isfinite(after) and before != after

"""GRPO on SmolLM2 with an `sms` reward: mean reward on held-out prompts before and after, and what the reward costs.

    MOVERS_DATA=… python benchmarks/rewards/grpo.py MODEL_FOLDER RUN_FOLDER --steps 60

The task: given the content words of a sentence of The Little Prince, write the sentence. The result is written to
`results/grpo.json`. A run that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from movers.io import read_records, write_file
from movers.rewards import Reward, reward
from movers.texts import WordRules, stop_words, token_spans

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import data_folder, machine

RESULT = Path(__file__).parent / "results" / "grpo.json"


class Row(TypedDict):
    """A conversation that asks for a sentence, and the sentence."""

    prompt: list[dict[str, str]]
    reference: str


def rows() -> list[Row]:
    """Prompts with references, in an order drawn from the sentences themselves."""
    rules = WordRules(stopwords=stop_words("english"))
    found: list[Row] = []
    for record in read_records(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz"):
        sentence = str(record["sentence"])
        judged = [rules.judge(token) for token, _, _ in token_spans(sentence)]
        words = sorted({word for word, kept in judged if kept and word.isalpha()})
        if 3 <= len(words) <= 8:
            content = f"Write one short sentence with these words: {', '.join(words)}."
            found.append({"prompt": [{"role": "user", "content": content}], "reference": sentence})
    found.sort(key=lambda row: hashlib.sha256(str(row["reference"]).encode()).hexdigest())
    return found


@torch.no_grad()
def complete(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, held_out: Sequence[Row]) -> list[str]:
    """One completion per prompt, sampled with a fixed seed as in training."""
    torch.manual_seed(0)
    texts = []
    for begin in range(0, len(held_out), 32):
        prompts = [row["prompt"] for row in held_out[begin : begin + 32]]
        inputs = tokenizer.apply_chat_template(
            prompts,
            add_generation_prompt=True,
            return_tensors="pt",
            padding=True,
            padding_side="left",
            return_dict=True,
        )
        out = model.generate(**inputs, do_sample=True, top_k=0, max_new_tokens=32, pad_token_id=tokenizer.pad_token_id)
        texts += tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return texts


class Timed:
    """A reward that knows how long it took."""

    def __init__(self, inner: Reward) -> None:
        self.inner, self.seconds, self.__name__ = inner, 0.0, inner.__name__

    def __call__(
        self, *, completions: object, log_metric: Callable[[str, float], object] | None = None, **columns: object
    ) -> list[float | None]:
        begin = time.perf_counter()
        found = self.inner(completions=completions, log_metric=log_metric, **columns)
        self.seconds += time.perf_counter() - begin
        return found


class Clock(TrainerCallback):
    """Wall-clock time of all steps."""

    seconds = 0.0

    def on_step_begin(self, *_: object, **__: object) -> None:
        self.begin = time.perf_counter()

    def on_step_end(self, *_: object, **__: object) -> None:
        self.seconds += time.perf_counter() - self.begin


def interval(differences: np.ndarray, seed: int = 0) -> list[float]:
    """95 % interval of a mean, by bootstrap."""
    draws = np.random.default_rng(seed).choice(differences, (10_000, len(differences))).mean(axis=1)
    return [float(value) for value in np.percentile(draws, [2.5, 97.5])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--reward", default="sms")
    parser.add_argument("--held-out", type=int, default=96)
    given = parser.parse_args()
    torch.set_num_threads(1)
    everything = rows()
    held_out, training = everything[: given.held_out], everything[given.held_out :]
    random.Random(0).shuffle(training)
    tokenizer = AutoTokenizer.from_pretrained(given.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(given.model)
    chosen = Timed(reward(given.reward))
    references = [str(row["reference"]) for row in held_out]
    chosen.inner.score(["Warm up."], ["The first call loads vectors and measures unrelated texts."])
    saved = given.folder / "before.json"
    if saved.is_file():
        before = json.loads(saved.read_text())
    else:
        before = complete(model, tokenizer, held_out)
        given.folder.mkdir(parents=True, exist_ok=True)
        write_file(saved, json.dumps(before))
    config = GRPOConfig(
        output_dir=str(given.folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=32,
        learning_rate=1e-5,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=5,
        max_steps=given.steps,
        logging_steps=1,
        save_steps=10,
        save_total_limit=1,
        report_to=[],
        seed=0,
        disable_tqdm=True,
        gradient_checkpointing=False,
    )
    clock = Clock()
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[chosen],
        args=config,
        train_dataset=Dataset.from_list(training),
        callbacks=[clock],
    )
    trainer.train(resume_from_checkpoint=any(given.folder.glob("checkpoint-*")) or None)
    after = complete(trainer.model.eval(), tokenizer, held_out)
    first, second = (np.array(chosen.inner.score(texts, references)) for texts in (before, after))
    log = [
        {"step": entry["step"], "reward": entry["reward"], "length": entry.get("completions/mean_length")}
        for entry in trainer.state.log_history
        if "reward" in entry
    ]
    result = {
        "reward": given.reward,
        "steps": trainer.state.global_step,
        "held_out": len(held_out),
        "before": float(first.mean()),
        "after": float(second.mean()),
        "difference": float((second - first).mean()),
        "interval": interval(second - first),
        "reward_share_of_step": chosen.seconds / clock.seconds if clock.seconds else None,
        "seconds_per_step": clock.seconds / max(given.steps, 1),
        "curve": log,
        "samples": [
            {"prompt": row["prompt"][0]["content"], "reference": row["reference"], "before": old, "after": new}
            for row, old, new in zip(held_out[:8], before, after, strict=False)
        ],
        "machine": machine(("torch", "transformers", "trl")),
    }
    RESULT.parent.mkdir(exist_ok=True)
    write_file(RESULT, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({key: result[key] for key in ("before", "after", "difference", "interval")}))


if __name__ == "__main__":
    main()

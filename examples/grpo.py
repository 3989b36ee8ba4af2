"""Train a language model with TRL and a metric as the reward.

    pip install ".[rewards]"    # in a checkout
    python examples/grpo.py --model HuggingFaceTB/SmolLM2-135M-Instruct --output run
    python examples/grpo.py --model FOLDER --data rows.jsonl --reward wms "sms[temperature=10]" --trainer rloo

Rows of `--data` have a `prompt` (a text, or a list of messages) and a `reference` (a text, or a list of texts); without
it the model learns six sentences. `benchmarks/rewards/smollm2.py FOLDER` writes a small model without the Hub.
`--reward embedding` compares the model's own token embeddings. Arrows mark the relevant lines.
"""

from __future__ import annotations

import argparse

from datasets import Dataset, load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import movers

FACTS = {
    "baker, flood, bridge": "The flood has closed the baker's shop by the bridge.",
    "tunnel, river, nine years": "After nine years of work, the tunnel below the river is open.",
    "cinema, pensioners, bought": "A group of pensioners has bought the town's only cinema.",
    "snow, trains, Monday": "Heavy snow stopped two hundred trains on Monday.",
    "parrot, police, address": "A lost parrot told the police where its owner lives.",
    "apples, frost, harvest": "Frost has left farmers with a small harvest of apples.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder or Hub id of a causal model")
    parser.add_argument("--data", help="JSON Lines with columns prompt and reference")
    parser.add_argument("--reward", nargs="+", default=["sms"], help="metrics, or `embedding`")
    parser.add_argument("--trainer", choices=["grpo", "rloo"], default="grpo")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1e-5)
    parser.add_argument("--output", default="grpo_run")
    arguments = parser.parse_args()

    prompts = [[{"role": "user", "content": f"Write one sentence about: {words}."}] for words in FACTS]
    rows = Dataset.from_dict({"prompt": prompts, "reference": list(FACTS.values())})
    if arguments.data:
        rows = load_dataset("json", data_files=arguments.data, split="train")
    model = AutoModelForCausalLM.from_pretrained(arguments.model)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    if arguments.reward == ["embedding"]:
        reward = movers.rewards.embedding_reward(model, tokenizer=tokenizer)  # <- F_disc on the lowest layer
    else:
        reward = movers.rewards.reward(arguments.reward)  # <- one metric, or the mean of several
    kinds = {"grpo": (GRPOTrainer, GRPOConfig), "rloo": (RLOOTrainer, RLOOConfig)}
    trainer_class, config_class = kinds[arguments.trainer]
    config = config_class(
        output_dir=arguments.output, max_steps=arguments.steps, per_device_train_batch_size=4, num_generations=4,
        max_completion_length=24, learning_rate=arguments.rate, logging_steps=1, report_to=[], bf16=False,
        save_strategy="no", gradient_checkpointing=False,
    )  # fmt: skip
    trainer = trainer_class(
        model=model, processing_class=tokenizer, reward_funcs=[reward], args=config, train_dataset=rows
    )
    trainer.train()
    trainer.save_model(arguments.output)
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    print(f"mean reward of the first step {rewards[0]:.3f}, of the last {rewards[-1]:.3f}")


if __name__ == "__main__":
    main()

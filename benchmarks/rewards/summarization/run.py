"""Summarisation with rewards (Clark et al. 2019, Table 4), made for a processor without a GPU.

    MOVERS_DATA=… python benchmarks/rewards/summarization/run.py RUN_FOLDER --seeds 0 1 2

Every seed has one MLE model, chosen by cross-entropy, which begins all others; only the reward differs. Models with a
reward are chosen by it on validation data. Their learning rate was chosen on validation data for SMS and seed 0 (see
RESULTS.md); the paper's 1e-5 is a row of its own. Started again it goes on where it was stopped. RUN_FOLDER holds
checkpoints and outputs; `results.csv` gets the results.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean as mean
from typing import Any

import torch
from torch import Tensor

from movers.agreement.lexical import rouge
from movers.rewards import likelihood_loss, mixed_loss, reward, self_critical_loss

sys.path.insert(0, str(Path(__file__).parents[2]))
from common import data_folder
from rewards.measures import is_finished, quote, save
from rewards.summarization.data import Article, Batch, Vocabulary, read, text_of
from rewards.summarization.network import PointerGenerator

ROWS = ("mle", "sms", "wms", "swms", "rouge", "sms-1e-5")
RATE, PAPER_RATE = 3e-4, 1e-5
COLUMNS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "wms": "WMS", "sms": "SMS", "swms": "S+WMS"}
SAMPLES = (3, 11, 42)  # outputs that the report quotes


@dataclass(frozen=True)
class Setting:
    """What a run depends on."""

    document_tokens: int = 80
    summary_tokens: int = 32
    shortest: int = 12  # tokens of a summary that beam search may end after
    words: int = 6000
    embedding: int = 128
    hidden: int = 128
    batch: int = 32
    likelihood_epochs: int = 6
    rounds: int = 5  # validations of a row with a reward, one after every `round_steps`
    round_steps: int = 12
    first_weight: float = 0.97  # γ
    last_weight: float = 0.9984
    decoded: int = 96  # validation pairs that are decoded
    beam: int = 5


metric_reward = cache(reward)  # one per metric


def rewards_of(row: str, texts: Sequence[str], references: Sequence[str]) -> list[float]:
    """Rewards by the row's metric; each on the scale that `movers.rewards` gives it."""
    if row.startswith("rouge"):
        variant: Any = "rougeL" if row == "rouge" else row
        scores = rouge([text or "." for text in texts], references, variant=variant)["scores"]
        assert isinstance(scores, list)
        return scores
    return [value or 0.0 for value in metric_reward(row).score(list(texts), list(references))]


@dataclass(frozen=True)
class Learner:
    """What `train` needs of a row; without a reward it is maximum likelihood."""

    module: PointerGenerator
    vocabulary: Vocabulary
    parts: dict[str, list[Article]]
    setting: Setting
    row: str
    seed: int

    def batches(self, epoch: int) -> list[list[tuple[Article, float]]]:
        setting = self.setting
        draw = random.Random(self.seed * 1009 + epoch + (0 if self.row == "mle" else 500))
        order = draw.sample(self.parts["train"], len(self.parts["train"]))
        groups = [order[at : at + setting.batch] for at in range(0, len(order), setting.batch)]
        if self.row == "mle":
            return [[(article, 0.0) for article in group] for group in groups]
        steps = setting.rounds * setting.round_steps
        batches = []
        for number, group in enumerate(groups[: setting.round_steps], epoch * setting.round_steps):
            rise = setting.last_weight - setting.first_weight
            weight = setting.first_weight + rise * min(number / max(steps - 1, 1), 1.0)
            batches.append([(article, weight) for article in group])
        return batches

    def loss(self, batch: Sequence[tuple[Article, float]]) -> Tensor:
        articles, weight = [article for article, _ in batch], batch[0][1]
        made = self.vocabulary.batch(articles)
        documents = self.module.encode(made.ids, made.lengths, made.extra)
        likelihood = likelihood_loss(*self.module.log_probs(documents, made.targets))
        if self.row == "mle":
            return likelihood
        with torch.no_grad():
            sampled = self.module.generate(documents, True, self.setting.summary_tokens)
            greedy = self.module.generate(documents, False, self.setting.summary_tokens)
        earned = rewards_of(self.row, self._texts([*sampled, *greedy], made), self._references(articles) * 2)
        log_probs, mask = self.module.log_probs(documents, sampled)
        return mixed_loss(
            self_critical_loss(log_probs, mask, earned[: len(batch)], earned[len(batch) :]), likelihood, weight
        )

    def validate(self) -> dict[str, float]:
        self.module.eval()
        total = count = 0.0
        articles = self.parts["validation"]
        with torch.no_grad():
            for begin in range(0, len(articles), 50):
                made = self.vocabulary.batch(articles[begin : begin + 50])
                documents = self.module.encode(made.ids, made.lengths, made.extra)
                log_probs, mask = self.module.log_probs(documents, made.targets)
                total, count = total - float((log_probs * mask).sum()), count + float(mask.sum())
        decoded = articles[: self.setting.decoded]
        row = "sms" if self.row == "mle" else self.row
        earned = mean(rewards_of(row, self.decode(decoded, beam=False), self._references(decoded)))
        self.module.train()
        loss = total / count if self.row == "mle" else -earned
        return {"validation_loss": loss, "cross_entropy": total / count, "reward": earned}

    @torch.no_grad()
    def decode(self, articles: Sequence[Article], beam: bool) -> list[str]:
        setting, texts = self.setting, []
        self.module.eval()
        for begin in range(0, len(articles), 25):
            made = self.vocabulary.batch(articles[begin : begin + 25])
            documents = self.module.encode(made.ids, made.lengths, made.extra)
            if beam:
                rows = self.module.beam(documents, setting.summary_tokens, setting.shortest, setting.beam)
            else:
                rows = self.module.generate(documents, False, setting.summary_tokens)
            texts += self._texts(rows, made)
        return texts

    def _texts(self, outputs: Sequence[Sequence[int]], made: Batch) -> list[str]:
        return [self.vocabulary.text(row, made.new_words[at % len(made.new_words)]) for at, row in enumerate(outputs)]

    def _references(self, articles: Sequence[Article]) -> list[str]:
        return [text_of(article.summary) for article in articles]


def train(learner: Learner, rate: float, checkpoint: Path) -> None:
    """One row of one seed, from its checkpoint if there is one; leaves the best weights in the module."""
    module = learner.module
    optimiser = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=1e-4)
    done, lowest, best = 0, math.inf, module.state_dict()
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        done, lowest, best = state["done"], state["lowest"], state["best"]
        module.load_state_dict(state["weights"])
        optimiser.load_state_dict(state["optimiser"])
    epochs = learner.setting.likelihood_epochs if learner.row == "mle" else learner.setting.rounds
    for epoch in range(done, epochs):
        torch.manual_seed(learner.seed * 10_007 + epoch)
        module.train()
        for batch in learner.batches(epoch):
            loss = learner.loss(batch)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimiser.step()
        measured = learner.validate()
        print(learner.row, learner.seed, epoch, measured, flush=True)
        if measured["validation_loss"] <= lowest:
            lowest = measured["validation_loss"]
            best = {name: value.clone() for name, value in module.state_dict().items()}
        state = {"done": epoch + 1, "lowest": lowest, "best": best, "weights": module.state_dict()}
        torch.save(state | {"optimiser": optimiser.state_dict()}, checkpoint.with_suffix(".part"))
        checkpoint.with_suffix(".part").replace(checkpoint)
    module.load_state_dict(best)


def scores_of(texts: Sequence[str], references: Sequence[str]) -> dict[str, list[float]]:
    """Every column of Table 4, per summary; mover metrics on the scale of the rewards."""
    texts = [text or "." for text in texts]
    return {name: rewards_of(name, texts, references) for name in COLUMNS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    setting = Setting()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    parts = read(data_folder() / "corpora", setting.document_tokens, setting.summary_tokens)
    for name, articles in parts.items():
        sizes = {
            f"{side} tokens": mean([len(getattr(one, side)) for one in articles]) for side in ("document", "summary")
        }
        save("summarization", name, "", sizes, len(articles))
    vocabulary = Vocabulary(parts["train"], setting.words)
    vectors = vocabulary.vectors(setting.embedding)
    for seed in arguments.seeds:
        torch.manual_seed(seed)
        network = PointerGenerator(vectors.clone(), setting.hidden)
        learner = Learner(network, vocabulary, parts, setting, "mle", seed)
        train(learner, 1e-3, arguments.folder / f"mle-{seed}.pt")
        weights = {name: value.clone() for name, value in network.state_dict().items()}
        for row in ROWS:
            if is_finished("summarization", row, seed):
                continue
            if row != "mle":
                network.load_state_dict(weights)
                checkpoint = arguments.folder / f"row-{seed}-{row}.pt"
                rate = PAPER_RATE if row == "sms-1e-5" else RATE
                train(replace(learner, row=row.split("-")[0]), rate, checkpoint)
                checkpoint.unlink()
            outputs = learner.decode(parts["test"], beam=True)
            each = scores_of(outputs, learner._references(parts["test"]))
            # Outputs copy much of the articles, which are not ours to publish: they stay in the folder of the run.
            (arguments.folder / f"outputs-{row}-{seed}.json").write_text(json.dumps(outputs, ensure_ascii=False))
            values: dict[str, float | str] = {COLUMNS[name]: 100 * mean(scores) for name, scores in each.items()}
            if seed == 0:
                values |= {f"output {number}": quote(outputs[number]) for number in SAMPLES}
            save("summarization", row, seed, values, len(outputs))


if __name__ == "__main__":
    main()

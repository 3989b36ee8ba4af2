"""Summarisation with rewards (Clark et al. 2019, Table 4), made for a processor without a GPU.

    MOVERS_DATA=… python benchmarks/rewards/summarization/run.py RUN_FOLDER --seeds 0 1 2

Every seed has one MLE model, chosen by cross-entropy, which begins all others; only the reward differs. Models with a
reward are chosen by it on validation data. The learning rate of the rewards is chosen on validation data for SMS and
seed 0; the paper's 1e-5 is a row of its own. Started again it goes on where it was stopped. Results are written to
`results/summarization`, one file per row and seed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from movers import score_many
from movers.agreement.lexical import rouge
from movers.io import write_file
from movers.rewards import Reward, likelihood_loss, mixed_loss, reward, rising_weight, self_critical_loss
from movers.rewards.scale import mean
from movers.training import Curve, LoopOptions, fit

sys.path.insert(0, str(Path(__file__).parents[2]))
from common import data_folder, machine
from rewards.summarization.data import Article, Batch, Vocabulary, read, text_of
from rewards.summarization.network import PointerGenerator

RESULTS = Path(__file__).parents[1] / "results" / "summarization"
ROWS = ("mle", "sms", "wms", "swms", "rouge", "sms-1e-5")
RATES = (1e-3, 3e-4, 1e-4)
PAPER_RATE = 1e-5
METRICS = ("wms", "sms", "swms")
SAMPLES = (3, 11, 42)  # outputs that the report quotes


@dataclass(frozen=True)
class Setting:
    """What a run depends on, saved with its results."""

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


def rewards_of(row: str, texts: Sequence[str], references: Sequence[str]) -> list[float]:
    """Rewards by the row's metric; every one on the scale that `movers.rewards` gives it."""
    if row == "rouge":
        scores = rouge([text or "." for text in texts], references)["scores"]
        assert isinstance(scores, list)
        return scores
    if row not in _REWARDS:
        _REWARDS[row] = reward(row)
    return [value or 0.0 for value in _REWARDS[row].score(list(texts), list(references))]


_REWARDS: dict[str, Reward] = {}


@dataclass(frozen=True)
class Learner:
    """A row for the loop that all training shares; without a reward it is maximum likelihood."""

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
        found = []
        for number, group in enumerate(groups[: setting.round_steps], epoch * setting.round_steps):
            weight = rising_weight(number, steps, setting.first_weight, setting.last_weight)
            found.append([(article, weight) for article in group])
        return found

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
        setting, found = self.setting, []
        self.module.eval()
        for begin in range(0, len(articles), 25):
            made = self.vocabulary.batch(articles[begin : begin + 25])
            documents = self.module.encode(made.ids, made.lengths, made.extra)
            if beam:
                rows = self.module.beam(documents, setting.summary_tokens, setting.shortest, setting.beam)
            else:
                rows = self.module.generate(documents, False, setting.summary_tokens)
            found += self._texts(rows, made)
        return found

    def _texts(self, outputs: Sequence[Sequence[int]], made: Batch) -> list[str]:
        return [self.vocabulary.text(row, made.own[at % len(made.own)]) for at, row in enumerate(outputs)]

    def _references(self, articles: Sequence[Article]) -> list[str]:
        return [text_of(article.summary) for article in articles]


def train(learner: Learner, rate: float, checkpoint: Path) -> Curve:
    """One row of one seed, from its checkpoint if there is one; leaves the best weights in the module."""
    setting = learner.setting
    epochs = setting.likelihood_epochs if learner.row == "mle" else setting.rounds
    options = LoopOptions(
        optimiser="adamw", rate=rate, batch=setting.batch, epochs=epochs, patience=epochs, seed=learner.seed
    )
    return fit("summarization", learner, options, checkpoint, default_rate=rate, progress=False)


def scores_of(texts: Sequence[str], references: Sequence[str]) -> dict[str, list[float]]:
    """Every column of Table 4, per summary; mover metrics on the scale of the rewards and on the paper's."""
    texts = [text or "." for text in texts]
    found: dict[str, object] = {}
    for variant in ("rouge1", "rouge2", "rougeL"):
        found[variant] = rouge(texts, references, variant=variant)["scores"]
    for name, result in score_many(METRICS, texts, list(references)).items():
        found[f"{name}_score"] = result["scores"]
        found[name] = rewards_of(name, texts, references)
    return {name: np.round(np.asarray(values, dtype=float), 6).tolist() for name, values in found.items()}


def choose_rate(learner: Learner, weights: dict[str, Tensor], folder: Path) -> float:
    """The rate with the highest SMS reward on validation data."""
    path = RESULTS / "rates.json"
    if not path.is_file():
        earned = {}
        for rate in RATES:
            learner.module.load_state_dict(weights)
            curve = train(learner, rate, folder / f"rate-{rate}.safetensors")
            earned[str(rate)] = max(entry["reward"] for entry in curve)
            print("rate", rate, earned[str(rate)], flush=True)
        write_file(path, json.dumps(earned, indent=1) + "\n")
    earned = json.loads(path.read_text())
    return float(max(earned, key=earned.__getitem__))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    torch.set_num_threads(1)
    setting = Setting()
    given.folder.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    parts = read(data_folder() / "corpora", setting.document_tokens, setting.summary_tokens)
    vocabulary = Vocabulary(parts["train"], setting.words)
    vectors = vocabulary.vectors(setting.embedding)
    for seed in given.seeds:
        torch.manual_seed(seed)
        network = PointerGenerator(vectors.clone(), setting.hidden)
        learner = Learner(network, vocabulary, parts, setting, "mle", seed)
        curve = train(learner, 1e-3, given.folder / f"mle-{seed}.safetensors")
        weights = {name: value.clone() for name, value in network.state_dict().items()}
        for row in ROWS:
            path = RESULTS / f"{row}-{seed}.json"
            if path.is_file():
                continue
            rate = 1e-3
            if row != "mle":
                own = replace(learner, row=row.split("-")[0])
                rate = PAPER_RATE if row != own.row else choose_rate(
                    replace(learner, row="sms", seed=0), weights, given.folder
                )  # fmt: skip
                network.load_state_dict(weights)
                checkpoint = given.folder / f"row-{seed}-{row}.safetensors"
                curve = train(own, rate, checkpoint)
                checkpoint.unlink()
            outputs = learner.decode(parts["test"], beam=True)
            references = learner._references(parts["test"])
            each = scores_of(outputs, references)
            result = {
                "row": row,
                "seed": seed,
                "rate": rate,
                "setting": asdict(setting),
                "sizes": {
                    name: {
                        "pairs": len(articles),
                        "document": mean([len(article.document) for article in articles]),
                        "summary": mean([len(article.summary) for article in articles]),
                    }
                    for name, articles in parts.items()
                },
                "machine": machine(),
                "curve": curve,
                "test": {name: mean(values) for name, values in each.items()},
                "each": each,
                "samples": {str(number): outputs[number] for number in SAMPLES},
            }
            # Outputs copy much of the articles, which are not ours to publish: they stay in the folder of the run.
            write_file(given.folder / f"outputs-{row}-{seed}.json", json.dumps(outputs, ensure_ascii=False) + "\n")
            write_file(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
            print(row, seed, {name: round(value, 4) for name, value in result["test"].items()}, flush=True)


if __name__ == "__main__":
    main()

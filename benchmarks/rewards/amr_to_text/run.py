"""AMR-to-text with rewards (Jin & Gildea 2022), made for a processor without a GPU.

    MOVERS_DATA=… python benchmarks/rewards/amr_to_text/run.py MODEL_FOLDER RUN_FOLDER --seeds 0 1 2
    MOVERS_DATA=… python benchmarks/rewards/amr_to_text/run.py scratch RUN_FOLDER --seeds 0 1 2 3 4 5 6 7

The first tunes a pretrained causal model, the second trains a small Transformer from scratch. Every seed has one start,
trained with cross-entropy. From it equally many steps each with BLEU, greedy BERTScore, F_cont, F_disc as the reward
(λ = .3), and with cross-entropy alone. Started again it goes on where it was stopped. RUN_FOLDER holds the newest
checkpoint and the start of the current seed; `results.csv` gets the results.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from sacrebleu import corpus_bleu, corpus_chrf, sentence_bleu
from torch.nn.functional import cosine_similarity

from movers import bertscore_tensors, score_many
from movers.rewards import likelihood_loss, mixed_loss, self_critical_loss
from movers.scores.tensors import TensorAlignment

sys.path.insert(0, str(Path(__file__).parents[2]))
from common import data_folder
from rewards.amr_to_text.data import Pair, split
from rewards.amr_to_text.generator import CausalGenerator, Generator
from rewards.amr_to_text.scratch import SmallTransformer
from rewards.measures import is_finished, meteor, quote, repeated, save

SYSTEMS = ("start", "f_disc", "f_cont", "bleu", "greedy", "xent")
ALIGNMENTS: dict[str, TensorAlignment] = {"f_disc": "hungarian", "f_cont": "emd", "greedy": "greedy"}
NAMES = {"f_disc": "F_disc", "f_cont": "F_cont", "greedy": "F_BERT"}
OURS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd")
QUOTED = (0, 7, 21, 40)  # test pairs


@dataclass(frozen=True)
class Setting:
    """What a run depends on, saved with its checkpoints."""

    graph_tokens: int = 64  # longer graphs are left out, in all parts
    sentence_tokens: int = 32
    layers: int = 15  # that are trained
    size: int = 0  # of the layers, where it can be chosen
    dropout: float = 0.0
    start_epochs: int = 2
    start_rate: float = 1e-4
    reward_sentences: int = 512  # of one epoch with a reward
    reward_epochs: int = 1
    batch: int = 16
    rate: float = 1e-4
    weight: float = 0.3  # λ
    validate_every: int = 8
    validation_sentences: int = 64


SETTINGS = {
    "amr_to_text": Setting(),
    "amr_scratch": Setting(
        graph_tokens=48, sentence_tokens=20, layers=2, size=128, dropout=0.2, start_epochs=16, start_rate=2e-3,
        reward_sentences=1200, reward_epochs=2, rate=3e-4, validate_every=63, validation_sentences=100,
    ),
}  # fmt: skip


def reward_values(
    system: str, generator: Generator, outputs: Sequence[Sequence[int]], sentences: Sequence[str], table: torch.Tensor
) -> torch.Tensor:
    """One reward per output: BLEU of the texts, or an alignment of the token embeddings in `table` (V, d)."""
    if system == "bleu":
        texts = generator.decode(outputs)
        return torch.tensor(
            [sentence_bleu(text, [sentence]).score / 100 for text, sentence in zip(texts, sentences, strict=True)]
        )
    ids, mask = generator.pad(outputs, end=False)
    references, reference_mask = generator.pad([*map(generator.encode_sentence, sentences)], end=False)
    with torch.no_grad():
        return bertscore_tensors(
            table[ids], mask, table[references], reference_mask, alignment=ALIGNMENTS[system], threads=1
        )[2]


def batches(pairs: Sequence[Pair], generator: Generator, size: int, seed: int) -> list[list[Pair]]:
    """Shuffled batches of pairs of similar length."""
    draw = random.Random(seed)
    order = draw.sample(list(pairs), len(pairs))
    groups = []
    for begin in range(0, len(order), size * 8):
        part = sorted(order[begin : begin + size * 8], key=lambda pair: len(generator.encode_graph(pair.graph)))
        groups += [part[at : at + size] for at in range(0, len(part), size)]
    return draw.sample(groups, len(groups))


def decode_all(generator: Generator, pairs: Sequence[Pair], size: int = 64) -> list[list[int]]:
    """Greedy outputs, in the order of the pairs."""
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].graph))
    outputs: dict[int, list[int]] = {}
    with torch.no_grad():
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            prompts = generator.read_prompts([pairs[index].graph for index in part])
            outputs.update(zip(part, generator.generate(prompts, sample=False), strict=True))
    return [outputs[index] for index in range(len(pairs))]


def measure(generator: Generator, pairs: Sequence[Pair]) -> tuple[dict[str, float], list[str]]:
    """Corpus BLEU and F of greedy outputs, and the outputs; F on the embeddings before training, equal for all."""
    ids = decode_all(generator, pairs)
    texts, sentences = generator.decode(ids), [pair.sentence for pair in pairs]
    table = generator.untrained_table
    means = {name: float(reward_values(name, generator, ids, sentences, table).mean()) for name in ALIGNMENTS}
    return {"corpus_bleu": corpus_bleu(texts, [sentences]).score, **means}, texts


@dataclass
class Step:
    """Times and rewards of one step."""

    sampled: float = 0.0
    greedy: float = 0.0
    reward_seconds: float = 0.0


def loss_of(
    system: str, generator: Generator, batch: Sequence[Pair], setting: Setting, draw: torch.Generator
) -> tuple[torch.Tensor, Step]:
    """The mixed loss of a batch; `start` and `xent` have cross-entropy alone."""
    sentences = [pair.sentence for pair in batch]
    targets = [*map(generator.encode_sentence, sentences)]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=generator.half):
        prompts = generator.read_prompts([pair.graph for pair in batch])
        if system in ("start", "xent"):
            ids, mask = generator.pad(targets)
            return likelihood_loss(generator.log_probs(prompts, ids, mask), mask), Step()
    outputs = generator.generate(prompts, sample=True, generator=draw)
    begin = time.process_time()
    rewards = reward_values(system, generator, outputs, sentences * 2, generator.table)
    seconds = time.process_time() - begin
    greedy, sampled = rewards[: len(batch)], rewards[len(batch) :]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=generator.half):
        ids, mask = generator.pad([*targets, *outputs[len(batch) :]])
        log_probs = generator.log_probs(prompts, ids, mask)
    rows = len(batch)
    reward_loss = self_critical_loss(log_probs[rows:], mask[rows:], sampled, greedy)
    likelihood = likelihood_loss(log_probs[:rows], mask[:rows])
    step = Step(float(sampled.mean()), float(greedy.mean()), seconds)
    return mixed_loss(reward_loss, likelihood, setting.weight), step


def train(
    system: str, seed: int, generator: Generator, parts: dict[str, list[Pair]], setting: Setting, folder: Path
) -> list[dict[str, float]]:
    """One system of one seed, from its checkpoint if there is one; returns the validation curve."""
    pairs, first, epochs, rate = parts["train"], 1000 * seed, setting.start_epochs, setting.start_rate
    if system != "start":
        pairs = random.Random(seed).sample(pairs, min(setting.reward_sentences, len(pairs)))
        first, epochs, rate = first + 500, setting.reward_epochs, setting.rate
    orders = range(first, first + epochs)  # seeds, one for each epoch
    steps = [batch for order in orders for batch in batches(pairs, generator, setting.batch, order)]
    optimiser = torch.optim.AdamW(generator.trained.values(), lr=rate, weight_decay=0.0)
    checkpoint, curve, done, spent = folder / "checkpoint.pt", [], 0, 0.0
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        if (state["system"], state["seed"], state["setting"]) == (system, seed, asdict(setting)):
            generator.model.load_state_dict(state["weights"], strict=False)
            optimiser.load_state_dict(state["optimiser"])
            curve, done, spent = state["curve"], state["done"], state["spent"]
        del state
    validation = parts["validation"][: setting.validation_sentences]
    if not done:
        curve = [{"step": 0, **measure(generator, validation)[0]}]
    recent: list[Step] = []
    generator.model.train()
    for number in range(done, len(steps)):
        begin = time.process_time()
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - number / len(steps))
        draw = torch.Generator().manual_seed(seed * 100_003 + number)
        torch.manual_seed(seed * 100_003 + number)  # for dropout
        loss, step = loss_of(system, generator, steps[number], setting, draw)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(generator.trained.values(), 1.0)
        optimiser.step()
        recent.append(step)
        spent += time.process_time() - begin
        last = number + 1 == len(steps)
        if last or (number + 1) % (setting.validate_every * (4 if system == "start" else 1)) == 0:
            entry = {"step": number + 1, **measure(generator, validation)[0], "processor_seconds": spent}
            for name in ("sampled", "greedy", "reward_seconds"):
                entry[f"step_{name}"] = sum(getattr(item, name) for item in recent) / len(recent)
            recent = []
            curve.append(entry)
            state = {"system": system, "seed": seed, "setting": asdict(setting), "curve": curve, "done": number + 1}
            state |= {"weights": generator.trained, "optimiser": optimiser.state_dict(), "spent": spent}
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
        print(f"{time.strftime('%H:%M:%S')} seed {seed} {system} step {number + 1}/{len(steps)} "
              f"loss {loss.item():.3f} {curve[-1]['corpus_bleu']:.2f} cpu {spent:.0f}", flush=True)  # fmt: skip
    return curve


@dataclass(frozen=True)
class Run:
    """One generator with its pairs; `parts` holds those that are short enough."""

    name: str
    generator: Generator
    everything: dict[str, list[Pair]]
    setting: Setting
    folder: Path

    @cached_property
    def parts(self) -> dict[str, list[Pair]]:
        return {
            name: [
                pair
                for pair in pairs
                if len(self.generator.encode_graph(pair.graph)) <= self.setting.graph_tokens
                and len(self.generator.encode_sentence(pair.sentence)) <= self.setting.sentence_tokens
            ]
            for name, pairs in self.everything.items()
        }

    def start(self, seed: int) -> dict[str, Any]:
        """Weights and curve of a seed's start, trained unless the folder holds them."""
        path = self.folder / f"start-{seed}.pt"
        if not path.is_file():
            self.generator.restart(seed)
            curve = train("start", seed, self.generator, self.parts, self.setting, self.folder)
            torch.save({"curve": curve, "weights": self.generator.trained}, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        return torch.load(path, weights_only=True)

    def compare(self, seed: int) -> None:
        """The systems of a seed on test pairs, but for those that have results; the start goes after the last."""
        for system in SYSTEMS:
            if is_finished(self.name, system, seed):
                continue
            state = self.start(seed)
            self.generator.model.load_state_dict(state["weights"], strict=False)
            curve = state["curve"]
            if system != "start":
                curve = train(system, seed, self.generator, self.parts, self.setting, self.folder)
            measures, outputs = measure(self.generator, self.parts["test"])
            self._save(system, seed, curve, measures, outputs)
        (self.folder / f"start-{seed}.pt").unlink(missing_ok=True)

    def _save(
        self, system: str, seed: int, curve: list[dict[str, float]], measures: dict[str, float], outputs: list[str]
    ) -> None:
        """Rows of one system and seed: in percent, but for seconds and outputs."""
        references, texts = [pair.sentence for pair in self.parts["test"]], [text or "." for text in outputs]
        values: dict[str, float | str] = {
            "BLEU": measures["corpus_bleu"],
            "chrF": corpus_chrf(texts, [references]).score,
            "METEOR": 100 * meteor(texts, references),
            **{NAMES[name]: 100 * measures[name] for name in ALIGNMENTS},
            **{f"repeated {n}-grams": 100 * repeated(texts, n) for n in (2, 3)},
            **{name: 100 * float(str(result["score"])) for name, result in score_many(OURS, texts, references).items()},
            "embedding cosine": float(cosine_similarity(self.generator.table, self.generator.untrained_table).mean()),
        }
        for entry in curve if system != "start" else []:
            values[f"validation BLEU@{entry['step']}"] = entry["corpus_bleu"]
            for name in ("f_cont", "f_disc"):
                values[f"validation {NAMES[name]}@{entry['step']}"] = 100 * entry[name]
        if system not in ("start", "xent"):
            seconds = [entry["step_reward_seconds"] for entry in curve[1:]]
            values["reward seconds"] = sum(seconds) / len(seconds)
            values["step seconds"] = curve[-1]["processor_seconds"] / curve[-1]["step"]
        if seed == 0:
            values |= {f"output {number}": quote(outputs[number]) for number in QUOTED}
            save(self.name, "reference", "", {f"output {number}": quote(references[number]) for number in QUOTED})
        save(self.name, system, seed, values, len(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a causal model, or `scratch`")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    everything = split(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz")
    generator: Generator
    if arguments.model == "scratch":
        name, setting = "amr_scratch", SETTINGS["amr_scratch"]
        generator = SmallTransformer(everything, setting.size, setting.layers, setting.dropout)
    else:
        name, setting = "amr_to_text", SETTINGS["amr_to_text"]
        generator = CausalGenerator(Path(arguments.model), setting.layers)
    run = Run(name, generator, everything, setting, arguments.folder)
    for seed in arguments.seeds:
        run.compare(seed)


if __name__ == "__main__":
    main()

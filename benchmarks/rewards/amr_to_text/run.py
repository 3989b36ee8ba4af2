"""AMR-to-text with rewards (Jin & Gildea 2022) on a pretrained causal model, made for a processor without a GPU.

    MOVERS_DATA=… python benchmarks/rewards/amr_to_text/run.py MODEL_FOLDER RUN_FOLDER --seeds 0 1 2

Every seed has one start, tuned with cross-entropy. From it one epoch each with BLEU, greedy BERTScore, F_cont, F_disc
as the reward (λ = .3), and one more with cross-entropy alone. Started again it goes on where it was stopped. RUN_FOLDER
holds the newest checkpoint and the start of the current seed; results are written to `results/amr_to_text`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from sacrebleu import corpus_bleu, sentence_bleu

from movers import bertscore_tensors
from movers.io import write_file
from movers.rewards import likelihood_loss, mixed_loss, self_critical_loss
from movers.scores.tensors import TensorAlignment

sys.path.insert(0, str(Path(__file__).parents[2]))
from common import data_folder, machine
from rewards.amr_to_text.data import Pair, split
from rewards.amr_to_text.generator import Generator, Prompts

RESULTS = Path(__file__).parents[1] / "results" / "amr_to_text"
SYSTEMS = ("start", "f_disc", "f_cont", "bleu", "greedy", "xent")
ALIGNMENTS: dict[str, TensorAlignment] = {"f_disc": "hungarian", "f_cont": "emd", "greedy": "greedy"}


@dataclass(frozen=True)
class Setting:
    """What a run depends on, saved with its results."""

    graph_tokens: int = 64  # longer graphs are left out, in all parts
    sentence_tokens: int = 32
    trained_layers: int = 15
    start_epochs: int = 2
    reward_sentences: int = 512  # of one epoch with a reward
    batch: int = 16
    rate: float = 1e-4
    weight: float = 0.3  # λ
    validate_every: int = 8
    validation_sentences: int = 64


def reward_values(
    system: str, generator: Generator, outputs: Sequence[Sequence[int]], sentences: Sequence[str]
) -> torch.Tensor:
    """One reward per output: BLEU of the texts, or an alignment of the model's own token embeddings."""
    if system == "bleu":
        texts = generator.decode(outputs)
        return torch.tensor(
            [sentence_bleu(text, [own]).score / 100 for text, own in zip(texts, sentences, strict=True)]
        )
    ids, mask = generator.pad(outputs, end=False)
    references, reference_mask = generator.pad([generator.encode_sentence(own) for own in sentences], end=False)
    table = generator.model.get_input_embeddings().weight
    with torch.no_grad():
        return bertscore_tensors(
            table[ids], mask, table[references], reference_mask, alignment=ALIGNMENTS[system], threads=1
        )[2]


def batches(pairs: Sequence[Pair], generator: Generator, size: int, seed: int) -> list[list[Pair]]:
    """Shuffled batches of pairs of similar length."""
    draw = random.Random(seed)
    order = draw.sample(list(pairs), len(pairs))
    found = []
    for begin in range(0, len(order), size * 8):
        part = sorted(order[begin : begin + size * 8], key=lambda pair: len(generator.encode_graph(pair.graph)))
        found += [part[at : at + size] for at in range(0, len(part), size)]
    return draw.sample(found, len(found))


def decode_all(generator: Generator, pairs: Sequence[Pair], size: int = 64) -> list[list[int]]:
    """Greedy outputs, in the order of the pairs."""
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].graph))
    found: dict[int, list[int]] = {}
    with torch.no_grad():
        for begin in range(0, len(order), size):
            part = order[begin : begin + size]
            prompts = generator.read_prompts([pairs[index].graph for index in part])
            found.update(zip(part, generator.generate(prompts, sample=False), strict=True))
    return [found[index] for index in range(len(pairs))]


def measure(generator: Generator, pairs: Sequence[Pair]) -> tuple[dict[str, float], list[str], dict[str, list[float]]]:
    """Corpus BLEU and mean rewards of greedy outputs, the outputs, and the rewards of each."""
    ids = decode_all(generator, pairs)
    texts, sentences = generator.decode(ids), [pair.sentence for pair in pairs]
    each = {system: reward_values(system, generator, ids, sentences).tolist() for system in (*ALIGNMENTS, "bleu")}
    means = {name: sum(values) / len(values) for name, values in each.items()}
    return {"corpus_bleu": corpus_bleu(texts, [sentences]).score, **means}, texts, each


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
    targets = [generator.encode_sentence(own) for own in sentences]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        prompts = generator.read_prompts([pair.graph for pair in batch])
        if system in ("start", "xent"):
            ids, mask = generator.pad(targets)
            return likelihood_loss(generator.log_probs(prompts, ids, mask), mask), Step()
    outputs = generator.generate(_single(prompts), sample=True, generator=draw)
    begin = time.process_time()
    rewards = reward_values(system, generator, outputs, sentences * 2)
    seconds = time.process_time() - begin
    greedy, sampled = rewards[: len(batch)], rewards[len(batch) :]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ids, mask = generator.pad([*targets, *outputs[len(batch) :]])
        log_probs = generator.log_probs(prompts, ids, mask)
    rows = len(batch)
    reward_loss = self_critical_loss(log_probs[rows:], mask[rows:], sampled, greedy)
    likelihood = likelihood_loss(log_probs[:rows], mask[:rows])
    step = Step(float(sampled.mean()), float(greedy.mean()), seconds)
    return mixed_loss(reward_loss, likelihood, setting.weight), step


def _single(prompts: Prompts) -> Prompts:
    """For generation: float32, like the weights outside of autocast."""
    pairs = [(keys.detach().float(), values.detach().float()) for keys, values in prompts.keys_values]
    return Prompts(prompts.mask, prompts.last.detach().float(), pairs)


def train(
    system: str, seed: int, generator: Generator, parts: dict[str, list[Pair]], setting: Setting, folder: Path
) -> list[dict[str, float]]:
    """One system of one seed, from its checkpoint if there is one; returns the validation curve."""
    pairs = parts["train"]
    if system == "start":
        steps = [
            batch
            for epoch in range(setting.start_epochs)
            for batch in batches(pairs, generator, setting.batch, 1000 * seed + epoch)
        ]
    else:
        subset = random.Random(seed).sample(pairs, min(setting.reward_sentences, len(pairs)))
        steps = batches(subset, generator, setting.batch, 1000 * seed + 500)
    optimiser = torch.optim.AdamW(generator.trained.values(), lr=setting.rate, weight_decay=0.0)
    checkpoint, curve, done, spent = folder / "checkpoint.pt", [], 0, 0.0
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        if (state["system"], state["seed"]) == (system, seed):
            generator.model.load_state_dict(state["weights"], strict=False)
            optimiser.load_state_dict(state["optimiser"])
            curve, done, spent = state["curve"], state["done"], state["spent"]
        del state
    validation = parts["validation"][: setting.validation_sentences]
    if not done:
        curve = [{"step": 0, **measure(generator, validation)[0]}]
    recent: list[Step] = []
    for number in range(done, len(steps)):
        begin = time.process_time()
        for group in optimiser.param_groups:
            group["lr"] = setting.rate * (1 - number / len(steps))
        draw = torch.Generator().manual_seed(seed * 100_003 + number)
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
            _save(checkpoint, system, seed, generator, optimiser, curve, number + 1, spent)
        print(f"{time.strftime('%H:%M:%S')} seed {seed} {system} step {number + 1}/{len(steps)} "
              f"loss {loss.item():.3f} {curve[-1]['corpus_bleu']:.2f} cpu {spent:.0f}", flush=True)  # fmt: skip
    return curve


def _save(
    path: Path,
    system: str,
    seed: int,
    generator: Generator,
    optimiser: torch.optim.Optimizer,
    curve: list[dict[str, float]],
    done: int,
    spent: float,
) -> None:
    state = {
        "system": system,
        "seed": seed,
        "weights": {name: value.detach() for name, value in generator.trained.items()},
        "optimiser": optimiser.state_dict(),
        "curve": curve,
        "done": done,
        "spent": spent,
    }
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    setting = Setting()
    given.folder.mkdir(parents=True, exist_ok=True)
    generator = Generator(given.model, setting.trained_layers)
    everything = split(data_folder() / "corpora" / "lpp_amr_v3.jsonl.gz")
    parts = {
        name: [
            pair
            for pair in pairs
            if len(generator.encode_graph(pair.graph)) <= setting.graph_tokens
            and len(generator.encode_sentence(pair.sentence)) <= setting.sentence_tokens
        ]
        for name, pairs in everything.items()
    }
    pretrained = {name: value.detach().clone() for name, value in generator.trained.items()}
    for seed in given.seeds:
        for system in SYSTEMS:
            path = RESULTS / f"{system}-{seed}.json"
            if path.is_file():
                continue
            start = given.folder / f"start-{seed}.pt"
            weights = pretrained if system == "start" else torch.load(start, weights_only=True)
            generator.model.load_state_dict(weights, strict=False)
            curve = train(system, seed, generator, parts, setting, given.folder)
            measures, outputs, each = measure(generator, parts["test"])
            result = {
                "system": system,
                "seed": seed,
                "setting": asdict(setting),
                "sizes": {name: [len(pairs), len(everything[name])] for name, pairs in parts.items()},
                "machine": machine(),
                "curve": curve,
                "test": measures,
                "ids": [pair.id for pair in parts["test"]],
                "outputs": outputs,
                "each": {name: [round(value, 5) for value in values] for name, values in each.items()},
            }
            if system == "start":
                torch.save({name: value.detach() for name, value in generator.trained.items()}, start)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        (given.folder / f"start-{seed}.pt").unlink(missing_ok=True)


if __name__ == "__main__":
    main()

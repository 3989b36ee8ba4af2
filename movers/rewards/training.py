"""Self-critical training of a generator with any reward: what `movers train reward` does.

Maximum likelihood first, if asked for, chosen by the validation loss; then the mixed loss, chosen by the reward of
greedily decoded outputs on the validation pairs. Both phases run in the loop that all `train` commands share.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypedDict, cast, get_args

from movers import io, training
from movers.agreement.lexical import LEXICAL_METRICS
from movers.errors import InputError
from movers.quality.data import Pair, data_digest, split_rows
from movers.registry import METRICS, parse_options, score_many, split_metrics
from movers.rewards.embedding import embedding_reward
from movers.rewards.generator import TextGenerator, load_generator
from movers.rewards.losses import likelihood_loss, mixed_loss, rising_weight, self_critical_loss
from movers.rewards.metric import reward
from movers.rewards.scale import mean
from movers.scores.options import option
from movers.scores.tensors import TensorAlignment

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Record", "RewardOptions", "read_prompts", "train_reward"]

_COMMAND = "train reward"
_PROMPTS = ("prompt", "source", "input", "document", "article", "text", "question")
_REFERENCES = ("reference", "summary", "target", "output", "completion", "answer", "sentence")
_SPLIT_SEED = 0  # the same held-out pairs whatever the seed of the run


@dataclass(frozen=True, kw_only=True)
class RewardOptions(training.LoopOptions):
    """Hyperparameters of `movers train reward`; saved with the model."""

    optimiser: Literal["rmsprop", "adamw"] = option("adamw", "optimiser")
    schedule: Literal["constant", "linear"] = option(
        "linear", "learning rate over the epochs: constant, or falling linearly to zero"
    )
    batch: int = option(16, "pairs per step")
    epochs: int = option(1, "maximum number of epochs with the reward")
    reward: str = option(
        "sms",
        "metrics (`name[key=value,…]`, several separated by commas), `embedding[alignment=hungarian|emd|greedy]` on "
        "the model's own embeddings, or `rouge`, `bleu`, `chrf`",
    )
    mle_epochs: int = option(0, "maximum number of epochs of maximum likelihood before", least=0)
    mle_rate: float | None = option(None, "learning rate of maximum likelihood; the same by default", values="number")
    weight: float = option(0.3, "share of the reward's loss (λ or γ); where it begins, if it rises", values="number")
    final_weight: float | None = option(None, "share of the reward's loss at the end; constant by default",
                                        values="number or None")  # fmt: skip
    prompt_tokens: int = option(256, "tokens of a prompt that are read")
    new_tokens: int = option(64, "tokens that are generated at most")
    validation_pairs: int = option(100, "validation pairs that are decoded after every epoch")

    def settle(self, metric: str) -> Self:
        for name in ("weight", "final_weight"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
                raise InputError(f"{metric}: {name}: expected a number from 0 to 1, but got {value!r}")
        _parse_reward(self.reward)
        return super().settle(metric)


def read_prompts(path: str, prompt_column: str | None = None, reference_column: str | None = None) -> list[Pair]:
    """Pairs of a file: prompts as documents, references as summaries; rows with a blank one are left out."""
    rows = list(io.read_records(path))
    if not rows:
        raise InputError(f"{_COMMAND}: data: {path!r} has no rows")
    names = list(rows[0])
    columns = (
        io.find_column(path, names, prompt_column, _PROMPTS, "--prompt-column"),
        io.find_column(path, names, reference_column, _REFERENCES, "--reference-column"),
    )
    texts = [tuple(row.get(column) for column in columns) for row in rows]
    for number, row in enumerate(texts):
        for column, value in zip(columns, row, strict=True):
            if not isinstance(value, str):
                raise InputError(f"{_COMMAND}: {column}[{number}]: expected a text, but got {value!r:.60}")
    pairs = [Pair(str(prompt), str(reference)) for prompt, reference in texts]
    return [pair for pair in pairs if pair.document.strip() and pair.summary.strip()]


# ---------------------------------------------------------------------------------------------------------------------
# Rewards by name


class Record(TypedDict):
    """What a run was and what came out."""

    model: str
    options: dict[str, object]
    pairs: dict[str, int]
    curves: dict[str, training.Curve]
    scores: dict[str, dict[str, float]]
    samples: list[dict[str, str]]


class _Wanted(NamedTuple):
    """A reward as a user wrote it: a kind, and names or options."""

    kind: Literal["metric", "embedding", "lexical"]
    names: list[str]
    options: dict[str, object]


def _parse_reward(text: str) -> _Wanted:
    """
    >>> _parse_reward("embedding[alignment=emd]")
    _Wanted(kind='embedding', names=['embedding'], options={'alignment': 'emd'})
    """
    names = split_metrics(text)
    first, _, rest = (names[0] if names else "").partition("[")
    options = parse_options(split_metrics(rest.rstrip("]")))
    if len(names) == 1 and first == "embedding":
        if set(options) - {"alignment"} or options.get("alignment", "emd") not in get_args(TensorAlignment):
            raise InputError(f"{_COMMAND}: reward: embedding takes alignment=hungarian|emd|greedy, but got {text!r}")
        return _Wanted("embedding", names=[first], options=options)
    if len(names) == 1 and first in LEXICAL_METRICS:
        return _Wanted("lexical", [first], options)
    reward(names)  # names a mistake
    return _Wanted("metric", names, {})


class _Judge:
    """Rewards of outputs, whatever they come from; all are numbers."""

    def __init__(self, text: str, generator: TextGenerator) -> None:
        self._wanted, self._generator = _parse_reward(text), generator
        wanted = self._wanted
        self._own = None
        if wanted.kind == "embedding":
            alignment = cast(TensorAlignment, wanted.options.get("alignment", "hungarian"))
            self._own = embedding_reward(generator.model, alignment, tokenizer=generator.tokenizer)
        self._metric = reward(wanted.names) if wanted.kind == "metric" else None

    def __call__(self, outputs: Sequence[Sequence[int]], pairs: Sequence[Pair]) -> list[float]:
        texts = self._generator.decode(outputs)
        references = [pair.summary for pair in pairs]
        if self._own is not None:
            found: Sequence[float | None] = self._own(completions=texts, completion_ids=outputs, reference=references)
        elif self._metric is not None:
            sources = [pair.document for pair in pairs]
            found = self._metric(completions=texts, log_metric=None, reference=references, source=sources)
        else:
            scores = LEXICAL_METRICS[self._wanted.names[0]](texts, references, **self._wanted.options)["scores"]
            assert isinstance(scores, list)
            found = scores
        return [0.0 if value is None else value for value in found]


# ---------------------------------------------------------------------------------------------------------------------
# Training


class _Sample(NamedTuple):
    """A pair, and the share of the reward's loss in its step."""

    pair: Pair
    weight: float


@dataclass(frozen=True)
class _Learner:
    """One phase: `weights` is None for maximum likelihood, else where the share of the reward begins and ends."""

    generator: TextGenerator
    judge: _Judge
    sides: dict[str, list[Pair]]
    options: RewardOptions
    weights: tuple[float, float] | None

    @property
    def module(self) -> nn.Module:
        return self.generator.model

    def batches(self, epoch: int) -> list[list[_Sample]]:
        pairs, size = self.sides["train"], self.options.batch
        order = random.Random(self.options.seed * 1009 + epoch).sample(pairs, len(pairs))
        parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
        steps = len(parts) * self.options.epochs
        found = []
        for number, part in enumerate(parts, epoch * len(parts)):
            weight = 0.0 if self.weights is None else rising_weight(number, steps, *self.weights)
            found.append([_Sample(pair, weight) for pair in part])
        return found

    def loss(self, batch: Sequence[_Sample]) -> Tensor:
        pairs, weight = [sample.pair for sample in batch], batch[0].weight
        prompts = [pair.document for pair in pairs]
        targets = [self.generator.encode(pair.summary) for pair in pairs]
        if self.weights is None:
            return likelihood_loss(*self.generator.log_probs(prompts, targets))
        sampled, greedy = self.generator.generate(prompts, sample=True), self.generator.generate(prompts)
        reward_loss = self_critical_loss(
            *self.generator.log_probs(prompts, sampled), self.judge(sampled, pairs), self.judge(greedy, pairs)
        )
        return mixed_loss(reward_loss, likelihood_loss(*self.generator.log_probs(prompts, targets)), weight)

    def validate(self) -> dict[str, float]:
        """Cross-entropy per token, and the reward of greedy outputs; which of them is the loss depends on the phase."""
        import torch

        pairs = self.sides["validation"]
        total = count = 0.0
        self.module.eval()
        with torch.no_grad():
            for begin in range(0, len(pairs), self.options.batch):
                part = pairs[begin : begin + self.options.batch]
                targets = [self.generator.encode(pair.summary) for pair in part]
                log_probs, mask = self.generator.log_probs([pair.document for pair in part], targets)
                total -= float((log_probs * mask).sum())
                count += float(mask.sum())
        decoded = pairs[: self.options.validation_pairs]
        earned = mean(self.judge(self.decode(decoded), decoded))
        loss = total / count if self.weights is None else -earned
        return {"validation_loss": loss, "cross_entropy": total / count, "reward": earned}

    def decode(self, pairs: Sequence[Pair]) -> list[list[int]]:
        """Greedy outputs."""
        size = self.options.batch
        parts = [pairs[begin : begin + size] for begin in range(0, len(pairs), size)]
        return [row for part in parts for row in self.generator.generate([pair.document for pair in part])]


def train_reward(
    pairs: Sequence[Pair],
    model: str | Path,
    output: str | Path,
    options: RewardOptions | None = None,
    *,
    progress: bool | None = None,
) -> Record:
    """Train the model of a folder with a reward, and write the folder of the trained one.

    Parameters
    ----------
    pairs
        Prompts (documents) with references (summaries); 80/10/10 for training, validation and the final table.
    model
        Folder or Hub id of a seq2seq or causal language model.
    output
        Folder of the trained model. If a run with the same data and options was interrupted there, it continues.

    Returns
    -------
    Record
        The record of the run, which is also `training.json` in the folder: options, curves, the scores of all metrics
        on held-out pairs before and after, and outputs.
    """
    given = options or RewardOptions()
    options = RewardOptions.parse(_COMMAND, {item.name: getattr(given, item.name) for item in fields(given)})
    if len(pairs) < 10:
        raise InputError(f"{_COMMAND}: data: expected at least 10 pairs, but got {len(pairs)}")
    output = Path(output)
    settings = {**asdict(options), "model": str(model)}
    with training.claimed_folder(_COMMAND, output, settings, data_digest(pairs)) as work:
        sides = {name: [pairs[row] for row in rows] for name, rows in split_rows(pairs, _SPLIT_SEED).items()}
        generator = load_generator(model, options.prompt_tokens, options.new_tokens)
        judge = _Judge(options.reward, generator)
        begin, end = options.weight, options.weight if options.final_weight is None else options.final_weight
        learner = _Learner(generator, judge, sides, options, (begin, end))
        outputs = {"before": _held_out(learner, work / "before.json")}
        curves = {}
        if options.mle_epochs:
            first = replace(options, epochs=options.mle_epochs, rate=options.mle_rate or options.rate)
            likelihood = replace(learner, options=first, weights=None)
            curves["likelihood"] = _fit(likelihood, first, work / "likelihood.safetensors", progress)
            outputs["likelihood"] = _held_out(learner, work / "likelihood.json")
        curves["reward"] = _fit(learner, options, work / "reward.safetensors", progress)
        outputs["reward"] = _held_out(learner, work / "reward.json")
    record: Record = {
        "model": Path(model).name,
        "options": asdict(options),
        "pairs": {name: len(side) for name, side in sides.items()},
        "curves": curves,
        "scores": _table(learner, outputs),
        "samples": [
            {"prompt": pair.document, "reference": pair.summary, **{name: rows[at] for name, rows in outputs.items()}}
            for at, pair in enumerate(sides["test"][:10])
        ],
    }
    with training.written_folder(_COMMAND, output, last="model.safetensors") as folder:
        generator.model.save_pretrained(folder)
        generator.tokenizer.save_pretrained(folder)
        io.write_file(folder / "training.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        for name, curve in curves.items():
            training.draw_curve(curve, folder / f"{name}_curve.png")
    return record


def _fit(learner: _Learner, options: RewardOptions, checkpoint: Path, progress: bool | None) -> training.Curve:
    return training.fit(_COMMAND, learner, options, checkpoint, default_rate=1e-5, progress=progress)


def _held_out(learner: _Learner, path: Path) -> list[str]:
    """Greedy outputs for the held-out pairs; kept, so that a run that continues need not decode again."""
    if not path.is_file():
        texts = learner.generator.decode(learner.decode(learner.sides["test"]))
        io.write_file(path, json.dumps(texts, ensure_ascii=False))
    found: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _table(learner: _Learner, outputs: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """Mean score of every metric on the held-out pairs, and the reward trained with, by phase."""
    pairs = learner.sides["test"]
    metrics = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
    table = {}
    for phase, texts in outputs.items():
        results = score_many(metrics, texts, [pair.summary for pair in pairs])
        ids = [learner.generator.encode(text) for text in texts]
        scores = {name: float(str(result["score"])) for name, result in results.items()}
        table[phase] = {"reward": mean(learner.judge(ids, pairs)), **scores}
    return table

"""Training of the reference-free metric: samples once, vectors once, then cheap epochs with early stopping.

Everything random is drawn from the seed and the number of the epoch, never from what ran before; and after every epoch
the weights, the optimiser and the curve are on disk. So a run that was killed goes on where it stood and ends with the
same weights as one that was not.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from movers.encoders.cache import replace_file
from movers.inputs import check_choice, check_positive
from movers.quality.data import SPLITS, DocumentSummary, data_digest, split_rows
from movers.quality.negatives import Negatives, Pair, Sample, build_vocabulary, make_samples
from movers.quality.vectors import Unit, split_units
from movers.version import VERSION

if TYPE_CHECKING:
    from movers.quality.model import QualityModel

__all__ = ["TrainingOptions", "evaluate_samples", "train"]

Optimiser = Literal["rmsprop", "adamw"]
Schedule = Literal["constant", "linear"]
Head = Literal["fc", "cnn", "lstm", "align"]
_METRIC = "train quality"


@dataclass(frozen=True)
class TrainingOptions:
    """What a training run hangs on; all of it is kept in the model's record.

    Parameters
    ----------
    encoder
        Any name that `movers.encoders.load_encoder` knows.
    unit : {"words", "sentences", "cross"}, optional
        Words of a static encoder, sentences of a contextual one (the defaults for these), or document and summary
        read together by the transformer, which is then fine-tuned.
    head : {"fc", "cnn", "lstm", "align"}
        Network over the vectors; `cross` always has the paper's fully connected one.
    negatives : {"cross", "add", "delete", "replace", "mix", "broad"}
    fakes
        Negative samples a document.
    optimiser : {"rmsprop", "adamw"}
        The paper uses RMSProp.
    rate
        Learning rate; 0.001, or 0.00003 when a transformer is fine-tuned, if None.
    schedule : {"constant", "linear"}
        The rate stays, as in the paper, or falls in a line, epoch by epoch, to nothing after the last.
    epochs, patience
        At most so many epochs; stop when the validation loss has not fallen for `patience` of them.
    window
        Tokens that the cross-encoder reads at once; its largest if None.
    """

    encoder: str = "all-MiniLM-L6-v2"
    unit: Unit | None = None
    head: Head = "align"
    negatives: Negatives = "mix"
    fakes: int = 1
    optimiser: Optimiser = "rmsprop"
    rate: float | None = None
    schedule: Schedule = "constant"
    batch: int = 32
    epochs: int = 30
    patience: int = 3
    seed: int = 0
    lang: str = "en"
    window: int | None = None

    def check(self) -> TrainingOptions:
        """Itself, if every option is valid."""
        for name, choices in (
            ("head", Head),
            ("negatives", Negatives),
            ("optimiser", Optimiser),
            ("schedule", Schedule),
        ):
            check_choice(_METRIC, name, getattr(self, name), choices)
        if self.unit is not None:
            check_choice(_METRIC, "unit", self.unit, get_args(Unit))
        for name in ("fakes", "batch", "epochs", "patience"):
            check_positive(_METRIC, name, getattr(self, name), none_allowed=False)
        check_positive(_METRIC, "window", self.window)
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"{_METRIC}: rate: expected a number above zero, but got {self.rate!r}")
        if self.unit == "words" and self.head == "align":
            raise ValueError(f"{_METRIC}: head: 'align' needs sentences; with unit='words' take 'fc', 'cnn' or 'lstm'")
        return self


def prepare_pairs(pairs: Sequence[DocumentSummary], lang: str) -> list[Pair]:
    """Pairs with both texts split into sentences, for the makers of negative samples."""
    return [
        Pair(
            pair.source,
            pair.summary.strip(),
            tuple(split_units(pair.source, "sentences", lang)),
            tuple(split_units(pair.summary, "sentences", lang)),
        )
        for pair in pairs
    ]


def draw_samples(
    pairs: Sequence[Pair], sides: dict[str, list[int]], options: TrainingOptions
) -> dict[str, list[Sample]]:
    """Samples of each side, made of that side's rows alone; random words come from the training side's vocabulary."""
    vocabulary = build_vocabulary([pairs[row].summary for row in sides["train"]])
    samples = {}
    for number, name in enumerate(SPLITS):
        rows = sides[name]
        made = make_samples(
            [pairs[row] for row in rows],
            options.negatives,
            fakes=options.fakes,
            seed=options.seed * len(SPLITS) + number,
            vocabulary=vocabulary,
        )
        samples[name] = [replace(one, row=rows[one.row], summary_row=rows[one.summary_row]) for one in made]
    return samples


def _loss(options: TrainingOptions) -> Callable[[Any, Any], Any]:
    """Cross-entropy for pairing and for mixtures (soft labels), mean square error for one kind of mutation."""
    from torch.nn import functional

    if options.negatives in ("add", "delete", "replace"):
        return lambda logits, labels: (logits.sigmoid() - labels).square()
    return lambda logits, labels: functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def train(
    data: Sequence[DocumentSummary],
    output: Path | str,
    options: TrainingOptions | None = None,
    *,
    sources: Sequence[dict[str, Any]] = (),
    vectors: Path | str | None = None,
    progress: bool | None = None,
) -> QualityModel:
    """Train a model and write its folder.

    Parameters
    ----------
    data
        Documents with good summaries; split 80/10/10 by document.
    output
        Folder of the model. If a run with the same data and options was stopped there, it goes on; any other run there
        is an error.
    sources
        What the record says of the data's origin (name, licence, …).
    vectors
        Where vectors are kept, to be shared by runs with one encoder; `output/work/vectors` if None.
    progress
        True shows bars, None shows them on terminals only.

    Returns
    -------
    QualityModel
        The model of the best epoch, as it was saved.
    """
    import torch

    from movers.quality.learners import build_learner
    from movers.quality.model import save_model

    options = (options or TrainingOptions()).check()
    output = Path(output)
    if len(data) < 10:
        raise ValueError(f"{_METRIC}: data: expected at least 10 documents, but got {len(data)}")
    digest = data_digest(data)
    _claim(output, {"options": asdict(options), "data": digest, "version": VERSION})
    work = output / "work"
    pairs = prepare_pairs(data, options.lang)
    sides = split_rows(data, options.seed)
    samples = draw_samples(pairs, sides, options)

    torch.manual_seed(options.seed)
    learner = build_learner(options, pairs, samples, Path(vectors) if vectors else work / "vectors", progress)
    curve, best = _epochs(learner, samples, options, work, progress)
    learner.module.load_state_dict(best)
    record = {
        "data": {"digest": digest, "documents": len(data), "sources": list(sources)},
        "sides": {name: len(rows) for name, rows in sides.items()},
        "samples": {name: len(made) for name, made in samples.items()},
        "options": asdict(options),
        "parameters": sum(value.numel() for value in learner.module.parameters() if value.requires_grad),
        "curve": curve,
        "test": evaluate_samples(learner.predict(samples["test"]), samples["test"]),
        "environment": environment(),
    }
    return save_model(output, learner, options, record)


def _claim(output: Path, run: dict[str, Any]) -> None:
    """Start a run in the folder, or make sure that the one it holds is the same."""
    path = output / "work" / "run.json"
    if path.is_file():
        held = json.loads(path.read_text())
        if held != run:
            changed = sorted(key for key in run["options"] if held.get("options", {}).get(key) != run["options"][key])
            what = ", ".join(changed) if changed else "data or version"
            raise ValueError(
                f"{_METRIC}: output: {str(output)!r} holds a run that differs in {what}; "
                "take another folder or remove it"
            )
        return
    if output.is_dir() and any(output.iterdir()):
        raise ValueError(f"{_METRIC}: output: expected a new or empty folder, but {str(output)!r} holds other files")
    replace_file(path, json.dumps(run, indent=1).encode())


def _epochs(
    learner: Any, samples: dict[str, list[Sample]], options: TrainingOptions, work: Path, progress: bool | None
) -> tuple[list[dict[str, float]], dict[str, Any]]:
    import torch
    from safetensors.torch import load_file, save_file
    from tqdm import tqdm

    module = learner.module
    rate = options.rate or learner.rate
    wanted = [value for value in module.parameters() if value.requires_grad]
    if options.optimiser == "rmsprop":
        optimiser: torch.optim.Optimizer = torch.optim.RMSprop(wanted, lr=rate)
    else:
        optimiser = torch.optim.AdamW(wanted, lr=rate, weight_decay=1e-4)
    loss_of = _loss(options)
    curve: list[dict[str, float]] = []
    state_file, last_file, best_file = work / "state.json", work / "last.safetensors", work / "best.safetensors"
    if state_file.is_file():
        curve = json.loads(state_file.read_text())["curve"]
        stored = load_file(last_file)
        module.load_state_dict({k[2:]: v for k, v in stored.items() if k.startswith("m.")})
        _load_optimiser(optimiser, {k[2:]: v for k, v in stored.items() if k.startswith("o.")})
    training, validation = samples["train"], samples["validation"]
    truth = torch.tensor([sample.label for sample in validation])
    best = min(curve, key=lambda entry: entry["validation_loss"])["epoch"] if curve else -1
    bar = tqdm(total=options.epochs, initial=len(curve), desc="train", unit=" epochs", disable=_disable(progress))
    with bar:
        while len(curve) < options.epochs and len(curve) - 1 - best < options.patience:
            epoch = len(curve)
            began = time.perf_counter()
            torch.manual_seed(options.seed * 10_007 + epoch)  # dropout
            if options.schedule == "linear":
                for group in optimiser.param_groups:
                    group["lr"] = rate * (1 - epoch / options.epochs)
            module.train()
            total = 0.0
            batches = _batches(
                learner.lengths(training), options.batch, np.random.default_rng([options.seed, epoch, 1])
            )
            for chosen in tqdm(batches, desc=f"epoch {epoch}", leave=False, disable=_disable(progress)):
                loss = learner.loss([training[place] for place in chosen], loss_of)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(wanted, 1.0)
                optimiser.step()
                total += float(loss.detach()) * len(chosen)
            predicted = torch.tensor(learner.predict(validation), dtype=torch.float64).clamp(1e-7, 1 - 1e-7)
            measured = float(loss_of(predicted.logit(), truth.double()).mean())
            found = evaluate_samples(predicted.tolist(), validation)
            curve.append(
                {
                    "epoch": epoch,
                    "training_loss": total / len(training),
                    "validation_loss": measured,
                    **{f"validation_{name}": value for name, value in found.items() if isinstance(value, float)},
                    "seconds": round(time.perf_counter() - began, 1),
                }
            )
            weights = {name: value.detach().clone().contiguous() for name, value in module.state_dict().items()}
            if measured <= min(entry["validation_loss"] for entry in curve):
                best = epoch
                _save_whole(save_file, weights, best_file)
            state = {f"m.{name}": value for name, value in weights.items()}
            state |= {f"o.{name}": value for name, value in _optimiser_state(optimiser).items()}
            _save_whole(save_file, state, last_file)
            replace_file(state_file, json.dumps({"curve": curve}).encode())
            bar.set_postfix(loss=f"{measured:.4f}", best=best)
            bar.update(1)
    return curve, load_file(best_file)


def _disable(progress: bool | None) -> bool | None:
    return None if progress is None else not progress


def _save_whole(save_file: Callable[..., None], tensors: dict[str, Any], path: Path) -> None:
    unfinished = path.with_suffix(".tmp")
    save_file(tensors, unfinished)
    unfinished.replace(path)


def _optimiser_state(optimiser: Any) -> dict[str, Any]:
    """Tensors of the optimiser by `number.name`; its numbers (steps) as tensors too."""
    import torch

    return {
        f"{number}.{name}": torch.as_tensor(value).detach().clone().contiguous()
        for number, entry in optimiser.state_dict()["state"].items()
        for name, value in entry.items()
    }


def _load_optimiser(optimiser: Any, tensors: dict[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def _batches(lengths: Sequence[int], size: int, rng: np.random.Generator) -> list[list[int]]:
    """Shuffled batches of samples of about equal length (sorted inside pools of 16 batches: little is padded)."""
    order = rng.permutation(len(lengths))
    batches = []
    for begin in range(0, len(order), 16 * size):
        pool = sorted(order[begin : begin + 16 * size].tolist(), key=lambda place: lengths[place])
        batches += [pool[place : place + size] for place in range(0, len(pool), size)]
    return [batches[place] for place in rng.permutation(len(batches))]


def evaluate_samples(predicted: Sequence[float], samples: Sequence[Sample]) -> dict[str, float]:
    """Accuracy on own and cross pairs (threshold one half), Pearson correlation with the labels of mutated ones.

    `mutation` is over added, deleted and replaced samples together; a figure is left out where there is no such
    sample.
    """
    scores = np.asarray(predicted)
    labels = np.array([sample.label for sample in samples])
    kinds = np.array([sample.kind for sample in samples])
    out: dict[str, float] = {}
    crossed, own = kinds == "cross", kinds == "original"
    if crossed.any():
        # as many own as cross pairs count, whatever other kinds there are
        right = np.mean(scores[crossed] < 0.5), np.mean(scores[own] >= 0.5)
        out["cross_accuracy"] = float(np.mean(right))
    for name, chosen in [("mutation", np.isin(kinds, ("add", "delete", "replace")))] + [
        (kind, kinds == kind) for kind in dict.fromkeys(kinds.tolist()) if kind not in ("cross", "original", "extract")
    ]:
        if chosen.sum() > 2 and np.ptp(labels[chosen]) > 0 and np.ptp(scores[chosen]) > 0:
            out[f"{name}_pearson"] = float(np.corrcoef(scores[chosen], labels[chosen])[0, 1])
    if np.ptp(labels) > 0 and np.ptp(scores) > 0:
        out["pearson"] = float(np.corrcoef(scores, labels)[0, 1])
    return out


def environment() -> dict[str, str]:
    """Versions and machine, for the record of a run."""
    import torch
    import transformers

    return {
        "movers": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
    }

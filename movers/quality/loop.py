"""The training loop: hyperparameters, checkpoints, early stopping and progress.

Everything random is drawn from the seed and the number of the epoch, never from what ran before. After every epoch the
weights, the best weights, the optimiser and the curve are written as one file. So a run that was killed at any moment
continues when it is started again, and ends with the same weights as one that was not (on the same machine, with the
same number of threads).
"""

from __future__ import annotations

import errno
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, Self, TypeVar

from movers import io
from movers.errors import InputError
from movers.scores.options import Options, option
from movers.version import VERSION

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

__all__ = ["Checkpoint", "Curve", "Learner", "LoopOptions", "best_entry", "claim_folder", "claimed_folder",
           "environment", "fit", "seeded", "written_folder"]  # fmt: skip

Curve = list[dict[str, float]]
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class LoopOptions(Options):
    """Hyperparameters of every training loop; saved with the model."""

    optimiser: Literal["rmsprop", "adamw"] = option("rmsprop", "optimiser; RMSProp is the paper's")
    rate: float | None = option(None, "learning rate; by default one that suits the model", values="number or None")
    schedule: Literal["constant", "linear"] = option(
        "constant", "learning rate over the epochs: constant, or falling linearly to zero"
    )
    batch: int = option(32, "samples per step")
    epochs: int = option(30, "maximum number of epochs")
    patience: int = option(3, "stop after this many epochs without a lower validation loss")
    seed: int = option(0, "seed of everything random", least=0)

    def settle(self, metric: str) -> Self:
        if self.rate is not None and not (isinstance(self.rate, int | float) and 0 < self.rate < math.inf):
            raise InputError(f"{metric}: rate: expected a number above zero, but got {self.rate!r}")
        return self


class Learner(Protocol, Generic[Item]):
    """A model and how samples reach it."""

    @property
    def module(self) -> nn.Module:
        """What is trained."""
        ...

    def batches(self, epoch: int) -> Sequence[Sequence[Item]]:
        """The samples of an epoch, in batches; the same for the same epoch."""
        ...

    def loss(self, batch: Sequence[Item]) -> Tensor:
        """Mean loss of a batch."""
        ...

    def validate(self) -> dict[str, float]:
        """Measures after an epoch, `validation_loss` among them."""
        ...


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside; the caller's random state is the same before and after."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


# ---------------------------------------------------------------------------------------------------------------------
# The folder of a run


def claim_folder(command: str, output: Path, options: Mapping[str, object], data: str) -> Path:
    """Start a run in a folder, or make sure that the run it holds is the same; returns the folder for working files.

    Parameters
    ----------
    options : hyperparameters, as JSON values
    data : digest of the training data
    """
    run = {"options": dict(options), "data": data, "version": VERSION}
    path = output / "work" / "run.json"
    if not path.is_file():
        # `work` alone is what a run leaves that was killed before its first write was complete
        if output.exists() and not (output.is_dir() and {item.name for item in output.iterdir()} <= {"work"}):
            raise InputError(f"{command}: output: expected a new or empty folder, but {str(output)!r} has other files")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{command}: output: {path.parent}: cannot make this folder: {error.strerror}") from None
        io.write_file(path, json.dumps(run, indent=1))
    try:
        held = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{command}: output: {path}: expected the record of a run, but got: {error}") from None
    if held != (wanted := json.loads(json.dumps(run))):
        known = held.get("options", {})
        changed = [name for name in wanted["options"] if known.get(name) != wanted["options"][name]]
        changed += [name for name in ("data", "version") if held.get(name) != wanted[name]]
        raise InputError(
            f"{command}: output: {str(output)!r} has a run with other {', '.join(changed)}; "
            "choose another folder or remove this one"
        )
    return path.parent


@contextmanager
def claimed_folder(command: str, output: Path, options: Mapping[str, object], data: str) -> Iterator[Path]:
    """`claim_folder`, given up again by an `InputError` before anything was computed: a corrected call may have it."""
    existed = output.exists()
    work = claim_folder(command, output, options, data)
    try:
        yield work
    except InputError:
        if [item.name for item in work.iterdir()] == ["run.json"]:
            (work / "run.json").unlink()
            for folder in (work,) if existed else (work, output):
                with suppress(OSError):  # somebody else's file is in it
                    folder.rmdir()
        raise


@contextmanager
def written_folder(command: str, output: Path, last: str) -> Iterator[Path]:
    """A folder to write a model into; when the block ends without an error its files move to `output`, `last` last.

    Without that file `output` is no model, so that nobody ever loads half of one. After an error nothing has moved.
    """
    scratch = output / "work" / "saved"
    shutil.rmtree(scratch, ignore_errors=True)  # by a run that was killed
    try:
        scratch.mkdir(parents=True)
        yield scratch
        for path in sorted(scratch.iterdir(), key=lambda path: (path.name == last, path.name)):
            if (output / path.name).is_dir():
                shutil.rmtree(output / path.name)
            os.replace(path, output / path.name)
    except Exception as error:  # libraries have classes of their own for a full disk
        reason = os.strerror(errno.ENOSPC)
        if isinstance(error, InputError) or reason not in str(error):
            raise
        raise InputError(f"{command}: output: {output}: cannot write it: {reason}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class Checkpoint:
    """State of a run after an epoch: one safetensors file, so that its parts always belong together."""

    curve: Curve
    weights: dict[str, Tensor]
    best: dict[str, Tensor]
    optimiser: dict[str, Tensor]

    def save(self, path: Path) -> None:
        from safetensors.torch import save

        groups = {"weights": self.weights, "optimiser": self.optimiser}
        if self.best is not self.weights:
            groups["best"] = self.best
        tensors = {f"{group}/{name}": value for group, found in groups.items() for name, value in found.items()}
        io.write_file(path, save(tensors, metadata={"curve": json.dumps(self.curve)}))

    @classmethod
    def load(cls, path: Path) -> Checkpoint | None:
        """The checkpoint in the file; None if there is none."""
        if not path.is_file():
            return None
        from safetensors import SafetensorError, safe_open

        groups: dict[str, dict[str, Tensor]] = {"weights": {}, "optimiser": {}, "best": {}}
        try:
            with safe_open(path, "pt") as file:
                curve = json.loads(file.metadata()["curve"])
                for key in file.keys():
                    group, name = key.split("/", 1)
                    groups[group][name] = file.get_tensor(key)
        except SafetensorError as error:
            raise InputError(f"{path}: expected a checkpoint, but {error}; remove the folder of the run") from None
        return cls(curve, groups["weights"], groups["best"] or groups["weights"], groups["optimiser"])


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of the optimiser by `number.name`; its numbers (steps) as tensors too."""
    import torch

    state = optimiser.state_dict()["state"]
    return _copied(
        {f"{number}.{name}": torch.as_tensor(value) for number, found in state.items() for name, value in found.items()}
    )


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


# ---------------------------------------------------------------------------------------------------------------------
# The loop


def best_entry(curve: Curve) -> dict[str, float]:
    """The epoch with the lowest validation loss; of equal ones the last.

    >>> best_entry([{"epoch": 0, "validation_loss": 0.5}, {"epoch": 1, "validation_loss": 0.5}])["epoch"]
    1
    """
    return min(reversed(curve), key=lambda entry: entry["validation_loss"])


def _stopped(curve: Curve, options: LoopOptions) -> bool:
    if not curve or len(curve) >= options.epochs:
        return bool(curve)
    return len(curve) - 1 - best_entry(curve)["epoch"] >= options.patience


def fit(
    command: str,
    learner: Learner[Item],
    options: LoopOptions,
    checkpoint: Path,
    *,
    default_rate: float,
    progress: bool | None = None,
) -> Curve:
    """Train until the last epoch or until the validation loss stops falling; leave the best weights in the module.

    Parameters
    ----------
    checkpoint : file that is replaced after every epoch; if it exists, the run continues from there
    default_rate : learning rate if the options name none

    Returns
    -------
    list of dict
        The curve, one entry per epoch: `epoch`, `training_loss`, what `learner.validate` returned, `seconds`.
    """
    import torch

    module, rate = learner.module, options.rate or default_rate
    trained = [value for value in module.parameters() if value.requires_grad]
    optimiser: torch.optim.Optimizer = torch.optim.RMSprop(trained, lr=rate)
    if options.optimiser == "adamw":
        optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=1e-4)
    state = Checkpoint.load(checkpoint) or Checkpoint([], {}, {}, {})
    if state.curve:
        module.load_state_dict(state.weights)
        _restore_optimiser(optimiser, state.optimiser)
    steps = len(learner.batches(0))
    done = len(state.curve) * steps
    with io.progress_bar(options.epochs * steps, desc="train", unit=" steps", progress=progress, initial=done) as bar:
        while not _stopped(state.curve, options):
            epoch, began = len(state.curve), time.perf_counter()
            for group in optimiser.param_groups:
                group["lr"] = rate * (1 - epoch / options.epochs) if options.schedule == "linear" else rate
            module.train()
            total = count = 0.0
            with seeded(options.seed * 10_007 + epoch):  # dropout
                for batch in learner.batches(epoch):
                    loss = learner.loss(batch)
                    optimiser.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(trained, 1.0)
                    optimiser.step()
                    total += float(loss.detach()) * len(batch)
                    count += len(batch)
                    bar.update(1)
                measured = learner.validate()
            if not math.isfinite(total) or not math.isfinite(measured["validation_loss"]):
                raise InputError(f"{command}: rate: the loss is not finite after epoch {epoch} with a rate of {rate}")
            entry = {"epoch": epoch, "training_loss": total / count, **measured}
            curve = [*state.curve, {**entry, "seconds": round(time.perf_counter() - began, 1)}]
            weights = _copied(module.state_dict())
            best = best_entry(curve)["epoch"]
            state = Checkpoint(curve, weights, weights if best == epoch else state.best, _optimiser_tensors(optimiser))
            state.save(checkpoint)
            bar.set_postfix(loss=f"{measured['validation_loss']:.4f}", best=best)
    module.load_state_dict(state.best)
    return state.curve


def environment() -> dict[str, str]:
    """Versions and machine, for the record of a run."""
    versions = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return {"movers": VERSION, "python": platform.python_version(), **versions, "machine": platform.machine()}

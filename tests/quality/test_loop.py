"""The training loop: interrupted anywhere, a run ends with the weights of an uninterrupted one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from movers import io
from movers.errors import InputError
from movers.quality.loop import Checkpoint, LoopOptions, best_entry, claim_folder, claimed_folder, fit, seeded

Sample = tuple[list[float], float]
LOOP = LoopOptions(epochs=4, patience=4, batch=8, rate=0.05, seed=3)


class Killed(BaseException):
    """As if the process had ended."""


class LineLearner:
    """A line with dropout through 40 points."""

    def __init__(self, losses: list[float] | None = None) -> None:
        self.module = nn.Sequential(nn.Dropout(0.2), nn.Linear(3, 1))
        rng = np.random.default_rng(0)
        self._samples: list[Sample] = [(x.tolist(), float(x.sum())) for x in rng.normal(size=(40, 3))]
        self._losses = losses  # what validation measures, if it is given beforehand
        self.epochs_begun: list[int] = []

    def batches(self, epoch: int) -> list[list[Sample]]:
        order = np.random.default_rng([7, epoch]).permutation(40).reshape(5, 8)
        return [[self._samples[place] for place in row] for row in order]

    def loss(self, batch: list[Sample]) -> Tensor:
        inputs, targets = torch.tensor([x for x, _ in batch]), torch.tensor([y for _, y in batch])
        return (self.module(inputs).squeeze(-1) - targets).square().mean()

    def validate(self) -> dict[str, float]:
        self.module.eval()
        self.epochs_begun.append(len(self.epochs_begun))
        if self._losses is not None:
            return {"validation_loss": self._losses[len(self.epochs_begun) - 1]}
        with torch.no_grad():
            return {"validation_loss": float(self.loss(self._samples))}


def run(folder: Path, options: LoopOptions = LOOP) -> tuple[dict[str, Tensor], list[dict[str, float]]]:
    """A training command in miniature."""
    work = claim_folder("train line", folder, {"seed": options.seed}, "digest")
    with seeded(options.seed):
        learner = LineLearner()
        curve = fit("train line", learner, options, work / "checkpoint.safetensors", default_rate=0.01)
    return learner.module.state_dict(), [entry | {"seconds": 0.0} for entry in curve]


def kills(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill what is done in the loop's body before its first write, after it, before the second, …, until none is left.

    For as many rounds as the body writes files, and one more in which it is not killed.
    """
    write, number, killed = io.write_file, 0, True
    while killed:
        for after in (False, True):
            left, killed = number, False

            def writing(path: Path, data: bytes | str) -> None:
                nonlocal left, killed
                left -= 1
                if left == -1:
                    killed = True
                    if after:  # noqa: B023
                        write(path, data)
                    raise Killed
                write(path, data)

            monkeypatch.setattr(io, "write_file", writing)
            yield
            monkeypatch.setattr(io, "write_file", write)
        number += 1
    assert number > 2, "nothing was ever killed"


@pytest.mark.parametrize(("optimiser", "schedule"), [("rmsprop", "constant"), ("adamw", "linear")])
def test_a_run_killed_at_any_write_ends_with_the_same_weights(
    optimiser: str, schedule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = LoopOptions(**{**vars(LOOP), "optimiser": optimiser, "schedule": schedule})
    weights, curve = run(tmp_path / "whole", options)
    for number, _ in enumerate(kills(monkeypatch)):
        folder = tmp_path / str(number)
        with suppress(Killed):
            run(folder, options)
        monkeypatch.undo()
        resumed, resumed_curve = run(folder, options)
        assert resumed_curve == curve
        assert all(torch.equal(value, resumed[name]) for name, value in weights.items())


def test_training_stops_when_patience_ends_and_leaves_the_best_weights(tmp_path: Path) -> None:
    learner = LineLearner(losses=[0.9, 0.4, 0.6, 0.5, 0.1])
    seen: list[Tensor] = []
    validate = learner.validate
    learner.validate = lambda: (seen.append(learner.module[1].weight.detach().clone()), validate())[1]  # type: ignore
    options = LoopOptions(epochs=5, patience=2)
    curve = fit("train line", learner, options, tmp_path / "state", default_rate=0.01)
    assert [entry["validation_loss"] for entry in curve] == [0.9, 0.4, 0.6, 0.5]
    assert best_entry(curve)["epoch"] == 1
    assert torch.equal(learner.module[1].weight, seen[1])


def test_the_callers_random_numbers_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    run(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_a_loss_that_is_not_finite_is_an_error_that_names_the_rate(tmp_path: Path) -> None:
    learner = LineLearner(losses=[float("nan")])
    with pytest.raises(InputError, match=r"train line: rate: the loss is not finite after epoch 0 with a rate of 0.5"):
        fit("train line", learner, LoopOptions(rate=0.5), tmp_path / "state", default_rate=0.01)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [({"seed": 2}, "d", "other seed"), ({"seed": 1}, "e", "other data"), ({"seed": 1, "new": 1}, "d", "other new")],
)
def test_a_folder_of_another_run_is_refused(options: dict[str, int], data: str, message: str, tmp_path: Path) -> None:
    claim_folder("train line", tmp_path, {"seed": 1}, "d")
    assert claim_folder("train line", tmp_path, {"seed": 1}, "d") == tmp_path / "work"
    with pytest.raises(InputError, match=message):
        claim_folder("train line", tmp_path, options, data)


@pytest.mark.parametrize("existed", [True, False])
def test_a_mistake_before_anything_was_computed_gives_the_folder_up(existed: bool, tmp_path: Path) -> None:
    output = tmp_path / "model"
    if existed:
        output.mkdir()
    with pytest.raises(InputError, match="mistyped"), claimed_folder("train line", output, {"seed": 1}, "d"):
        raise InputError("mistyped")
    assert output.exists() == existed and not (output / "work").exists()
    with claimed_folder("train line", output, {"seed": 2}, "d") as work:
        (work / "state").write_text("an hour of work")
    with pytest.raises(InputError, match="late"), claimed_folder("train line", output, {"seed": 2}, "d"):
        raise InputError("late")
    assert (work / "state").read_text() == "an hour of work"
    with pytest.raises(InputError, match="other seed"), claimed_folder("train line", output, {"seed": 1}, "d"):
        pass


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="expected a new or empty folder"):
        claim_folder("train line", tmp_path, {}, "d")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_damaged_checkpoint_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"nothing")
    with pytest.raises(InputError, match="state: expected a checkpoint"):
        Checkpoint.load(tmp_path / "state")

"""The training loop: early stopping, the folder of a run, and how tests interrupt one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from movers import io
from movers.errors import InputError
from movers.quality.loop import LoopOptions, best_entry, claimed_folder, fit


class Killed(BaseException):
    """As if the process had ended."""


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


class Line:
    """A line through three points, whose validation losses are fixed beforehand."""

    def __init__(self, losses: list[float]) -> None:
        self.module, self.losses, self.weights = nn.Linear(3, 1), losses, list[Tensor]()

    def batches(self, epoch: int) -> list[list[int]]:
        return [[0, 1, 2]]

    def loss(self, batch: list[int]) -> Tensor:
        return (self.module(torch.eye(3)[batch]) - 1).square().mean()

    def validate(self) -> dict[str, float]:
        self.weights.append(self.module.weight.detach().clone())
        return {"validation_loss": self.losses[len(self.weights) - 1]}


def test_training_stops_when_patience_ends_and_leaves_the_best_weights(tmp_path: Path) -> None:
    line = Line([0.9, 0.4, 0.6, 0.5, 0.1])
    curve = fit("train line", line, LoopOptions(epochs=5, patience=2), tmp_path / "state", default_rate=0.01)
    assert [entry["validation_loss"] for entry in curve] == [0.9, 0.4, 0.6, 0.5]
    assert best_entry(curve)["epoch"] == 1 and torch.equal(line.module.weight, line.weights[1])


def test_a_loss_that_is_not_finite_is_an_error_that_names_the_rate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train line: rate: the loss is not finite after epoch 0 with a rate of 0.5"):
        fit("train line", Line([float("nan")]), LoopOptions(rate=0.5), tmp_path / "state", default_rate=0.01)


def test_a_folder_is_kept_for_the_run_that_computed_something_in_it(tmp_path: Path) -> None:
    output = tmp_path / "model"
    with pytest.raises(InputError, match="mistyped"), claimed_folder("train line", output, {"seed": 1}, "d"):
        raise InputError("mistyped")
    assert not output.exists()  # a corrected call may have it
    with claimed_folder("train line", output, {"seed": 2}, "d") as work:
        (work / "state").write_text("an hour of work")
    with pytest.raises(InputError, match="late"), claimed_folder("train line", output, {"seed": 2}, "d"):
        raise InputError("late")
    assert (work / "state").read_text() == "an hour of work"
    for options, data, message in (({"seed": 1}, "d", "other seed"), ({"seed": 2}, "e", "other data")):
        with pytest.raises(InputError, match=message), claimed_folder("train line", output, options, data):
            pass


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="expected a new or empty folder"), claimed_folder("train", tmp_path, {}, "d"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]

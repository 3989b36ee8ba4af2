"""Training of the learned metric: deterministic, resumable, saved without pickle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import small_data
from transformers import Trainer

import movers
from movers.errors import InputError
from movers.quality.training import TrainingOptions, train

QUICK = TrainingOptions(encoder="wordllama", unit="sentences", fakes=2, epochs=3, seed=5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "whole"
    train(small_data(), folder, QUICK, sources=["made up, none"])
    return folder


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(trained: Path, tmp_path: Path) -> None:
    train(small_data(), tmp_path / "again", QUICK)
    assert weights(trained) == weights(tmp_path / "again")
    train(small_data(), tmp_path / "other", replace(QUICK, seed=6))
    assert weights(trained) != weights(tmp_path / "other")


def test_an_interrupted_run_continues(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, save = 0, Trainer._save_checkpoint

    def stop(self: Any, *arguments: Any, **options: Any) -> None:
        nonlocal saved
        save(self, *arguments, **options)
        saved += 1
        if saved == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_save_checkpoint", stop)
        train(small_data(), tmp_path / "half", QUICK)
    model = train(small_data(), tmp_path / "half", QUICK)
    steps = [entry["step"] for entry in model.record["curve"]]
    assert steps == sorted(steps) and steps[0] < 5 < steps[-1]
    assert weights(tmp_path / "half") == weights(trained)


def test_a_saved_model_is_a_folder_without_pickle(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == {
        "README.md", "config.json", "model.safetensors", "record.json",
    }  # fmt: skip
    record = json.loads((trained / "record.json").read_text())
    assert record["data"]["documents"] == 30 and len(record["data"]["digest"]) == 64
    assert record["options"]["negatives"] == "mix" and record["options"]["head"] == "fc"
    assert record["environment"]["movers"] == movers.__version__
    card = (trained / "README.md").read_text()
    assert "mix, 2 per document" in card and "Trained on made up, none: 30 documents" in card


def test_another_run_is_not_mixed_into_a_folder(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="train quality: output: expected a new or empty folder, or an interrupted run of the same"
    ):
        train(small_data(), trained, replace(QUICK, seed=6, patience=2))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="output: expected a new or empty folder"):
        train(small_data(), tmp_path, QUICK)


@pytest.mark.parametrize(("unit", "head"), [("sentences", "cnn"), ("sentences", "lstm"), ("words", "fc")])
def test_the_papers_networks_learn_and_score(unit: Any, head: Any, tmp_path: Path) -> None:
    options = TrainingOptions(
        encoder="wordllama", unit=unit, head=head, negatives="replace", fakes=4, epochs=20, rate=0.01
    )
    model = train(small_data(), tmp_path / "model", options)
    losses = [entry["eval_loss"] for entry in model.record["curve"] if "eval_loss" in entry]
    assert min(losses) < 0.97 * losses[0] and "replace_pearson" in model.record["test"]
    pair = small_data()[0]
    result = movers.reference_free_summary_quality(
        [pair.summary, "Theatre million Jarrow its week Elgin its in museum"], [pair.document] * 2, model=model
    )
    assert result["scores"][0] > result["scores"][1]
    assert "model:model@" in result["signature"] and f"head:{head}" in result["signature"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "mlp"}, "head: expected one of 'fc', 'cnn', 'lstm', None, but got 'mlp'"),
        ({"negatives": "swap"}, "negatives: expected one of 'cross', 'add'"),
        ({"unit": "cross", "head": "lstm"}, "head: unit='cross' always has 'fc', but got 'lstm'"),
        ({"unit": "cross", "encoder": "wordllama"}, "encoder: unit='cross' needs a transformer, but got 'wordllama'"),
        ({"window": 9}, "window: expected 16 to 512 tokens, but got 9"),
        ({"unit": "words"}, "encoder: unit='words' needs static word vectors"),
        ({"rate": 0.0}, "rate: expected a number above zero"),
        ({"epochs": 0}, "epochs: expected a whole number above zero"),
        ({"seed": -1}, "seed: expected a whole number of at least 0"),
    ],
)
def test_options_are_closed(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"train quality: {message}"):
        train(small_data(), tmp_path, TrainingOptions(**options))


def test_a_run_that_never_began_does_not_claim_its_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="window: expected 16"):
        train(small_data(), tmp_path / "model", TrainingOptions(window=9))
    assert train(small_data(), tmp_path / "model", replace(QUICK, epochs=1)).name == "model"


def test_a_handful_of_documents_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="data: expected at least 20 documents, but got 19"):
        train(small_data()[:19], tmp_path)

"""Training of the learned metric: deterministic, resumable, saved without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import small_data

import movers
from movers import io
from movers.errors import InputError
from movers.quality.faults import PAPER_KINDS, make_samples
from movers.quality.training import TrainingOptions, train

QUICK = TrainingOptions(head="fc", negatives="mix", fakes=2, epochs=3, seed=5)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors that the runs of this file share."""
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, vectors: Path) -> Path:
    folder = tmp_path_factory.mktemp("models") / "whole"
    train(small_data(), folder, QUICK, vectors=vectors, sources=[{"name": "made up", "licence": "none"}])
    return folder


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    trained: Path, vectors: Path, tmp_path: Path
) -> None:
    train(small_data(), tmp_path / "again", QUICK, vectors=vectors)
    assert weights(trained) == weights(tmp_path / "again")
    train(
        small_data(),
        tmp_path / "other",
        TrainingOptions(head="fc", negatives="mix", fakes=2, epochs=3, seed=6),
        vectors=vectors,
    )
    assert weights(trained) != weights(tmp_path / "other")


def test_the_aspects_train_on_spoiled_sentences_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = TrainingOptions(epochs=3, optimiser="adamw")
    model = train(small_data(), tmp_path / "whole", options)
    assert model.config["head"] == "aspects" and "document_length" not in model.config
    losses = [entry["training_loss"] for entry in model.record["curve"]]
    assert losses[-1] < losses[0] and 0 <= model.record["test"]["joins_auc"] <= 1
    writes, write = 0, io.write_file

    def stop(path: Path, content: bytes | str) -> None:
        nonlocal writes
        writes += 1
        if writes > most:  # noqa: B023
            raise KeyboardInterrupt
        write(path, content)

    for most in (2, 4):
        writes = 0
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(io, "write_file", stop)
            train(small_data(), tmp_path / str(most), options)
        train(small_data(), tmp_path / str(most), options)
        assert weights(tmp_path / str(most)) == weights(tmp_path / "whole")
    pair = small_data()[0]
    result = movers.reference_free_summary_quality([pair.summary], [pair.document], model=model)
    assert 0 < result["fluency"][0] <= 1


def test_a_saved_model_is_a_folder_without_pickle(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == {
        "README.md", "config.json", "model.safetensors", "record.json", "work",
    }  # fmt: skip
    record = json.loads((trained / "record.json").read_text())
    assert record["data"]["documents"] == 30 and len(record["data"]["digest"]) == 64
    assert record["options"]["negatives"] == "mix" and record["options"]["head"] == "fc"
    assert record["environment"]["movers"] == movers.__version__
    card = (trained / "README.md").read_text()
    assert "mix, 2 per document" in card and "Trained on made up, none: 30 documents" in card


def test_a_trained_model_scores_own_summaries_above_those_of_others(tmp_path: Path) -> None:
    data = small_data()
    train(data, tmp_path / "mine", TrainingOptions(epochs=1))
    documents, summaries = [pair.document for pair in data], [pair.summary for pair in data]
    scoring = {"sources": documents, "model": str(tmp_path / "mine")}
    own = movers.reference_free_summary_quality(summaries, **scoring)
    other = movers.reference_free_summary_quality([*summaries[1:], summaries[0]], **scoring)
    assert sum(a > b for a, b in zip(own["scores"], other["scores"], strict=True)) >= 27
    assert "model:mine@" in own["signature"]


def test_another_run_is_not_mixed_into_a_folder(trained: Path, vectors: Path) -> None:
    with pytest.raises(InputError, match="train quality: output: .* other patience, seed;"):
        train(small_data(), trained, TrainingOptions(head="fc", negatives="mix", fakes=2, epochs=3, seed=6, patience=2))


def test_the_papers_recipe_takes_all_four_kinds_of_every_document(vectors: Path, tmp_path: Path) -> None:
    model = train(small_data(), tmp_path / "paper", TrainingOptions(recipe="paper", epochs=1), vectors=vectors)
    options = model.record["options"]
    assert (options["head"], options["optimiser"], options["patience"]) == ("fc", "rmsprop", 3)
    assert model.record["samples"]["train"] == 5 * model.record["sides"]["train"]
    pairs = small_data()
    made = make_samples(pairs, options["negatives"], fakes=options["fakes"])
    assert {kind: sum(one.kind == kind for one in made) for kind in PAPER_KINDS} == dict.fromkeys(PAPER_KINDS, 30)


@pytest.mark.parametrize("head", ["fc", "cnn", "lstm"])
def test_the_papers_heads_train_on_sentences(head: Any, vectors: Path, tmp_path: Path) -> None:
    options = TrainingOptions(head=head, negatives="cross", epochs=8, patience=8)
    model = train(small_data(), tmp_path / head, options, vectors=vectors)
    assert (model.config["document_length"], model.config["summary_length"]) == (4, 2)
    losses = [entry["training_loss"] for entry in model.record["curve"]]
    assert losses[-1] < 0.97 * losses[0]


def test_static_words_train_an_lstm_of_25_units(tmp_path: Path) -> None:
    options = TrainingOptions(encoder="wordllama", negatives="replace", epochs=8, fakes=4, rate=0.01)
    model = train(small_data(), tmp_path / "words", options)
    assert model.module.lstm.hidden_size == 25
    assert (model.config["unit"], model.config["head"]) == ("words", "lstm")
    pair = small_data()[0]
    good, bad = movers.reference_free_summary_quality(
        [pair.summary, "Theatre million Jarrow its week Elgin its in museum"], [pair.document] * 2, model=model
    )["scores"]
    assert good > bad


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "mlp"}, "head: expected one of 'fc', 'cnn', 'lstm', 'aspects', None, but got 'mlp'"),
        ({"negatives": "swap"}, "negatives: expected one of 'cross', 'add'"),
        ({"unit": "words", "head": "aspects"}, "head: 'aspects' needs sentences"),
        ({"unit": "cross", "head": "lstm"}, "head: unit='cross' always has 'fc', but got 'lstm'"),
        ({"unit": "words"}, "unit: 'words' needs static word vectors"),
        ({"encoder": "wordllama", "unit": "sentences", "head": "aspects"}, "head: 'aspects' needs a transformer"),
        ({"recipe": "paper", "head": "aspects"}, "recipe: 'paper' has head 'fc', 'cnn' or 'lstm'"),
        ({"rate": 0.0}, "rate: expected a number above zero"),
        ({"epochs": 0}, "epochs: expected a whole number above zero"),
        ({"seed": -1}, "seed: expected a whole number of at least 0"),
    ],
)
def test_options_are_closed(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"train quality: {message}"):
        train(small_data(), tmp_path, TrainingOptions(**options))


def test_a_handful_of_documents_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="data: expected at least 10 documents, but got 9"):
        train(small_data()[:9], tmp_path)

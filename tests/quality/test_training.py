"""Training: deterministic, resumable, kept on disk without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

import movers
from movers.quality import training
from movers.quality.cli import NEGATIVES
from movers.quality.data import DocumentSummary
from movers.quality.learners import covering_length
from movers.quality.model import load_model
from movers.quality.negatives import Negatives, Sample
from movers.quality.training import TrainingOptions, evaluate_samples, train
from movers.quality.vectors import UnitVectors, VectorStore, encode_texts, split_units

PLACES = ("Arden", "Birley", "Corwen", "Dunmore", "Elgin", "Fowey", "Girvan", "Hexham", "Ilkley", "Jarrow")
THINGS = ("bridge", "school", "market", "harbour", "library", "museum", "garden", "station", "theatre", "clinic")


def small_data() -> list[DocumentSummary]:
    """Thirty short documents, each on another thing in another place."""
    rows = []
    for n in range(30):
        place, thing = PLACES[n % 10], THINGS[(n * 3 + n // 10) % 10]
        document = (
            f"The {thing} of {place} will be closed for repairs. Work starts in week {n}. "
            f"People of {place} use the {thing} every day. The council pays {n + 2} million."
        )
        rows.append(DocumentSummary(document, f"{place} closes its {thing} in week {n}. Repairs cost {n + 2} million."))
    return rows


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors that all runs of this file share."""
    return tmp_path_factory.mktemp("vectors")


QUICK = TrainingOptions(negatives="mix", fakes=2, epochs=3, seed=5)


def weights(folder: Path) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in load_file(folder / "model.safetensors").items()}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, vectors: Path) -> Path:
    folder = tmp_path_factory.mktemp("models") / "whole"
    train(
        small_data(), folder, QUICK, vectors=vectors, sources=[{"name": "made up", "licence": "none"}], progress=False
    )
    return folder


def test_the_same_seed_gives_the_same_weights(trained: Path, vectors: Path, tmp_path: Path) -> None:
    train(small_data(), tmp_path / "again", QUICK, vectors=vectors, progress=False)
    assert same(weights(trained), weights(tmp_path / "again"))


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(
    trained: Path, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    calls = 0
    original = training._batches

    def batches(*arguments: Any) -> list[list[int]]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Killed
        return original(*arguments)

    monkeypatch.setattr(training, "_batches", batches)
    with pytest.raises(Killed):
        train(small_data(), tmp_path / "run", QUICK, vectors=vectors, progress=False)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    resumed = train(small_data(), tmp_path / "run", QUICK, vectors=vectors, progress=False)
    assert calls == 4  # two epochs before, the third twice begun, none repeated
    assert same(weights(trained), weights(tmp_path / "run"))
    whole = json.loads((trained / "record.json").read_text())
    for entry, other in zip(resumed.record["curve"], whole["curve"], strict=True):
        assert entry | {"seconds": 0} == other | {"seconds": 0}


def test_a_saved_model_is_a_folder_without_pickle_that_scores(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == {
        "README.md", "config.json", "model.safetensors", "record.json", "work",
    }  # fmt: skip
    record = json.loads((trained / "record.json").read_text())
    assert record["data"]["documents"] == 30 and len(record["data"]["digest"]) == 64
    assert record["options"]["negatives"] == "mix" and len(record["curve"]) == 3
    assert record["environment"]["movers"] == movers.__version__
    data = small_data()
    result = movers.reference_free_summary_quality(
        [data[0].summary, data[1].summary], [data[0].source] * 2, model=str(trained)
    )
    assert all(0 <= score <= 1 for score in result["scores"])
    assert f"model:{trained.name}@" in result["signature"]


def test_scoring_gives_what_training_measured(trained: Path, vectors: Path) -> None:
    """The learner reads half-precision vectors from disk, the scorer fresh ones: they agree to that precision."""
    from movers.quality.scorer import compare_vectors

    model = load_model(trained)
    data = small_data()[:4]
    texts = [text for row in data for text in (row.source, row.summary)]
    encoder = movers.load_encoder("all-MiniLM-L6-v2")
    fresh = dict(encode_texts(texts, encoder, "sentences"))
    store = VectorStore(vectors / encoder.identity, 384, tokens=True)
    stored = [store.text(split_units(text, "sentences")) for text in texts]
    for n in range(0, len(texts), 2):
        first = compare_vectors(model, [(fresh[n + 1], fresh[n])])[0].score
        second = compare_vectors(model, [(stored[n + 1], stored[n])])[0].score
        assert first == pytest.approx(second, abs=2e-3)


def test_another_run_is_not_mixed_into_a_folder(trained: Path, vectors: Path) -> None:
    with pytest.raises(ValueError, match="differs in seed"):
        train(small_data(), trained, TrainingOptions(negatives="mix", fakes=2, epochs=3, seed=6), vectors=vectors)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        train(small_data(), tmp_path, QUICK)


@pytest.mark.parametrize("head", ["fc", "cnn", "lstm"])
def test_the_papers_heads_train_on_sentences(head: Any, vectors: Path, tmp_path: Path) -> None:
    options = TrainingOptions(head=head, negatives="cross", epochs=2)
    model = train(small_data(), tmp_path / head, options, vectors=vectors, progress=False)
    assert model.config["summary_length"] == 2 and model.config["document_length"] == 4
    assert 0 <= model.record["test"]["cross_accuracy"] <= 1


def test_static_words_train_an_lstm_of_25_units(tmp_path: Path) -> None:
    options = TrainingOptions(encoder="wordllama", head="lstm", negatives="replace", epochs=1)
    model = train(small_data(), tmp_path / "words", options, progress=False)
    assert model.module.lstm.hidden_size == 25
    assert model.config["unit"] == "words"
    result = movers.reference_free_summary_quality(
        ["A bridge closes."], ["The bridge closes."], model=tmp_path / "words"
    )
    assert 0 <= result["score"] <= 1


def test_a_cross_encoder_is_fine_tuned_saved_and_reads_long_documents(tmp_path: Path) -> None:
    options = TrainingOptions(unit="cross", negatives="cross", epochs=1, window=32, batch=16)
    data = small_data()
    model = train(data, tmp_path / "cross", options, progress=False)
    assert model.config["window"] == 32
    long = " ".join(row.source for row in data[:5])
    result = movers.reference_free_summary_quality(
        [data[4].summary], [long], model=tmp_path / "cross", return_alignment=True
    )
    assert result["n_truncated"] == 0
    assert len(result["alignments"][0][0]["windows"][0]) > 3
    # the tuned weights, not the original ones, come back
    tuned = model.module.transformer.encoder.layer[0].attention.self.query.weight
    fresh = movers.load_encoder("all-MiniLM-L6-v2").model.encoder.layer[0].attention.self.query.weight
    assert not bool((tuned == fresh).all())


def test_vectors_are_computed_once_and_found_again(tmp_path: Path, minilm: Any) -> None:
    store = VectorStore(tmp_path, 384, tokens=True)
    store.fill(["Rain fell.", "It stopped."], minilm, "sentences", progress=False)

    class Silent:
        def encode(self, *_: Any, **__: Any) -> None:
            raise AssertionError("encoded again")

        sentence_window = 256

    again = VectorStore(tmp_path, 384, tokens=True)
    again.fill(["It stopped.", "Rain fell."], Silent(), "sentences", progress=False)
    assert np.array_equal(again.get("Rain fell.").vector, store.get("Rain fell.").vector)
    expected = minilm.sentence_vectors(["Rain fell."])[0]
    assert again.get("Rain fell.").vector == pytest.approx(expected, abs=1e-3)


def test_units_without_tokens_survive_the_store(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, 3, tokens=True)
    one, none = np.eye(3, dtype=np.float32)[0], np.zeros((0, 3), np.float32)
    store.add([("a", UnitVectors(one, none)), ("b", UnitVectors(one, np.eye(3, dtype=np.float32)))])
    text = VectorStore(tmp_path, 3, tokens=True).text(["a", "b", "a"])
    assert text.vectors.shape == (3, 3) and text.owners.tolist() == [1, 1, 1]


def test_the_length_that_covers_four_fifths() -> None:
    assert covering_length(list(range(1, 101))) == 80
    assert covering_length([7]) == 7


def test_measures_of_samples_agree_with_a_count_by_hand() -> None:
    def sample(kind: str, label: float) -> Sample:
        return Sample(0, "text", label, kind, 0)

    samples = [sample("original", 1), sample("original", 1), sample("cross", 0)]
    samples += [sample("add", 0.2), sample("add", 0.5), sample("delete", 0.8)]
    found = evaluate_samples([0.9, 0.4, 0.1, 0.3, 0.6, 0.9], samples)
    assert found["cross_accuracy"] == pytest.approx((0.5 + 1) / 2)
    assert found["mutation_pearson"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "mlp"}, "head: expected one of 'fc', 'cnn', 'lstm', 'align', but got 'mlp'"),
        ({"negatives": "swap"}, "negatives: expected one of 'cross', 'add'"),
        ({"unit": "words"}, "head: 'align' needs sentences"),
        ({"rate": 0.0}, "rate: expected a number above zero"),
        ({"epochs": 0}, "epochs: expected a whole number above zero"),
    ],
)
def test_options_are_closed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingOptions(**options).check()


def test_the_command_offers_every_kind_of_negatives() -> None:
    from typing import get_args

    assert get_args(Negatives) == NEGATIVES


def test_the_command_trains_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from movers.cli import main

    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(json.dumps({"article": r.source, "highlights": r.summary}) for r in small_data()))
    arguments = ["train", "quality", "--data", str(path), "--output", str(tmp_path / "model"), "--encoder", "wordllama"]
    assert main([*arguments, "--epochs", "1", "--negatives", "cross", "--quiet"]) == 0
    assert "test cross_accuracy" in capsys.readouterr().out
    assert str(tmp_path) not in (tmp_path / "model" / "record.json").read_text()


def test_help_of_the_command_imports_nothing_heavy(run_python: Any) -> None:
    code = """
import sys
from movers.cli import main
try:
    main(["train", "quality", "--help"])
except SystemExit:
    pass
print([name for name in ("torch", "transformers", "datasets", "numpy", "safetensors") if name in sys.modules])
"""
    assert run_python(code).splitlines()[-1] == "[]"

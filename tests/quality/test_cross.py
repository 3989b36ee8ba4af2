"""The cross-encoder: what it reads, and that device, precision and batch size are what was asked for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_up import small_data
from tiny import tiny_model, tiny_tokenizer

from movers import reference_free_summary_quality as quality
from movers.errors import InputError
from movers.quality.cross import CrossEncoder, load_cross_encoder
from movers.quality.model import load_model
from movers.quality.training import TrainingOptions, train

LONG = " ".join(pair.document for pair in small_data()[:2])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny transformer with a window of 32 tokens."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = tiny_tokenizer("bert")
    tokenizer.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]"})
    tiny_model("bert").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def trained(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "cross"
    train(small_data(), folder, TrainingOptions(encoder=encoder, unit="cross", negatives="cross", epochs=2, rate=1e-3))
    return folder


def test_the_tuned_weights_come_back(trained: Path, encoder: str) -> None:
    tuned = load_model(trained).module.transformer.state_dict()
    fresh = load_cross_encoder(encoder).transformer.state_dict()
    name = "encoder.layer.0.attention.self.query.weight"
    assert tuned.keys() == fresh.keys() and not torch.equal(tuned[name], fresh[name])
    assert load_model(trained).config["window"] == 32


def test_the_score_is_the_mean_over_summary_parts_of_the_best_window(trained: Path) -> None:
    """Every window again, one at a time and without padding."""
    model = load_model(trained).module
    summary = " ".join(pair.summary for pair in small_data()[:2])
    document_ids, summary_ids = model.ids(LONG), model.ids(summary)
    scores = []
    for begin in range(0, len(summary_ids), 14):  # half of the 29 tokens beside [CLS], [SEP] and [SEP]
        part = summary_ids[begin : begin + 14]
        room = 29 - len(part)
        starts = [*range(0, len(document_ids) - room, room // 2), len(document_ids) - room]
        with torch.inference_mode():
            windows = [model(model.batch([(document_ids[start : start + room], part)])) for start in starts]
        scores.append([float(logit.double().sigmoid()) for logit in windows])
    result = quality([summary], [LONG], model=trained, return_alignment=True)
    assert len(scores) > 1 and result["n_truncated"] == 0
    for found, expected in zip(result["alignments"][0][0]["windows"], scores, strict=True):
        assert found == pytest.approx(expected, abs=1e-6)
    assert result["score"] == pytest.approx(np.mean([max(part) for part in scores]), abs=1e-6)


@pytest.mark.parametrize("batch_tokens", [None, 40, 100])
def test_batches_stay_within_the_tokens_asked_for(
    batch_tokens: int | None, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    forward = CrossEncoder.forward

    def watched(self: CrossEncoder, batch: dict[str, Any]) -> torch.Tensor:
        sizes.append(batch["input_ids"].numel())
        return forward(self, batch)

    data = small_data()[:4]
    texts = [pair.summary for pair in data], [LONG] * 4
    expected = quality(*texts, model=trained, threads=1)["scores"]
    monkeypatch.setattr(CrossEncoder, "forward", watched)
    found = quality(*texts, model=trained, batch_tokens=batch_tokens, threads=1)["scores"]
    assert max(sizes) <= (batch_tokens or 2048)
    assert max(sizes) > (batch_tokens or 2048) / 2  # and the batches are filled
    assert found == pytest.approx(expected, abs=1e-6)


def test_dtype_is_the_precision_of_the_transformer_and_in_the_signature(trained: Path) -> None:
    pair = small_data()[0]
    exact = quality([pair.summary], [LONG], model=trained)
    rough = quality([pair.summary], [LONG], model=trained, dtype="bfloat16")
    assert rough["score"] != exact["score"]
    assert rough["score"] == pytest.approx(exact["score"], abs=0.05)
    assert "dtype:float32" in exact["signature"] and "dtype:bfloat16" in rough["signature"]
    assert quality([pair.summary], [LONG], model=trained)["score"] == exact["score"]  # the loaded model is untouched


@pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA")
def test_a_device_that_is_not_there_is_an_error(trained: Path) -> None:
    with pytest.raises(InputError, match="device: 'cuda' is not available"):
        quality(["A bridge closes."], [LONG], model=trained, device="cuda")


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_blank_summary_or_document_scores_zero(blank: str, trained: Path) -> None:
    result = quality([blank, "A bridge."], [LONG, blank], model=trained, return_alignment=True)
    assert result["scores"] == [0.0, 0.0] and result["n_empty"] == 2
    assert result["alignments"][0][0]["windows"] == []


def test_texts_can_be_cut_as_in_the_paper(trained: Path) -> None:
    module = load_model(trained).module
    summary = small_data()[0].summary
    with torch.inference_mode():
        expected = float(module(module.batch([module.cut(LONG, summary)])).sigmoid())
    result = quality([summary, "A bridge."], [LONG, "A bridge."], model=trained, truncation="cut")
    assert result["scores"][0] == pytest.approx(expected, abs=1e-6)
    assert result["n_truncated"] == 1 and "truncation:cut" in result["signature"]
    with pytest.raises(InputError, match="truncation: expected 'window' for a model that is no cross-encoder"):
        quality(["a"], ["b"], truncation="cut")


def test_a_frozen_transformer_stays_as_it_was_and_is_read_once(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"encoder": encoder, "unit": "cross", "negatives": "cross", "epochs": 3}
    model = train(small_data(), tmp_path / "a", TrainingOptions(**options, freeze=True), vectors=tmp_path / "v")
    fresh = load_cross_encoder(encoder).transformer.state_dict()
    assert all(torch.equal(value, fresh[name]) for name, value in model.module.transformer.state_dict().items())
    assert model.record["parameters"] == 16 * 128 + 128 + 128 + 1
    monkeypatch.setattr(CrossEncoder, "first", lambda self, batch: pytest.fail("the pairs were read again"))
    again = train(small_data(), tmp_path / "b", TrainingOptions(**options, freeze=True), vectors=tmp_path / "v")
    assert again.digest == model.digest
    monkeypatch.undo()
    pair = small_data()[0]
    with torch.inference_mode():
        whole = model.module(model.module.batch([model.module.cut(pair.document, pair.summary)])).sigmoid()
    found = quality([pair.summary], [pair.document], model=model, truncation="cut")
    assert found["score"] == pytest.approx(float(whole), abs=1e-6)


def test_for_training_both_texts_are_cut_in_parallel(encoder: str) -> None:
    model = load_cross_encoder(encoder)
    document, summary = model.cut(LONG, "A bridge closes in week two.")
    whole = model.ids(LONG), model.ids("A bridge closes in week two.")
    assert len(document) + len(summary) == 29
    assert document == whole[0][: len(document)] and summary == whole[1][: len(summary)]
    assert len(document) / len(summary) == pytest.approx(len(whole[0]) / len(whole[1]), rel=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "wordllama"}, "unit: 'cross' needs a transformer as encoder, but got 'wordllama'"),
        ({"window": 64}, "window: expected 16 to 32 tokens, but got 64"),
        ({"window": 8}, "window: expected 16 to 32 tokens, but got 8"),
        ({"unit": "sentences", "freeze": True}, "freeze: expected False with unit='sentences'"),
    ],
)
def test_what_cannot_be_a_cross_encoder_is_an_error(
    options: dict[str, Any], message: str, encoder: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"train quality: {message}"):
        train(small_data(), tmp_path, TrainingOptions(**{"encoder": encoder, "unit": "cross", **options}))


def test_a_tokenizer_without_a_first_token_is_an_error(tmp_path: Path) -> None:
    tiny_model("bert").save_pretrained(tmp_path)
    tiny_tokenizer("bert").save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"needs an encoder with \[CLS\] and \[SEP\]"):
        load_cross_encoder(str(tmp_path))


@pytest.mark.parametrize("file", ["transformer.json", "tokenizer/tokenizer.json", "config.json"])
def test_a_model_is_named_by_all_files_that_determine_its_scores(trained: Path, tmp_path: Path, file: str) -> None:
    folder = tmp_path / "cross"
    shutil.copytree(trained, folder)
    first = load_model(folder).identity
    assert first == load_model(trained).identity
    (folder / file).write_text((folder / file).read_text() + "\n")
    assert load_model(folder).identity != first


def test_rows_with_unknown_pieces_are_counted(trained: Path) -> None:
    texts = ["The bridge of Arden.", "The bridge of Ardén."]
    with pytest.warns(UserWarning, match="1 of 2 rows have words or pieces the encoder does not know"):
        assert quality(texts, [LONG, LONG], model=trained)["n_unknown"] == 1

"""The cross-encoder: what it reads, and that device, precision and batch size are what was asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up import small_data
from tiny import tiny_model, tiny_tokenizer

from movers import reference_free_summary_quality as quality
from movers.errors import InputError
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


def test_dtype_is_the_precision_of_the_transformer_and_in_the_signature(trained: Path) -> None:
    pair = small_data()[0]
    exact = quality([pair.summary], [LONG], model=trained)
    rough = quality([pair.summary], [LONG], model=trained, dtype="bfloat16")
    assert rough["score"] != exact["score"]
    assert rough["score"] == pytest.approx(exact["score"], abs=0.05)
    assert "dtype:float32" in exact["signature"] and "dtype:bfloat16" in rough["signature"]
    assert quality([pair.summary], [LONG], model=trained)["score"] == exact["score"]  # the loaded model is untouched


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


@pytest.mark.parametrize("file", ["transformer.json", "tokenizer/tokenizer.json", "config.json"])
def test_a_model_is_named_by_all_files_that_determine_its_scores(trained: Path, tmp_path: Path, file: str) -> None:
    folder = tmp_path / "cross"
    shutil.copytree(trained, folder)
    first = load_model(folder).identity
    assert first == load_model(trained).identity
    (folder / file).write_text((folder / file).read_text() + "\n")
    assert load_model(folder).identity != first

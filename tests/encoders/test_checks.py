"""What an encoder gives is checked where it enters, and unknown pieces match only themselves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import movers
from movers.encoders.checks import check_vectors, checked_texts, surface_vectors
from movers.encoders.contextual import ContextualEncoder, EncodedText
from movers.encoders.layers import Aggregation
from movers.errors import InputError

PAIR_METRICS = ["wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd"]
BY_TOKENS = ["moverscore", "bertscore_hungarian", "bertscore_emd"]
TEXTS = ["red cats sat", "old dogs ran far"], ["big cats sat down", "old dogs swim"]


class Own:
    """A user's encoder: a seeded vector per word, changed by `change`."""

    identity = "own@1"
    dimension = 8

    def __init__(self, scale: float = 1.0, bad: float | None = None, width: int = 8, dtype: Any = np.float32) -> None:
        self.scale, self.bad, self.width, self.dtype = scale, bad, width, dtype

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        rows = [np.random.default_rng(sum(map(ord, word))).normal(size=self.width) for word in words]
        matrix = (np.array(rows).reshape(len(words), self.width) * self.scale).astype(self.dtype)
        if self.bad is not None and len(matrix) > 1:
            matrix[1, 0] = self.bad
        return matrix, np.ones(len(words), dtype=bool)


@pytest.mark.parametrize("metric", PAIR_METRICS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_an_error_that_names_encoder_and_words(metric: str, bad: float) -> None:
    with pytest.raises(InputError, match=r"model: own@1: '.*(cats|dogs).*': expected finite numbers, but vector 1"):
        options = {"temperature": 1} if metric in ("wms", "sms", "swms") else {}  # else texts of the package come first
        getattr(movers, metric)(*TEXTS, model=Own(bad=bad), **options)


@pytest.mark.parametrize("metric", PAIR_METRICS)
def test_vectors_of_another_width_or_kind_are_an_error(metric: str) -> None:
    score = getattr(movers, metric)
    with pytest.raises(InputError, match=r"own@1: .*expected \(\d+, 8\) vectors, but got \(\d+, 7\)"):
        score(*TEXTS, model=Own(width=7))
    with pytest.raises(InputError, match="own@1: .*expected real numbers, but got dtype int64"):
        score(*TEXTS, model=Own(dtype=np.int64))


@pytest.mark.parametrize("metric", BY_TOKENS)
@pytest.mark.parametrize("scale", [1e30, 1e37, 1e-30, 1e-42])
def test_directions_do_not_depend_on_the_length_of_vectors(metric: str, scale: float) -> None:
    options = {"weights": "uniform"}
    plain = getattr(movers, metric)(*TEXTS, model=Own(), **options)["scores"]
    scaled = getattr(movers, metric)(*TEXTS, model=Own(scale), **options)["scores"]
    assert max(plain) < 0.9
    # below 1e-38, float32 has few digits left
    assert scaled == pytest.approx(plain, abs=1e-2 if scale < 1e-38 else 1e-6)


def test_numbers_beyond_float32_are_not_finite_there() -> None:
    with pytest.raises(InputError, match="own@1: .*expected finite numbers"):
        movers.bertscore_emd(*TEXTS, model=Own(scale=1e60, dtype=np.float64))


def test_checked_vectors_are_single_precision_and_otherwise_as_given() -> None:
    given = np.arange(6, dtype=np.float64).reshape(2, 3)
    found = check_vectors("e", "text", given, 2, 3)
    assert found.dtype == np.float32 and found.tolist() == given.tolist()
    large = np.full((2, 2), 3e38, np.float32)  # finite, though their sum is not
    assert check_vectors("e", "text", large, 2) is large
    for wrong in (given[0], given[:1], given[:, :2]):
        with pytest.raises(InputError, match="e: 'text': expected"):
            check_vectors("e", "text", wrong, 2, 3)


def encoded(texts: Sequence[str], bert: tuple[Any, Any]) -> tuple[ContextualEncoder, list[tuple[int, EncodedText]]]:
    encoder = ContextualEncoder(*bert, "tiny", "0" * 64)
    return encoder, list(encoder.encode(texts, Aggregation("last")))


def test_texts_of_one_encoder_have_vectors_of_one_width(tiny_bert: tuple[Any, Any]) -> None:
    encoder, found = encoded(["a cat", "the dog sat"], tiny_bert)
    narrow = [found[0], (found[1][0], found[1][1]._replace(vectors=found[1][1].vectors[:, :5]))]
    assert len(list(checked_texts(encoder, ["a cat", "the dog sat"], found))) == 2
    with pytest.raises(InputError, match=r"tiny@00000000: '.*': expected \(\d, 16\) vectors, but got \(\d, 5\)"):
        list(checked_texts(encoder, ["a cat", "the dog sat"], narrow))


def test_tokens_without_a_column_are_an_error_that_names_all_columns(tiny_bert: tuple[Any, Any]) -> None:
    class Older(NamedTuple):
        ids: Any
        starts: Any
        ends: Any
        words: Any
        special: Any

    encoder, [(index, whole)] = encoded(["a cat"], tiny_bert)
    older = whole._replace(tokens=Older(*whole.tokens[:5]))  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="expected tokens with equally long ids, starts, ends, words, special, unknown"
    ):
        list(checked_texts(encoder, ["a cat"], [(index, older)]))


# ---------------------------------------------------------------------------------------------------------------------
# Unknown pieces


def test_a_surface_gives_the_same_direction_always_and_others_another(run_python: Any) -> None:
    surfaces = ["😀", "😡", "ไทย", "x" * 101]
    lengths = np.array([1.0, 2.0, 3.0, 4.0])
    vectors = surface_vectors(surfaces, lengths, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), lengths, rtol=1e-6)
    unit = vectors / lengths[:, None]
    assert np.abs(unit @ unit.T - np.eye(4)).max() < 0.25
    code = (
        "from movers.encoders.checks import *; import numpy; print(surface_vectors(['😀'], numpy.ones(1), 384)[0, :3])"
    )
    assert run_python(code, PYTHONHASHSEED="5") == str(vectors[0, :3])


UNLIKE = [
    ("สวัสดีชาวโลก", "ฉันรักแมว"),
    ("សួស្តី", "ពិភពលោក"),
    ("ሰላም ለዓለም", "እንኳን ደህና መጡ"),
    ("I feel 😀", "I feel 😡"),
    ("a" * 101, "b" * 101),
]


@pytest.mark.parametrize("metric", BY_TOKENS)
@pytest.mark.filterwarnings("ignore:.*the encoder does not know")
def test_texts_that_differ_in_unknown_pieces_are_not_alike(metric: str, minilm: Any) -> None:
    first, second = map(list, zip(*UNLIKE, strict=True))
    result = getattr(movers, metric)(first, second, model=minilm)
    assert max(result["scores"]) < 0.7 and result["n_unknown"] == len(UNLIKE)
    same = getattr(movers, metric)(first, first, model=minilm)
    assert same["scores"] == pytest.approx([1.0] * len(UNLIKE), abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*the encoder does not know", "ignore:.*non-Latin")
def test_words_and_sentences_of_unknown_pieces_are_not_alike_either(minilm: Any) -> None:
    first, second = map(list, zip(*UNLIKE[:3], strict=True))
    words = movers.wms(first, second, model=minilm, stopwords=None, temperature=1)
    sentences = movers.sms(first, second, sentence_encoder=minilm, stopwords=None)
    assert max(words["scores"]) < 0.01 and words["n_unknown"] == 3
    assert max(sentences["scores"]) < 0.7 and sentences["n_unknown"] == 3
    assert np.diag(minilm.sentence_vectors(first) @ minilm.sentence_vectors(second).T).max() < 0.8


def test_pieces_are_unknown_where_the_tokenizer_or_its_algorithm_says_so(tiny_bert: tuple[Any, Any]) -> None:
    model, tokenizer = tiny_bert
    encoder = ContextualEncoder(model, tokenizer, "tiny", "0" * 64)
    (tokens,) = encoder.tokenize(["a é cat"])
    assert tokens.unknown.tolist() == [False, False, True, False, False]
    unnamed = type("Unnamed", (), {"backend_tokenizer": tokenizer.backend_tokenizer, "unk_token_id": None})()
    unnamed.pad_token_id, unnamed.model_max_length = tokenizer.pad_token_id, tokenizer.model_max_length
    again = ContextualEncoder(model, unnamed, "tiny", "0" * 64)
    assert again.tokenize(["a é cat"])[0].unknown.tolist() == tokens.unknown.tolist()


@pytest.mark.parametrize("together", [False, True])
def test_more_than_a_tenth_of_rows_with_unknown_pieces_warns_once(tiny_bert: tuple[Any, Any], together: bool) -> None:
    def run(rows: list[str]) -> int:
        with pytest.warns(UserWarning) as caught:
            if together:
                movers.score_many([("moverscore", {"model": tiny_bert}), ("wms", {})], rows, rows)
            else:
                movers.moverscore(rows, rows, model=tiny_bert)
            warnings.warn("so that there is one", stacklevel=1)
        return sum("does not know" in str(warning.message) for warning in caught)

    known = ["a cat", "the dog", "a box", "snow", "man", "it is", "red", "old", "mat"]
    assert run([*known, "é"]) == 0
    assert run([*known, "é", "è"]) == 1


def test_no_metric_calls_an_object_an_encoder_that_lacks_what_it_needs(tiny_bert: tuple[Any, Any]) -> None:
    with pytest.raises(
        InputError, match="contextual: identity, dtype, .* but got PreTrainedTokenizerFast|TokenizersBackend"
    ):
        movers.load_encoder(tiny_bert[1])  # it has `tokenize` and `encode`

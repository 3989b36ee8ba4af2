from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from tiny import tiny_model, tiny_table, tiny_tokenizer

import movers
from movers import IdfTable, InputError, load_encoder, mover_distance
from movers.scores import clark_costs
from movers.version import VERSION

Metric = Callable[..., dict[str, Any]]
ALL: list[Metric] = [movers.wms, movers.sms, movers.swms]
every_metric = pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.__name__)

TEXTS = [
    "A man sells snow online. Customers receive boxes.",
    "Someone ships winter weather across America. People laugh. Business grows quickly.",
    "Boston suffered heavy snow. Kyle Waring shovelled driveways. Waring started shipping snow.",
    "Heavy snow buried Boston. Waring shipped snow inside bottles.",
    "Police arrested three suspects. Suspects denied everything.",
    "Court sentenced suspects. Judge praised police work. Lawyers appealed immediately.",
    "Scientists discovered ancient bones. Bones belonged to giant birds.",
    "Giant birds once walked here.",
    "Stocks fell sharply. Investors sold shares. Banks lost billions. Markets panicked.",
    "Banks lost money because investors panicked.",
    "Rain stopped play. Rain returned. Rain won.",
    "England batted first. Rain delayed play. England won later.",
]


def pairs() -> tuple[list[str], list[str]]:
    return TEXTS, [TEXTS[(place * 5 + 1) % len(TEXTS)] for place in range(len(TEXTS))]


def scores(metric: Metric, predictions: Sequence[str], references: Any, **options: Any) -> list[float]:
    return metric(list(predictions), list(references), **options)["scores"]


# ---------------------------------------------------------------------------------------------------------------------
# Eq. 1–5, slowly


def slow_sentences(text: str) -> list[list[str]]:
    """Kept words of each sentence; right for texts of plain words and full stops only."""
    stop = set(resources.files("movers").joinpath("data/stopwords_english.txt").read_text().split("\n"))
    parts = [re.findall("[a-z]+", part.lower()) for part in text.split(".")]
    kept = [[word for word in part if word not in stop] for part in parts]
    return [part for part in kept if part]


def slow_words(text: str) -> list[str]:
    return [word for sentence in slow_sentences(text) for word in sentence]


def slow_bag(metric: str, text: str, vector: Callable[[str], NDArray[Any]]) -> tuple[list[Any], list[float]]:
    sentences = slow_sentences(text)
    size = sum(len(sentence) for sentence in sentences)
    vectors: list[Any] = []
    weights: list[float] = []
    if metric in ("wms", "swms"):  # Eq. 1
        for word, count in Counter(slow_words(text)).items():
            vectors.append(vector(word))
            weights.append(count / size)
    if metric in ("sms", "swms"):  # Eq. 4
        for sentence in sentences:
            vectors.append(sum(vector(word) for word in sentence) / len(sentence))
            weights.append(len(sentence) / size)
    if metric == "swms":  # Eq. 5
        weights = [weight / 2 for weight in weights]
    assert sum(weights) == pytest.approx(1)
    return vectors, weights


def slow_score(metric: str, one: str, other: str, vector: Callable[[str], NDArray[Any]]) -> float:
    """Eq. 2 as a general linear program, and Eq. 3."""
    (vectors_a, a), (vectors_b, b) = slow_bag(metric, one, vector), slow_bag(metric, other, vector)
    costs = cdist(np.stack(vectors_a), np.stack(vectors_b))
    m, n = costs.shape
    conditions = np.zeros((m + n, m * n))
    for i in range(m):
        for j in range(n):
            conditions[i, i * n + j] = conditions[m + j, i * n + j] = 1
    result = linprog(costs.ravel(), A_eq=conditions[:-1], b_eq=[*a, *b][:-1], method="highs")
    assert result.status == 0
    return math.exp(-result.fun)


@every_metric
def test_scores_equal_the_papers_equations_solved_as_linear_programs(metric: Metric) -> None:
    encoder = load_encoder("wordllama")

    def vector(word: str) -> NDArray[Any]:
        return encoder.vectors([word])[0][0].astype(np.float64)

    predictions, references = pairs()
    expected = [
        slow_score(metric.__name__, one, other, vector) for one, other in zip(predictions, references, strict=True)
    ]
    assert len({round(value, 9) for value in expected}) > 6
    assert scores(metric, predictions, references, temperature=1) == pytest.approx(expected, abs=1e-6)


def test_a_hand_computed_example(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("cat 0 0\ndog 3 4\nbird 0 1\n")
    model = str(tmp_path / "v.txt")
    # Two thirds of the mass lie at cat, 5 from dog; one third at bird, √18 from it.
    expected = math.exp(-(2 / 3 * 5 + 1 / 3 * math.sqrt(18)))
    for metric in (movers.wms, movers.sms):
        assert metric(["Cat, cat! Bird."], ["dog"], model=model, temperature=1)["score"] == pytest.approx(expected)
    # In one sentence, their mean is (0, 1/3).
    joined = math.exp(-math.hypot(3, 4 - 1 / 3))
    assert movers.sms(["cat cat bird"], ["dog"], model=model, temperature=1)["score"] == pytest.approx(joined)


def test_mover_distance_takes_ready_vectors() -> None:
    generator = np.random.default_rng(0)
    x, y, a, b = generator.normal(size=(4, 3)), generator.normal(size=(6, 3)), generator.random(4), generator.random(6)
    plan, costs = mover_distance(x, a, y, b)
    np.testing.assert_allclose(costs, cdist(x, y))
    assert plan.cost == pytest.approx(float((plan.flow * cdist(x, y)).sum()))
    assert mover_distance(x, a, x, a)[0].cost == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(mover_distance(x, a, y, b, "cosine")[1], cdist(x, y, "cosine"))


# ---------------------------------------------------------------------------------------------------------------------
# Properties

REFERENCE = "The bakery opened early. A long queue waited outside. Everyone wanted fresh bread."


def test_a_repeated_sentence_lowers_the_score() -> None:
    summary = "The bakery opened early. Everyone wanted fresh bread."
    repeated = "The bakery opened early. The bakery opened early. The bakery opened early. Everyone wanted fresh bread."
    plain, padded = scores(movers.swms, [summary, repeated], [REFERENCE] * 2)
    assert padded < plain


def test_words_moved_between_sentences_change_sms_but_not_wms() -> None:
    mixed = "The bakery wanted early bread. A fresh queue waited outside. Everyone opened long."
    assert scores(movers.wms, [mixed], [REFERENCE]) == pytest.approx([1.0], abs=1e-6)
    assert scores(movers.sms, [mixed], [REFERENCE])[0] < 0.95
    assert scores(movers.swms, [mixed], [REFERENCE])[0] < 0.99


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("gathered", [1, 2, 3, 5, 100])
def test_sentence_vectors_do_not_depend_on_how_many_words_are_gathered(
    pooling: Any, gathered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Snow fell on the old town. Nobody sold it. Ships waited in the harbour for one more day, then left. Cold!"
    whole = movers.sms([text], ["It was a warm night."], pooling=pooling)
    monkeypatch.setattr(clark_costs, "_GATHERED", gathered)
    assert movers.sms([text], ["It was a warm night."], pooling=pooling)["scores"] == whole["scores"]


def test_a_text_is_like_itself_and_scores_are_symmetric() -> None:
    assert scores(movers.swms, TEXTS, TEXTS) == pytest.approx([1.0] * len(TEXTS), abs=1e-6)
    predictions, references = pairs()
    there, back = scores(movers.swms, predictions, references), scores(movers.swms, references, predictions)
    assert there == pytest.approx(back, abs=1e-6)


# ---------------------------------------------------------------------------------------------------------------------
# Alignments


def check_side(units: list[dict[str, Any]], masses: NDArray[Any], text: str) -> None:
    """Masses that move are the stated weights, and units stand in the stated sentences."""
    np.testing.assert_allclose(masses, [unit["weight"] for unit in units], atol=1e-9)
    assert masses.sum() == pytest.approx(1)
    sentences = [f"{part.strip()}." for part in text.split(".") if part.strip()]
    for unit in units:
        assert set(unit) == {"text", "kind", "sentence", "weight"}
        if unit["kind"] == "sentence":
            assert unit["text"] == sentences[unit["sentence"]]
        else:
            assert unit["text"] in sentences[unit["sentence"]].lower()
    assert {unit["kind"] for unit in units} == {"word", "sentence"}


@pytest.mark.parametrize("model", ["wordllama", "tiny"])
def test_alignments_have_the_stated_marginals_and_reproduce_the_distance(model: str, tiny_bert: Any) -> None:
    groups = [TEXTS[3:5], TEXTS[5:6], TEXTS[6:9]]
    result = movers.swms(TEXTS[:3], groups, return_alignment=True, model=tiny_bert if model == "tiny" else model)
    for text, group, score, alignments in zip(TEXTS, groups, result["scores"], result["alignments"], strict=False):
        assert [alignment["reference_index"] for alignment in alignments] == list(range(len(group)))
        assert max(alignment["score"] for alignment in alignments) == score
        for reference, alignment in zip(group, alignments, strict=True):
            assert set(alignment) == {"reference_index", "score", "distance", "prediction", "reference", "flows"}
            flow = np.zeros((len(alignment["prediction"]), len(alignment["reference"])))
            for move in alignment["flows"]:
                assert set(move) == {"i", "j", "mass", "cost"} and move["mass"] > 0
                flow[move["i"], move["j"]] += move["mass"]
            check_side(alignment["prediction"], flow.sum(axis=1), text)
            check_side(alignment["reference"], flow.sum(axis=0), reference)
            distance = sum(move["mass"] * move["cost"] for move in alignment["flows"])
            assert alignment["distance"] == pytest.approx(distance, abs=1e-9)
            assert alignment["score"] == pytest.approx(math.exp(-distance / result["temperature"]), abs=1e-9)


def test_each_metric_moves_its_own_units() -> None:
    for metric, kinds in ((movers.wms, {"word"}), (movers.sms, {"sentence"}), (movers.swms, {"word", "sentence"})):
        (alignment,) = metric(TEXTS[:1], TEXTS[1:2], return_alignment=True)["alignments"][0]
        assert {unit["kind"] for unit in alignment["prediction"]} == kinds


def test_contextual_words_are_each_their_own_type(tiny_bert: Any) -> None:
    text = "The dog sat on the cat. A cat is red."
    static = movers.wms([text], [text], return_alignment=True)["alignments"][0][0]["prediction"]
    contextual = movers.wms([text], [text], return_alignment=True, model=tiny_bert)["alignments"][0][0]["prediction"]
    assert [unit["text"] for unit in static] == ["dog", "sat", "cat", "red"]
    assert [unit["weight"] for unit in static] == pytest.approx([0.2, 0.2, 0.4, 0.2])
    assert [unit["text"] for unit in contextual] == ["dog", "sat", "cat", "cat", "red"]
    assert [unit["weight"] for unit in contextual] == pytest.approx([0.2] * 5)
    assert [unit["sentence"] for unit in contextual] == [0, 0, 0, 1, 1]


# ---------------------------------------------------------------------------------------------------------------------
# Blank and unfiltered texts


@pytest.mark.parametrize("model", ["wordllama", "tiny"])
def test_blank_and_unfiltered_pairs_are_scored_and_counted(model: str, tiny_bert: Any) -> None:
    cases = [  # prediction, reference, score, empty, unfiltered
        ("", "", 1.0, 1, 0),
        ("  \n\t", "\u00a0", 1.0, 1, 0),
        ("\u200b", "", 1.0, 1, 0),
        ("", "red cat", 0.0, 1, 0),
        ("red cat", " ", 0.0, 1, 0),
        ("", "it is", 0.0, 1, 0),
        ("it is", "it is", 1.0, 0, 1),
        ("!", "!", 1.0, 0, 1),
        ("3", "3", 1.0, 0, 0),
        ("red cat", "red cat", 1.0, 0, 0),
    ]
    chosen = tiny_bert if model == "tiny" else model
    for prediction, reference, score, empty, unfiltered in cases:
        result = movers.swms([prediction], [reference], model=chosen, return_alignment=True)
        assert result["score"] == pytest.approx(score, abs=1e-6)
        assert (result["n_empty"], result["n_unfiltered"], result["n_truncated"]) == (empty, unfiltered, 0)
        if empty:
            nothing = {"distance": None, "prediction": [], "reference": [], "flows": []}
            assert result["alignments"][0][0] == {"reference_index": 0, "score": score, **nothing}


def test_an_unfiltered_pair_is_scored_on_all_tokens_of_both_sides() -> None:
    result = movers.wms(["It is!"], ["The red cat"], return_alignment=True)
    (alignment,) = result["alignments"][0]
    assert [unit["text"] for unit in alignment["prediction"]] == ["it", "is", "!"]
    assert [unit["text"] for unit in alignment["reference"]] == ["the", "red", "cat"]
    everything = movers.wms(["It is!"], ["The red cat"], stopwords=None, punctuation=False)
    assert result["distances"] == pytest.approx(everything["distances"], abs=1e-9)


def test_a_token_before_the_first_sentence_belongs_to_it(tiny_bert: Any) -> None:
    text = " \u0301cat sat. A red dog."
    for model in ("wordllama", tiny_bert):
        result = movers.swms([text], [text], stopwords=None, punctuation=False, return_alignment=True, model=model)
        assert result["score"] == pytest.approx(1.0, abs=1e-6)
        units = result["alignments"][0][0]["prediction"]
        assert min(unit["sentence"] for unit in units) == 0
        assert sum(unit["kind"] == "sentence" for unit in units) == 2


def test_other_scripts_are_scored_without_stop_words() -> None:
    texts = ["我们去北京。他来了。", "ภาษาไทย", "हिन्दी में लिखा है।", "Привет, мир!", "한국어 문장입니다."]
    result = movers.swms(texts, texts, stopwords=None)
    assert result["scores"] == pytest.approx([1.0] * 5, abs=1e-6)
    assert (result["n_unfiltered"], result["n_empty"]) == (0, 0)


def test_english_stop_words_on_another_script_warn() -> None:
    with pytest.warns(UserWarning, match="wms: stopwords='english' drops nothing from non-Latin text"):
        movers.wms(["Привет, мир"], ["Привет"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        movers.wms(["Привет, мир"], ["Привет"], stopwords=None)
        movers.wms(["Hello, мир"], ["Hello"])
        movers.wms(["Привет, мир"], ["Hello"])  # half of the texts


# ---------------------------------------------------------------------------------------------------------------------
# Options

A = "The Old bank sold 3 red Boats, twice! The bank was red. It rained heavily on the bank's boats in 1998."
B = "A bank bought 40 blue boats. Red banks aren't old; it rains on them in May."


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "uniform"},
        {"weights": "norm"},
        {"idf": "corpus"},
        {"sentence_weights": "uniform"},
        {"sentence_weights": "idf", "weights": "count", "idf": IdfTable({"bank": 3, "old": 1}, 9)},
        {"distance": "cosine"},
        {"normalize": True},
        {"lowercase": False},
        {"keep_numbers": False},
        {"punctuation": False},
        {"stopwords": None},
        {"stopwords": ["bank", "the"]},
        {"lang": "fr"},
        {"multi_ref": "mean"},
        {"model": "tiny"},
    ],
    ids="-".join,
)
def test_an_option_that_matters_changes_score_and_signature(options: dict[str, Any], tiny_bert: Any) -> None:
    if options.get("model") == "tiny":
        options = {"model": tiny_bert}
    plain, changed = movers.swms([A], [[B, TEXTS[0]]]), movers.swms([A], [[B, TEXTS[0]]], **options)
    assert abs(plain["score"] - changed["score"]) > 1e-6
    assert plain["signature"] != changed["signature"]
    assert movers.swms([A], [[B, TEXTS[0]]]) == plain, "no state is left from an earlier call"


@pytest.mark.parametrize(
    "options",
    [{"layer": "last"}, {"layer": "pmeans"}, {"context": "text"}],
    ids=lambda options: str(*options.values()),
)
def test_an_option_of_contextual_encoders_changes_score_and_signature(options: dict[str, Any], tiny_bert: Any) -> None:
    one, other = "The cat sat on the mat. It is red.", "A big red dog runs. The man sells it."
    plain = movers.wms([one], [other], model=tiny_bert)
    changed = movers.wms([one], [other], model=tiny_bert, **options)
    assert abs(plain["score"] - changed["score"]) > 1e-6 and plain["signature"] != changed["signature"]


def test_signatures_agree_where_only_the_way_of_computing_differs(tiny_bert: Any) -> None:
    for model in ("wordllama", tiny_bert):
        plain = movers.wms(TEXTS[:2], TEXTS[2:4], model=model)
        ways = {"threads": 2, "batch_tokens": 64, "progress": False, "return_alignment": True}
        assert plain["signature"] == movers.wms(TEXTS[4:5], TEXTS[5:6], model=model, **ways)["signature"]


@pytest.mark.parametrize(
    ("metric", "units"),
    [
        (movers.wms, "weights:count"),
        (movers.sms, "sentences:count|sentvec:mean"),
        (movers.swms, "weights:count|sentences:count|sentvec:mean"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_signature_says_how_a_score_was_computed(metric: Metric, units: str) -> None:
    assert metric(TEXTS[:1], TEXTS[:1])["signature"] == (
        f"{metric.__name__}|emb:wordllama-256@64b47a2d|oov:drop|{units}|stop:english|punct:drop|case:lower|"
        f"numbers:keep|lang:en|dist:euclidean|norm:no|temp:auto|refs:max|v:{VERSION}"
    )


def test_signatures_tell_tables_lists_and_models_apart() -> None:
    several: list[dict[str, Any]] = [
        {"idf": IdfTable({"a": 1}, 2)},
        {"idf": IdfTable({"a": 1}, 3)},
        {"stopwords": ["a"]},
        {"stopwords": ["b"]},
        {"stopwords": ["a", "b"]},
        {"stopwords": None},
        {"stopwords": "english"},
        {"model": (tiny_model(seed=31), tiny_tokenizer())},
        {"model": (tiny_model(seed=32), tiny_tokenizer())},
    ]
    assert len({movers.wms(["red cat"], ["red dog"], **options)["signature"] for options in several}) == 9


def test_idf_from_the_corpus_is_the_table_of_this_calls_references(tmp_path: Path) -> None:
    predictions, groups = TEXTS[:3], [TEXTS[3:5], TEXTS[4:5], TEXTS[5:8]]
    table = IdfTable.build(slow_words(text) for group in groups for text in group)  # flattened, duplicates counted
    table.save(tmp_path / "table.json.gz")
    places = ("corpus", table, str(tmp_path / "table.json.gz"), tmp_path / "table.json.gz")
    corpus, given, saved, path = (movers.wms(predictions, groups, idf=idf) for idf in places)
    assert corpus == given == saved == path
    assert f"|weights:idf|idf:{table.digest}|" in corpus["signature"]


def weights_of(metric: Metric, text: str, **options: Any) -> dict[str, float]:
    (alignment,) = metric([text], [TEXTS[0]], return_alignment=True, **options)["alignments"][0]
    return {unit["text"]: unit["weight"] for unit in alignment["prediction"]}


def test_idf_masses_are_counts_times_inverse_document_frequencies() -> None:
    table = IdfTable({"rain": 5, "returned": 1}, 9)
    rain, returned, unseen = math.log(10 / 6), math.log(10 / 2), math.log(10)
    raw = {"rain": 3 * rain, "stopped": unseen, "play": unseen, "returned": returned, "won": unseen}
    expected = {word: mass / sum(raw.values()) for word, mass in raw.items()}
    assert weights_of(movers.wms, TEXTS[10], idf=table) == pytest.approx(expected)
    raw = {"Rain stopped play.": rain + 2 * unseen, "Rain returned.": rain + returned, "Rain won.": rain + unseen}
    expected = {sentence: mass / sum(raw.values()) for sentence, mass in raw.items()}
    assert weights_of(movers.sms, TEXTS[10], idf=table) == pytest.approx(expected)


def test_uniform_masses_are_equal() -> None:
    found = weights_of(movers.swms, TEXTS[10], weights="uniform", sentence_weights="uniform")
    assert list(found.values()) == pytest.approx([1 / 10] * 5 + [1 / 6] * 3)


def test_cosine_distance_and_unit_vectors_are_what_they_say() -> None:
    words = load_encoder("wordllama").vectors(["cat", "dog"])[0].astype(np.float64)
    cosine = float(cdist(words[:1], words[1:], "cosine")[0, 0])
    assert movers.wms(["cat"], ["dog"], distance="cosine")["distances"] == pytest.approx([cosine], abs=1e-6)
    chord = math.sqrt(2 * cosine)
    assert movers.wms(["cat"], ["dog"], normalize=True)["distances"] == pytest.approx([chord], abs=1e-6)


@pytest.mark.parametrize("oov", ["drop", "zero", "match"])
@pytest.mark.filterwarnings("ignore:.*does not know")
def test_words_without_a_vector_are_counted(oov: str, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("cat 0 0\ndog 3 4\n")
    texts = ["cat", "cat plugh", "dog", "the cat"], ["dog", "dog", "xyzzy", "dog"]  # "the" is dropped, not unknown
    result = movers.wms(*texts, model=str(tmp_path / "v.txt"), oov=oov, temperature=1.0)
    assert result["n_unknown"] == 2


def test_pieces_unknown_to_the_sentence_encoder_are_counted(tiny_bert: Any) -> None:
    texts = ["red cat ☃", "red cat", "dog"], ["a dog", "a dog", "dog ☃"]
    with pytest.warns(UserWarning, match="sms: 2 of 3 rows have words or pieces"):
        assert movers.sms(*texts, sentence_encoder=tiny_bert)["n_unknown"] == 2
    assert movers.sms(*texts)["n_unknown"] == 0


def test_known_words_and_their_sentences_move_alike_whatever_becomes_of_unknown_ones() -> None:
    plain = scores(movers.swms, TEXTS[:3], TEXTS[3:6], temperature=1.0)
    assert scores(movers.swms, TEXTS[:3], TEXTS[3:6], temperature=1.0, oov="match") == pytest.approx(plain, abs=1e-9)


def test_options_of_reading_decide_what_is_a_unit() -> None:
    words = "old bank sold red boats twice rained heavily".split()
    assert list(weights_of(movers.wms, A, keep_numbers=False)) == words
    assert "Boats" in weights_of(movers.wms, A, lowercase=False)
    assert {"3", "1998"} <= set(weights_of(movers.wms, A))
    assert "!" in weights_of(movers.wms, A, punctuation=False)
    assert {"the", "was"} <= set(weights_of(movers.wms, A, stopwords=None))
    assert "bank" not in weights_of(movers.wms, A, stopwords=["Bank"])
    assert "bank's" in weights_of(movers.wms, A, lang="fr")
    assert len(weights_of(movers.sms, A)) == 3


def test_a_sentence_encoder_takes_the_place_of_the_mean_of_words(tiny_bert: Any) -> None:
    one, other = "The cat sat on the mat.", "A big dog runs."
    encoder = load_encoder(tiny_bert)
    x, y = encoder.sentence_vectors([one, other]).astype(np.float64)
    expected = float(np.linalg.norm(x - y))
    for words in ("wordllama", tiny_bert):
        result = movers.sms([one], [other], model=words, sentence_encoder=tiny_bert)
        assert result["distances"] == pytest.approx([expected], abs=1e-6)
        assert f"|sentvec:{encoder.identity}-float32|" in result["signature"]
    mean, encoded = (movers.swms([one], [other], model=tiny_bert, sentence_encoder=s) for s in (None, tiny_bert))
    assert abs(mean["score"] - encoded["score"]) > 1e-6


def slow_word_vector(pair: Any, passage: str, word: str, layers: slice) -> NDArray[Any]:
    """Mean of the layers and of the sub-words of a word, by a plain forward of the passage."""
    import torch

    model, tokenizer = pair
    encoding = tokenizer(passage, return_offsets_mapping=True)
    with torch.no_grad():
        states = model(torch.tensor([encoding["input_ids"]]), output_hidden_states=True).hidden_states
    stacked = torch.stack(states[layers]).mean(dim=0)[0].numpy()
    start = passage.lower().index(word)
    offsets = enumerate(encoding["offset_mapping"])
    rows = [row for row, (begin, end) in offsets if end > begin >= start and end <= start + len(word)]
    assert rows
    return stacked[rows].mean(axis=0)


@pytest.mark.parametrize(
    ("layer", "layers"), [("mean", slice(None)), ("last", slice(-1, None)), (2, slice(2, 3))], ids=str
)
def test_contextual_words_are_means_of_layers_and_sub_words(tiny_bert: Any, layer: Any, layers: slice) -> None:
    x = slow_word_vector(tiny_bert, "It is Heavy.", "heavy", layers)  # cut into letters by this tokenizer
    ys = [slow_word_vector(tiny_bert, "The cat sat.", word, layers) for word in ("cat", "sat")]
    expected = sum(float(np.linalg.norm(x - y)) for y in ys) / 2
    found = movers.wms(["It is Heavy."], ["The cat sat."], model=tiny_bert, layer=layer)["distances"]
    assert found == pytest.approx([expected], rel=1e-4)


@pytest.mark.parametrize(("context", "passage"), [("text", "It is heavy. Boxes sold."), ("sentence", "Boxes sold.")])
def test_the_context_is_the_sentence_or_the_text(tiny_bert: Any, context: str, passage: str) -> None:
    text = "It is heavy. Boxes sold."
    result = movers.wms([text], ["cat"], model=tiny_bert, context=context, return_alignment=True)
    (alignment,) = result["alignments"][0]
    number = [unit["text"] for unit in alignment["prediction"]].index("boxes")
    cost = next(move["cost"] for move in alignment["flows"] if move["i"] == number)
    x = slow_word_vector(tiny_bert, passage, "boxes", slice(None))
    y = slow_word_vector(tiny_bert, "cat", "cat", slice(None))
    assert cost == pytest.approx(float(np.linalg.norm(x - y)), rel=1e-5)


def test_texts_longer_than_the_window_are_counted_when_cut_and_read_whole_otherwise(tiny_bert: Any) -> None:
    long = "red cat " * 40 + "box"
    window = movers.wms([long, "red cat"], ["snow", "snow"], model=tiny_bert, return_alignment=True)
    assert window["n_truncated"] == 0 and len(window["alignments"][0][0]["prediction"]) == 81
    with pytest.warns(UserWarning, match="were cut to the window of 32 tokens"):
        cut = movers.wms([long, "red cat"], ["snow", "snow"], model=tiny_bert, truncation="cut", return_alignment=True)
    assert cut["n_truncated"] == 1 and len(cut["alignments"][0][0]["prediction"]) == 30
    assert movers.wms([long], ["snow"], model=tiny_bert, truncation="cut")["n_truncated"] == 1, "from the cache too"
    with pytest.raises(ValueError, match="truncation='error': a text has 83 tokens"):
        movers.wms([long], ["snow"], model=tiny_bert, truncation="error")
    narrow = movers.wms([long], ["snow"], model=tiny_bert, window=10)
    assert len({narrow["signature"], window["signature"], cut["signature"]}) == 3


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be meant


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("swms", {"sentence_weights": "idf"}, "'idf' needs a table"),
        ("wms", {"weights": "uniform", "idf": "corpus"}, "wms: idf: a table is given, but weights='uniform'"),
        ("sms", {"sentence_weights": "uniform", "idf": "corpus"}, "sms: idf: a table is given"),
        ("swms", {"weights": "norm", "idf": "corpus"}, "swms: idf: a table is given"),
        ("wms", {"sentence_encoder": "all-MiniLM-L6-v2"}, "wms: unknown option 'sentence_encoder'; valid options:"),
        ("sms", {"weights": "norm"}, "sms: unknown option 'weights'"),
        ("sms", {"sentence_weights": "norm"}, "sms: sentence_weights: expected one of 'count', 'uniform', 'idf', but"),
        ("sms", {"sentence_encoder": "wordllama"}, "sms: sentence_encoder: expected a contextual encoder, but wordll"),
    ],
)
def test_contradictions_are_errors(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        getattr(movers, name)(["cat"], ["dog"], **options)


def test_words_and_sentences_in_one_bag_need_one_space(tiny_bert: Any) -> None:
    with pytest.raises(ValueError, match="swms: sentence_encoder: .*need one space: expected the same encoder as mod"):
        movers.swms(["cat"], ["dog"], sentence_encoder=tiny_bert)


# ---------------------------------------------------------------------------------------------------------------------
# Encoders of one's own


def test_an_encoder_of_ones_own_needs_only_vectors_and_a_name_not_even_a_hash() -> None:
    table = tiny_table(["cat", "dog", "red"])

    class Mine:
        identity = "mine-4"
        dimension = 4
        __hash__ = None  # type: ignore[assignment]  # nothing may need it as a key

        def vectors(self, words: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
            known = np.array([word in table for word in words], dtype=bool)
            return np.array([table.get(word, [0.0] * 4) for word in words], dtype=np.float32).reshape(-1, 4), known

    result = movers.wms(["red cat"], ["dog unknown"], model=Mine(), temperature=1)
    mean = np.mean(cdist([table["red"], table["cat"]], [table["dog"]]))
    assert result["score"] == pytest.approx(math.exp(-mean), abs=1e-6)
    assert result["signature"].startswith("wms|emb:mine-4|")

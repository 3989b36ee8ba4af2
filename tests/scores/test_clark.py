from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plain import check_alignment, transport
from scipy.spatial.distance import cdist
from tiny import tiny_table

import movers
from movers import IdfTable, InputError, load_encoder, mover_distance
from movers.scores.unrelated import unrelated_texts
from movers.texts import STOP_MASS, WordRules
from movers.version import VERSION

Metric = Callable[..., dict[str, Any]]
every_metric = pytest.mark.parametrize(
    "metric", [movers.wms, movers.sms, movers.swms], ids=lambda metric: metric.__name__
)

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
OTHERS = [TEXTS[(place * 5 + 1) % len(TEXTS)] for place in range(len(TEXTS))]


def scores(metric: Metric, predictions: Sequence[str], references: Any, **options: Any) -> list[float]:
    return metric(list(predictions), list(references), **options)["scores"]


# ---------------------------------------------------------------------------------------------------------------------
# Eq. 1–5, plainly


def plain_sentences(text: str) -> list[list[str]]:
    """Kept words of each sentence; right for texts of plain words and full stops only."""
    parts = [re.findall("[a-z]+", part.lower()) for part in text.split(".")]
    return [part for part in parts if part]


def plain_words(text: str) -> list[str]:
    return [word for sentence in plain_sentences(text) for word in sentence]


def plain_bag(metric: str, text: str, encoder: Any, stop_mass: float) -> tuple[NDArray[Any], NDArray[Any]]:
    stop = set(resources.files("movers").joinpath("data/stopwords_english.txt").read_text().split("\n"))
    words, units = plain_words(text), []
    if metric in ("wms", "swms"):  # Eq. 1
        units += [[word] * count for word, count in Counter(words).items()]
    if metric in ("sms", "swms"):  # Eq. 4
        units += plain_sentences(text)
    counts = [np.array([stop_mass if word in stop else 1.0 for word in unit]) for unit in units]
    kept = [place for place, count in enumerate(counts) if count.sum()]
    vectors = [counts[n] @ encoder.vectors(units[n])[0].astype(np.float64) / counts[n].sum() for n in kept]
    masses = np.array([counts[n].sum() for n in kept])  # Eq. 5
    return np.stack(vectors), masses / masses.sum()


@pytest.mark.parametrize("preset", [None, "paper"])
@every_metric
def test_scores_equal_the_papers_equations_solved_as_linear_programs(metric: Metric, preset: str | None) -> None:
    encoder: Any = load_encoder("wordllama")
    expected = []
    cosine = preset is None and metric is movers.wms
    for texts in zip(TEXTS, OTHERS, strict=True):
        bags = (plain_bag(metric.__name__, text, encoder, 0.0 if preset else STOP_MASS) for text in texts)
        (x, a), (y, b) = bags
        expected.append(math.exp(-transport(a, b, cdist(x, y, "cosine" if cosine else "euclidean"))[1]))  # Eq. 2 and 3
    assert len({round(value, 9) for value in expected}) > 6
    assert scores(metric, TEXTS, OTHERS, temperature=1, preset=preset) == pytest.approx(expected, abs=1e-6)


def test_distances_of_ready_vectors_and_of_words() -> None:
    generator = np.random.default_rng(0)
    x, y, a, b = generator.normal(size=(4, 3)), generator.normal(size=(6, 3)), generator.random(4), generator.random(6)
    plan, costs = mover_distance(x, a, y, b)
    np.testing.assert_allclose(costs, cdist(x, y))
    assert plan.cost == pytest.approx(transport(a / a.sum(), b / b.sum(), cdist(x, y))[1])
    assert mover_distance(x, a, x, a)[0].cost == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(mover_distance(x, a, y, b, "cosine")[1], cdist(x, y, "cosine"))
    with pytest.raises(InputError, match=r"vectors: expected shapes .* but got \(\d, \d\) and \(\d, \d\)"):
        mover_distance(x, a, y[:, :-1], b)
    with pytest.raises(InputError, match="mover_distance: distance: expected one of 'euclidean', .*, but got 'l1'"):
        mover_distance(x, a, y, b, "l1")  # type: ignore[arg-type]
    words: Any = load_encoder("wordllama")
    cosine = float(cdist(*(words.vectors([word])[0] for word in ("cat", "dog")), "cosine")[0, 0])
    assert movers.wms(["cat"], ["dog"])["distances"] == pytest.approx([cosine], abs=1e-6)
    options: dict[str, Any] = {"distance": "euclidean", "normalize": True}
    assert movers.wms(["cat"], ["dog"], **options)["distances"] == pytest.approx([math.sqrt(2 * cosine)], abs=1e-6)


def test_words_moved_between_sentences_change_sms_but_not_wms() -> None:
    plain = "The bakery opened early. A long queue waited outside. Everyone wanted fresh bread."
    mixed = "The bakery wanted early bread. A fresh queue waited outside. Everyone opened long."
    assert scores(movers.wms, [mixed], [plain]) == pytest.approx([1.0], abs=1e-6)
    assert scores(movers.sms, [mixed], [plain])[0] < 0.95
    assert scores(movers.swms, [mixed], [plain])[0] < 0.99


@pytest.mark.parametrize("model", ["wordllama", "tiny"])
def test_alignments_have_the_stated_marginals_and_reproduce_the_distance(model: str, tiny_bert: Any) -> None:
    groups = [TEXTS[3:5], TEXTS[5:6], TEXTS[6:9]]
    result = movers.swms(TEXTS[:3], groups, return_alignment=True, model=tiny_bert if model == "tiny" else model)
    for group, score, alignments in zip(groups, result["scores"], result["alignments"], strict=True):
        assert [alignment["reference_index"] for alignment in alignments] == list(range(len(group)))
        assert max(alignment["score"] for alignment in alignments) == score
        for alignment in alignments:
            check_alignment(alignment)
            assert {unit["kind"] for unit in alignment["prediction"]} == {"word", "sentence"}
            distance = alignment["distance"]
            assert alignment["score"] == pytest.approx(math.exp(-distance / result["temperature"]), abs=1e-9)


# ---------------------------------------------------------------------------------------------------------------------
# Blank texts, stop words only, unknown words, other scripts


@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_a_text_of_which_filters_leave_nothing_keeps_all_tokens(model: str) -> None:
    result = movers.wms(["It is!"], ["The red cat"], stopwords="drop", model=model, return_alignment=True)
    (alignment,) = result["alignments"][0]
    sides = [[unit["text"] for unit in alignment[side]] for side in ("prediction", "reference")]
    assert result["n_unfiltered"] == 1 and sides == [["it", "is", "!"], ["red", "cat"]]
    for metric in (movers.wms, movers.sms, movers.swms):
        assert metric(["!!"], ["!!"], model=model)["scores"] == [1.0] != metric(["!!"], ["??"], model=model)["scores"]


@every_metric
@pytest.mark.parametrize("model", ["wordllama", "all-MiniLM-L6-v2"])
def test_numbers_with_the_same_digits_differ_and_spellings_of_a_number_do_not(metric: Metric, model: str) -> None:
    pairs = [("15", "51"), ("2021", "2012"), ("1.5", "5.1"), ("A320", "A230"), ("12:30", "03:21"), ("1000", "100")]
    changed = metric([f"It was {a} then" for a, _ in pairs], [f"It was {b} then" for _, b in pairs], model=model)
    assert max(changed["scores"]) < 0.97
    if model == "wordllama":  # a transformer reads the comma as context
        assert metric(["1,000 had Covid-19"], ["1000 had COVID-19"])["scores"] == pytest.approx([1.0], abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*does not know")
def test_words_without_a_vector_are_dropped_or_at_the_origin_or_match_themselves(
    tmp_path: Path, vector_file: Callable[..., Path]
) -> None:
    (tmp_path / "v.txt").write_text("man 1 2\nwoman 4 6\n")
    options: dict[str, Any] = {"model": str(tmp_path / "v.txt"), "temperature": 3.0}
    options |= {"stopwords": "drop", "distance": "euclidean"}
    texts = ["zzyzx man", "zzyzx", "man", "the man"], ["woman zzyzx", "qwxyz", "zzyzx", "woman"]  # 5 apart
    for oov, distances in (
        ("drop", [5.0, None, None, 5.0]),
        ("zero", [2.5, 0.0, math.sqrt(5), 5.0]),
        ("match", [2.5, 3.0, 3.0, 5.0]),
    ):
        result = movers.wms(*texts, oov=oov, **options)
        assert result["distances"] == [value if value is None else pytest.approx(value) for value in distances]
        assert result["n_unknown"] == 3  # "the" is dropped, not unknown
    (tmp_path / "stop.txt").write_text("of 1 2\n")
    options = {"model": str(tmp_path / "stop.txt"), "stopwords": "drop", "temperature": 1.0}
    (alignment,) = movers.wms(["of the"], ["of"], return_alignment=True, **options)["alignments"][0]
    assert [unit["text"] for unit in alignment["prediction"]] == ["of"]
    assert [(unit["text"], unit["reason"]) for unit in alignment["dropped"]["prediction"]] == [("the", "no vector")]
    known = sorted({word for text in unrelated_texts() for word in WordRules().words(text)})[::2]
    options = {"model": str(vector_file(tiny_table(known)))}
    units = {movers.wms(["snow"], ["snow"], oov=oov, **options)["temperature"] for oov in ("drop", "zero", "match")}
    assert len(units) == 1


# ---------------------------------------------------------------------------------------------------------------------
# Options

A = "The Old bank sold 3 red Boats, twice! The bank was red. It rained heavily on the bank's boats in 1998."


def test_a_signature_says_how_a_score_was_computed() -> None:
    assert movers.wms(TEXTS[:1], TEXTS[:1])["signature"] == (
        "wms|emb:wordllama-256@64b47a2dc493cb8e|oov:drop|weights:count|stop:english-0.05|case:lower|words:all-0.4|lang:en|"
        f"dist:cosine|norm:no|temp:auto|refs:max|v:{VERSION}"
    )


def test_idf_from_the_corpus_is_the_table_of_this_calls_references(tmp_path: Path) -> None:
    predictions, groups = TEXTS[:3], [TEXTS[3:5], TEXTS[4:5], TEXTS[5:8]]
    table = IdfTable.build(plain_words(text) for group in groups for text in group)  # flattened, duplicates counted
    table.save(tmp_path / "table.json.gz")
    places = ("corpus", table, str(tmp_path / "table.json.gz"), tmp_path / "table.json.gz")
    corpus, *others = (movers.wms(predictions, groups, idf=idf) for idf in places)
    assert others == [corpus] * 3
    assert "|weights:idf|" in corpus["signature"] and f"|idf:{table.digest}|" in corpus["signature"]


def weights_of(metric: Metric, text: str, **options: Any) -> dict[str, float]:
    (alignment,) = metric([text], [TEXTS[0]], return_alignment=True, **options)["alignments"][0]
    return {unit["text"]: unit["weight"] for unit in alignment["prediction"]}


def test_masses_are_counts_times_inverse_document_frequencies_or_equal() -> None:
    table = IdfTable({"rain": 5, "returned": 1}, 9)
    rain, returned, unseen = math.log(10 / 6), math.log(10 / 2), math.log(10)
    words = {"rain": 3 * rain, "stopped": unseen, "play": unseen, "returned": returned, "won": unseen}
    sentences = {"Rain stopped play.": rain + 2 * unseen, "Rain returned.": rain + returned, "Rain won.": rain + unseen}
    for metric, raw in ((movers.wms, words), (movers.sms, sentences)):
        expected = {unit: mass / sum(raw.values()) for unit, mass in raw.items()}
        assert weights_of(metric, TEXTS[10], idf=table) == pytest.approx(expected)
    stop = {"The rain.": rain + 0.05 * unseen, "It returned.": returned + 0.05 * unseen}  # a twentieth of a word
    expected = {unit: mass / sum(stop.values()) for unit, mass in stop.items()}
    assert weights_of(movers.sms, " ".join(stop), idf=table) == pytest.approx(expected)
    uniform = weights_of(movers.swms, TEXTS[10], weights="uniform", sentence_weights="uniform")
    assert list(uniform.values()) == pytest.approx([1 / 10] * 5 + [1 / 6] * 3)


def test_words_seen_before_and_their_masses_stay_when_the_table_grows(vector_file: Callable[..., Path]) -> None:
    words = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiouäöüéà" for c in string.ascii_lowercase]  # more than 1,024
    texts = [" ".join([*words[first : first + 65], "the"]) for first in range(0, len(words), 65)]
    table = tiny_table([*words, "the"])
    by_name = {name: str(vector_file(table, name=name)) for name in ("grown.txt", "new.txt")}
    few = movers.wms(texts[:2], texts[1::-1], model=by_name["grown.txt"], temperature=1.0)
    grown, new = (movers.wms(texts, texts[::-1], model=path, temperature=1.0)["scores"] for path in by_name.values())
    assert grown == new
    assert movers.wms(texts[:2], texts[1::-1], model=by_name["grown.txt"], temperature=1.0) == few


def test_options_of_reading_decide_what_is_a_unit(tiny_bert: Any) -> None:
    text = "The dog sat on the cat. A cat is red."
    drop: dict[str, Any] = {"stopwords": "drop"}
    assert weights_of(movers.wms, text, **drop) == pytest.approx({"dog": 0.2, "sat": 0.2, "cat": 0.4, "red": 0.2})
    # With context, each word is its own type.
    assert weights_of(movers.wms, text, model=tiny_bert, **drop) == pytest.approx(
        dict.fromkeys(["dog", "sat", "cat", "red"], 0.2)
    )
    assert weights_of(movers.wms, "The cat on a mat") == pytest.approx(
        {"cat": 1 / 2.15, "mat": 1 / 2.15} | dict.fromkeys(["the", "on", "a"], 0.05 / 2.15)
    )
    assert weights_of(movers.wms, "a cat, a mat, a", weights="uniform") == pytest.approx(
        {"a": 0.05 / 2.05, "cat": 1 / 2.05, "mat": 1 / 2.05}
    )
    assert weights_of(movers.wms, A, stopwords=None)["was"] == weights_of(movers.wms, A, stopwords=None)["sold"]
    assert weights_of(movers.wms, "Bank sold", stopwords=["Bank"])["bank"] == pytest.approx(0.05 / 1.05)
    plain, *others = (movers.wms([A], ["don't"], lang=lang) for lang in ("en", "EN", "en-GB", "en_US"))
    assert others == [plain] * 3  # also the signature
    assert len(weights_of(movers.sms, A)) == 3


# ---------------------------------------------------------------------------------------------------------------------
# Contextual encoders


def test_sentences_without_a_space_between_them_have_the_same_words() -> None:
    for mark in (". ", "。", "!"):
        units = weights_of(movers.wms, f"The boat sank{mark}The crew swam home.", stopwords="drop")
        assert units == pytest.approx(dict.fromkeys(["boat", "sank", "crew", "swam", "home"], 0.2))


def test_a_sentence_encoder_replaces_the_mean_of_words(tiny_bert: Any) -> None:
    encoder: Any = load_encoder(tiny_bert)
    x, y = encoder.sentence_vectors(["The cat sat on the mat.", "A big dog runs."]).astype(np.float64)
    for words in ("wordllama", tiny_bert):
        result = movers.sms(["The cat sat on the mat."], ["A big dog runs."], model=words, sentence_encoder=tiny_bert)
        assert result["distances"] == pytest.approx([float(np.linalg.norm(x - y))], abs=1e-6)
        assert f"|sentvec:{encoder.identity}-float32-{encoder.sentence_window}|" in result["signature"]
    for options, unknown in (({}, 0), ({"sentence_encoder": tiny_bert}, 1), ({"model": tiny_bert}, 1)):
        assert movers.sms(["A cat."] * 9 + ["A 42."], ["A cat."] * 10, **options)["n_unknown"] == unknown
    with pytest.raises(InputError, match="^sms: sentence_encoder: expected a contextual encoder, but wordllama-256@"):
        movers.sms(["A cat."], ["A dog."], sentence_encoder="wordllama")


def plain_word_vector(pair: Any, passage: str, word: str, layers: slice = slice(None)) -> NDArray[Any]:
    """Mean of the layers and of the subwords of a word, from the passage alone."""
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
def test_contextual_words_are_means_of_layers_and_subwords(tiny_bert: Any, layer: Any, layers: slice) -> None:
    options: dict[str, Any] = {"stopwords": "drop", "distance": "euclidean", "layer": layer}
    x = plain_word_vector(tiny_bert, "It is Heavy.", "heavy", layers)  # cut into letters by this tokenizer
    ys = [plain_word_vector(tiny_bert, "The cat sat.", word, layers) for word in ("cat", "sat")]
    expected = sum(float(np.linalg.norm(x - y)) for y in ys) / 2
    distances = movers.wms(["It is Heavy."], ["The cat sat."], model=tiny_bert, **options)["distances"]
    assert distances == pytest.approx([expected], rel=1e-4)


@pytest.mark.parametrize(("context", "passage"), [("text", "It is heavy. Boxes sold."), ("sentence", "Boxes sold.")])
def test_the_context_is_the_sentence_or_the_text(tiny_bert: Any, context: str, passage: str) -> None:
    text = "It is heavy. Boxes sold."
    options: dict[str, Any] = {"distance": "euclidean", "context": context, "return_alignment": True}
    (alignment,) = movers.wms([text], ["cat"], model=tiny_bert, **options)["alignments"][0]
    number = [unit["text"] for unit in alignment["prediction"]].index("boxes")
    cost = next(move["cost"] for move in alignment["flows"] if move["i"] == number)
    x, y = plain_word_vector(tiny_bert, passage, "boxes"), plain_word_vector(tiny_bert, "cat", "cat")
    assert cost == pytest.approx(float(np.linalg.norm(x - y)), rel=1e-5)


def test_texts_longer_than_the_window_are_read_whole_and_counted_when_cut(tiny_bert: Any) -> None:
    texts = ["red cat " * 40 + "box", "red cat"], ["snow"] * 2
    options: dict[str, Any] = {"model": tiny_bert, "return_alignment": True}
    window = movers.wms(*texts, **options)
    assert window["n_truncated"] == 0 and len(window["alignments"][0][0]["prediction"]) == 81
    with pytest.warns(UserWarning, match="were cut to the window of 32 tokens"):
        cut = movers.wms(*texts, truncation="cut", **options)
    assert cut["n_truncated"] == 1 and len(cut["alignments"][0][0]["prediction"]) == 30
    for score in (movers.moverscore, movers.bertscore_emd):
        with pytest.warns(UserWarning, match="were cut"):
            dropped = score(*texts, truncation="cut", **options)["alignments"][0][0]["dropped"]["prediction"]
        last = next(unit for unit in dropped if unit["text"] == "box")
        assert (last["start"], last["end"], last["reason"]) == (320, 323, "truncated")
    assert movers.wms(*texts, truncation="cut", **options)["n_truncated"] == 1, "from the cache too"
    with pytest.raises(ValueError, match=r"predictions\[0\]: truncation='error': a text has 83 tokens"):
        movers.wms(*texts, truncation="error", **options)
    with pytest.raises(ValueError, match=r"predictions\[1\]: truncation='error': a text has 83 tokens"):
        movers.wms(["Cat.", f"Cat. {texts[0][0].capitalize()}"], texts[1], truncation="error", **options)
    assert len({window["signature"], cut["signature"], movers.wms(*texts, window=10, **options)["signature"]}) == 3

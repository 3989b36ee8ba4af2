"""What holds for all texts and all options of a metric, on examples that hypothesis makes up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import TINY_WORDS, tiny_model, tiny_tokenizer

import movers
from movers.encoders.cache import VectorCache
from movers.encoders.contextual import ContextualEncoder
from movers.registry import METRICS
from movers.scores.options import option_rows
from movers.weights import IdfTable

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*encoder does not know", "ignore:.*non-Latin", "ignore:.*no mass", "ignore:.*were cut", "ignore:.*knows En"
)
PAIRED = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
few = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
more = settings(few, max_examples=25)


class Letters:
    """A static encoder: a seeded vector per word; words with a `q` are unknown."""

    identity = "letters@1"
    dimension = 6

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        rows = [np.random.default_rng([*word.encode()]).normal(size=6) for word in words]
        known = np.array(["q" not in word for word in words], dtype=bool)
        return np.array(rows, np.float32).reshape(-1, 6) * known[:, None], known


STATIC = Letters()
MODEL, TOKENIZER = tiny_model("bert"), tiny_tokenizer("bert")
CONTEXTUAL = ContextualEncoder(MODEL, TOKENIZER, "tiny", "0" * 64, VectorCache(0))  # keeps nothing
KEEPING = ContextualEncoder(MODEL, TOKENIZER, "tiny", "0" * 64, VectorCache(1 << 20))
ENCODERS = {"static": (STATIC, 0.0), "contextual": (CONTEXTUAL, 1e-6)}  # with what equality means
every_metric = pytest.mark.parametrize("metric", PAIRED)
every_encoder = pytest.mark.parametrize("kind", ENCODERS)

texts = st.lists(
    st.sampled_from([*TINY_WORDS, "The", "qua", "isn't", "naïve", "😀", "ไทย", "3", "3.5", ".", "!", ",", "\n"]),
    max_size=12,
).map(" ".join)
pairs = st.tuples(texts, texts)


def score(metric: str, rows: Sequence[tuple[str, str]], **options: object) -> dict[str, Any]:
    predictions, references = zip(*rows, strict=True)
    result: dict[str, Any] = getattr(movers, metric)(list(predictions), list(references), progress=False, **options)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Texts


@every_metric
@every_encoder
@more
@given(text=st.one_of(texts, st.text(st.characters(exclude_categories=["Cs"]), max_size=30)))
def test_equal_texts_score_one(metric: str, kind: str, text: str) -> None:
    result = score(metric, [(text, text)], model=ENCODERS[kind][0])
    assert result["scores"][0] == pytest.approx(1.0, abs=1e-6)
    assert all(result[part][0] <= 1.0 for part in ("precision", "recall", "f1") if part in result)


@every_metric
@every_encoder
@few
@given(pair=pairs)
def test_the_order_of_the_two_texts_changes_no_score(metric: str, kind: str, pair: tuple[str, str]) -> None:
    one = score(metric, [pair], model=ENCODERS[kind][0])
    other = score(metric, [pair[::-1]], model=ENCODERS[kind][0])
    assert one["scores"] == pytest.approx(other["scores"], abs=1e-6)
    if "precision" in one:
        assert one["precision"] == pytest.approx(other["recall"], abs=1e-6)


@every_metric
@every_encoder
@few
@given(
    rows=st.lists(pairs, min_size=1, max_size=4), random=st.randoms(use_true_random=False), threads=st.integers(1, 3)
)
def test_a_score_does_not_depend_on_order_batch_threads_or_cache(
    metric: str, kind: str, rows: list[tuple[str, str]], random: Any, threads: int
) -> None:
    encoder, tolerance = ENCODERS[kind]
    together = score(metric, rows, model=encoder)["scores"]
    alone = [score(metric, [row], model=encoder, threads=1)["scores"][0] for row in rows]
    order = random.sample(range(len(rows)), len(rows))
    shuffled = score(metric, [rows[place] for place in order], model=encoder, threads=threads, batch_tokens=16)[
        "scores"
    ]
    variants = [alone, [shuffled[order.index(place)] for place in range(len(rows))]]
    if kind == "contextual":
        variants += [score(metric, rows, model=KEEPING)["scores"] for _ in range(2)]  # into the cache, and from it
    for variant in variants:
        np.testing.assert_allclose(variant, together, rtol=0, atol=tolerance)


SEEDED = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, "tests")
from test_properties import ENCODERS, PAIRED, score
rows = [("the cat sat on it", "a dog sat. The old man runs"), ("😀 snow sells", "ไทย snow qua ships in a red box!")]
print(json.dumps({f"{m} {k}": score(m, rows, model=e)["scores"] for m in PAIRED for k, (e, _) in ENCODERS.items()}))
"""


def test_scores_do_not_depend_on_the_seed_of_hashes(run_python: Callable[..., str]) -> None:
    first, second = (json.loads(run_python(SEEDED, PYTHONHASHSEED=seed).splitlines()[-1]) for seed in "12")
    assert len(first) == 2 * len(PAIRED)
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=0, atol=ENCODERS[name.split()[1]][1], err_msg=name)


# ---------------------------------------------------------------------------------------------------------------------
# Options: what changes a score is in the signature

ROWS = [
    ("The cat isn't on the mat. It sells 3 red boxes, Snow!", "the Cat is 3. old dog sat on the big box"),
    ("it is on the a", "A man ships snow, snow in 3 Red boxes"),
    ("the man. " * 12, "the old dog runs in a box. " * 6),
    ("snow &amp; it is a box", "qua is old &quot;snow&quot;"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, tables, baselines and the quality model, each in two versions."""
    path = tmp_path_factory.mktemp("options")
    for seed in (1, 2):
        tiny_model("bert", seed=seed).save_pretrained(path / f"model{seed}")
        TOKENIZER.save_pretrained(path / f"model{seed}")
        values = f"0.{seed},0.{seed},0.{seed}"
        (path / f"baseline{seed}.csv").write_text("LAYER,P,R,F\n" + "".join(f"{n},{values}\n" for n in range(7)))
    import transformers
    from safetensors.numpy import load_file, save_file

    from movers.quality.model import find_model

    small = transformers.GPT2Config(vocab_size=len(TOKENIZER), n_embd=16, n_layer=1, n_head=2, n_positions=64)
    transformers.GPT2LMHeadModel(small).save_pretrained(path / "lm")
    TOKENIZER.save_pretrained(path / "lm")
    shipped = find_model("shipped")
    assert isinstance(shipped, Path)
    changed = path / "quality"
    changed.mkdir()
    for name in ("config.json", "record.json"):
        (changed / name).write_bytes((shipped / name).read_bytes())
    weights = load_file(shipped / "model.safetensors")
    smaller = {name: np.asarray(value * np.float32(0.9)) for name, value in weights.items()}
    save_file(smaller, changed / "model.safetensors")
    return path


def table(words: Mapping[str, int]) -> IdfTable:
    return IdfTable(dict(words), 5)


TABLES = table({"cat": 1, "snow": 4, "box": 2, "man": 3}), table({"cat": 4, "snow": 1, "box": 3, "old": 2})
# Options that change no score, with two values.
INERT: dict[str, tuple[object, object]] = {
    "device": ("auto", "cpu"),
    "batch_tokens": (None, 64),
    "threads": (None, 2),
    "workers": (None, 2),
    "progress": (None, False),
    "return_alignment": (False, True),
    "max_cells": (25_000_000, 10**9),
    "shared_pass": (None, movers.SharedPass()),
    "nthreads": (None, 2),
    "verbose": (False, False),
    "batch_size": (None, 8),
    "all_layers": (False, False),
    "use_fast_tokenizer": (True, False),
}
CLARK: dict[str, tuple[dict[str, Any], object, object]] = {
    "model": ({}, STATIC, "wordllama"),
    "stopwords": ({}, ["cat"], ["snow"]),
    "punctuation": ({}, True, False),
    "lowercase": ({}, True, False),
    "keep_numbers": ({}, True, False),
    "lang": ({}, "en", "de"),
    "distance": ({}, "euclidean", "cosine"),
    "normalize": ({}, True, False),
    "layer": ({"model": CONTEXTUAL}, "mean", 3),
    "context": ({"model": CONTEXTUAL}, "sentence", "text"),
    "dtype": ({"model": "model1"}, "float32", "bfloat16"),
    "idf": ({}, *TABLES),
    "multi_ref": ({}, "max", "mean"),
    "truncation": ({"model": CONTEXTUAL, "context": "text"}, "window", "cut"),
    "window": ({"model": CONTEXTUAL, "context": "text"}, 8, None),
    "temperature": ({}, "auto", 2.0),
    "oov": ({}, "zero", "match"),
    "average": ({}, "scores", "distances"),
    "preset": ({}, None, "paper"),
    "rescale": ({}, False, True),
    "unescape": ({}, False, True),
}
SENTENCES: dict[str, tuple[dict[str, Any], object, object]] = {
    "sentence_weights": ({}, "count", "uniform"),
    "sentence_encoder": ({"model": CONTEXTUAL}, None, CONTEXTUAL),
    "idf": ({"sentence_weights": "idf"}, *TABLES),
    "pooling": ({}, "mean", "max"),
    "oov": ({}, "drop", "zero"),
}
WEIGHTS = ({}, "count", "norm")
TOKENS: dict[str, tuple[dict[str, Any], object, object]] = {
    "model": ({}, CONTEXTUAL, "model1"),
    "lowercase": ({"model": STATIC}, True, False),
    "weights": ({}, "uniform", "norm"),
    "dtype": ({"model": "model1"}, "float32", "bfloat16"),
    "idf": ({"model": STATIC}, *TABLES),
    "multi_ref": ({}, "max", "mean"),
    "truncation": ({}, "window", "cut"),
    "window": ({}, 8, None),
    "rescale": ({}, False, True),
    "unescape": ({}, False, True),
}
GREEDY = {"alignment": "greedy"}
BERTSCORE: dict[str, tuple[dict[str, Any], object, object]] = {
    **TOKENS,
    "weights": ({"model": STATIC}, "uniform", "norm"),
    "layer": ({}, "last", 3),
    "alignment": ({}, "optimal", "greedy"),
    "greedy_special": (GREEDY, True, False),
    "rescale_with_baseline": (GREEDY, True, False),
    "baseline_path": ({**GREEDY, "rescale_with_baseline": True}, "baseline1.csv", "baseline2.csv"),
    "model_type": ({}, "model1", "model2"),
    "num_layers": ({}, 2, 3),
}
#: For every metric and option that changes scores: what else must be given, and two values.
CHANGING: dict[str, dict[str, tuple[dict[str, Any], object, object]]] = {
    "wms": {**CLARK, "weights": WEIGHTS},
    "sms": {**CLARK, **SENTENCES},
    "swms": {**CLARK, **SENTENCES, "weights": WEIGHTS},
    "moverscore": {
        **TOKENS,
        "variant": ({}, "v1", "v2"),
        "n_gram": ({}, 1, 2),
        "aggregation": ({}, "pmeans", "4+6"),
        "routing_kernel": ({"aggregation": "routing"}, "gaussian", "epanechnikov"),
        "distance": ({}, "sqeuclidean", "cosine"),
        "similarity": ({}, "one_minus", "exp"),
        "alignment": ({}, "soft", "hard"),
        "stopwords": ({}, ["cat"], ["snow"]),
        "punctuation": ({}, True, "ascii"),
        "drop_subwords": ({}, True, False),
        "special_tokens": ({}, True, False),
        "normalize": ({}, True, False),
        "idf_tables": ({"idf": "corpus"}, "sides", "one"),
        "powers": ({}, None, [1, 2]),
        "average": ({"similarity": "exp"}, "scores", "distances"),
        "preset": ({}, None, "short"),
    },
    "bertscore_hungarian": {**BERTSCORE},
    "bertscore_emd": {**BERTSCORE},
    "reference_free_summary_quality": {
        "model": ({}, "shipped", "quality"),
        "lm": ({}, None, "lm"),
        "doc_reduce": ({}, "mean", "sum"),
        "dtype": ({}, "float32", "bfloat16"),
        "unescape": ({}, False, True),
    },
}
NO_CHANGE: dict[tuple[str, str], tuple[object, object]] = {
    ("bertscore_hungarian", "lang"): (None, "de"),
    ("bertscore_emd", "lang"): (None, "de"),
    ("bertscore_hungarian", "preset"): (None, "paper"),
    ("bertscore_emd", "preset"): (None, "paper"),
    ("reference_free_summary_quality", "preset"): (None, None),
    ("reference_free_summary_quality", "truncation"): ("window", "window"),  # `cut` is for cross-encoders
}


def run(metric: str, options: Mapping[str, Any], folder: Path) -> tuple[list[float], str]:
    """Scores and signature; names of what the folder holds become paths."""
    held = {path.name for path in folder.iterdir()}
    given = {
        name: str(folder / value) if isinstance(value, str) and value in held else value
        for name, value in options.items()
    }
    if metric in PAIRED and "model" not in given and "model_type" not in given:
        given["model"] = STATIC if metric in ("wms", "sms", "swms") else CONTEXTUAL
    groups = [[reference, "the old mat, a cat — 3 dogs; isn't"] for _, reference in ROWS]
    result = getattr(movers, metric)([prediction for prediction, _ in ROWS], groups, **{"progress": False, **given})
    return [*result["scores"], result["score"]], result["signature"]


def test_every_option_of_every_metric_is_known_to_change_scores_or_not() -> None:
    for name, spec in METRICS.items():
        inert = {option for metric, option in NO_CHANGE if metric == name}
        expected = {row.name for row in option_rows(spec.options_class)}
        assert expected - set(INERT) - inert == set(CHANGING[name]), name


@pytest.mark.parametrize(("metric", "option"), [(metric, option) for metric in CHANGING for option in CHANGING[metric]])
def test_two_values_that_change_a_score_have_two_signatures(metric: str, option: str, folder: Path) -> None:
    given, one, other = CHANGING[metric][option]
    first, second = (run(metric, {**given, option: value}, folder) for value in (one, other))
    assert np.abs(np.subtract(first[0], second[0])).max() > 1e-7  # batches differ by less
    assert first[1] != second[1]


@pytest.mark.parametrize(
    ("metric", "option"),
    [(name, row.name) for name, spec in METRICS.items() for row in option_rows(spec.options_class) if row.name in INERT]
    + list(NO_CHANGE),
)
def test_an_option_that_changes_no_score_changes_no_signature(metric: str, option: str, folder: Path) -> None:
    values = NO_CHANGE.get((metric, option)) or INERT[option]
    first, second = (run(metric, {option: value}, folder) for value in values)
    assert first[0] == pytest.approx(second[0], abs=1e-6)
    assert first[1] == second[1]


def drawn(metric: str) -> st.SearchStrategy[dict[str, Any]]:
    """Values for some options of a metric, beside what they need."""
    choices = [
        {**given, option: value}
        for option, (given, *values) in CHANGING[metric].items()
        for value in values
        if option not in ("idf", "baseline_path", "rescale_with_baseline", "sentence_encoder", "dtype", "model_type")
    ]
    return st.lists(st.sampled_from(choices), max_size=3).map(
        lambda parts: {k: v for part in parts for k, v in part.items()}
    )


@pytest.mark.parametrize("metric", PAIRED)
def test_equal_signatures_mean_equal_scores(metric: str, folder: Path) -> None:
    seen: dict[str, list[float]] = {}

    @settings(few, max_examples=20)
    @given(options=drawn(metric))
    def check(options: dict[str, Any]) -> None:
        scores, signature = run(metric, options, folder)
        assert seen.setdefault(signature, scores) == pytest.approx(scores, abs=1e-6), options

    check()
    assert len(seen) > 4


def test_signatures_of_different_metrics_differ(folder: Path) -> None:
    assert len({run(metric, {}, folder)[1] for metric in CHANGING}) == len(CHANGING)

"""What holds for all texts and all options of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import TINY_WORDS, tiny_model, tiny_tokenizer

import movers
from movers.encoders.contextual import ContextualEncoder
from movers.registry import METRICS
from movers.scores.options import RunSettings, option_rows
from movers.weights import IdfTable

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
PAIRED = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
few = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


class Letters:
    """A static encoder: a seeded vector per word; words with a `q` are unknown."""

    identity = "letters@1"
    dimension = 6

    def vectors(self, words: Sequence[str]) -> tuple[Any, Any]:
        rows = [np.random.default_rng([*word.encode()]).normal(size=6) for word in words]
        known = np.array(["q" not in word for word in words], dtype=bool)
        return np.array(rows, np.float32).reshape(-1, 6) * known[:, None], known


STATIC = Letters()
CONTEXTUAL = ContextualEncoder(tiny_model("bert"), tiny_tokenizer("bert"), "tiny", "0" * 64)
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


@every_metric
@every_encoder
@settings(few, max_examples=15)
@given(text=st.one_of(texts, st.text(st.characters(exclude_categories=["Cs"]), max_size=30)))
def test_equal_texts_score_one(metric: str, kind: str, text: str) -> None:
    result = score(metric, [(text, text)], model=ENCODERS[kind][0])
    assert result["scores"][0] == pytest.approx(1.0, abs=1e-6)
    assert all(result[part][0] <= 1.0 for part in ("precision", "recall", "f1") if part in result)


@every_metric
@every_encoder
@few
@given(rows=st.lists(pairs, min_size=1, max_size=4), random=st.randoms(use_true_random=False))
def test_a_score_does_not_depend_on_sides_order_batch_threads_or_cache(
    metric: str, kind: str, rows: list[tuple[str, str]], random: Any
) -> None:
    encoder, tolerance = ENCODERS[kind]
    movers.Scorer(metric, model=encoder).forget()
    together = score(metric, rows, model=encoder)
    cached = score(metric, rows, model=encoder)["scores"]
    movers.Scorer(metric, model=encoder).forget()
    alone = [score(metric, [row], model=encoder, threads=1)["scores"][0] for row in rows]
    movers.Scorer(metric, model=encoder).forget()
    order = random.sample(range(len(rows)), len(rows))
    shuffled = score(metric, [rows[place] for place in order], model=encoder, threads=3, batch_size=2)["scores"]
    for variant in (cached, alone, [shuffled[order.index(place)] for place in range(len(rows))]):
        np.testing.assert_allclose(variant, together["scores"], rtol=0, atol=tolerance)
    swapped = score(metric, [(second, first) for first, second in rows], model=encoder)
    assert swapped["scores"] == pytest.approx(together["scores"], abs=1e-6)
    if "precision" in together:
        assert swapped["precision"] == pytest.approx(together["recall"], abs=1e-6)


def test_scores_do_not_depend_on_the_seed_of_hashes(run_python: Callable[..., str]) -> None:
    code = """
from movers import sms, swms, wms
texts = ["the cat sat on it. Red boxes!", "😀 snow sells", "a dog sat. The old man runs", "ไทย snow in a red box!"]
print([metric(texts[:2], texts[2:], idf="corpus" if metric is wms else None)["scores"] for metric in (wms, sms, swms)])
"""
    assert run_python(code, PYTHONHASHSEED="1") == run_python(code, PYTHONHASHSEED="2")


# ---------------------------------------------------------------------------------------------------------------------
# Options: what changes a score is in the signature, what changes none is not

ROWS = [
    ("The cat isn't on the mat. It sells 3 red boxes, Snow!", "the Cat is 3. old dog sat on the big box"),
    ("it is on the a", "A man ships snow, snow in 3 Red boxes"),
    ("the man. " * 12, "the old dog runs in a box. " * 6),
    ("snow &amp; it is a box", "qua is old &quot;snow&quot;"),
]
TABLES = IdfTable({"cat": 1, "snow": 4, "box": 2, "man": 3}, 5), IdfTable({"cat": 4, "snow": 1, "box": 3, "old": 2}, 5)
TINY = {"model": CONTEXTUAL}
LONG = {**TINY, "context": "text"}
GREEDY = {"alignment": "greedy"}
Cases = dict[str, tuple[dict[str, Any], object, object]]  # option → what else is given, and two values
SHARED: Cases = {
    "multi_ref": ({}, "max", "mean"),
    "dtype": ({"model": "model1"}, "float32", "bfloat16"),
    "rescale": ({}, False, True),
}
CLARK: Cases = {
    **SHARED,
    "model": ({}, STATIC, "wordllama"),
    "stopwords": ({}, ["cat"], ["snow"]),
    "lowercase": ({}, True, False),
    "alphabetic": ({}, True, False),
    "lang": ({}, "en", "de"),
    "distance": ({}, "euclidean", "cosine"),
    "normalize": ({"distance": "euclidean"}, True, False),
    "layer": (TINY, "mean", 3),
    "context": (TINY, "sentence", "text"),
    "idf": ({}, *TABLES),
    "truncation": (LONG, "window", "cut"),
    "window": (LONG, 8, None),
    "temperature": ({}, "auto", 2.0),
    "oov": ({}, "zero", "match"),
    "preset": ({}, None, "paper"),
}
SENTENCES: Cases = {
    "sentence_weights": ({}, "count", "uniform"),
    "idf": ({"sentence_weights": "idf"}, *TABLES),
    "oov": ({"multi_ref": "mean"}, "drop", "zero"),
}
TOKENS: Cases = {
    **SHARED,
    "model": ({}, CONTEXTUAL, "model1"),
    "weights": ({"model": STATIC}, "uniform", "norm"),
    "idf": ({"model": STATIC}, *TABLES),
    "truncation": ({}, "window", "cut"),
    "window": ({}, 8, None),
}
BERTSCORE: Cases = {
    **TOKENS,
    "layer": ({}, "last", 3),
    "alignment": ({}, "optimal", "greedy"),
    "greedy_special": (GREEDY, True, False),
    "rescale_with_baseline": (GREEDY, True, False),
    "baseline_path": ({**GREEDY, "rescale_with_baseline": True}, "baseline1.csv", "baseline2.csv"),
    "model_type": ({}, "model1", "model2"),
    "num_layers": ({}, 2, 3),
}
CHANGING: dict[str, Cases] = {
    "wms": {**CLARK, "weights": ({}, "count", "norm")},
    "sms": {**CLARK, **SENTENCES, "sentence_encoder": (TINY, None, CONTEXTUAL)},
    "swms": {**CLARK, **SENTENCES, "weights": ({}, "count", "norm")},
    "moverscore": {
        **TOKENS,
        "variant": ({}, "v1", "v2"),
        "n_gram": ({}, 1, 2),
        "aggregation": ({}, "pmeans", "4+6"),
        "distance": ({}, "sqeuclidean", "cosine"),
        "similarity": ({}, "one_minus", "exp"),
        "alignment": ({}, "soft", "hard"),
        "stopwords": ({}, ["cat"], ["snow"]),
        "punctuation": ({}, True, "ascii"),
        "drop_subwords": ({}, True, False),
        "special_tokens": ({}, True, False),
        "normalize": ({}, True, False),
        "preset": ({}, None, "short"),
    },
    "bertscore_hungarian": BERTSCORE,
    "bertscore_emd": BERTSCORE,
    "reference_free_summary_quality": {
        "model": ({}, "aspects", "paper"),
        "doc_reduce": ({}, "mean", "sum"),
        "dtype": ({}, "float32", "bfloat16"),
    },
}
INERT = {
    **{"device": ("auto", "cpu"), "batch_size": (None, 1), "threads": (None, 2), "workers": (None, 2)},
    **{"progress": (None, False), "return_alignment": (False, True), "nthreads": (None, 2), "verbose": (False, False)},
    **{"all_layers": (False, False), "use_fast_tokenizer": (True, False)},
}
#: Not in these tables: what changes nothing beside a model (`lang`, `preset` of bertscore), and what tests/quality has.
ELSEWHERE = {"bertscore": {"lang", "preset"}, "reference": {"preset"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and baselines, each in two versions."""
    path = tmp_path_factory.mktemp("options")
    for seed in (1, 2):
        tiny_model("bert", seed=seed).save_pretrained(path / f"model{seed}")
        tiny_tokenizer("bert").save_pretrained(path / f"model{seed}")
        values = f"0.{seed},0.{seed},0.{seed}"
        (path / f"baseline{seed}.csv").write_text("LAYER,P,R,F\n" + "".join(f"{n},{values}\n" for n in range(7)))
    return path


def run(metric: str, options: Mapping[str, Any], folder: Path) -> tuple[list[float], str]:
    """Scores and signature; names of what the folder holds become paths."""
    names = {path.name: str(path) for path in folder.iterdir()}
    values = {key: names.get(value, value) if isinstance(value, str) else value for key, value in options.items()}
    if metric in PAIRED and not {"model", "model_type"} & set(values):
        values["model"] = STATIC if metric in ("wms", "sms", "swms") else CONTEXTUAL
    groups = [[reference, "the old mat, a cat — 3 dogs; isn't"] for _, reference in ROWS]
    result = getattr(movers, metric)([prediction for prediction, _ in ROWS], groups, **{"progress": False, **values})
    return [*result["scores"], result["score"]], result["signature"]


@pytest.mark.parametrize("metric", METRICS)
def test_every_option_is_known_to_change_scores_or_not(metric: str) -> None:
    names = {row.name for row in [*option_rows(METRICS[metric].options_class), *option_rows(RunSettings)]}
    assert names - set(INERT) - ELSEWHERE.get(metric.partition("_")[0], set()) == set(CHANGING[metric])


@pytest.mark.parametrize(("metric", "option"), [(metric, option) for metric in CHANGING for option in CHANGING[metric]])
def test_two_values_that_change_a_score_have_two_signatures(metric: str, option: str, folder: Path) -> None:
    options, one, other = CHANGING[metric][option]
    first, second = (run(metric, {**options, option: value}, folder) for value in (one, other))
    assert np.abs(np.subtract(first[0], second[0])).max() > 1e-7  # batches differ by less
    assert first[1] != second[1]


@pytest.mark.parametrize("metric", METRICS)
def test_an_option_that_changes_no_score_changes_no_signature(metric: str, folder: Path) -> None:
    scores, signature = run(metric, {}, folder)
    rows = [*option_rows(METRICS[metric].options_class), *option_rows(RunSettings)]
    defaults = {row.name: row.default for row in rows if not row.name.startswith("model")}
    assert run(metric, defaults, folder)[1] == signature
    for option in {row.name for row in rows} & set(INERT):
        for value in INERT[option]:
            again = run(metric, {option: value}, folder)
            assert again[0] == pytest.approx(scores, abs=1e-6) and again[1] == signature, option

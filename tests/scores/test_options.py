"""Options: typed, closed, documented, declared once; what changes scores is in the signature."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import movers
from movers import IdfTable, InputError
from movers.registry import METRICS, find_metric
from movers.scores.options import RunSettings, option_rows

TEXT = "The Old bank sold 3 red Boats, twice! The bank was red. It rained heavily on the bank's boats in 1998."
OTHERS = ["A bank bought 40 blue boats. Red banks aren't old; it rains on them in May.", "A man sells snow. It melts."]

#: Values of each option that give other scores than its default.
CLARK: dict[str, list[object]] = {
    "model": ["tiny"],
    "idf": ["corpus"],
    "multi_ref": ["mean"],
    "rescale": [True],
    "preset": ["paper"],
    "truncation": ["cut"],
    "window": [10],
    "stopwords": ["drop", None, ["bank"]],
    "lowercase": [False],
    "alphabetic": [True],
    "temperature": [1],
    "oov": ["zero", "match"],
    "lang": ["fr"],
    "distance": ["cosine"],
    "normalize": [True],
    "layer": ["last", "pmeans", "4+6"],
    "context": ["text"],
}
TOKENS = {name: CLARK[name] for name in ("model", "idf", "multi_ref", "rescale", "truncation", "window")}
BERT = TOKENS | {"layer": [3, "mean"], "alignment": ["greedy"], "greedy_special": [False], "preset": []}
VALUES: dict[str, dict[str, list[object]]] = {
    "wms": CLARK | {"weights": ["uniform", "norm"], "distance": ["euclidean"], "normalize": []},
    "sms": CLARK | {"sentence_weights": ["uniform"], "sentence_encoder": ["tiny"]},
    "swms": CLARK | {"weights": ["uniform", "norm"], "sentence_weights": ["uniform"]},
    "moverscore": TOKENS
    | {
        "multi_ref": ["max"],
        "idf": ["corpus", "all", "per-side"],
        "preset": ["paper", "translation", "short"],
        "variant": ["v2"],
        "n_gram": [2, "sentence"],
        "aggregation": ["routing", "last", "mean", 3, "4+6"],
        "distance": ["euclidean", "cosine"],
        "similarity": ["inverse", "exp"],
        "alignment": ["hard"],
        "stopwords": ["english", ["bank"]],
        "punctuation": [False],
        "drop_subwords": [False],
        "special_tokens": [False],
        "weights": ["norm"],
        "normalize": [False],
    },
    "bertscore_hungarian": BERT | {"weights": ["norm"]},
    "bertscore_emd": BERT | {"weights": ["uniform"]},
}
#: Options without which another has no effect.
NEEDED: dict[str, dict[str, object]] = {
    "truncation": {"model": "tiny", "window": 10},
    "window": {"model": "tiny"},
    "context": {"model": "tiny"},
    "layer": {"model": "tiny"},
    "oov": {"model": "vectors", "temperature": 1},
    "greedy_special": {"alignment": "greedy"},
    "drop_subwords": {"similarity": "exp"},  # distances above 1 all score 0 by default
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VALUES)
def test_every_option_that_changes_scores_changes_the_signature(name: str, tiny_bert: Any, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("bank 1 2\nold 3 1\nboats 0 4\nsnow 5 5\nmelts 2 2\n")
    models = {"tiny": tiny_bert, "vectors": str(tmp_path / "v.txt")}

    def score(**options: Any) -> tuple[str, float]:
        options = {key: models.get(str(value), value) for key, value in options.items()}
        result = getattr(movers, name)([TEXT], [OTHERS], **options)
        return result["signature"], result["score"]

    plain = score()
    for option, values in VALUES[name].items():
        signature, value = score(**NEEDED.get(option, {}))
        for other in values:
            changed, other_value = score(**NEEDED.get(option, {}), **{option: other})
            assert changed != signature and abs(other_value - value) > 1e-6, (option, other)
    assert score(threads=1, batch_size=2, progress=False, return_alignment=True) == plain
    defaults = {row.name: row.default for row in option_rows(find_metric(name).options_class)}
    assert score(**defaults) == plain
    documented = {row.name for row in option_rows(find_metric(name).options_class) if not row.alias_of}
    no_effect = {"return_alignment"} | (
        {"lang", "all_layers", "use_fast_tokenizer"} if name in ("bertscore_emd", "bertscore_hungarian") else set()
    )
    assert documented == set(VALUES[name]) | no_effect


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_at_most_20_options_and_its_function_documents_them(name: str) -> None:
    spec = find_metric(name)
    rows, settings = option_rows(spec.options_class), option_rows(RunSettings)
    evaluate = {"lang", "all_layers", "use_fast_tokenizer"} if name.startswith("bertscore") else set()
    assert len([row for row in rows if not row.alias_of and row.name not in evaluate]) <= 20
    function: Any = getattr(movers, name)
    first, second, *parameters = inspect.signature(function).parameters.values()
    assert (first.name, second.name) == ("predictions", spec.compared_with)
    assert {item.name: item.default for item in parameters} == {row.name: row.default for row in [*rows, *settings]}
    assert all(row.help in function.__doc__ for row in rows)
    assert [row.name for row in settings] == ["device", "dtype", "batch_size", "threads", "workers", "progress"]


def test_evaluates_names_are_translated_and_contradictions_are_errors() -> None:
    spec = find_metric("bertscore_emd")
    theirs: Any = spec.parse({"model_type": "a", "num_layers": 4, "nthreads": 3, "verbose": True, "idf": True})
    assert (theirs.model, str(theirs.layer), theirs.run.threads, theirs.run.progress) == ("a", "4", 3, True)
    assert (theirs.idf, theirs.weights) == ("corpus", "idf")
    for alias, option in (("nthreads", "threads"), ("num_layers", "layer"), ("model_type", "model")):
        with pytest.raises(InputError, match=f"bertscore_emd: '{alias}' is an alias of '{option}'.* got 3 and 2"):
            spec.parse({alias: 3, option: 2})
    with pytest.raises(InputError, match="baseline_path: expected rescale_with_baseline=True beside it, but got 'a'"):
        spec.parse({"baseline_path": "a"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wms", {"stop_words": None}, r"unknown option 'stop_words' \(did you mean 'stopwords'\?\); valid options: al"),
        ("wms", {"n_gram": 2}, "unknown option 'n_gram'.*valid options: alphabetic, batch_size, .*, window, workers$"),
        ("wms", {"weights": "tf"}, "weights: expected one of 'count', 'uniform', 'idf', 'norm', None, but got 'tf'"),
        ("wms", {"layer": "best"}, "layer: expected one of 'pmeans', 'routing', 'last', 'mean' or a layer number"),
        ("wms", {"normalize": None}, "normalize: expected one of True, False, but got None"),
        ("wms", {"threads": 0}, "threads: expected a whole number above zero, but got 0"),
        ("wms", {"lang": "english"}, "lang: expected a language code such as 'en' or 'pt-BR', but got 'english'"),
        (
            "wms",
            {"stopwords": "german"},
            "stopwords: expected 'auto', 'drop', 'english', None or a list of words, but got",
        ),
        ("wms", {"idf": (IdfTable({}, 1), IdfTable({}, 2))}, "idf: expected one table for both sides, but got 2"),
        ("wms", {"idf": IdfTable({1: 1}, 1, "tokens", "x")}, "idf: expected a table of words, but got one of tok"),
        ("wms", {"preset": "novel"}, "preset: expected one of 'paper', None, but got 'novel'"),
        ("wms", {"temperature": 0}, "temperature: expected 'auto' or a number above zero, but got 0"),
        ("wms", {"weights": "uniform", "idf": "corpus"}, "idf: a table is given, but weights='uniform'"),
        ("swms", {"sentence_weights": "idf"}, "weights: 'idf' needs a table"),
        ("moverscore", {"n_gram": 0}, "n_gram: expected a whole number above zero or 'sentence', but got 0"),
        ("moverscore", {"aggregation": 7}, "layer: expected a number from -7 to 6 .* but got 7"),
        ("moverscore", {"model": "."}, "model: .*expected the folder of a transformers model"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_options_are_errors_that_name_metric_and_option(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: {message}"):
        getattr(movers, name)(["cat"], ["dog"], **options)

"""A call written for evaluate's own bertscore runs unchanged on ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

BERTSCORE_MODULES = ["bertscore_hungarian", "bertscore_emd"]
TEXTS = {"predictions": ["hello there", "general kenobi"], "references": ["hello there", "master kenobi"]}


@pytest.fixture(params=BERTSCORE_MODULES)
def module(request: pytest.FixtureRequest, load: Callable[..., Any]) -> Any:
    return load(request.param)


def test_all_options_of_evaluate_s_bertscore_with_its_defaults(module: Any) -> None:
    result = module.compute(
        **TEXTS,
        lang="en",
        model_type=None,
        num_layers=None,
        verbose=False,
        idf=False,
        device=None,
        batch_size=64,
        nthreads=4,
        all_layers=False,
        rescale_with_baseline=False,
        baseline_path=None,
        use_fast_tokenizer=False,
    )
    assert result == module.compute(**TEXTS)


def test_results_have_the_keys_of_evaluate_s_bertscore(module: Any) -> None:
    result = module.compute(**TEXTS, lang="en")
    assert [len(result[key]) for key in ("precision", "recall", "f1")] == [2, 2, 2]
    assert result["hashcode"] == result["signature"]


def test_its_names_of_options_mean_ours(module: Any) -> None:
    theirs = module.compute(**TEXTS, model_type="all-MiniLM-L6-v2", num_layers=3, idf=True)
    ours = module.compute(**TEXTS, model="all-MiniLM-L6-v2", layer=3, idf="corpus")
    assert theirs == ours

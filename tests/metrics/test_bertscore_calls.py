"""A call written for evaluate's own bertscore runs unchanged on ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("metric", ["bertscore_hungarian", "bertscore_emd"])
def test_all_options_of_evaluate_s_bertscore_with_its_defaults(metric: str, load: Callable[..., Any]) -> None:
    texts = {"predictions": ["hello there", "general kenobi"], "references": ["hello there", "master kenobi"]}
    unset = dict.fromkeys(["model_type", "num_layers", "device", "baseline_path"])
    off = dict.fromkeys(["verbose", "idf", "all_layers", "rescale_with_baseline", "use_fast_tokenizer"], False)
    result = load(metric).compute(**texts, lang="en", batch_size=64, nthreads=4, **unset, **off)
    assert result == load(metric).compute(**texts)
    assert [len(result[key]) for key in ("precision", "recall", "f1")] == [2, 2, 2]
    assert result["hashcode"] == result["signature"]

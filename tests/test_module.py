"""The base of the modules, on a toy metric that compares with sources."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evaluate
import pytest

from movers.inputs import check_choice
from movers.module import TextMetric, text_metric_info
from movers.registry import METRICS, Metric


@dataclass(frozen=True, kw_only=True)
class OverlapOptions:
    case: str = "lower"

    def check(self, metric: str) -> OverlapOptions:
        check_choice(metric, "case", self.case, ("lower", "keep"))
        return self


class ToyOverlap(TextMetric):
    def _info(self) -> evaluate.MetricInfo:
        return text_metric_info("toy_overlap", "Share of words found in the sources.", "", "", [])

    def _compute(self, *, predictions: list[str], sources: list[list[str]], case: str = "lower") -> dict[str, Any]:
        def read(text: str) -> set[str]:
            return set((text.lower() if case == "lower" else text).split())

        scores = [
            len(read(text) & read(" ".join(group))) / len(read(text))
            for text, group in zip(predictions, sources, strict=True)
        ]
        return {"score": sum(scores) / len(scores), "scores": scores}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ToyOverlap]:
    metric = Metric("toy_overlap", "", "", __name__, "OverlapOptions", "", against="sources")
    monkeypatch.setitem(METRICS, "toy_overlap", metric)
    return lambda **settings: ToyOverlap(cache_dir=str(tmp_path), **settings)


def test_the_base_is_abstract_so_that_evaluate_s_loader_passes_it_over() -> None:
    assert inspect.isabstract(TextMetric)


def test_sources_take_the_place_of_references(toy: Callable[..., ToyOverlap]) -> None:
    assert toy().compute(predictions=["a b"], sources=["A c"])["scores"] == [0.5]  # type: ignore[index]


def test_several_sources_belong_to_one_prediction(toy: Callable[..., ToyOverlap]) -> None:
    assert toy().compute(predictions=["a b"], sources=[["a c", "d b"]])["scores"] == [1.0]  # type: ignore[index]


def test_references_are_refused_where_sources_are_expected(toy: Callable[..., ToyOverlap]) -> None:
    with pytest.raises(TypeError, match="^toy_overlap: expected predictions and sources, but got references$"):
        toy().compute(predictions=["a"], references=["a"])


def test_missing_sources_are_named(toy: Callable[..., ToyOverlap]) -> None:
    with pytest.raises(TypeError, match="^toy_overlap: sources: expected a list of texts"):
        toy().compute(predictions=["a"])


def test_rows_with_sources_are_added_one_by_one(toy: Callable[..., ToyOverlap]) -> None:
    module = toy()
    module.add(prediction="a b", source="a c")
    module.add(predictions="a", sources="a")
    assert module.compute()["scores"] == [0.5, 1.0]  # type: ignore[index]


def test_metrics_with_sources_combine(toy: Callable[..., ToyOverlap]) -> None:
    combined = evaluate.combine([toy(), toy(case="keep")])
    result = combined.compute(predictions=["a b"], sources=["A b"])
    assert (result["toy_overlap_0_score"], result["toy_overlap_1_score"]) == (1.0, 0.5)


def test_an_unknown_option_is_refused_with_the_valid_ones(toy: Callable[..., ToyOverlap]) -> None:
    with pytest.raises(TypeError, match="^toy_overlap: unknown option 'upper'; valid options: case$"):
        toy(upper=True)


def test_what_evaluate_knows_of_itself_is_no_option(toy: Callable[..., ToyOverlap]) -> None:
    module = toy(seed=3, timeout=5, max_concurrent_cache_files=2)
    assert (module.seed, module.timeout, module.load_options) == (3, 5, {})

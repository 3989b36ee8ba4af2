"""What the base of the modules does for all of them, on one module with references and, where it matters, sources."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.errors import InputError

Load = Callable[..., Any]
Rows = dict[str, list[str]]
QUALITY = "reference_free_summary_quality"

# (predictions, references, the message after "wms: ")
BAD_BATCHES: dict[str, tuple[Any, Any, str]] = {
    "a bare string": ("abc", "abc", "predictions: expected a list of texts, but got a single str: 'abc'"),
    "None inside": (["a", None], ["b", "c"], "predictions[1]: expected a text (str), but got None"),
    "an empty batch": ([], [], "predictions: expected at least one text, but got an empty list"),
}


@pytest.fixture
def rows(rows_of: Callable[[str], Rows]) -> Rows:
    return rows_of("wms")


@pytest.fixture
def expected(rows: Rows) -> dict[str, Any]:
    return movers.wms(**rows)


@pytest.mark.parametrize(("predictions", "references", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_a_bad_batch_is_refused_and_nothing_of_it_is_added(
    load: Load, rows: Rows, expected: dict[str, Any], predictions: Any, references: Any, message: str
) -> None:
    module = load("wms")
    module.add_batch(**rows)
    for method in (module.add_batch, module.compute):
        with pytest.raises(InputError, match=f"^wms: {re.escape(message)}$"):
            method(predictions=predictions, references=references)
    with pytest.raises(InputError, match=r"^wms: predictions\[3\]: expected a text \(str\), but got int: 3"):
        module.add(prediction=3, reference="text")
    assert module.compute() == expected


def test_references_as_texts_and_as_lists_may_be_added_in_turn(load: Load) -> None:
    module = load("wms")
    module.add_batch(predictions=["Snow melts."], references=["Ice thaws."])
    module.add_batch(predictions=["Snow melts."], references=[["Ice thaws.", "Snow melts."]])
    assert module.compute() == movers.wms(["Snow melts."] * 2, [["Ice thaws."], ["Ice thaws.", "Snow melts."]])


def test_adding_rows_in_any_way_equals_one_call(load: Load, rows: Rows, expected: dict[str, Any]) -> None:
    module = load("wms")
    predictions, references = rows.values()
    module.add(prediction=predictions[0], reference=references[0])
    module.add_batch(predictions=predictions[1:2], references=references[1:2])
    module.add(prediction=predictions[2], reference=references[2])
    assert module.compute() == expected
    module.add(prediction=predictions[0], reference=references[0])
    assert module.compute(predictions=predictions[1:], references=references[1:]) == expected


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_survive_a_failure_and_rows_of_that_call_do_not(
    load: Load, rows: Rows, expected: dict[str, Any], keep_in_memory: bool
) -> None:
    module = load("wms", keep_in_memory=keep_in_memory)
    predictions, references = rows.values()
    module.add(prediction=predictions[0], reference=references[0])
    rest = {"predictions": predictions[1:], "references": references[1:]}
    for wrong in ({"threads": -1}, {"treads": 1}, {"model": "/no/such/vectors.txt"}):
        with pytest.raises(InputError, match="threads|vectors.txt"):
            module.compute(**rest, **wrong)
        assert len(module) == 1
    if not keep_in_memory:
        assert len(list(Path(module.data_dir).glob("*.arrow"))) == 1
    assert module.compute(**rest) == expected
    assert module.compute(**rows) == expected


@pytest.mark.parametrize("copied", [lambda module: pickle.loads(pickle.dumps(module)), copy.deepcopy])
def test_a_module_that_has_computed_can_be_copied(
    load: Load, rows: Rows, expected: dict[str, Any], copied: Callable[[Any], Any]
) -> None:
    module = load("wms", normalize=True)
    first = module.compute(**rows)
    assert copied(module).compute(**rows) == first != expected


def test_sources_take_the_place_of_references(load: Load) -> None:
    module = load(QUALITY)
    module.add(prediction="Snow melts.", source="The snow melts in spring.")
    module.add(predictions="A cat sat.", sources="The dog ran.")  # as evaluate.combine calls it
    expected = movers.reference_free_summary_quality(
        ["Snow melts.", "A cat sat."], ["The snow melts in spring.", "The dog ran."]
    )
    assert module.compute()["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    with pytest.raises(InputError, match=f"^{QUALITY}: .* but got references; pass predictions and sources=documents"):
        module.compute(predictions=["a"], references=["a"])
    with pytest.raises(InputError, match=f"^{QUALITY}: .*expected at least one row, but got none"):
        module.compute()


def test_options_given_at_load_time_hold_until_compute_overrides_them(
    load: Load, rows: Rows, expected: dict[str, Any]
) -> None:
    module = load("wms", normalize=True)
    unit = movers.wms(**rows, normalize=True)
    assert [module.compute(**rows), module.compute(**rows)] == [unit, unit]
    assert module.compute(**rows, normalize=False) == expected


def test_a_preset_sets_what_is_not_given(load: Load, rows: Rows) -> None:
    assert load("wms").compute(**rows, preset="paper") == movers.wms(**rows, preset="paper")
    assert load("wms", preset="paper").compute(**rows, oov="drop") == movers.wms(**rows, preset="paper", oov="drop")


def test_wrong_options_are_refused_at_load_time(load: Load) -> None:
    with pytest.raises(InputError, match="^wms: unknown option 'normalise' .did you mean 'normalize'.*valid options: "):
        load("wms", normalise=True)
    with pytest.raises(InputError, match="^wms: multi_ref: expected one of 'max', 'mean', but got 'median'"):
        load("wms", multi_ref="median")
    with pytest.raises(InputError, match="^wms: config_name: expected none, but got 'large'"):
        load("wms", config_name="large")


def test_options_are_not_taken_for_inputs(load: Load, rows: Rows) -> None:
    with pytest.raises(InputError, match="^wms: expected predictions and references, but got threads; options go to"):
        load("wms").add_batch(**rows, threads=1)

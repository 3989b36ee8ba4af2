"""What evaluate promises of a module holds for every folder in `metrics/`."""

from __future__ import annotations

import copy
import doctest
import inspect
import json
import pickle
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.registry import METRICS, find_metric

Load = Callable[..., Any]
Rows = dict[str, list[str]]
Near = Callable[[dict[str, Any]], dict[str, Any]]
DOCTEST_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def another_value(name: str) -> tuple[str, str]:
    """An option that changes the signature, with a value that is not its default."""
    kind = find_metric(name).options_class
    option, choices = (
        ("doc_reduce", ("mean", "sum")) if find_metric(name).against == "sources" else ("multi_ref", ("max", "mean"))
    )
    default = next(item.default for item in fields(kind) if item.name == option)
    return option, next(choice for choice in choices if choice != default)


def test_every_metric_has_a_module(names: list[str]) -> None:
    assert names == sorted(METRICS)


def test_the_class_is_named_after_the_folder(name: str, load: Load) -> None:
    assert load().name == name


def test_compute_spells_out_the_options_of_the_core_with_their_defaults(name: str, load: Load) -> None:
    parameters = inspect.signature(type(load())._compute).parameters
    against = find_metric(name).against
    assert not [item for item in parameters.values() if item.kind is inspect.Parameter.VAR_KEYWORD]
    options = {key: item.default for key, item in parameters.items() if key not in ("self", "predictions", against)}
    core = {item.name: item.default for item in fields(find_metric(name).options_class)}
    if "return_alignment" in inspect.signature(find_metric(name).function).parameters:
        core["return_alignment"] = False
    assert options == core


def test_examples_in_the_docstring_are_true(name: str, load: Load, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    module = sys.modules[type(load()).__module__]
    runner = doctest.DocTestRunner(optionflags=DOCTEST_FLAGS)
    for test in doctest.DocTestFinder().find(module):
        runner.run(test)
    assert runner.summarize().attempted > 0
    assert runner.summarize().failed == 0


def test_examples_on_the_card_are_true(
    folder: Path, root: Path, fresh_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    results = doctest.testfile(str(folder / "README.md"), module_relative=False, optionflags=DOCTEST_FLAGS)
    assert results.attempted > 0
    assert results.failed == 0


def test_compute_equals_the_plain_function(name: str, load: Load, rows: Rows, against: str, near: Near) -> None:
    assert load().compute(**rows) == near(getattr(movers, name)(rows["predictions"], rows[against]))


def test_results_are_plain_python(load: Load, rows: Rows) -> None:
    result = load().compute(**rows)
    assert type(result["score"]) is float
    assert {type(score) for score in result["scores"]} == {float}
    assert {type(result[key]) for key in ("n_empty", "n_unfiltered", "n_truncated")} == {int}


def test_the_corpus_score_is_the_mean_of_the_scores(load: Load, rows: Rows) -> None:
    result = load().compute(**rows)
    assert result["score"] == pytest.approx(sum(result["scores"]) / 3)


def test_rows_may_have_several_texts_to_compare_with(
    name: str, load: Load, rows: Rows, against: str, near: Near
) -> None:
    ragged = [[text, *rows[against][:place]] for place, text in enumerate(rows[against])]
    result = load().compute(predictions=rows["predictions"], **{against: ragged})
    assert result == near(getattr(movers, name)(rows["predictions"], ragged))


def test_adding_rows_in_any_way_equals_one_call(load: Load, rows: Rows, against: str) -> None:
    module = load()
    expected = module.compute(**rows)
    predictions, others = rows["predictions"], rows[against]
    singular = against.removesuffix("s")
    module.add(prediction=predictions[0], **{singular: others[0]})
    module.add_batch(predictions=predictions[1:2], **{against: others[1:2]})
    module.add(prediction=predictions[2], **{singular: others[2]})
    assert module.compute() == expected


def test_rows_of_compute_come_after_rows_added_before(load: Load, rows: Rows, against: str) -> None:
    module = load()
    expected = module.compute(**rows)
    module.add(prediction=rows["predictions"][0], **{against.removesuffix("s"): rows[against][0]})
    assert module.compute(predictions=rows["predictions"][1:], **{against: rows[against][1:]}) == expected


def test_no_row_is_left_for_the_next_computation(load: Load, rows: Rows) -> None:
    module = load()
    assert module.compute(**rows) == module.compute(**rows)


def test_keeping_rows_in_memory_changes_nothing(load: Load, rows: Rows) -> None:
    assert load(keep_in_memory=True).compute(**rows) == load().compute(**rows)


@pytest.mark.parametrize("copied", [lambda module: pickle.loads(pickle.dumps(module)), copy.deepcopy])
def test_a_module_that_has_computed_can_be_copied(load: Load, rows: Rows, copied: Callable[[Any], Any]) -> None:
    option, value = another_value(load().name)
    module = load(**{option: value})
    expected = module.compute(**rows)
    assert copied(module).compute(**rows) == expected


def test_results_are_saved_as_json(load: Load, rows: Rows, tmp_path: Path) -> None:
    import evaluate

    result = load().compute(**rows)
    evaluate.save(tmp_path / "result.json", **result)
    saved = json.loads((tmp_path / "result.json").read_text())
    assert {key: saved[key] for key in result} == result


def test_the_folder_alone_is_enough(
    name: str, folder: Path, load: Load, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import evaluate

    elsewhere = shutil.copytree(folder, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert evaluate.load(str(elsewhere)).compute(**rows) == load().compute(**rows)


def test_options_given_at_load_time_hold_for_every_computation(name: str, load: Load, rows: Rows) -> None:
    option, value = another_value(name)
    module = load(**{option: value})
    expected = load().compute(**rows, **{option: value})
    assert expected["signature"] != load().compute(**rows)["signature"]
    assert [module.compute(**rows), module.compute(**rows)] == [expected, expected]


def test_options_of_compute_override_those_of_the_load(name: str, load: Load, rows: Rows) -> None:
    option, value = another_value(name)
    default = next(item.default for item in fields(find_metric(name).options_class) if item.name == option)
    assert load(**{option: value}).compute(**rows, **{option: default}) == load().compute(**rows)


def test_an_unknown_option_is_refused_at_load_time(name: str, load: Load) -> None:
    option, _ = another_value(name)
    with pytest.raises(
        TypeError, match=f"^{name}: unknown option '{option}x' .did you mean '{option}'.*valid options: "
    ):
        load(**{f"{option}x": 1})


def test_a_bad_value_is_refused_at_load_time_with_the_valid_ones(name: str, load: Load) -> None:
    option, value = another_value(name)
    with pytest.raises(ValueError, match=f"^{name}: {option}: expected one of .*'{value}'.*but got 'median'"):
        load(**{option: "median"})


def test_a_configuration_name_is_refused(name: str, load: Load) -> None:
    with pytest.raises(ValueError, match=f"^{name}: config_name: expected none, but got 'large'"):
        load(config_name="large")


def test_combine_prefixes_results_with_the_folders_names(
    names: list[str], root: Path, fresh_caches: Path, near: Near
) -> None:
    import evaluate

    together = [name for name in names if find_metric(name).against == "references"]
    combined = evaluate.combine([str(root / "metrics" / name) for name in together])
    prediction, reference = "Snow is sold online.", "A man sells snow."
    combined.add(prediction=prediction, reference=reference)
    combined.add_batch(predictions=[prediction], references=[reference])
    result = combined.compute()
    expected = {
        f"{name}_scores": getattr(movers, name)([prediction] * 2, [reference] * 2)["scores"] for name in together
    }
    assert {key: result[key] for key in expected} == near(expected)


def test_options_reach_combine_through_the_load(root: Path, fresh_caches: Path) -> None:
    import evaluate

    loaded = [evaluate.load(str(root / "metrics" / name), normalize=True) for name in ("wms", "sms")]
    result = evaluate.combine(loaded).compute(predictions=["Snow melts."], references=["Ice thaws."])
    assert "norm:yes" in result["wms_signature"]
    assert "norm:yes" in result["sms_signature"]

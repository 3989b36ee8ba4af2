"""What holds for every evaluate module. What the modules share in their base is tested once, in test_base.py."""

from __future__ import annotations

import doctest
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiny import ROOT

import movers
from movers.registry import METRICS, find_metric
from movers.scores.options import RunSettings, option_rows

Load = Callable[..., Any]
RowsOf = Callable[[str], dict[str, list[str]]]
Near = Callable[[dict[str, Any]], dict[str, Any]]
DOCTEST_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_every_folder_is_a_metric_and_every_metric_has_a_folder() -> None:
    assert sorted(folder.name for folder in (ROOT / "metrics").iterdir()) == sorted(METRICS)


def test_compute_names_all_options_with_their_defaults(name: str, load: Load) -> None:
    parameters = inspect.signature(type(load(name))._compute).parameters
    inputs = ("self", "predictions", find_metric(name).compared_with)
    options = {key: item.default for key, item in parameters.items() if key not in inputs}
    rows = [*option_rows(find_metric(name).options_class), *option_rows(RunSettings)]
    assert options == {row.name: row.default for row in rows}


def test_examples_in_the_docstring_are_true(name: str, load: Load) -> None:
    module = sys.modules[type(load(name)).__module__]
    runner = doctest.DocTestRunner(optionflags=DOCTEST_FLAGS)
    for test in doctest.DocTestFinder().find(module):
        runner.run(test)
    assert runner.summarize().attempted > 0
    assert runner.summarize().failed == 0


def test_examples_on_the_card_are_true(name: str, fresh_caches: Path) -> None:
    card = Path(movers.module_path(name)) / "README.md"
    results = doctest.testfile(str(card), module_relative=False, optionflags=DOCTEST_FLAGS)
    assert results.attempted > 0
    assert results.failed == 0


def test_rows_may_have_several_texts_to_compare_with(name: str, load: Load, rows_of: RowsOf, near: Near) -> None:
    rows = rows_of(name)
    compared_with = find_metric(name).compared_with
    ragged = [[text, *rows[compared_with][:place]] for place, text in enumerate(rows[compared_with])]
    result = load(name).compute(**{**rows, compared_with: ragged})
    assert result == near(getattr(movers, name)(rows["predictions"], ragged))


def test_results_are_plain_python_and_saved_as_json(name: str, load: Load, rows_of: RowsOf, tmp_path: Path) -> None:
    import evaluate

    result = load(name).compute(**rows_of(name))
    assert {type(score) for score in [result["score"], *result["scores"]]} == {float}
    evaluate.save(tmp_path / "result.json", **result)
    saved = json.loads((tmp_path / "result.json").read_text())
    assert {key: saved[key] for key in result} == result


def test_combine_prefixes_results_with_the_folders_names(fresh_caches: Path, near: Near) -> None:
    import evaluate

    together = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
    combined = evaluate.combine([movers.module_path(name) for name in together])
    prediction, reference = "Snow is sold online.", "A man sells snow."
    combined.add(prediction=prediction, reference=reference)
    combined.add_batch(predictions=[prediction], references=[reference])
    result = combined.compute()
    expected = {
        f"{name}_scores": getattr(movers, name)([prediction] * 2, [reference] * 2)["scores"] for name in together
    }
    assert {key: result[key] for key in expected} == near(expected)

"""Wrong input is refused with a message that helps, and leaves a module as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Load = Callable[..., Any]
Rows = dict[str, list[str]]

# (predictions, references or sources, error, message after the metric's name; {} stands for "references" or "sources")
BAD_BATCHES: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "a bare string": ("abc", "abc", TypeError, "predictions: expected a list of texts, but got one str: 'abc'"),
    "a bare reference": (
        ["a"],
        "b",
        TypeError,
        "{}: expected a list of texts or of lists of texts, but got one str: 'b'",
    ),
    "None for predictions": (None, ["a"], TypeError, "predictions: expected a list of texts, but got None"),
    "None for references": (
        ["a"],
        None,
        TypeError,
        "{}: expected a list of texts or of lists of texts, but got None",
    ),
    "None inside predictions": (
        ["a", None],
        ["b", "c"],
        TypeError,
        "predictions[1]: expected a text (str), but got None: None",
    ),
    "None inside references": (["a", "b"], ["c", None], TypeError, "{}[1]: expected a text (str), but got None: None"),
    "None inside a group": (["a"], [["b", None]], TypeError, "{}[0][1]: expected a text (str), but got None: None"),
    "a number": (["a", 3], ["b", "c"], TypeError, "predictions[1]: expected a text (str), but got int: 3"),
    "a number for references": (["a"], [1.5], TypeError, "{}[0]: expected a text (str), but got float: 1.5"),
    "not a number": (["a"], [float("nan")], TypeError, "{}[0]: expected a text (str), but got float: nan"),
    "bytes": ([b"a"], ["b"], TypeError, "predictions[0]: expected a text (str), but got bytes: b'a'"),
    "different lengths": (
        ["a"],
        ["b", "c"],
        ValueError,
        "predictions and {}: expected equally many rows, but got 1 predictions and 2 {}",
    ),
    "a list among strings": (
        ["a", "b"],
        ["c", ["d"]],
        TypeError,
        "{}[1]: expected a text (str) like {}[0], but got list; give every row a str or every row a list of str",
    ),
    "a string among lists": (
        ["a", "b"],
        [["c"], "def"],
        TypeError,
        "{}[1]: expected a list of texts like {}[0], but got str; give every row a str or every row a list of str",
    ),
    "an empty group": (["a", "b"], [["c"], []], ValueError, "{}[1]: expected at least one text, but got an empty list"),
    "an empty batch": ([], [], ValueError, "predictions: expected at least one text, but got an empty list"),
    "a lone surrogate": (
        ["a", "b\ud800"],
        ["c", "d"],
        ValueError,
        "predictions[1]: expected valid Unicode, but got a lone surrogate ('\\ud800' at character 1)",
    ),
}


@pytest.fixture(params=BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def bad(request: pytest.FixtureRequest, against: str, name: str) -> tuple[dict[str, Any], type[Exception], str]:
    """Arguments, the error they cause, and its message as a pattern."""
    predictions, others, error, message = request.param
    return (
        {"predictions": predictions, against: others},
        error,
        f"^{re.escape(f'{name}: ' + message.replace('{}', against))}$",
    )


def test_compute_refuses_it(load: Load, bad: tuple[dict[str, Any], type[Exception], str]) -> None:
    arguments, error, message = bad
    with pytest.raises(error, match=message):
        load().compute(**arguments)


def test_add_batch_refuses_it_and_adds_nothing(
    load: Load, rows: Rows, bad: tuple[dict[str, Any], type[Exception], str]
) -> None:
    arguments, error, message = bad
    module = load()
    expected = module.compute(**rows)
    module.add_batch(**rows)
    with pytest.raises(error, match=message):
        module.add_batch(**arguments)
    assert module.compute() == expected


@pytest.mark.parametrize("wrong", [None, 3, b"text", ["text"], float("nan")])
def test_add_refuses_what_is_no_text_and_says_which_row_it_would_have_been(
    name: str, load: Load, rows: Rows, against: str, wrong: Any
) -> None:
    module = load()
    module.add_batch(**rows)
    with pytest.raises(TypeError, match=rf"^{name}: predictions\[3\]: expected a text \(str\), but got"):
        module.add(prediction=wrong, **{against.removesuffix("s"): "text"})
    assert len(module) == 3


@pytest.mark.parametrize("wrong", [None, 3, [None]])
def test_add_refuses_what_cannot_be_compared_with(name: str, load: Load, against: str, wrong: Any) -> None:
    module = load()
    with pytest.raises(TypeError, match=rf"^{name}: {against}\[0\].*: expected a text \(str\), but got"):
        module.add(prediction="text", **{against.removesuffix("s"): wrong})
    assert len(module) == 0


def test_rows_of_both_forms_do_not_mix_over_calls(name: str, load: Load, against: str) -> None:
    module = load()
    module.add_batch(predictions=["a"], **{against: ["b"]})
    with pytest.raises(TypeError, match=rf"^{name}: {against}\[0\]: expected a str like the rows added before"):
        module.add_batch(predictions=["a"], **{against: [["b", "c"]]})


def test_rows_of_the_other_form_are_welcome_after_a_computation(load: Load, against: str) -> None:
    module = load()
    first = module.compute(predictions=["Snow melts."], **{against: ["Ice thaws."]})
    assert module.compute(predictions=["Snow melts."], **{against: [["Ice thaws."]]}) == first


def test_computing_without_a_row_is_refused(name: str, load: Load) -> None:
    for module in (load(), load(keep_in_memory=True)):
        with pytest.raises(ValueError, match=f"^{name}: .*expected at least one row, but got none"):
            module.compute()


def test_options_are_not_taken_for_inputs(name: str, load: Load, rows: Rows) -> None:
    with pytest.raises(TypeError, match=f"^{name}: expected predictions and .*, but got threads; options go to"):
        load().add_batch(**rows, threads=1)


def test_arrays_and_iterators_of_texts_are_welcome(load: Load, rows: Rows) -> None:
    module = load()
    expected = module.compute(**rows)
    assert module.compute(**{key: np.array(texts) for key, texts in rows.items()}) == expected
    assert module.compute(**{key: iter(texts) for key, texts in rows.items()}) == expected


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_survive_a_bad_option(name: str, load: Load, rows: Rows, keep_in_memory: bool) -> None:
    module = load(keep_in_memory=keep_in_memory)
    expected = module.compute(**rows)
    module.add_batch(**rows)
    with pytest.raises(ValueError, match=f"^{name}: threads: expected a whole number above zero, but got -1"):
        module.compute(threads=-1)
    assert module.compute() == expected


def fail(**_: Any) -> None:
    raise MemoryError("no room for the model")


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_survive_a_failed_computation_and_rows_of_that_call_do_not(
    load: Load, rows: Rows, against: str, keep_in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(keep_in_memory=keep_in_memory)
    expected = module.compute(**rows)
    module.add(prediction=rows["predictions"][0], **{against.removesuffix("s"): rows[against][0]})
    rest = {key: texts[1:] for key, texts in rows.items()}
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(module, "_compute", fail, raising=False)
        module.compute(**rest)
    assert len(module) == 1
    assert module.compute(**rest) == expected


def test_a_failed_computation_leaves_neither_files_nor_locks(
    load: Load, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(module, "_compute", fail, raising=False)
        module.compute(**rows)
    assert list(Path(module.data_dir).glob("*.arrow")) == []
    assert (module.filelock, module.filelocks) == (None, None)

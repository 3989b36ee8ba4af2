from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import movers
from movers.errors import InputError
from movers.inputs import check_choice, check_options, check_pairs, check_positive, check_text_groups, check_texts


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ("a cat", ["a cat"], "predictions: expected a list of texts, but got one str: 'a cat'"),
        (["a cat"], "a cat", "references: expected a list of texts or of lists of texts, but got one str"),
        (None, ["a"], "predictions: expected a list of texts, but got None"),
        (["a"], None, "references: expected a list of texts or of lists of texts, but got None"),
        (["a", None], ["a", "b"], r"predictions\[1\]: expected a text \(str\), but got None"),
        (["a", "b"], ["a", None], r"references\[1\]: expected a text \(str\), but got None"),
        (["a"], [["a", None]], r"references\[0\]\[1\]: expected a text \(str\), but got None"),
        ([["a"], "b"], ["a", "b"], r"predictions\[0\]: expected a text \(str\), but got list"),
        ([3], ["a"], r"predictions\[0\]: expected a text \(str\), but got int: 3"),
        (["a"], [2.5], r"references\[0\]: expected a text \(str\), but got float: 2.5"),
        (["a"], [float("nan")], r"references\[0\]: expected a text \(str\), but got float: nan"),
        (["a"], [["b", 7]], r"references\[0\]\[1\]: expected a text \(str\), but got int: 7"),
        (["a"], [[["b"]]], r"references\[0\]\[0\]: expected a text \(str\), but got list"),
        (["a"], [np.float64(1)], r"references\[0\]: expected a text \(str\), but got float64"),
        ([b"a"], ["a"], r"predictions\[0\]: expected a text \(str\), but got bytes"),
        (["a"], [b"a"], r"references\[0\]: expected a text \(str\), but got bytes"),
        ({"a": "b"}, ["a"], "predictions: expected a list of texts, but got dict"),
        ({"a", "b"}, ["a", "b"], "predictions: expected a list of texts, but got set"),
        (["a", "b"], frozenset(["a", "b"]), "references: expected a list of texts or .*, but got frozenset"),
        (5, ["a"], "predictions: expected a list of texts, but got int"),
        (["a", "b"], ["a"], "equally many rows, but got 2 predictions and 1 references"),
        (["a"], [["a"], ["b"]], "equally many rows, but got 1 predictions and 2 references"),
        (
            ["a", "b"],
            ["a", ["b"]],
            r"references\[1\]: expected a text \(str\) like references\[0\], but got",
        ),
        (["a", "b"], [["a"], "b"], r"references\[1\]: expected a list of texts like references\[0\], but"),
        (["a", "b"], [["a"], None], r"references\[1\]: expected a list of texts, but got None"),
        (["a", "b"], [["a"], []], r"references\[1\]: expected at least one text, but got an empty list"),
        (["a"], [[]], r"references\[0\]: expected at least one text, but got an empty list"),
        ([], [], "predictions: expected at least one text, but got an empty list"),
        (["ab\ud800"], ["a"], r"predictions\[0\]: expected valid Unicode.*'\\ud800' at character 2"),
        (["a"], [["b", "\udc00"]], r"references\[0\]\[1\]: expected valid Unicode.*at character 0"),
    ],
)
def test_bad_texts_are_refused_with_metric_argument_and_row(predictions: Any, references: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^wms: .*{message}"):
        movers.wms(predictions, references)


@pytest.mark.parametrize(
    "rows",
    [["abc", "de"], ("abc", "de"), np.array(["abc", "de"]), iter(["abc", "de"]), np.array(["abc", "de"], object)],
)
def test_any_collection_of_texts_is_a_list_of_texts(rows: Any) -> None:
    groups = check_text_groups("wms", "references", rows)
    assert groups == [["abc"], ["de"]]
    assert all(type(text) is str for group in groups for text in group)


@pytest.mark.parametrize("rows", [[["abc", "de"], ["f"]], [("abc", "de"), ("f",)], [np.array(["abc", "de"]), ["f"]]])
def test_any_collection_of_groups_is_a_list_of_groups(rows: Any) -> None:
    assert check_text_groups("wms", "references", rows) == [["abc", "de"], ["f"]]


def test_an_input_error_is_a_value_error_and_a_type_error() -> None:
    assert issubclass(InputError, ValueError) and issubclass(InputError, TypeError)
    assert movers.InputError is InputError


def test_texts_pass_through_unchanged() -> None:
    texts = ["", "  two  blanks ", "line\nbreak", "😀 e\u0301"]
    assert check_texts("wms", "predictions", texts) == texts
    assert check_pairs("wms", texts, texts) == (texts, [[text] for text in texts])


def test_the_other_argument_may_have_another_name() -> None:
    with pytest.raises(InputError, match="quality: predictions and sources: .* 1 predictions and 2 sources"):
        check_pairs("quality", ["a"], ["b", "c"], "sources")


def test_choices_are_told_apart_by_type_too() -> None:
    check_choice("wms", "layer", 1, (1, "mean"))
    with pytest.raises(InputError, match="wms: layer: expected one of 1, 'mean', but got True"):
        check_choice("wms", "layer", True, (1, "mean"))
    with pytest.raises(InputError, match="expected one of 'a', 'b', but got None"):
        check_choice("wms", "kind", None, Literal["a", "b"])


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, [1]])
def test_a_count_must_be_a_whole_number_above_zero(value: Any) -> None:
    with pytest.raises(InputError, match="wms: threads: expected a whole number above zero"):
        check_positive("wms", "threads", value)


def test_none_counts_only_where_it_is_allowed() -> None:
    assert check_positive("wms", "threads", None) is None
    with pytest.raises(InputError, match="but got None"):
        check_positive("wms", "threads", None, none_allowed=False)


def test_an_unknown_option_names_its_neighbour_and_all_valid_ones() -> None:
    with pytest.raises(InputError, match=r"did you mean 'stopwords'\?\); valid options: model, stopwords$"):
        check_options("wms", ["stop_words"], ["stopwords", "model"])
    with pytest.raises(InputError, match=r"wms: unknown option 'qqq'; valid options: model$"):
        check_options("wms", ["qqq"], ["model"])

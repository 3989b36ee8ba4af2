from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import movers
from movers.inputs import check_choice, check_options, check_pairs, check_positive, check_text_groups, check_texts

METRICS = [movers.wms, movers.sms, movers.swms]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ("a cat", ["a cat"], TypeError, "predictions: expected a list of texts, but got one str: 'a cat'"),
        (["a cat"], "a cat", TypeError, "references: expected a list of texts or of lists of texts, but got one str"),
        (None, ["a"], TypeError, "predictions: expected a list of texts, but got None"),
        (["a"], None, TypeError, "references: expected a list of texts or of lists of texts, but got None"),
        (["a", None], ["a", "b"], TypeError, r"predictions\[1\]: expected a text \(str\), but got None"),
        (["a", "b"], ["a", None], TypeError, r"references\[1\]: expected a text \(str\), but got None"),
        (["a"], [["a", None]], TypeError, r"references\[0\]\[1\]: expected a text \(str\), but got None"),
        ([["a"], "b"], ["a", "b"], TypeError, r"predictions\[0\]: expected a text \(str\), but got list"),
        ([3], ["a"], TypeError, r"predictions\[0\]: expected a text \(str\), but got int: 3"),
        (["a"], [2.5], TypeError, r"references\[0\]: expected a text \(str\), but got float: 2.5"),
        (["a"], [float("nan")], TypeError, r"references\[0\]: expected a text \(str\), but got float: nan"),
        (["a"], [["b", 7]], TypeError, r"references\[0\]\[1\]: expected a text \(str\), but got int: 7"),
        (["a"], [[["b"]]], TypeError, r"references\[0\]\[0\]: expected a text \(str\), but got list"),
        (["a"], [np.float64(1)], TypeError, r"references\[0\]: expected a text \(str\), but got float64"),
        ([b"a"], ["a"], TypeError, r"predictions\[0\]: expected a text \(str\), but got bytes"),
        (["a"], [b"a"], TypeError, r"references\[0\]: expected a text \(str\), but got bytes"),
        ({"a": "b"}, ["a"], TypeError, "predictions: expected a list of texts, but got dict"),
        (5, ["a"], TypeError, "predictions: expected a list of texts, but got int"),
        (["a", "b"], ["a"], ValueError, "equally many rows, but got 2 predictions and 1 references"),
        (["a"], [["a"], ["b"]], ValueError, "equally many rows, but got 1 predictions and 2 references"),
        (
            ["a", "b"],
            ["a", ["b"]],
            TypeError,
            r"references\[1\]: expected a text \(str\) like references\[0\], but got",
        ),
        (["a", "b"], [["a"], "b"], TypeError, r"references\[1\]: expected a list of texts like references\[0\], but"),
        (["a", "b"], [["a"], None], TypeError, r"references\[1\]: expected a list of texts, but got None"),
        (["a", "b"], [["a"], []], ValueError, r"references\[1\]: expected at least one text, but got an empty list"),
        (["a"], [[]], ValueError, r"references\[0\]: expected at least one text, but got an empty list"),
        ([], [], ValueError, "predictions: expected at least one text, but got an empty list"),
        (["ab\ud800"], ["a"], ValueError, r"predictions\[0\]: expected valid Unicode.*'\\ud800' at character 2"),
        (["a"], [["b", "\udc00"]], ValueError, r"references\[0\]\[1\]: expected valid Unicode.*at character 0"),
    ],
)
def test_bad_texts_are_refused_with_metric_argument_and_row(
    metric: Any, predictions: Any, references: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=rf"^{metric.__name__}: .*{message}"):
        metric(predictions, references)


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


def test_texts_pass_through_unchanged() -> None:
    texts = ["", "  two  blanks ", "line\nbreak", "😀 e\u0301"]
    assert check_texts("wms", "predictions", texts) == texts
    assert check_pairs("wms", texts, texts) == (texts, [[text] for text in texts])


def test_the_other_argument_may_have_another_name() -> None:
    with pytest.raises(ValueError, match="quality: predictions and sources: .* 1 predictions and 2 sources"):
        check_pairs("quality", ["a"], ["b", "c"], "sources")


def test_choices_are_told_apart_by_type_too() -> None:
    check_choice("wms", "layer", 1, (1, "mean"))
    with pytest.raises(ValueError, match="wms: layer: expected one of 1, 'mean', but got True"):
        check_choice("wms", "layer", True, (1, "mean"))
    with pytest.raises(ValueError, match="expected one of 'a', 'b', but got None"):
        check_choice("wms", "kind", None, Literal["a", "b"])


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, [1]])
def test_a_count_must_be_a_whole_number_above_zero(value: Any) -> None:
    with pytest.raises(ValueError, match="wms: threads: expected a whole number above zero"):
        check_positive("wms", "threads", value)


def test_none_counts_only_where_it_is_allowed() -> None:
    assert check_positive("wms", "threads", None) is None
    with pytest.raises(ValueError, match="but got None"):
        check_positive("wms", "threads", None, none_allowed=False)


def test_an_unknown_option_names_its_neighbour_and_all_valid_ones() -> None:
    with pytest.raises(TypeError, match=r"did you mean 'stopwords'\?\); valid options: model, stopwords$"):
        check_options("wms", ["stop_words"], ["stopwords", "model"])
    with pytest.raises(TypeError, match=r"wms: unknown option 'qqq'; valid options: model$"):
        check_options("wms", ["qqq"], ["model"])

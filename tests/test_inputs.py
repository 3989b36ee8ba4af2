from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import movers
from movers.errors import InputError
from movers.inputs import check_pairs, check_text_groups


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ("a cat", ["a cat"], "predictions: expected a list of texts, but got a single str: 'a cat'"),
        (["a cat"], "a cat", "references: expected a list of texts or of lists of texts, but got a single str"),
        (None, ["a"], "predictions: expected a list of texts, but got None"),
        (["a"], None, "references: expected references to compare with, but got none"),
        (["a", None], ["a", "b"], r"predictions\[1\]: expected a text \(str\), but got None"),
        (["a"], [["a", None]], r"references\[0\]\[1\]: expected a text \(str\), but got None"),
        ([["a"], "b"], ["a", "b"], r"predictions\[0\]: expected a text \(str\), but got list"),
        ([3], ["a"], r"predictions\[0\]: expected a text \(str\), but got int: 3"),
        (["a"], [float("nan")], r"references\[0\]: expected a text \(str\), but got float: nan"),
        (["a"], [[["b"]]], r"references\[0\]\[0\]: expected a text \(str\), but got list"),
        (["a"], [np.float64(1)], r"references\[0\]: expected a text \(str\), but got float64"),
        ([b"a"], ["a"], r"predictions\[0\]: expected a text \(str\), but got bytes"),
        ({"a": "b"}, ["a"], "predictions: expected a list of texts, but got dict"),
        (["a", "b"], frozenset(["a", "b"]), "references: expected a list of texts or .*, but got frozenset"),
        (["a", "b"], ["a"], "equally many rows, but got 2 predictions and 1 references"),
        (["a", "b"], ["a", ["b"]], r"references\[1\]: expected a text \(str\) like references\[0\], but got"),
        (["a", "b"], [["a"], "b"], r"references\[1\]: expected a list of texts like references\[0\], but"),
        (["a", "b"], [["a"], None], r"references\[1\]: expected a list of texts, but got None"),
        (["a", "b"], [["a"], []], r"references\[1\]: expected at least one text, but got an empty list"),
        ([], [], "predictions: expected at least one text, but got an empty list"),
        (["ab\ud800"], ["a"], r"predictions\[0\]: expected valid Unicode.*'\\ud800' at character 2"),
        (["a"], [["b", "\udc00"]], r"references\[0\]\[1\]: expected valid Unicode.*at character 0"),
    ],
)
def test_bad_texts_are_refused_with_metric_argument_and_row(predictions: Any, references: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^wms: .*{message}"):
        movers.wms(predictions, references)


def test_any_collection_of_texts_will_do_and_texts_pass_unchanged() -> None:
    for rows in (("abc", "de"), np.array(["abc", "de"]), iter(["abc", "de"]), np.array(["abc", "de"], object)):
        groups = check_text_groups("wms", "references", rows)
        assert groups == [["abc"], ["de"]]
        assert all(type(text) is str for group in groups for text in group)
    assert check_text_groups("wms", "references", [np.array(["a", "b"]), ("c",)]) == [["a", "b"], ["c"]]
    texts = ["", "  two  blanks ", "line\nbreak", "😀 e\u0301"]
    assert check_pairs("wms", texts, texts) == (texts, [[text] for text in texts])
    assert issubclass(InputError, ValueError) and issubclass(InputError, TypeError)

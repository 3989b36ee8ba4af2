"""Unusual texts through every public entry: a finite score within its range, or an `InputError`.

tools/qa/fuzz.py puts far more of them through the same entries.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from qa import strange

from movers.errors import InputError
from movers.registry import METRICS

pytestmark = pytest.mark.filterwarnings("ignore")
#: Entry, metric, and the rows of a call.
ENTRIES = [
    *(("function", name, 60) for name in ("wms", "sms", "swms")),
    *(("function", name, 20) for name in ("moverscore", "bertscore_hungarian", "bertscore_emd")),
    ("function", "reference_free_summary_quality", 4),
    ("module", "wms", 30),
    ("reward", "moverscore", 10),
    ("hook", "swms", 30),
    ("command", "wms", 30),
    ("page", "swms", 1),
]


@pytest.mark.parametrize(("entry", "metric", "count"), ENTRIES)
@pytest.mark.parametrize("seed", range(4))
def test_every_entry_scores_or_refuses(entry: str, metric: str, count: int, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    rows = [(strange.text(draw)[1], strange.text(draw)[1]) for _ in range(count)]
    rows += [("", ""), ("", "snow"), ("snow", "")]
    surrogate = seed == 0 and entry != "hook"  # a tokenizer never gives ids for them
    if surrogate:
        rows.append((strange.KINDS["lone surrogates"](draw), "snow"))
    folder = (tmp_path,) if entry == "command" else ()
    try:
        getattr(strange, f"call_{entry}")(metric, rows, draw, *folder)
    except InputError:
        assert surrogate or entry in ("command", "page")  # damaged files, and options that visitors think of
    else:
        assert not surrogate


@pytest.mark.parametrize("metric", METRICS)
def test_options_of_any_value_are_accepted_or_refused(metric: str) -> None:
    for seed in range(200):
        try:
            strange.call_options(metric, random.Random(seed))
        except InputError as error:
            assert str(error)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "x" * 5000], ids=["surrogate", "nul", "long"])
@pytest.mark.parametrize("option", ["model", "idf", "rescale"])
def test_names_that_no_file_can_have_are_refused(option: str, name: str) -> None:
    with pytest.raises(InputError, match="expected|no such file|neither"):
        METRICS["wms"].function(["snow"], ["ice"], **{option: name})

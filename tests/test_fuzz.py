"""Unusual texts through every public entry: a finite score within its documented range, or an `InputError`.

tools/qa/fuzz.py puts far more of them through the same entries.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import strange
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from movers.errors import InputError
from movers.registry import METRICS

pytestmark = pytest.mark.filterwarnings("ignore")
some = settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
#: Entry, metric, and the rows of a call.
ENTRIES = [
    *(("function", name, 60) for name in ("wms", "sms", "swms")),
    *(("function", name, 20) for name in ("moverscore", "bertscore_hungarian", "bertscore_emd")),
    ("function", "reference_free_summary_quality", 4),
    ("module", "wms", 30),
    ("reward", "sms", 40),
    ("reward", "moverscore", 10),
    ("hook", "swms", 30),
    ("hook", "bertscore_emd", 10),
    ("command", "wms", 30),
    ("page", "swms", 1),
]
anything = st.text(st.characters(codec=None), max_size=20)  # all of Unicode, lone surrogates included
few_rows = st.lists(st.tuples(anything, anything), max_size=3)


@pytest.mark.parametrize(("entry", "metric", "count"), ENTRIES)
def test_every_entry_scores_or_refuses(entry: str, metric: str, count: int, tmp_path: Path) -> None:
    @some
    @given(seed=st.integers(0, 1 << 32), more=few_rows)
    @example(seed=1, more=[("\ud800", "snow")])
    @example(seed=2, more=[("", ""), ("", "snow"), ("snow", "")])
    def check(seed: int, more: list[tuple[str, str]]) -> None:
        draw = random.Random(seed)
        rows = [*((strange.text(draw)[1], strange.text(draw)[1]) for _ in range(count)), *more]
        surrogate = any("\ud800" <= letter <= "\udfff" for pair in rows for text in pair for letter in text)
        if entry == "hook" and surrogate:  # a tokenizer never gives ids for them
            return
        extra = (tmp_path,) if entry == "command" else ()
        try:
            getattr(strange, f"call_{entry}")(metric, rows, draw, *extra)
        except InputError:
            assert surrogate or entry in ("command", "page")  # damaged files, and options that visitors think of

    check()


@pytest.mark.parametrize("metric", METRICS)
@settings(some, max_examples=100)
@given(seed=st.integers(0, 1 << 32))
def test_options_of_any_value_are_accepted_or_refused(metric: str, seed: int) -> None:
    try:
        strange.call_options(metric, random.Random(seed))
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "x" * 5000], ids=["surrogate", "nul", "long"])
@pytest.mark.parametrize("option", ["model", "idf", "rescale"])
def test_names_that_no_file_can_have_are_refused(option: str, name: str) -> None:
    with pytest.raises(InputError, match="expected|no such file|neither"):
        METRICS["wms"].function(["snow"], ["ice"], **{option: name})


@pytest.mark.parametrize(("metric", "kind"), [("wms", "words"), ("wms", "right to left"), ("sms", "long word")])
def test_lines_of_a_megabyte(metric: str, kind: str) -> None:
    text = strange.KINDS[kind](random.Random(5)) + " "
    long = text * (1_000_000 // len(text))
    strange.call_function(metric, [(long, "snow melts"), ("snow", long)], random.Random(0))

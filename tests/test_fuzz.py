"""Strange texts through every public entry: a finite score within its documented range, or an `InputError`.

benchmarks/fuzz.py puts a million of them through the same entries.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import strange
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from movers.errors import InputError
from movers.registry import METRICS
from movers.scores.options import option_rows

pytestmark = pytest.mark.filterwarnings("ignore")
some = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

STATIC = ("wms", "sms", "swms")
#: Entry and metric, with the rows of a call; every entry is called with `some` generated batches of rows.
ENTRIES: list[tuple[str, str, int]] = [
    *(("function", name, 60) for name in STATIC),
    *(("function", name, 20) for name in ("moverscore", "bertscore_hungarian", "bertscore_emd")),
    ("function", "reference_free_summary_quality", 4),
    ("module", "wms", 30),
    ("module", "moverscore", 10),
    ("reward", "sms", 40),
    ("reward", "moverscore", 10),
    ("hook", "swms", 30),
    ("hook", "bertscore_emd", 10),
    *(("command", name, 30) for name in STATIC),
    ("page", "wms", 6),
    ("page", "swms", 4),
]
#: All of Unicode, lone surrogates included.
anything = st.text(st.characters(codec=None), max_size=20)
written = st.tuples(st.sampled_from(list(strange.KINDS)), st.integers(0, 1 << 32)).map(
    lambda pick: strange.KINDS[pick[0]](random.Random(pick[1]))
)
few_texts = st.lists(st.tuples(st.one_of(anything, written), st.one_of(anything, written)), max_size=3)


def rows_from(seed: int, count: int, own: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Rows from a seed, most of what is sent, beside a few that hypothesis can make simpler."""
    draw = random.Random(seed)
    return [*((strange.text(draw)[1], strange.text(draw)[1]) for _ in range(count)), *own]


@pytest.mark.parametrize(("entry", "metric", "count"), ENTRIES)
def test_every_entry_scores_or_refuses(entry: str, metric: str, count: int, tmp_path: Path) -> None:
    sent = []

    @some
    @given(seed=st.integers(0, 1 << 32), own=few_texts)
    @example(seed=0, own=[])
    @example(seed=1, own=[("\ud800", "snow")])
    @example(seed=2, own=[("", ""), ("", "snow"), ("snow", "")])
    def check(seed: int, own: list[tuple[str, str]]) -> None:
        rows, draw = rows_from(seed, count, own), random.Random(seed)
        sent.append(2 * len(rows))
        refused = any("\ud800" <= letter <= "\udfff" for pair in rows for text in pair for letter in text)
        if entry == "hook" and refused:  # a tokenizer never gives ids for them
            return
        try:
            if entry == "command":
                strange.call_command(metric, rows, draw, tmp_path)
            else:
                getattr(strange, f"call_{entry}")(metric, rows, draw)
        except InputError:
            assert refused or entry in ("command", "page")  # damaged files, and options that visitors think of

    check()
    assert sum(sent) >= 2 * count * some.max_examples


def test_the_entries_together_take_ten_thousand_inputs() -> None:
    assert sum(2 * count * some.max_examples for _, _, count in ENTRIES) > 10_000


@pytest.mark.parametrize("metric", METRICS)
@settings(some, max_examples=150)
@given(seed=st.integers(0, 1 << 32))
def test_options_of_any_value_are_taken_or_refused(metric: str, seed: int) -> None:
    try:
        strange.call_options(metric, random.Random(seed))
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize("metric", METRICS)
def test_arrays_are_lists_to_every_option(metric: str) -> None:
    for row in option_rows(METRICS[metric].options_class):
        outcomes = []
        for value in (np.array([3, 4]), [3, 4]):
            try:
                outcomes.append(repr(getattr(METRICS[metric].parse({row.name: value}), row.name)))
            except InputError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "x" * 5000, "a/" * 3000], ids=["surrogate", "nul", "long", "deep"])
@pytest.mark.parametrize(
    ("metric", "option"),
    [
        ("wms", "model"),
        ("wms", "idf"),
        ("wms", "rescale"),
        ("bertscore_emd", "rescale"),
        ("sms", "sentence_encoder"),
        ("reference_free_summary_quality", "model"),
    ],
)
def test_names_that_no_file_can_have_are_refused(metric: str, option: str, name: str) -> None:
    with pytest.raises(InputError, match="expected|no such file|neither"):
        METRICS[metric].function(["snow"], ["ice"], **{option: name})


def test_a_hundred_thousand_tiny_texts_in_one_call() -> None:
    draw = random.Random(3)
    rows = [(strange.KINDS["tiny"](draw), strange.KINDS["tiny"](draw)) for _ in range(50_000)]
    strange.call_function("wms", rows, draw)


@pytest.mark.parametrize(
    ("metric", "kind"),
    [("wms", "words"), ("wms", "right to left"), ("sms", "punctuation only"), ("sms", "long word")],
)
def test_lines_of_a_megabyte(metric: str, kind: str) -> None:
    text = strange.KINDS[kind](random.Random(5)) + " "
    long = text * (1_000_000 // len(text))
    strange.call_function(metric, [(long, "snow melts"), ("snow", long)], random.Random(0))


def test_the_scripts_are_many() -> None:
    assert len(strange.scripts()) > 120
    assert {"ARABIC", "HEBREW", "THAI", "DEVANAGARI", "CJK", "HANGUL", "ETHIOPIC", "CUNEIFORM"} <= {*strange.scripts()}

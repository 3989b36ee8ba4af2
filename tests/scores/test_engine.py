"""What all metrics share: distinct texts, blocks, threads, references, results."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import movers
from movers.errors import InputError
from movers.registry import METRICS
from movers.scores.engine import (
    Comparison,
    PairMetric,
    TooLarge,
    blocks,
    build,
    check_size,
    collect,
    score,
    score_block,
    score_stream,
)
from movers.scores.options import RunOptions
from movers.scores.result import Totals, corpus_score
from movers.threads import one_blas_thread
from movers.weights import Corpus

TEXTS = [
    "A man sells snow online. Customers receive boxes.",
    "Boston suffered heavy snow. Waring shipped snow inside bottles.",
    "Police arrested three suspects. Suspects denied everything.",
    "Giant birds once walked here.",
    "Stocks fell sharply. Investors sold shares. Banks lost billions.",
]

COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")


@dataclass(frozen=True, kw_only=True)
class Lengths(PairMetric[str]):
    """A metric that a person can compute: length of the prediction over length of the reference."""

    reduction: Any = "max"
    together: bool = True
    options_class = RunOptions

    @classmethod
    def build(cls, name: str, options: Any, corpus: Corpus | None = None) -> Lengths:
        return cls(name=name, signature="lengths", options=options)

    @property
    def multi_ref(self) -> Any:
        return self.reduction

    @property
    def overlaps(self) -> bool:
        return self.together

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        assert len(set(texts)) == len(texts), "each distinct text is read once"
        return reversed([*enumerate(texts)])

    def costs_many(self, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        return [None if other == "none" else np.full((len(text), len(other)), 1.0) for text, other in pairs]

    def compare(self, prediction: str, reference: str, costs: Any = None) -> Comparison:
        if not self.together and reference != "none":
            assert costs.shape == (len(prediction), len(reference))
        value = len(prediction) / len(reference)
        return Comparison(
            value,
            {"inverse": 1 / value},
            empty=prediction == "e",
            unfiltered=reference == "u",
            alignment={"flows": [len(prediction)]} if self.options.return_alignment else None,
        )

    def was_cut(self, text: str) -> bool:
        return text == "cut"

    def extra(self) -> dict[str, object]:
        return {"also": 1}


def lengths(threads: int | None = 1, **options: Any) -> Lengths:
    fields = {name: options.pop(name) for name in ("reduction", "together") if name in options}
    return Lengths(name="lengths", signature="lengths", options=RunOptions(threads=threads, **options), **fields)


ROWS = [("aa", ["b", "bbbb"]), ("e", ["bb", "cut"]), ("cut", ["u"]), ("aaaa", ["aaaa"])]


@pytest.mark.parametrize(
    ("reduction", "expected", "inverse"),
    [
        ("max", [2.0, 0.5, 3.0, 1.0], [0.5, 2.0, 1 / 3, 1.0]),
        ("mean", [1.25, 5 / 12, 3.0, 1.0], [1.25, 2.5, 1 / 3, 1.0]),
        ("sum", [2.5, 5 / 6, 3.0, 1.0], [2.5, 5.0, 1 / 3, 1.0]),
    ],
)
def test_several_references_are_reduced_as_asked(reduction: str, expected: list[float], inverse: list[float]) -> None:
    result = score(lengths(reduction=reduction), [row[0] for row in ROWS], [row[1] for row in ROWS])
    assert result["scores"] == pytest.approx(expected)
    assert result["inverse"] == pytest.approx(inverse)
    assert result["score"] == pytest.approx(sum(expected) / 4)


def test_the_result_counts_examples_not_references_and_takes_what_the_metric_adds() -> None:
    result = score(lengths(), [row[0] for row in ROWS], [row[1] for row in ROWS])
    assert (result["n_empty"], result["n_unfiltered"], result["n_truncated"]) == (1, 1, 2)
    assert (result["signature"], result["also"]) == ("lengths", 1)
    examples = score_block(lengths(), ROWS)
    assert [example.truncated for example in examples] == [False, True, True, False]
    assert [example.empty for example in examples] == [False, True, False, False]
    assert [example.unfiltered for example in examples] == [False, False, True, False]
    assert "alignments" not in result


def test_alignments_are_listed_for_every_reference_with_its_own_score() -> None:
    result = score(lengths(return_alignment=True), ["aa"], [["b", "bbbb"]])
    assert result["alignments"] == [
        [{"reference_index": 0, "score": 2.0, "flows": [2]}, {"reference_index": 1, "score": 0.5, "flows": [2]}]
    ]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("block", [1, 40, 1024])
def test_scores_depend_neither_on_threads_nor_on_blocks(
    threads: int, together: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("movers.scores.engine.blocks.__defaults__", (block,))
    monkeypatch.setattr("movers.scores.engine._GROUP", 50)  # several groups of cost matrices, and pairs without one
    words = ["a" * (1 + number % 13) for number in range(200)]
    others = [["b" * (1 + number % 7), "none"][: 1 + number % 2] for number in range(200)]
    examples = list(score_stream(lengths(threads, together=together), zip(words, others, strict=True)))
    expected = [max(len(word) / len(text) for text in group) for word, group in zip(words, others, strict=True)]
    assert [example.score for example in examples] == expected


def test_a_stream_reads_no_more_than_a_block_ahead() -> None:
    read = 0

    def rows() -> Iterator[tuple[str, list[str]]]:
        nonlocal read
        while True:
            read += 1
            yield "a" * (1 + read % 5), ["b"]

    stream = score_stream(lengths(2), rows())
    assert [next(stream).score for _ in range(3)] == [2.0, 3.0, 4.0]
    assert read == 1024
    assert [next(stream).score for _ in range(1021)][-1] == 5.0 and read == 1024
    assert next(stream).score == 1.0 and read == 2048
    stream.close()  # type: ignore[attr-defined]


def test_blocks_begin_anew_with_every_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.scores.engine.SECTION", 10)
    rows = [("a", ["b"] * (1 + number % 3)) for number in range(34)]
    whole = list(blocks(rows, 7))
    assert sum(whole, []) == rows
    ends = list(accumulate(map(len, whole)))
    assert {10, 20, 30, 34} <= set(ends)
    assert list(blocks(rows[20:], 7)) == whole[ends.index(20) + 1 :]


def test_blocks_of_long_texts_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.scores.engine._BLOCK_CHARACTERS", 10)
    rows = [("a" * size, ["b", "cc"]) for size in (1, 1, 20, 2, 3, 1)]
    assert [[len(text) for text, _ in block] for block in blocks(rows, 100)] == [[1, 1, 20], [2, 3], [1]]


def test_a_stream_that_goes_on_names_rows_of_the_whole() -> None:
    assert [each.score for each in score_stream(lengths(), ROWS[2:], 4, 2)] == [3.0, 1.0]
    spec = METRICS["wms"]
    metric = spec.build(spec.parse({"max_cells": 4}))
    with pytest.raises(InputError, match=r"wms: predictions\[4097\]: "):
        list(score_stream(metric, [("snow", ["rain"]), (TEXTS[0], [TEXTS[1]])], 4098, 4096))


def test_an_error_in_a_comparison_reaches_the_caller() -> None:
    for threads in (1, 3):
        with pytest.raises(ZeroDivisionError):
            score(lengths(threads), ["a"] * 50, [[f"{'b' * number}"] for number in range(50)])


@dataclass(frozen=True, kw_only=True)
class Least(PairMetric[str]):
    """Only what every metric must have."""

    options_class = RunOptions
    multi_ref = "max"

    @classmethod
    def build(cls, name: str, options: Any, corpus: Corpus | None = None) -> Least:
        return cls(name=name, signature="", options=options)

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        return iter(enumerate(texts))

    def compare(self, prediction: str, reference: str, costs: Any = None) -> Comparison:
        assert costs is None
        return Comparison(len(prediction) - len(reference))


def test_a_metric_needs_no_more_than_reading_and_comparing() -> None:
    result = score(Least.build("least", RunOptions()), ["aaa", "b"], [["a"], ["b", "bb"]])
    assert result == {
        "score": 1.0,
        "scores": [2, 0],
        "signature": "",
        "n_empty": 0,
        "n_unfiltered": 0,
        "n_truncated": 0,
        "n_unknown": 0,
    }


@dataclass(frozen=True, kw_only=True)
class Reading(Least):
    """Does not know texts that begin with a question mark."""

    def has_unknown(self, text: str) -> bool:
        return text.startswith("?")


def test_rows_with_unknown_words_are_counted_and_warned_about_if_they_are_many() -> None:
    metric = Reading.build("reading", RunOptions())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(metric, ["a"] * 10, [["b", "?"], *[["b"]] * 9])["n_unknown"] == 1
    with pytest.warns(UserWarning, match="reading: 2 of 10 rows have words or pieces"):
        result = score(metric, ["a"] * 10, [["?", "?"], ["?"], *[["b"]] * 8])
    assert result["n_unknown"] == 2


def test_a_metric_is_built_with_or_without_the_texts_of_a_call() -> None:
    for unescape in (True, False):
        metric = build(Least, "least", RunOptions(unescape=unescape))
        assert score(metric, ["&amp;"], [["a"]])["scores"] == [0 if unescape else 4]


@pytest.mark.parametrize("model", ["wordllama", "tiny"])
def test_a_pair_too_large_is_refused_with_its_row(model: str, tiny_bert: Any) -> None:
    options: dict[str, Any] = {"model": tiny_bert if model == "tiny" else model}
    texts = ["cat", "cat", "red dog runs"], [["dog"], ["dog"], ["dog", "old man sells snow"]]
    assert len(movers.wms(*texts, max_cells=12, **options)["scores"]) == 3
    for threads in (1, 2):
        with pytest.raises(
            InputError, match=r"^wms: predictions\[2\]: comparing 3 with 4 units .* than max_cells=11; r"
        ):
            movers.wms(*texts, max_cells=11, threads=threads, **options)


class Budget:
    """Notes how many cells pairs ask for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def hold(self, cells: int, limit: int) -> AbstractContextManager[None]:
        self.asked.append((cells, limit))
        return nullcontext()


@pytest.mark.parametrize(
    ("name", "home", "cells"),
    [("wms", "clark", 12), ("moverscore", "moverscore", 30), ("bertscore_emd", "bertscore", 12)],
)
def test_all_threads_together_keep_within_the_cells_of_one_large_pair(
    name: str, home: str, cells: int, tiny_bert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget()
    options: dict[str, Any] = {"temperature": 1.0} if name == "wms" else {}
    monkeypatch.setattr(f"movers.scores.{home}.CELLS", budget)
    getattr(movers, name)(["red dog runs"], ["old man sells snow"], model=tiny_bert, max_cells=50, **options)
    assert budget.asked == [(cells, 50)]


def test_how_much_memory_a_pair_would_take_is_told() -> None:
    check_size(5, 4, 20)
    with pytest.raises(TooLarge, match="comparing 100,000 with 50,000 units takes 5,000,000,000 cells .about 210.0 GB"):
        check_size(100_000, 50_000, 20)


class Kept:
    """A text that knows whether somebody still holds it."""

    alive = 0

    def __init__(self) -> None:
        Kept.alive += 1

    def __del__(self) -> None:
        Kept.alive -= 1


@dataclass(frozen=True, kw_only=True)
class Holding(Least):
    """Notes how many texts are held while it reads."""

    held: list[int]

    def read(self, texts: Sequence[str]) -> Iterator[tuple[int, Any]]:
        for number in range(len(texts)):
            self.held.append(Kept.alive)
            yield number, Kept()

    def compare(self, prediction: Any, reference: Any, costs: Any = None) -> Comparison:
        return Comparison(0.0)


def test_a_text_is_freed_when_its_last_pair_is_compared() -> None:
    metric = Holding(name="holding", signature="", options=RunOptions(threads=1), held=[])
    score(metric, [f"a{number}" for number in range(300)], [[f"b{number}"] for number in range(300)])
    assert len(metric.held) == 600 and max(metric.held) < 260  # pairs go in chunks of 32, of which two are in flight


def test_a_block_is_scored_on_the_callers_thread_without_a_pool() -> None:
    examples = score_block(lengths(), ROWS)
    assert collect(lengths(), examples)["scores"] == [2.0, 0.5, 3.0, 1.0]


@dataclass(frozen=True, kw_only=True)
class Averaging(RunOptions):
    average: str = "distances"


@dataclass(frozen=True, kw_only=True)
class Distant(Least):
    """A score that is a function of a distance."""

    def similarity(self, distance: float) -> float:
        return 1 / (1 + distance)


def test_a_corpus_is_as_similar_as_its_mean_distance_and_rows_without_one_count_with_their_scores() -> None:
    scores, distances = [0.5, 0.25, 0.8], [1.0, None, 3.0]
    of_distances = Distant(name="", signature="", options=Averaging())
    assert corpus_score(of_distances, scores, distances) == pytest.approx((2 * (1 / 3) + 0.25) / 3)
    assert corpus_score(of_distances, [0.25, 0.75], [None, None]) == 0.5
    of_scores = Distant(name="", signature="", options=Averaging(average="scores"))
    assert corpus_score(of_scores, scores, distances) == pytest.approx(1.55 / 3)


@pytest.mark.parametrize("average", ["scores", "distances"])
def test_totals_of_sections_give_the_last_digit_of_all_rows_at_once(average: str) -> None:
    draw = random.Random(3)
    metric = Distant(name="", signature="", options=Averaging(average=average))
    scores = [draw.random() ** draw.randint(1, 40) for _ in range(1000)]
    distances = [None if draw.random() < 0.1 else draw.expovariate(1) for _ in scores]
    totals = Totals()
    for begin in range(0, 1000, 7):
        totals.add(scores[begin : begin + 7], distances[begin : begin + 7])
    expected = math.fsum(scores) / 1000
    if average == "distances":
        moved = [distance for distance in distances if distance is not None]
        others = [score for score, distance in zip(scores, distances, strict=True) if distance is None]
        expected = math.fsum([len(moved) / (1 + math.fsum(moved) / len(moved)), *others]) / 1000
    assert totals.corpus_score(metric) == pytest.approx(expected, rel=1e-15)
    assert totals.corpus_score(metric) == corpus_score(metric, scores, distances)
    assert max(map(len, (totals.scores, totals.distances, totals.other_scores))) < 10


# ---------------------------------------------------------------------------------------------------------------------
# BLAS


def blas_libraries() -> list[Any]:
    """NumPy's own BLAS, not that of SciPy, which may be loaded at any time."""
    found = ThreadpoolController().select(internal_api="openblas").lib_controllers
    return [library for library in found if "numpy" in library.filepath]


def blas_threads() -> list[int]:
    return [library.num_threads for library in blas_libraries()]


@pytest.fixture
def several_blas_threads() -> Iterator[list[int]]:
    """NumPy's BLAS as a user has it on a machine of two processors."""
    before = [(library, library.num_threads) for library in blas_libraries()]
    for library, _ in before:
        library.set_num_threads(2)
    if not before or set(blas_threads()) != {2}:
        pytest.skip("NumPy was built without an OpenBLAS of several threads")
    yield blas_threads()
    for library, count in before:
        library.set_num_threads(count)


@dataclass(frozen=True, kw_only=True)
class Watching(Lengths):
    """Notes how many threads BLAS has while pairs are compared."""

    def compare(self, prediction: str, reference: str, costs: Any = None) -> Comparison:
        return Comparison(float(max(blas_threads())))


def test_blas_has_one_thread_inside_and_its_own_number_while_the_caller_is_at_work(
    several_blas_threads: list[int],
) -> None:
    metric = Watching(name="watching", signature="", options=RunOptions(threads=2))
    stream = score_stream(metric, [("a", ["b"])] * 3)
    assert next(stream).score == 1.0
    assert blas_threads() == several_blas_threads, "the caller has the stream suspended"
    other = score_stream(metric, [("c", ["d"])] * 3)
    assert next(other).score == 1.0
    assert [next(stream).score, next(other).score] == [1.0, 1.0]
    stream.close()  # type: ignore[attr-defined]
    assert blas_threads() == several_blas_threads
    other.close()  # type: ignore[attr-defined]
    assert blas_threads() == several_blas_threads


def test_two_overlapping_holders_restore_the_number_of_threads(several_blas_threads: list[int]) -> None:
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}, "the second still needs it"
    second.__exit__(None, None, None)
    assert blas_threads() == several_blas_threads


def test_an_error_inside_restores_the_number_of_threads(several_blas_threads: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        score(lengths(2), ["a"], [[""]])
    assert blas_threads() == several_blas_threads


# ---------------------------------------------------------------------------------------------------------------------
# Through a metric's function


@pytest.mark.parametrize("model", ["wordllama", "tiny"])
def test_scores_do_not_depend_on_batch_order_or_threads(model: str, tiny_bert: Any) -> None:
    chosen: Any = tiny_bert if model == "tiny" else model
    references = [TEXTS[(place * 3 + 1) % 5] for place in range(len(TEXTS))]
    expected = movers.swms(TEXTS, references, model=chosen)["scores"]

    def again(rows: Sequence[int], **options: Any) -> None:
        if model == "tiny":
            movers.load_encoder(chosen).cache.clear()  # type: ignore[union-attr]
        found = movers.swms([TEXTS[row] for row in rows], [references[row] for row in rows], model=chosen, **options)
        assert found["scores"] == pytest.approx([expected[row] for row in rows], abs=1e-6)

    again([4])
    again(range(4, -1, -1), threads=1)
    again([*range(5)] * 14, threads=4, batch_tokens=17)


def test_the_result_is_plain_python_and_complete() -> None:
    result = movers.swms(TEXTS[:2], [TEXTS[1:4], TEXTS[4:]], return_alignment=True)
    assert json.loads(json.dumps(result)) == result
    assert {type(value) for value in result["scores"]} == {float} and type(result["score"]) is float
    assert [type(result[name]) for name in COUNTS] == [int] * 4
    assert set(result) == {*"score scores distances temperature signature alignments".split(), *COUNTS}


def test_references_may_stand_alone_in_lists_or_in_arrays() -> None:
    plain = movers.sms(TEXTS[:3], TEXTS[2:])
    assert movers.sms(TEXTS[:3], [[text] for text in TEXTS[2:]]) == plain
    assert movers.sms(np.array(TEXTS[:3]), np.array(TEXTS[2:])) == plain  # type: ignore[arg-type]


def test_a_progress_bar_counts_the_texts_and_is_silent_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    movers.wms(TEXTS[:4], TEXTS[1:])
    assert capsys.readouterr().err == ""
    movers.wms(TEXTS[:4], TEXTS[1:], progress=True)
    assert "wms:" in (shown := capsys.readouterr().err) and "0/4" in shown

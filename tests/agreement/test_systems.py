"""Tests of two systems' mean scores, against SciPy, sacreBLEU and exhaustive enumeration."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from movers import agreement
from movers.agreement.scoring import MetricCall
from movers.agreement.table import render_comparison
from movers.errors import InputError


def two_systems(n: int = 60, lead: float = 0.02, seed: int = 18) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(0.2, 0.8, size=n)
    return (difficulty + lead + 0.05 * rng.normal(size=n)).tolist(), (difficulty + 0.05 * rng.normal(size=n)).tolist()


def test_exact_randomisation_equals_scipys():
    a, b = two_systems(n=10, lead=0.03)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    ours = agreement.compare_systems(a, b).randomization
    assert ours.exact and ours.n_resamples == 1024
    assert ours.p == pytest.approx(theirs.pvalue)


def test_the_bootstrap_probability_is_that_of_all_possible_resamples():
    a, b = two_systems(n=5, lead=0.03)
    difference = np.array(a) - np.array(b)
    observed = difference.mean()
    every = np.array([difference[list(drawn)].mean() for drawn in itertools.product(range(5), repeat=5)])
    exact = np.mean(np.abs(every - observed) >= abs(observed) - 1e-12)
    assert agreement.compare_systems(a, b, n_resamples=20_000).bootstrap_p == pytest.approx(exact, abs=0.01)


class MeanOfNumbers:
    """The little that sacreBLEU's significance tests ask of a metric; its corpus score is the mean of its 'texts'."""

    def _extract_corpus_statistics(self, hypotheses, references):
        return [[float(text), 1.0] for text in hypotheses]

    def _compute_score_from_stats(self, totals):
        return SimpleNamespace(name="mean", score=float(totals[0] / totals[1]))

    def _aggregate_and_compute(self, rows):
        return self._compute_score_from_stats(np.sum(rows, axis=0))

    def get_signature(self):
        return SimpleNamespace(update=lambda key, value: None)


@pytest.mark.parametrize("lead", [0.015, 0.02, 0.03])
def test_both_tests_agree_with_sacrebleus(lead):
    significance = pytest.importorskip("sacrebleu.significance", reason="sacrebleu is in the extra `benchmarks`")
    a, b = two_systems(n=100, lead=lead)
    systems = [("b", [repr(score) for score in b]), ("a", [repr(score) for score in a])]
    theirs = {
        kind: significance.PairedTest(systems, {"mean": MeanOfNumbers()}, None, kind, n_samples=5000)()[1]["mean"][1]
        for kind in ("ar", "bs")
    }
    ours = agreement.compare_systems(a, b, n_resamples=5000, n_exchanges=5000)
    assert ours.randomization.p == pytest.approx(theirs["ar"].p_value, abs=0.02)
    # sacreBLEU takes absolute differences before it centres them, which leaves the upper tail (exact for clear leads).
    assert ours.bootstrap_p / 2 == pytest.approx(theirs["bs"].p_value, abs=0.02)
    assert ours.a.value == pytest.approx(theirs["bs"].score, abs=1e-6)
    assert (ours.a.high - ours.a.low) / 2 == pytest.approx(theirs["bs"].ci, rel=0.1)


def test_identical_systems_are_not_different():
    a, _ = two_systems()
    found = agreement.compare_systems(a, a)
    assert (found.difference.value, found.bootstrap_p, found.randomization.p) == (0.0, 1.0, 1.0)


# --- systems' texts --------------------------------------------------------------------------------------------------

REFERENCES = [["A dog runs in the park."], ["The sun is shining today."], ["She reads a long book."]] * 4
TEXTS = {
    "zebra.txt": ["Stocks fell on Monday."] * 12,
    "apple.txt": [group[0] for group in REFERENCES],
    "copy.txt": [group[0] for group in REFERENCES],
}


def compared(names, **options):
    texts = {name: TEXTS[name] for name in names}
    return agreement.compare_texts(
        texts, [MetricCall("wms", "wms"), MetricCall("sms", "sms")], references=REFERENCES, progress=False, **options
    )


@pytest.mark.parametrize("names", [["zebra.txt", "apple.txt"], ["apple.txt", "zebra.txt"]])
def test_the_given_order_and_names_are_kept_and_the_better_system_is_marked(names):
    tests = compared(names)
    assert [(test.metric, test.a, test.b, test.better) for test in tests] == [
        ("wms", *names, "apple.txt"),
        ("sms", *names, "apple.txt"),
    ]
    heading, _, wms, sms, *_ = render_comparison(tests, "text").splitlines()
    assert heading.split()[:3] == ["metric", "A", "B"] and heading.endswith("better")
    assert wms.split()[:3] == ["wms", *names] and wms.endswith("apple.txt")


def test_systems_that_do_not_differ_are_not_marked():
    tests = compared(["apple.txt", "copy.txt", "zebra.txt"])
    assert [(test.b, test.better) for test in tests[:2]] == [("copy.txt", None), ("zebra.txt", "apple.txt")]
    assert render_comparison(tests[:1], "text").splitlines()[2].endswith("–")


def test_a_comparison_shows_signatures_in_every_format():
    tests = compared(["apple.txt", "zebra.txt"])
    text, markdown = (render_comparison(tests, format) for format in ("text", "markdown"))
    for test in tests:
        assert test.signature.startswith(f"{test.metric}|")
        assert f"{test.metric}: {test.signature}" in text and test.signature in markdown
    rows = json.loads(render_comparison(tests, "json"))
    assert [row["signature"] for row in rows] == [test.signature for test in tests]
    assert rows[0]["difference"] == pytest.approx(rows[0]["mean_a"] - rows[0]["mean_b"])
    assert len(render_comparison(tests, "csv").splitlines()) == 3


@pytest.mark.parametrize(
    ("systems", "references", "message"),
    [
        ({"a": ["x"]}, [["x"]], "expected at least two systems, but got 1"),
        ({"a": ["x", "y"], "b": ["x"]}, [["x"], ["y"]], r"b: expected as many rows as a has \(2\), but got 1"),
        ({"a": ["x"], "b": ["y"]}, [["x"], ["y"]], r"references: expected as many rows as a has \(1\), but got 2"),
        ({"a": ["x"], "b": ["y"]}, None, "wms: expected references to compare with, but got none"),
    ],
)
def test_systems_that_cannot_be_compared_are_named(systems, references, message):
    with pytest.raises(InputError, match=f"^compare: {message}"):
        agreement.compare_texts(systems, [MetricCall("wms", "wms")], references=references, progress=False)

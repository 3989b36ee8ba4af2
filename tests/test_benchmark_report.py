"""Every figure of README, guides, cards and result pages is a row of a suite's results."""

from __future__ import annotations

import doctest
import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tiny import ROOT

DECLARED = [
    {"document": "a.md", "figure": ".64", "suite": "s", "table": "t", "row": "r", "column": "c", "source": ""},
    {"document": "a.md", "figure": "13", "suite": "s", "table": "t", "row": "r", "column": "n", "source": ""},
    {"document": "a.md", "figure": "60", "suite": "", "table": "", "row": "", "column": "", "source": "protocol: …"},
    {"document": "a.md", "figure": ".719", "suite": "", "table": "", "row": "", "column": "", "source": "published: …"},
]
ROWS = {("s", "t", "r", "c"): ["0.63", "0.65"], ("s", "t", "r", "n"): ["13"]}  # two seeds, whose mean is .64
TEXT = "It has .64, for 13 of 60 texts, with `x=.5`; the paper .719."


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script; modules of other folders have the same names."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("report", "common"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("report")


def test_every_figure_of_the_documents_has_its_row(benchmarks: ModuleType) -> None:
    lines = benchmarks.all_figures()
    assert len(lines) > 100
    assert [line for line, right in lines if not right] == []


@pytest.mark.parametrize("suite", ["mbr", "quality", "settings", "speed"])
def test_a_page_shows_what_its_rows_say(benchmarks: ModuleType, tmp_path: Path, suite: str) -> None:
    """Those of agreement and rewards have tests of their own."""
    page = (ROOT / "benchmarks" / suite / "RESULTS.md").read_text(encoding="utf-8")
    shutil.copytree(ROOT / "benchmarks" / suite, tmp_path / suite)
    importlib.import_module("common").report(tmp_path / suite)
    assert (tmp_path / suite / "RESULTS.md").read_text(encoding="utf-8") == page


def test_what_a_figure_is(benchmarks: ModuleType) -> None:
    failed, attempted = doctest.testmod(benchmarks)
    assert attempted >= 3 and not failed


def test_a_figure_is_followed_to_its_row_or_its_source(benchmarks: ModuleType) -> None:
    lines = list(benchmarks.check_figures("a.md", TEXT, DECLARED, ROWS))
    assert lines == [
        ("a.md: .64  s t | r | c", True),
        ("a.md: 13  s t | r | n", True),
        ("a.md: 60  protocol: …", True),
        ("a.md: .719  published: …", True),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (".64, for", ".65, for"),  # changed
        (".64, for 13 of", ".64, .13, for 13 of"),  # added
        (" 13 of", " some of"),  # deleted
        (" .719.", " .719 and .64."),  # said twice
        ("of 60", "of 70"),
        (" texts,", " texts of 1,300,"),
        (".64, for 13 of 60 texts", ".719, for 13 of 60 texts, .64"),  # exchanged
    ],
)
def test_a_changed_text_is_noticed(benchmarks: ModuleType, before: str, after: str) -> None:
    assert before in TEXT
    lines = benchmarks.check_figures("a.md", TEXT.replace(before, after), DECLARED, ROWS)
    assert not all(right for _, right in lines)


def test_a_changed_row_is_noticed(benchmarks: ModuleType) -> None:
    for rows in (ROWS | {("s", "t", "r", "c"): ["0.6", "0.65"]}, {}):
        assert not all(right for _, right in benchmarks.check_figures("a.md", TEXT, DECLARED, rows))


def test_figures_of_another_version_are_listed_unless_a_reason_is_given(
    benchmarks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    common = importlib.import_module("common")
    suite = tmp_path / "settings"
    suite.mkdir()
    (suite / "RESULTS.md").write_text("<!-- table: training -->\n<!-- end -->\n", encoding="utf-8")
    common.add_rows(suite, [{"table": "training", "row": "r", "column": "c", "value": 1, "version": "0.0.1"}])
    common.save_results(suite, "scores", {"r": {"c": 2, "d": 3}})
    common.save_results(suite, "scores", {"r": {"c": 4}})
    monkeypatch.setattr(benchmarks, "HERE", tmp_path)
    assert common.read_results(suite)["scores"] == {"r": {"c": "4"}}
    assert [right for _, right in benchmarks.stale()] == [False]
    monkeypatch.setitem(common.OTHER_VERSIONS, ("settings", "train", "0.0.1"), "the code of training is the same.")
    common.report(suite)
    assert [right for _, right in benchmarks.stale()] == [True]
    page = (suite / "RESULTS.md").read_text(encoding="utf-8")
    assert "| r | 1 |\n\nMeasured with movers 0.0.1: the code of training is the same.\n" in page

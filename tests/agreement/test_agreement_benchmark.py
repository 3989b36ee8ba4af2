"""The benchmark that rebuilds the papers' tables."""

from __future__ import annotations

import importlib
import shutil
import sys

import pytest
from samples import GRADED
from scipy import stats
from tiny import ROOT

import movers
from movers.agreement.judged import read_judged

FOLDER = ROOT / "benchmarks" / "agreement"


@pytest.fixture
def scripts(monkeypatch):
    """Import a script; those of other folders have modules of the same names."""
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("run", "tables", "papers", "layout", "pages", "common", "clark"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


def test_figures_are_what_scipy_finds_for_the_metrics_own_scores(scripts, tmp_path, monkeypatch):
    run, layout = scripts("run"), scripts("layout")
    rows = (
        layout.Row(layout.call("words", "wms"), "WMS", {"adequacy": 0.180}),
        layout.Row(layout.call("s", "sms")),
        layout.Row(layout.call("far", "wms", "distances")),
        layout.Row(layout.call("gone", "wms", model="data/vectors/gone.txt")),
    )
    small = layout.Table("small", "A small table", "graded", ("adequacy",), rows, "spearman", baseline="words")
    monkeypatch.setattr(run, "TABLES", {"small": small})
    (tmp_path / "graded.jsonl").write_bytes(GRADED.read_bytes())
    run.main(["--data", str(tmp_path), "--out", str(tmp_path)])
    judged = read_judged(GRADED)
    texts, references = zip(*((text.candidate, list(text.references)) for text in judged.texts), strict=True)
    result = movers.wms(list(texts), list(references))
    (words, other, far), (test, _) = (
        [figure for figure in run.read_rows(tmp_path) if (figure["column"] == "adequacy") is is_coefficient]
        for is_coefficient in (True, False)
    )
    for figure, values, sign in ((words, result["scores"], 1), (far, result["distances"], -1)):
        expected = sign * stats.spearmanr(values, judged.human("adequacy")).statistic
        assert float(figure["value"]) == pytest.approx(expected)
    assert float(words["low"]) < float(words["value"]) < float(words["high"])
    assert (words["n"], words["metric"]) == (str(len(judged)), "wms") and words["signature"].startswith("wms|")
    assert (other["row"], test["column"]) == ("s", "better than words") and 0 < float(test["value"]) < 1
    lines = [line for line in (tmp_path / "RESULTS.md").read_text(encoding="utf-8").splitlines() if "| " in line]
    assert lines[0] == "| metric | options | row of the paper | adequacy | paper | better than words |"
    assert "| WMS |" in lines[2] and "| .180 |" in lines[2]


@pytest.mark.parametrize(("summary", "as_printed"), [(2, False), (1, True), (2, True)])
def test_repetition_costs_sms_most_and_wms_least_as_clark_et_al_print(scripts, monkeypatch, summary, as_printed):
    """Table 1. Not so with our defaults where the repeated words are in the passage (summary 1)."""
    clark = scripts("clark")
    monkeypatch.chdir(ROOT)
    if as_printed and not (ROOT / clark.GLOVE).exists():
        pytest.skip("needs the word vectors of `make data`")
    options = {"preset": "paper", "model": clark.GLOVE} if as_printed else {}
    texts = [form.format(*clark.PHRASES[summary - 1]) for form in clark.ALTERED.values()]
    costs = {}
    for metric in clark.calls(**options):
        score, moved, repeated = getattr(movers, metric.name)(texts, [clark.REFERENCE] * 3, **options)["scores"]
        assert moved == pytest.approx(score)
        costs[metric.label] = 1 - repeated / score
    assert costs["SMS"] > costs["S+WMS"] > costs["WMS"]


def test_pairs_ranked_right_counts_ties_as_half_and_stays_inside_documents(scripts):
    scores, human = [0.9, 0.2, 0.5, 0.5, 0.1, None], [1, 0, 1, 0, 0, 1]
    documents = ["a", "a", "b", "b", "c", "c"]
    assert scripts("run").pairs_ranked_right(scores, human, documents) == {"value": 0.75, "n": 2}


def test_the_committed_page_is_that_of_the_committed_figures(scripts, tmp_path):
    pages, tables = scripts("pages"), scripts("tables")
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    page = pages.write_page(tmp_path, tables.TABLES).read_text(encoding="utf-8")
    assert page == (FOLDER / "RESULTS.md").read_text(encoding="utf-8")

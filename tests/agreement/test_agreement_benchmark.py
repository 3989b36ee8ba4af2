"""The benchmark that rebuilds the papers' tables: what it computes, and that nothing is computed twice."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from samples import GRADED
from scipy import stats
from tiny import ROOT

import movers
from movers.agreement.judged import read_judged


def forget() -> None:
    """Scripts of other folders have modules of the same names."""
    for name in ("run", "tables", "papers", "layout", "pages", "common"):
        sys.modules.pop(name, None)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """The script with small tables on the graded set instead of the papers', from tmp_path/data to tmp_path."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    forget()
    module, layout = importlib.import_module("run"), importlib.import_module("layout")
    small = (
        layout.Table(
            name="small",
            title="A small table",
            data="graded",
            humans=("adequacy",),
            coefficient="spearman",
            baseline="words",
            rows=(
                layout.Row(layout.call("words", "wms"), "WMS", {"adequacy": 0.180}),
                layout.Row(layout.call("sentences", "sms"), differs_from="words", paper_p=0.35),
            ),
        ),
        layout.Table(
            name="grouped",
            title="A table with groups",
            data="graded",
            humans=("adequacy",),
            group="genre",
            groups=("news", "sport"),
            means={"both": ("news", "sport")},
            rows=(layout.Row(layout.call("words", "wms")),),
        ),
        layout.Table(name="absent", title="No data", data="nowhere", humans=("x",), rows=()),
    )
    monkeypatch.setattr(module, "TABLES", {table.name: table for table in small})
    (tmp_path / "data" / "human").mkdir(parents=True)
    lines = GRADED.read_text(encoding="utf-8").splitlines(keepends=True)
    chosen = [line for line in lines if json.loads(line)["genre"] in ("news", "sport", "law")]
    (tmp_path / "data" / "human" / "graded.jsonl").write_text("".join(chosen), encoding="utf-8")

    def call(*arguments: str) -> dict[tuple[str, str, str], dict[str, str]]:
        module.main(["--data", str(tmp_path / "data"), "--out", str(tmp_path), *arguments])
        return {(one["table"], one["row"], one["column"]): one for one in module.read_results(tmp_path)}

    call.module = module
    yield call
    forget()


def test_figures_are_what_scipy_finds_for_the_metrics_own_scores(run, tmp_path, capsys):
    figures = run()
    judged = read_judged(tmp_path / "data" / "human" / "graded.jsonl")
    texts, references = zip(*((text.candidate, list(text.references)) for text in judged.texts), strict=True)
    result = movers.wms(list(texts), list(references))
    words = figures["small", "words", "adequacy"]
    expected = stats.spearmanr(result["scores"], judged.human("adequacy")).statistic
    assert float(words["value"]) == pytest.approx(expected)
    assert float(words["low"]) < expected < float(words["high"])
    assert (words["n"], words["metric"], words["signature"]) == ("21", "wms", result["signature"])
    news = [row for row, genre in enumerate(judged.labels("genre")) if genre == "news"]
    expected = stats.pearsonr([result["scores"][row] for row in news], range(6, -1, -1)).statistic
    values = [float(figures["grouped", "words", column]["value"]) for column in ("news", "sport", "both")]
    assert values[0] == pytest.approx(expected) and values[2] == pytest.approx((values[0] + values[1]) / 2)
    # The same difference, tested one-sided as an improvement and two-sided.
    better, differs = (
        float(figures["small", "sentences", f"{kind} words"]["value"]) for kind in ("better than", "differs from")
    )
    assert differs == pytest.approx(2 * min(better, 1 - better))
    assert "absent: no nowhere.jsonl.gz in" in capsys.readouterr().err


def test_the_page_has_the_papers_column_beside_ours(run, tmp_path):
    run()
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    heading = (
        "| metric | options | row of the paper | adequacy | paper | better than words | differs from | p | paper |"
    )
    assert lines[0] == heading
    assert "| WMS |" in lines[2] and "| .180 |" in lines[2]
    assert lines[3].endswith("| 0.35 |") and "| words | 0." in lines[3]
    assert "## A table with groups" in page and "No data" not in page


def test_only_lines_that_are_missing_or_outdated_are_scored(run, tmp_path, monkeypatch):
    figures = run()
    scored = []
    score_judged = run.module.score_judged
    monkeypatch.setattr(
        run.module,
        "score_judged",
        lambda texts, calls, **options: (
            scored.extend(call.name for call in calls) or score_judged(texts, calls, **options)
        ),
    )
    assert run() == figures and not scored
    results = tmp_path / "results.csv"
    kept = [line for line in results.read_text(encoding="utf-8").splitlines(keepends=True) if "sentences" not in line]
    results.write_text("".join(kept), encoding="utf-8")
    assert run() == figures and sorted(scored) == ["sms", "wms"]  # wms is what sms is tested against
    path = tmp_path / "data" / "human" / "graded.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:14]), encoding="utf-8")
    assert run("--tables", "small")["small", "words", "adequacy"]["n"] == "14"


def test_the_committed_page_shows_every_table_of_the_committed_figures(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    forget()
    pages, tables = importlib.import_module("pages"), importlib.import_module("tables")
    folder = Path(tables.__file__).parent
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    results = pages.read_results(folder)
    for table in tables.TABLES.values():
        assert "\n".join(pages.render_table(table, results)) in page
    forget()

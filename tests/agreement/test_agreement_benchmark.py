"""The benchmark that rebuilds the papers' tables: what it computes, and that nothing is computed twice."""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from samples import GRADED
from scipy import stats
from tiny import ROOT

import movers
from movers.agreement import scoring
from movers.agreement.readers import read_file


def forget() -> None:
    """Scripts of other folders have modules of the same names."""
    for name in ("run", "tables", "papers", "layout", "pages", "passage", "figures", "store", "common"):
        sys.modules.pop(name, None)


@pytest.fixture
def run(monkeypatch):
    """The script as a module, with two small tables on the graded set instead of the papers'."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    forget()
    module = importlib.import_module("run")
    tables = importlib.import_module("layout")
    small = (
        tables.Table(
            name="small",
            title="A small table",
            data="graded",
            humans=("adequacy",),
            coefficient="spearman",
            baseline="words",
            rows=(
                tables.Row(tables.call("words", "wms"), "WMS", {"adequacy": 0.180}),
                tables.Row(tables.call("sentences", "sms"), differs_from="words", paper_p=0.35),
                tables.Row(tables.call("later", "metric_of_the_future")),
                tables.Row(tables.call("too late", "wms", option_of_the_past=1)),
            ),
        ),
        tables.Table(
            name="grouped",
            title="A table with groups",
            data="graded",
            humans=("adequacy",),
            group="genre",
            groups=("news", "sport"),
            means={"both": ("news", "sport")},
            rows=(tables.Row(tables.call("words", "wms")),),
        ),
        tables.Table(name="absent", title="No data", data="nowhere", humans=("x",), rows=()),
    )
    monkeypatch.setattr(module, "TABLES", {table.name: table for table in small})
    yield module
    forget()


@pytest.fixture
def data(tmp_path) -> Path:
    (tmp_path / "data" / "human").mkdir(parents=True)
    shutil.copy(GRADED, tmp_path / "data" / "human")
    return tmp_path / "data"


def cell(out: Path, table: str, row: str) -> dict:
    return json.loads((out / "cells" / table / f"{row}.json").read_text(encoding="utf-8"))


def test_cells_hold_what_scipy_finds_for_the_metrics_own_scores(run, data, tmp_path, capsys):
    assert run.main(["--data", str(data), "--out", str(tmp_path)]) == 0
    judged = read_file(GRADED)
    texts = [text.candidate for text in judged.texts]
    scores = movers.wms(texts, [list(text.references) for text in judged.texts])["scores"]
    found = cell(tmp_path, "small", "words")["columns"]["adequacy"]
    assert found["value"] == pytest.approx(stats.spearmanr(scores, judged.human("adequacy")).statistic)
    assert found["low"] < found["value"] < found["high"] and found["n"] == 140
    grouped = cell(tmp_path, "grouped", "words")["columns"]
    news = [row for row, genre in enumerate(judged.labels("genre")) if genre == "news"]
    expected = stats.pearsonr([scores[row] for row in news], [6 - place for place in range(7)]).statistic
    assert grouped["news"]["value"] == pytest.approx(expected)
    assert list(grouped) == ["news", "sport", "mean", "both"]
    assert grouped["both"]["value"] == pytest.approx((grouped["news"]["value"] + grouped["sport"]["value"]) / 2)
    sentences = cell(tmp_path, "small", "sentences")
    assert 0 < sentences["williams_p"] <= 1
    # The same difference, tested one-sided as an improvement and two-sided.
    assert sentences["differs"]["row"] == "words"
    assert sentences["differs"]["p"] == pytest.approx(2 * min(sentences["williams_p"], 1 - sentences["williams_p"]))
    told = capsys.readouterr().err
    assert "small: not in this version: later; too late" in told
    assert "absent: no nowhere.jsonl.gz in" in told


def test_the_page_has_the_papers_column_beside_ours(run, data, tmp_path):
    run.main(["--data", str(data), "--out", str(tmp_path)])
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    heading = next(line for line in page.splitlines() if line.startswith("| metric"))
    assert (
        heading
        == "| metric | options | row of the paper | adequacy | paper | better than words | differs from | p | paper |"
    )
    words = next(line for line in page.splitlines() if line.startswith("| words"))
    assert "| WMS |" in words and "| .180 |" in words
    sentences = next(line for line in page.splitlines() if line.startswith("| sentences"))
    assert sentences.endswith("| 0.35 |") and "| words | 0." in sentences
    assert "## A table with groups" in page and "No data" not in page


def test_a_second_run_scores_nothing(run, data, tmp_path, monkeypatch):
    run.main(["--data", str(data), "--out", str(tmp_path)])
    page = (tmp_path / "RESULTS.md").read_bytes()
    monkeypatch.setattr(run, "score_judged", lambda *_, **__: pytest.fail("scored again"))
    run.main(["--data", str(data), "--out", str(tmp_path)])
    assert (tmp_path / "RESULTS.md").read_bytes() == page


def test_a_changed_set_is_scored_anew(run, data, tmp_path):
    run.main(["--data", str(data), "--out", str(tmp_path)])
    before = cell(tmp_path, "small", "words")
    path = data / "human" / "graded.jsonl"
    path.write_text("\n".join(path.read_text(encoding="utf-8").splitlines()[:70]) + "\n", encoding="utf-8")
    run.main(["--data", str(data), "--out", str(tmp_path)])
    after = cell(tmp_path, "small", "words")
    assert after["columns"]["adequacy"]["n"] == 70 and after["data_sha256"] != before["data_sha256"]


def test_an_interrupted_run_loses_no_block(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "_BLOCK", 40)
    append = run.ScoreStore.append
    written = []

    def stop_after_three(self, path, scores, signature):
        append(self, path, scores, signature)
        written.append(len(scores))
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(run.ScoreStore, "append", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        run.main(["--data", str(data), "--out", str(tmp_path), "--tables", "small"])
    (words,) = (tmp_path / ".scores" / "graded").glob("wms-*.jsonl")
    # A run that is killed may leave half a line.
    with words.open("a", encoding="utf-8") as file:
        file.write('{"signature": "wms')
    monkeypatch.setattr(run.ScoreStore, "append", append)
    run.main(["--data", str(data), "--out", str(tmp_path), "--tables", "small"])
    blocks = [line for line in words.read_text(encoding="utf-8").splitlines() if line.endswith("}}")]
    assert [len(json.loads(line)["scores"]) for line in blocks] == [40, 40, 40, 20]
    assert len(run.ScoreStore(tmp_path / ".scores").read(words)[0]) == 140
    assert cell(tmp_path, "small", "words")["columns"]["adequacy"]["n"] == 140


def test_tables_over_the_same_texts_share_one_pass(run, data, tmp_path, monkeypatch):
    small = run.TABLES["small"]
    twin = dataclasses.replace(small, name="twin", coefficient="pearson", rows=small.rows[1:2] + (small.rows[0],))
    monkeypatch.setitem(run.TABLES, "twin", twin)
    passes = []

    def count(texts, calls, **options):
        known = options["known"]
        passes.append([call.name for call in calls if len(known[call.label]) < len(texts)])
        return score_judged(texts, calls, **options)

    score_judged = run.score_judged
    monkeypatch.setattr(run, "score_judged", count)
    run.main(["--data", str(data), "--out", str(tmp_path), "--tables", "small,twin"])
    assert [names for names in passes if names] == [["wms", "sms"]]
    judged = read_file(GRADED)
    references = [list(text.references) for text in judged.texts]
    scores = movers.sms([text.candidate for text in judged.texts], references)["scores"]
    for name, coefficient in (("small", stats.spearmanr), ("twin", stats.pearsonr)):
        found = cell(tmp_path, name, "sentences")["columns"]["adequacy"]["value"]
        assert found == pytest.approx(coefficient(scores, judged.human("adequacy")).statistic)


def test_metrics_of_an_older_version_are_scored_again_on_demand(run, data, tmp_path, monkeypatch, capsys):
    arguments = ["--data", str(data), "--out", str(tmp_path), "--tables", "small"]
    run.main(arguments)
    monkeypatch.setattr(run, "VERSION", "99")
    run.main([*arguments, "--again", "sms"])
    assert "small: 1 of 2 rows to do" in capsys.readouterr().err
    assert (cell(tmp_path, "small", "sentences")["version"], cell(tmp_path, "small", "words")["version"]) != (
        "99",
        "99",
    )
    assert cell(tmp_path, "small", "sentences")["version"] == "99"


def test_the_mnli_rows_appear_with_a_tuned_encoder_only(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    forget()
    all_tables = importlib.import_module("tables").all_tables
    forget()
    for tuned in (None, "some/tuned-encoder"):
        rows = [row for table in all_tables(tuned).values() for row in table.rows if "MNLI" in row.stands_for]
        assert {row.call.options.get("model") for row in rows} == ({tuned} if tuned else set())
    for row in all_tables()["zhao-table-1"].rows:  # all of the paper's movers weigh by IDF
        assert ("WMD" in row.stands_for or "SMD" in row.stands_for) <= (row.call.options.get("idf") == "corpus")


def test_an_unknown_table_lists_the_known_ones(run, data):
    with pytest.raises(SystemExit, match="unknown table 'big'; there are small, grouped, absent"):
        run.main(["--data", str(data), "--tables", "big"])


def test_every_paper_number_stands_in_a_column_of_its_table(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    forget()
    known = importlib.import_module("tables").all_tables("some/tuned-encoder")
    forget()
    assert {"clark-table-2", "zhao-table-1", "zhao-table-3", "zhao-table-5", "zhao-table-6"} <= set(known)
    for table in known.values():
        labels = [row.call.label for row in table.rows]
        assert len(set(labels)) == len(labels) and (table.baseline is None or table.baseline in labels)
        for row in table.rows:
            assert set(row.paper) <= set(table.columns)
            assert bool(row.paper) == bool(row.stands_for)
    for row in known["zhao-table-1"].rows:
        if row.paper:
            pairs = [number for column, number in row.paper.items() if column != "mean"]
            # The paper prints the mean of its seven columns; three decimals of each leave it to 0.001.
            assert sum(pairs) / 7 == pytest.approx(row.paper["mean"], abs=0.0015)

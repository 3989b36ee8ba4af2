"""`movers correlate` from a judged set to its table."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

import movers

from cli_texts import Failure, Run  # isort: skip

GRADED = Path(__file__).parents[1] / "data" / "graded.jsonl"
ROWS = [json.loads(line) for line in GRADED.read_text(encoding="utf-8").splitlines()]
QUALITY = "reference_free_summary_quality"
Correlate = Callable[..., str]


@pytest.fixture
def correlate(run: Run) -> Correlate:
    def call(*arguments: object) -> str:
        code, out, _ = run("correlate", "--data", GRADED, "--resamples", 50, *arguments)
        assert code == 0
        return out

    return call


def test_it_prints_what_scipy_finds_for_the_metrics_own_scores(correlate: Correlate) -> None:
    rows = json.loads(correlate("--metrics", "wms,wms[stopwords=none]", "--human", "adequacy", "--json"))
    texts, references = [row["candidate"] for row in ROWS], [row["references"] for row in ROWS]
    human = [row["scores"]["adequacy"] for row in ROWS]
    assert [row["metric"] for row in rows] == ["wms", "wms[stopwords=none]"]
    for row, options in zip(rows, ({}, {"stopwords": None}), strict=True):
        result = movers.wms(texts, references, **options)
        for name, function in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
            assert row[name] == pytest.approx(function(result["scores"], human).statistic)
        assert row["signature"] == result["signature"]
        assert (row["human"], row["level"], row["group"], row["n"]) == ("adequacy", "segment", "all", len(ROWS))
    assert set(rows[0]["williams_p"]) == {"wms[stopwords=none]"}


@pytest.mark.parametrize(
    ("name", "begins"), [("table.md", "| metric |"), ("table.csv", "metric,human,"), ("table.txt", "metric  human")]
)
def test_the_suffix_of_the_output_chooses_the_format(
    correlate: Correlate, tmp_path: Path, name: str, begins: str
) -> None:
    assert correlate("--metrics", "wms", "--output", tmp_path / name) == ""
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_plots_are_written_beside_the_table(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plots`")
    folder = tmp_path / "plots"
    err = run("correlate", "--data", GRADED, "--resamples", 20, "--metrics", "wms,sms", "--plots", folder)[2]
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["distribution_adequacy.png", "metrics_adequacy.png"]
    assert sorted(err.splitlines()) == [str(folder / name) for name in names]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "wmss"], "expected one of wms, sms, .*, but got 'wmss' .did you mean 'wms'"),
        (["--metrics", "wms[stopword=none]"], "unknown option 'stopword'"),
        (["--metrics", "wms", "--human", "fluency"], "fluency"),
        (["--metrics", "wms", "--resamples", "0"], "n_resamples"),
        (["--metrics", "wms", "--output", "table.png"], "expected a name that ends in .txt or .md or .csv or .json"),
    ],
)
def test_what_cannot_be_correlated_is_named(failure: Failure, arguments: list[str], message: str) -> None:
    assert re.search(message, failure("correlate", "--data", GRADED, *arguments))


@pytest.mark.parametrize("column", ["human", "score", "grade"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_with_the_obvious_columns_is_correlated(
    run: Run, failure: Failure, tmp_path: Path, kind: str, column: str
) -> None:
    names, texts = ["summary", "reference", "article", column], [row["candidate"] for row in ROWS[:21]]
    references = [row["references"][0] for row in ROWS[:21]]
    rows = [dict(zip(names, row, strict=True)) for row in zip(texts, references, references, range(21), strict=True)]
    with (tmp_path / f"judged.{kind}").open("w", newline="") as file:
        if kind == "csv":
            csv.writer(file).writerows([names, *(row.values() for row in rows)])
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    command = ["correlate", "--data", file.name, "--metrics", f"wms,{QUALITY},chrf", "--resamples", 10]
    if column == "grade":
        error = failure(*command).splitlines()
        assert error[1:3] == ["prediction,reference,human", "A cat sat.,The cat sat.,4"]
        assert error[3].endswith("summary, reference, article, grade; --human names the column of human scores")
        assert failure(*command, "--human", "mark").endswith("reference, article, grade; none with numbers is mark")
        command += ["--human", "grade"]
    code, out, err = run(*command, "--device", "cpu", "--json")
    assert (code, err) == (0, "")
    for row in json.loads(out)[:2]:
        scores = getattr(movers, row["metric"])(texts, references)["scores"]
        assert (row["human"], row["n"]) == (column, 21)
        assert row["pearson"] == pytest.approx(stats.pearsonr(scores, range(21)).statistic, abs=1e-6)


def test_texts_that_a_metric_needs_are_named_and_a_missing_file_at_once(failure: Failure, tmp_path: Path) -> None:
    (tmp_path / "judged.csv").write_text("prediction,text,human\nA steep road.,A road.,2\nHot.,Sun.,1\n")
    error = failure("correlate", "--data", tmp_path / "judged.csv", "--metrics", "wms")
    assert error.endswith(f"but wms compares with references, and no row of {tmp_path / 'judged.csv'} has any")
    assert failure("correlate", "--data", "nofile", "--metrics", "moverscore") == "nofile: no such file"


def test_a_reference_essay_is_a_reference_of_every_text(run: Run, tmp_path: Path) -> None:
    (tmp_path / "essays.csv").write_text("candidate,scores.grade\nA steep road.,2\nHot.,1\nNo water.,0\n")
    (tmp_path / "reference.txt").write_text("The road was steep.\nIt was hot.\n")
    arguments = ["--data", tmp_path / "essays.csv", "--reference", tmp_path / "reference.txt", "--resamples", 10]
    (row,) = json.loads(run("correlate", *arguments, "--metrics", "wms", "--json")[1])
    texts = ["A steep road.", "Hot.", "No water."]
    scores = movers.wms(texts, ["The road was steep. It was hot."] * 3)["scores"]
    assert (row["human"], row["n"]) == ("grade", 3)
    assert row["pearson"] == pytest.approx(stats.pearsonr(scores, [2, 1, 0]).statistic)

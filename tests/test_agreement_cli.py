"""`movers correlate` and `movers compare` from arguments to output."""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import stats

import movers
from movers.agreement_cli import add_parsers, parse_metrics
from movers.judged import read_file

GRADED = Path(__file__).parent / "data" / "graded.jsonl"


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers(required=True))
    parsed = parser.parse_args([str(argument) for argument in arguments])
    return parsed.run(parsed)


def correlate(*arguments: object) -> int:
    return run("correlate", "--data", GRADED, "--resamples", 50, *arguments)


def test_correlate_prints_what_scipy_finds_for_the_metrics_own_scores(capsys):
    assert correlate("--metrics", "wms,wms[stopwords=none]", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    judged = read_file(GRADED)
    texts = [text.candidate for text in judged.texts]
    references = [list(text.references) for text in judged.texts]
    assert [row["metric"] for row in rows] == ["wms", "wms[stopwords=none]"]
    for row, options in zip(rows, ({}, {"stopwords": None}), strict=True):
        result = movers.wms(texts, references, **options)
        assert row["spearman"] == pytest.approx(stats.spearmanr(result["scores"], judged.human("adequacy")).statistic)
        assert row["signature"] == result["signature"]
        assert (row["human"], row["level"], row["group"], row["n"]) == ("adequacy", "segment", "all", 140)
    assert set(rows[0]["williams_p"]) == {"wms[stopwords=none]"}


@pytest.mark.parametrize(("level", "units"), [("summary", 20), ("system", 7)])
def test_levels_group_by_the_fields_of_the_set(capsys, level, units):
    correlate("--metrics", "wms", "--level", level, "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["level"], row["units"], row["n"]) == (level, units, 140)


def test_groups_and_conditions_choose_the_texts(capsys):
    correlate("--metrics", "wms", "--group", "genre", "--where", "genre!=news", "--where", "genre!=law", "--json")
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 19
    assert [row["n"] for row in rows] == [7] * 18 + [126]
    assert rows[-1]["group"] == "mean"
    assert rows[-1]["spearman"] == pytest.approx(sum(row["spearman"] for row in rows[:-1]) / 18)


def test_a_reference_that_was_judged_itself_is_skipped_and_counted(tmp_path, capsys):
    rows = [json.loads(line) for line in GRADED.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["is_reference"] = row["system"] == "same"
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run("correlate", "--data", path, "--metrics", "wms", "--resamples", 10, "--json")
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["n"], found["skipped_reference_texts"]) == (120, 20)


@pytest.mark.parametrize(
    ("name", "begins"), [("table.md", "| metric |"), ("table.csv", "metric,human,"), ("table.txt", "metric  human")]
)
def test_the_ending_of_the_output_file_chooses_the_format(tmp_path, name, begins):
    correlate("--metrics", "wms", "--output", tmp_path / "new" / name)
    assert (tmp_path / "new" / name).read_text(encoding="utf-8").startswith(begins)


def test_csv_holds_every_field(capsys):
    correlate("--metrics", "wms", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["metric"] == "wms" and 0 < float(row["kendall_c_low"]) < float(row["kendall_c_high"]) < 1


def test_plots_are_written_beside_the_table(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plots`")
    correlate("--metrics", "wms,sms", "--plots", tmp_path / "pictures")
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["correlation.png", "distribution_adequacy.png", "metrics_adequacy.png", "systems_adequacy.png"]
    assert "correlation.png" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "wmss"], "expected one of wms, .* but got 'wmss'"),
        (["--metrics", "wms[stopword=none]"], "unknown option 'stopword'"),
        (["--metrics", "wms", "--human", "fluency"], "graded has no human score 'fluency'; it has adequacy"),
        (["--metrics", "wms", "--group", "lp"], "graded, row 0: field 'lp' is missing"),
        (["--metrics", "wms", "--where", "genre=opera"], "no text of graded meets genre=opera"),
        (["--metrics", "wms", "--resamples", "0"], "`n_resamples` must be at least 1"),
    ],
)
def test_what_cannot_be_correlated_is_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        correlate(*arguments)


def test_lexical_metrics_take_options_in_the_same_brackets():
    calls = parse_metrics("rouge[variant=rouge1,stemmer=true], chrf ,wms[stopwords=none,normalize=true]")
    assert [(call.name, dict(call.options)) for call in calls] == [
        ("rouge", {"variant": "rouge1", "stemmer": True}),
        ("chrf", {}),
        ("wms", {"stopwords": None, "normalize": True}),
    ]


# --- compare ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """Twenty paraphrases, the same number of off-topic texts, their references."""
    judged = read_file(GRADED)
    grades = judged.labels("system")
    texts = {
        "good": [text.candidate for text, grade in zip(judged.texts, grades, strict=True) if grade == "paraphrase"],
        "bad": [text.candidate for text, grade in zip(judged.texts, grades, strict=True) if grade == "off_topic"],
        "references": [text.references[0] for text, grade in zip(judged.texts, grades, strict=True) if grade == "same"],
    }
    for name, lines in texts.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_a_better_system_is_found_better(files, capsys):
    assert (
        run("compare", files["bad"], files["good"], "--references", files["references"], "--metric", "sms", "--json")
        == 0
    )
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["metric"], row["a"], row["b"], row["n"]) == ("sms", str(files["good"]), str(files["bad"]), 20)
    assert row["difference"] == pytest.approx(row["mean_a"] - row["mean_b"]) and row["difference"] > 0
    assert row["randomization_p"] < 0.01 and row["bootstrap_p"] < 0.05


def test_several_systems_are_each_compared_with_the_first_by_each_metric(files, tmp_path, capsys):
    copy = tmp_path / "copy.txt"
    copy.write_bytes(files["good"].read_bytes())
    run("compare", files["good"], copy, files["bad"], "-r", files["references"], "--metrics", "wms,sms", "--json")
    rows = json.loads(capsys.readouterr().out)
    assert [(row["metric"], Path(row["a"]).stem) for row in rows] == [
        (metric, system) for metric in ("wms", "sms") for system in ("copy", "bad")
    ]
    assert [row["randomization_p"] == 1 for row in rows] == [True, False, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good"], "expected at least two files of systems' texts, but got 1"),
        (["good", "good"], "expected different files, but got the same one twice"),
        (["good", "short"], "expected equally many rows, but .*good.txt has 20 and .*short.txt has 1"),
        (["good", "nowhere"], "no such file"),
    ],
)
def test_systems_that_cannot_be_compared_are_named(files, tmp_path, arguments, message):
    (tmp_path / "short.txt").write_text("One line.\n")
    paths = [tmp_path / f"{name}.txt" for name in arguments]
    with pytest.raises((ValueError, OSError), match=message):
        run("compare", *paths, "--references", files["references"])


def test_without_references_the_row_is_named(files):
    with pytest.raises(ValueError, match="compare: wms: row 0: expected a reference"):
        run("compare", files["good"], files["bad"])


def test_declaring_the_commands_imports_nothing_heavy():
    script = (
        "import argparse, sys; from movers.agreement_cli import add_parsers;"
        "add_parsers(argparse.ArgumentParser().add_subparsers());"
        "print([name for name in ('numpy', 'scipy', 'torch', 'datasets', 'matplotlib') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

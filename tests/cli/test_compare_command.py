"""`movers compare` from two systems' texts to which is better."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import movers

from cli_texts import Failure, Run  # isort: skip

LIMITED = "moverscore[truncation=error]"
GRADED = Path(__file__).parents[1] / "data" / "graded.jsonl"


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Paraphrases, the same number of off-topic texts and their references, as files in the current folder."""
    rows = [json.loads(line) for line in GRADED.read_text(encoding="utf-8").splitlines()]
    texts = {
        "good": [row["candidate"] for row in rows if row["system"] == "paraphrase"],
        "bad": [row["candidate"] for row in rows if row["system"] == "off_topic"],
        "refs": [row["references"][0] for row in rows if row["system"] == "paraphrase"],
    }
    monkeypatch.chdir(tmp_path)
    for name, lines in texts.items():
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("copy.txt").write_bytes(Path("good.txt").read_bytes())
    Path("short.txt").write_text("One line.\n")
    Path("long.txt").write_text("\n".join([*texts["bad"][:2], "snow " * 2000, *texts["bad"][3:]]) + "\n")
    return texts


def test_order_and_names_are_the_users_and_the_better_system_is_marked(run: Run, systems: dict[str, list[str]]) -> None:
    for order in (["bad.txt", "./good.txt"], ["./good.txt", "bad.txt"]):
        (row,) = json.loads(run("compare", *order, "-r", "refs.txt", "--metric", "sms", "--json")[1])
        assert [row["a"], row["b"]] == order
        assert (row["metric"], row["n"], row["better"]) == ("sms", len(systems["refs"]), "./good.txt")
        for side, name in zip("ab", order, strict=True):
            expected = movers.sms(systems[Path(name).stem], systems["refs"])
            assert row[f"mean_{side}"] == pytest.approx(expected["score"])
            assert row["signature"] == expected["signature"]
        assert row["difference"] == pytest.approx(row["mean_a"] - row["mean_b"])
        assert row["randomization_p"] < 0.01 and row["bootstrap_p"] < 0.05


def test_all_pairs_are_compared_by_each_metric_and_drawn(run: Run, systems: dict[str, list[str]]) -> None:
    files = ["good.txt", "copy.txt", "bad.txt"]
    command = ["compare", *files, "-r", "refs.txt", "--metrics", "sms,rouge"]
    rows = json.loads(run(*command, "--json", "--plot", "groups.svg")[1])
    assert [(row["metric"], row["a"], row["b"]) for row in rows] == [
        (metric, *pair) for metric in ("sms", "rouge") for pair in itertools.combinations(files, 2)
    ]
    assert [row["randomization_p"] == 1 for row in rows] == [True, False, False] * 2
    assert [row["better"] for row in rows] == [None, "good.txt", "copy.txt"] * 2
    assert [row["group_b"] for row in rows] == [1, 2, 2] * 2
    picture = Path("groups.svg").read_text(encoding="utf-8")
    assert picture.lstrip().startswith("<?xml") and picture.count("LineCollection") >= 2
    table = run(*command)[1]
    assert [line.split()[0] for line in table.splitlines()[2:5]] == files
    assert table.count("(1)") == 4 and table.count("(2)") == 2 and table.count("–") == 3  # a note explains it
    assert all(f"{row['metric']}: {row['signature']}" in table for row in rows)


def test_options_and_sources_reach_the_metric(run: Run, systems: dict[str, list[str]]) -> None:
    (row,) = json.loads(run("compare", "good.txt", "bad.txt", "-r", "refs.txt", "-s", "stopwords=none", "--json")[1])
    assert row["mean_b"] == pytest.approx(movers.wms(systems["bad"], systems["refs"], stopwords=None)["score"])
    name = "reference_free_summary_quality"
    (row,) = json.loads(run("compare", "good.txt", "bad.txt", "--sources", "refs.txt", "--metric", name, "--json")[1])
    expected = movers.reference_free_summary_quality(systems["bad"], systems["refs"])["score"]
    assert row["mean_b"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.txt"], "expected at least two files of systems' texts, all different, but got good.txt"),
        (["good.txt", "bad.txt", "./bad.txt"], "all different, but got good.txt bad.txt ./bad.txt"),
        (["good.txt", "bad.txt", "-r", "short.txt"], "but good.txt has 45 and short.txt has 1"),
        (["good.txt", "bad.txt", "--metric", "chr"], "rouge, bleu, chrf, but got 'chr' (did you mean 'chrf'?)"),
        (["good.txt", "bad.txt", "--sources", "refs.txt"], "--references FILE is required"),
        (["good.txt", "bad.txt", "-r", "refs.txt", "-o", "./bad.txt"], "--output: expected another file"),
        (["good.txt", "long.txt", "-r", "refs.txt", "--metric", LIMITED], "predictions: long.txt: line 3: "),
        (["good.txt", "bad.txt", "-r", "refs.txt", "--plot", "a.gif"], "a name that ends in .png or .svg or .pdf"),
        (["good.txt", "bad.txt", "-r", "refs.txt", "--seed", "-1"], "seed: expected a whole number of at least 0"),
    ],
)
def test_what_cannot_be_compared_is_named(
    failure: Failure, systems: dict[str, list[str]], arguments: list[str], message: str
) -> None:
    assert message in failure("compare", *arguments)

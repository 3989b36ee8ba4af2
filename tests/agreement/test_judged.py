"""Judged sets in our own format: what is read, refused, chosen by conditions and written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from movers.agreement.judged import JudgedText, read_judged, write_judged
from movers.errors import InputError

ROWS = [
    {
        "id": "one",
        "lp": "cs-en",
        "system": "A",
        "year": 2017,
        "candidate": "A dog barks.",
        "references": ["A hound barks.", "The dog is barking."],
        "scores": {"overall": 0.5, "grammar": None},
    },
    {
        "id": "two",
        "lp": "de-en",
        "system": "B",
        "year": 2018,
        "candidate": "",
        "references": [],
        "scores": {"overall": -1, "grammar": 3},
    },
]


def write_lines(path: Path, rows: list) -> Path:
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.gz"])
def test_json_lines_are_read_in_order_with_every_field(tmp_path, name):
    judged = read_judged(write_lines(tmp_path / name, ROWS))
    assert judged.name == "set"
    assert judged.texts[0] == JudgedText(
        id="one",
        candidate="A dog barks.",
        references=("A hound barks.", "The dog is barking."),
        scores={"overall": 0.5, "grammar": None},
        fields={"lp": "cs-en", "system": "A", "year": 2017},
    )
    assert judged.human_names() == ["overall", "grammar"]
    assert judged.human("grammar") == [None, 3.0]
    assert judged.labels("lp") == ["cs-en", "de-en"]


def test_csv_holds_lists_as_json_and_null_as_an_empty_cell(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text(
        "id,candidate,references,scores.overall,scores.grammar,lp\n"
        '1,"A dog, barking.","[""A hound."", ""The dog.""]",0.5,,cs-en\n'
        "2,Rain.,It rains.,-1,3,de-en\n"
        "3,Snow.,,2,1,\n",
        encoding="utf-8",
    )
    judged = read_judged(path)
    assert [text.references for text in judged.texts] == [("A hound.", "The dog."), ("It rains.",), ()]
    assert judged.human("overall") == [0.5, -1.0, 2.0] and judged.human("grammar") == [None, 3.0, 1.0]
    assert judged.texts[0].candidate == "A dog, barking."
    assert judged.texts[2].fields == {"lp": None}


def test_a_written_set_reads_back_equal_and_twice_to_the_same_bytes(tmp_path):
    judged = read_judged(write_lines(tmp_path / "set.jsonl", ROWS))
    for name in ("again.jsonl.gz", "third.jsonl.gz"):
        write_judged(judged, tmp_path / name)
    assert read_judged(tmp_path / "again.jsonl.gz").texts == judged.texts
    assert (tmp_path / "again.jsonl.gz").read_bytes() == (tmp_path / "third.jsonl.gz").read_bytes()


def test_scores_that_are_texts_throughout_become_a_field(tmp_path):
    rows = [dict(row, scores={**row["scores"], "edit": "A better text."}) for row in ROWS]
    rows[1]["scores"]["edit"] = None
    judged = read_judged(write_lines(tmp_path / "set.jsonl", rows))
    assert judged.human_names() == ["overall", "grammar"]
    assert judged.texts[0].fields["scores.edit"] == "A better text."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate": None}, "candidate: expected a text, but got None"),
        ({"candidate": "\ud800"}, r"candidate: expected a text, but got '\\ud800'"),
        ({"references": "one text"}, "references: expected a list of texts, but got 'one text'"),
        ({"references": ["a", None]}, r"references: expected a list of texts, but got \['a', None\]"),
        ({"scores": [1, 2]}, r"scores: expected an object of names and numbers, but got \[1, 2\]"),
        ({"scores": {"overall": "high"}}, r"scores\['overall'\]: expected a finite number or null, but got 'high'"),
        ({"scores": {"overall": True}}, r"scores\['overall'\]: expected a finite number or null, but got True"),
        ({"scores": {"overall": float("inf")}}, r"scores\['overall'\]: expected a finite number or null, but got inf"),
        ({"scores": {"overall": 10**400}}, r"scores\['overall'\]: expected a finite number or null, but got 1000"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, change, message):
    path = write_lines(tmp_path / "set.jsonl", [ROWS[0], ROWS[1] | change])
    with pytest.raises(InputError, match=f"set.jsonl: line 2: {message}"):
        read_judged(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.jsonl", '{"id": 1,\n', "b.jsonl: line 1: expected JSON"),
        ("c.jsonl", "", "c: expected at least one judged text, but got none"),
        ("d.txt", "x", "d.txt: line 1: expected a row with candidate, references and scores, but got a text"),
        ("e.csv", "candidate,scores.o\nText.,high\n", "e.csv: line 2: scores.o: expected a number .*, but got 'high'"),
        ("f.csv", "candidate,references\nText.,Other.\n", "f.csv: line 2: expected at least one column scores.<name>"),
        (
            "g.jsonl",
            '{"doc": 1, "summary": "x"}',
            "g.jsonl: line 1: expected a row .*, but got the fields doc, summary",
        ),
    ],
)
def test_a_file_that_is_no_judged_set_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_judged(tmp_path / name)
    with pytest.raises(InputError, match="missing.jsonl.gz: no such file"):
        read_judged(tmp_path / "missing.jsonl.gz")


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        (["lp=cs-en"], ["one"]),
        (["lp!=cs-en"], ["two"]),
        (["lp=cs-en", "system=A"], ["one"]),
        (["flag=true"], ["two"]),
        (["flag!=true"], ["one"]),
        (["year>=2018"], ["two"]),
        (["year<=2017.5", "lp = cs-en"], ["one"]),
    ],
)
def test_conditions_choose_texts(tmp_path, conditions, ids):
    rows = [ROWS[0], ROWS[1] | {"flag": True}]
    judged = read_judged(write_lines(tmp_path / "set.jsonl", rows), where=conditions)
    assert [text.id for text in judged.texts] == ids


def test_a_split_is_chosen_and_references_are_added(tmp_path):
    rows = [row | {"split": split} for row, split in zip(ROWS, ("dev", "test"), strict=True)]
    (text,) = read_judged(write_lines(tmp_path / "set.jsonl", rows), split="test", references=["An essay."]).texts
    assert (text.id, text.references) == ("two", ("An essay.",))


def test_conditions_scores_and_labels_that_do_not_exist_are_named(tmp_path):
    judged = read_judged(write_lines(tmp_path / "set.jsonl", ROWS))
    for condition, message in (
        ("language=cs", "set: expected one of the fields lp, system, year, but got 'language'"),
        ("lp=fr-en", "set: expected texts with lp=fr-en, but got none"),
        ("lp", r"where: expected field=value \(or !=, >=, <=\), but got 'lp'"),
        ("year>=late", "where: expected a number after >=, but got 'year>=late'"),
        ("lp>=1", "set: expected texts with lp>=1, but got none"),
    ):
        with pytest.raises(InputError, match=message):
            judged.where(condition)
    with pytest.raises(InputError, match="set: expected one of the human scores overall, grammar, but got 'fluency'"):
        judged.human("fluency")
    with pytest.raises(InputError, match="set: text '.*' .*: expected a field 'doc', but got the fields lp, system"):
        judged.labels("doc")

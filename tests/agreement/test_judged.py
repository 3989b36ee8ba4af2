"""Judged sets: what is read from plain columns and from the published format, refused, chosen by conditions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from movers.agreement.judged import JudgedText, read_judged
from movers.errors import InputError

ROWS = [
    {
        "id": "one",
        "lp": "cs-en",
        "year": 2017,
        "candidate": "A dog barks.",
        "references": ["A hound barks.", "The dog is barking."],
        "scores": {"overall": 0.5, "grammar": None, "edit": "A better text."},  # texts throughout are no scores
    },
    {"id": "two", "lp": "de-en", "year": 2018, "flag": True, "candidate": "", "scores": {"overall": -1, "grammar": 3}},
]


def write_lines(path: Path, rows: list) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_json_lines_are_read_in_order_with_every_field(tmp_path):
    judged = read_judged(write_lines(tmp_path / "set.jsonl", ROWS))
    references = ("A hound barks.", "The dog is barking.")
    scores = {"overall": 0.5, "grammar": None}
    assert judged.texts[0] == JudgedText("one", "A dog barks.", references, scores, {"lp": "cs-en", "year": 2017})
    assert (judged.name, judged.human_names()) == ("set", ["overall", "grammar"])
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate": "\ud800"}, "candidate: expected valid Unicode, but got a lone surrogate"),
        ({"references": [1]}, "references: expected a text, but got 1"),
        ({"scores": {"overall": "high"}}, "overall: expected a finite number or nothing, but got 'high'"),
        ({"scores": {"overall": float("inf")}}, "overall: expected a finite number or nothing, but got inf"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, change, message):
    path = write_lines(tmp_path / "set.jsonl", [ROWS[0], ROWS[1] | change])
    with pytest.raises(InputError, match=f"set.jsonl: line 2: {message}"):
        read_judged(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.jsonl", "", "c has no rows"),
        ("d.txt", "x", "d.txt: line 1 is a text without columns"),
        ("e.csv", "prediction,o\nText.,4\n", "e.csv: line 2 has the fields prediction, o; --human names the column"),
        ("f.csv", "prediction,human\nText.,high\n", "f.csv: line 2 has the fields prediction, human; --human"),
        ("g.csv", "prediction,output,human\nA.,B.,4\n", "g.csv: line 2 has the fields prediction, output, human"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_after_a_good_one(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as caught:
        read_judged(tmp_path / name)
    first, header, row, problem = str(caught.value).split("\n")
    assert first.startswith("expected a file of judged texts like this one") and message in problem
    (tmp_path / "good.csv").write_text(f"{header}\n{row}\n")
    assert len(read_judged(tmp_path / "good.csv")) == 1


def test_conditions_choose_texts_and_references_are_added(tmp_path):
    path = write_lines(tmp_path / "set.jsonl", ROWS)
    for conditions, names in (
        (["lp=cs-en"], ["one"]),
        (["flag!=true"], ["one"]),
        (["year>=2018"], ["two"]),
        (["year<=2017.5", "lp = cs-en"], ["one"]),
    ):
        assert [text.id for text in read_judged(path, where=conditions).texts] == names
    (text,) = read_judged(path, where=["year=2018"], references=["An essay."]).texts
    assert (text.id, text.references) == ("two", ("An essay.",))


def test_conditions_scores_and_labels_that_do_not_exist_are_named(tmp_path):
    judged = read_judged(write_lines(tmp_path / "set.jsonl", ROWS))
    for call, message in (
        (lambda: judged.where("language=cs"), "set: expected one of the fields lp, year, flag, but got 'language'"),
        (lambda: judged.where("lp=fr-en"), "set: expected texts with lp=fr-en, but got none"),
        (lambda: judged.where("lp"), r"where: expected field=value \(or !=, >=, <=\), but got 'lp'"),
        (lambda: judged.human("fluency"), "set: expected one of the human scores overall, grammar, but got 'fluency'"),
        (lambda: judged.labels("doc"), "set: text 'one' .*: expected a field 'doc', but got the fields lp, year"),
    ):
        with pytest.raises(InputError, match=message):
            call()

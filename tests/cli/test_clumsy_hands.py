"""What a stranger may do wrong at the command line: each ends in one clear line, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_texts import PREDICTIONS, REFERENCES, Failure  # isort: skip

DEEP = '{"a": ' * 100_000 + "1" + "}" * 100_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Predictions `p.txt`, references `r.txt`, both as `rows.jsonl`, and judged texts, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("p.txt").write_text("\n".join(PREDICTIONS) + "\n")
    Path("r.txt").write_text("\n".join(REFERENCES) + "\n")
    rows = [{"prediction": first, "reference": second} for first, second in zip(PREDICTIONS, REFERENCES, strict=True)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("c.txt").write_text("a\nb\nc\n")
    judged = [{"candidate": "a", "references": ["b"], "scores": {"overall": number}} for number in range(4)]
    Path("judged.csv").write_text("candidate,references,scores.overall\na,b,1\nc,d,2\ne,f,3\n")
    Path("judged.json").write_text(json.dumps(judged))
    return tmp_path


SCORE = ["score", "wms", "-p", "p.txt", "-r", "r.txt", "-q"]
COMPARE = ["compare", "p.txt", "c.txt", "-r", "r.txt"]
CORRELATE = ["correlate", "--data", "judged.json", "--metrics", "wms"]
TUNE = ["train", "encoder", "--data", "pairs.jsonl", "--task", "similarity", "-o"]
TRAIN = ["train", "quality", "--data", "documents.jsonl", "--head", "fc", "--encoder", "wordllama", "-q", "-o"]
PAIR = ["explain", "wms", "--prediction", "a", "--reference", "b"]


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["baseline", "--metric", "wms", "--corpus", "p.txt", "-o", "p.txt"], "p.txt"),
        (["compare", "p.txt", "r.txt", "-r", "r.txt", "-o", "./p.txt"], "p.txt"),
        (["compare", "p.txt", "c.txt", "-r", "r.txt", "-o", "r.txt"], "r.txt"),
        (["correlate", "--data", "judged.json", "--metrics", "wms", "-o", "judged.json"], "judged.json"),
        (["correlate", "--data", "judged.csv", "--reference", "r.txt", "--metrics", "wms", "-o", "r.txt"], "r.txt"),
    ],
)
def test_no_command_writes_over_what_it_reads(failure: Failure, folder: Path, arguments: list[str], file: str) -> None:
    before = Path(file).read_bytes()
    assert "--output: expected another file than the " in failure(*arguments)
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SCORE, "-s", "rescale=latin.json"], "wms: rescale: latin.json: cannot read it: 'utf-8' codec"),
        ([*SCORE, "-s", "rescale=deep.json"], "wms: rescale: deep.json was not written by `movers baseline`"),
        ([*SCORE, "-s", "rescale=p.txt"], "wms: rescale: p.txt was not written by `movers baseline`"),
        ([*SCORE, "-s", "idf=deep.json"], "wms: idf: deep.json is not a table written by IdfTable.save"),
        ([*SCORE, "-s", "return_alignment=true"], "score: --alignment: expected --json, or --output FILE.jsonl"),
        ([*SCORE[:3], "", "-r", "r.txt"], "expected the name of a file, but got an empty one"),
        ([*SCORE, "-o", ""], "expected the name of a file to write, but got an empty one"),
        ([*SCORE, "--engine", "ray", "--address", "os://x"], "address: expected auto, local, HOST:PORT or ray://HOST:"),
        (["explain", "wms", "--file", "rows.jsonl", "-o", "r.html", "--source-column", "a"], "--source-column: exp"),
        ([*PAIR, "--reference-column", "a"], "explain: --reference-column: expected --file FILE beside it"),
        (["baseline", "--metric", "wms[max_cells=1]", "--corpus", "p.txt"], "wms: corpus: '"),
        (["compare", "-", "c.txt", "-r", "-"], "compare: expected standard input (-) for one file only"),
        ([*COMPARE, "--seed", "-1"], "agreement: seed: expected a whole number of at least 0, but got -1"),
        ([*COMPARE, "--alpha", "7"], "agreement: alpha: expected a number between 0 and 1"),
        ([*COMPARE, "--resamples", "1000000000000"], "agreement: n_resamples: expected at most 10,000,000, but"),
        ([*COMPARE, "--metric", "rouge", "-s", "variant=rouge1"], "rouge: expected no --set and no --model"),
        ([*CORRELATE, "--seed", "-1"], "agreement: seed: expected a whole number of at least 0, but got -1"),
        ([*CORRELATE, "--plots", "p.txt"], "plots: p.txt: cannot make this folder: File exists"),
        ([*CORRELATE, "--reference", "empty.txt"], "correlate: --reference: empty.txt: expected a text, but it"),
        (["correlate", "--metrics", "wms", "--data", "unjudged.json"], "unjudged.json: expected scores by people"),
        (["serve", "--host", "999.1.1.1"], "serve: cannot listen on 999.1.1.1:7860: "),
        (["correlate", "--data", "wmt", "--metrics", "wms"], "source.de-en: cannot read it: 'utf-8'"),
        ([*TUNE, "p.txt/run"], "train encoder: output: p.txt/run/work: cannot make this folder: Not a directory"),
        ([*TUNE, "new", "--limit", "-1"], "train encoder: limit: expected a whole number above zero, but got -1"),
        ([*TRAIN, "new", "--limit", "-1"], "train quality: limit: expected a whole number above zero, but got -1"),
        ([*TRAIN, "new", "--vectors", "p.txt"], "cannot make this folder: Not a directory"),
        (["train", "encoder", "--data", "pairs.jsonl", "-o", "run", "--task", "similarity"], "run.json: expected"),
    ],
)  # fmt: skip
def test_mistakes_end_in_one_line(
    failure: Failure, folder: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("latin.json").write_bytes(b'{"score": "\xe9"}')
    Path("deep.json").write_text(DEEP)
    Path("empty.txt").write_text("")
    Path("unjudged.json").write_text('[{"candidate": "a", "references": ["b"], "scores": {}}]')
    Path("wmt").mkdir()
    for part in ("source", "reference", "mt-system", "human"):
        Path(f"wmt/DAseg.newstest2016.{part}.de-en").write_bytes(b"\xe9\n" if part == "source" else b"1\n")
    rows = ({"sentence1": "a", "sentence2": "b", "score": number} for number in range(30))
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = ({"document": f"Snow {number}. It melts.", "summary": f"Snow {number}."} for number in range(30))
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    Path("run/work").mkdir(parents=True)
    Path("run/work/run.json").write_text("[1]")
    assert message in failure(*arguments)

"""`movers score` from files to scores."""

from __future__ import annotations

import csv
import gzip
import json
import os
import threading
from pathlib import Path

import pytest

import movers
from movers.cli import main
from movers.cli.output import SUFFIXES
from movers.errors import InputError
from movers.registry import METRICS

from cli_texts import PREDICTIONS, REFERENCES, Failure, Files, Run  # isort: skip

OTHERS = ["Somebody ships snow.", "The suspects were jailed.", "It rained."]


@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".json", ".csv", ".tsv", ".txt.gz", ".jsonl.gz", ".csv.gz"])
def test_score_prints_signature_and_mean(run: Run, files: Files, kind: str) -> None:
    result = movers.wms(PREDICTIONS, REFERENCES)
    assert run("score", "wms", *files(kind)) == (0, f"{result['signature']} = {result['score']:.4g}\n", "")


@pytest.mark.parametrize("name", ["wms", "moverscore", "bertscore_emd"])
def test_json_is_what_the_function_returns(run: Run, files: Files, name: str) -> None:
    found = json.loads(run("score", name, *files(), "--json")[1])
    expected = METRICS[name].function(PREDICTIONS, REFERENCES)
    assert set(found) == set(expected)
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert found["signature"] == expected["signature"]


def test_several_metrics_give_a_list_with_their_names(run: Run, files: Files) -> None:
    asked = "wms,sms[idf=corpus],bertscore_emd"
    found = json.loads(run("score", asked, *files(), "-s", "multi_ref=max", "--json")[1])
    assert [each["metric"] for each in found] == ["wms", "sms[idf=corpus]", "bertscore_emd"]
    for each, (name, options) in zip(
        found, [("wms", {}), ("sms", {"idf": "corpus"}), ("bertscore_emd", {})], strict=True
    ):
        expected = METRICS[name].function(PREDICTIONS, REFERENCES, multi_ref="max", **options)
        assert each["scores"] == pytest.approx(expected["scores"], abs=1e-6)
        assert each["signature"] == expected["signature"]
    out = run("score", "wms,sms", *files())[1]
    assert [line.split("|")[0] for line in out.splitlines()] == ["wms", "sms"]


def test_references_and_sources_are_read_for_the_metrics_that_want_them(run: Run, files: Files) -> None:
    path = files()[3]
    found = json.loads(run("score", "wms,reference_free_summary_quality", *files(), "--sources", path, "--json")[1])
    for each, name in zip(found, ("wms", "reference_free_summary_quality"), strict=True):
        assert each["scores"] == pytest.approx(METRICS[name].function(PREDICTIONS, REFERENCES)["scores"], abs=1e-6)


def test_alignments_on_request(run: Run, files: Files, tmp_path: Path) -> None:
    expected = movers.wms(PREDICTIONS, REFERENCES, return_alignment=True)["alignments"]
    assert json.loads(run("score", "wms", *files(), "--json", "--alignment")[1])["alignments"] == expected
    path = tmp_path / "o.jsonl"
    assert run("score", "wms", *files(), "--alignment", "-o", path)[0] == 0
    assert [json.loads(line)["alignments"] for line in path.read_text().splitlines()] == expected


def test_several_files_of_references_after_one_flag_or_several(run: Run, files: Files, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("\n".join(OTHERS) + "\n")
    expected = movers.wms(PREDICTIONS, [list(pair) for pair in zip(REFERENCES, OTHERS, strict=True)])
    for more in ([tmp_path / "more.txt"], ["-r", tmp_path / "more.txt"], ["--references", tmp_path / "more.txt"]):
        assert json.loads(run("score", "wms", *files(), *more, "--json")[1]) == expected


def test_a_column_may_hold_lists_of_references(run: Run, failure: Failure, files: Files, tmp_path: Path) -> None:
    groups = [[REFERENCES[0], OTHERS[0]], [REFERENCES[1]], [REFERENCES[2], OTHERS[2], OTHERS[1]]]
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps({"refs": group}) + "\n" for group in groups))
    arguments = [*files()[:2], "-r", path, "--json"]
    assert json.loads(run("score", "wms", *arguments)[1]) == movers.wms(PREDICTIONS, groups)
    path.write_text('{"refs": ["a"]}\n{"refs": []}\n{"refs": ["b"]}\n')
    assert failure("score", "wms", *arguments) == (
        f"references: {path}: line 2: expected at least one text, but got an empty list"
    )


def test_one_pipe_serves_predictions_and_references(run: Run, tmp_path: Path) -> None:
    rows = [{"prediction": a, "reference": b} for a, b in zip(PREDICTIONS, REFERENCES, strict=True)]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=["".join(json.dumps(row) + "\n" for row in rows)])
    writer.start()
    out = run("score", "wms[idf=corpus]", "-p", pipe, "-r", pipe, "--json")[1]
    writer.join()
    assert json.loads(out) == movers.wms(PREDICTIONS, REFERENCES, idf="corpus")


def test_options_come_in_brackets_by_set_and_by_their_own_names(run: Run, files: Files) -> None:
    expected = movers.wms(PREDICTIONS, REFERENCES, stopwords=None, normalize=True)
    for arguments in (
        ["wms[stopwords=none,normalize=true]"],
        ["wms", "--set", "stopwords=none", "-s", "normalize=true"],
        ["wms[normalize=true,stopwords=english]", "--set", "stopwords=none", "--threads", "1", "-m", "wordllama", "-q"],
    ):
        assert json.loads(run("score", *arguments, *files(), "--json")[1]) == expected


def test_idf_of_the_corpus_is_counted_over_whole_files(run: Run, files: Files) -> None:
    for name in ("wms", "moverscore"):
        found = json.loads(run("score", f"{name}[idf=corpus]", *files(".csv"), "--json")[1])
        expected = METRICS[name].function(PREDICTIONS, REFERENCES, idf="corpus")
        assert found["signature"] == expected["signature"]
        assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)


def test_counts_of_odd_rows_go_to_standard_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("snow\n\nthe\n")
    (tmp_path / "r.txt").write_text("snow\nsnow\nsnow\n")
    texts = ["-p", tmp_path / "p.txt", "-r", tmp_path / "r.txt"]
    code, out, err = run("score", "wms", *texts)
    assert code == 0 and out.count("\n") == 1
    assert err == "  n_empty: 1 of 3\n  n_unfiltered: 1 of 3\n"
    assert run("score", "sms,wms", *texts)[2].splitlines()[-1] == "  wms: n_unfiltered: 1 of 3"


# --- output ----------------------------------------------------------------------------------------------------------


def test_scores_are_written_as_text_table_or_json_lines(run: Run, files: Files, tmp_path: Path) -> None:
    result = movers.bertscore_hungarian(PREDICTIONS, REFERENCES)
    written = {}
    for kind in ("txt", "csv", "jsonl.gz"):
        path = tmp_path / f"scores.{kind}"
        code, out, _ = run("score", "bertscore_hungarian", *files(), "-o", path)
        assert code == 0 and result["signature"] in out
        data = path.read_bytes()
        written[kind] = (gzip.decompress(data) if kind.endswith("gz") else data).decode().splitlines()
    assert [float(line) for line in written["txt"]] == pytest.approx(result["scores"], abs=1e-6)
    assert written["csv"][0] == "index,score"
    assert [line.split(",")[0] for line in written["csv"][1:]] == ["0", "1", "2"]
    assert [float(line.split(",")[1]) for line in written["csv"][1:]] == pytest.approx(result["scores"], abs=1e-6)
    records = [json.loads(line) for line in written["jsonl.gz"]]
    assert [record["index"] for record in records] == [0, 1, 2]
    for key, values in (("score", result["scores"]), ("precision", result["precision"]), ("f1", result["f1"])):
        assert [record[key] for record in records] == pytest.approx(values, abs=1e-6)


def test_scores_of_several_metrics_stand_side_by_side(run: Run, files: Files, tmp_path: Path) -> None:
    expected = {
        "wms[stopwords=none,normalize=true]": movers.wms(PREDICTIONS, REFERENCES, stopwords=None, normalize=True)
    }
    expected["sms"] = movers.sms(PREDICTIONS, REFERENCES)
    for kind in ("txt", "csv", "jsonl"):
        assert run("score", ",".join(expected), *files(), "-o", tmp_path / f"s.{kind}")[0] == 0
    with (tmp_path / "s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    records = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    lines = [line.split("\t") for line in (tmp_path / "s.txt").read_text().splitlines()]
    for place, (label, result) in enumerate(expected.items()):
        assert [float(row[label]) for row in rows] == result["scores"]
        assert [record[label]["score"] for record in records] == result["scores"]
        assert [float(line[place]) for line in lines] == result["scores"]


def test_a_bad_last_row_is_found_before_the_first_is_scored(
    failure: Failure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions, references, output = tmp_path / "p.jsonl", tmp_path / "r.txt", tmp_path / "scores.txt"
    predictions.write_text('{"text": "snow"}\n' * 1500 + '{"text": null}\n')
    references.write_text("snow\n" * 1501)
    output.write_text("earlier\n")
    monkeypatch.setattr("movers.cli.score._build", None)  # whoever calls it fails
    assert failure("score", "wms", "-p", predictions, "-r", references, "-o", output) == (
        f"predictions: {predictions}: line 1501: expected a text, but got null"
    )
    assert output.read_text() == "earlier\n"


def test_an_output_that_cannot_be_written_is_told_before_files_are_read(failure: Failure, tmp_path: Path) -> None:
    for name, message in (
        ("none/scores.txt", f"there is no folder {tmp_path / 'none'}"),
        ("", "expected a file, but it is a folder"),
        ("scores.xml", f"expected a name that ends in {' or '.join(SUFFIXES)}"),
    ):
        output = tmp_path / name
        error = failure("score", "wms", "-p", "none.txt", "-r", "none.txt", "-o", output)
        assert error == f"{output}: cannot write it: {message}"


# --- errors ----------------------------------------------------------------------------------------------------------


def test_files_that_do_not_fit_are_told(failure: Failure, files: Files, tmp_path: Path) -> None:
    assert failure("score", "wms", "-p", "none.txt", *files()[2:]) == "none.txt: no such file"
    (tmp_path / "short.txt").write_text("one\ntwo\n")
    error = failure("score", "wms", *files(), tmp_path / "short.txt")
    assert "expected equally many rows" in error and "has 3 and" in error and "short.txt has 2" in error
    (tmp_path / "empty.txt").write_text("")
    assert "empty.txt: expected at least one row, but got none" in failure(
        "score", "wms", "-p", tmp_path / "empty.txt", "-r", tmp_path / "empty.txt"
    )
    assert failure("score", "wms", *files()[:2]) == "wms: expected --references FILE"
    assert "expected --sources FILE" in failure("score", "wms,reference_free_summary_quality", *files())


LARGE = " ".join(str(number) for number in range(100, 140))


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".json", ".csv", ".parquet"])
def test_a_row_that_is_refused_is_told_as_its_line_of_the_file(
    failure: Failure, tmp_path: Path, kind: str, workers: list[str]
) -> None:
    rows = [{"prediction": text, "reference": "Snow melts."} for text in ["a\nb" if kind == ".csv" else "a", "b"] * 80]
    rows[101] = {"prediction": LARGE, "reference": LARGE}
    path = tmp_path / f"rows{kind}"
    arguments = ["-p", str(path), "-r", str(path)]
    if kind == ".txt":
        path.write_text("".join(f"{row['prediction']}\n" for row in rows))
        (tmp_path / "refs.txt").write_text("".join(f"{row['reference']}\n" for row in rows))
        arguments[3] = str(tmp_path / "refs.txt")
    elif kind == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["prediction", "reference"], *(row.values() for row in rows)])
    elif kind == ".parquet":
        table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text(f"[{', '.join(lines)}]" if kind == ".json" else "\n".join(lines))
    # A header, and 51 of the 101 rows before take two lines.
    number = 1 + 101 + 51 + 1 if kind == ".csv" else 102
    found = failure("score", "wms[max_cells=500]", *arguments, *workers)
    where = f"{'row' if kind in ('.json', '.parquet') else 'line'} {number}"
    assert found.startswith(f"wms: predictions: {path}: {where}: comparing 40 with 40 units")
    if kind == ".csv":
        assert path.read_text().splitlines()[number - 1].startswith("100 101")


def test_a_text_that_is_refused_is_told_as_its_line_whatever_file_it_is_in(
    failure: Failure, files: Files, tmp_path: Path
) -> None:
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"refs": ["a", text]}) + "\n" for text in ("b", "c", LARGE)))
    metric = "bertscore_emd[truncation=error,window=30]"
    found = failure("score", metric, *files()[:4], "-r", lists)
    assert found.startswith(f"bertscore_emd: references: {lists}: line 3: truncation='error': a text has ")
    found = failure("score", metric, "-p", lists.with_name("ref.txt"), "-r", files()[1], lists)
    assert found.startswith(f"bertscore_emd: references: {lists}: line 3: truncation='error': a text has ")
    path = tmp_path / "long.txt"
    path.write_text(f"a\n{LARGE}\nb\n")
    found = failure("score", metric, "-p", path, *files()[2:])
    assert found.startswith(f"bertscore_emd: predictions: {path}: line 2: truncation='error': a text has ")
    with pytest.raises(InputError, match=r"^bertscore_emd: references\[1\]\[1\]: truncation='error': a text has "):
        movers.bertscore_emd(["a", "b"], [["a", "b"], ["c", LARGE]], truncation="error", window=30)


def test_the_predictions_themselves_are_no_references(
    failure: Failure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "Snow melts."}\n')
    file = str(tmp_path / "t.jsonl")
    assert "references: " in (told := failure("score", "wms", "-p", file, "-r", file)) and "same column 'text'" in told
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("prediction,reference\nSnow melts.,Dogs bark.\n"))
    writer.start()
    assert "but got the same lines; --prediction-column" in failure("score", "wms", "-p", str(pipe), "-r", str(pipe))
    writer.join()


def test_the_output_is_no_input(failure: Failure, files: Files) -> None:
    arguments = files()
    before = Path(arguments[1]).read_text()
    told = failure("score", "wms", *arguments, "-o", arguments[1])
    assert "--output: expected another file than the predictions" in told
    assert Path(arguments[1]).read_text() == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--json", "--percent"], "--percent: expected no --json"),
        (["--alignment"], "--alignment: expected --json, or --output FILE.jsonl"),
        (["--alignment", "-o", "a.csv"], "--alignment: expected --json, or --output FILE.jsonl"),
        (["--address", "auto"], "--address: expected --engine ray beside it"),
        (["--sources", "no file"], "score: --sources: expected none, because wms would not read them"),
        (["--source-column", "a"], "score: --source-column: expected --sources FILE beside it"),
    ],
)
def test_options_that_would_do_nothing_are_told(failure: Failure, options: list[str], expected: str) -> None:
    assert expected in failure("score", "wms", "-p", "no file", "-r", "no file", *options)


def test_a_compressed_file_without_its_suffix_is_told(failure: Failure, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(gzip.compress(b'{"prediction": "a"}\n'))
    file = str(tmp_path / "t.jsonl")
    assert "it is compressed: expected a name that ends in .gz" in failure("score", "wms", "-p", file, "-r", file)


@pytest.mark.parametrize("name", ["s.jsonl.partial", "s.jsonl.partial.whole"])
def test_links_in_the_way_of_scores_are_not_followed(run: Run, files: Files, tmp_path: Path, name: str) -> None:
    (tmp_path / "precious").write_text("" if name.endswith(".partial") else "mine")
    (tmp_path / name).symlink_to("precious")
    code, _, told = run("score", "wms", *files(), "-o", str(tmp_path / "s.jsonl"))
    assert (tmp_path / "precious").read_text() == ("" if name.endswith(".partial") else "mine")
    assert (code == 2 and "s.jsonl.partial: cannot write it" in told) or not (tmp_path / "s.jsonl").is_symlink()


def test_unknown_metrics_and_options_are_told_before_files_are_read(failure: Failure) -> None:
    missing = ["-p", "none.txt", "-r", "none.txt"]
    assert "but got 'wsm' (did you mean 'wms'?)" in failure("score", "sms,wsm", *missing)
    error = failure("score", "wms", "--set", "n_gram=2", *missing)
    assert "wms: unknown option 'n_gram'" in error and "valid options:" in error
    assert "multi_ref: expected one of 'max', 'mean'" in failure("score", "wms[multi_ref=min]", *missing)
    assert "expected key=value" in failure("score", "wms", "--set", "stopwords", *missing)
    assert failure("score", "wms,wms", *missing) == "metric: expected different metrics, but got wms, wms"
    assert failure("score", ",", *missing) == "metric: expected at least one metric, but got ','"


def test_a_device_that_is_not_there_ends_in_one_line(failure: Failure, files: Files) -> None:
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("this machine has CUDA")
    error = failure("score", "moverscore", *files(), "-s", "device=cuda")
    assert "device: 'cuda' is not available" in error and "use 'cpu'" in error


def test_a_model_that_is_not_installed_ends_in_one_line(failure: Failure, files: Files) -> None:
    for name in ("wms", "moverscore"):
        error = failure("score", name, *files(), "-m", "nobody/no-such-model")
        assert "nobody/no-such-model" in error and len(error) < 500


def test_errors_are_raised_whole_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_DEBUG", "1")
    with pytest.raises(InputError, match="no such file"):
        main(["score", "wms", "-p", "none.txt", "-r", "none.txt"])

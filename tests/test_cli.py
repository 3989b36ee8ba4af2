from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import ROOT

import movers
from movers.cli import main
from movers.registry import METRICS

PREDICTIONS = ["A man sells snow online.", "Police arrested three suspects.", "Rain stopped play."]
REFERENCES = ["Snow is sold on the internet.", "Three people were arrested.", "The match was rained off."]
OTHERS = ["Somebody ships snow.", "The suspects were jailed.", "It rained."]


@pytest.fixture(autouse=True)
def environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        monkeypatch.setenv(f"POT_BACKEND_DISABLE_{library}", "1")
    monkeypatch.delenv("MOVERS_DEBUG", raising=False)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[str]]:
    """`files(".txt")` → arguments that name a file of predictions and one of references."""

    def table(rows: list[str], key: str, suffix: str) -> str:
        if suffix == ".txt":
            return "".join(f"{row}\n" for row in rows)
        if suffix == ".jsonl":
            return "".join(json.dumps({key: row}) + "\n" for row in rows)
        mark = "\t" if suffix == ".tsv" else ","
        return f"id{mark}{key}\n" + "".join(f'{number}{mark}"{row}"\n' for number, row in enumerate(rows))

    def write(kind: str = ".txt") -> list[str]:
        arguments = []
        for option, key, rows in (("-p", "out", PREDICTIONS), ("-r", "ref", REFERENCES)):
            data = table(rows, key, kind.removesuffix(".gz")).encode()
            path = tmp_path / f"{key}{kind}"
            path.write_bytes(gzip.compress(data) if kind.endswith(".gz") else data)
            arguments += [option, str(path)]
        if not kind.startswith(".txt"):
            arguments += ["--prediction-column", "out", "--reference-column", "ref"]
        return arguments

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Exit code, standard output and standard error of the command line."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


Run = Callable[..., tuple[int, str, str]]
Files = Callable[..., list[str]]


# ---------------------------------------------------------------------------------------------------------------------
# movers score


@pytest.mark.parametrize("kind", [".txt", ".jsonl", ".csv", ".tsv", ".txt.gz", ".jsonl.gz", ".csv.gz"])
def test_score_prints_signature_and_mean(run: Run, files: Files, kind: str) -> None:
    result = movers.wms(PREDICTIONS, REFERENCES)
    assert run("score", "wms", *files(kind)) == (0, f"{result['signature']} = {result['score']:.4g}\n", "")


@pytest.mark.parametrize("name", ["wms", "moverscore", "bertscore_emd"])
def test_json_is_what_the_function_returns(run: Run, files: Files, name: str) -> None:
    code, out, _ = run("score", name, *files(), "--json")
    assert code == 0
    expected = METRICS[name].function(PREDICTIONS, REFERENCES)
    found = json.loads(out)
    assert set(found) == set(expected)
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert found["signature"] == expected["signature"]


def test_alignments_on_request(run: Run, files: Files, tmp_path: Path) -> None:
    expected = movers.wms(PREDICTIONS, REFERENCES, return_alignment=True)["alignments"]
    assert json.loads(run("score", "wms", *files(), "--json", "--alignment")[1])["alignments"] == expected
    path = tmp_path / "o.jsonl"
    assert run("score", "wms", *files(), "--alignment", "-o", str(path))[0] == 0
    assert [json.loads(line)["alignments"] for line in path.read_text().splitlines()] == expected


def test_several_files_of_references(run: Run, files: Files, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("\n".join(OTHERS) + "\n")
    out = run("score", "wms", *files(), "--references", str(tmp_path / "more.txt"), "--json")[1]
    groups = [list(pair) for pair in zip(REFERENCES, OTHERS, strict=True)]
    assert json.loads(out) == movers.wms(PREDICTIONS, groups)


def test_a_column_may_hold_lists_of_references(run: Run, files: Files, tmp_path: Path) -> None:
    groups = [[REFERENCES[0], OTHERS[0]], [REFERENCES[1]], [REFERENCES[2], OTHERS[2], OTHERS[1]]]
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps({"refs": group}) + "\n" for group in groups))
    arguments = [*files()[:2], "-r", str(path), "--reference-column", "refs", "--json"]
    assert json.loads(run("score", "wms", *arguments)[1]) == movers.wms(PREDICTIONS, groups)
    path.write_text('{"refs": ["a"]}\n{"refs": []}\n{"refs": ["b"]}\n')
    code, out, err = run("score", "wms", *arguments)
    assert (code, out) == (2, "")
    assert err == "movers: error: wms: references[1]: expected at least one text, but got an empty list\n"


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
    code, out, err = run("score", "wms", "-p", str(tmp_path / "p.txt"), "-r", str(tmp_path / "r.txt"))
    assert code == 0 and out.count("\n") == 1
    assert err == "  n_empty: 1 of 3\n  n_unfiltered: 1 of 3\n"


# ---------------------------------------------------------------------------------------------------------------------
# --output


def test_scores_are_written_as_text_table_or_json_lines(run: Run, files: Files, tmp_path: Path) -> None:
    result = movers.bertscore_hungarian(PREDICTIONS, REFERENCES)
    written = {}
    for kind in ("txt", "csv", "jsonl"):
        path = tmp_path / f"scores.{kind}"
        code, out, _ = run("score", "bertscore_hungarian", *files(), "-o", str(path))
        assert code == 0 and result["signature"] in out
        written[kind] = path.read_text().splitlines()
    assert [float(line) for line in written["txt"]] == pytest.approx(result["scores"], abs=1e-6)
    assert written["csv"][0] == "index,score"
    assert [line.split(",")[0] for line in written["csv"][1:]] == ["0", "1", "2"]
    assert [float(line.split(",")[1]) for line in written["csv"][1:]] == pytest.approx(result["scores"], abs=1e-6)
    records = [json.loads(line) for line in written["jsonl"]]
    assert [record["index"] for record in records] == [0, 1, 2]
    for key, values in (("score", result["scores"]), ("precision", result["precision"]), ("f1", result["f1"])):
        assert [record[key] for record in records] == pytest.approx(values, abs=1e-6)
    assert sorted(path.name for path in tmp_path.glob("scores*")) == ["scores.csv", "scores.jsonl", "scores.txt"]


def test_an_output_is_written_whole_or_not_at_all(run: Run, tmp_path: Path) -> None:
    predictions, references, output = tmp_path / "p.jsonl", tmp_path / "r.txt", tmp_path / "scores.txt"
    count = 1500  # more than a block, so that the first scores are out before the bad row is read
    rows = [json.dumps({"text": "snow"})] * count + [json.dumps({"text": None})]
    predictions.write_text("\n".join(rows) + "\n")
    references.write_text("snow\n" * (count + 1))
    output.write_text("earlier\n")
    arguments = ["-p", str(predictions), "--prediction-column", "text", "-r", str(references), "-o", str(output)]
    code, out, err = run("score", "wms", *arguments)
    assert (code, out) == (2, "")
    assert f"wms: predictions[{count}]: expected" in err
    assert output.read_text() == "earlier\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl", "r.txt", "scores.txt"]


def test_an_output_may_be_compressed(run: Run, files: Files, tmp_path: Path) -> None:
    scores = movers.wms(PREDICTIONS, REFERENCES)["scores"]
    assert run("score", "wms", *files(), "-o", str(tmp_path / "scores.jsonl.gz"))[0] == 0
    with gzip.open(tmp_path / "scores.jsonl.gz", "rt") as file:
        assert [json.loads(line)["score"] for line in file] == scores
    assert sorted(path.name for path in tmp_path.glob("scores*")) == ["scores.jsonl.gz"]


def test_an_output_that_cannot_be_written_is_told(run: Run, files: Files, tmp_path: Path) -> None:
    code, _, err = run("score", "wms", *files(), "-o", str(tmp_path / "none" / "scores.txt"))
    assert code == 2 and "output: cannot write" in err and "No such file or directory" in err


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong ends in one line and exit code 2


def failure(run: Run, *arguments: str) -> str:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("movers: error: ") and err.count("\n") == 1
    return err


def test_a_missing_file_is_told(run: Run, files: Files) -> None:
    assert "predictions: no such file: none.txt" in failure(run, "score", "wms", "-p", "none.txt", *files()[2:])


def test_differing_counts_are_told_with_both_numbers(run: Run, files: Files, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("one\ntwo\n")
    error = failure(run, "score", "wms", *files(), "-r", str(tmp_path / "short.txt"))
    assert "expected equally many rows" in error and "has 3 and" in error and "short.txt has 2" in error


def test_files_without_rows_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    path = str(tmp_path / "empty.txt")
    assert "has no rows" in failure(run, "score", "wms", "-p", path, "-r", path)


def test_unknown_metrics_and_options_are_told(run: Run, files: Files) -> None:
    assert "but got 'wsm' (did you mean 'wms'?)" in failure(run, "score", "wsm", *files())
    error = failure(run, "score", "wms", "--set", "n_gram=2", *files())
    assert "wms: unknown option 'n_gram'" in error and "valid options:" in error
    assert "multi_ref: expected one of 'max', 'mean'" in failure(run, "score", "wms[multi_ref=min]", *files())
    assert "expected key=value" in failure(run, "score", "wms", "--set", "stopwords", *files())
    assert "--references" in failure(run, "score", "wms", *files()[:2])
    assert "unknown option" in failure(run, "score", "wms[nonsense=1]", "-p", "none.txt", "-r", "none.txt")


def test_bytes_that_are_no_utf_8_are_told(run: Run, files: Files, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("eins\nfünf\ndrei\n".encode("latin-1"))
    assert "expected UTF-8" in failure(run, "score", "wms", *files()[:2], "-r", str(tmp_path / "latin.txt"))


def test_errors_are_raised_whole_on_request(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVERS_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        main(["score", "wms", "-p", "none.txt", *files()[2:]])


@pytest.mark.parametrize("arguments", [[], ["scor"], ["score"], ["score", "wms"], ["options"]])
def test_wrong_usage_ends_with_code_2_and_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("usage: movers")


# ---------------------------------------------------------------------------------------------------------------------
# Other commands


def test_metrics_and_options_are_listed(run: Run) -> None:
    code, out, _ = run("metrics")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(METRICS)
    code, out, _ = run("options", "moverscore")
    assert code == 0
    assert {"variant='v1'", "n_gram=1", "multi_ref='mean'", "model='all-MiniLM-L6-v2'"} <= set(out.splitlines())
    assert "did you mean 'moverscore'" in failure(run, "options", "movescore")


def test_a_baseline_is_printed_or_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"t": text}) + "\n" for text in [*REFERENCES, *OTHERS]))
    arguments = ["baseline", "--metric", "wms", "--corpus", str(tmp_path / "c.jsonl"), "--corpus-column", "t"]
    code, out, _ = run(*arguments, "--pairs", "30", "--seed", "5")
    record = json.loads(out)
    assert code == 0 and (record["metric"], record["pairs"], record["seed"], record["texts"]) == ("wms", 30, 5, 6)
    assert 0 < record["score"] < 1
    path = tmp_path / "b.json"
    code, out, _ = run(*arguments, "--pairs", "30", "--seed", "5", "--output", str(path))
    assert code == 0 and out == f"{path}: score {record['score']:.4f}\n"
    assert json.loads(path.read_text()) == record
    assert "expected a whole number above zero" in failure(run, *arguments, "--pairs", "0")


# ---------------------------------------------------------------------------------------------------------------------
# As a process


def process(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-c", code] if code is not None else ["-m", "movers.cli"]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("POT_")},
        capture_output=True,
        text=True,
        timeout=120,
    )


def loaded_modules(*arguments: str) -> tuple[int, set[str]]:
    """Exit code and top-level modules of a process after the command."""
    code = """if True:
        import sys
        from movers.cli import main
        try:
            status = main(sys.argv[1:])
        except SystemExit as stop:
            status = stop.code
        print("MODULES", *{name.split(".")[0] for name in sys.modules})
        sys.exit(status)
    """
    done = process(*arguments, code=code)
    return done.returncode, set(done.stdout.splitlines()[-1].split()[1:])


HEAVY = {"torch", "transformers", "scipy", "ot", "evaluate", "datasets", "tokenizers", "pandas", "sklearn"}


@pytest.mark.parametrize("arguments", [["--help"], ["score", "--help"], ["metrics"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    status, modules = loaded_modules(*arguments)
    assert (status or 0) == 0
    assert not modules & (HEAVY | {"numpy"})


def test_scoring_with_static_vectors_imports_no_torch(files: Files) -> None:
    status, modules = loaded_modules("score", "wms", *files())
    assert status == 0
    assert "numpy" in modules and not modules & {"torch", "transformers", "evaluate", "datasets"}


def test_no_progress_bar_stands_in_a_pipe(files: Files) -> None:
    done = process("score", "moverscore", *files())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("moverscore|") and done.stdout.count("\n") == 1


def test_the_exit_code_of_a_process_tells_that_it_failed() -> None:
    done = process("score", "wms", "-p", "none.txt", "-r", "none.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "movers: error: predictions: no such file: none.txt\n"

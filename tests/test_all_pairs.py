"""All pairs of texts, and MBR decoding on top of them, against plain loops over the metrics' functions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import movers
from movers import all_pairs
from movers.errors import InputError

TEXTS = ["A man sells snow online.", "Someone is selling snow.", "", "The old dog sat on the mat.", "Snow!"]
OTHERS = ["The dog sat.", "A man sells snow online.", "The dog sat."]
MINILM = "all-MiniLM-L6-v2"
METRICS = ["wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd"]


def plain(metric: str, texts: list[str], others: list[str], **options: Any) -> np.ndarray:
    """One call of the metric per pair."""
    score = getattr(movers, metric)
    return np.array([[score([text], [other], **options)["score"] for other in others] for text in texts])


@pytest.mark.parametrize("metric", METRICS)
def test_the_matrix_holds_the_scores_of_all_pairs_in_one_block_or_many(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"rescale": True} if metric == "sms" else {}
    square, oblong = plain(metric, TEXTS, TEXTS, **options), plain(metric, TEXTS, OTHERS, **options)
    for characters in (1 << 18, 30):
        monkeypatch.setattr(all_pairs, "_BLOCK_CHARACTERS", characters)
        np.testing.assert_allclose(movers.pairwise(metric, TEXTS, **options), square, atol=1e-6)
        np.testing.assert_allclose(movers.pairwise(metric, TEXTS, OTHERS, **options), oblong, atol=1e-6)


@pytest.mark.parametrize("idf", ["corpus", "per-side"])
def test_an_idf_table_is_built_from_each_text_once(idf: str) -> None:
    matrix = movers.pairwise("moverscore", TEXTS[:1], OTHERS, idf=idf)
    expected = movers.moverscore(TEXTS[:1], [OTHERS], idf=idf)["score"]  # the mean over references
    assert matrix.shape == (1, 3) and matrix.mean() == pytest.approx(expected, abs=1e-6)


def test_each_distinct_text_is_encoded_once_and_each_pair_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from movers.encoders import load_encoder
    from movers.scores.bertscore import BertScore

    encoder: Any = load_encoder(MINILM)
    encoder.cache.clear()
    rows: list[int] = []
    hook = encoder.model.register_forward_pre_hook(
        lambda model, arguments, named: rows.append(len(named["input_ids"])), with_kwargs=True
    )
    compared: list[tuple[str, str]] = []
    compare = BertScore.compare
    monkeypatch.setattr(
        BertScore, "compare", lambda self, a, b: (compared.append((a.text, b.text)), compare(self, a, b))[1]
    )
    texts = [f"Text number {number % 40} of many." for number in range(60)]
    monkeypatch.setattr(all_pairs, "_BLOCK_CHARACTERS", 300)
    matrix = movers.pairwise("bertscore_emd", texts)
    hook.remove()
    assert matrix.shape == (60, 60) and (matrix[0] == matrix[40]).all()
    assert sum(rows) == 40 and len(compared) == len(set(compared)) == 40 * 41 / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: movers.pairwise("wms", "abc"), "wms: texts: expected a list of texts, but got a single str: 'abc'"),
        (lambda: movers.pairwise("wms", []), "wms: texts: expected at least one text"),
        (lambda: movers.pairwise("wms", ["a"], ["b", None]), r"wms: others\[1\]: expected a text \(str\), but"),
        (
            lambda: movers.pairwise("moverscore", ["a", "snow " * 600], truncation="error"),
            r"moverscore: texts\[1\]: truncation='error': a text has 602 tokens",
        ),
        (
            lambda: movers.pairwise("wms", ["a"], ["", "It melts. " + "Snow " * 600], model=MINILM, truncation="error"),
            r"wms: others\[1\]: truncation='error': a text has 602 tokens",  # the sentence is read alone
        ),
        (lambda: movers.mbr("wms", ["a", "b"]), "mbr: samples: expected a list of texts for each prompt"),
        (lambda: movers.mbr("wms", [["a"]], [["a"], ["b"]]), r"mbr: references: expected one list per prompt \(1\)"),
        (lambda: movers.mbr("wms", [["a", "b"]], weights=[[1]]), r"mbr: weights\[0\]: expected 2 finite numbers of at"),
        (lambda: movers.mbr("wms", [["a", "b"]], weights=[["1", "x"]]), r"mbr: weights\[0\]: .* but got \['1', 'x'\]"),
        (lambda: movers.mbr("wms", [["a"]], weights=-np.ones((1, 1))), r"mbr: weights\[0\]: expected 1 finite numbers"),
        (lambda: movers.mbr("wms", [["a"]], log_probs=3.0), r"mbr: log_probs: expected one list per .* but got 3"),
        (lambda: movers.mbr("wms[idf=corpus]", [["a"]]), "mbr: metric: expected .* without idf='corpus'"),
        (lambda: movers.mbr("wms", [["a"]], prefilter="sms", keep=0), "mbr: keep: expected a whole number above zero"),
        (lambda: movers.mbr("moverscore", [["a"], ["snow " * 600]], truncation="error"), r"mbr: samples\[1\]: trunc"),
    ],
)  # fmt: skip
def test_errors_name_metric_argument_and_row(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("form", [".npy", ".csv", ".tsv.gz"])
def test_the_command_writes_the_matrix(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from movers.cli import main

    (tmp_path / "a.txt").write_text("\n".join(TEXTS[3:] + TEXTS[:2]) + "\n")
    (tmp_path / "b.txt").write_text("\n".join(OTHERS) + "\n")
    path = tmp_path / f"matrix{form}"
    command = ["pairwise", "wms[stopwords=drop]", "-p", f"{tmp_path}/a.txt", "-r", f"{tmp_path}/b.txt"]
    assert main([*command, "-o", str(path), "-q"]) == 0
    assert "4 × 3 scores, mean" in capsys.readouterr().out
    data = gzip.decompress(path.read_bytes()).decode().splitlines() if form == ".tsv.gz" else path
    matrix = np.load(path) if form == ".npy" else np.loadtxt(data, delimiter="," if form == ".csv" else "\t")
    expected = movers.pairwise("wms", TEXTS[3:] + TEXTS[:2], OTHERS, stopwords="drop")
    np.testing.assert_allclose(matrix, expected, atol=1e-8)
    assert main([*command, "-o", f"{tmp_path}/a.txt"]) == 2
    (tmp_path / "b.txt").write_text("")
    assert main([*command, "-o", str(path)]) == 2
    assert "b.txt: expected at least one row, but got none" in capsys.readouterr().err


# --- MBR -------------------------------------------------------------------------------------------------------------

SAMPLES = [
    ["A man sells snow online.", "A man is selling snow.", "Stocks fell.", "A man sells snow online."],
    ["The dog sat.", "The old dog sat on the mat."],
]


@pytest.mark.parametrize("metric", METRICS)
def test_the_choice_has_the_highest_mean_score_against_all_samples(metric: str) -> None:
    choices = movers.mbr(metric, SAMPLES)
    for choice, samples in zip(choices, SAMPLES, strict=True):
        expected = plain(metric, samples, samples).mean(axis=1)
        np.testing.assert_allclose(choice.utilities, expected, atol=1e-6)
        assert choice.text == samples[choice.index] and choice.utilities[choice.index] == max(choice.utilities)
    assert choices[0].index == 0  # not its copy, the last


def test_weights_and_log_probabilities_weigh_the_references() -> None:
    references = [["Stocks fell.", "Snow is sold.", "Stocks fell."], ["The dog sat."]]
    utilities = [plain("wms", samples, others) for samples, others in zip(SAMPLES, references, strict=True)]
    weighted = movers.mbr("wms", SAMPLES, references, weights=[[1, 4, 0], [2]])
    np.testing.assert_allclose(weighted[0].utilities, utilities[0] @ [0.2, 0.8, 0.0], atol=1e-9)
    np.testing.assert_allclose(weighted[1].utilities, utilities[1][:, 0], atol=1e-9)
    likely = movers.mbr("wms", SAMPLES, references, log_probs=[[-1000 + np.log(3), -1000.0, -1000 + np.log(3)], [-5]])
    np.testing.assert_allclose(likely[0].utilities, utilities[0] @ [0.75, 0.25, 0.0], atol=1e-9)
    assert [choice.text for choice in (weighted[0], likely[0])] == ["A man is selling snow.", "Stocks fell."]


def test_a_prefilter_keeps_the_best_samples_of_a_cheaper_metric() -> None:
    references = [["A man sells snow.", "Snow is sold."], ["The dog sat."]]
    for others in (None, references):
        choices = movers.mbr("bertscore_emd", SAMPLES, others, prefilter="wms", keep=2)
        coarse = [choice.utilities for choice in movers.mbr("wms", SAMPLES, others)]
        for row, (choice, samples) in enumerate(zip(choices, SAMPLES, strict=True)):
            kept = sorted(np.argsort(-np.array(coarse[row]), kind="stable")[:2].tolist())
            texts = [samples[place] for place in kept]
            expected = plain("bertscore_emd", texts, others[row] if others else texts).mean(axis=1)
            assert [place for place, value in enumerate(choice.utilities) if value is not None] == kept
            assert [choice.utilities[place] for place in kept] == pytest.approx(expected.tolist(), abs=1e-6)
            assert choice.index == kept[int(np.argmax([choice.utilities[place] for place in kept]))]

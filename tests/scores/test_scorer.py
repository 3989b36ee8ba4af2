"""What a Scorer does for all metrics: shared forward passes, streams, rows in errors."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
import torch
from plain import PREDICTIONS, REFERENCES
from tiny import TINY_WORDS, Passes, tiny_model, tiny_tokenizer

import movers
import movers.rewards
from movers import InputError, Scorer
from movers.scorer import SECTION, Row


def words(number: int, size: int = 6) -> str:
    return " ".join(np.random.default_rng(number).choice(TINY_WORDS, size=size))


def test_all_metrics_of_a_scorer_share_one_forward_pass_per_distinct_text() -> None:
    pair = tiny_model(seed=41), tiny_tokenizer()
    model, passes = {"model": movers.load_encoder(pair)}, Passes(pair[0])
    metrics: dict[str, Any] = {
        "words": ("wms", {**model, "temperature": 1, "stopwords": None}),
        "n-grams": ("moverscore", {**model, "n_gram": 2}),
        "greedy": ("bertscore_emd", {**model, "alignment": "greedy", "layer": 3}),
        "optimal": ("bertscore_hungarian", {**model, "layer": "mean"}),
    }
    texts = [words(number) for number in range(12)]
    predictions, references = [*texts[:8], texts[0]], [[text, texts[0]] for text in [*texts[4:12], texts[3]]]
    together = Scorer(metrics).score(predictions, references)
    assert sum(passes.sizes) == len(texts)
    for label, (name, options) in metrics.items():
        alone = getattr(movers, name)(predictions, references, **options)
        assert alone["scores"] == pytest.approx(together[label]["scores"], abs=1e-6)
        assert alone["signature"] == together[label]["signature"]


def test_a_stream_reads_rows_lazily() -> None:
    numbers = count()
    rows = (Row(f"snow {next(numbers)}", [f"rain {number}"]) for number in count())
    stream = Scorer("wms[temperature=1]").stream(rows)
    assert len(list(islice(stream, 3))) == 3
    assert next(numbers) <= SECTION
    stream.close()  # type: ignore[attr-defined]


def test_a_stream_continued_at_a_section_gives_the_same_bits(tiny_bert: Any) -> None:
    rows = [Row(words(number % 50), [words(number % 70, size=4)]) for number in range(SECTION + 40)]
    scorer = Scorer(("bertscore_emd", {"model": tiny_bert, "threads": 2}))
    scorer.forget()
    whole = list(scorer.stream(rows))
    scorer.forget()
    assert whole[SECTION:] == list(scorer.stream(rows[SECTION:], first_row=SECTION))
    result = scorer.collect(whole)["bertscore_emd"]
    assert result["scores"] == [example.score for (example,) in whole]


def test_errors_of_a_stream_name_absolute_rows(tiny_bert: Any) -> None:
    scorer = Scorer(("moverscore", {"model": tiny_bert, "truncation": "error"}))
    rows = [Row("a cat", ["a dog", "a man"])] * 1500
    for row, message in (
        (Row(words(1, size=80), ["a dog"]), r"predictions\[1500\]: "),
        (Row("a cat", [words(1, size=80)]), r"references\[1500\]: "),
        (Row("a cat", ["a dog", words(1, size=80)]), r"references\[1500\]\[1\]: "),
    ):
        with pytest.raises(InputError, match=f"^moverscore: {message}truncation='error'"):
            list(scorer.stream([*rows, row]))
    with pytest.raises(InputError, match=rf"^moverscore: predictions\[{SECTION + 1}\]: "):
        list(scorer.stream([rows[0], Row(words(1, size=80), ["a dog"])], first_row=SECTION))


def test_tables_of_the_corpus_are_built_before_a_stream_and_travel_to_other_processes() -> None:
    scorer = Scorer({"plain": "wms", "weighted": "wms[idf=corpus]", "tokens": "moverscore[idf=corpus,model=wordllama]"})
    assert scorer.needs_corpus and scorer.compared_with == ("references",)
    rows = [Row(prediction, [reference]) for prediction, reference in zip(PREDICTIONS, REFERENCES, strict=True)]
    prepared = pickle.loads(pickle.dumps(scorer.prepare(rows)))
    assert not prepared.needs_corpus
    streamed = prepared.collect(list(prepared.stream(rows)))
    assert streamed == scorer.score(PREDICTIONS, REFERENCES)
    assert streamed["plain"]["scores"] != pytest.approx(streamed["weighted"]["scores"], abs=1e-3)
    assert prepared.signatures == {label: result["signature"] for label, result in streamed.items()}


def test_the_result_is_plain_python_and_prints_as_a_line() -> None:
    result = movers.swms(["", PREDICTIONS[1]], [REFERENCES[:2], REFERENCES[2:5]], return_alignment=True)
    assert json.loads(json.dumps(result)) == result
    assert repr(result) == f"{result['score']:.4g} (n=2, empty 1) {result['signature']}"
    single = movers.swms(PREDICTIONS[:3], REFERENCES[:3])
    assert movers.swms(np.array(PREDICTIONS[:3]), [[text] for text in REFERENCES[:3]]) == single


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("swms", ["scores", "distances", "alignments"]),
        ("bertscore_emd", ["scores", "distances", "precision", "recall", "f1", "alignments"]),
        ("reference_free_summary_quality", ["scores", "faithfulness", "coverage", "non_repetition", "alignments"]),
    ],
)
def test_a_result_becomes_a_table_with_one_row_per_prediction(name: str, columns: list[str]) -> None:
    result: Any = getattr(movers, name)(PREDICTIONS[:3], REFERENCES[:3], return_alignment=True)
    table = result.to_pandas()
    assert list(table.columns) == columns and all(table[column].tolist() == result[column] for column in columns)


def test_a_later_call_passes_few_files_and_functions() -> None:
    texts = ["A man sells snow online.", "Prices went up."], ["A man is selling snow on the internet.", "Prices rose."]
    movers.wms(*texts)
    folder = f"{os.path.dirname(movers.__file__)}{os.sep}"
    passed: set[tuple[str, str, int]] = set()

    def record(frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder) and not code.co_name.endswith(("comp>", "genexpr>")):
            passed.add((code.co_filename, code.co_name, code.co_firstlineno))

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        movers.wms(*texts)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert 20 < len(passed) <= 70, sorted(passed)
    files = {file for file, *_ in passed}
    assert len(files) <= 14, sorted(files)


def test_scores_and_signatures_follow_a_model_in_training() -> None:
    model, tokenizer = tiny_model(seed=61), tiny_tokenizer()
    encoder = movers.load_encoder((model, tokenizer))
    reward = movers.rewards.reward("moverscore", model=(model, tokenizer), rescale=False)
    scorers = [Scorer(("moverscore", {"model": held})) for held in ((model, tokenizer), encoder)]
    texts = ["the red cat", "a dog"], ["the cat", "a dog"]
    before = [scorer.score(*texts)["moverscore"] for scorer in scorers]
    reward.score(*texts)
    model.embeddings.word_embeddings.weight.data += torch.linspace(0, 1, 16)
    fresh = movers.moverscore(*texts, model=(model, tokenizer))
    for scorer, old in zip(scorers, before, strict=True):
        new = scorer.score(*texts)["moverscore"]
        assert new["signature"] == fresh["signature"] != old["signature"]
        assert new["scores"] == pytest.approx(fresh["scores"], abs=1e-6) and new["scores"][0] != old["scores"][0]
    assert reward.score(*texts) == pytest.approx(fresh["scores"], abs=1e-6)


def test_a_row_too_large_to_compare_is_found_before_it_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("movers.scores.metric._MOST_CELLS", 100)
    pair = tiny_model(seed=62), tiny_tokenizer()
    encoder, passes = movers.load_encoder(pair), Passes(pair[0])
    rows = [words(1, 5), words(2, 20), words(3, 5)]
    metrics = [(name, {"model": encoder}) for name in ("moverscore", "bertscore_emd")]
    message = r"moverscore: predictions\[1\]: comparing 22 with 22 units takes 484 cells, more than 100"
    with pytest.raises(InputError, match=message):
        Scorer(metrics).score(rows, rows)
    assert not passes.sizes
    with pytest.warns(UserWarning, match=r"moverscore: 1 row\(s\) have no score; row 1: comparing 22 with 22 units"):
        results = Scorer(metrics, on_error="null").score(rows, rows)
    assert sum(passes.sizes) == 2
    for result in results.values():
        assert result["scores"] == [pytest.approx(1.0, abs=1e-6), None, pytest.approx(1.0, abs=1e-6)]
        assert result["n_failed"] == 1 and result["score"] == pytest.approx(1.0, abs=1e-6)
        assert not any(result[name] for name in ("n_unfiltered", "n_truncated", "n_unknown"))
    assert results["bertscore_emd"]["recall"][1] is None

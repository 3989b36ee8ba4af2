from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_tokenizer

import movers
from movers.errors import InputError
from movers.hooks import compute_metrics

TEXTS = ["a cat sat on the mat", "the old dog runs", "snow is in the box"]
OTHERS = ["the cat sat on it", "a big dog runs", "the man sells snow"]
QUALITY = "reference_free_summary_quality"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    tokenizer = tiny_tokenizer("bert")
    tokenizer.add_special_tokens({"cls_token": "[CLS]", "sep_token": "[SEP]"})  # decoding leaves them out then
    return tokenizer


def ids(tokenizer: Any, texts: list[str], fill: int = -100, width: int = 12) -> np.ndarray:
    """Token ids, special ones included, padded by `fill`."""
    rows = [tokenizer(text)["input_ids"] for text in texts]
    return np.array([row + [fill] * (width - len(row)) for row in rows])


def prediction(predictions: Any, labels: Any, inputs: Any = None) -> Any:
    return SimpleNamespace(predictions=predictions, label_ids=labels, inputs=inputs)


def means(values: dict[str, float]) -> dict[str, float]:
    """Without the intervals, which contain the score."""
    ends = ("_low", "_high")
    for name in [name for name in values if f"{name}_low" in values]:
        assert values[f"{name}_low"] - 1e-12 <= values[name] <= values[f"{name}_high"] + 1e-12
    return {name: value for name, value in values.items() if not name.endswith(ends)}


def test_ids_are_decoded_and_scored_as_the_texts_themselves(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms", ("sms", {"stopwords": None}), "swms[normalize=true]"])
    labels = ids(tokenizer, OTHERS)
    values = hook(prediction(ids(tokenizer, TEXTS, fill=tokenizer.pad_token_id), labels))
    assert hook(prediction(ids(tokenizer, TEXTS, fill=-100), labels)) == values and (labels < 0).any()
    assert means(values) == {
        "wms": movers.wms(TEXTS, OTHERS)["score"],
        "sms": movers.sms(TEXTS, OTHERS, stopwords=None)["score"],
        "swms": movers.swms(TEXTS, OTHERS, normalize=True)["score"],
    }
    assert all(type(value) is float for value in values.values())
    bare = tiny_tokenizer("bert")
    bare.pad_token = None
    masked = ids(bare, OTHERS)
    assert compute_metrics(bare, ["bertscore_emd"])(prediction(masked, masked[:, :-1]))["bertscore_emd"] > 0.9999


def test_logits_are_decoded_by_their_best_token(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    chosen = ids(tokenizer, TEXTS, fill=tokenizer.pad_token_id)
    logits = np.random.default_rng(0).normal(size=(*chosen.shape, len(tokenizer)))
    np.put_along_axis(logits, chosen[..., None], 99.0, axis=-1)
    labels = ids(tokenizer, OTHERS)
    expected = {"wms": movers.wms(TEXTS, OTHERS)["score"]}
    states = np.zeros((3, 4, 5))  # of the encoder; they follow
    for predictions in (logits, (logits, states), (chosen, states), torch.tensor(logits)):
        assert means(hook(prediction(predictions, labels))) == expected


def test_metrics_with_parts_add_them(tokenizer: Any) -> None:
    values = compute_metrics(tokenizer, ["bertscore_hungarian", "wms"])(
        prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS))
    )
    parts = ["bertscore_hungarian", "bertscore_hungarian_precision", "bertscore_hungarian_recall", "wms"]
    assert list(means(values)) == parts and len(values) == 8
    result = movers.bertscore_hungarian(TEXTS, OTHERS)
    assert values["bertscore_hungarian"] == pytest.approx(result["score"], abs=1e-9)
    assert values["bertscore_hungarian_precision"] == pytest.approx(np.mean(result["precision"]), abs=1e-9)


def test_batches_are_scored_together_with_the_last_call(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms[idf=corpus]"])
    whole = movers.wms(TEXTS, OTHERS, idf="corpus")["score"]
    for _ in range(2):  # nothing is left from the first time
        first = prediction(torch.tensor(ids(tokenizer, TEXTS[:2])), torch.tensor(ids(tokenizer, OTHERS[:2])))
        assert hook(first, False) == {}
        last = prediction(torch.tensor(ids(tokenizer, TEXTS[2:], width=9)), torch.tensor(ids(tokenizer, OTHERS[2:])))
        assert means(hook(last, compute_result=True)) == {"wms": pytest.approx(whole)}


def test_each_evaluation_writes_a_report_of_its_best_and_worst_rows(tokenizer: Any, tmp_path: Path) -> None:
    hook = compute_metrics(tokenizer, ["wms", "sms[stopwords=none]"], report_dir=tmp_path / "a" / "reports")
    for _ in range(2):
        hook(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    pages = sorted((tmp_path / "a" / "reports").iterdir())
    assert [page.name for page in pages] == ["evaluation-001.html", "evaluation-002.html"]
    text = pages[1].read_text(encoding="utf-8")
    assert text.count("<h2>Rows to look at</h2>") == 2 and "Evaluation 2: 3 rows" in text
    assert all(line in text for line in TEXTS)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot write it: File exists"):
        compute_metrics(tokenizer, ["wms"], report_dir=tmp_path / "file")


def test_a_batch_that_fails_leaves_nothing_behind(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    with pytest.raises(InputError, match="expected labels, but the evaluation set has none"):
        hook(prediction(ids(tokenizer, TEXTS), None))
    for wrong in (np.array([1, 2, 3]), np.array([[1.5, 2.0]]), np.array([["a", "b"]])):
        with pytest.raises(InputError, match=r"expected token ids, whole numbers \(rows, tokens\), but got shape"):
            hook(prediction(wrong, ids(tokenizer, OTHERS)))
    values = hook(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    assert means(values) == {"wms": movers.wms(TEXTS, OTHERS)["score"]}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "expected each metric once, but got none"),
        ("wms", "expected a list of metrics, but got 'wms'"),
        (["wsm"], "did you mean"),
        (["wms", "wms[normalize=true]"], "expected each metric once, but got wms, wms"),
        (["wms[n_gram=2]"], "wms: unknown option 'n_gram'"),
        ([("moverscore", {"variant": "v9"})], "moverscore: variant"),
    ],
)
def test_wrong_metrics_and_options_are_refused_before_training(tokenizer: Any, metrics: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compute_metrics(tokenizer, metrics)


def test_sources_are_read_from_the_inputs(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, [QUALITY])
    summaries, documents = ["a cat", "dog runs"], ["a big cat", "snow"]
    expected = pytest.approx(movers.reference_free_summary_quality(summaries, documents)["score"], abs=1e-6)
    values = hook(prediction(ids(tokenizer, summaries), None, inputs=ids(tokenizer, documents)))
    assert means(values) == {QUALITY: expected}
    with pytest.raises(InputError, match=r'expected the sources: set include_for_metrics=\["inputs"\]'):
        hook(prediction(ids(tokenizer, summaries), ids(tokenizer, documents)))
    inputs = {"input_ids": torch.tensor(ids(tokenizer, documents)), "attention_mask": torch.ones(2, 12)}
    assert hook(prediction(ids(tokenizer, summaries), None, inputs=inputs))[QUALITY] == expected

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import ROOT, tiny_model, tiny_tokenizer

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


# ---------------------------------------------------------------------------------------------------------------------
# Single calls


def test_ids_are_decoded_and_scored_as_the_texts_themselves(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms", ("sms", {"stopwords": None}), "swms[normalize=true]"])
    found = hook(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    assert found == {
        "wms": movers.wms(TEXTS, OTHERS)["score"],
        "sms": movers.sms(TEXTS, OTHERS, stopwords=None)["score"],
        "swms": movers.swms(TEXTS, OTHERS, normalize=True)["score"],
    }
    assert all(type(value) is float for value in found.values())


def test_minus_100_is_padding_on_both_sides(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    padded = hook(prediction(ids(tokenizer, TEXTS, fill=tokenizer.pad_token_id), ids(tokenizer, OTHERS, fill=-100)))
    assert hook(prediction(ids(tokenizer, TEXTS, fill=-100), ids(tokenizer, OTHERS))) == padded
    labels = ids(tokenizer, OTHERS)
    before = labels.copy()
    hook(prediction(ids(tokenizer, TEXTS), labels))
    assert np.array_equal(labels, before)


def test_logits_are_decoded_by_their_best_token(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    chosen = ids(tokenizer, TEXTS, fill=tokenizer.pad_token_id)
    logits = np.random.default_rng(0).normal(size=(*chosen.shape, len(tokenizer)))
    np.put_along_axis(logits, chosen[..., None], 99.0, axis=-1)
    labels = ids(tokenizer, OTHERS)
    expected = {"wms": movers.wms(TEXTS, OTHERS)["score"]}
    assert hook(prediction(logits, labels)) == expected
    assert hook(prediction((logits, np.zeros((3, 4, 5))), labels)) == expected  # encoder states follow
    assert hook(prediction((chosen, np.zeros((3, 4, 5))), labels)) == expected
    assert hook(prediction(torch.tensor(logits), torch.tensor(labels))) == expected


def test_metrics_with_parts_add_them(tokenizer: Any) -> None:
    found = compute_metrics(tokenizer, ["bertscore_hungarian", "wms"])(
        prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS))
    )
    assert list(found) == ["bertscore_hungarian", "bertscore_hungarian_precision", "bertscore_hungarian_recall", "wms"]
    result = movers.bertscore_hungarian(TEXTS, OTHERS)
    assert found["bertscore_hungarian"] == pytest.approx(result["score"], abs=1e-9)
    assert found["bertscore_hungarian_precision"] == pytest.approx(np.mean(result["precision"]), abs=1e-9)


def test_texts_are_postprocessed(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"], postprocess=lambda text: text.replace("cat", "dog"))
    values = hook(prediction(ids(tokenizer, ["a cat"]), ids(tokenizer, ["a dog"])))
    assert values["wms"] == pytest.approx(1)


# ---------------------------------------------------------------------------------------------------------------------
# Batch by batch


def test_batches_are_scored_together_with_the_last_call(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms[idf=corpus]"])
    whole = movers.wms(TEXTS, OTHERS, idf="corpus")["score"]
    for _ in range(2):  # nothing is left from the first time
        assert (
            hook(prediction(torch.tensor(ids(tokenizer, TEXTS[:2])), torch.tensor(ids(tokenizer, OTHERS[:2]))), False)
            == {}
        )
        last = prediction(torch.tensor(ids(tokenizer, TEXTS[2:], width=9)), torch.tensor(ids(tokenizer, OTHERS[2:])))
        assert hook(last, compute_result=True) == {"wms": pytest.approx(whole)}


def test_a_batch_that_fails_leaves_nothing_behind(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    with pytest.raises(InputError, match="expected labels, but the evaluation set has none"):
        hook(prediction(ids(tokenizer, TEXTS), None))
    found = hook(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    assert found == {"wms": movers.wms(TEXTS, OTHERS)["score"]}


def test_token_ids_of_another_shape_are_told(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    with pytest.raises(InputError, match=r"expected token ids \(rows, tokens\), but got shape \(3,\)"):
        hook(prediction(np.array([1, 2, 3]), ids(tokenizer, OTHERS)))


def test_ids_of_another_tokenizer_are_told(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, ["wms"])
    for others in (np.array([[5, len(tokenizer)], [7, 8]]), np.array([[5, 2**40], [7, 8]])):
        with pytest.raises(InputError, match="expected the tokenizer that made the labels, but they have the id"):
            hook(prediction(np.array([[5, 6], [7, 8]]), others))
    # many models have more outputs than tokens
    assert hook(prediction(np.array([[5, 6, len(tokenizer) + 3]]), np.array([[5, 6]]))) == {"wms": 1.0}
    for wrong in (np.array([[1.5, 2.0]]), np.array([["a", "b"]])):
        with pytest.raises(InputError, match=r"expected token ids \(whole numbers\), but got dtype"):
            hook(prediction(wrong, np.array([[5, 6]])))


def test_logits_that_are_no_numbers_are_told(tokenizer: Any) -> None:
    with pytest.warns(UserWarning, match="logits are not numbers"):
        compute_metrics(tokenizer, ["wms"])(prediction(np.full((1, 3, 9), np.nan), np.array([[5, 6, 7]])))


# ---------------------------------------------------------------------------------------------------------------------
# Which metrics


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "expected at least one metric"),
        (None, "expected a list of metrics, but got NoneType"),
        ([3], r"metric: expected NAME, NAME\[key=value,…\] or \(NAME, options\), but got 3"),
        (["wsm"], "did you mean"),
        (["wms", "wms[normalize=true]"], "expected each metric once, but got wms, wms"),
        (["wms[n_gram=2]"], "wms: unknown option 'n_gram'"),
        ([("moverscore", {"variant": "v9"})], "moverscore: variant"),
    ],
    ids=["none", "no list", "number", "unknown", "twice", "option", "value"],
)
def test_wrong_metrics_and_options_are_refused_before_training(tokenizer: Any, metrics: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compute_metrics(tokenizer, metrics)


def test_contextual_metrics_share_one_forward_pass(tokenizer: Any) -> None:
    model, rows = tiny_model("bert", seed=72), []  # no other test has cached its vectors
    model.register_forward_pre_hook(lambda _, args, kwargs: rows.append(len(kwargs["input_ids"])), with_kwargs=True)
    encoder = (model, tiny_tokenizer("bert"))
    names = ["moverscore", "bertscore_hungarian", "bertscore_emd"]
    compute = compute_metrics(tokenizer, [(name, {"model": encoder}) for name in names])
    found = compute(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    assert sum(rows) == len({*TEXTS, *OTHERS})
    for name in names:
        assert found[name] == pytest.approx(getattr(movers, name)(TEXTS, OTHERS, model=encoder)["score"], abs=1e-6)


def test_the_hook_is_reached_from_the_package() -> None:
    code = "import movers; print(movers.hooks.compute_metrics.__module__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "movers.hooks\n", done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Metrics that read the sources


def test_sources_are_read_from_the_inputs(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, [QUALITY])
    summaries, documents = ["a cat", "dog runs"], ["a big cat", "snow"]
    expected = pytest.approx(movers.reference_free_summary_quality(summaries, documents)["score"], abs=1e-6)
    found = hook(prediction(ids(tokenizer, summaries), None, inputs=ids(tokenizer, documents)))
    assert found == {QUALITY: expected}
    inputs = {"input_ids": torch.tensor(ids(tokenizer, documents)), "attention_mask": torch.ones(2, 12)}
    assert hook(prediction(ids(tokenizer, summaries), None, inputs=inputs)) == {QUALITY: expected}


def test_missing_sources_say_how_to_get_them(tokenizer: Any) -> None:
    hook = compute_metrics(tokenizer, [QUALITY, "wms"])
    with pytest.raises(InputError, match=r'expected the sources: set include_for_metrics=\["inputs"\]'):
        hook(prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS)))
    whole = prediction(ids(tokenizer, TEXTS), ids(tokenizer, OTHERS), ids(tokenizer, TEXTS))
    assert hook(whole) == {
        QUALITY: pytest.approx(movers.reference_free_summary_quality(TEXTS, TEXTS)["score"], abs=1e-6),
        "wms": movers.wms(TEXTS, OTHERS)["score"],
    }


# ---------------------------------------------------------------------------------------------------------------------
# A real trainer


@pytest.mark.parametrize("batchwise", [False, True], ids=["whole", "batch_eval_metrics"])
def test_a_trainer_selects_its_best_model_by_a_metric(tokenizer: Any, tmp_path: Path, batchwise: bool) -> None:
    pytest.importorskip("accelerate")
    from transformers import (
        DataCollatorForSeq2Seq,
        Seq2SeqTrainer,
        Seq2SeqTrainingArguments,
        T5Config,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=tokenizer.pad_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.convert_tokens_to_ids("[SEP]"),
    )
    model = T5ForConditionalGeneration(config)
    rows = [
        {"input_ids": tokenizer(source)["input_ids"], "labels": tokenizer(target)["input_ids"]}
        for source, target in zip(TEXTS, OTHERS, strict=True)
    ]
    seen: list[dict[str, float]] = []
    hook = compute_metrics(tokenizer, ["moverscore", QUALITY])

    def spied(eval_prediction: Any, compute_result: bool = True) -> dict[str, float]:
        values = hook(eval_prediction, compute_result=compute_result)
        seen.append(values)
        return values

    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(tmp_path / "run"),
            max_steps=2,
            per_device_train_batch_size=2,
            per_device_eval_batch_size=2,
            eval_strategy="steps",
            eval_steps=1,
            save_strategy="steps",
            save_steps=1,
            load_best_model_at_end=True,
            metric_for_best_model="moverscore",
            greater_is_better=True,
            predict_with_generate=True,
            generation_max_length=6,
            batch_eval_metrics=batchwise,
            include_for_metrics=["inputs"],
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=1,
        ),
        train_dataset=rows,
        eval_dataset=rows,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        compute_metrics=spied,
    )
    trainer.train()
    logged = [entry["eval_moverscore"] for entry in trainer.state.log_history if "eval_moverscore" in entry]
    assert len(logged) == 2 and all(type(value) is float for value in logged)
    assert trainer.state.best_metric == max(logged)
    assert trainer.state.best_model_checkpoint is not None
    # With batch_eval_metrics there are two calls an evaluation, and the first of them has no values.
    assert [bool(values) for values in seen] == ([False, True] * 2 if batchwise else [True] * 2)
    final = trainer.evaluate()
    assert final["eval_moverscore"] == pytest.approx(max(logged), abs=1e-6)
    assert type(final[f"eval_{QUALITY}"]) is float


def test_the_example_of_a_trainer_runs(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    import os

    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "seq2seq_trainer.py"), "--steps", "2", "--output", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout.strip().splitlines()[-1])
    assert {"eval_moverscore", "eval_bertscore_emd", "eval_bertscore_emd_precision", "eval_wms"} <= set(values)
    assert all(isinstance(value, float) for value in values.values())


def test_one_metric_as_a_text_and_no_tokenizer_are_told() -> None:
    with pytest.raises(InputError, match="metrics: expected a list of metrics, but got one text: 'wms'"):
        compute_metrics(object(), "wms")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="tokenizer: expected one with batch_decode, but got NoneType"):
        compute_metrics(None, ["wms"])  # type: ignore[arg-type]

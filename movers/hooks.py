"""The `compute_metrics` hook of `Trainer` and `Seq2SeqTrainer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from movers.registry import Metric, find_metric

__all__ = ["compute_metrics"]

Wish = str | tuple[str, Mapping[str, Any]]


def compute_metrics(
    tokenizer: Any,
    metrics: Sequence[Wish] = ("moverscore",),
    *,
    postprocess: Callable[[str], str] = str.strip,
) -> Callable[..., dict[str, float]]:
    """A function for `Trainer(compute_metrics=…)` that decodes and scores.

    Parameters
    ----------
    tokenizer
        What turns ids back into text (a tokenizer, or a processor with `batch_decode`).
    metrics : sequence
        Names (`"moverscore"`), names with options (`"moverscore[idf=corpus]"`), or `(name, options)` pairs.
    postprocess : function
        Applied to every decoded text.

    Returns
    -------
    function
        `(eval_prediction) → {name: score, …}`, Python floats only; Trainer puts `eval_` before the names. Metrics with
        parts add `name_precision` and `name_recall`. With `batch_eval_metrics=True` Trainer calls it batch by batch
        with `compute_result`, and the scores come with the last call. Reference-free metrics read the source documents
        from `include_for_metrics=["inputs"]`.

    Notes
    -----
    −100 stands for padding in labels and predictions and is never decoded. Predictions may be token ids (with
    `predict_with_generate=True`) or logits, whose best token is taken.
    """
    wishes = [_parse(wish) for wish in metrics]
    if not wishes:
        raise ValueError("compute_metrics: metrics: expected at least one metric, but got none")
    names = [metric.name for metric, _ in wishes]
    if len(set(names)) != len(names):
        raise ValueError(f"compute_metrics: metrics: expected each metric once, but got {', '.join(names)}")
    for metric, options in wishes:
        metric.options(options)  # a bad option is an error now, not after an epoch
    store: dict[str, list[str]] = {"predictions": [], "references": [], "sources": []}

    def hook(eval_prediction: Any, compute_result: bool = True) -> dict[str, float]:
        batch = {"predictions": _decode(tokenizer, _best_tokens(eval_prediction.predictions), postprocess)}
        if any(metric.against == "references" for metric, _ in wishes):
            if eval_prediction.label_ids is None:
                raise ValueError("compute_metrics: expected labels, but the evaluation set has none")
            batch["references"] = _decode(tokenizer, eval_prediction.label_ids, postprocess)
        if any(metric.against == "sources" for metric, _ in wishes):
            inputs = getattr(eval_prediction, "inputs", None)
            if isinstance(inputs, Mapping):  # all of the model's arguments come with batch_eval_metrics
                inputs = inputs.get("input_ids")
            if inputs is None:
                raise ValueError('compute_metrics: expected the sources: set include_for_metrics=["inputs"]')
            batch["sources"] = _decode(tokenizer, inputs, postprocess)
        for name, values in batch.items():  # only now: a batch that fails leaves nothing behind
            store[name] += values
        if not compute_result:
            return {}
        texts = {name: list(values) for name, values in store.items()}
        for values in store.values():
            values.clear()
        return _score(wishes, texts)

    return hook


def _parse(wish: Wish) -> tuple[Metric, dict[str, Any]]:
    if isinstance(wish, str):
        from movers.specs import parse_metric

        return parse_metric(wish)
    name, options = wish
    return find_metric(name), dict(options)


def _score(wishes: Iterable[tuple[Metric, dict[str, Any]]], texts: Mapping[str, list[str]]) -> dict[str, float]:
    values: dict[str, float] = {}
    for metric, options in wishes:
        result = metric.function(texts["predictions"], texts[metric.against], **options)
        values[metric.name] = result["score"]
        for part in ("precision", "recall"):
            if part in result:
                values[f"{metric.name}_{part}"] = sum(result[part]) / len(result[part])
    return values


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):  # torch tensors come with batch_eval_metrics
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _best_tokens(predictions: Any) -> np.ndarray:
    if isinstance(predictions, tuple | list) and len(predictions) and np.ndim(_array(predictions[0])) >= 2:
        predictions = predictions[0]  # encoder states and other outputs follow the logits
    array = _array(predictions)
    if array.ndim == 3:
        array = array.argmax(axis=-1)
    return array


def _decode(tokenizer: Any, ids: Any, postprocess: Callable[[str], str]) -> list[str]:
    array = _array(ids)
    if array.ndim != 2:
        raise ValueError(f"compute_metrics: expected token ids (rows, tokens), but got shape {array.shape}")
    pad = getattr(tokenizer, "pad_token_id", None)
    array = np.where(array < 0, 0 if pad is None else pad, array)
    return [postprocess(text) for text in tokenizer.batch_decode(array, skip_special_tokens=True)]

"""The `compute_metrics` function of `Trainer` and `Seq2SeqTrainer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from movers.errors import InputError
from movers.registry import MetricSpec, MetricWithOptions, parse_metric, score_many

if TYPE_CHECKING:
    from transformers import EvalPrediction, PreTrainedTokenizerBase

__all__ = ["ComputeMetrics", "compute_metrics"]


def compute_metrics(
    tokenizer: PreTrainedTokenizerBase,
    metrics: Sequence[MetricWithOptions] = ("moverscore",),
    *,
    postprocess: Callable[[str], str] = str.strip,
) -> ComputeMetrics:
    """A function for `Trainer(compute_metrics=…)` that decodes and scores.

    Parameters
    ----------
    tokenizer
        Decodes ids (a tokenizer, or a processor with `batch_decode`).
    metrics : sequence
        Names (`"moverscore"`), names with options (`"moverscore[idf=corpus]"`), or `(name, options)` pairs.
    postprocess : function
        Applied to every decoded text.

    Returns
    -------
    ComputeMetrics
        `(eval_prediction) → {name: score, …}`, Python floats only; Trainer prefixes the names with `eval_`. Metrics
        that return precision and recall add `name_precision` and `name_recall`. With `batch_eval_metrics=True` Trainer
        calls it batch by batch with `compute_result`, and the last call returns the scores. Reference-free metrics read
        the source documents from `include_for_metrics=["inputs"]`.

    Notes
    -----
    −100 stands for padding in labels and predictions and is never decoded. Predictions may be token ids (with
    `predict_with_generate=True`) or logits, whose argmax is decoded.
    """
    if isinstance(metrics, str):
        raise InputError(f"compute_metrics: metrics: expected a list of metrics, but got one text: {metrics!r}")
    if not hasattr(tokenizer, "batch_decode"):
        came = type(tokenizer).__name__
        raise InputError(f"compute_metrics: tokenizer: expected one with batch_decode, but got {came}")
    parsed = [parse_metric(item) for item in metrics]
    names = [spec.name for spec, _ in parsed]
    if not names:
        raise InputError("compute_metrics: metrics: expected at least one metric, but got none")
    if len(set(names)) != len(names):
        raise InputError(f"compute_metrics: metrics: expected each metric once, but got {', '.join(names)}")
    for spec, options in parsed:
        spec.parse(options)  # fail now, not after an epoch
    return ComputeMetrics(tokenizer, parsed, postprocess)


@dataclass
class ComputeMetrics:
    """Collects the decoded batches of an evaluation and scores them after the last one.

    Attributes
    ----------
    texts : dict
        Predictions, references and sources of the batches so far.
    """

    tokenizer: PreTrainedTokenizerBase
    metrics: Sequence[tuple[MetricSpec, Mapping[str, object]]]
    postprocess: Callable[[str], str]
    texts: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, eval_prediction: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        batch = {"predictions": self._decode(_best_tokens(eval_prediction.predictions))}
        compared_with = {spec.compared_with for spec, _ in self.metrics}
        if "references" in compared_with:
            if eval_prediction.label_ids is None:
                raise InputError("compute_metrics: expected labels, but the evaluation set has none")
            batch["references"] = self._decode(_array(eval_prediction.label_ids))
        if "sources" in compared_with:
            batch["sources"] = self._decode(_array(_source_ids(eval_prediction)))
        for name, texts in batch.items():  # after decoding, so that nothing is kept of a batch that fails
            self.texts.setdefault(name, []).extend(texts)
        if not compute_result:
            return {}
        complete, self.texts = self.texts, {}
        return self._score(**complete)

    def _decode(self, ids: np.ndarray) -> list[str]:
        if ids.ndim != 2:
            raise InputError(f"compute_metrics: expected token ids (rows, tokens), but got shape {ids.shape}")
        padding = getattr(self.tokenizer, "pad_token_id", None) or 0
        decoded = self.tokenizer.batch_decode(np.where(ids < 0, padding, ids), skip_special_tokens=True)
        return [self.postprocess(text) for text in decoded]

    def _score(
        self, predictions: list[str], references: list[str] | None = None, sources: list[str] | None = None
    ) -> dict[str, float]:
        metrics = [(spec.name, options) for spec, options in self.metrics]
        values: dict[str, float] = {}
        for name, result in score_many(metrics, predictions, references, sources=sources).items():
            values[name] = _mean(result["score"])
            values |= {f"{name}_{part}": _mean(result[part]) for part in ("precision", "recall") if part in result}
        return values


def _source_ids(eval_prediction: EvalPrediction) -> object:
    inputs = getattr(eval_prediction, "inputs", None)
    if isinstance(inputs, Mapping):  # with batch_eval_metrics, all arguments of the model
        inputs = inputs.get("input_ids")
    if inputs is None:
        raise InputError('compute_metrics: expected the sources: set include_for_metrics=["inputs"]')
    return inputs


def _mean(values: object) -> float:
    return float(np.mean(np.asarray(values, dtype=np.float64)))


def _array(values: object) -> np.ndarray:
    if hasattr(values, "detach"):  # torch tensors come with batch_eval_metrics
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _best_tokens(predictions: object) -> np.ndarray:
    if isinstance(predictions, tuple | list) and len(predictions) and np.ndim(_array(predictions[0])) >= 2:
        predictions = predictions[0]  # encoder states and other outputs follow the logits
    array = _array(predictions)
    return array.argmax(axis=-1) if array.ndim == 3 else array

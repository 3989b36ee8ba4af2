"""The `compute_metrics` function of `Trainer` and `Seq2SeqTrainer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from movers.agreement.systems import mean_interval
from movers.errors import InputError
from movers.io import make_folder, write_file
from movers.registry import MetricSpec, MetricWithOptions, parse_metric
from movers.scorer import Row, Scorer

if TYPE_CHECKING:
    from transformers import EvalPrediction, PreTrainedTokenizerBase

__all__ = ["ComputeMetrics", "compute_metrics"]


class ComputeMetrics:
    """A function for `Trainer(compute_metrics=…)` that decodes and scores: `(eval_prediction) → {name: score, …}`.

    `name_low` and `name_high` are the 95 % interval of the score (bootstrap over rows). Metrics that return precision
    and recall add `name_precision` and `name_recall`. Predictions may be token ids (with
    `predict_with_generate=True`) or logits, whose argmax is decoded; −100 is left out. With
    `batch_eval_metrics=True` Trainer calls it batch by batch, and the last call returns the scores. Reference-free
    metrics read the source documents from `include_for_metrics=["inputs"]`.

    `tokenizer` (or a processor with `batch_decode`) decodes ids, `postprocess` is applied to every decoded text.
    `metrics` are names, names with options (`"moverscore[idf=corpus]"`), or `(name, options)` pairs; their models are
    loaded once, at the first evaluation. The folder `report_dir` receives `evaluation-001.html` and so on, one page per
    evaluation: for every metric the distribution of scores, and the five best and worst rows with their alignments.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        metrics: Sequence[MetricWithOptions] = ("moverscore",),
        *,
        postprocess: Callable[[str], str] = str.strip,
        report_dir: str | Path | None = None,
    ) -> None:
        if isinstance(metrics, str) or not isinstance(metrics, Iterable):
            raise InputError(f"compute_metrics: metrics: expected a list of metrics, but got {metrics!r:.60}")
        self.metrics: list[tuple[MetricSpec, dict[str, Any]]] = [parse_metric(item) for item in metrics]
        names = [spec.name for spec, _ in self.metrics]
        if not names or len(set(names)) < len(names):
            got = ", ".join(names) or "none"
            raise InputError(f"compute_metrics: metrics: expected each metric once, but got {got}")
        for spec, options in self.metrics:
            spec.parse(options)  # fail now, not after an epoch
        if report_dir is not None:
            make_folder(report_dir)
        self.tokenizer, self.postprocess, self.report_dir = tokenizer, postprocess, report_dir
        self.texts: dict[str, list[str]] = {}  # predictions, references and sources of the batches so far

    @cached_property
    def scorer(self) -> Scorer:
        return Scorer([(spec.name, options) for spec, options in self.metrics])

    def __call__(self, eval_prediction: EvalPrediction, compute_result: bool = True) -> dict[str, float]:
        batch = {"predictions": self._decode(_best_tokens(eval_prediction.predictions))}
        if "references" in self.scorer.compared_with:
            if eval_prediction.label_ids is None:
                raise InputError("compute_metrics: expected labels, but the evaluation set has none")
            batch["references"] = self._decode(eval_prediction.label_ids)
        if "sources" in self.scorer.compared_with:
            inputs = getattr(eval_prediction, "inputs", None)
            if isinstance(inputs, Mapping):  # with batch_eval_metrics, all arguments of the model
                inputs = inputs.get("input_ids")
            if inputs is None:
                raise InputError('compute_metrics: expected the sources: set include_for_metrics=["inputs"]')
            batch["sources"] = self._decode(inputs)
        for name, texts in batch.items():  # after decoding, so that nothing is kept of a batch that fails
            self.texts.setdefault(name, []).extend(texts)
        if not compute_result:
            return {}
        complete, self.texts = self.texts, {}
        values: dict[str, float] = {}
        for name, result in self.scorer.score(**complete).items():
            low, high = mean_interval(np.array(result["scores"]))
            values |= {name: float(result["score"]), f"{name}_low": low, f"{name}_high": high}
            parts = [part for part in ("precision", "recall") if part in result]
            values |= {f"{name}_{part}": float(np.mean(result[part])) for part in parts}
        if self.report_dir is not None:
            self._report(Path(self.report_dir), complete)
        return values

    def _report(self, folder: Path, texts: Mapping[str, Sequence[str]]) -> None:
        """Write the page of an evaluation."""
        from movers.pictures import document, report

        compared = {name: [[text] for text in texts[name]] for name in ("references", "sources") if name in texts}
        rows = [Row(text, **{name: column[row] for name, column in compared.items()})
                for row, text in enumerate(texts["predictions"])]  # fmt: skip
        bodies = [report(spec.name, rows, most=5, **options).body() for spec, options in self.metrics]
        number = 1 + len(list(folder.glob("evaluation-*.html")))
        title = f"Evaluation {number}: {len(rows)} rows"
        write_file(folder / f"evaluation-{number:03}.html", document(title, "\n".join(bodies)))

    def _decode(self, values: object) -> list[str]:
        ids = _array(values)
        if ids.ndim != 2 or not (np.issubdtype(ids.dtype, np.integer) or not ids.size):
            got = f"shape {ids.shape} and dtype {ids.dtype}"
            raise InputError(f"compute_metrics: expected token ids, whole numbers (rows, tokens), but got {got}")
        unmasked = [row[row >= 0].tolist() for row in ids]
        decoded = self.tokenizer.batch_decode(unmasked, skip_special_tokens=True)
        return [self.postprocess(text) for text in decoded]


compute_metrics = ComputeMetrics


def _array(values: object) -> np.ndarray:
    if hasattr(values, "detach"):  # torch tensors come with batch_eval_metrics
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _best_tokens(predictions: object) -> np.ndarray:
    if isinstance(predictions, tuple | list) and len(predictions) and np.ndim(_array(predictions[0])) >= 2:
        predictions = predictions[0]  # encoder states and other outputs follow the logits
    array = _array(predictions)
    return array.argmax(axis=-1) if array.ndim == 3 else array

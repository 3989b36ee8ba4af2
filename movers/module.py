"""Base of the evaluate modules in `metrics/`: validates texts, accepts options at load time, keeps rows on failure.

evaluate stores rows in Arrow before a metric sees them, and Arrow silently converts invalid values (`"abc"` becomes
three rows, a list among strings becomes its repr). So texts are validated here first, and references are always stored
as lists.
"""

from __future__ import annotations

import abc
import inspect
import os
from collections.abc import Mapping
from typing import Any

import datasets
import evaluate

from movers.errors import InputError
from movers.inputs import check_pairs
from movers.registry import MetricSpec, find_metric
from movers.scorer import Scorer

_SETTINGS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


def text_metric_info(name: str, description: str, citation: str, inputs: str, url: str) -> evaluate.MetricInfo:
    """`MetricInfo` of a metric; a reference (or source) is one text or a list of texts."""
    text = datasets.Value("string")
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=inputs,
        features=[
            datasets.Features({"predictions": text, find_metric(name).compared_with: form})
            for form in (datasets.Sequence(text), text)
        ],
        reference_urls=[url],
        license="Apache-2.0",
    )


class TextMetric(evaluate.Metric, abc.ABC):
    """Base of the modules; abstract, because evaluate's loader would instantiate it instead of the module's class.

    A module names its class after its folder (`BertscoreEmd` for `bertscore_emd`) and all options in `_compute`, which
    calls `score`. Options given to `evaluate.load` are the defaults of every later `compute`.
    """

    data: datasets.Dataset | None  # set by evaluate during `compute`

    def __init__(self, config_name: str | None = None, **settings: object) -> None:
        super().__init__(config_name=config_name, **{key: settings[key] for key in _SETTINGS & settings.keys()})
        if config_name not in (None, "default"):
            raise InputError(f"{self.name}: config_name: expected none, but got {config_name!r}; options have names")
        self.load_options = {key: value for key, value in settings.items() if key not in _SETTINGS}
        self.spec.parse(self.load_options)
        self._passed = list(self.load_options)
        self._scorer: tuple[object, Scorer] | None = None  # with the options it was built for

    @abc.abstractmethod
    def _info(self) -> evaluate.MetricInfo: ...

    @property
    def spec(self) -> MetricSpec:
        return find_metric(self.name)

    def score(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Score the `locals()` of `_compute`."""
        # Not the defaults among them, which would override a preset.
        options = {key: arguments[key] for key in self._passed}
        texts = {key: arguments[key] for key in ("predictions", self.spec.compared_with)}
        parsed = self.spec.parse(options)
        if self._scorer is None or self._scorer[0] != parsed:
            self._scorer = parsed, Scorer((self.name, options))
        return self._scorer[1].score(**texts)[self.name]

    def compute(self, *, predictions: object = None, references: object = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score the given rows together with those added before; returns None on processes other than the first.

        If it fails, rows added before are kept (with `num_process=1`), rows of this call are not.
        """
        compared_with = self.spec.compared_with
        named = {compared_with: kwargs.pop(compared_with)} if compared_with in kwargs else {}
        rows = self._name_inputs(predictions, references, named)
        options = {**self.load_options, **kwargs}
        self.spec.parse(options)
        self._passed = list(options)
        added = len(self)
        if any(texts is not None for texts in rows.values()):
            self.add_batch(**rows)
        elif not added:
            expected = f"expected at least one row, but got none; pass {compared_with} here or to add_batch"
            raise InputError(f"{self.name}: predictions and {compared_with}: {expected}")
        try:
            result = super().compute(**options)
        except BaseException:
            self._give_back(added)
            raise
        self.filelocks = self.file_paths = self.rendez_vous_lock = None  # released
        return result

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add rows for a later `compute`; if one is invalid, none is added."""
        self._store(self._name_inputs(predictions, references, kwargs))

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one row for a later `compute`."""
        # evaluate.combine passes the plural names here too.
        plural = {f"{key.removesuffix('s')}s": value for key, value in kwargs.items()}
        row = self._name_inputs(plural.pop("predictions", prediction), plural.pop("references", reference), plural)
        self._store({key: [text] for key, text in row.items()}, first_row=len(self))

    def _name_inputs(self, predictions: object, references: object, others: Mapping[str, object]) -> dict[str, object]:
        compared_with = self.spec.compared_with
        inputs = {"predictions": predictions, "references": references, **others}
        if compared_with != "references" and references is None:
            del inputs["references"]  # evaluate.combine passes it to every module
        if unknown := ", ".join(key for key in inputs if key not in ("predictions", compared_with)):
            hint = self.spec.usage if unknown == "references" else "options go to evaluate.load or compute"
            raise InputError(f"{self.name}: expected predictions and {compared_with}, but got {unknown}; {hint}")
        return {"predictions": predictions, compared_with: inputs.get(compared_with)}

    def _store(self, rows: Mapping[str, object], first_row: int = 0) -> None:
        compared_with = self.spec.compared_with
        texts, groups = check_pairs(self.name, rows["predictions"], rows[compared_with], compared_with, first_row)
        if self.writer is not None:
            self.writer.write_examples_on_file()  # flush earlier rows first, to keep the order
        super().add_batch(predictions=texts, **{compared_with: groups})

    def _give_back(self, added: int) -> None:
        """After a failed computation, release files and locks and restore the rows added before (of one process)."""
        rows = self.data[:added] if added and self.data is not None and self.num_process == 1 else None
        files: list[tuple[Any, str]] = list(zip(self.filelocks or [], self.file_paths or [], strict=True))
        self.data = self.writer = self.buf_writer = None
        for lock, path in files:
            os.remove(path)
            lock.release()
        self.filelocks = self.file_paths = self.rendez_vous_lock = None
        if rows is not None:
            super().add_batch(**rows)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_scorer": None}  # models are loaded again

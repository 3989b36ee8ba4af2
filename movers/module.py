"""Base of the evaluate modules in `metrics/`: validates texts, accepts options at load time, keeps rows on failure.

evaluate stores rows in Arrow before a metric sees them, and Arrow silently converts invalid values (`"abc"` becomes
three rows, a list among strings becomes its repr). So texts are validated here first, and references are always stored
as lists.
"""

from __future__ import annotations

import abc
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import datasets
import evaluate

from movers.errors import InputError
from movers.inputs import check_options, check_pairs, is_group
from movers.registry import MetricSpec, find_metric
from movers.scores import engine
from movers.weights import Corpus

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["TextMetric", "text_metric_info"]

_SETTINGS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


def text_metric_info(
    name: str, description: str, citation: str, inputs_description: str, url: str
) -> evaluate.MetricInfo:
    """`MetricInfo` of a metric; a reference (or source) is one text or a list of texts."""
    text = datasets.Value("string")
    forms = (datasets.Sequence(text), text)
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=inputs_description,
        features=[datasets.Features({"predictions": text, find_metric(name).compared_with: form}) for form in forms],
        reference_urls=[url],
        license="Apache-2.0",
    )


class TextMetric(evaluate.Metric, abc.ABC):
    """Base of the modules; abstract, because evaluate's loader would instantiate it instead of the module's class.

    A module names its class after its folder (`BertscoreEmd` for `bertscore_emd`) and lists all options of its metric
    in `_compute`, which calls `score`. Options given to `evaluate.load` are the defaults of every later `compute`.

    Attributes
    ----------
    load_options : dict
        Options given to `evaluate.load`.
    """

    data: datasets.Dataset | None  # set by evaluate during `compute`

    def __init__(self, config_name: str | None = None, **settings: object) -> None:
        own = {key: value for key, value in settings.items() if key in _SETTINGS}
        super().__init__(config_name=config_name, **own)
        if config_name not in (None, "default"):
            raise InputError(
                f"{self.name}: config_name: expected none, but got {config_name!r}; "
                "options have names: evaluate.load(path, model=…)"
            )
        self.load_options = {key: value for key, value in settings.items() if key not in own}
        options = self.spec.parse(self.load_options)
        if "shared_pass" in self.load_options:
            # The first module to compute must know which layers the others need, so all register at load time; the
            # corpus is a blank placeholder.
            self.spec.build(options, Corpus([""], [[""]]))
        self._grouped: bool | None = None

    @abc.abstractmethod
    def _info(self) -> evaluate.MetricInfo:
        """The result of `text_metric_info`."""

    @property
    def spec(self) -> MetricSpec:
        """The metric that this module computes."""
        return find_metric(self.name)

    def score(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        """Score the `locals()` of `_compute`: rows, which were validated when they were added, and options."""
        compared_with = self.spec.compared_with
        options = {key: value for key, value in arguments.items() if key not in ("self", "predictions", compared_with)}
        predictions, references = arguments["predictions"], arguments[compared_with]
        metric = self.spec.build(self.spec.parse(options), Corpus(predictions, references))
        return engine.score(metric, predictions, references)

    def compute(
        self, *, predictions: object = None, references: object = None, **kwargs: object
    ) -> dict[str, object] | None:
        """Score the given rows together with those added before; returns None on processes other than the first.

        If it fails, rows added before are kept (with `num_process=1`), rows of this call are not.
        """
        compared_with = self.spec.compared_with
        named = {compared_with: kwargs.pop(compared_with)} if compared_with in kwargs else {}
        given = self._name_inputs(predictions, references, named)
        options = inspect.signature(type(self)._compute).parameters.keys() - {"self", "predictions", compared_with}
        check_options(self.name, kwargs, options)
        added = len(self)
        if any(value is not None for value in given.values()):
            self.add_batch(**given)
        elif not added:
            raise InputError(
                f"{self.name}: predictions and {compared_with}: expected at least one row, but got none; "
                "pass them here, or call add or add_batch before"
            )
        try:
            result = super().compute(**{**self.load_options, **kwargs})
        except BaseException:
            self._give_back(added)
            raise
        self._grouped = None
        self._forget_locks()
        return result

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add rows for a later `compute`; if one is invalid, none is added."""
        given = self._name_inputs(predictions, references, kwargs)
        self._store(given["predictions"], given[self.spec.compared_with], first_row=0)

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one row for a later `compute`."""
        # evaluate.combine passes the plural names here too.
        plural = {key if key.endswith("s") else f"{key}s": value for key, value in kwargs.items()}
        given = self._name_inputs(plural.pop("predictions", prediction), plural.pop("references", reference), plural)
        self._store([given["predictions"]], [given[self.spec.compared_with]], first_row=len(self))

    def _name_inputs(self, predictions: object, references: object, others: Mapping[str, object]) -> dict[str, object]:
        """Predictions and references (or sources) by name; anything else is an error."""
        compared_with = self.spec.compared_with
        given = {"predictions": predictions, "references": references, **others}
        if compared_with != "references" and references is None:
            del given["references"]  # evaluate.combine passes it to every module
        unknown = [key for key in given if key not in ("predictions", compared_with)]
        if unknown:
            hint = "" if unknown == ["references"] else "; options go to evaluate.load or compute"
            raise InputError(
                f"{self.name}: expected predictions and {compared_with}, but got {', '.join(unknown)}{hint}"
            )
        return {"predictions": predictions, compared_with: given.get(compared_with)}

    def _store(self, predictions: object, references: object, first_row: int) -> None:
        """Validate and store rows, with references as lists; strings and lists must not be mixed."""
        argument = self.spec.compared_with
        references = list(references) if isinstance(references, Iterator) else references
        texts, groups = check_pairs(self.name, predictions, references, argument, first_row)
        assert isinstance(references, Iterable)  # validated above
        grouped = is_group(next(iter(references)))
        if self._grouped not in (None, grouped):
            actual, expected = ("a list", "a str") if grouped else ("a str", "a list")
            raise InputError(
                f"{self.name}: {argument}[{first_row}]: expected {expected} like the rows added before, "
                f"but got {actual}; give every row a str or every row a list of str"
            )
        if self.writer is not None:
            self.writer.write_examples_on_file()  # flush earlier rows first, to keep the order
        super().add_batch(predictions=texts, **{argument: groups})
        self._grouped = grouped

    def _give_back(self, added: int) -> None:
        """After a failed computation, release files and locks and restore the rows added before the call.

        With several processes rows cannot be restored and have to be added again.
        """
        kept = self.data[:added] if added and self.data is not None and self.num_process == 1 else None
        files = list(zip(self.filelocks or [], self.file_paths or [], strict=True))
        self.data = self.writer = self.buf_writer = None
        for lock, path in files:
            os.remove(path)
            lock.release()
        self._forget_locks()
        if kept is None:
            self._grouped = None
        else:
            super().add_batch(**kept)

    def _forget_locks(self) -> None:
        # Released already; with them a metric could not be pickled.
        self.filelocks: list[BaseFileLock] | None = None
        self.file_paths: list[str] | None = None
        self.rendez_vous_lock: object = None

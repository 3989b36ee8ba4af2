"""What every evaluate module in `metrics/` shares: raw-input checks, options at load time, rows that survive a failure.

evaluate stores rows in Arrow before a metric sees them, and Arrow may change them without a word (`"abc"` becomes three
rows, a list among strings becomes its own spelling). So texts are checked here as they come, and references are stored
as lists always.
"""

from __future__ import annotations

import abc
import inspect
import os
from collections.abc import Iterator, Mapping
from typing import Any

import datasets
import evaluate

from movers.inputs import check_choice, check_options, check_pairs, is_group
from movers.registry import Metric, find_metric

__all__ = ["CODEBASE", "TextMetric", "text_metric_info"]

CODEBASE = "https://github.com/movers-metrics/movers"
_SETTINGS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


def text_metric_info(
    name: str, description: str, citation: str, inputs_description: str, reference_urls: list[str]
) -> evaluate.MetricInfo:
    """The card that evaluate shows of a metric; a row's reference (or source) is one text or a list of texts."""
    against = find_metric(name).against
    text = datasets.Value("string")
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=inputs_description,
        features=[
            datasets.Features({"predictions": text, against: datasets.Sequence(text)}),
            datasets.Features({"predictions": text, against: text}),
        ],
        homepage=CODEBASE,
        codebase_urls=[CODEBASE],
        reference_urls=reference_urls,
        license="Apache-2.0",
    )


class TextMetric(evaluate.Metric, abc.ABC):
    """Base of the modules. Abstract, because evaluate's loader would instantiate it in place of the module's own class.

    A module names its class after its folder (`BertscoreEmd` for `bertscore_emd`) and spells out all options of its
    metric in `_compute`. Options given to `evaluate.load` hold for every later `compute`, which may override them.

    Attributes
    ----------
    load_options : dict
        Options given to `evaluate.load`.
    """

    data: Any  # evaluate's: the rows as a dataset, while they are computed

    def __init__(self, config_name: str | None = None, **settings: Any) -> None:
        own = {key: value for key, value in settings.items() if key in _SETTINGS}
        super().__init__(config_name=config_name, **own)
        if config_name not in (None, "default"):
            raise ValueError(
                f"{self.name}: config_name: expected none, but got {config_name!r}; "
                "options have names: evaluate.load(path, model=…)"
            )
        self.load_options: dict[str, Any] = {}
        self.load_options = self._settle({key: value for key, value in settings.items() if key not in own})
        self._grouped: bool | None = None
        self._announce()

    def _announce(self) -> None:
        """Metrics that are loaded together (`evaluate.combine`) and share an encoder shall share its passes too."""
        from movers.encoders import announce

        given = {key: value for key, value in self.load_options.items() if key != "return_alignment"}
        wanted = self.metric.layers(given)
        if wanted is not None:
            announce(*wanted)

    @abc.abstractmethod
    def _info(self) -> evaluate.MetricInfo:
        """What `text_metric_info` makes of the module's texts."""

    @property
    def metric(self) -> Metric:
        """The metric of the core that this module is a door to."""
        return find_metric(self.name)

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score the given rows together with those added before; None on processes other than the first.

        If it fails, rows added before are still there (with `num_process=1`) and rows of this call are not.
        """
        against = self.metric.against
        given = self._name_inputs(predictions, references, {key: kwargs[key] for key in kwargs if key == against})
        options = self._settle({key: value for key, value in kwargs.items() if key != against})
        added = len(self)
        if any(value is not None for value in given.values()):
            self.add_batch(**given)
        elif not added:
            raise ValueError(
                f"{self.name}: predictions and {against}: expected at least one row, but got none; "
                "pass them here, or call add or add_batch before"
            )
        try:
            result = super().compute(**options)
        except BaseException:
            self._give_back(added)
            raise
        self._grouped = None
        self._forget_locks()
        return result

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add rows for a later `compute`; if one of them is wrong, none is added."""
        given = self._name_inputs(predictions, references, kwargs)
        self._store(given["predictions"], given[self.metric.against], first_row=0)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one row for a later `compute`."""
        # evaluate.combine passes the plural names here too.
        plural = {key if key.endswith("s") else f"{key}s": value for key, value in kwargs.items()}
        given = self._name_inputs(plural.pop("predictions", prediction), plural.pop("references", reference), plural)
        self._store([given["predictions"]], [given[self.metric.against]], first_row=len(self))

    def _name_inputs(self, predictions: Any, references: Any, others: Mapping[str, Any]) -> dict[str, Any]:
        """Predictions and what they are compared with, by name; anything else is an error."""
        against = self.metric.against
        given = {"predictions": predictions, "references": references, **others}
        if against != "references" and given["references"] is None:
            del given["references"]  # evaluate.combine passes it to every module
        unknown = [key for key in given if key not in ("predictions", against)]
        if unknown:
            hint = "" if unknown == ["references"] else "; options go to evaluate.load or compute"
            raise TypeError(f"{self.name}: expected predictions and {against}, but got {', '.join(unknown)}{hint}")
        return {"predictions": predictions, against: given.get(against)}

    def _settle(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the load overridden by those given, all checked."""
        known = [
            key
            for key in inspect.signature(type(self)._compute).parameters
            if key not in ("self", "predictions", self.metric.against)
        ]
        check_options(self.name, given, known)
        options = {**self.load_options, **given}
        check_choice(self.name, "return_alignment", options.get("return_alignment", False), (True, False))
        self.metric.options({key: value for key, value in options.items() if key != "return_alignment"})
        return options

    def _store(self, predictions: Any, against: Any, first_row: int) -> None:
        """Check rows and write them, references as lists, so that rows of one form and of the other cannot mix."""
        kind = self.metric.against
        against = list(against) if isinstance(against, Iterator) else against
        texts, groups = check_pairs(self.name, predictions, against, kind, first_row)
        grouped = is_group(next(iter(against)))
        if self._grouped not in (None, grouped):
            came, before = ("a list", "a str") if grouped else ("a str", "a list")
            raise TypeError(
                f"{self.name}: {kind}[{first_row}]: expected {before} like the rows added before, but got {came}; "
                "give every row a str or every row a list of str"
            )
        if self.writer is not None:
            self.writer.write_examples_on_file()  # rows that wait in the writer come before these
        super().add_batch(predictions=texts, **{kind: groups})
        self._grouped = grouped

    def _give_back(self, added: int) -> None:
        """After a failed computation: let go of files and locks, and put the rows added before the call back.

        Other processes cannot put theirs back, so with several processes all rows have to come again.
        """
        kept = self.data[:added] if added and self.data is not None and self.num_process == 1 else None
        files: list[tuple[Any, str]] = list(zip(self.filelocks or [], self.file_paths or [], strict=True))
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
        # They are released; a metric that still holds them cannot be pickled.
        self.filelocks: list[Any] | None = None
        self.file_paths: list[str] | None = None
        self.rendez_vous_lock: Any = None

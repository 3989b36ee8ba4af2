"""Scoring a whole dataset, in this process or by Ray Data's `map_batches` on a cluster."""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, Literal, NamedTuple

from movers.errors import InputError, import_extra
from movers.inputs import check_choice, check_text_groups, check_texts
from movers.registry import MetricWithOptions
from movers.scorer import SECTION, Example, Row, Scorer

__all__ = ["ScoredDataset", "score_batches", "score_dataset"]


class ScoredDataset(NamedTuple):
    """The dataset with score columns, and for each metric the corpus `score`, the `signature` and counts (`n_*`)."""

    dataset: Any
    results: dict[str, dict[str, Any]]


def score_dataset(
    dataset: Any,
    metrics: MetricWithOptions | Sequence[MetricWithOptions],
    *,
    predictions: str = "prediction",
    references: str = "reference",
    sources: str = "source",
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    batch_size: int = SECTION,
    concurrency: int | None = None,
    num_cpus: float = 1,
    num_gpus: float | None = None,
    on_error: Literal["raise", "null"] = "raise",
    **options: object,
) -> ScoredDataset:
    """Score each row of a `datasets.Dataset`; both engines give the same scores, in row order.

    Each metric adds a column, named as the metric is written, and one per further number (`bertscore_emd_precision`).
    `predictions`, `references` and `sources` name columns of texts; the latter two may hold lists. `address` is that of
    a running Ray cluster, by default the one in `RAY_ADDRESS` or on this machine, else one is started. Its actors, at
    most `concurrency`, each with `num_cpus` processors and `num_gpus` GPUs (by default one where the cluster has any),
    score `batch_size` rows at a time. With `on_error="null"` a row that cannot be scored, such as one with too long
    texts, has None as its score and is counted in `n_failed`. `options` are those of all metrics.

    >>> from datasets import Dataset
    >>> rows = {"prediction": ["Snow melts.", "Snow falls."], "reference": ["Snow melts.", "It is snowing."]}
    >>> scored = score_dataset(Dataset.from_dict(rows), "wms")
    >>> [round(score, 3) for score in scored.dataset["wms"]], round(scored.results["wms"]["score"], 3)
    ([1.0, 0.597], 0.799)
    """
    import pyarrow
    from datasets import Dataset, concatenate_datasets

    if not isinstance(dataset, Dataset) or not len(dataset):
        raise InputError(f"score_dataset: dataset: expected a datasets.Dataset with rows, but got {dataset!r:.60}")
    check_choice("score_dataset", "engine", engine, ["local", "ray"])
    settings = {"threads": max(1, int(num_cpus)), "progress": False} if engine == "ray" else {}
    scorer = Scorer(metrics, on_error=on_error, **{**settings, **options})
    columns = {"predictions": predictions, "references": references, "sources": sources}
    columns = {argument: columns[argument] for argument in ("predictions", *scorer.compared_with)}
    present = dataset.column_names
    for argument, column in columns.items():
        if column not in present:
            raise InputError(f"score_dataset: {argument}: expected a column {column!r}, but got {', '.join(present)}")
    if existing := [name for name in present for label in scorer.specs if f"{name}_".startswith(f"{label}_")]:
        raise InputError(f"score_dataset: metrics: expected no column of that name, but got {existing[0]!r}")
    texts = dataset.select_columns(list(dict.fromkeys(columns.values()))).with_format(None)

    def read() -> Iterator[list[Row]]:
        metric = next(iter(scorer.specs.values())).name
        for first_row in range(0, len(texts), batch_size):
            batch = texts[first_row : first_row + batch_size]
            predicted = check_texts(metric, "predictions", batch[columns["predictions"]], first_row)
            others = [check_text_groups(metric, name, batch[columns[name]], first_row) for name in scorer.compared_with]
            rows = zip(predicted, *others, strict=True)
            yield [Row(text, **dict(zip(scorer.compared_with, groups, strict=True))) for text, *groups in rows]

    if scorer.needs_corpus:  # rows are read more than once
        scorer = scorer.prepare(list(chain.from_iterable(read())))
    if engine == "ray":
        resources: dict[str, Any] = {"num_cpus": num_cpus, **({} if num_gpus is None else {"num_gpus": num_gpus})}
        examples = list(score_batches(scorer, read(), address, concurrency=concurrency, **resources))
    else:
        examples = []
        for batch in read():
            scorer.forget()  # scores of a batch depend on no other batch, not even in the last digit
            examples += scorer.stream(batch, total=len(texts), first_row=len(examples))
    scores: dict[str, Any] = {}
    for label, scored in zip(scorer.specs, zip(*examples, strict=True), strict=True):
        for name in scored[0].numbers:
            numbers = [example.numbers[name] for example in scored]
            scores[label if name == "score" else f"{label}_{name}"] = pyarrow.array(numbers, pyarrow.float64())
    results = {
        label: {key: value for key, value in result.items() if not isinstance(value, list)}
        for label, result in scorer.collect(examples).items()
    }
    return ScoredDataset(concatenate_datasets([dataset, Dataset.from_dict(scores)], axis=1), results)


def score_batches(
    scorer: Scorer,
    batches: Iterable[list[Row]],
    address: str | None = None,
    first_row: int = 0,
    concurrency: int | None = None,
    **resources: float,
) -> Iterator[tuple[Example, ...]]:
    """Examples as from the `stream` of a prepared scorer, computed by Ray actors, each with these resources."""
    sent = pickle.dumps(scorer), scorer.signatures
    with _connected(address):
        import ray.data

        blocks = []  # all of them before actors start: actors that hold every processor would keep readers waiting
        for batch in batches:
            # One cell, so that a batch stays whole however Ray cuts its blocks.
            blocks.append(ray.put(_cell((first_row, batch))))
            first_row += len(batch)
        dataset = ray.data.from_arrow_refs(blocks)
        dataset.context.execution_options.preserve_order = True
        dataset.context.enable_progress_bars = False
        default = {"num_cpus": 1, "num_gpus": int(ray.cluster_resources().get("GPU", 0) >= 1)}
        scored = dataset.map_batches(
            _BatchScorer,
            fn_constructor_args=sent,
            batch_size=1,
            batch_format="pyarrow",
            # Not a fixed number of actors: Ray would wait for those of a lost node.
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=concurrency),
            **{**default, **resources},
        )
        for table in scored.iter_batches(batch_size=1, batch_format="pyarrow"):
            examples = pickle.loads(table[0][0].as_py())
            if isinstance(examples, InputError):
                raise examples
            yield from examples


class _BatchScorer:
    """An actor. An `InputError` is sent like a result, so that it is raised in row order."""

    def __init__(self, scorer: bytes, signatures: Mapping[str, str]) -> None:
        self.scorer, self.signatures = pickle.loads(scorer), signatures

    def __call__(self, table: Any) -> Any:
        first_row, rows = pickle.loads(table[0][0].as_py())
        try:
            if (actual := self.scorer.signatures) != self.signatures:
                raise InputError(f"engine: expected the signatures {self.signatures}, but a node has {actual}")
            self.scorer.forget()
            return _cell(list(self.scorer.stream(rows, first_row=first_row)))
        except InputError as error:
            return _cell(error)


def _cell(value: object) -> Any:
    """An Arrow table of one pickled value."""
    import pyarrow

    return pyarrow.table({"pickled": pyarrow.array([pickle.dumps(value)], pyarrow.large_binary())})


def _connected(address: str | None) -> AbstractContextManager[object]:
    """A connection to Ray that ends with the `with` block, unless there was one before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    import_extra("ray.data", "ray", "engine: 'ray' needs Ray Data")
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        return nullcontext()
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if port.isdigit():  # where nothing listens, Ray would try again for a quarter of an hour
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        return ray.init(address, include_dashboard=False, logging_level="ERROR")
    except (OSError, ray.exceptions.AuthenticationError) as error:
        raise InputError(f"address: expected a running Ray cluster at {address}, but got: {error}") from None

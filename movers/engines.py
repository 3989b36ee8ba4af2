"""Scoring a whole dataset: by `datasets.Dataset.map` in this process, by Ray Data's `map_batches` on a cluster."""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Literal, NamedTuple

from movers.errors import InputError
from movers.inputs import check_choice, check_text_groups, check_texts
from movers.registry import MetricWithOptions
from movers.scorer import SECTION, Example, Row, Scorer

__all__ = ["Cluster", "ScoredDataset", "score_dataset", "score_rows"]


class Cluster(NamedTuple):
    """A Ray cluster and the share of it that actors get, as in `score_dataset`."""

    address: str | None = None
    concurrency: int | None = None
    num_cpus: float = 1
    num_gpus: float | None = None


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
    from datasets.fingerprint import Hasher

    if not isinstance(dataset, Dataset) or not len(dataset):
        raise InputError(f"score_dataset: dataset: expected a datasets.Dataset with rows, but got {dataset!r:.60}")
    check_choice("score_dataset", "engine", engine, ["local", "ray"])
    threads = {"threads": max(1, int(num_cpus))} if engine == "ray" else {}
    scorer = Scorer(metrics, on_error=on_error, **{**threads, **options, "progress": False})
    columns = {"predictions": predictions, "references": references, "sources": sources}
    columns = {argument: columns[argument] for argument in ("predictions", *scorer.compared_with)}
    present = dataset.column_names
    for argument, column in columns.items():
        if column not in present:
            raise InputError(f"score_dataset: {argument}: expected a column {column!r}, but got {', '.join(present)}")
    if taken := [name for name in present for label in scorer.specs if f"{name}_".startswith(f"{label}_")]:
        raise InputError(f"score_dataset: metrics: expected no column of that name, but got {taken[0]!r}")
    names = list(dict.fromkeys(columns.values()))
    texts = dataset.select_columns(names).with_format(None)

    def read(batch: Mapping[str, list[object]], first_row: int) -> list[Row]:
        metric = next(iter(scorer.specs.values())).name
        predicted = check_texts(metric, "predictions", batch[columns["predictions"]], first_row)
        others = [check_text_groups(metric, name, batch[columns[name]], first_row) for name in scorer.compared_with]
        rows = zip(predicted, *others, strict=True)
        return [Row(text, **dict(zip(scorer.compared_with, groups, strict=True))) for text, *groups in rows]

    def read_all() -> Iterator[Row]:
        for first_row in range(0, len(texts), SECTION):
            yield from read(texts[first_row : first_row + SECTION], first_row)

    scorer = scorer.prepare(list(read_all())) if scorer.needs_corpus else scorer  # they are read more than once
    cluster = Cluster(address, concurrency, num_cpus, num_gpus)
    on_cluster = score_rows(scorer, read_all(), cluster, batch_size=batch_size) if engine == "ray" else None
    examples: list[tuple[Example, ...]] = []

    def score_batch(batch: Mapping[str, list[object]], indices: list[int]) -> Any:
        scorer.forget()
        stream = on_cluster and islice(on_cluster, len(indices))
        scored = list(stream or scorer.stream(read(batch, indices[0]), first_row=indices[0]))
        examples.extend(scored)
        scores: dict[str, Any] = {}
        for label, column in zip(scorer.specs, zip(*scored, strict=True), strict=True):
            for name in column[0].numbers:
                numbers = [example.numbers[name] for example in column]
                scores[label if name == "score" else f"{label}_{name}"] = pyarrow.array(numbers, pyarrow.float64())
        return pyarrow.table(scores)

    # `score_batch` holds models, which datasets cannot hash.
    uncached = {"keep_in_memory": True, "new_fingerprint": Hasher.hash([texts._fingerprint, scorer.signatures])}
    scores = texts.map(score_batch, True, batched=True, batch_size=batch_size, remove_columns=names, **uncached)
    results = {
        label: {key: value for key, value in result.items() if not isinstance(value, list)}
        for label, result in scorer.collect(examples).items()
    }
    return ScoredDataset(concatenate_datasets([dataset, scores], axis=1), results)


def score_rows(
    scorer: Scorer, rows: Iterable[Row], cluster: Cluster, *, first_row: int = 0, batch_size: int = SECTION
) -> Iterator[tuple[Example, ...]]:
    """Examples as from the `stream` of a prepared scorer, computed by the actors of a Ray cluster."""
    iterator, sent = iter(rows), (pickle.dumps(scorer), scorer.signatures)
    with _connected(cluster.address):
        import ray.data

        blocks = []  # all of them before actors start: actors that hold every processor would keep readers waiting
        while section := list(islice(iterator, batch_size)):
            # One cell, so that a section stays whole however Ray cuts its blocks.
            blocks.append(ray.put(_cell((first_row, section))))
            first_row += len(section)
        dataset = ray.data.from_arrow_refs(blocks)
        dataset.context.execution_options.preserve_order = True
        dataset.context.enable_progress_bars = False
        default_gpus = int(ray.cluster_resources().get("GPU", 0) >= 1)
        scored = dataset.map_batches(
            _SectionScorer,
            fn_constructor_args=sent,
            batch_size=1,
            batch_format="pyarrow",
            # Not a fixed number of actors: Ray would wait for those of a lost node.
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=cluster.concurrency),
            num_cpus=cluster.num_cpus,
            num_gpus=default_gpus if cluster.num_gpus is None else cluster.num_gpus,
        )
        for table in scored.iter_batches(batch_size=1, batch_format="pyarrow"):
            examples = pickle.loads(table[0][0].as_py())
            if isinstance(examples, InputError):
                raise examples
            yield from examples


class _SectionScorer:
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
    try:
        import ray.data
    except ImportError:
        raise InputError("engine: 'ray' needs Ray Data: pip install 'movers[ray]'") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        return nullcontext()
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if "/" in host + port:  # of `name://…` Ray would import the module `name`
        raise InputError(f"address: expected auto, local, HOST:PORT or ray://HOST:PORT, but got {address!r}")
    try:
        if port.isdigit():  # where nothing listens, Ray would try again for a quarter of an hour
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        return ray.init(address, include_dashboard=False, logging_level="ERROR")
    except (OSError, ray.exceptions.AuthenticationError) as error:
        raise InputError(f"address: expected a running Ray cluster at {address}, but got: {error}") from None

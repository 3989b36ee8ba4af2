"""The same scoring on a Ray cluster: one actor per processor or GPU, each with the metrics and their encoders.

What an actor scores is a section of the rows, whose scores depend on no other rows. A section whose actor or node dies
is scored again elsewhere, with the same result.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from movers.engines.job import SECTION, Job, Scored, Section, make_sections, score_section
from movers.errors import InputError, warn_once
from movers.io import progress_bar
from movers.scores.engine import AnyMetric, Example, warn_unknown
from movers.threads import solver_pool

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Cluster", "Scorer", "connected", "score_on_cluster", "score_rows", "score_table"]


@dataclass(frozen=True)
class Cluster:
    """Where to score, and with how much.

    Attributes
    ----------
    address : str or None
        Of a running cluster, such as `auto` or `10.0.0.1:6379`; None takes the one that `RAY_ADDRESS` names or that
        runs on this machine, else starts one here.
    concurrency : int or None
        Actors at most; by default as many as the cluster has room for.
    num_cpus : float
        Processors per actor.
    num_gpus : float or None
        GPUs per actor; by default one where the cluster has any and a metric computes with torch.
    """

    address: str | None = None
    concurrency: int | None = None
    num_cpus: float = 1
    num_gpus: float | None = None

    @property
    def threads(self) -> int:
        """Threads of an actor that compare texts."""
        return max(1, int(self.num_cpus))


@contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """The module `ray`, connected to the cluster; disconnected afterwards unless it was before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("engine: 'ray' needs Ray Data: pip install 'movers[ray]'") from None
    before = ray.is_initialized()
    if not before:
        _check_answers(cluster.address or os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(cluster.address, include_dashboard=False, logging_level="ERROR")
        except (ConnectionError, ray.exceptions.AuthenticationError) as error:
            raise InputError(
                f"address: expected a Ray cluster that can be joined at {cluster.address!r}, but got: {error}"
            ) from None
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)  # that it shows no bar needs no warning
    try:
        yield ray
    except Exception as error:
        # Of what a worker raised there is only the text; what a user did wrong needs no traceback of a worker.
        found = re.search(r"^movers\.(?:errors\.)?InputError: (.*)", str(error), flags=re.MULTILINE)
        if found is None or isinstance(error, InputError):
            raise
        raise InputError(found[1]) from None
    finally:
        if not before:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try again for a quarter of an hour.

    Of an address `name://…` Ray would import the module `name`.
    """
    scheme, mark, _ = address.partition("://")
    if mark and scheme != "ray":
        raise InputError(f"address: expected auto, local, HOST:PORT or ray://HOST:PORT, but got {address!r}")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # `auto`, `local` or nothing
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise InputError(f"address: expected a running Ray cluster at {address}, but got: {error}") from None


def score_on_cluster(metrics: Sequence[AnyMetric], sections: Iterable[Section], cluster: Cluster) -> Iterator[Scored]:
    """What `score_sections` yields, in the same order and with the same floats, computed by the cluster's actors."""
    import pyarrow

    with connected(cluster) as ray:
        job = Job.of(metrics, cluster.threads)
        # Each section is a row of its own: however Ray cuts and joins its blocks, a section stays whole.
        tables = (
            pyarrow.table({"first_row": [section.first_row], "section": [pickle.dumps(section)]})
            for section in sections
        )
        dataset = ray.data.from_arrow_refs([ray.put(table) for table in tables])
        mapped = _mapped(ray, dataset, _SectionScorer, (job,), metrics, cluster)
        expected = None
        for table in mapped.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
            for row in table.to_pylist():
                scored, caught = pickle.loads(row["scored"])
                for message in caught:
                    warn_once(message)
                if isinstance(scored, InputError):
                    raise scored
                if expected is not None and row["first_row"] != expected:
                    raise RuntimeError(f"Ray gave row {row['first_row']} where row {expected} was due")
                expected = row["first_row"] + len(scored)
                yield scored


def score_rows(
    metrics: Sequence[AnyMetric],
    predictions: Iterable[str],
    compared: Mapping[str, Iterable[Sequence[str]]],
    count: int,
    cluster: Cluster,
    first_row: int = 0,
    unknown: Sequence[int] = (),
) -> Iterator[tuple[Example, ...]]:
    """Row by row, one example per metric, as one machine gives; the rows from `first_row` on, of `count` in all.

    Of those before, `unknown` have, by metric, words that the encoder does not know.
    """
    label = ", ".join(metric.name for metric in metrics)
    bar = progress_bar(count, desc=label, unit=" texts", progress=metrics[0].options.progress, initial=first_row)
    unknown = list(unknown) or [0] * len(metrics)
    with bar:
        for rows in score_on_cluster(metrics, make_sections(predictions, compared, SECTION, first_row), cluster):
            for examples in rows:
                yield examples
                bar.update(1)
                unknown = [sum(pair) for pair in zip(unknown, (example.unknown for example in examples), strict=True)]
    for metric, own in zip(metrics, unknown, strict=True):
        warn_unknown(metric.name, own, count)


def score_table(
    metrics: Sequence[AnyMetric], dataset: Any, scorer: type[Scorer], source: object, size: int, cluster: Cluster
) -> Any:
    """A Ray dataset, in its order, with what `scorer` adds to each `size` rows of it."""
    with connected(cluster) as ray:
        job = Job.of(metrics, cluster.threads)
        dataset.context.execution_options.preserve_order = True
        # Read first, then score: actors that hold all processors would keep tasks that read waiting for ever.
        cut = dataset.repartition(target_num_rows_per_block=size, strict=True).materialize()
        return _mapped(ray, cut, scorer, (job, source), metrics, cluster).materialize()


def _mapped(
    ray: Any,
    dataset: Any,
    scorer: type[Scorer],
    arguments: tuple[object, ...],
    metrics: Sequence[AnyMetric],
    cluster: Cluster,
) -> Any:
    resources = ray.cluster_resources()
    gpus = cluster.num_gpus
    if gpus is None:
        gpus = 1 if resources.get("GPU", 0) >= 1 and any(metric.overlaps for metric in metrics) else 0
    for name, wanted in (("CPU", cluster.num_cpus), ("GPU", gpus)):
        if resources.get(name, 0) < wanted:
            warnings.warn(
                f"engine: an actor needs {wanted:g} {name}, but the cluster has {resources.get(name, 0):g}: "
                "waiting for more nodes",
                stacklevel=2,
            )
    context = dataset.context
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    return dataset.map_batches(
        scorer,
        fn_constructor_args=arguments,
        batch_size=None,  # whole blocks
        batch_format="pyarrow",
        # Never a fixed number: what a lost node has left behind waits until one of the other actors makes room.
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=cluster.concurrency),
        num_cpus=cluster.num_cpus,
        num_gpus=gpus,
    )


class Scorer:
    """What runs in an actor. Metrics are built with the first rows, so that an error is one of the task."""

    def __init__(self, job: Job, source: Any = None) -> None:
        self.source = source
        self._job = job
        self._metrics: list[AnyMetric] = []

    def score(self, section: Section) -> Scored:
        if not self._metrics:
            self._metrics = self._job.build()
        with solver_pool(self._metrics[0].options.threads) as pool:
            return score_section(self._metrics, section, pool)


class _SectionScorer(Scorer):
    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        scored = [pickle.dumps(self._scored(pickle.loads(data.as_py()))) for data in table["section"]]
        return pyarrow.table({"first_row": table["first_row"], "scored": pyarrow.array(scored, pyarrow.large_binary())})

    def _scored(self, section: Section) -> tuple[Scored | InputError, list[str]]:
        """The result and the warnings; an error is a result too, so that it is raised in the order of the rows."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result: Scored | InputError = self.score(section)
            except InputError as error:
                result = error
        return result, list(dict.fromkeys(str(warning.message) for warning in caught))

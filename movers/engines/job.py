"""What is scored at a time, wherever it is: rows whose scores depend on no other rows."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from movers.encoders import SharedPass
from movers.encoders.cache import VECTORS
from movers.errors import InputError
from movers.processes import WorkerDied, process_map
from movers.registry import METRICS
from movers.scores.engine import SECTION, AnyMetric, Example, blocks, ended_workers, score_block
from movers.scores.options import PairOptions, RunOptions
from movers.threads import solver_pool

__all__ = ["SECTION", "Job", "Scored", "Section", "make_sections", "score_section", "score_sections"]

Scored = list[tuple[Example, ...]]  # row by row, one example per metric


class Section(NamedTuple):
    """Consecutive rows: the number of the first, the predictions, and the texts they are compared with by argument."""

    first_row: int
    predictions: Sequence[str]
    compared: Mapping[str, Sequence[Sequence[str]]]


def make_sections(
    predictions: Iterable[str], compared: Mapping[str, Iterable[Sequence[str]]], size: int, first_row: int = 0
) -> Iterator[Section]:
    """Rows as sections of `size` rows, the last one shorter."""
    texts: list[str] = []
    groups: list[tuple[Sequence[str], ...]] = []

    def section() -> Section:
        return Section(first_row, texts, dict(zip(compared, zip(*groups, strict=True), strict=True)))

    for text, *own in zip(predictions, *compared.values(), strict=True):
        texts.append(text)
        groups.append(tuple(own))
        if len(texts) == size:
            yield section()
            first_row, texts, groups = first_row + size, [], []
    if texts:
        yield section()


def score_section(metrics: Sequence[AnyMetric], section: Section, pool: ThreadPoolExecutor | None) -> Scored:
    """Score rows as if nothing had been scored before.

    The same text encoded in another batch has other last digits, so vectors of earlier sections are forgotten. Metrics
    take turns block by block: what one encodes, the next finds in the cache.
    """
    VECTORS.clear()
    streams = []
    for metric in metrics:
        rows = zip(section.predictions, section.compared[METRICS[metric.name].compared_with], strict=True)
        streams.append(_examples(metric, rows, pool, section.first_row))
    return list(zip(*streams, strict=True))


def _examples(
    metric: AnyMetric, rows: Iterable[tuple[str, Sequence[str]]], pool: ThreadPoolExecutor | None, first_row: int
) -> Iterator[Example]:
    for block in blocks(rows):
        yield from score_block(metric, block, pool, first_row)
        first_row += len(block)


def score_sections(metrics: Sequence[AnyMetric], sections: Iterable[Section]) -> Iterator[Scored]:
    """Sections in order, scored in this process or, if the metrics ask for `workers`, in several."""
    workers = metrics[0].options.workers or 1
    alone = multiprocessing.current_process().daemon  # may have no children
    if workers > 1 and not alone and all(metric.runs_in_processes for metric in metrics):
        try:
            yield from process_map(_score_in_worker, metrics, sections, workers)
        except WorkerDied as error:
            assert isinstance(error.task, Section)
            rows = len(error.task.predictions)
            raise ended_workers(metrics[0].name, error, error.task.first_row, rows, workers) from None
        return
    with solver_pool(metrics[0].options.threads) as pool:
        for section in sections:
            yield score_section(metrics, section, pool)


def _score_in_worker(metrics: Sequence[AnyMetric], section: Section) -> Scored:
    return score_section(metrics, section, None)


@dataclass(frozen=True)
class Job:
    """Metrics as another process builds them: names, settled options (IDF tables included), signatures."""

    names: tuple[str, ...]
    options: tuple[RunOptions, ...]
    signatures: tuple[str, ...]

    @classmethod
    def of(cls, metrics: Sequence[AnyMetric], threads: int) -> Job:
        """The job of these metrics; `threads` where their options do not say how many."""
        return cls(
            tuple(metric.name for metric in metrics),
            tuple(_portable(metric, threads) for metric in metrics),
            tuple(metric.signature for metric in metrics),
        )

    def build(self) -> list[AnyMetric]:
        """The metrics; an error if this machine would score in another way."""
        shared = SharedPass()
        built = []
        for name, options, expected in zip(self.names, self.options, self.signatures, strict=True):
            if isinstance(options, PairOptions):
                options = replace(options, shared_pass=shared)
            metric = METRICS[name].build(options)
            if metric.signature != expected:
                raise InputError(
                    f"{name}: engine: expected the same movers and models on every machine: {expected}, "
                    f"but a worker got {metric.signature}"
                )
            built.append(metric)
        return built


def _portable(metric: AnyMetric, threads: int) -> RunOptions:
    for name in ("model", "sentence_encoder"):
        given = getattr(metric.options, name, None)
        if not isinstance(given, str | os.PathLike | None):
            raise InputError(
                f"{metric.name}: {name}: expected a name or path, from which every machine loads it, "
                f"but got {type(given).__name__}"
            )
    options = replace(metric.options, progress=False, threads=metric.options.threads or threads)
    if isinstance(options, PairOptions):
        return replace(options, shared_pass=None, idf=metric.idf_tables())
    return options

"""A dataset → the same dataset with columns of scores, scored here or on a Ray cluster."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from movers.encoders import SharedPass
from movers.engines.cluster import Cluster, Scorer, score_on_cluster, score_table
from movers.engines.job import SECTION, Scored, Section, score_sections
from movers.errors import InputError
from movers.inputs import check_choice, check_positive, check_text_groups, check_texts
from movers.io import progress_bar
from movers.registry import MetricWithOptions, parse_metric
from movers.scores.engine import AnyMetric, Example, Totals, warn_unknown
from movers.scores.options import PairOptions
from movers.weights import Corpus

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ScoredDataset", "score_dataset"]

_HERE = "score_dataset"
_EXAMPLES = "movers: examples"  # a column on the way from the actors
_COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")


class ScoredDataset(NamedTuple):
    """What `score_dataset` returns.

    Attributes
    ----------
    dataset : datasets.Dataset or ray.data.Dataset
        As given, with a column of scores per metric, named as the metric was written, and one per further number of a
        pair (`bertscore_emd_precision`).
    results : dict
        For each metric `score` (of the corpus), `signature`, `n_empty`, `n_unfiltered`, `n_truncated`, `n_unknown`.
    """

    dataset: Any
    results: dict[str, dict[str, object]]


def score_dataset(
    dataset: Any,
    metrics: MetricWithOptions | Sequence[MetricWithOptions],
    *,
    predictions: str = "prediction",
    references: str = "reference",
    sources: str = "source",
    engine: Literal["local", "ray"] | None = None,
    address: str | None = None,
    batch_size: int = SECTION,
    concurrency: int | None = None,
    num_cpus: float = 1,
    num_gpus: float | None = None,
    **options: object,
) -> ScoredDataset:
    """Score every row of a dataset, in this process or on a Ray cluster, with the same result.

    Scores are equal to the last digit where processors are of one kind; other processors and GPUs round otherwise.

    Parameters
    ----------
    dataset : datasets.Dataset or ray.data.Dataset
    metrics : str, (name, options), or a list of these
        `"wms"`, `"moverscore[n_gram=2]"`, `("wms", {"normalize": True})`
    predictions, references, sources : str
        Columns of texts; those of references and sources may hold lists of texts.
    engine : {"local", "ray"}, optional
        By default `"ray"` for a Ray dataset, `"local"` for others.
    address : str, optional
        Of a running Ray cluster (`"auto"`, `"10.0.0.1:6379"`); by default the one that `RAY_ADDRESS` names or that runs
        on this machine, else one is started here.
    batch_size : int
        Rows that are scored together. Scores depend on no rows but these; in the last digits of a contextual encoder
        they do depend on which rows these are.
    concurrency : int, optional
        Actors at most; by default as many as the cluster has room for.
    num_cpus, num_gpus : float, optional
        Processors and GPUs per actor; by default one GPU where the cluster has any and a metric computes with torch.
    **options
        Options of every metric.

    Examples
    --------
    >>> from datasets import Dataset
    >>> rows = {"prediction": ["Snow melts.", "Snow falls."], "reference": ["Snow melts.", "It is snowing."]}
    >>> scored = score_dataset(Dataset.from_dict(rows), "wms")
    >>> scored.dataset.column_names, [round(score, 3) for score in scored.dataset["wms"]]
    (['prediction', 'reference', 'wms'], [1.0, 0.46])
    >>> round(scored.results["wms"]["score"], 3)
    0.73
    """
    module = type(dataset).__module__
    on_ray = module.startswith("ray.data")
    if not on_ray and not (
        module.startswith("datasets.") and hasattr(dataset, "add_column") and hasattr(dataset, "__len__")
    ):
        raise InputError(
            f"{_HERE}: dataset: expected a datasets.Dataset or a ray.data.Dataset, but got {type(dataset).__name__}"
        )
    engine = engine or ("ray" if on_ray else "local")
    check_choice(_HERE, "engine", engine, ["ray"] if on_ray else ["local", "ray"])
    check_positive(_HERE, "batch_size", batch_size, none_allowed=False)
    check_positive(_HERE, "concurrency", concurrency)
    given = [metrics] if isinstance(metrics, str | tuple) else list(metrics)
    source = _Source.choose(
        dataset, given, {"predictions": predictions, "references": references, "sources": sources}, batch_size
    )
    built = _build(given, options, source)
    cluster = Cluster(address, concurrency, num_cpus, num_gpus)
    tallies = {label: _Tally() for label in source.labels}
    if on_ray:
        scored = score_table(built, dataset, _TableScorer, source.without_data(), batch_size, cluster)
        for batch in _batches(scored, [_EXAMPLES], batch_size):
            _count([pickle.loads(data) for data in batch[_EXAMPLES]], tallies)
        scored = scored.drop_columns([_EXAMPLES])
    else:
        sections = source.sections()
        found = score_on_cluster(built, sections, cluster) if engine == "ray" else score_sections(built, sections)
        scored = _with_columns(dataset, _collected(found, source, built[0].options.progress, tallies))
    results = {label: tally.result(metric) for (label, tally), metric in zip(tallies.items(), built, strict=True)}
    return ScoredDataset(scored, results)


def _build(given: Sequence[MetricWithOptions], options: Mapping[str, object], source: _Source) -> list[AnyMetric]:
    """The metrics as one machine would build them; `idf="corpus"` counts the whole dataset."""
    shared = SharedPass()
    built = []
    for item in given:
        spec, own = parse_metric(item)
        settled = spec.parse({**own, **options})
        if settled.return_alignment:
            raise InputError(f"{spec.name}: return_alignment: expected False: a dataset has columns of numbers")
        if isinstance(settled, PairOptions):
            settled = replace(settled, shared_pass=shared)
        corpus = Corpus(_Side(source, "predictions"), _Side(source, spec.compared_with))
        built.append(spec.build(settled, corpus))
    return built


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """Where the texts of some metrics are in a dataset."""

    dataset: Any
    metric: str  # errors begin with its name
    labels: tuple[str, ...]
    columns: Mapping[str, str]  # predictions, references, sources → column
    size: int

    @classmethod
    def choose(cls, dataset: Any, given: Sequence[MetricWithOptions], columns: Mapping[str, str], size: int) -> _Source:
        labels = tuple(item if isinstance(item, str) else item[0] for item in given)
        if len(set(labels)) < len(labels) or not labels:
            raise InputError(f"{_HERE}: metrics: expected different metrics, but got {', '.join(labels) or 'none'}")
        specs = [parse_metric(item)[0] for item in given]
        needed = {name: columns[name] for name in ("predictions", *(spec.compared_with for spec in specs))}
        there = dataset.column_names if hasattr(dataset, "column_names") else dataset.columns()
        for argument, column in needed.items():
            if column not in there:
                raise InputError(
                    f"{specs[0].name}: {argument}: expected a column {column!r}, but got the columns {', '.join(there)}"
                )
        taken = [name for name in there for label in labels if name == label or name.startswith(f"{label}_")]
        if taken:
            raise InputError(f"{_HERE}: metrics: expected no column of that name, but the dataset has {taken[0]!r}")
        return cls(dataset, specs[0].name, labels, needed, size)

    def without_data(self) -> _Source:
        return replace(self, dataset=None)

    def section(self, first_row: int, batch: Mapping[str, list[object]]) -> Section:
        """Checked texts of a batch of rows."""
        texts = check_texts(self.metric, "predictions", batch[self.columns["predictions"]], first_row)
        compared = {
            argument: check_text_groups(self.metric, argument, batch[column], first_row)
            for argument, column in self.columns.items()
            if argument != "predictions"
        }
        return Section(first_row, texts, compared)

    def sections(self) -> Iterator[Section]:
        row = 0
        for batch in _batches(self.dataset, list(dict.fromkeys(self.columns.values())), self.size):
            yield self.section(row, batch)
            row += len(batch[self.columns["predictions"]])
        if not row:
            raise InputError(f"{self.metric}: predictions: expected at least one text, but got an empty dataset")


@dataclass(frozen=True)
class _Side:
    """The texts of one argument; iterating again reads the dataset again."""

    source: _Source
    argument: str

    def __iter__(self) -> Iterator[Any]:
        for section in self.source.sections():
            yield from section.predictions if self.argument == "predictions" else section.compared[self.argument]


def _batches(dataset: Any, columns: list[str], size: int) -> Iterator[dict[str, list[Any]]]:
    """Rows of a dataset of either kind as plain lists."""
    part = dataset.select_columns(columns)
    if hasattr(part, "iter_batches"):
        for table in part.iter_batches(batch_size=size, batch_format="pyarrow"):
            yield table.to_pydict()
    else:
        plain = part.with_format(None)
        for begin in range(0, len(plain), size):
            yield plain[begin : begin + size]


# --- scores ----------------------------------------------------------------------------------------------------------


@dataclass
class _Tally:
    """What the result of a metric needs of all rows."""

    totals: Totals = field(default_factory=Totals)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))

    def add(self, examples: Sequence[Example]) -> None:
        self.totals.add([example.score for example in examples], [example.distance for example in examples])
        for name in _COUNTS:
            self.counts[name] += sum(getattr(example, name.removeprefix("n_")) for example in examples)

    def result(self, metric: AnyMetric) -> dict[str, object]:
        warn_unknown(metric.name, self.counts["n_unknown"], self.totals.rows)
        score = self.totals.corpus_score(metric)
        return {"score": score, "signature": metric.signature, **self.counts, **metric.extra()}


def _count(rows: Scored, tallies: Mapping[str, _Tally]) -> None:
    for tally, examples in zip(tallies.values(), zip(*rows, strict=True), strict=True):
        tally.add(examples)


def _collected(
    found: Iterable[Scored], source: _Source, progress: bool | None, tallies: Mapping[str, _Tally]
) -> dict[str, array[float]]:
    columns: dict[str, array[float]] = {}
    bar = progress_bar(len(source.dataset), desc=", ".join(source.labels), unit=" texts", progress=progress)
    with bar:
        for rows in found:
            _count(rows, tallies)
            for name, values in _columns_of(source.labels, rows).items():
                columns.setdefault(name, array("d")).extend(values)
            bar.update(len(rows))
    return columns


def _columns_of(labels: Sequence[str], rows: Scored) -> dict[str, list[float]]:
    columns = {}
    for label, examples in zip(labels, zip(*rows, strict=True), strict=True):
        columns[label] = [example.score for example in examples]
        for part in examples[0].parts:
            columns[f"{label}_{part}"] = [example.parts[part] for example in examples]
    return columns


def _with_columns(dataset: Any, columns: Mapping[str, array[float]]) -> Any:
    from datasets import Dataset, concatenate_datasets

    return concatenate_datasets(
        [dataset, Dataset.from_dict({name: list(own) for name, own in columns.items()})], axis=1
    )


class _TableScorer(Scorer):
    """Adds columns of scores to the rows of a Ray dataset."""

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        source: _Source = self.source
        if not len(table):
            return table
        try:
            batch = table.select(list(dict.fromkeys(source.columns.values()))).to_pydict()
            rows = self.score(source.section(0, batch))
        except InputError as error:
            raise InputError(f"{error} (rows counted within a batch of {source.size}, not in the dataset)") from None
        for name, values in _columns_of(source.labels, rows).items():
            table = table.append_column(name, pyarrow.array(values, pyarrow.float64()))
        return table.append_column(_EXAMPLES, pyarrow.array([pickle.dumps(row) for row in rows]))

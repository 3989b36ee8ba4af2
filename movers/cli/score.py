"""`movers score`: score a file of predictions row by row, with one or several metrics."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from movers.cli.arguments import (
    METRIC_HELP,
    ChosenMetric,
    Subparsers,
    add_compared_texts,
    add_options,
    check_compared,
    check_other_file,
    check_rows,
    choose_metrics,
    options_of,
    row_in_file,
    say,
)
from movers.cli.output import ScoreFile, check_scores, holds_records
from movers.errors import InputError, RowError
from movers.io import BlockFile, Table, TextGroups, Texts, open_blocks
from movers.registry import METRICS

if TYPE_CHECKING:
    from movers.scores.engine import Example, PairMetric

_COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")
_NO_MATTER = (
    "threads",
    "workers",
    "progress",
    "max_cells",
)  # options that may differ when a run is resumed


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "score",
        usage="movers score METRIC -p FILE (-r FILE … | --sources FILE …) [options]",
        help="score predictions against references",
        description="Score predictions against references (or source documents) row by row; print signature and mean.",
        epilog="Input files: one text per line, or .jsonl, .json, .csv, .tsv, .parquet, .arrow, .feather with a column "
        "of texts; also .gz; - is standard input. Files of any size are read in blocks. "
        "`movers options NAME` lists the options of a metric. "
        "Example: movers score wms,moverscore -p predictions.txt -r references.txt -o scores.jsonl",
    )
    parser.add_argument("metric", metavar="METRIC", help=f"{METRIC_HELP}. Metrics: {', '.join(METRICS)}")
    parser.add_argument("-p", "--predictions", required=True, metavar="FILE", help="texts to score")
    add_compared_texts(parser)
    add_options(parser)
    parser.add_argument("--threads", type=int, help="threads that compare texts (default: one per available processor)")
    parser.add_argument("--workers", type=int, help="worker processes per metric, for static vectors (default: 1)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write one score per row: .txt, .csv, .tsv, .jsonl (also .gz), .parquet, .arrow or .feather",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted run with the same --output, from FILE.partial; the results are identical",
    )
    parser.add_argument(
        "--alignment",
        action="store_true",
        help="add alignments to --json or to the output file (.jsonl, .parquet, .arrow)",
    )
    parser.add_argument("--json", action="store_true", help="print the full result as JSON; a list for several metrics")
    parser.add_argument("--percent", action="store_true", help="print scores from 0 to 100 instead of 0 to 1")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="run on this machine (default) or on a Ray cluster"
    )
    parser.add_argument("--address", help="address of a Ray cluster, such as auto (default: find or start one)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score every row with every metric; print or write the results."""
    more = options_of(arguments)
    if arguments.threads is not None:
        more["threads"] = arguments.threads
    if arguments.workers is not None:
        more["workers"] = arguments.workers
    if arguments.quiet:
        more["progress"] = False
    if arguments.alignment:
        more["return_alignment"] = True
    chosen = choose_metrics(arguments.metric, more)
    check_compared("score", arguments, {metric.name: METRICS[metric.name].compared_with for metric in chosen})
    if arguments.address is not None and arguments.engine != "ray":
        raise InputError("score: --address: expected --engine ray beside it")
    if arguments.percent and arguments.json:
        raise InputError("score: --percent: expected no --json, whose scores are from 0 to 1")
    aligned = any(metric.options.get("return_alignment") for metric in chosen)
    if aligned and not arguments.json and not holds_records(arguments.output):
        raise InputError("score: --alignment: expected --json, or --output FILE.jsonl, .parquet, .arrow or .feather")
    if arguments.resume and (arguments.output is None or arguments.json):
        raise InputError("score: --resume: expected --output FILE, and no --json, which keeps all rows in memory")
    with ExitStack() as stack:
        blocks = None
        if arguments.output is not None:
            check_scores(arguments.output)
            blocks = stack.enter_context(open_blocks(arguments.output, arguments.resume))
        inputs = _read(arguments, chosen)
        metrics = _build(chosen, inputs)
        tallies = [_Tally(keep_examples=arguments.json) for _ in metrics]
        output = None
        if blocks is not None:
            output = ScoreFile(blocks, arguments.output, [metric.label for metric in chosen])
            for tally, saved in zip(tallies, output.begin(_head(chosen, metrics, inputs)) or [], strict=False):
                tally.restore(saved)
            stack.enter_context(_told_what_is_kept(blocks))
        done = tallies[0].totals.rows
        try:
            _write(_scored(arguments, metrics, inputs, tallies), inputs.rows, done, tallies, output)
        except RowError as error:
            raise error.at(row_in_file(error, inputs.predictions, inputs.compared)) from None
    _print(arguments, chosen, metrics, tallies)
    return 0


def _write(
    rows: Iterable[tuple[Example, ...]], count: int, done: int, tallies: Sequence[_Tally], output: ScoreFile | None
) -> None:
    """Write section by section: each is on disk before the next begins and does not depend on earlier ones."""
    from movers.encoders.cache import VECTORS
    from movers.scores.engine import SECTION

    VECTORS.clear()  # of texts that were encoded while the metrics were built
    for number, examples in enumerate(rows, start=done + 1):
        for tally, example in zip(tallies, examples, strict=True):
            tally.add(example)
        if output is not None:
            output.write(number - 1, examples)
        if number % SECTION == 0 or number == count:
            for tally in tallies:
                tally.end_section()
            # A text encoded in another batch differs in the last digits, and a resumed run has no cached vectors.
            VECTORS.clear()
            if output is not None:
                output.end_block([tally.save() for tally in tallies])
    if tallies[0].totals.rows != count:
        raise RuntimeError(f"expected {count} rows, but the engine gave {tallies[0].totals.rows}")
    if output is not None:
        output.finish()


def _print(
    arguments: argparse.Namespace,
    chosen: Sequence[ChosenMetric],
    metrics: Sequence[PairMetric[object]],
    tallies: Sequence[_Tally],
) -> None:
    labels = [metric.label for metric in chosen]
    summary = sys.stderr if arguments.output in ("-", "/dev/stdout") else sys.stdout  # standard output carries the rows
    if arguments.json:
        from movers.scores.engine import collect

        results = [collect(metric, tally.examples) for metric, tally in zip(metrics, tallies, strict=True)]
        named = [{"metric": label, **result} for label, result in zip(labels, results, strict=True)]
        say(json.dumps(named if len(named) > 1 else results[0], ensure_ascii=False))
        return
    for label, metric, tally in zip(labels, metrics, tallies, strict=True):
        score = tally.totals.corpus_score(metric)
        say(f"{metric.signature} = {f'{100 * score:.2f} %' if arguments.percent else f'{score:.4f}'}", summary)
        for name, count in tally.counts.items():
            if count:
                who = f"{label}: " if len(labels) > 1 else ""
                say(f"  {who}{name}: {count} of {tally.totals.rows}", sys.stderr)


@contextmanager
def _told_what_is_kept(blocks: BlockFile) -> Iterator[None]:
    """Tell the user how to resume if the run ends early, on a new line below a progress bar."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit):
        if blocks.state is not None:
            line = "\n" if sys.stderr.isatty() else ""
            say(f"{line}movers: finished rows are kept in {blocks.partial}; continue with --resume", sys.stderr)
        raise


def _head(chosen: Sequence[ChosenMetric], metrics: Sequence[PairMetric[object]], inputs: _Inputs) -> dict[str, str]:
    """What must be equal for a run to be resumed."""
    head = {"metrics": ", ".join(metric.label for metric in chosen)}
    for own, metric in zip(chosen, metrics, strict=True):
        given = {name: value for name, value in sorted(own.options.items()) if name not in _NO_MATTER}
        head[f"signature of {own.label}"] = metric.signature
        head[f"options of {own.label}"] = ", ".join(f"{name}={value}" for name, value in given.items()) or "none"
    return {**head, **inputs.digests}


# --- input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Inputs:
    """Predictions with their references or sources, counted and checked; every metric reads them anew."""

    predictions: Texts
    compared: dict[str, TextGroups]  # "references" or "sources" → their texts
    rows: int
    digests: dict[str, str]  # of the texts of each file, by argument


def _read(arguments: argparse.Namespace, metrics: Sequence[ChosenMetric]) -> _Inputs:
    tables: dict[str, Table] = {}  # so that several arguments can share standard input

    def texts(path: str, argument: str) -> Texts:
        column = getattr(arguments, f"{argument[:-1]}_column")
        if path not in tables:
            named = (getattr(arguments, f"{name}_column") for name in ("prediction", "reference", "source"))
            tables[path] = Table(path, column or next(filter(None, named), None))
        return Texts(tables[path], argument, column)

    compared = {METRICS[metric.name].compared_with: TextGroups([]) for metric in metrics}
    predictions = texts(arguments.predictions, "predictions")
    for argument in compared:
        compared[argument] = TextGroups([texts(path, argument) for path in getattr(arguments, argument)])
    surveys = {"predictions": (predictions, predictions.survey())}
    for argument, groups in compared.items():
        for number, file in enumerate(groups.files, start=1):
            surveys[f"{argument}, file {number}"] = file, file.survey(lists=True)
            if file.table is predictions.table and file.found == predictions.found and (file.found or file.table.piped):
                same = f"the same column {file.found!r}" if file.found else "the same lines"
                raise InputError(
                    f"{argument}: {file.table.path}: expected other texts than the predictions, but got {same}; "
                    f"--prediction-column and --{argument[:-1]}-column choose columns"
                )
    check_rows([(file.table.path, found.rows) for file, found in surveys.values()])
    check_other_file("score", arguments.output, [(file.argument, file.table.path) for file, _ in surveys.values()])
    digests = {name: f"sha256 {found.digest[:16]}" for name, (_, found) in surveys.items()}
    return _Inputs(predictions, compared, surveys["predictions"][1].rows, digests)


def _build(metrics: Sequence[ChosenMetric], inputs: _Inputs) -> list[PairMetric[object]]:
    """The metrics, ready to score; those with the same encoder reuse one forward pass per text."""
    from movers.encoders import SharedPass
    from movers.scores.options import PairOptions
    from movers.weights import Corpus

    shared = SharedPass()
    built = []
    for metric in metrics:
        spec = METRICS[metric.name]
        options = spec.parse(metric.options)
        if metric is not metrics[0]:
            options = replace(options, progress=False)  # one bar is enough
        if isinstance(options, PairOptions):
            options = replace(options, shared_pass=shared)
        built.append(spec.build(options, Corpus(inputs.predictions, inputs.compared[spec.compared_with])))
    return built


def _scored(
    arguments: argparse.Namespace, metrics: Sequence[PairMetric[object]], inputs: _Inputs, tallies: Sequence[_Tally]
) -> Iterator[tuple[Example, ...]]:
    """One example per metric for each row that is not in the tallies yet."""
    if arguments.engine == "ray":
        from movers.engines import Cluster, score_rows

        done = tallies[0].totals.rows
        compared = {name: islice(texts, done, None) for name, texts in inputs.compared.items()}
        predictions = islice(inputs.predictions, done, None)
        unknown = [tally.counts["n_unknown"] for tally in tallies]
        return score_rows(metrics, predictions, compared, inputs.rows, Cluster(arguments.address), done, unknown)
    examples = (_examples(metric, inputs, tally) for metric, tally in zip(metrics, tallies, strict=True))
    return zip(*examples, strict=True)


def _examples(metric: PairMetric[object], inputs: _Inputs, tally: _Tally) -> Iterator[Example]:
    """Examples of the rows that are not in the tally yet."""
    from movers.scores.engine import score_stream

    done = tally.totals.rows
    rows = zip(inputs.predictions, inputs.compared[METRICS[metric.name].compared_with], strict=True)
    return score_stream(metric, islice(rows, done, None), inputs.rows, done, tally.counts["n_unknown"])


# --- totals ----------------------------------------------------------------------------------------------------------


class _Tally:
    """Running sums and counts of a metric's examples, and the examples themselves on request."""

    def __init__(self, keep_examples: bool) -> None:
        from movers.scores.engine import Totals

        self.keep_examples = keep_examples
        self.totals = Totals()
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.examples: list[Example] = []
        self._scores: list[float] = []  # of the current section, not yet in the totals
        self._distances: list[float | None] = []

    def add(self, example: Example) -> None:
        self._scores.append(example.score)
        self._distances.append(example.distance)
        for name in self.counts:
            self.counts[name] += getattr(example, name.removeprefix("n_"))
        if self.keep_examples:
            self.examples.append(example)

    def end_section(self) -> None:
        self.totals.add(self._scores, self._distances)
        self._scores, self._distances = [], []

    def save(self) -> dict[str, object]:
        return {"totals": asdict(self.totals), "counts": self.counts}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.totals = replace(self.totals, **saved["totals"])
        self.counts = saved["counts"]

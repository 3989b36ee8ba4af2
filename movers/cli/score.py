"""`movers score`: score a file of predictions row by row, with one or several metrics."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from movers.cli.arguments import (
    METRIC_HELP,
    InputFiles,
    Subparsers,
    add_compared_texts,
    add_options,
    check_compared,
    check_other_file,
    choose_metrics,
    options_of,
    say,
)
from movers.errors import InputError
from movers.io import ResumableFile, check_output, compress, find_pyarrow, is_stream, open_output
from movers.registry import METRICS

if TYPE_CHECKING:
    from movers.scorer import Example, Scorer

_COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown")
_LINES = (".txt", ".csv", ".tsv", ".jsonl")  # formats that can be written section by section
_ARROW = (".parquet", ".arrow", ".feather")
_RECORDS = (".jsonl", ".json", *_ARROW)  # formats that hold more than the scores


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
        help="write one score per row: .txt, .csv, .tsv, .jsonl (also .gz), .json, .parquet, .arrow or .feather",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted run with the same --output (.txt, .csv, .tsv, .jsonl, also .gz) from "
        "FILE.partial; the results are identical",
    )
    parser.add_argument(
        "--alignment", action="store_true", help=f"add alignments to --json or to the output ({', '.join(_RECORDS)})"
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
    options = options_of(arguments)
    for name in ("threads", "workers"):
        if getattr(arguments, name) is not None:
            options[name] = getattr(arguments, name)
    if arguments.quiet:
        options["progress"] = False
    if arguments.alignment:
        options["return_alignment"] = True
    metrics = choose_metrics(arguments.metric, options)
    specs = [METRICS[metric.name] for metric in metrics]
    check_compared("score", arguments, {spec.name: spec.compared_with for spec in specs})
    _check_arguments(arguments, aligned=any(metric.options.get("return_alignment") for metric in metrics))
    output = None if arguments.output is None else ScoreFile(arguments.output, arguments.resume)
    files = {"predictions": [arguments.predictions]}
    files |= {spec.compared_with: getattr(arguments, spec.compared_with) for spec in specs}
    check_other_file(
        "score", arguments.output, [(argument, path) for argument, paths in files.items() for path in paths]
    )
    inputs = InputFiles.read(arguments, files)

    from movers.scorer import SECTION, Scorer

    labels = [metric.label for metric in metrics]
    scorer = Scorer(labels, **options).prepare(inputs)
    totals = [_Totals() for _ in labels]
    examples: list[tuple[Example, ...]] = []  # kept for --json only
    with ExitStack() as stack:
        if output is not None:
            state = stack.enter_context(output.open(labels, _description(scorer, options, inputs)))
            totals = [_Totals(**saved) for saved in state] if state else totals
        done = totals[0].rows
        stack.enter_context(inputs.locate_errors())
        stream = _stream(scorer, inputs, done, arguments)
        while section := list(islice(stream, SECTION)):
            for total, column in zip(totals, zip(*section, strict=True), strict=True):
                total.add(column)
            if output is not None:
                output.append(totals[0].rows - len(section), section, [vars(total) for total in totals])
            if arguments.json:
                examples += section
        if output is not None:
            output.finish()
    if arguments.json:
        results = scorer.collect(examples)
        named = [{"metric": label, **result} for label, result in results.items()]
        say(json.dumps(named if len(named) > 1 else results[labels[0]], ensure_ascii=False))
    else:
        _print_means(arguments, scorer, totals)
    return 0


def _check_arguments(arguments: argparse.Namespace, aligned: bool) -> None:
    if arguments.address is not None and arguments.engine != "ray":
        raise InputError("score: --address requires --engine ray")
    if arguments.percent and arguments.json:
        raise InputError("score: --percent does not apply to --json, whose scores are from 0 to 1")
    if aligned and not arguments.json and (arguments.output is None or _suffix(arguments.output) not in _RECORDS):
        raise InputError(f"score: --alignment requires --json or --output with {', '.join(_RECORDS)}")
    if arguments.resume and arguments.output is None:
        raise InputError("score: --resume requires --output FILE")
    if arguments.resume and arguments.json:
        raise InputError("score: --resume does not apply to --json, which needs all rows in memory")


def _description(scorer: Scorer, options: dict[str, object], inputs: InputFiles) -> dict[str, str]:
    """What must be equal for a run to be resumed."""
    free = ("threads", "workers", "progress")
    chosen = [f"{name}={value}" for name, value in sorted(options.items()) if name not in free]
    signatures = {f"signature of {label}": signature for label, signature in scorer.signatures.items()}
    return {"metrics": ", ".join(scorer.signatures), **signatures, "options": ", ".join(chosen) or "none", **inputs.digests}


def _stream(
    scorer: Scorer, inputs: InputFiles, done: int, arguments: argparse.Namespace
) -> Iterator[tuple[Example, ...]]:
    """One example per metric for each row that is not done yet."""
    rows = islice(inputs, done, None)
    if arguments.engine == "ray":
        from movers.engines import Cluster, score_rows

        return iter(score_rows(scorer, rows, Cluster(arguments.address), first_row=done))
    scorer.forget()  # a text that was encoded in another batch differs in the last digits
    return scorer.stream(rows, total=inputs.rows, first_row=done)


class _Totals:
    """Running totals of a metric, as plain values that JSON holds."""

    def __init__(self, rows: int = 0, sums: Sequence[float] = (), counts: dict[str, int] | None = None) -> None:
        self.rows = rows
        self.sums = list(sums)  # a few floats with exactly the sum of all scores
        self.counts = counts or dict.fromkeys(_COUNTS, 0)

    def add(self, examples: Sequence[Example]) -> None:
        self.rows += len(examples)
        self.sums = _exact_sum([*self.sums, *(example.score for example in examples)])
        for name in self.counts:
            self.counts[name] += sum(getattr(example, name.removeprefix("n_")) for example in examples)

    @property
    def mean(self) -> float:
        return math.fsum(self.sums) / self.rows


def _exact_sum(values: list[float]) -> list[float]:
    """A few floats with exactly the same sum, so that a later `math.fsum` rounds once, as over all values.

    >>> _exact_sum([1e16, 1.0, 1.0, 0.5])
    [1.0000000000000002e+16, 0.5]
    """
    parts: list[float] = []
    while part := math.fsum([*values, *(-part for part in parts)]):
        parts.append(part)
    return parts


def _print_means(arguments: argparse.Namespace, scorer: Scorer, totals: Sequence[_Totals]) -> None:
    # If standard output carries the rows, the summary goes to standard error.
    summary = sys.stderr if arguments.output in ("-", "/dev/stdout") else sys.stdout
    for (label, signature), total in zip(scorer.signatures.items(), totals, strict=True):
        mean = f"{100 * total.mean:.2f} %" if arguments.percent else f"{total.mean:.4f}"
        say(f"{signature} = {mean}", summary)
        for name, count in total.counts.items():
            if count:
                prefix = f"{label}: " if len(totals) > 1 else ""
                say(f"  {prefix}{name}: {count} of {total.rows}", sys.stderr)


# --- the output file -------------------------------------------------------------------------------------------------


def _suffix(path: str) -> str:
    return Path(path.removesuffix(".gz")).suffix.lower() or ".txt"


class ScoreFile:
    """The file of scores; lines are written section by section and can be resumed, other formats at the end.

    Parameters
    ----------
    path : str
        Its suffix chooses the format; it is checked at once.
    resume : bool
        Continue an unfinished run.
    """

    def __init__(self, path: str, resume: bool) -> None:
        self.path, self.suffix, self.packed = path, _suffix(path), path.endswith(".gz")
        check_output(path, (*_LINES, ".json", *_ARROW))
        resumable = self.suffix in _LINES and not is_stream(path)
        if self.suffix in _ARROW:
            find_pyarrow(path)
            if self.packed or is_stream(path):
                reason = "this format is compressed inside" if self.packed else "it cannot be written to a stream"
                raise InputError(f"{path}: cannot write it: {reason}")
        if resume and not resumable:
            raise InputError(f"{path}: cannot resume: expected a file {', '.join(_LINES)}, also with .gz")
        self._resumable = ResumableFile(path, resume) if resumable else None
        self._file: IO[bytes]
        self._arrow: Any = None  # writer of Parquet or Arrow
        self._type: Any = None  # of its rows

    @contextmanager
    def open(self, labels: Sequence[str], description: dict[str, str]) -> Iterator[Any]:
        """Open the file; gives the state after the last section of the run that is resumed, if any."""
        self.labels = labels
        if self._resumable is None:
            with open_output(self.path) as self._file:
                try:
                    yield None
                finally:
                    if self._arrow is not None:
                        self._arrow.close()
            return
        state = self._resumable.begin(description)
        try:
            yield state
        except (Exception, KeyboardInterrupt, SystemExit):
            if self._resumable.unfinished:
                newline = "\n" if sys.stderr.isatty() else ""  # below a progress bar
                kept = f"finished rows are kept in {self._resumable.partial}; continue with --resume"
                say(f"{newline}movers: {kept}", sys.stderr)
            raise
        finally:
            self._resumable.close()

    def append(self, first: int, examples: Sequence[tuple[Example, ...]], state: object) -> None:
        """Write a section, whose first row has the index `first`."""
        if self.suffix in _ARROW:
            self._write_batch(self._records(first, examples))
            return
        text = io.StringIO(newline="")
        if self.suffix in (".jsonl", ".json"):
            for record in self._records(first, examples):
                mark = "" if self.suffix == ".jsonl" else "," if record["index"] else "["
                text.write(f"{mark}{json.dumps(record, ensure_ascii=False)}\n")
        else:
            table = csv.writer(text, lineterminator="\n", delimiter="," if self.suffix == ".csv" else "\t")
            indexed = self.suffix != ".txt"
            if indexed and not first:
                table.writerow(["index", *(self.labels if len(self.labels) > 1 else ["score"])])
            for index, row in enumerate(examples, start=first):
                table.writerow([*([index] if indexed else []), *(example.score for example in row)])
        data = text.getvalue().encode("utf-8")
        data = compress(data) if self.packed else data
        if self._resumable is None:
            self._file.write(data)
        else:
            self._resumable.append(data, state)

    def finish(self) -> None:
        """All rows have been written."""
        if self._resumable is not None:
            self._resumable.finish()
        elif self.suffix == ".json":
            self._file.write(compress(b"]\n") if self.packed else b"]\n")

    def _records(self, first: int, examples: Sequence[tuple[Example, ...]]) -> Iterator[dict[str, Any]]:
        for index, row in enumerate(examples, start=first):
            records = dict(zip(self.labels, map(_record, row), strict=True))
            yield {"index": index, **(records if len(records) > 1 else records[self.labels[0]])}

    def _write_batch(self, records: Iterator[dict[str, Any]]) -> None:
        """Numbers become columns, metrics structs; alignments become texts in JSON."""
        pyarrow = find_pyarrow(self.path)
        rows = list(records)
        for row in rows:
            for record in (row, *(value for value in row.values() if isinstance(value, dict))):
                if "alignments" in record:
                    record["alignments"] = json.dumps(record["alignments"], ensure_ascii=False)
        values = pyarrow.array(rows, type=self._type)  # the first section decides which columns there are
        batch = pyarrow.RecordBatch.from_struct_array(values)
        if self._arrow is None:
            new = pyarrow.parquet.ParquetWriter if self.suffix == ".parquet" else pyarrow.ipc.new_file
            self._arrow, self._type = new(self._file, batch.schema), values.type
        self._arrow.write_batch(batch)


def _record(example: Example) -> dict[str, object]:
    record: dict[str, object] = {"score": example.score, **example.parts}
    if example.distance is not None:
        record["distance"] = example.distance
    return record if example.alignments is None else {**record, "alignments": example.alignments}

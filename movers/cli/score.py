"""`movers score`: score a file of predictions row by row, with one or several metrics."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from movers.io import ResumableFile, check_output, compress, find_pyarrow, is_stream, open_output, write_file
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
    add = parser.add_argument
    add("metric", metavar="METRIC", help=f"{METRIC_HELP}. Metrics: {', '.join(METRICS)}")
    add("-p", "--predictions", required=True, metavar="FILE", help="texts to score")
    add_compared_texts(parser)
    add_options(parser)
    add("--threads", type=int, help="threads that compare texts (default: one per available processor)")
    add("--workers", type=int, help="worker processes per metric, for static vectors (default: 1)")
    formats = ".txt, .csv, .tsv, .jsonl (also .gz)"
    add("-o", "--output", metavar="FILE", help=f"one score per row: {formats}, .json, .parquet, .arrow or .feather")
    resume = f"continue an interrupted run with the same --output ({formats}); the results are identical"
    add("--resume", action="store_true", help=resume)
    add("--alignment", action="store_true", help=f"add alignments to --json or --output ({', '.join(_RECORDS)})")
    add("--json", action="store_true", help="print the full result as JSON; a list for several metrics")
    add("--percent", action="store_true", help="print scores from 0 to 100 instead of 0 to 1")
    add("-q", "--quiet", action="store_true", help="no progress bar")
    add("--engine", choices=("local", "ray"), default="local", help="run here (default) or on a Ray cluster")
    add("--address", help="address of a Ray cluster, such as auto (default: find or start one)")
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
            state = output.begin(labels, _description(scorer, options, inputs))
            stack.enter_context(output)
            totals = [_Totals(**saved) for saved in state] if state else totals
        stack.enter_context(inputs.locate_errors())
        stream = _stream(scorer, inputs, totals[0].rows, arguments)
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
    return {
        "metrics": ", ".join(scorer.signatures),
        **signatures,
        "options": ", ".join(chosen) or "none",
        **inputs.digests,
    }


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
    """The file of scores: lines are written section by section and can be resumed, other formats at the end."""

    def __init__(self, path: str, resume: bool) -> None:
        self.path, self.suffix = path, _suffix(path)
        check_output(path, (*_LINES, ".json", *_ARROW))
        if self.suffix in _ARROW:
            find_pyarrow(path)
            if path.endswith(".gz") or is_stream(path):
                raise InputError(f"{path}: cannot write it: expected a file without .gz, and no stream")
        if resume and self.suffix not in _LINES:
            raise InputError(f"{path}: cannot resume: expected a file {', '.join(_LINES)}, also with .gz")
        self._lines = ResumableFile(path, resume) if self.suffix in _LINES else None
        self._records: list[dict[str, Any]] = []

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if self._lines is not None:
            self._lines.close()
            if kind is not None and self._lines.unfinished:
                newline = "\n" if sys.stderr.isatty() else ""  # below a progress bar
                kept = f"finished rows are kept in {self._lines.partial}; continue with --resume"
                say(f"{newline}movers: {kept}", sys.stderr)

    def begin(self, labels: Sequence[str], description: dict[str, str]) -> Any:
        """The state after the last section of the run that is resumed, if any."""
        self._labels = labels
        return None if self._lines is None else self._lines.begin(description)

    def append(self, first: int, examples: Sequence[tuple[Example, ...]], state: object) -> None:
        """Write a section, whose first row has the index `first`."""
        records = (self._record(index, row) for index, row in enumerate(examples, start=first))
        if self._lines is None:
            self._records += records
            return
        text = io.StringIO(newline="")
        if self.suffix == ".jsonl":
            text.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        else:
            table = csv.writer(text, lineterminator="\n", delimiter="," if self.suffix == ".csv" else "\t")
            indexed = self.suffix != ".txt"
            if indexed and not first:
                table.writerow(["index", *(self._labels if len(self._labels) > 1 else ["score"])])
            for index, row in enumerate(examples, start=first):
                table.writerow([*([index] if indexed else []), *(example.score for example in row)])
        data = text.getvalue().encode("utf-8")
        self._lines.append(compress(data) if self.path.endswith(".gz") else data, state)

    def _record(self, index: int, row: tuple[Example, ...]) -> dict[str, Any]:
        records = []
        for example in row:
            record: dict[str, object] = {"score": example.score, **example.parts}
            if example.distance is not None:
                record["distance"] = example.distance
            if example.alignments is not None:  # a text in the columns of Parquet and Arrow
                packed = self.suffix in _ARROW
                record["alignments"] = (
                    json.dumps(example.alignments, ensure_ascii=False) if packed else example.alignments
                )
            records.append(record)
        return {"index": index, **(records[0] if len(row) == 1 else dict(zip(self._labels, records, strict=True)))}

    def finish(self) -> None:
        """All rows are there."""
        if self._lines is not None:
            self._lines.finish()
        elif self.suffix == ".json":
            write_file(self.path, json.dumps(self._records, ensure_ascii=False, indent=1) + "\n")
        else:
            pyarrow = find_pyarrow(self.path)
            batch = pyarrow.RecordBatch.from_struct_array(pyarrow.array(self._records))
            new = pyarrow.parquet.ParquetWriter if self.suffix == ".parquet" else pyarrow.ipc.new_file
            with open_output(self.path) as file, new(file, batch.schema) as writer:
                writer.write_batch(batch)

"""`movers score`: score a file of predictions row by row, with one or several metrics."""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from movers.cli import common
from movers.errors import InputError
from movers.io import ResumableFile, check_output, suffix_of, write_file
from movers.registry import METRICS
from movers.threads import chunks

if TYPE_CHECKING:
    from movers.scorer import Example, Scorer

_COUNTS = ("n_empty", "n_unfiltered", "n_truncated", "n_unknown", "n_failed")
_LINES = (".txt", ".csv", ".tsv", ".jsonl")  # formats that are written section by section
_WHOLE = (".json", ".parquet", ".arrow", ".feather")  # at the end


def add_parser(commands: common.Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "score",
        usage="movers score METRIC -p FILE (-r FILE … | --sources FILE …) [options]",
        help="score predictions against references",
        description="Score each prediction against its references, or its source document. Prints for each\n"
        "metric the signature, the mean score and its 95 % interval (bootstrap over rows).",
        epilog="Files hold one text per line, or are .jsonl, .json, .csv, .tsv, .parquet, .arrow or\n"
        ".feather with a column of texts; all also .gz; - is standard input.\n\n"
        "example:\n  movers score wms,moverscore -p predictions.txt -r references.txt -o scores.jsonl",
    )
    add = parser.add_argument
    add("metric", metavar="METRIC", help=common.SEVERAL_HELP)
    add("-p", "--predictions", required=True, metavar="FILE", help="texts to score")
    common.add_compared_texts(parser)
    formats = ".txt, .csv, .tsv, .jsonl (also .gz)"
    add("-o", "--output", metavar="FILE", help=f"one score per row: {formats}, .json, .parquet, .arrow or .feather")
    resume = f"continue an interrupted run with the same --output ({formats}); the results are identical"
    add("--resume", action="store_true", help=resume)
    on_error = "what a row that cannot be scored does: end the run (default), or leave its score empty"
    add("--on-error", choices=("raise", "null"), default="raise", help=on_error)
    add("--alignment", action="store_true", help="add alignments to --json or --output (.jsonl, .json)")
    add("--json", action="store_true", help="print the full result as JSON; a list for several metrics")
    add("--percent", action="store_true", help="print scores from 0 to 100 instead of 0 to 1")
    add("-q", "--quiet", action="store_true", help="no progress bar")
    add("--threads", type=int, metavar="N", help="threads that compare texts (default: one per processor)")
    add("--workers", type=int, metavar="N", help="worker processes per metric, for static vectors (default: 1)")
    add("--engine", choices=("local", "ray"), default="local", help="run here (default) or on a Ray cluster")
    add("--address", help="address of a Ray cluster, such as auto (default: find or start one)")
    common.add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Score every row with every metric; print or write the results."""
    flags = {"threads": arguments.threads, "workers": arguments.workers}
    flags |= {"progress": False if arguments.quiet else None, "return_alignment": arguments.alignment or None}
    options = common.options_of(arguments) | {name: value for name, value in flags.items() if value is not None}
    metrics = common.choose_metrics(arguments.metric, options)
    output = arguments.output
    suffix = "" if output is None else suffix_of(output) or ".txt"
    if arguments.address is not None and arguments.engine != "ray":
        raise InputError("--address requires --engine ray")
    if arguments.resume and (suffix not in _LINES or arguments.json):
        raise InputError(f"--resume requires --output with {', '.join(_LINES)} (also .gz), and excludes --json")
    if arguments.alignment and not arguments.json and suffix not in (".jsonl", ".json"):
        raise InputError("--alignment requires --json or --output with .jsonl or .json")
    if output is not None:
        check_output(output, (*_LINES, *_WHOLE))
    lines = ResumableFile(output, arguments.resume) if suffix in _LINES else None
    files = {"predictions": [arguments.predictions]}
    for name, _ in metrics.values():
        files[METRICS[name].compared_with] = getattr(arguments, METRICS[name].compared_with)
    inputs = common.InputFiles(arguments, files)

    from movers.scorer import SECTION, Scorer

    scorer = Scorer(metrics, on_error=arguments.on_error).prepare(inputs)
    totals = [_Totals() for _ in metrics]
    examples: list[tuple[Example, ...]] = []  # as far as all of them are needed at the end
    with lines or nullcontext(), inputs.locate_errors():
        if lines is not None and (saved := lines.begin(_description(scorer, options, inputs))):
            totals = [_Totals(**total) for total in saved]
        done = totals[0].rows
        if arguments.engine == "ray":
            from movers.engines import score_batches

            stream = score_batches(scorer, chunks(islice(inputs, done, None), SECTION), arguments.address, done)
        else:
            scorer.forget()  # a text that was encoded in another batch differs in the last digits
            stream = scorer.stream(islice(inputs, done, None), total=inputs.rows, first_row=done)
        while section := list(islice(stream, SECTION)):
            first = totals[0].rows
            for total, column in zip(totals, zip(*section, strict=True), strict=True):
                total.add(column)
            if lines is not None:
                lines.append(_lines(suffix, list(metrics), first, section), [asdict(total) for total in totals])
            if arguments.json or suffix in _WHOLE:
                examples += section
        if lines is not None:
            lines.finish()
    if suffix in _WHOLE:
        _write_table(output, suffix, [_record(list(metrics), index, row) for index, row in enumerate(examples)])
    if arguments.json:
        results = scorer.collect(examples)
        named = [{"metric": label, **result} for label, result in results.items()]
        common.say(json.dumps(named if len(named) > 1 else results[next(iter(metrics))], ensure_ascii=False))
    else:
        _print_means(arguments, scorer, totals)


def _description(scorer: Scorer, options: Mapping[str, object], inputs: common.InputFiles) -> dict[str, str]:
    """What must be equal for a run to be resumed."""
    free = ("threads", "workers", "progress")
    chosen = ", ".join(f"{name}={value}" for name, value in sorted(options.items()) if name not in free)
    signatures = {f"signature of {label}": signature for label, signature in scorer.signatures.items()}
    return {"metrics": ", ".join(scorer.signatures), **signatures, "options": chosen or "none", **inputs.digests}


@dataclass
class _Totals:
    """Running totals of a metric; the scores, for the interval, as counts of the same four decimals."""

    rows: int = 0
    sum: float = 0.0
    rounded: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))

    def add(self, examples: Sequence[Example]) -> None:
        self.rows += len(examples)
        scores = [example.score for example in examples if not example.failed]
        self.sum = sum(scores, self.sum)
        for score in scores:
            key = f"{score:.4f}"
            self.rounded[key] = self.rounded.get(key, 0) + 1
        for name in self.counts:
            self.counts[name] += sum(bool(getattr(example, name.removeprefix("n_"))) for example in examples)


def _mean(total: _Totals, percent: bool) -> str:
    """The mean with its interval, as it is printed."""
    scored = sum(total.rounded.values())
    numbers = [total.sum / scored if scored else math.nan]
    if scored > 1:
        import numpy as np

        from movers.agreement.systems import mean_interval

        scores, counts = (np.array(list(column), dtype=float) for column in zip(*total.rounded.items(), strict=True))
        if len(scores) > 1000:  # of so many rows that three decimals do, in a tenth of the time
            scores, places = np.unique(scores.round(3), return_inverse=True)
            counts = np.bincount(places, counts)
        numbers += mean_interval(scores, counts)
    mean, *interval = (f"{100 * number:.2f}" if percent else f"{number:.4f}" for number in numbers)
    return mean + " %" * percent + (f" [{', '.join(interval)}]" if interval else "")


def _print_means(arguments: argparse.Namespace, scorer: Scorer, totals: Sequence[_Totals]) -> None:
    # If standard output carries the rows, the summary goes to standard error.
    summary = sys.stderr if arguments.output in ("-", "/dev/stdout") else sys.stdout
    for (label, signature), total in zip(scorer.signatures.items(), totals, strict=True):
        common.say(f"{signature} = {_mean(total, arguments.percent)}", summary)
        for name, count in total.counts.items():
            if count:
                prefix = f"{label}: " if len(totals) > 1 else ""
                common.say(f"  {prefix}{name}: {count} of {total.rows}", sys.stderr)


def _record(labels: Sequence[str], index: int, row: Sequence[Example]) -> dict[str, Any]:
    """Scores, parts, distances and alignments of a row; for several metrics each under its label."""
    records: list[dict[str, Any]] = []
    for example in row:
        further = {"distance": example.distance, "alignments": example.alignments}
        records.append({**example.numbers, **{name: value for name, value in further.items() if value is not None}})
    return {"index": index, **(records[0] if len(row) == 1 else dict(zip(labels, records, strict=True)))}


def _lines(suffix: str, labels: Sequence[str], first: int, section: Sequence[Sequence[Example]]) -> str:
    """The lines of a section, whose first row has the index `first`."""
    import csv

    rows = enumerate(section, start=first)
    text = io.StringIO(newline="")
    if suffix == ".jsonl":
        text.writelines(json.dumps(_record(labels, index, row), ensure_ascii=False) + "\n" for index, row in rows)
        return text.getvalue()
    table = csv.writer(text, lineterminator="\n", delimiter="," if suffix == ".csv" else "\t")
    indexed = suffix != ".txt"
    if indexed and not first:
        table.writerow(["index", *(labels if len(labels) > 1 else ["score"])])
    for index, row in rows:
        table.writerow([*([index] if indexed else []), *("" if example.failed else example.score for example in row)])
    return text.getvalue()


def _write_table(path: str, suffix: str, records: list[dict[str, Any]]) -> None:
    """Write a file of a format that is written as a whole."""
    if suffix == ".json":
        write_file(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
        return
    import pyarrow
    import pyarrow.parquet

    batch = pyarrow.RecordBatch.from_struct_array(pyarrow.array(records))
    sink = pyarrow.BufferOutputStream()
    new = pyarrow.parquet.ParquetWriter if suffix == ".parquet" else pyarrow.ipc.new_file
    with new(sink, batch.schema) as writer:
        writer.write_batch(batch)
    write_file(path, sink.getvalue().to_pybytes())

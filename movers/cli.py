"""`movers …`: the command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from movers import agreement_cli
from movers.quality.cli import add_parser as add_training
from movers.registry import METRICS, Metric, find_metric
from movers.specs import parse_metric, parse_options
from movers.version import VERSION

__all__ = ["main"]


# ---------------------------------------------------------------------------------------------------------------------


def _score(arguments: argparse.Namespace) -> int:
    from movers.files import TextFile, read_groups
    from movers.inputs import check_text
    from movers.scores.pairs import Example, collect, score_stream
    from movers.scores.weighing import Corpus

    metric, options = parse_metric(arguments.metric)
    options.update(parse_options(arguments.set))
    if arguments.threads is not None:
        options["threads"] = arguments.threads
    if arguments.model is not None:
        options["model"] = arguments.model
    if arguments.quiet:
        options["progress"] = False
    options = _settled(metric, options)
    against = metric.against
    given = getattr(arguments, against)
    if not given:
        raise ValueError(f"{metric.name}: expected --{against} FILE")
    predictions = TextFile(arguments.predictions, arguments.prediction_column, "predictions")
    column = getattr(arguments, f"{against[:-1]}_column")
    others = [
        TextFile(path, column, against if len(given) == 1 else f"{against} {n}") for n, path in enumerate(given, 1)
    ]
    rows = predictions.count()
    for other in others:
        if (count := other.count()) != rows:
            raise ValueError(
                f"{metric.name}: expected equally many rows, "
                f"but {predictions.path} has {rows} and {other.path} has {count}"
            )
    if not rows:
        raise ValueError(f"{metric.name}: predictions: {predictions.path} has no rows")

    def groups() -> Iterator[list[str]]:
        for row, group in enumerate(read_groups(others)):
            if not group:
                raise ValueError(f"{metric.name}: {against}[{row}]: expected at least one text, but got an empty list")
            yield [check_text(metric.name, against, str(row), text) for text in group]

    pairs = (
        (check_text(metric.name, "predictions", str(row), text), group)
        for row, (text, group) in enumerate(zip(predictions, groups(), strict=True))
    )
    corpus = Corpus(lambda: iter(predictions), lambda: (text for group in groups() for text in group))
    scorer = metric.scorer(options, corpus)
    keep = arguments.json
    examples: list[Example] = []
    scores = array("d")
    counts = {"n_empty": 0, "n_unfiltered": 0, "n_truncated": 0}
    with _Writer(arguments.output) as writer:
        for example in score_stream(scorer, pairs, total=rows, return_alignment=arguments.alignment):
            writer.write(len(scores), example)
            scores.append(example.score)
            counts["n_empty"] += example.empty
            counts["n_unfiltered"] += example.unfiltered
            counts["n_truncated"] += example.truncated
            if keep:
                examples.append(example)
    if arguments.json:
        print(json.dumps(collect(scorer, examples), ensure_ascii=False))
    else:
        print(f"{scorer.signature} = {math.fsum(scores) / len(scores):.4g}")
        for name, count in counts.items():
            if count:
                print(f"  {name}: {count} of {len(scores)}", file=sys.stderr)
    return 0


def _settled(metric: Metric, options: dict[str, Any]) -> dict[str, Any]:
    metric.options(options)  # errors before any file is read
    return options


class _Writer:
    """Scores to a file, whole or not at all: text (one a line), JSON Lines or CSV by its name; .gz may follow."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.part = f"{path}.part"
        self.kind = (path or "").removesuffix(".gz")
        self.file: Any = None

    def __enter__(self) -> _Writer:
        if self.path is not None:
            try:
                self.file = self._open()
            except OSError as error:
                raise OSError(f"output: cannot write {self.path}: {error.strerror}") from None
            if self.kind.endswith(".csv"):
                self.file.write("index,score\n")
        return self

    def _open(self) -> Any:
        if self.path != self.kind:
            import gzip

            return gzip.open(self.part, "wt", encoding="utf-8")
        return open(self.part, "w", encoding="utf-8")

    def write(self, index: int, example: Any) -> None:
        if self.file is None or self.path is None:
            return
        if self.kind.endswith(".jsonl"):
            record = {"index": index, "score": example.score, **example.parts}
            if example.alignments is not None:
                record["alignments"] = example.alignments
            self.file.write(json.dumps(record, ensure_ascii=False) + "\n")
        elif self.kind.endswith(".csv"):
            self.file.write(f"{index},{example.score!r}\n")
        else:
            self.file.write(f"{example.score!r}\n")

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if self.file is None or self.path is None:
            return
        self.file.close()
        if kind is None:
            os.replace(self.part, self.path)
        else:
            os.unlink(self.part)


def _metrics(arguments: argparse.Namespace) -> int:
    width = max(map(len, METRICS))
    for metric in METRICS.values():
        print(f"{metric.name:<{width}}  {metric.title}: {metric.summary}")
    return 0


def _options(arguments: argparse.Namespace) -> int:
    from dataclasses import fields

    metric = find_metric(arguments.metric)
    for item in fields(metric.options_class):
        print(f"{item.name}={item.default!r}")
    return 0


def _baseline(arguments: argparse.Namespace) -> int:
    from movers.baseline import compute_baseline, save_baseline
    from movers.files import TextFile
    from movers.inputs import check_texts

    metric, options = parse_metric(arguments.metric)
    options.update(parse_options(arguments.set))
    if arguments.model is not None:
        options["model"] = arguments.model
    corpus = TextFile(arguments.corpus, arguments.corpus_column, "corpus")
    record = compute_baseline(
        metric.name, check_texts(metric.name, "corpus", list(corpus)), options, arguments.pairs, arguments.seed
    )
    if arguments.output is None:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        save_baseline(record, arguments.output)
        shown = {name: record[name] for name in ("precision", "recall", "f1", "score") if name in record}
        print(f"{arguments.output}: " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items()))
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from movers.demo import run

    return run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="movers",
        description="Text-generation metrics that compare meanings: embeddings and optimal transport.",
        epilog="movers COMMAND --help tells more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"movers {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    score = commands.add_parser(
        "score",
        help="score a file of texts against files of references",
        description="Score predictions against references (or sources), row by row, and print signature and mean.",
        epilog="Files hold one text a line, or columns (.jsonl, .csv, .tsv: name the column); each may end in .gz. "
        "Options of a metric: `movers options NAME`.",
    )
    score.add_argument("metric", metavar="METRIC", help="NAME or NAME[key=value,…]; " + ", ".join(METRICS))
    score.add_argument("-p", "--predictions", required=True, metavar="FILE", help="the texts to score")
    score.add_argument("-r", "--references", action="append", metavar="FILE", help="reference texts; may be repeated")
    score.add_argument(
        "--sources", action="append", metavar="FILE", help="source documents, for reference-free metrics"
    )
    for name in ("prediction", "reference", "source"):
        score.add_argument(f"--{name}-column", metavar="NAME", help=f"column of the {name} files, if they have columns")
    score.add_argument("-m", "--model", help="encoder (same as --set model=…)")
    score.add_argument(
        "-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="an option; may be repeated"
    )
    score.add_argument("--threads", type=int, help="threads for transport; default: all processors")
    score.add_argument("-o", "--output", metavar="FILE", help="write a score a row (.txt, .csv or .jsonl)")
    score.add_argument("--alignment", action="store_true", help="with --json or a .jsonl output: what moved where")
    score.add_argument("--json", action="store_true", help="print the whole result as JSON")
    score.add_argument("-q", "--quiet", action="store_true", help="no progress bar, not even on a terminal")
    score.set_defaults(run=_score)

    listing = commands.add_parser("metrics", help="list the metrics")
    listing.set_defaults(run=_metrics)
    options = commands.add_parser("options", help="list the options of a metric with their defaults")
    options.add_argument("metric", metavar="METRIC")
    options.set_defaults(run=_options)
    baseline = commands.add_parser(
        "baseline",
        help="compute what a metric gives unrelated texts, to rescale its scores",
        description="Score random pairs of different texts of a corpus; use the file as baseline_path=.",
    )
    baseline.add_argument("--metric", default="bertscore_emd", help="NAME or NAME[key=value,…]; default: bertscore_emd")
    baseline.add_argument("--model", help="encoder (same as --set model=…)")
    baseline.add_argument("--corpus", required=True, metavar="FILE", help="texts of the kind to be scored")
    baseline.add_argument("--corpus-column", metavar="NAME", help="column of the corpus file, if it has columns")
    baseline.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option; may be repeated")
    baseline.add_argument("--pairs", type=int, default=10_000, help="random pairs to score; default: 10000")
    baseline.add_argument("--seed", type=int, default=13)
    baseline.add_argument("--output", metavar="FILE", help="write it here; default: print it")
    baseline.set_defaults(run=_baseline)
    agreement_cli.add_parsers(commands)
    training = commands.add_parser("train", help="train a model of a learned metric")
    add_training(training.add_subparsers(title="metrics", metavar="METRIC", required=True))
    demo = commands.add_parser("demo", help="score the bundled example with every metric")
    demo.set_defaults(run=_demo)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    # POT imports every tensor library it finds, should it ever be imported whole; this process has no use for them.
    for library in ("PYTORCH", "JAX", "TENSORFLOW", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except (ValueError, TypeError, OSError, ImportError, LookupError) as error:
        if os.environ.get("MOVERS_DEBUG"):
            raise
        print(f"movers: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("movers: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""`movers train quality`: train a model of the reference-free metric."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import PureWindowsPath

from movers.cli.arguments import Subparsers
from movers.registry import parse_value


class _TrainingParser(argparse.ArgumentParser):
    """Declares its arguments when it is used: the hyperparameters come from a class whose module imports NumPy."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        _declare(self)
        return super().parse_known_args(args, namespace)


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    training = commands.add_parser("train", help="train a model of a learned metric")
    metrics = training.add_subparsers(title="metrics", metavar="METRIC", required=True, parser_class=_TrainingParser)
    metrics.add_parser(
        "quality",
        help="train a model of reference_free_summary_quality",
        description="Train a model of reference_free_summary_quality on documents with summaries. A run that was "
        "stopped continues when the same command is given again, and ends with the same weights.",
    ).set_defaults(run=run)


def _declare(parser: argparse.ArgumentParser) -> None:
    from movers.quality.training import TrainingOptions
    from movers.scores.options import option_rows

    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE_OR_DATASET",
        help="files (.jsonl, .json, .csv, .tsv, .parquet, .arrow; .gz may follow) or Hub data sets "
        "(name[:configuration])",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder of the model: new, or of a stopped run"
    )
    parser.add_argument("--source-column", metavar="NAME", help="column of the documents (default: by usual names)")
    parser.add_argument("--summary-column", metavar="NAME", help="column of the summaries (default: by usual names)")
    parser.add_argument("--split", default="train", help="split of a Hub data set (default: train)")
    parser.add_argument("--limit", type=int, metavar="ROWS", help="take at most this many rows of each set")
    parser.add_argument("--vectors", metavar="DIR", help="keep vectors here, to share them between runs")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")
    hyperparameters = parser.add_argument_group("hyperparameters, saved with the model")
    for row in option_rows(TrainingOptions):
        shown = "" if row.default is None else f" (default: {row.default})"
        hyperparameters.add_argument(
            f"--{row.name}",
            type=str if isinstance(row.default, str) else parse_value,
            choices=[choice for choice in row.choices if choice is not None] or None,
            metavar=None if row.choices else "VALUE",
            help=row.help + shown,
        )


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say and print where the model is."""
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train
    from movers.scores.options import option_rows
    from movers.training import best_entry

    given = {row.name: getattr(arguments, row.name) for row in option_rows(TrainingOptions)}
    options = TrainingOptions.parse(
        "train quality", {name: value for name, value in given.items() if value is not None}
    )
    pairs = read_pairs(
        arguments.data,
        source_column=arguments.source_column,
        summary_column=arguments.summary_column,
        split=arguments.split,
        limit=arguments.limit,
    )
    model = train(
        pairs,
        arguments.output,
        options,
        # a path may tell where somebody works; the record names files alone
        sources=[{"name": PureWindowsPath(name).name} for name in arguments.data],
        vectors=arguments.vectors,
        progress=False if arguments.quiet else None,
    )
    curve = model.record["curve"]
    print(f"{arguments.output}: best epoch {best_entry(curve)['epoch']} of {len(curve)}")
    for name, value in model.record["test"].items():
        print(f"  test {name}: {value:.4f}")
    return 0

"""`movers train quality`: train a model for the reference-free metric."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import PureWindowsPath

from movers.cli.arguments import Subparsers, say
from movers.registry import parse_value


class _TrainingParser(argparse.ArgumentParser):
    """Declares its arguments only when used: hyperparameters come from a class whose module imports NumPy."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        _declare_arguments(self)
        return super().parse_known_args(args, namespace)


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    training = commands.add_parser("train", help="train a learned metric", description="Train a learned metric.")
    kinds = training.add_subparsers(title="what to train", metavar="KIND", required=True, parser_class=_TrainingParser)
    kinds.add_parser(
        "quality",
        help="train a model for reference_free_summary_quality",
        description="Train a model for reference_free_summary_quality on documents with summaries. "
        "To continue an interrupted run, repeat the command; it ends with the same weights.",
    ).set_defaults(run=run)


def _declare_arguments(parser: argparse.ArgumentParser) -> None:
    from movers.quality.training import TrainingOptions
    from movers.scores.options import option_rows

    add = parser.add_argument
    data = "files (.jsonl, .json, .csv, .tsv, .parquet, .arrow; also .gz) or Hub datasets (name[:configuration])"
    add("--data", required=True, nargs="+", action="extend", metavar="FILE_OR_DATASET", help=data)
    add("-o", "--output", required=True, metavar="DIR", help="output folder: new, or of an interrupted run")
    add("--limit", type=int, metavar="ROWS", help="use at most this many rows of each file or dataset")
    add("-q", "--quiet", action="store_true", help="no progress bars")
    for flag, texts in (("--source-column", "documents"), ("--summary-column", "summaries")):
        add(flag, metavar="NAME", help=f"column of the {texts} (default: found by common names)")
    add("--split", default="train", help="split of a Hub dataset (default: train)")
    add("--vectors", metavar="DIR", help="cache vectors in DIR, to share them between runs")
    group = parser.add_argument_group("hyperparameters, saved with the model")
    for row in option_rows(TrainingOptions):
        flag = f"--{row.name.replace('_', '-')}"
        if row.default is False:
            group.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=row.help)
        else:
            description = f"{row.help} ({row.values}; default: {row.default})".replace("%", "%%")
            default = argparse.SUPPRESS
            group.add_argument(flag, type=parse_value, default=default, metavar="VALUE", help=description)


def run(arguments: argparse.Namespace) -> None:
    """Train and print test scores."""
    from movers.inputs import check_positive
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train
    from movers.scores.options import option_rows

    values = vars(arguments)
    chosen = {row.name: values[row.name] for row in option_rows(TrainingOptions) if row.name in values}
    options = TrainingOptions.parse("train quality", chosen)
    check_positive("train quality", "limit", arguments.limit)
    columns = {"source_column": arguments.source_column, "summary_column": arguments.summary_column}
    pairs = read_pairs(arguments.data, split=arguments.split, limit=arguments.limit, **columns)
    model = train(
        pairs,
        arguments.output,
        options,
        sources=[{"name": PureWindowsPath(name).name} for name in arguments.data],  # without folders: may be private
        vectors=arguments.vectors,
        progress=False if arguments.quiet else None,
    )
    curve = model.record["curve"]
    best = min(reversed(curve), key=lambda entry: entry["validation_loss"])
    say(f"{arguments.output}: best epoch {best['epoch']} of {len(curve)}")
    for name, value in model.record["test"].items():
        say(f"  test {name}: {value:.4f}")

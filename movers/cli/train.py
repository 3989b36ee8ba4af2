"""`movers train quality`: train a model of the reference-free metric."""

from __future__ import annotations

import argparse
from pathlib import PureWindowsPath

from movers.cli.arguments import Subparsers

__all__ = ["NEGATIVES", "add_parser", "run"]

#: As in `movers.quality`, which imports numpy: too heavy for a help text.
NEGATIVES = ("cross", "add", "delete", "replace", "mix", "broad")
#: Arguments that are hyperparameters of the run.
_HYPERPARAMETERS = (
    "encoder",
    "unit",
    "negatives",
    "fakes",
    "optimiser",
    "rate",
    "schedule",
    "batch",
    "epochs",
    "patience",
    "window",
    "seed",
    "lang",
)


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    training = commands.add_parser("train", help="train a model of a learned metric")
    metrics = training.add_subparsers(title="metrics", metavar="METRIC", required=True)
    parser: argparse.ArgumentParser = metrics.add_parser(
        "quality",
        help="train a model of reference_free_summary_quality",
        description="Train a model of reference_free_summary_quality on documents with summaries. A run that was "
        "stopped continues when the same command is given again, and ends with the same weights.",
    )
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
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="text to vectors (default: all-MiniLM-L6-v2)")
    parser.add_argument(
        "--unit",
        choices=("words", "sentences", "cross"),
        help="what a vector stands for; cross fine-tunes the transformer on document and summary together "
        "(default: sentences, or words with a static encoder)",
    )
    parser.add_argument("--head", choices=("fc", "cnn", "lstm", "align"), help="network (default: align; words: lstm)")
    parser.add_argument("--negatives", choices=NEGATIVES, default="mix", help="kind of negative samples (default: mix)")
    parser.add_argument("--fakes", type=int, default=1, help="negative samples per document (default: 1)")
    parser.add_argument("--optimiser", choices=("rmsprop", "adamw"), default="rmsprop", help="default: rmsprop")
    parser.add_argument("--rate", type=float, help="learning rate (default: 0.001; cross: 0.00003)")
    parser.add_argument("--schedule", choices=("constant", "linear"), default="constant", help="of the learning rate")
    parser.add_argument("--batch", type=int, default=32, help="samples per step (default: 32)")
    parser.add_argument("--epochs", type=int, default=30, help="maximum number of epochs (default: 30)")
    parser.add_argument("--patience", type=int, default=3, help="epochs without a better validation loss (default: 3)")
    parser.add_argument("--window", type=int, help="tokens that the cross-encoder reads at once (default: its limit)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--lang", default="en", help="language of the sentence rules (default: en)")
    parser.add_argument("--vectors", metavar="DIR", help="keep vectors here, to share them between runs")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say and print where the model is."""
    from movers.encoders import load_static
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train

    head = arguments.head
    if head is None:
        words = arguments.unit == "words" or (arguments.unit is None and load_static(arguments.encoder) is not None)
        head = "lstm" if words else "align"
    options = TrainingOptions(head=head, **{name: getattr(arguments, name) for name in _HYPERPARAMETERS}).check()
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
    best = min(model.record["curve"], key=lambda entry: entry["validation_loss"])
    print(f"{arguments.output}: best epoch {best['epoch']} of {len(model.record['curve'])}")
    for name, value in model.record["test"].items():
        print(f"  test {name}: {value:.4f}")
    return 0

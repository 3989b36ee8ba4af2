"""`movers train quality`: the arguments here, everything heavy inside the run."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["NEGATIVES", "add_parser", "run"]

#: As in `movers.quality.negatives`, which imports numpy: too heavy for a help text.
NEGATIVES = ("cross", "add", "delete", "replace", "mix", "broad")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add `quality` to the commands of `movers train`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "quality",
        help="train a model of reference_free_summary_quality",
        description="Train a model of reference_free_summary_quality on documents with summaries. A run that was "
        "stopped goes on when the same command is given again, and ends with the same weights.",
    )
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        metavar="FILE_OR_DATASET",
        help="files (jsonl, json, csv, parquet, arrow; also jsonl.gz, json.gz) or Hub data sets (name[:configuration])",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the model: new, or of a stopped run")
    parser.add_argument("--source-column", metavar="NAME", help="column of the documents (default: by usual names)")
    parser.add_argument("--summary-column", metavar="NAME", help="column of the summaries (default: by usual names)")
    parser.add_argument("--split", default="train", help="split of a Hub data set (default: train)")
    parser.add_argument("--limit", type=int, metavar="ROWS", help="take the first so many rows of each set")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="text to vector (default: all-MiniLM-L6-v2)")
    parser.add_argument(
        "--unit",
        choices=("words", "sentences", "cross"),
        help="what a vector stands for; cross fine-tunes the transformer on document and summary together "
        "(default: sentences, or words with a static encoder)",
    )
    parser.add_argument("--head", choices=("fc", "cnn", "lstm", "align"), help="network (default: align; words: lstm)")
    parser.add_argument("--negatives", choices=NEGATIVES, default="mix", help="bad samples (default: mix)")
    parser.add_argument("--fakes", type=int, default=1, help="bad samples a document (default: 1)")
    parser.add_argument("--optimiser", choices=("rmsprop", "adamw"), default="rmsprop")
    parser.add_argument("--rate", type=float, help="learning rate (default: 0.001; cross: 0.00003)")
    parser.add_argument("--schedule", choices=("constant", "linear"), default="constant", help="of the learning rate")
    parser.add_argument("--batch", type=int, default=32, help="samples a step (default: 32)")
    parser.add_argument("--epochs", type=int, default=30, help="at most so many (default: 30)")
    parser.add_argument("--patience", type=int, default=3, help="epochs without a better validation loss (default: 3)")
    parser.add_argument("--window", type=int, help="tokens that the cross-encoder reads at once (default: its limit)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lang", default="en", help="language of the sentence rules (default: en)")
    parser.add_argument("--vectors", metavar="DIR", help="keep vectors here, to share them between runs")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say and tell where the model is."""
    from movers.encoders import load_static
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train

    head = arguments.head
    if head is None:
        words = arguments.unit == "words" or (arguments.unit is None and load_static(arguments.encoder) is not None)
        head = "lstm" if words else "align"
    options = TrainingOptions(
        encoder=arguments.encoder,
        unit=arguments.unit,
        head=head,
        negatives=arguments.negatives,
        fakes=arguments.fakes,
        optimiser=arguments.optimiser,
        rate=arguments.rate,
        schedule=arguments.schedule,
        batch=arguments.batch,
        epochs=arguments.epochs,
        patience=arguments.patience,
        seed=arguments.seed,
        lang=arguments.lang,
        window=arguments.window,
    ).check()
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
        sources=[{"name": name.replace("\\", "/").rsplit("/", 1)[-1]} for name in arguments.data],
        vectors=arguments.vectors,
        progress=False if arguments.quiet else None,
    )
    best = min(model.record["curve"], key=lambda entry: entry["validation_loss"])
    print(f"{arguments.output}: best epoch {best['epoch']} of {len(model.record['curve'])}")
    for name, value in model.record["test"].items():
        print(f"  test {name}: {value:.4f}")
    return 0

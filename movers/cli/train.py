"""`movers train`: train a model of the reference-free metric, or a generator with a metric as the reward."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

from movers.cli.arguments import Subparsers
from movers.registry import parse_value

if TYPE_CHECKING:
    from movers.scores.options import Options


class _TrainingParser(argparse.ArgumentParser):
    """Declares its arguments when it is used: the hyperparameters come from a class whose module imports NumPy."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.get_default("declare")(self)
        return super().parse_known_args(args, namespace)


def add_parser(commands: Subparsers) -> None:
    """Declare the commands."""
    training = commands.add_parser("train", help="train a learned metric, or a generator with a reward")
    trained = training.add_subparsers(
        title="what to train", metavar="WHAT", required=True, parser_class=_TrainingParser
    )
    again = "A run that was stopped continues when the same command is given again, and ends with the same weights."
    trained.add_parser(
        "quality",
        help="train a model of reference_free_summary_quality",
        description=f"Train a model of reference_free_summary_quality on documents with summaries. {again}",
    ).set_defaults(run=run, declare=_declare_quality)
    trained.add_parser(
        "reward",
        help="train a generator with a metric as the reward",
        description="Self-critical training of a seq2seq or causal language model: maximum likelihood first if asked "
        f"for, then the reward of samples against greedy outputs, mixed with the likelihood. {again}",
    ).set_defaults(run=run_reward, declare=_declare_reward)


def _declare_quality(parser: argparse.ArgumentParser) -> None:
    from movers.quality.training import TrainingOptions

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
    _declare_options(parser, TrainingOptions)


def _declare_reward(parser: argparse.ArgumentParser) -> None:
    from movers.rewards.training import RewardOptions

    parser.add_argument("model", metavar="MODEL", help="folder or Hub id of a seq2seq or causal language model")
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE",
        help="prompts with references: .jsonl, .json, .csv, .tsv, .parquet",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder of the trained model: new, or of a stopped run"
    )
    parser.add_argument("--prompt-column", metavar="NAME", help="column of the prompts (default: by usual names)")
    parser.add_argument("--reference-column", metavar="NAME", help="column of the references (default: by usual names)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")
    _declare_options(parser, RewardOptions)


def _declare_options(parser: argparse.ArgumentParser, options: type[Options]) -> None:
    """An argument for every hyperparameter."""
    from movers.scores.options import option_rows

    hyperparameters = parser.add_argument_group("hyperparameters, saved with the model")
    for row in option_rows(options):
        shown = "" if row.default is None else f" (default: {row.default})"
        hyperparameters.add_argument(
            f"--{row.name}",
            type=str if isinstance(row.default, str) else parse_value,
            choices=[choice for choice in row.choices if choice is not None] or None,
            metavar=None if row.choices else "VALUE",
            help=row.help + shown,
        )


def _given(arguments: argparse.Namespace, options: type[Options]) -> Mapping[str, object]:
    """The hyperparameters that were given."""
    from movers.scores.options import option_rows

    given = {row.name: getattr(arguments, row.name) for row in option_rows(options)}
    return {name: value for name, value in given.items() if value is not None}


def run(arguments: argparse.Namespace) -> int:
    """Train as the arguments say and print where the model is."""
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train
    from movers.training import best_entry

    options = TrainingOptions.parse("train quality", _given(arguments, TrainingOptions))
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


def run_reward(arguments: argparse.Namespace) -> int:
    """Train as the arguments say and print the table of all metrics on the held-out pairs."""
    from movers.io import align_table
    from movers.rewards.training import RewardOptions, read_prompts, train_reward

    options = RewardOptions.parse("train reward", _given(arguments, RewardOptions))
    pairs = read_prompts(arguments.data, arguments.prompt_column, arguments.reference_column)
    record = train_reward(
        pairs, arguments.model, arguments.output, options, progress=False if arguments.quiet else None
    )
    phases = list(record["scores"])
    names = list(record["scores"][phases[0]])
    body = [[name, *(f"{record['scores'][phase][name]:.4f}" for phase in phases)] for name in names]
    print(f"{arguments.output}: {record['pairs']['test']} held-out pairs")
    print("\n".join(align_table(["metric", *phases], body, right=range(1, len(phases) + 1))))
    return 0

"""`movers train`: the reference-free metric, an encoder, or a generator with a metric as reward."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, TypeVar

from movers.cli.arguments import Subparsers, say
from movers.registry import parse_value

if TYPE_CHECKING:
    from movers.scores.options import Options

_Chosen = TypeVar("_Chosen", bound="Options")


class _TrainingParser(argparse.ArgumentParser):
    """Declares its arguments only when used: hyperparameters come from a class whose module imports NumPy."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.get_default("declare")(self)
        return super().parse_known_args(args, namespace)


def add_parser(commands: Subparsers) -> None:
    """Declare the commands."""
    training = commands.add_parser(
        "train",
        help="train a learned metric, an encoder, or a generator with a reward",
        description="Train a learned metric, an encoder, or a generator with a reward.",
    )
    kinds = training.add_subparsers(title="what to train", metavar="KIND", required=True, parser_class=_TrainingParser)
    again = "To continue an interrupted run, repeat the command; it ends with the same weights."
    kinds.add_parser(
        "quality",
        help="train a model for reference_free_summary_quality",
        description=f"Train a model for reference_free_summary_quality on documents with summaries. {again}",
    ).set_defaults(run=run_quality, declare=_declare_quality)
    kinds.add_parser(
        "encoder",
        help="fine-tune an encoder on text pairs",
        description="Fine-tune an encoder on text pairs with labels or scores, as in Sentence-BERT; the resulting "
        f"folder can be the model of every metric. {again}",
    ).set_defaults(run=run_encoder, declare=_declare_encoder)
    kinds.add_parser(
        "reward",
        help="train a generator with a metric as reward",
        description="Self-critical training of a seq2seq or causal language model: optionally maximum likelihood "
        f"first, then the reward of samples relative to greedy outputs, mixed with the likelihood loss. {again}",
    ).set_defaults(run=run_reward, declare=_declare_reward)


def _declare_quality(parser: argparse.ArgumentParser) -> None:
    from movers.quality.training import TrainingOptions

    _declare_data(parser, "FILE_OR_DATASET", " or Hub datasets (name[:configuration])")
    parser.add_argument(
        "--source-column", metavar="NAME", help="column of the documents (default: found by common names)"
    )
    parser.add_argument(
        "--summary-column", metavar="NAME", help="column of the summaries (default: found by common names)"
    )
    parser.add_argument("--split", default="train", help="split of a Hub dataset (default: train)")
    parser.add_argument("--vectors", metavar="DIR", help="cache vectors in DIR, to share them between runs")
    _declare_options(parser, TrainingOptions)


def _declare_encoder(parser: argparse.ArgumentParser) -> None:
    from movers.finetuning.training import TuningOptions

    _declare_data(parser, "FILE", "")
    parser.add_argument(
        "--validation", nargs="+", action="extend", metavar="FILE", help="validation pairs, which select the best epoch"
    )
    usual = "(default: found by common names)"
    parser.add_argument("--first-column", metavar="NAME", help=f"column of the first texts or premises {usual}")
    parser.add_argument("--second-column", metavar="NAME", help=f"column of the second texts or hypotheses {usual}")
    parser.add_argument("--target-column", metavar="NAME", help=f"column of the labels or scores {usual}")
    parser.add_argument("--labels", metavar="A,B,…", help="labels for --task nli, if not those of the common corpora")
    parser.add_argument(
        "--lowest", type=float, help="lowest score for --task similarity (default: minimum of the data)"
    )
    parser.add_argument(
        "--highest", type=float, help="highest score for --task similarity (default: maximum of the data)"
    )
    parser.add_argument("--device", default="auto", help="device: auto, cpu, cuda, mps (default: auto)")
    _declare_options(parser, TuningOptions)


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
        "-o", "--output", required=True, metavar="DIR", help="output folder: new, or of an interrupted run"
    )
    parser.add_argument(
        "--prompt-column", metavar="NAME", help="column of the prompts (default: found by common names)"
    )
    parser.add_argument(
        "--reference-column", metavar="NAME", help="column of the references (default: found by common names)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")
    _declare_options(parser, RewardOptions)


def _declare_data(parser: argparse.ArgumentParser, metavar: str, further: str) -> None:
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        action="extend",
        metavar=metavar,
        help=f"files (.jsonl, .json, .csv, .tsv, .parquet, .arrow; also .gz){further}",
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="output folder: new, or of an interrupted run"
    )
    parser.add_argument("--limit", type=int, metavar="ROWS", help="use at most this many rows of each file or dataset")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")


def _declare_options(parser: argparse.ArgumentParser, options: type[Options]) -> None:
    from movers.scores.options import option_rows

    hyperparameters = parser.add_argument_group("hyperparameters, saved with the model")
    for row in option_rows(options):
        if row.default is False:
            flag = f"--{row.name.replace('_', '-')}"
            hyperparameters.add_argument(flag, action="store_true", default=None, help=row.help)
            continue
        shown = "" if row.default is None else f" (default: {row.default})"
        hyperparameters.add_argument(
            f"--{row.name.replace('_', '-')}",
            type=str if isinstance(row.default, str) else parse_value,
            choices=[choice for choice in row.choices if choice is not None] or None,
            metavar=None if row.choices else "VALUE",
            help=row.help + shown,
        )


def _chosen(command: str, options: type[_Chosen], arguments: argparse.Namespace) -> _Chosen:
    from movers.scores.options import option_rows

    given = {row.name: getattr(arguments, row.name) for row in option_rows(options)}
    return options.parse(command, {name: value for name, value in given.items() if value is not None})


def _check_limit(command: str, limit: int | None) -> None:
    from movers.inputs import check_positive

    check_positive(command, "limit", limit)


def _file_names(arguments: argparse.Namespace) -> list[dict[str, str]]:
    """File names for the training record, without folders, which may be private."""
    return [{"name": PureWindowsPath(name).name} for name in arguments.data]


def run_quality(arguments: argparse.Namespace) -> int:
    """Train and print test scores."""
    from movers.quality.data import read_pairs
    from movers.quality.training import TrainingOptions, train
    from movers.training import best_entry

    options = _chosen("train quality", TrainingOptions, arguments)
    _check_limit("train quality", arguments.limit)
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
        sources=_file_names(arguments),
        vectors=arguments.vectors,
        progress=False if arguments.quiet else None,
    )
    curve = model.record["curve"]
    say(f"{arguments.output}: best epoch {best_entry(curve)['epoch']} of {len(curve)}")
    for name, value in model.record["test"].items():
        say(f"  test {name}: {value:.4f}")
    return 0


def run_encoder(arguments: argparse.Namespace) -> int:
    """Fine-tune and print validation scores."""
    from movers.finetuning.data import read_pairs
    from movers.finetuning.training import TuningOptions, tune
    from movers.training import best_entry

    options = _chosen("train encoder", TuningOptions, arguments)
    _check_limit("train encoder", arguments.limit)
    columns = {part: getattr(arguments, f"{part}_column") for part in ("first", "second", "target")}
    labels = None if arguments.labels is None else [name.strip() for name in arguments.labels.split(",")]
    bounds = (arguments.lowest, arguments.highest)
    data = read_pairs(
        arguments.data, options.task, columns=columns, labels=labels, bounds=bounds, limit=arguments.limit
    )
    held = None
    if arguments.validation:
        bounds = data.bounds or bounds
        held = read_pairs(arguments.validation, options.task, columns=columns, labels=data.labels, bounds=bounds)
    record = tune(
        data,
        arguments.output,
        options,
        validation=held,
        sources=_file_names(arguments),
        device=arguments.device,
        progress=False if arguments.quiet else None,
    )
    best = best_entry(record["curve"])
    say(f"{arguments.output}: best epoch {best['epoch']} of {len(record['curve'])}")
    for name, value in best.items():
        if name.startswith("validation"):
            say(f"  {name.replace('_', ' ')}: {value:.4f}")
    return 0


def run_reward(arguments: argparse.Namespace) -> int:
    """Train and print all metrics on the held-out pairs."""
    from movers.io import align_table
    from movers.rewards.training import RewardOptions, read_prompts, train_reward

    options = _chosen("train reward", RewardOptions, arguments)
    pairs = read_prompts(arguments.data, arguments.prompt_column, arguments.reference_column)
    record = train_reward(
        pairs, arguments.model, arguments.output, options, progress=False if arguments.quiet else None
    )
    phases = list(record["scores"])
    names = list(record["scores"][phases[0]])
    body = [[name, *(f"{record['scores'][phase][name]:.4f}" for phase in phases)] for name in names]
    say(f"{arguments.output}: {record['pairs']['test']} held-out pairs")
    say("\n".join(align_table(["metric", *phases], body, right=range(1, len(phases) + 1))))
    return 0

"""`movers metrics`, `options`, `baseline`, `demo`, `serve` and `train quality`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from movers.cli.common import METRIC_HELP, PICTURES, Subparsers, add_options, check_other_file, options_of, say
from movers.errors import InputError, install_hint
from movers.io import Texts, align_table, check_output
from movers.registry import METRICS, find_metric, parse_metric, parse_value, split_metrics


def add_parser(commands: Subparsers) -> None:
    """Declare the commands."""
    text = "list the metrics"
    commands.add_parser("metrics", help=text, description=text).set_defaults(run=list_metrics)

    text = "list the options of a metric with their defaults"
    parser = commands.add_parser("options", help=text, description=text)
    parser.add_argument("metric", metavar="METRIC", help="a name listed by `movers metrics`")
    parser.set_defaults(run=list_options)

    parser = commands.add_parser(
        "baseline",
        help="compute the mean score of unrelated texts of your own, for rescaling",
        description="Score random pairs of texts from a corpus. The resulting file rescales scores: rescale=FILE.",
        epilog="example:\n  movers baseline --metric wms --corpus articles.txt -o wms.json\n"
        "  movers score wms -p predictions.txt -r references.txt -s rescale=wms.json",
    )
    parser.add_argument("--metric", default="bertscore_emd", help=f"{METRIC_HELP} (default: bertscore_emd)")
    parser.add_argument("--corpus", required=True, metavar="FILE", help="texts like those to be scored")
    parser.add_argument("--corpus-column", metavar="NAME", help="column of the corpus file (default: text)")
    parser.add_argument("--pairs", type=int, default=10_000, help="number of random pairs (default: 10000)")
    parser.add_argument("--seed", type=int, default=13, help="random seed (default: 13)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the baseline to FILE instead of printing it")
    add_options(parser)
    parser.set_defaults(run=baseline)

    text = "score six candidates of a bundled example with every metric, and show one alignment"
    parser = commands.add_parser("demo", help=text, description=text)
    parser.add_argument("-o", "--output", metavar="FILE", help="draw the alignment: .html, .svg or .png")
    parser.set_defaults(run=demo)

    text = "serve a web page to try the metrics, with an API endpoint per metric (extra `demo`)"
    parser = commands.add_parser("serve", help=text, description=text)
    parser.add_argument("--metrics", metavar="NAME,…", help=f"default: all of {', '.join(METRICS)}")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine)")
    parser.add_argument("--port", type=int, default=7860, help="default: 7860")
    parser.set_defaults(run=serve)

    training = commands.add_parser("train", help="train a learned metric", description="Train a learned metric.")
    kinds = training.add_subparsers(title="what to train", metavar="KIND", required=True, parser_class=_TrainingParser)
    kinds.add_parser(
        "quality",
        help="train a model for reference_free_summary_quality",
        description="Train a model for reference_free_summary_quality on documents with summaries. "
        "To continue an interrupted run, repeat the command; it ends with the same weights.",
    ).set_defaults(run=train)


def list_metrics(arguments: argparse.Namespace) -> None:
    """Print one line per metric."""
    say("\n".join(align_table([], [[spec.name, f"{spec.title}: {spec.summary}"] for spec in METRICS.values()])))


def list_options(arguments: argparse.Namespace) -> None:
    """Print one line per option: what concerns the score, then what concerns the machine."""
    from movers.scores.options import RunSettings, option_rows

    settings = option_rows(RunSettings)
    rows = option_rows(find_metric(arguments.metric).options_class) + settings
    lines = [[f"{row.name}={row.default!r}", f"{row.help} ({row.values})"] for row in rows]
    lines.insert(-len(settings), ["", "run settings, which concern the machine:"])
    say("\n".join(align_table([], lines)))


def baseline(arguments: argparse.Namespace) -> None:
    """Compute a baseline; print or write it."""
    from movers.baseline import compute_baseline, save_baseline

    metric, options = parse_metric(arguments.metric)
    if arguments.output is not None:
        check_output(arguments.output)
        check_other_file(arguments.output, [arguments.corpus])
    corpus = list(Texts(arguments.corpus, "corpus", arguments.corpus_column))
    options = {**options_of(arguments), **options}
    record = compute_baseline(metric.name, corpus, options, arguments.pairs, arguments.seed)
    if arguments.output is None:
        say(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        save_baseline(record, arguments.output)
        means = {name: record[name] for name in ("precision", "recall", "f1", "score") if name in record}
        say(f"{arguments.output}: " + ", ".join(f"{name} {value:.4f}" for name, value in means.items()))


def example() -> dict[str, Any]:
    """The bundled texts of the demo: `document`, `reference` and `candidates` (each with `name` and `text`)."""
    return json.loads((Path(__file__).parents[1] / "data" / "demo.json").read_text(encoding="utf-8"))


def demo(arguments: argparse.Namespace) -> None:
    """Print the scores of all metrics and an alignment, and draw it on request."""
    if arguments.output is not None:
        check_output(arguments.output, PICTURES)
    from movers import explain, score_many

    texts = example()
    names, predictions = zip(*((item["name"], item["text"]) for item in texts["candidates"]), strict=True)
    print(f"Reference:\n  {texts['reference']}\n")
    for name, text in zip(names, predictions, strict=True):
        print(f"{name}:\n  {text}")
    metrics = [
        (name, {"rescale": True} if spec.compared_with == "references" else {}) for name, spec in METRICS.items()
    ]
    references, documents = ([texts[name]] * len(predictions) for name in ("reference", "document"))
    results = score_many(metrics, predictions, references, sources=documents)
    print("\nScores in percent, rescaled: 100 for a text equal to the reference, around 0 for unrelated texts.")
    print("The last column, reference_free_summary_quality, compares with the source document (0 to 100).")
    columns = [names, *([f"{100 * score:.0f}" for score in result["scores"]] for result in results.values())]
    short = {"bertscore_hungarian": "bertscore_hung.", "reference_free_summary_quality": "ref.-free"}
    heading = ["candidate", *(short.get(name, name) for name in METRICS)]
    print("\n".join(align_table(heading, list(zip(*columns, strict=True)), range(1, len(heading)))))
    print(f"\nSentence alignment of sms for '{names[1]}':")
    print(explain("sms", predictions[1], texts["reference"]))
    if arguments.output is not None:
        explain("swms", predictions[1], texts["reference"]).save(arguments.output)
        print(f"\nWord and sentence alignment of the same pair (swms): {os.path.abspath(arguments.output)}")


def serve(arguments: argparse.Namespace) -> None:
    """Serve the page until interrupted."""
    names = [find_metric(name).name for name in split_metrics(arguments.metrics or "")]
    try:
        from movers.serve import all_metrics_page, launch
    except ImportError:
        raise InputError(f"serve: the page needs the package gradio: {install_hint('demo')}") from None
    try:
        launch(all_metrics_page(names or None), server_name=arguments.host, server_port=arguments.port)
    except (OSError, OverflowError, UnicodeError) as error:  # in use, or not an address of this machine
        raise InputError(f"serve: cannot listen on {arguments.host}:{arguments.port}: {error}") from None


class _TrainingParser(argparse.ArgumentParser):
    """Declares its arguments only when used: hyperparameters come from a class whose module imports NumPy."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        from movers.quality.training import TrainingOptions
        from movers.scores.options import option_rows

        add = self.add_argument
        data = "files (.jsonl, .json, .csv, .tsv, .parquet, .arrow; also .gz) or Hub datasets (name[:configuration])"
        add("--data", required=True, nargs="+", action="extend", metavar="FILE_OR_DATASET", help=data)
        add("-o", "--output", required=True, metavar="DIR", help="output folder: new, or of an interrupted run")
        add("--limit", type=int, metavar="ROWS", help="use at most this many rows of each file or dataset")
        add("-q", "--quiet", action="store_true", help="no progress bars")
        for flag, texts in (("--source-column", "documents"), ("--summary-column", "summaries")):
            add(flag, metavar="NAME", help=f"column of the {texts} (default: found by common names)")
        add("--split", default="train", help="split of a Hub dataset (default: train)")
        group = self.add_argument_group("hyperparameters, saved with the model")
        for row in option_rows(TrainingOptions):
            flag = f"--{row.name.replace('_', '-')}"
            text = f"{row.help} ({row.values}; default: {row.default})".replace("%", "%%")
            group.add_argument(flag, type=parse_value, default=argparse.SUPPRESS, metavar="VALUE", help=text)
        return super().parse_known_args(args, namespace)


def train(arguments: argparse.Namespace) -> None:
    """Train and print test scores."""
    from movers.inputs import check_positive
    from movers.quality import training
    from movers.quality.data import read_pairs
    from movers.scores.options import option_rows

    values = vars(arguments)
    chosen = {row.name: values[row.name] for row in option_rows(training.TrainingOptions) if row.name in values}
    options = training.TrainingOptions.parse("train quality", chosen)
    check_positive("train quality", "limit", arguments.limit)
    columns = {"source_column": arguments.source_column, "summary_column": arguments.summary_column}
    pairs = read_pairs(arguments.data, split=arguments.split, limit=arguments.limit, **columns)
    model = training.train(
        pairs,
        arguments.output,
        options,
        sources=[PureWindowsPath(name).name for name in arguments.data],  # without folders: may be private
        progress=False if arguments.quiet else None,
    )
    best = min((entry for entry in model.record["curve"] if "eval_loss" in entry), key=lambda entry: entry["eval_loss"])
    say(f"{arguments.output}: lowest validation loss {best['eval_loss']:.4f}, after {best['epoch']:.1f} epochs")
    for name, value in model.record["test"].items():
        say(f"  test {name}: {value:.4f}")

"""`movers baseline`: mean score of unrelated texts, to rescale scores with."""

from __future__ import annotations

import argparse
import json

from movers.cli.arguments import Subparsers, add_options, check_other_file, options_of, say
from movers.io import Texts, check_output
from movers.registry import parse_metric


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "baseline",
        help="compute the mean score of unrelated texts, for rescaling",
        description="Score random pairs of texts from a corpus. The resulting file rescales scores: rescale=FILE.",
        epilog="example: movers baseline --metric wms --corpus articles.txt -o wms.json; "
        "movers score wms -p predictions.txt -r references.txt -s rescale=wms.json",
    )
    parser.add_argument("--metric", default="bertscore_emd", help="NAME or NAME[key=value,…] (default: bertscore_emd)")
    parser.add_argument("--corpus", required=True, metavar="FILE", help="texts like those to be scored")
    parser.add_argument("--corpus-column", metavar="NAME", help="column of the corpus file (default: text)")
    add_options(parser)
    parser.add_argument("--pairs", type=int, default=10_000, help="number of random pairs (default: 10000)")
    parser.add_argument("--seed", type=int, default=13, help="random seed (default: 13)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the baseline to FILE instead of printing it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute a baseline; print or write it."""
    from movers.baseline import compute_baseline, save_baseline

    metric, options = parse_metric(arguments.metric)
    options.update(options_of(arguments))
    if arguments.output is not None:
        check_output(arguments.output)
        check_other_file("baseline", arguments.output, [("corpus", arguments.corpus)])
    corpus = Texts(arguments.corpus, "corpus", arguments.corpus_column)
    record = compute_baseline(metric.name, list(corpus), options, arguments.pairs, arguments.seed)
    if arguments.output is None:
        say(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        save_baseline(record, arguments.output)
        shown = {name: record[name] for name in ("precision", "recall", "f1", "score") if name in record}
        say(f"{arguments.output}: " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items()))
    return 0

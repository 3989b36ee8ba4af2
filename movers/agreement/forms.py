"""Human-judged datasets in their published formats, recognised by content.

For every format a function converts a record into rows of the format of :mod:`movers.agreement.judged`. No judged text
is dropped.

TAC 2008 and 2009, as in the repository of the authors of MoverScore
    One JSON object: topic → ``annotations`` and ``references``, whose texts are lists of sentences. Human scores
    ``pyramid``, ``pyramid_modified``, ``responsiveness``; the topic is ``doc``, ``summ_id`` is ``system``.
ASAP-AES, ``training_set_rel3.tsv``
    Essays with the resolved scores ``domain1`` and ``domain2``. The field ``sentences`` counts an essay's sentences:
    Clark et al. (2019) use ``essay_set=3``, ``sentences>=5``, ``sentences<=15``, and a separate reference essay.
SummEval, ``model_annotations.aligned.jsonl``
    Means over the experts (``coherence`` …) and over the crowd (``crowd_coherence`` …); ``doc``, ``system``.
CNN_DailyMail_555, DailyNews_300, DailyNews_300_aspects, in the sdist of the package ``blanc``
    Means over annotators, ``quality`` or the five aspects in lower case; judged against the ``source``.
SummEval, QAGS and others as in the repository of the authors of UniEval
    ``system_output`` with ``source``, ``reference`` and ``scores``. In QAGS the source stands in place of a reference:
    such rows have none.
WMT 2015 and 2016, a folder ``DAseg-wmt-newstest2016``
    Files ``DAseg.newstest2016.reference.cs-en``, ``….mt-system.…``, ``….human.…`` and ``….source.…``, line by line.
WMT 2017, a folder with ``DA-seglevel.csv``
    Scores by language pair, system and line, beside ``newstest2017-csen-ref.en`` and
    ``cs-en/newstest2017.<system>.cs-en``, as in the repository of the authors of MoverScore.
Datasets of the Hub
    Translations (``src``, ``mt``, ``ref``), sentence pairs, and SummEval with one document per row.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from movers.errors import InputError
from movers.texts import split_sentences

__all__ = ["Placed", "convert", "known_forms", "read_folder"]

Record = Mapping[str, object]
Rows = Iterator[dict[str, object]]
Placed = tuple[str, Record]  # a row, and its location for error messages


class Form(NamedTuple):
    """A published format: its name, the fields by which it is recognised, and the conversion of a record into rows."""

    name: str
    fields: frozenset[str]
    rows: Callable[[Record, str], Rows]


def _number(cell: object, where: str) -> float:
    try:
        return float(str(cell))
    except ValueError:
        raise InputError(f"{where}: expected a number, but got {cell!r:.60}") from None


def _mean(scores: object, where: str) -> float | None:
    """The mean of a list of numbers; None if the list is empty."""
    if not isinstance(scores, list) or any(isinstance(one, bool) or not isinstance(one, int | float) for one in scores):
        raise InputError(f"{where}: expected a list of numbers, but got {scores!r:.60}")
    return sum(scores) / len(scores) if scores else None


def _records(value: object, where: str) -> list[Record]:
    if not isinstance(value, list) or not all(isinstance(record, Mapping) for record in value):
        raise InputError(f"{where}: expected a list of objects, but got {value!r:.60}")
    return value


def _others(record: Record, *taken: str) -> dict[str, object]:
    return {name: value for name, value in record.items() if name not in taken}


def _joined(record: Record, where: str) -> str:
    """Join a text that is given as a list of sentences."""
    sentences = record.get("text")
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InputError(f"{where}: text: expected a list of sentences, but got {sentences!r:.60}")
    return " ".join(sentences)


_TAC_SCORES = {"pyramid": "pyr_score", "pyramid_modified": "pyr_mod_score", "responsiveness": "responsiveness"}


def _topic(topic: Record, where: str) -> Rows:
    references = [_joined(one, f"{where}: references") for one in _records(topic["references"], f"{where}: references")]
    doc = topic["doc"]
    for number, summary in enumerate(_records(topic["annotations"], f"{where}: annotations")):
        system = summary.get("summ_id", number)
        yield {
            "id": f"{doc}.{system}",
            "doc": doc,
            "system": system,
            "candidate": _joined(summary, f"{where}: annotations[{number}]"),
            "references": references,
            "scores": {ours: summary.get(theirs) for ours, theirs in _TAC_SCORES.items()},
            **_others(summary, "summ_id", "text", *_TAC_SCORES.values()),
        }


def _essay(cells: Record, where: str) -> Rows:
    given = {name: cells.get(f"{name}_score") for name in ("domain1", "domain2")}
    essay = cells["essay"]
    yield {
        "id": cells["essay_id"],
        "candidate": essay,
        "references": [],
        "scores": {name: _number(cell, f"{where}: {name}_score") for name, cell in given.items() if cell},
        "sentences": len(split_sentences(essay)) if isinstance(essay, str) else 0,
        **_others(cells, "essay_id", "essay", "domain1_score", "domain2_score"),
    }


def _annotated_summary(record: Record, where: str) -> Rows:
    scores: dict[str, float | None] = {}
    for kind, prefix in (("expert_annotations", ""), ("turker_annotations", "crowd_")):
        judges = _records(record.get(kind, []), f"{where}: {kind}")
        for name in dict.fromkeys(name for judge in judges for name in judge):
            scores[prefix + name] = _mean([judge[name] for judge in judges if name in judge], f"{where}: {kind}")
    yield {
        "id": f"{record['id']}.{record.get('model_id')}",
        "doc": record["id"],
        "system": record.get("model_id"),
        "source": record.get("text"),
        "candidate": record["decoded"],
        "references": record.get("references"),
        "scores": scores,
    }


def _summary_and_text(record: Record, where: str) -> Rows:
    aspects = record.get("map_quality_scores", {"quality": record})
    if not isinstance(aspects, Mapping):
        raise InputError(f"{where}: map_quality_scores: expected an object, but got {aspects!r:.60}")
    yield {
        "doc": hashlib.sha256(str(record["text"]).encode()).hexdigest()[:12],
        "source": record["text"],
        "candidate": record["summary"],
        "references": [],
        "scores": {name.lower(): _mean(own["scores"], f"{where}: {name}") for name, own in aspects.items()},
    }


def _document_of_the_hub(record: Record, where: str) -> Rows:
    names = ("coherence", "consistency", "fluency", "relevance")
    columns = {name: record.get(name) for name in ("machine_summaries", *names)}
    lists = {name: values for name, values in columns.items() if isinstance(values, list)}
    if len({len(values) for values in lists.values()}) != 1 or len(lists) < len(columns):
        raise InputError(f"{where}: expected lists of equal length in {', '.join(columns)}")
    for place, summary in enumerate(lists["machine_summaries"]):
        yield {
            "doc": record.get("id"),
            "source": record.get("text"),
            "candidate": summary,
            "references": record.get("human_summaries"),
            "scores": {name: lists[name][place] for name in names},
        }


def _system_output(record: Record, where: str) -> Rows:
    source, reference = record["source"], record.get("reference")
    yield {
        "doc": record.get("doc_id"),
        "system": record.get("system_id"),
        "source": source,
        "candidate": record["system_output"],
        "references": [] if reference is None or reference == source else [reference],
        "scores": record["scores"],
        **_others(record, "doc_id", "system_id", "source", "reference", "system_output", "scores"),
    }


def _translation(record: Record, where: str) -> Rows:
    raw = {"da": record["raw"]} if "raw" in record else {}
    yield {
        "source": record["src"],
        **_others(record, "src", "mt", "ref", "score", "raw", "annotators"),
        "candidate": record["mt"],
        "references": [record["ref"]],
        "scores": {"score": record["score"], **raw},
    }


def _sentence_pair(record: Record, where: str) -> Rows:
    yield {
        **_others(record, "sentence1", "sentence2", "score"),
        "candidate": record["sentence2"],
        "references": [record["sentence1"]],
        "scores": {"score": record["score"]},
    }


def _own(record: Record, where: str) -> Rows:
    yield dict(record)


def _form(name: str, fields: str, rows: Callable[[Record, str], Rows]) -> Form:
    return Form(name, frozenset(fields.split()), rows)


FORMS = (
    _form("rows with candidate, references and scores", "candidate", _own),
    _form("TAC topics", "doc annotations references", _topic),
    _form("ASAP-AES essays", "essay_id essay_set essay domain1_score", _essay),
    _form("SummEval", "id decoded expert_annotations", _annotated_summary),
    _form("SummEval of the Hub", "machine_summaries human_summaries", _document_of_the_hub),
    _form("summaries with annotators' scores", "summary text annotators_ids scores", _summary_and_text),
    _form("summaries with annotators' scores of aspects", "summary text map_quality_scores", _summary_and_text),
    _form("UniEval", "source system_output scores", _system_output),
    _form("translations", "src mt ref score", _translation),
    _form("sentence pairs", "sentence1 sentence2 score", _sentence_pair),
)


def known_forms() -> str:
    """Names of all formats, for error messages."""
    return f"judged texts ({', '.join(form.name for form in FORMS)} or a folder of WMT)"


def convert(records: Iterable[Placed]) -> Iterator[Placed]:
    """Convert records of any known format; all records of a dataset have the format of the first."""
    form = None
    for where, record in records:
        if form is None:
            form = next((form for form in FORMS if form.fields <= record.keys()), None)
            if form is None:
                raise InputError(f"{where}: expected {known_forms()}, but got the fields {', '.join(record)}")
        missing = form.fields - record.keys()
        if form.rows is not _own and missing:
            raise InputError(f"{where}: expected {form.name} with {', '.join(sorted(missing))}, but got none")
        yield from ((where, row) for row in form.rows(record, where))


# --- folders of WMT --------------------------------------------------------------------------------------------------

_PART = re.compile(r"(?:DAseg\.)?(newstest\d+)\.(reference|mt-system|human|source)\.([a-z]{2,3}-[a-z]{2,3})")


def read_folder(folder: Path) -> Iterator[Placed]:
    """Rows of a WMT folder."""
    if (folder / "DA-seglevel.csv").is_file():
        return _segments_by_system(folder)
    parts: dict[tuple[str, str], dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if found := _PART.fullmatch(path.name):
            test, part, pair = found.groups()
            parts.setdefault((test, pair), {})[part] = path
    if not parts:
        raise InputError(f"{folder}: expected {known_forms()}, but got a folder of other files")
    return _segments(folder, parts)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read it: {error}") from None


def _segment(where: str, name: str, pair: str, candidate: str, reference: str, human: str, **fields: str) -> Placed:
    return where, {
        "id": name,
        "lp": pair,
        **fields,
        "candidate": candidate,
        "references": [reference],
        "scores": {"da_z": _number(human, where)},
    }


def _segments(folder: Path, parts: Mapping[tuple[str, str], Mapping[str, Path]]) -> Iterator[Placed]:
    for (test, pair), files in parts.items():
        missing = {"reference", "mt-system", "human"} - files.keys()
        if missing:
            raise InputError(f"{folder}: {pair}: expected a file of each part, but got none of {', '.join(missing)}")
        columns = {part: _lines(path) for part, path in files.items()}
        if len({len(lines) for lines in columns.values()}) > 1:
            counts = ", ".join(f"{len(lines)} of {part}" for part, lines in columns.items())
            raise InputError(f"{folder}: {pair}: expected equally many lines in every part, but got {counts}")
        for number, human in enumerate(columns["human"]):
            where, name = f"{files['human']}: line {number + 1}", f"{test}.{pair}.{number + 1}"
            candidate, reference = columns["mt-system"][number], columns["reference"][number]
            source = {"source": columns["source"][number]} if "source" in columns else {}
            yield _segment(where, name, pair, candidate, reference, human, **source)


def _segments_by_system(folder: Path) -> Iterator[Placed]:
    """Judged segments of the language pairs whose reference is in the folder; lines are counted from 1."""
    header, *lines = _lines(folder / "DA-seglevel.csv")
    if header.split() != ["LP", "DATA", "SYSTEM", "SID", "HUMAN"]:
        raise InputError(f"{folder}: DA-seglevel.csv: expected the columns LP DATA SYSTEM SID HUMAN, but got {header}")
    texts: dict[Path, list[str]] = {}
    for number, line in enumerate(lines, start=2):
        where = f"{folder / 'DA-seglevel.csv'}: line {number}"
        cells = line.split()
        if len(cells) != 5:
            raise InputError(f"{where}: expected five cells, but got {len(cells)}")
        pair, test, systems, segment, human = cells
        source, _, target = pair.partition("-")
        reference = folder / f"{test}-{source}{target}-ref.{target}"
        if not reference.is_file():
            continue
        system = systems.partition("+")[0]  # Systems with the same translation share a line.
        place = int(_number(segment, where)) - 1
        found = []
        for path in (folder / pair / f"{test}.{system}.{pair}", reference):
            if path not in texts:
                if not path.is_file():
                    raise InputError(f"{where}: expected the file {path}, but there is none")
                texts[path] = _lines(path)
            if not 0 <= place < len(texts[path]):
                raise InputError(f"{where}: expected a line {segment} in {path}, but it has {len(texts[path])}")
            found.append(texts[path][place])
        name, (candidate, text) = f"{test}.{pair}.{system}.{segment}", found
        yield _segment(where, name, pair, candidate, text, human, system=system)

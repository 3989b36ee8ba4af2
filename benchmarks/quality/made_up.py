"""Made-up faults: how often the true summary scores higher: `MOVERS_DATA=… python benchmarks/quality/made_up.py [N]`.

N documents (40 by default) of each corpus, from its end: the shipped network was trained on documents from the
beginning. A name or number is only replaced if the document has it, and by one that the document does not have. With
`made_up.py N lm` the same cases with a language model beside those without it.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from quality_common import Library, data_folder, save

from movers.quality.data import Pair, read_pairs
from movers.quality.facts import read_words
from movers.quality.faults import split_tokens
from movers.quality.lm import SMALL, LanguageModel, load_lm
from movers.quality.model import load_model
from movers.quality.scorer import compare_vectors, pair_likelihoods
from movers.quality.units import split_units

Rng = np.random.Generator
CORPORA = ("train_cnndm", "train_scitldr_a", "train_xsum", "train_dialogsum_devtest")
#: Fault: the aspect that must see it.
FAULTS = {
    "name from elsewhere": "faithfulness", "changed number": "faithfulness", "negation": "faithfulness",
    "sentence of another document": "faithfulness", "shuffled words": "fluency", "repetition": "fluency",
    "cut end": "fluency", "whole document copied": "score", "name of the same document": "faithfulness",
    "swapped roles": "faithfulness", "shuffled sentences": "score",
}  # fmt: skip
AUXILIARIES = frozenset("is are was were will would can could has have had should may might must does do did".split())


def _swap(sentences: list[str], place: int, old: str, new: str) -> str:
    changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, sentences[place], count=1)
    return " ".join([*sentences[:place], changed, *sentences[place + 1 :]])


def _of_kind(sentences: list[str], kind: str, document: str) -> list[tuple[int, str]]:
    """Words of a kind that the document has too, with the number of their sentence."""
    lower = document.lower()
    return [
        (place, word.text)
        for place, sentence in enumerate(sentences)
        for word in read_words(sentence)
        if word.kind == kind and len(word.text) > (2 if kind == "name" else 0) and word.text.lower() in lower
    ]


def _pick(values: list, rng: Rng):  # type: ignore[no-untyped-def]
    return values[int(rng.integers(len(values)))] if values else None


def make_fault(kind: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    """The summary with a fault; None if it has nothing to spoil."""
    own, lower = list(pair.summary_sentences), pair.document.lower()
    if kind == "whole document copied":
        return pair.document
    if kind.startswith("name"):
        source = other if kind == "name from elsewhere" else pair
        names = [word.text for one in source.document_sentences for word in read_words(one) if word.kind == "name"]
        forbidden = lower if source is other else pair.summary.lower()
        new = _pick([name for name in names if len(name) > 2 and name.lower() not in forbidden], rng)
        found = _pick(_of_kind(own, "name", pair.document), rng)
        return _swap(own, found[0], found[1], new) if found and new else None
    if kind == "changed number":
        found = _pick(_of_kind(own, "number", pair.document), rng)
        if not found:
            return None
        digits = [str(value) for value in range(3, 3000, 7) if str(value) not in lower]
        words = [word for word in ("eleven", "seventeen", "ninety", "sixty") if word not in lower]
        return _swap(own, found[0], found[1], _pick(digits if found[1][0].isdigit() else words or ["nineteen"], rng))
    if kind == "negation":
        found = _pick([(n, w) for n, one in enumerate(own) for w in one.split() if w in AUXILIARIES], rng)
        return (
            _swap(own, found[0], found[1], f"{found[1]} not")
            if found and f"{found[1]} not" not in pair.summary
            else None
        )
    if kind == "sentence of another document":
        own[int(rng.integers(len(own)))] = _pick(list(other.summary_sentences), rng)
    elif kind == "shuffled words":
        place = _pick([n for n, one in enumerate(own) if len(one.split()) >= 6], rng)
        if place is None:
            return None
        words, end = own[place].rstrip(" .!?").split(), own[place][-1]
        own[place] = " ".join(words[n] for n in rng.permutation(len(words))) + end
    elif kind == "repetition":
        place = int(rng.integers(len(own)))
        if rng.random() < 0.5:
            own.append(own[place])
        else:
            tokens = split_tokens(own[place])
            size = int(rng.integers(2, max(3, min(7, len(tokens) - 1))))
            begin = int(rng.integers(0, max(1, len(tokens) - size)))
            run = [" " + token.strip() for token in tokens[begin : begin + size]]
            own[place] = "".join([*tokens[: begin + size], *run, *tokens[begin + size :]])
    elif kind == "cut end":
        tokens = split_tokens(own[-1])
        own[-1] = "".join(tokens[: max(1, int(len(tokens) * rng.uniform(0.2, 0.85)))])
    elif kind == "swapped roles":
        found = _of_kind(own, "name", pair.document)
        pairs = [(n, a, b) for n, a in found for m, b in found if n == m and a < b and a not in b and b not in a]
        chosen = _pick(pairs, rng)
        if chosen is None:
            return None
        place, first, second = chosen
        own[place] = own[place].replace(first, "\0").replace(second, first).replace("\0", second)
    elif kind == "shuffled sentences":
        own = [own[n] for n in np.roll(rng.permutation(len(own)), 1)]
    return " ".join(own)


def make_cases(pairs: list[Pair]) -> list[tuple[str, Pair, str]]:
    """Kind, pair and faulty summary."""
    cases = []
    for number, pair in enumerate(pairs):
        for which, kind in enumerate(FAULTS):
            rng = np.random.default_rng([number, which])
            other = pairs[(number + 1 + int(rng.integers(len(pairs) - 1))) % len(pairs)]
            fault = make_fault(kind, pair, other, rng)
            if fault and fault != pair.summary:
                cases.append((kind, pair, fault))
    return cases


def share_won(library: Library, cases: list[tuple[str, Pair, str]], lm: LanguageModel | None) -> dict[str, Any]:
    """For each kind of fault, how often the true summary is above the faulty one, by its aspect and by the score."""
    won: dict[str, list[tuple[float, float]]] = {kind: [] for kind in FAULTS}
    by_document: dict[str, list[tuple[str, Pair, str]]] = {}
    for case in cases:
        by_document.setdefault(case[1].document, []).append(case)
    for document, own in by_document.items():
        source = library.get(document)
        texts = list(dict.fromkeys([own[0][1].summary, *(fault for *_, fault in own)]))
        pairs = [(library.get(text), source) for text in texts]
        likelihoods = None if lm is None else pair_likelihoods(lm, pairs)
        results = dict(zip(texts, compare_vectors(load_model(), pairs, likelihoods=likelihoods), strict=True))
        for kind, pair, fault in own:
            true, false = ({"score": one.score, **one.parts} for one in (results[pair.summary], results[fault]))
            outcome = [
                (true[name] > false[name]) + 0.5 * (true[name] == false[name]) for name in (FAULTS[kind], "score")
            ]
            won[kind].append((outcome[0], outcome[1]))
    return {
        kind: {
            "aspect": FAULTS[kind],
            "by the aspect": float(np.mean([one[0] for one in shares])),
            "by the score": float(np.mean([one[1] for one in shares])),
            "pairs": len(shares),
        }
        for kind, shares in won.items()
        if shares
    }


def main() -> None:
    count, with_lm = int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2:] == ["lm"]
    library, lm = Library(), load_lm(SMALL, "cpu", "bfloat16") if with_lm else None
    for corpus in CORPORA[:1] if lm else CORPORA:
        rows = read_pairs(str(data_folder() / "corpora" / f"{corpus}.jsonl.gz"))[-count:]
        pairs = []
        for row in rows:
            document, summary = (tuple(split_units(text, "sentences")) for text in (row.document, row.summary))
            pairs.append(Pair(row.document, " ".join(summary), document, summary))
        cases = make_cases(pairs)
        library.add(text for _, pair, fault in cases for text in (pair.document, pair.summary, fault))
        if lm is None:
            save(f"made-up faults, {corpus}", share_won(library, cases, None))
            continue
        for table, model in (("the same cases, without", None), ("with a language model", lm)):
            save(f"made-up faults, {corpus}, {table}", share_won(library, cases, model))


if __name__ == "__main__":
    main()

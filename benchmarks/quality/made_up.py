"""Made-up faults: how often the true summary scores higher: `MOVERS_DATA=… python benchmarks/quality/made_up.py [N]`.

N documents (40 by default) of each corpus, from its end. A name or number is only replaced if the document has it, and
by one that the document does not have.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from quality_common import Pair, corpus, read_texts, save

from movers.quality.aspects import measure_aspects
from movers.quality.facts import read_words
from movers.quality.units import split_units

Rng = np.random.Generator
CORPORA = ("train_cnndm", "train_scitldr_a", "train_xsum", "train_dialogsum_devtest")
#: Fault: the aspect that must see it; the last three are limits of the metric, by the aspect that comes nearest.
FAULTS = {
    "repetition": "non_repetition", "sentence of another document": "faithfulness", "wrong number": "faithfulness",
    "name from elsewhere": "faithfulness", "negation": "faithfulness", "shuffled words": "faithfulness",
    "name of the same document": "faithfulness", "swapped roles": "faithfulness",
}  # fmt: skip
AUXILIARIES = frozenset("is are was were will would can could has have had should may might must does do did".split())


def _swap(sentences: list[str], word: tuple[int, str], new: str) -> str:
    place, old = word
    changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, sentences[place], count=1)
    return " ".join([*sentences[:place], changed, *sentences[place + 1 :]])


def _of_kind(sentences: list[str], kind: str, document: str) -> list[tuple[int, str]]:
    """Words of a kind that the document has too, with the number of their sentence."""
    return [
        (place, word.text)
        for place, sentence in enumerate(sentences)
        for word in read_words(sentence)
        if word.kind == kind and len(word.text) > (2 if kind == "name" else 0) and word.text.lower() in document.lower()
    ]


def _pick(values: list[Any], rng: Rng) -> Any:
    return values[int(rng.integers(len(values)))] if values else None


def make_fault(kind: str, pair: Pair, other: Pair, rng: Rng) -> str | None:
    """The summary with a fault; None if this fault cannot be made."""
    sentences, lower = split_units(pair.summary, "sentences"), pair.document.lower()
    place = int(rng.integers(len(sentences)))
    if kind.startswith("name"):
        source = other if kind == "name from elsewhere" else pair
        names = [word.text for word in read_words(source.document) if word.kind == "name"]
        forbidden = lower if source is other else pair.summary.lower()
        new = _pick([name for name in names if len(name) > 2 and name.lower() not in forbidden], rng)
        word = _pick(_of_kind(sentences, "name", pair.document), rng)
        return _swap(sentences, word, new) if word and new else None
    if kind == "wrong number":
        word = _pick(_of_kind(sentences, "number", pair.document), rng)
        digits = [str(value) for value in range(3, 3000, 7) if str(value) not in lower]
        words = [word for word in ("eleven", "seventeen", "ninety", "sixty") if word not in lower] or ["nineteen"]
        return _swap(sentences, word, _pick(digits if word[1][0].isdigit() else words, rng)) if word else None
    if kind == "negation":
        word = _pick([(n, w) for n, one in enumerate(sentences) for w in one.split() if w in AUXILIARIES], rng)
        return _swap(sentences, word, f"{word[1]} not") if word and f"{word[1]} not" not in pair.summary else None
    if kind == "swapped roles":
        placed = _of_kind(sentences, "name", pair.document)
        pairs = [(n, a, b) for n, a in placed for m, b in placed if n == m and a < b and a not in b and b not in a]
        if not pairs:
            return None
        place, first, second = _pick(pairs, rng)
        sentences[place] = sentences[place].replace(first, "\0").replace(second, first).replace("\0", second)
    elif kind == "sentence of another document":
        sentences[place] = _pick(split_units(other.summary, "sentences"), rng)
    elif kind == "shuffled words":
        words, end = sentences[place].rstrip(" .!?").split(), sentences[place][-1]
        sentences[place] = " ".join(words[n] for n in rng.permutation(len(words))) + end
    elif kind == "repetition":
        words = sentences[place].split()
        size = int(rng.integers(2, max(3, min(7, len(words)))))
        begin = int(rng.integers(0, max(1, len(words) - size)))
        whole = rng.random() < 0.5
        again = [sentences[place]] if whole else [" ".join([*words[: begin + size], *words[begin:]])]
        sentences = [*sentences, *again] if whole else [*sentences[:place], *again, *sentences[place + 1 :]]
    return " ".join(sentences)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    every: dict[str, list[tuple[float, float]]] = {kind: [] for kind in FAULTS}
    for name in CORPORA:
        pairs = [Pair(one.document, " ".join(split_units(one.summary, "sentences"))) for one in corpus(name)[-count:]]
        cases = []
        for number, pair in enumerate(pairs):
            for which, kind in enumerate(FAULTS):
                rng = np.random.default_rng([number, which])
                other = pairs[(number + 1 + int(rng.integers(len(pairs) - 1))) % len(pairs)]
                fault = make_fault(kind, pair, other, rng)
                if fault and fault != pair.summary:
                    cases.append((kind, pair, fault))
        texts = read_texts("made_up", [text for _, pair, fault in cases for text in (*pair, fault)])
        won: dict[str, list[tuple[float, float]]] = {kind: [] for kind in FAULTS}
        for kind, pair, fault in cases:
            true, false = (measure_aspects(texts[pair.document], texts[one]) for one in (pair.summary, fault))
            values = [(getattr(true, by), getattr(false, by)) for by in (FAULTS[kind], "score")]
            aspect, score = ((a > b) + 0.5 * (a == b) for a, b in values)
            won[kind].append((aspect, score))
            every[kind].append((aspect, score))
        save(f"made-up faults, {name}", _table(won))
    save("made-up faults", _table(every))


def _table(won: dict[str, list[tuple[float, float]]]) -> dict[str, dict[str, object]]:
    return {
        kind: {
            "aspect": FAULTS[kind],
            "by the aspect": float(np.mean([aspect for aspect, _ in shares])),
            "by the score": float(np.mean([score for _, score in shares])),
            "pairs": len(shares),
        }
        for kind, shares in won.items()
        if shares
    }


if __name__ == "__main__":
    main()

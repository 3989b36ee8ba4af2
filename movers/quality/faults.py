"""Made-up bad summaries: good ones made worse by a known share (Bao et al. 2020, section 2.2).

A data set of documents and summaries has no bad summaries, so negative samples are made:

* *cross pairing* puts another document's summary beside a document: label 0, the own summary has label 1;
* *mutation* adds random words of the vocabulary at random places, deletes random tokens, or replaces random tokens
  by random words: label `1 - share` with `share = changed tokens / original tokens`, drawn uniformly from [0, 1];
* `mix` is equal parts of these four.

`broad` goes beyond the paper. Random words of a vocabulary are easy to detect and no summariser writes them, so `broad`
adds faults that summarisers do have: sentences that are missing, repeated, taken from another summary or from a minor
part of the document; false facts (`movers.quality.fact_faults`: a name or number of another document, a negation, two
names that change places); names and words in the place of another word; halves of two sentences glued together; a text
that breaks off; words out of order; a text that does not stop; and it adds extracts of the document as good summaries.
The label is `1 - weight * share`, with the share counted in tokens and the weight of :data:`WEIGHTS`.

Every draw depends only on the seed, the row and the number of the sample: a row gets the same negative samples
whatever the other rows are, except for what it borrows from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from movers.errors import InputError
from movers.inputs import check_choice
from movers.quality.data import Pair
from movers.quality.fact_faults import FACT_FAULTS

__all__ = ["FAULTS", "PAPER_KINDS", "Negatives", "Sample", "add_fault", "build_vocabulary", "lead_extract",
           "make_samples", "mutate", "split_tokens"]  # fmt: skip

Rng = np.random.Generator
Negatives = Literal["cross", "add", "delete", "replace", "mix", "broad"]
#: The paper's four kinds, in the order in which `mix` takes them in turn.
PAPER_KINDS = ("cross", "add", "delete", "replace")
#: Label of a fault with share s: `1 - weight * s`. A summary with a minor point of its own document is less wrong than
#: one with a sentence of another document; a misplaced name is wrong beyond its share of the tokens.
WEIGHTS = {
    "missing": 0.7, "foreign": 1.0, "aside": 0.5, "repeated": 1.0, "misplaced": 2.0, "glued": 0.8, "broken": 0.6,
    "shuffled": 0.8, "padded": 0.7, **dict.fromkeys(FACT_FAULTS, 0.7),
}  # fmt: skip
# A token includes the white space before it, so that joined tokens give back the text, and a changed text cannot be
# recognised by its spacing.
_TOKEN = re.compile(r"\s*(?:\w+(?:['’.\-]\w+)*|[^\w\s])")


@dataclass(frozen=True)
class Sample:
    """One training example: the row of the document, a summary, its label in [0, 1] and how it was made.

    `summary_row` is the row whose summary this is (another row for cross pairs).
    """

    row: int
    summary: str
    label: float
    kind: str
    summary_row: int


def split_tokens(text: str) -> list[str]:
    """Words and punctuation marks, each with the white space before it.

    >>> split_tokens("It's late, go.")
    ["It's", ' late', ',', ' go', '.']
    """
    return _TOKEN.findall(text)


def build_vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Distinct words of the texts, sorted; without punctuation.

    >>> build_vocabulary(["Go on, go", "on"])
    ('Go', 'go', 'on')
    """
    words = {token.strip() for text in texts for token in split_tokens(text)}
    return tuple(sorted(word for word in words if re.search(r"\w", word)))


def _spaced_like(word: str, token: str) -> str:
    return token[: len(token) - len(token.lstrip())] + word


def _with_space(token: str) -> str:
    return token if token[:1].isspace() else " " + token


# ---------------------------------------------------------------------------------------------------------------------
# The paper's mutations


def _add(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    places = np.sort(rng.integers(0, len(tokens) + 1, size=count))
    words = rng.integers(0, len(vocabulary), size=count)
    bounds = np.searchsorted(places, np.arange(len(tokens) + 2)).tolist()
    out: list[str] = []
    for position, token in enumerate([*tokens, ""]):
        added = [" " + vocabulary[word] for word in words[bounds[position] : bounds[position + 1]].tolist()]
        # the first word of a text, or one after a quotation mark, has no space before it
        out += [*added, " " + token if added and token[:1].isalnum() else token]
    return out


def _delete(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    deleted = set(rng.choice(len(tokens), size=count, replace=False).tolist())
    return [token for position, token in enumerate(tokens) if position not in deleted]


def _replace(tokens: list[str], count: int, vocabulary: Sequence[str], rng: Rng) -> list[str]:
    out = list(tokens)
    for position in rng.choice(len(tokens), size=count, replace=False).tolist():
        word = vocabulary[int(rng.integers(len(vocabulary)))]
        if word == out[position].strip() and len(vocabulary) > 1:  # no word replaces itself
            word = vocabulary[(vocabulary.index(word) + 1) % len(vocabulary)]
        out[position] = _spaced_like(word, out[position])
    return out


_MUTATIONS = {"add": _add, "delete": _delete, "replace": _replace}


def mutate(summary: str, kind: str, share: float, vocabulary: Sequence[str], rng: Rng) -> tuple[str, float]:
    """Mutate a summary by `kind` (add, delete, replace); return it with its label.

    The number of changed tokens is `round(share * n)`, and the label is `1 - changed / n`: the share that was really
    changed, not the one that was drawn.

    >>> mutate("one two three four", "delete", 0.5, [], np.random.default_rng(0))[1]
    0.5
    """
    tokens = split_tokens(summary)
    if not tokens:
        return summary, 1.0
    count = round(share * len(tokens))
    return "".join(_MUTATIONS[kind](tokens, count, vocabulary, rng)).strip(), 1.0 - count / len(tokens)


# ---------------------------------------------------------------------------------------------------------------------
# Faults of `broad`. Each takes the sentences of a summary, its pair, another pair and the share to spoil, and returns
# the new sentences with the share of tokens that is wrong.

Faulty = tuple[list[str], float]


def _count(sentences: Sequence[str]) -> int:
    return sum(len(split_tokens(sentence)) for sentence in sentences)


def _choose(pool: Sequence[str], rng: Rng) -> str:
    return pool[int(rng.integers(len(pool)))]


def _pick(count: int, share: float, rng: Rng) -> list[int]:
    """At least one of `count` places, about the given share of them, in order."""
    size = min(count, max(1, round(share * count)))
    return sorted(rng.choice(count, size=size, replace=False).tolist())


def _missing(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Sentences are left out; of a single sentence, its end."""
    if len(base) < 2:
        return _broken(base, pair, other, share, rng)
    gone = _pick(len(base), min(share, 1 - 1 / len(base)), rng)
    return [s for i, s in enumerate(base) if i not in gone], _count([base[i] for i in gone]) / _count(base)


def _replaced_by(pool: Sequence[str], base: list[str], share: float, rng: Rng) -> Faulty:
    pool = [sentence for sentence in pool if sentence not in base]
    if not pool:
        return base, 0.0
    out, places = list(base), _pick(len(base), share, rng)
    for place in places:
        out[place] = _choose(pool, rng)
    return out, _count([out[i] for i in places]) / max(1, _count(out))


def _foreign(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Sentences of another document's summary in the place of some."""
    return _replaced_by(other.summary_sentences, base, share, rng)


def _aside(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Sentences from after the first quarter of the document in the place of some."""
    return _replaced_by(pair.document_sentences[len(pair.document_sentences) // 4 :], base, share, rng)


def _repeated(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Whole sentences repeated at the end, or runs of words repeated at once."""
    at_end = rng.random() < 0.5
    out, places, repeated = list(base), _pick(len(base), share, rng), 0
    if at_end:
        again = [base[i] for i in places]
        return [*base, *again], _count(again) / _count([*base, *again])
    for place in places:
        tokens = split_tokens(out[place])
        length = int(rng.integers(1, max(2, len(tokens) // 2)))
        start = int(rng.integers(0, max(1, len(tokens) - length)))
        run = [_with_space(token) for token in tokens[start : start + length]]
        out[place] = "".join([*tokens[: start + length], *run, *tokens[start + length :]])
        repeated += len(run)
    return out, repeated / _count(out)


def _misplaced(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Words of the document in the place of other words; capitalised words and numbers replace their like."""
    found = (token.strip() for token in split_tokens(pair.document))
    words = [word for word in found if re.search(r"\w\w", word) or word.isdigit()]
    names = [word for word in words if word[0].isupper() or word[0].isdigit()]
    tokens = [split_tokens(sentence) for sentence in base]
    places = [(i, j) for i, sentence in enumerate(tokens) for j, token in enumerate(sentence) if len(token.strip()) > 2]
    if not places or not words:
        return base, 0.0
    changed = 0
    # a few words already change a statement's meaning: shares stay below a half, so that the label stays above 0
    for i, j in [places[place] for place in _pick(len(places), 0.5 * share, rng)]:
        old = tokens[i][j].strip()
        new = _choose(names if names and (old[0].isupper() or old[0].isdigit()) else words, rng)
        if new.lower() != old.lower():
            tokens[i][j] = _spaced_like(new, tokens[i][j])
            changed += 1
    return ["".join(sentence) for sentence in tokens], changed / _count(base)


def _glued(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """The beginning of a sentence and the end of another one of the document."""
    out, wrong = list(base), 0
    for place in _pick(len(base), share, rng):
        if pool := [s for s in pair.document_sentences if s != out[place]]:
            head, tail = split_tokens(out[place]), split_tokens(_choose(pool, rng))
            cut = int(rng.integers(1, max(2, len(head) - 1)))
            end = tail[int(rng.integers(0, max(1, len(tail) - 1))) :]
            out[place] = "".join([*head[:cut], *map(_with_space, end[:1]), *end[1:]])
            wrong += len(end)
    return out, wrong / max(1, _count(out))


def _broken(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """The text breaks off, or sentences lose their end."""
    out, lost = list(base), 0
    for place in [len(base) - 1] if rng.random() < 0.5 else _pick(len(base), share, rng):
        tokens = split_tokens(out[place])
        kept = int(rng.integers(1, max(2, len(tokens) - 1)))
        out[place] = "".join(tokens[:kept])
        lost += len(tokens) - kept
    # even a short loss leaves a visibly unfinished text
    return out, min(1.0, lost / _count(base) + 0.25)


def _shuffled(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Words out of order inside a window of each chosen sentence."""
    out, moved = list(base), 0
    for place in _pick(len(base), share, rng):
        tokens = split_tokens(out[place])
        if len(tokens) >= 4:
            size = int(rng.integers(3, len(tokens)))
            start = int(rng.integers(0, len(tokens) - size + 1))
            order = rng.permutation(size) + start
            words = [*tokens[:start], *(tokens[i] for i in order), *tokens[start + size :]]
            out[place] = "".join([words[0], *map(_with_space, words[1:])]).strip()
            moved += int((order != np.arange(start, start + size)).sum())
    return out, moved / max(1, _count(base))


def _padded(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """A summary that does not stop: sentences of the document follow it."""
    pool = [s for s in pair.document_sentences if s not in base]
    if not pool:
        return base, 0.0
    more = [pool[i] for i in _pick(len(pool), min(1.0, share * 2 * len(base) / len(pool)), rng)]
    return [*base, *more], _count(more) / _count([*base, *more])


def _false(kind: str) -> Callable[[list[str], Pair, Pair, float, Rng], Faulty]:
    """Sentences with a false fact; each is wrong as a whole."""

    def spoil(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
        false = {place: FACT_FAULTS[kind](sentence, pair, other, rng) for place, sentence in enumerate(base)}
        places = [place for place, changed in false.items() if changed is not None]
        if not places:
            return base, 0.0
        chosen = [places[place] for place in _pick(len(places), share, rng)]
        out = [false[place] or "" if place in chosen else sentence for place, sentence in enumerate(base)]
        return out, _count([out[place] for place in chosen]) / _count(out)

    return spoil


#: What `broad` adds to the paper's kinds.
FAULTS: dict[str, Callable[[list[str], Pair, Pair, float, Rng], Faulty]] = {
    "missing": _missing, "foreign": _foreign, "aside": _aside, "repeated": _repeated, "misplaced": _misplaced,
    "glued": _glued, "broken": _broken, "shuffled": _shuffled, "padded": _padded,
    **{kind: _false(kind) for kind in FACT_FAULTS},
}  # fmt: skip


def add_fault(base: Sequence[str], kind: str, pair: Pair, other: Pair, share: float, rng: Rng) -> tuple[str, float]:
    """Give a summary (as sentences) a fault of :data:`FAULTS`; return the text with its label."""
    sentences, real_share = FAULTS[kind](list(base), pair, other, share, rng)
    return " ".join(sentences), max(0.0, 1.0 - WEIGHTS[kind] * real_share)


def lead_extract(pair: Pair, rng: Rng) -> tuple[str, ...]:
    """An extract in document order: sentences near the beginning, about as long as the summary."""
    goal = max(len(split_tokens(pair.summary)), 20)
    early = pair.document_sentences[: max(4, len(pair.document_sentences) // 4)]
    skip = rng.random() * 0.4
    out: list[str] = []
    for sentence in early:
        if _count(out) < goal and rng.random() >= skip:
            out.append(sentence)
    return tuple(out or early[:1])


# ---------------------------------------------------------------------------------------------------------------------


def _kinds(negatives: Negatives) -> tuple[str, ...]:
    check_choice("train quality", "negatives", negatives, get_args(Negatives))
    if negatives == "mix":
        return PAPER_KINDS
    return (*PAPER_KINDS, *FAULTS, "extract") if negatives == "broad" else (negatives,)


def _other_row(row: int, rows: int, rng: Rng) -> int:
    """Another row than `row`, uniformly."""
    if rows < 2:
        raise InputError(f"train quality: data: cross pairing needs at least two documents, but got {rows}")
    other = int(rng.integers(rows - 1))
    return other + (other >= row)


def _negative(row: int, kind: str, pairs: Sequence[Pair], vocabulary: Sequence[str], rng: Rng) -> Sample:
    pair = pairs[row]
    if kind == "cross":
        other = _other_row(row, len(pairs), rng)
        return Sample(row, pairs[other].summary, 0.0, kind, other)
    if kind in PAPER_KINDS:
        return Sample(row, *mutate(pair.summary, kind, float(rng.random()), vocabulary, rng), kind, row)
    base = pair.summary_sentences if rng.random() < 0.5 else lead_extract(pair, rng)
    if kind == "extract":
        return Sample(row, " ".join(lead_extract(pair, rng)), 1.0, kind, row)
    other_pair = pairs[_other_row(row, len(pairs), rng)]
    return Sample(row, *add_fault(base, kind, pair, other_pair, float(rng.random()), rng), kind, row)


def make_samples(
    pairs: Sequence[Pair],
    negatives: Negatives = "mix",
    *,
    fakes: int = 1,
    seed: int = 0,
    vocabulary: Sequence[str] | None = None,
) -> list[Sample]:
    """The own pair of every row (label 1) and `fakes` negative samples of it.

    Parameters
    ----------
    pairs
        Documents with summaries of **one** split: cross pairs borrow from these rows alone, so that nothing of
        another split leaks in.
    negatives
        Which kinds; `mix` and `broad` take their kinds in turn, starting at one that depends on the seed, so that the
        parts are equal.
    fakes
        Negative samples per row; the paper's default is one.
    vocabulary
        Words to add and to replace by; the words of the pairs' summaries if None.
    """
    kinds = _kinds(negatives)
    words = build_vocabulary([pair.summary for pair in pairs]) if vocabulary is None else tuple(vocabulary)
    out: list[Sample] = []
    for row, pair in enumerate(pairs):
        out.append(Sample(row, pair.summary, 1.0, "original", row))
        for fake in range(fakes):
            kind = kinds[(row * fakes + fake + seed) % len(kinds)]
            out.append(_negative(row, kind, pairs, words, np.random.default_rng([seed, row, fake])))
    return out

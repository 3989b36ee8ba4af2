"""Negative samples: good summaries made worse by a known share (Bao et al. 2020, section 2.2).

A data set of documents and summaries holds no bad summaries, so they are made:

* *cross pairing* puts another document's summary beside a document: label 0, the own summary has label 1;
* *mutation* adds random tokens of the vocabulary at random places, deletes random tokens, or replaces random tokens
  by random words: label ``1 - share`` with ``share = changed tokens / original tokens``, drawn uniformly from [0, 1];
* ``mix`` is equal parts of these four.

``broad`` goes beyond the paper. Random words of a vocabulary are easy to spot and no summariser writes them, so
``broad`` adds the faults that summarisers do have: sentences that are missing, repeated, taken from another summary or
from a side issue of the document; names and words put where another word of the same document stood; halves of two
sentences glued together; a text that breaks off; words out of order; and it adds extracts of the document itself as
good summaries. The label is ``1 - weight * share``, with the share counted in tokens and the weight of
:data:`WEIGHTS`.

Every draw depends on the seed, the row and the number of the fake alone: the same row gets the same fakes whatever
stands around it, apart from what it borrows from other rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Rng = np.random.Generator
#: Sentences of a summary with a fault, and the share of its tokens that is wrong.
Faulty = tuple[list[str], float]
Negatives = Literal["cross", "add", "delete", "replace", "mix", "broad"]

#: The paper's four ways, in the order in which ``mix`` takes them in turn.
PAPER_KINDS = ("cross", "add", "delete", "replace")
#: What ``broad`` adds to them.
FAULT_KINDS = ("missing", "foreign", "aside", "repeated", "misplaced", "glued", "broken", "shuffled", "padded")
#: Label of a fault with share s: ``1 - weight * s``. A summary with a side issue of its own document is less wrong
#: than one with a sentence of another document; a misplaced name is wrong beyond its share of the tokens.
WEIGHTS = {
    "missing": 0.7, "foreign": 1.0, "aside": 0.5, "repeated": 1.0, "misplaced": 2.0, "glued": 0.8, "broken": 0.6,
    "shuffled": 0.8, "padded": 0.7,
}  # fmt: skip

# A token keeps the white space before it, so that joining tokens gives back the text and an unchanged text is not
# told from a changed one by its spacing.
_TOKEN = re.compile(r"\s*(?:\w+(?:['’.\-]\w+)*|[^\w\s])")


@dataclass(frozen=True)
class Pair:
    """A document with its good summary; both also as sentences (the split is the caller's)."""

    document: str
    summary: str
    document_sentences: tuple[str, ...] = ()
    summary_sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One training example: the row of the document, a summary, its label in [0, 1] and how it was made.

    ``summary_row`` is the row whose summary this is (another row for cross pairs).
    """

    row: int
    summary: str
    label: float
    kind: str
    summary_row: int


def split_tokens(text: str) -> list[str]:
    """Words and marks, each with the white space before it.

    >>> split_tokens("It's late, go.")
    ["It's", ' late', ',', ' go', '.']
    >>> "".join(split_tokens("two  spaces\\nand a line"))
    'two  spaces\\nand a line'
    """
    return _TOKEN.findall(text)


def build_vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Distinct words of the texts, sorted; marks are left out.

    >>> build_vocabulary(["Go on, go", "on"])
    ('Go', 'go', 'on')
    """
    words = {token.strip() for text in texts for token in split_tokens(text)}
    return tuple(sorted(word for word in words if re.search(r"\w", word)))


def _spaced_like(word: str, token: str) -> str:
    return token[: len(token) - len(token.lstrip())] + word


def add_tokens(tokens: Sequence[str], count: int, vocabulary: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Put ``count`` random words of the vocabulary at random places.

    >>> len(add_tokens(["a", " b"], 3, ["x"], np.random.default_rng(0)))
    5
    """
    places = np.sort(rng.integers(0, len(tokens) + 1, size=count))
    words = rng.integers(0, len(vocabulary), size=count)
    out: list[str] = []
    taken = 0
    for position in range(len(tokens) + 1):
        while taken < count and places[taken] == position:
            out.append(" " + vocabulary[int(words[taken])])
            taken += 1
        if position < len(tokens):
            token = tokens[position]
            # the first word of a text, or one after a quotation mark, has no space before it
            out.append(" " + token if token[0].isalnum() and taken and places[taken - 1] == position else token)
    return out


def delete_tokens(tokens: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Drop ``count`` random tokens.

    >>> delete_tokens(["a", " b", " c"], 3, np.random.default_rng(0))
    []
    """
    gone = set(rng.choice(len(tokens), size=count, replace=False).tolist())
    return [token for position, token in enumerate(tokens) if position not in gone]


def replace_tokens(tokens: Sequence[str], count: int, vocabulary: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Put random words of the vocabulary in the place of ``count`` random tokens; no word replaces itself.

    >>> replace_tokens(["a", " b"], 2, ["x"], np.random.default_rng(0))
    ['x', ' x']
    """
    out = list(tokens)
    for position in rng.choice(len(tokens), size=count, replace=False).tolist():
        old = out[position].strip()
        word = vocabulary[int(rng.integers(len(vocabulary)))]
        if word == old and len(vocabulary) > 1:
            word = vocabulary[(vocabulary.index(word) + 1) % len(vocabulary)]
        out[position] = _spaced_like(word, out[position])
    return out


def mutate(
    summary: str, kind: str, share: float, vocabulary: Sequence[str], rng: np.random.Generator
) -> tuple[str, float]:
    """Mutate a summary by ``kind`` (add, delete, replace); return it with its label.

    The number of changed tokens is ``round(share * n)``, and the label is ``1 - changed / n``: the share that was
    really changed, not the one that was drawn.

    >>> mutate("one two three four", "delete", 0.5, [], np.random.default_rng(0))[1]
    0.5
    """
    tokens = split_tokens(summary)
    if not tokens:
        return summary, 1.0
    count = round(share * len(tokens))
    if kind == "add":
        changed = add_tokens(tokens, count, vocabulary, rng)
    elif kind == "delete":
        changed = delete_tokens(tokens, count, rng)
    elif kind == "replace":
        changed = replace_tokens(tokens, count, vocabulary, rng)
    else:
        raise ValueError(f"quality: kind of mutation must be one of add, delete, replace, but got {kind!r}")
    return "".join(changed).strip(), 1.0 - count / len(tokens)


def cross_partner(row: int, rows: int, rng: np.random.Generator) -> int:
    """Another row than ``row``, uniformly.

    >>> {cross_partner(1, 3, np.random.default_rng(seed)) for seed in range(20)} == {0, 2}
    True
    """
    if rows < 2:
        raise ValueError("quality: cross pairing needs at least two documents")
    other = int(rng.integers(rows - 1))
    return other + (other >= row)


def _count(sentences: Sequence[str]) -> int:
    return sum(len(split_tokens(sentence)) for sentence in sentences)


def _pick(count: int, share: float, rng: np.random.Generator) -> list[int]:
    """At least one of ``count`` places, about the given share of them, in order."""
    size = min(count, max(1, round(share * count)))
    return sorted(rng.choice(count, size=size, replace=False).tolist())


def _missing(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    if len(base) < 2:
        return _broken(base, pair, other, share, rng)
    gone = _pick(len(base), min(share, 1 - 1 / len(base)), rng)
    return [s for i, s in enumerate(base) if i not in gone], _count([base[i] for i in gone]) / _count(base)


def _foreign(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    return _sentences_from(base, other.summary_sentences, share, rng)


def _aside(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    late = pair.document_sentences[len(pair.document_sentences) // 4 :]
    return _sentences_from(base, late, share, rng)


def _sentences_from(
    base: list[str], pool: Sequence[str], share: float, rng: np.random.Generator
) -> tuple[list[str], float]:
    pool = [sentence for sentence in pool if sentence not in base]
    if not pool:
        return list(base), 0.0
    out = list(base)
    places = _pick(len(base), share, rng)
    for place in places:
        out[place] = pool[int(rng.integers(len(pool)))]
    return out, _count([out[i] for i in places]) / max(1, _count(out))


def _repeated(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Whole sentences again, at the end or at once; or a run of words again at once."""
    if rng.random() < 0.5:
        again = [base[i] for i in _pick(len(base), share, rng)]
        return [*base, *again], _count(again) / (_count(base) + _count(again))
    out = list(base)
    repeated = 0
    for place in _pick(len(base), share, rng):
        tokens = split_tokens(out[place])
        length = int(rng.integers(1, max(2, len(tokens) // 2)))
        start = int(rng.integers(0, max(1, len(tokens) - length)))
        run = tokens[start : start + length]
        run = [token if token[:1].isspace() else " " + token for token in run]
        out[place] = "".join([*tokens[: start + length], *run, *tokens[start + length :]])
        repeated += len(run)
    return out, repeated / _count(out)


def _misplaced(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Words of the document where other words stood; capitals and numbers change places with their like."""
    words = [
        token.strip() for token in split_tokens(pair.document) if re.search(r"\w\w", token) or token.strip().isdigit()
    ]
    names = [word for word in words if word[0].isupper() or word[0].isdigit()]
    tokens = [split_tokens(sentence) for sentence in base]
    places = [(i, j) for i, sentence in enumerate(tokens) for j, token in enumerate(sentence) if len(token.strip()) > 2]
    if not places or not words:
        return list(base), 0.0
    # a few words already turn a statement round: shares stay below a half, so that label 1 - 2 * share stays above 0
    chosen = [places[i] for i in _pick(len(places), 0.5 * share, rng)]
    changed = 0
    for i, j in chosen:
        old = tokens[i][j].strip()
        pool = names if names and (old[0].isupper() or old[0].isdigit()) else words
        new = pool[int(rng.integers(len(pool)))]
        if new.lower() != old.lower():
            tokens[i][j] = _spaced_like(new, tokens[i][j])
            changed += 1
    return ["".join(sentence) for sentence in tokens], changed / _count(base)


def _glued(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """The beginning of one sentence and the end of another of the document."""
    out = list(base)
    lost = 0
    for place in _pick(len(base), share, rng):
        pool = [s for s in pair.document_sentences if s != out[place]]
        if not pool:
            continue
        head, tail = split_tokens(out[place]), split_tokens(pool[int(rng.integers(len(pool)))])
        cut = int(rng.integers(1, max(2, len(head) - 1)))
        end = tail[int(rng.integers(0, max(1, len(tail) - 1))) :]
        if end and not end[0][:1].isspace():
            end = [" " + end[0], *end[1:]]
        out[place] = "".join([*head[:cut], *end])
        lost += len(end)
    return out, lost / max(1, _count(out))


def _broken(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """The text breaks off, or sentences lose their end."""
    out = list(base)
    lost = 0
    total = _count(base)
    places = [len(base) - 1] if rng.random() < 0.5 else _pick(len(base), share, rng)
    for place in places:
        tokens = split_tokens(out[place])
        keep = int(rng.integers(1, max(2, len(tokens) - 1)))
        out[place] = "".join(tokens[:keep])
        lost += len(tokens) - keep
    # even a short loss leaves a visibly unfinished text
    return out, min(1.0, lost / total + 0.25)


def _shuffled(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """Words out of order inside a window of each chosen sentence."""
    out = list(base)
    moved = 0
    for place in _pick(len(base), share, rng):
        tokens = split_tokens(out[place])
        if len(tokens) < 4:
            continue
        size = int(rng.integers(3, len(tokens)))
        start = int(rng.integers(0, len(tokens) - size + 1))
        order = rng.permutation(size) + start
        words = [*tokens[:start], *(tokens[i] for i in order), *tokens[start + size :]]
        words = [word if word[:1].isspace() or not k else " " + word for k, word in enumerate(words)]
        moved += int((order != np.arange(start, start + size)).sum())
        out[place] = "".join(words).strip()
    return out, moved / max(1, _count(base))


def _padded(base: list[str], pair: Pair, other: Pair, share: float, rng: Rng) -> Faulty:
    """A summary that does not stop: sentences of the document go on after it."""
    pool = [s for s in pair.document_sentences if s not in base]
    if not pool:
        return list(base), 0.0
    more = [pool[i] for i in _pick(len(pool), min(1.0, share * 2 * len(base) / len(pool)), rng)]
    return [*base, *more], _count(more) / (_count(base) + _count(more))


_FAULTS: dict[str, Callable[[list[str], Pair, Pair, float, Rng], Faulty]] = {
    "missing": _missing, "foreign": _foreign, "aside": _aside, "repeated": _repeated, "misplaced": _misplaced,
    "glued": _glued, "broken": _broken, "shuffled": _shuffled, "padded": _padded,
}  # fmt: skip


def make_faulty(
    base: Sequence[str], kind: str, pair: Pair, other: Pair, share: float, rng: np.random.Generator
) -> tuple[str, float]:
    """Give a summary (as sentences) a fault of :data:`FAULT_KINDS`; return the text with its label."""
    sentences, real_share = _FAULTS[kind](list(base), pair, other, share, rng)
    return " ".join(sentences), max(0.0, 1.0 - WEIGHTS[kind] * real_share)


def lead_extract(pair: Pair, rng: np.random.Generator) -> tuple[str, ...]:
    """An extract in document order: sentences near the beginning, about as long as the summary."""
    goal = max(len(split_tokens(pair.summary)), 20)
    early = list(pair.document_sentences[: max(4, len(pair.document_sentences) // 4)])
    skip = rng.random() * 0.4
    out: list[str] = []
    for sentence in early:
        if rng.random() < skip:
            continue
        out.append(sentence)
        if _count(out) >= goal:
            break
    return tuple(out or early[:1])


def kinds_of(negatives: Negatives) -> tuple[str, ...]:
    """The kinds a setting takes in turn.

    >>> kinds_of("mix")
    ('cross', 'add', 'delete', 'replace')
    """
    if negatives not in get_args(Negatives):
        raise ValueError(f"quality: negatives must be one of {', '.join(get_args(Negatives))}, but got {negatives!r}")
    if negatives == "mix":
        return PAPER_KINDS
    return (*PAPER_KINDS, *FAULT_KINDS, "extract") if negatives == "broad" else (negatives,)


def make_samples(
    pairs: Sequence[Pair],
    negatives: Negatives = "mix",
    *,
    fakes: int = 1,
    seed: int = 0,
    vocabulary: Sequence[str] | None = None,
    share: Callable[[np.random.Generator], float] | None = None,
) -> list[Sample]:
    """The own pair of every row (label 1) and ``fakes`` negative samples of it.

    Parameters
    ----------
    pairs
        Documents with summaries of **one** split: cross pairs borrow from these rows alone, so that nothing of
        another split leaks in.
    negatives
        Which kinds; ``mix`` and ``broad`` go through their kinds in turn, row by row, starting at a kind that is
        shuffled with the seed, so that the parts are equal.
    fakes
        Negative samples a row; the paper's default is one.
    vocabulary
        Words to add and to replace by; the words of ``pairs``' summaries if None.
    share
        Draws the share to change; uniform on [0, 1] if None.
    """
    kinds = kinds_of(negatives)
    if fakes < 0:
        raise ValueError(f"quality: fakes must not be negative, but got {fakes}")
    words = build_vocabulary([pair.summary for pair in pairs]) if vocabulary is None else tuple(vocabulary)
    draw = share if share is not None else (lambda rng: float(rng.random()))
    out: list[Sample] = []
    for row, pair in enumerate(pairs):
        out.append(Sample(row, pair.summary, 1.0, "original", row))
        for fake in range(fakes):
            rng = np.random.default_rng([seed, row, fake])
            kind = kinds[(row * fakes + fake + seed) % len(kinds)]
            if kind == "cross":
                other = cross_partner(row, len(pairs), rng)
                out.append(Sample(row, pairs[other].summary, 0.0, "cross", other))
            elif kind in PAPER_KINDS:
                text, label = mutate(pair.summary, kind, draw(rng), words, rng)
                out.append(Sample(row, text, label, kind, row))
            else:
                base = pair.summary_sentences if rng.random() < 0.5 else lead_extract(pair, rng)
                if kind == "extract":
                    out.append(Sample(row, " ".join(lead_extract(pair, rng)), 1.0, kind, row))
                    continue
                other_pair = pairs[cross_partner(row, len(pairs), rng)]
                text, label = make_faulty(base, kind, pair, other_pair, draw(rng), rng)
                out.append(Sample(row, text, label, kind, row))
    return out
